package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// TestPostgreSQLConnectionEndsAsTheServerEndedIt has a server end its connections in each way there is. The client gets
// the bytes that it gets directly, and the same end: words come from the server alone.
func TestPostgreSQLConnectionEndsAsTheServerEndedIt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // what takes the time is waiting
	sent := func(sql string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{&pgproto3.Query{String: sql}}
	}
	const slow = "SELECT pg_sleep(5)"
	extended := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "UPDATE t SET v = v + length(pg_sleep(5)::text)"},
		&pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	terminate := func(t *testing.T, _ *cutter, id string) {
		if _, err := testdb.OpenPostgreSQL(t, "postgres").Exec("SELECT pg_terminate_backend(" + id + ")"); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(_ *testing.T, c *cutter, _ string) { c.cut(false) }
	reset := func(_ *testing.T, c *cutter, _ string) { c.cut(true) }
	open := []string{"BEGIN", "UPDATE t SET v = v + 1"}
	for _, tt := range []struct {
		name   string
		before []string
		last   []pgproto3.FrontendMessage
		end    func(t *testing.T, c *cutter, id string)
	}{
		{"vanished before the reply", nil, sent(slow), cut},
		{"vanished within the reply", nil, sent("SELECT repeat('x', 20000) UNION ALL SELECT pg_sleep(5)::text"), cut},
		{"vanished while idle", open[1:], nil, cut},
		{"vanished in a transaction", open, sent(slow), cut},
		{"vanished in the extended protocol", nil, extended, cut},
		{"reset before the reply", nil, sent(slow), reset},
		{"terminated before the reply", nil, sent(slow), terminate},
		{"terminated in the extended protocol", nil, extended, terminate},
		{"terminated while idle", nil, nil, terminate},
		{"terminated in a transaction", open, nil, terminate},
		{"terminated by itself", open, sent("SELECT pg_terminate_backend(pg_backend_pid())"),
			func(*testing.T, *cutter, string) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			database := testdb.NewPostgreSQLDatabase(t)
			db := testdb.OpenPostgreSQL(t, database)
			// Side by side: one pause does for all.
			ways := []string{"directly", "a copy", "off", "items", "durable"}
			relays, clients := make([]*cutter, len(ways)), make([]postgresClient, len(ways))
			ids := make([]string, len(ways))
			for i, way := range ways {
				// Each has a table of its own: a server holds a client's locks until it notices that it vanished.
				schema := fmt.Sprintf("way%d", i)
				testdb.Exec(t, db, "CREATE SCHEMA "+schema, "CREATE TABLE "+schema+".t (id int PRIMARY KEY, v int)",
					"INSERT INTO "+schema+".t VALUES (1, 1)")
				relays[i] = newCutter(t, testdb.PostgreSQL(t).Addr())
				clients[i], ids[i] = dialPostgres(t, endingPostgreSQLProxy(t, way, relays[i]), database)
				for _, sql := range append([]string{"SET search_path = " + schema}, tt.before...) {
					clients[i].send(sent(sql)...)
					clients[i].awaitReady()
				}
			}
			for _, c := range clients {
				c.send(tt.last...)
			}
			time.Sleep(200 * time.Millisecond)
			for i := range ways {
				tt.end(t, relays[i], ids[i])
			}
			directly := clients[0].raw.untilEnd()
			for i, c := range clients[1:] {
				if end := c.raw.untilEnd(); end != directly {
					t.Errorf("%s it got %s; directly %s", ways[i+1], end, directly)
				}
			}
		})
	}
}

// endingPostgreSQLProxy is endingProxy on PostgreSQL.
func endingPostgreSQLProxy(t *testing.T, way string, relay *cutter) string {
	t.Helper()
	if way == "directly" {
		return relay.Addr().String()
	}
	srv := startPostgreSQLProxy(t, func(o *proxyserver.Options) {
		o.Upstream.Address = relay.Addr().String()
		o.Off = way == "a copy" || way == "off"
		switch way {
		case "off":
			offered, err := proxyserver.ParseClientTLS("optional", "auto", "", "")
			if err != nil {
				t.Fatal(err)
			}
			o.ClientTLS = offered
		case "durable":
			o.Durability = recorder.Commit
		}
	})
	t.Cleanup(func() { srv.Stop() })
	return srv.Addr().String()
}

// A postgresClient speaks PostgreSQL's protocol message by message.
type postgresClient struct{ raw *rawClient }

// dialPostgres logs in, and returns the number of the backend.
func dialPostgres(t *testing.T, address, database string) (c postgresClient, id string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c = postgresClient{&rawClient{t: t, conn: conn, in: bufio.NewReader(conn)}}
	c.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "postgres", "database": database}})
	c.awaitReady()
	c.send(&pgproto3.Query{String: "SELECT pg_backend_pid()"})
	return c, c.awaitReady()
}

func (c postgresClient) send(messages ...pgproto3.FrontendMessage) {
	c.raw.t.Helper()
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			c.raw.t.Fatal(err)
		}
	}
	if _, err := c.raw.conn.Write(b); err != nil {
		c.raw.t.Fatal(err)
	}
}

// awaitReady reads up to ReadyForQuery, and returns the last row's only value.
func (c postgresClient) awaitReady() (value string) {
	c.raw.t.Helper()
	c.raw.conn.SetReadDeadline(time.Now().Add(testdb.Patience))
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(c.raw.in, head); err != nil {
			c.raw.t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(c.raw.in, body); err != nil {
			c.raw.t.Fatal(err)
		}
		switch head[0] {
		case 'D':
			value = string(body[6:])
		case 'E':
			c.raw.t.Fatalf("the server says %q", body)
		case 'Z':
			return value
		}
	}
}

// TestEndsWithinPostgreSQLLoginsAreTheServers has a server go away at each step of a login.
func TestEndsWithinPostgreSQLLoginsAreTheServers(t *testing.T) {
	for _, tt := range []struct {
		name string
		says string
	}{
		{"before its first word", ""},
		{"amid a password", "R\x00\x00\x00\x08\x00\x00\x00\x03"},
		{"before it is ready", "R\x00\x00\x00\x08\x00\x00\x00\x00"},
		{"within a message", "R\x00\x00\x00\x08\x00\x00"},
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
					c.Read(make([]byte, 4096))
					io.WriteString(c, tt.says)
					c.Close()
				}
			}()
			offered, err := proxyserver.ParseClientTLS("optional", "auto", "", "")
			if err != nil {
				t.Fatal(err)
			}
			srv := startPostgreSQLProxy(t, func(o *proxyserver.Options) {
				o.Upstream.Address, o.Off, o.ClientTLS = l.Addr().String(), true, offered
			})
			defer srv.Stop()
			conn, err := net.Dial("tcp", srv.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := postgresClient{&rawClient{t: t, conn: conn, in: bufio.NewReader(conn)}}
			c.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
				Parameters: map[string]string{"user": "postgres"}})
			want := tt.says
			if tt.name == "within a message" {
				want = "" // what is not whole is not passed on
			}
			rest := c.raw.untilEnd()
			if want := fmt.Sprintf("%q and FIN", want); rest != want {
				t.Errorf("the client got %s, not %s", rest, want)
			}
		})
	}
}
