package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// ownServer starts a server that a test may kill, with the tables of setup in a database d: a MariaDB as the
// distribution has it, so that other engines' rounds have nothing new to test with it.
func ownServer(t *testing.T, args []string, setup ...string) (*testdb.Server, dsn.Target) {
	t.Helper()
	testdb.Only(t, "its own server is a MariaDB, where it ran", "mariadb")
	server, err := testdb.Start(t.Context(), testdb.Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range append([]string{"CREATE DATABASE d"}, setup...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	target, err := dsn.Parse(server.URL() + "d")
	if err != nil {
		t.Fatal(err)
	}
	return server, target
}

func startProxy(t *testing.T, o proxyserver.Options) *proxyserver.Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if !o.Off && o.Recording == "" {
		o.Recording = filepath.Join(t.TempDir(), "rec")
	}
	srv, err := proxyserver.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	return srv
}

func TestIsotapMayBeStoppedTwice(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	srv := startProxy(t, proxyserver.Options{Off: true,
		Upstream: dsn.Target{Network: "tcp", Address: closed.Addr().String(), User: "root"}})
	for range 2 {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestServerThatStopsSaysWhatItSaysDirectly shuts a server down beneath two clients, of whom one is behind isotap.
func TestServerThatStopsSaysWhatItSaysDirectly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, tt := range []struct {
		name, statement string
		off             bool
	}{
		{"before the reply", "SELECT SLEEP(60)", false},
		{"within the reply", "SELECT 1 UNION ALL SELECT SLEEP(60)", false},
		{"idle", "", false},
		{"a plain copy", "SELECT SLEEP(60)", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Without a buffer the first row is on its way while the second is awaited.
			server, target := ownServer(t, []string{"--net-buffer-length=1024"})
			srv := startProxy(t, proxyserver.Options{Upstream: target, Off: tt.off})
			var clients [2]*rawClient
			for i, address := range []string{server.Addr(), srv.Addr().String()} {
				clients[i] = dialRaw(t, address, "d", 0)
				if tt.statement != "" {
					clients[i].write(0, query(tt.statement))
				}
			}
			time.Sleep(300 * time.Millisecond)
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			if direct, through := clients[0].untilEnd(), clients[1].untilEnd(); through != direct {
				t.Errorf("the client got %s; directly %s", through, direct)
			}
		})
	}
}

func TestLoginsMayNotTakeForEver(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	srv := startProxy(t, proxyserver.Options{Upstream: target, LoginTimeout: 200 * time.Millisecond})
	c, err := net.Dial("tcp", srv.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(testdb.Patience))
	if b, err := io.ReadAll(c); err != nil || !bytes.Contains(b, []byte("timeout reading communication packets")) {
		t.Errorf("a client that says nothing: %q, %v", b, err)
	}
	db, err := sql.Open("mysql", srv.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	if err := conn.PingContext(t.Context()); err != nil {
		t.Errorf("a client that has logged in: %v", err)
	}
	_, err = (&mysql.MySQLDriver{}).Open("root@tcp(" + startMuteProxy(t, mute.Addr().String()) + ")/")
	if err == nil || !strings.Contains(err.Error(), "did not greet") {
		t.Errorf("behind a server that says nothing: %v", err)
	}
}

// startMuteProxy starts an isotap that follows its sessions without a connection of its own.
func startMuteProxy(t *testing.T, address string) string {
	t.Helper()
	offered, err := proxyserver.ParseClientTLS("optional", "auto", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return startProxy(t, proxyserver.Options{Upstream: dsn.Target{Network: "tcp", Address: address}, Off: true,
		ClientTLS:    offered,
		LoginTimeout: 200 * time.Millisecond}).Addr().String()
}

func TestIsotapListensOnSeveralAddresses(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "isotap.sock")
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	listen := "127.0.0.1:0, unix:" + socket
	srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: target, Listen: listen, SocketMode: 0o640,
		Recording: filepath.Join(dir, "rec")})
	if err != nil {
		t.Fatal(err)
	}
	for network, address := range map[string]string{"tcp": srv.Addr().String(), "unix": socket} {
		c := driverConfig(t, srv, "")
		c.Net, c.Addr = network, address
		if err := loginAs(t, c); err != nil {
			t.Errorf("over %s: %v", network, err)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o640 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	place, err := srv.Environment()
	if err != nil {
		t.Fatal(err)
	}
	if env := strings.Join(place.Environment(nil), "\n"); !strings.Contains(env, "MYSQL_UNIX_PORT="+socket) ||
		!strings.Contains(env, "MYSQL_TCP_PORT=") {
		t.Errorf("the environment names not both:\n%s", env)
	}
	if _, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: target, Listen: "unix:" + socket,
		Off: true}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second isotap on the same socket: %v", err)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// heapPeak runs f and returns the most that the heap grew by meanwhile.
func heapPeak(f func()) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > before+most.Load() {
				most.Store(m.HeapAlloc - before)
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most.Load()
}

// TestWhatIsLargeIsNotKeptInMemory passes a quarter of a gigabyte in each way there is, and a reader stops
// in the midst of it. The rows and statements are not isotap's to change, so they are passed on as they
// come.
func TestWhatIsLargeIsNotKeptInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("moves a gigabyte")
	}
	size := 256 << 20
	_, target := ownServer(t, []string{"--max-allowed-packet=1G", "--innodb-log-file-size=200M"},
		"SET GLOBAL net_write_timeout = 600",
		"CREATE TABLE d.sink (a LONGBLOB) ENGINE=MyISAM")
	srv := startProxy(t, proxyserver.Options{Upstream: target, Args: true})
	limit := uint64(size) * 2 / 3 // two packets of 16 MiB are kept before they move, and leave garbage
	check := func(name string, f func(c *rawClient)) {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, srv.Addr().String(), "d", gomysql.CLIENT_LOCAL_FILES)
			c.t = t
			if peak := heapPeak(func() { f(c) }); peak > limit {
				t.Errorf("the heap grew by %d MiB", peak>>20)
			}
		})
	}
	check("a row", func(c *rawClient) {
		c.write(0, fmt.Appendf([]byte{gomysql.COM_QUERY}, "SELECT REPEAT('x', %d)", size))
		c.drain(3)
		if got := c.skipPayload(); got < size {
			t.Errorf("the row has %d bytes", got)
		}
	})
	check("a reader that stops", func(c *rawClient) {
		c.write(0, query("SELECT REPEAT('x', 1000) FROM ("+testdb.Numbers(1_000_000)+") AS s"))
		time.Sleep(time.Second)
		before := runtime.NumGoroutine()
		time.Sleep(time.Second)
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines, %d a second before", after, before)
		}
		c.drain(3)
	})
	check("a statement", func(c *rawClient) {
		c.writeLarge(append([]byte{gomysql.COM_QUERY}, "SELECT LENGTH('"...), size, "')")
		c.drain(3)
		if row := c.read(); !strings.Contains(string(row), fmt.Sprint(size)) {
			t.Errorf("the server counted %q bytes", row)
		}
	})
	check("a parameter", func(c *rawClient) {
		c.write(0, append([]byte{gomysql.COM_STMT_PREPARE}, "SELECT LENGTH(?)"...))
		ok := c.read()
		id := append([]byte(nil), ok[5:9]...)
		c.drain(4)
		c.writeLarge(append(append([]byte{gomysql.COM_STMT_SEND_LONG_DATA}, id...), 0, 0), size, "")
		execute := append([]byte{gomysql.COM_STMT_EXECUTE}, id...)
		c.write(0, append(execute, 0, 1, 0, 0, 0, 0, 1, gomysql.MYSQL_TYPE_BLOB, 0))
		c.drain(3)
		if row := c.read(); !bytes.Contains(row, []byte{byte(size), byte(size >> 8), byte(size >> 16),
			byte(size >> 24)}) {
			t.Errorf("the server counted %q bytes", row)
		}
	})
	check("a file", func(c *rawClient) {
		c.write(0, append([]byte{gomysql.COM_QUERY}, "LOAD DATA LOCAL INFILE 'x' INTO TABLE sink"...))
		if ask := c.read(); ask[4] != 0xfb {
			t.Fatalf("the server asks %q", ask)
		}
		line := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
		seq := byte(2)
		for range size >> 20 {
			c.write(seq, line)
			seq++
		}
		c.write(seq, nil)
		if ok := c.read(); ok[4] != 0 || !strings.Contains(string(ok), fmt.Sprintf("Records: %d", size>>20)) {
			t.Errorf("the server answers %q", ok)
		}
	})
}

