package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/admin"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// halfOpen connects n clients to an address that say first and nothing more.
func halfOpen(t *testing.T, address string, n int, first []byte) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write(first); err != nil {
			t.Fatal(err)
		}
		conns[i] = c
	}
	return conns
}

// endings reads each connection to its end and counts how they ended: by what they were told.
func endings(conns []net.Conn, told map[string][]byte) map[string]int {
	var mu sync.Mutex
	counts := map[string]int{}
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() {
			c.SetReadDeadline(time.Now().Add(testdb.Patience))
			b, err := io.ReadAll(c)
			end := "hung up on"
			if err != nil && !errors.Is(err, syscall.ECONNRESET) {
				end = err.Error()
			}
			for name, text := range told {
				if bytes.Contains(b, text) {
					end = name
				}
			}
			mu.Lock()
			defer mu.Unlock()
			counts[end]++
		})
	}
	all.Wait()
	return counts
}

// metric returns the value of a metric with its labels as they stand on the page; empty: it is not there.
func metric(srv *proxyserver.Server, name string) string {
	var page admin.Page
	srv.Metrics(&page)
	for line := range strings.Lines(page.String()) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// fromAnotherAddress is a dialer whose connections come from 127.0.0.2.
var fromAnotherAddress = net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

func init() {
	mysql.RegisterDialContext("elsewhere", func(ctx context.Context, address string) (net.Conn, error) {
		return fromAnotherAddress.DialContext(ctx, "tcp", address)
	})
}

// TestHalfOpenLoginsHoldFewServerConnections connects 2,000 clients that never log in, with others that do.
func TestHalfOpenLoginsHoldFewServerConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const clients, each = 2000, 16
	server, target := ownServer(t, nil)
	srv := startProxy(t, proxyserver.Options{Upstream: target, LoginTimeout: 6 * time.Second, MaxLogins: 40,
		MaxLoginsPerAddress: each})
	db, err := server.DB("d")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	connected := func() (n int) {
		var name string
		if err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := connected()
	conns := halfOpen(t, srv.Addr().String(), clients, nil)
	for deadline := time.Now().Add(3 * time.Second); metric(srv, "isotap_logins_open") != fmt.Sprint(clients) &&
		time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // the last ones are accepted
	}
	if n := connected() - before; n > each {
		t.Errorf("%d clients that do not log in hold %d of the server's connections, want at most %d", clients, n, each)
	}
	if open, waiting := metric(srv, "isotap_logins_open"), metric(srv,
		"isotap_logins_waiting"); open != fmt.Sprint(clients) || waiting != fmt.Sprint(clients-each) {
		t.Errorf("metrics: %s open, %s waiting", open, waiting)
	}
	through := func(network string) error {
		db, err := sql.Open("mysql", fmt.Sprintf("root@%s(%s)/d", network, srv.Addr()))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.PingContext(t.Context())
	}
	started := time.Now()
	if err := through("elsewhere"); err != nil || time.Since(started) > 2*time.Second {
		t.Errorf("a client of another address: %v after %v", err, time.Since(started))
	}
	counts := endings(conns, map[string][]byte{
		"too many": fmt.Appendf([]byte{0xff, byte(gomysql.ER_CON_COUNT_ERROR & 0xff),
			byte(gomysql.ER_CON_COUNT_ERROR >> 8)}, "Too many connections"),
		"too late":  []byte("Got timeout reading communication packets"),
		"ungreeted": []byte("the server did not greet isotap in time")})
	counts["too late"] += counts["ungreeted"] // those whose turn came in the last moment
	// Which of the two most are told hangs on how long the machine takes to accept them all.
	if counts["too many"]+counts["too late"] != clients || counts["too late"] < each || counts["too many"] < each {
		t.Errorf("the clients ended like this: %v", counts)
	}
	if err := through("tcp"); err != nil {
		t.Errorf("a client of the same address, afterwards: %v", err)
	}
	if refused := metric(srv, `isotap_connections_refused_total{reason="max_logins"}`); refused != fmt.Sprint(counts["too many"]) {
		t.Errorf("%s refusals are counted, want %d", refused, counts["too many"])
	}
	if overdue := metric(srv, "isotap_logins_overdue_total"); overdue != fmt.Sprint(counts["too late"]) {
		t.Errorf("%s logins are counted as overdue, want %d", overdue, counts["too late"])
	}
}

