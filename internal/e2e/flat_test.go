package e2e

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// resources is what a process has in use.
type resources struct {
	goroutines, files int
	heap              uint64
}

func inUseNow(t *testing.T) resources {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := resources{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		r.files = len(files)
	}
	return r
}

// TestThousandsOfConnectionsLeaveNothingBehind opens and closes them several at once: with TLS and
// without, ended by the client as it should and as it should not.
func TestThousandsOfConnectionsLeaveNothingBehind(t *testing.T) {
	total := 10_000
	if testing.Short() {
		total = 1_000
	}
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	offered, err := proxyserver.ParseClientTLS("optional", "auto", "", "")
	if err != nil {
		t.Fatal(err)
	}
	srv := startProxy(t, proxyserver.Options{Upstream: target, ClientTLS: offered})
	connect := func(n int) error {
		c := driverConfig(t, srv, "")
		if n%4 == 0 {
			c.TLSConfig = "skip-verify"
		}
		connector, err := mysql.NewConnector(c)
		if err != nil {
			return err
		}
		conn, err := connector.Connect(t.Context())
		if err != nil {
			return err
		}
		statement := "DO 1"
		if n%3 == 0 {
			statement = "BEGIN" // and hang up
		}
		_, err = conn.(interface {
			Exec(query string, args []driver.Value) (driver.Result, error)
		}).Exec(statement, nil)
		conn.Close()
		return err
	}
	leavesNothingBehind(t, total, connect, func() {})
}

// leavesNothingBehind makes so many connections, several at once, and compares what is in use before and after. connect
// opens the n-th and closes it; rest closes what is not isotap's.
func leavesNothingBehind(t *testing.T, total int, connect func(n int) error, rest func()) {
	t.Helper()
	round := func(from, to int) {
		work := make(chan int)
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for n := range work {
					if err := connect(n); err != nil {
						t.Errorf("connection %d: %v", n, err)
					}
				}
			})
		}
		for n := from; n < to && !t.Failed(); n++ {
			work <- n
		}
		close(work)
		clients.Wait()
	}
	round(0, 200)
	rest()
	before := settled(t, resources{})
	round(200, 200+total)
	rest()
	after := settled(t, before)
	t.Logf("%d connections: %+v before, %+v after", total, before, after)
	if after.goroutines > before.goroutines+5 || after.files > before.files+5 {
		t.Errorf("%+v before, %+v after %d connections", before, after, total)
	}
	if grown := int64(after.heap) - int64(before.heap); grown > 8<<20 {
		t.Errorf("the heap grew by %d KiB over %d connections", grown>>10, total)
	}
}

// settled returns what is in use once it is no more than before, or stays as it is.
func settled(t *testing.T, before resources) resources {
	t.Helper()
	now := inUseNow(t)
	for range 50 {
		time.Sleep(100 * time.Millisecond)
		last := now
		now = inUseNow(t)
		if now.goroutines <= before.goroutines || before == (resources{}) && now.goroutines == last.goroutines {
			return now
		}
	}
	return now
}

func TestKillReachesTheServersOwnConnection(t *testing.T) {
	b := newBench(t, nil)
	victim, killer := b.conn(b.through), b.conn(b.open(""))
	var id, direct int
	if err := victim.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var n int
		ended <- victim.QueryRowContext(context.Background(), "SELECT SLEEP(30)").Scan(&n)
	}()
	for range 100 {
		if err := b.direct.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ? "+
			"AND INFO LIKE 'SELECT SLEEP%'", id).Scan(&direct); err != nil || direct == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if direct != 1 {
		t.Fatalf("the server has no connection %d that sleeps", id)
	}
	b.exec(killer, fmt.Sprintf("KILL QUERY %d", id))
	select {
	case err := <-ended:
		if err != nil && !strings.Contains(err.Error(), "1317") {
			t.Errorf("the statement ended with %v", err)
		}
	case <-time.After(testdb.Patience):
		t.Fatal("the statement goes on")
	}
	if err := victim.PingContext(t.Context()); err != nil {
		t.Errorf("the connection itself ended: %v", err)
	}
}

// TestUncommonCommandsAreAnsweredAsByTheServer sends commands that few clients send; each one's reply has
// a form of its own.
func TestUncommonCommandsAreAnsweredAsByTheServer(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE f (x INT)")
	server := testdb.MariaDB(t)
	through, direct := dialRaw(t, b.srv.Addr().String(), b.database, 0), dialRaw(t, server.Addr(), b.database, 0)
	for _, tt := range []struct {
		name, command string
		beginning     int // how much of each packet is compared; 0: all of it
	}{
		{"statistics", "\x09", 8},
		{"debug", "\x0d", 0},
		{"ping", "\x0e", 0},
		{"process list", "\x0a", 5},
		{"refresh of nothing", "\x07\x00", 0},
		{"kill of nobody", "\x0c\xff\xff\xff\x7f", 0},
		{"multi statements on", "\x1b\x00\x00", 0},
		{"option that is none", "\x1b\x09\x00", 0},
		{"field list of nothing", "\x04nothing\x00", 0},
		{"create database", "\x05", 0},
		{"no database", "\x02no_such", 0},
	} {
		want, got := direct.ask([]byte(tt.command), ""), through.ask([]byte(tt.command), "")
		if len(got) != len(want) && tt.name != "process list" {
			t.Errorf("%s: %d packets, directly %d: %q, directly %q", tt.name, len(got), len(want), got, want)
			continue
		}
		for i := range min(len(got), len(want), 3) {
			g, w := got[i], want[i]
			if tt.beginning > 0 {
				g, w = g[4:min(len(g), 4+tt.beginning)], w[4:min(len(w), 4+tt.beginning)]
			}
			if string(g) != string(w) {
				t.Errorf("%s: packet %d\n%q, directly\n%q", tt.name, i+1, g, w)
			}
		}
	}
	// A command that isotap has never heard of is the server's to answer, and the session goes on.
	for _, c := range []*rawClient{direct, through} {
		c.write(0, []byte{0x7f, 1, 2})
		if p := c.read(); p[4] != 0xff || string(p[5:7]) != "\x17\x04" {
			t.Errorf("an unknown command is answered %q", p)
		}
		c.write(0, []byte("\x03SELECT 42"))
		c.drain(3)
		if row := c.read(); string(row[4:]) != "\x0242" {
			t.Errorf("after it: %q", row)
		}
	}
}

// TestLimitOnConnectionsIsTheServersOwnError compares the refusal with that of a server that is full.
func TestLimitOnConnectionsIsTheServersOwnError(t *testing.T) {
	b := newBench(t, func(o *proxyserver.Options) { o.MaxConns = 1 })
	c := b.conn(b.through)
	b.exec(c, "DO 1")
	db, err := sql.Open("mysql", b.srv.DSN(b.database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "1040: Too many connections") {
		t.Errorf("one too many: %v", err)
	}
	c.Close()
	b.through.Close()
	for range 100 {
		if err = db.PingContext(t.Context()); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("after the first has gone: %v", err)
}
