package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// A cutter relays connections to a server until it cuts them all, as a host that fails does.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []*net.TCPConn
}

func newCutter(t *testing.T, address string) *cutter {
	return newChangingCutter(t, address, func(b []byte) []byte { return b })
}

// newChangingCutter is newCutter, with what clients say changed on the way.
func newChangingCutter(t *testing.T, address string, change func([]byte) []byte) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l}
	t.Cleanup(func() {
		l.Close()
		c.cut(false)
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, client.(*net.TCPConn), server.(*net.TCPConn))
			c.mu.Unlock()
			go io.Copy(changingWriter{server, change}, client)
			go func() {
				io.Copy(client, server)
				client.Close()
			}()
		}
	}()
	return c
}

// A changingWriter changes what is written.
type changingWriter struct {
	io.Writer
	change func([]byte) []byte // to as many bytes
}

func (w changingWriter) Write(b []byte) (int, error) { return w.Writer.Write(w.change(b)) }

// cut ends all connections: with FIN, or with RST.
func (c *cutter) cut(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		if reset {
			conn.SetLinger(0)
		}
		conn.Close()
	}
	c.conns = nil
}

// untilEnd returns what the client gets until its connection ends, and how that was.
func (c *rawClient) untilEnd() string {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(testdb.Patience))
	rest, err := io.ReadAll(c.in)
	switch {
	case err == nil:
		return fmt.Sprintf("%q and FIN", rest)
	case errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("%q and RST", rest)
	}
	c.t.Fatalf("the connection goes on: %v", err)
	return ""
}

// connectionID asks for the id that KILL takes.
func (c *rawClient) connectionID() string {
	c.t.Helper()
	reply := c.ask(query("SELECT CONNECTION_ID()"), "")
	row := reply[len(reply)-2][4:]
	return string(row[1 : 1+row[0]])
}

// TestConnectionEndsAsTheServerEndedIt has a server end its connections in each way there is. The client gets the
// bytes that it gets directly, and the same end: words come from the server alone.
func TestConnectionEndsAsTheServerEndedIt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // what takes the time is waiting
	const slow = "SELECT SLEEP(5)"
	// An UPDATE leaves entries that isotap reads when the client has been quiet, or before its COMMIT.
	write := []string{"UPDATE t SET v = v + 1"}
	open := []string{"BEGIN", write[0]}
	kill := func(t *testing.T, _ *cutter, id string) { (&bench{t: t}).exec(testdb.Open(t, ""), "KILL "+id) }
	cut := func(_ *testing.T, c *cutter, _ string) { c.cut(false) }
	reset := func(_ *testing.T, c *cutter, _ string) { c.cut(true) }
	nothing := func(*testing.T, *cutter, string) {}
	for _, tt := range []struct {
		name   string
		before []string // whose replies are awaited
		last   string
		pause  time.Duration
		end    func(t *testing.T, c *cutter, id string)
	}{
		{"vanished before the reply", nil, slow, 0, cut},
		{"vanished within the reply", []string{"SET @x = 1"}, "SELECT 1 UNION ALL SELECT SLEEP(5)", 0, cut},
		{"vanished while idle", nil, "", 0, cut},
		{"vanished before a write's reply", nil, "UPDATE t SET v = v + SLEEP(5)", 0, cut},
		{"vanished in a transaction", open, slow, 0, cut},
		{"reset before the reply", nil, slow, 0, reset},
		{"reset while idle", write, "", 0, reset},
		{"killed before the reply", nil, slow, 0, kill},
		{"killed in a transaction", open, slow, 0, kill},
		{"killed while idle", nil, "", 0, kill},
		{"killed while idle behind a write", write, "", time.Second, kill},
		{"killed while idle in a transaction", open, "", time.Second, kill},
		{"idle for too long", []string{"SET SESSION wait_timeout = 1"}, "", 1500 * time.Millisecond, nothing},
		{"idle for too long behind a write", append([]string{"SET SESSION wait_timeout = 1"}, write...), "",
			1500 * time.Millisecond, nothing},
		{"killed by itself", nil, "KILL CONNECTION_ID()", 0, nothing},
		{"killed by itself behind a write", write, "KILL CONNECTION_ID()", 0, nothing},
		{"killed by itself in a transaction", open, "KILL CONNECTION_ID()", 0, nothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Side by side: one pause does for all.
			ways := []string{"directly", "a copy", "off", "items", "durable"}
			relays, clients, ids := make([]*cutter, len(ways)), make([]*rawClient, len(ways)), make([]string, len(ways))
			for i, way := range ways {
				// Each has a table of its own: a server may hold a client's locks for seconds after it vanished.
				database := testdb.NewDatabase(t)
				(&bench{t: t}).exec(testdb.Open(t, database), "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
					"INSERT INTO t VALUES (1, 1)")
				relays[i] = newCutter(t, testdb.Current(t).Addr())
				c := dialRaw(t, endingProxy(t, way, database, relays[i]), database, gomysql.CLIENT_DEPRECATE_EOF)
				clients[i], ids[i] = c, c.connectionID()
				for _, statement := range tt.before {
					if reply := c.ask(query(statement), ""); reply[0][4] == 0xff {
						t.Fatalf("%s: %s: %q", way, statement, reply)
					}
				}
			}
			for _, c := range clients {
				if tt.last != "" {
					c.write(0, query(tt.last))
				}
			}
			time.Sleep(200*time.Millisecond + tt.pause)
			for i := range ways {
				tt.end(t, relays[i], ids[i])
			}
			directly := clients[0].untilEnd()
			for i, c := range clients[1:] {
				if end := c.untilEnd(); end != directly {
					t.Errorf("%s it got %s; directly %s", ways[i+1], end, directly)
				}
			}
		})
	}
}