// drain reads packets and forgets them.
func (c *rawClient) drain(n int) {
	c.t.Helper()
	for range n {
		c.read()
	}
}

// skipPayload reads the packets of one payload and returns its length.
func (c *rawClient) skipPayload() int {
	c.t.Helper()
	total := 0
	for {
		c.conn.SetReadDeadline(time.Now().Add(testdb.Patience))
		var header [4]byte
		if _, err := io.ReadFull(c.in, header[:]); err != nil {
			c.t.Fatal(err)
		}
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		if _, err := io.CopyN(io.Discard, c.in, int64(n)); err != nil {
			c.t.Fatal(err)
		}
		if total += n; n < gomysql.MaxPayloadLen {
			return total
		}
	}
}

// writeLarge sends a command that has size times the letter x between its beginning and its end, without
// holding it in memory.
func (c *rawClient) writeLarge(head []byte, size int, tail string) {
	c.t.Helper()
	body := io.MultiReader(bytes.NewReader(head), io.LimitReader(letters{}, int64(size)), strings.NewReader(tail))
	left := len(head) + size + len(tail)
	for seq := byte(0); ; seq++ {
		n := min(left, gomysql.MaxPayloadLen)
		if _, err := c.conn.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}); err != nil {
			c.t.Fatal(err)
		}
		if _, err := io.CopyN(struct{ io.Writer }{c.conn}, body, int64(n)); err != nil {
			c.t.Fatal(err)
		}
		if left -= n; n < gomysql.MaxPayloadLen {
			return
		}
	}
}

// letters is an endless text of one letter.
type letters struct{}

func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