// TestSilentPostgreSQLClientsHoldNoServerConnection has 2,000 clients that say nothing, or not enough.
func TestSilentPostgreSQLClientsHoldNoServerConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	db := testdb.OpenPostgreSQL(t, "postgres")
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off %v", off), func(t *testing.T) {
			o := postgresOptions(t)
			o.LoginTimeout, o.MaxLogins, o.MaxLoginsPerAddress = 4*time.Second, 40, 4
			if o.Off = off; off {
				o.ClientTLS = proxyserver.ClientTLS{}
			}
			srv := startProxy(t, o)
			var conns []net.Conn
			for _, first := range [][]byte{nil, {0, 0}, {0, 0, 0, 90, 0, 3, 0, 0, 'u', 's'}} {
				conns = append(conns, halfOpen(t, srv.Addr().String(), 500, first)...)
			}
			if !off { // whose bytes isotap passes on to the server from here on
				conns = append(conns, halfOpen(t, srv.Addr().String(), 500,
					[]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f})...)
			}
			time.Sleep(200 * time.Millisecond)
			var n int
			if err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "+
				"AND datname = $1", srv.Upstream().Database).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if isotaps := 2; n > isotaps {
				t.Errorf("silent clients hold %d server connections", n-isotaps)
			}
			started := time.Now()
			c, err := postgresConn(t.Context(), srv, "disable")
			if err != nil || time.Since(started) > 2*time.Second {
				t.Fatalf("a client of the same address: %v after %v", err, time.Since(started))
			}
			c.Close(t.Context())
			if counts := endings(conns, nil); counts["hung up on"] != len(conns) {
				t.Errorf("the clients ended like this: %v", counts)
			}
		})
	}
}

// muteServer accepts connections and says nothing. It returns its address, and how many there are.
func muteServer(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var open atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				io.Copy(io.Discard, c)
				c.Close()
				open.Add(-1)
			}()
		}
	}()
	return l.Addr().String(), &open
}

// TestPostgreSQLLoginsComeToTheServerInTurn has 2,000 clients ask for a login of a server that does not answer.
func TestPostgreSQLLoginsComeToTheServerInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const clients, each = 2000, 8
	address, open := muteServer(t)
	o := proxyserver.Options{Upstream: dsn.Target{Family: dbms.PostgreSQLFamily, Network: "tcp", Address: address},
		Off:          true,
		LoginTimeout: 3 * time.Second, MaxLogins: 100, MaxLoginsPerAddress: each}
	var err error
	if o.ClientTLS, err = proxyserver.ParseClientTLS("optional", "auto", "", ""); err != nil {
		t.Fatal(err)
	}
	srv := startProxy(t, o)
	conns := halfOpen(t, srv.Addr().String(), clients, append([]byte{0, 0, 0, 17, 0, 3, 0, 0}, "user\x00me\x00\x00"...))
	if n := open.Load(); n > each {
		t.Errorf("%d connections to the server, want at most %d", n, each)
	}
	counts := endings(conns, map[string][]byte{"too many": []byte("C53300\x00Msorry, too many clients already\x00"),
		"too late": []byte("C57014\x00")})
	// Which of the two most are told hangs on how long the machine takes to accept them all.
	if counts["too many"]+counts["too late"] != clients || counts["too late"] < each || counts["too many"] < each {
		t.Errorf("the clients ended like this: %v", counts)
	}
}

// TestManyLoginsAtOnceAllSucceed opens far more connections at once than may log in at once: they wait, and none is
// refused.
func TestManyLoginsAtOnceAllSucceed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const clients = 90 // the servers' own limit is 100
	o := postgresOptions(t)
	o.MaxLogins, o.MaxLoginsPerAddress = 4, 3
	srv := startProxy(t, o)
	_, target := ownServer(t, nil)
	other := startProxy(t, proxyserver.Options{Upstream: target, MaxLogins: 4, MaxLoginsPerAddress: 3})
	var all sync.WaitGroup
	var postgres [clients]*pgconn.PgConn
	var maria [clients]*sql.DB
	for i := range clients {
		all.Go(func() {
			var err error
			mode := []string{"disable", "require"}[i%2]
			if postgres[i], err = postgresConn(t.Context(), srv, mode); err != nil {
				t.Errorf("PostgreSQL: %v", err)
			}
		})
		all.Go(func() {
			var err error
			if maria[i], err = sql.Open("mysql", other.DSN("d")); err == nil {
				err = maria[i].PingContext(t.Context())
			}
			if err != nil {
				t.Errorf("MariaDB: %v", err)
			}
		})
	}
	all.Wait()
	for i := range clients {
		if postgres[i] != nil {
			postgres[i].Close(t.Context())
		}
		maria[i].Close()
	}
	if left := metric(other, "isotap_logins_open"); left != "0" {
		t.Errorf("%s logins are left", left)
	}
}