// endingProxy starts an isotap of that kind between a client and the relay, and returns the address to connect to.
func endingProxy(t *testing.T, way, database string, relay *cutter) string {
	t.Helper()
	if way == "directly" {
		return relay.Addr().String()
	}
	target, err := dsn.Parse(testdb.Current(t).URL() + database)
	if err != nil {
		t.Fatal(err)
	}
	target.Address = relay.Addr().String()
	o := proxyserver.Options{Upstream: target, Off: way == "a copy" || way == "off"}
	switch way {
	case "off":
		if o.ClientTLS, err = proxyserver.ParseClientTLS("optional", "auto", "", ""); err != nil {
			t.Fatal(err)
		}
	case "items", "durable":
		instrument(t, database)
		o.Recording = filepath.Join(t.TempDir(), "rec")
	}
	if way == "durable" {
		o.Durability = recorder.Commit
	}
	return startProxy(t, o).Addr().String()
}

// TestEndsWithinTheLoginAreTheServers has a server go away at each step of a login.
func TestEndsWithinTheLoginAreTheServers(t *testing.T) {
	greeting := greetingOf(t)
	for _, tt := range []struct {
		name string
		says [][]byte // one before each packet of the client's
	}{
		{"before the greeting", nil},
		{"before the login's answer", [][]byte{greeting}},
		{"within the authentication", [][]byte{greeting, {2, 0, 0, 2, 1, 4}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					for _, words := range tt.says {
						c.Write(words)
						c.Read(make([]byte, 4096))
					}
					c.Close()
				}
			}()
			var ends [2]string
			for i, address := range []string{l.Addr().String(), startMuteProxy(t, l.Addr().String())} {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(testdb.Patience))
				for range tt.says {
					conn.Read(make([]byte, 4096))
					conn.Write(loginPacket())
				}
				rest, err := io.ReadAll(conn)
				ends[i] = fmt.Sprintf("%q, %v", rest, err)
			}
			if ends[1] != ends[0] {
				t.Errorf("through isotap %s; directly %s", ends[1], ends[0])
			}
		})
	}
}

// greetingOf returns the first packet of the test server.
func greetingOf(t *testing.T) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", testdb.Current(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// loginPacket is a client's handshake response.
func loginPacket() []byte {
	login := binary.LittleEndian.AppendUint32(nil,
		gomysql.CLIENT_PROTOCOL_41|gomysql.CLIENT_SECURE_CONNECTION|gomysql.CLIENT_PLUGIN_AUTH)
	login = append(login, 0, 0, 0, 1, 33)
	login = append(login, make([]byte, 23)...)
	login = append(login, "root\x00\x00caching_sha2_password\x00"...)
	return append([]byte{byte(len(login)), 0, 0, 1}, login...)
}
