package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// TestDrainIsBoundedBeforeAServerThatHangs stops isotaps before servers that were frozen while clients had transactions
// open, waited for replies, were connecting, and were idle with something left to be read.
func TestDrainIsBoundedBeforeAServerThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const drain, slack = 2 * time.Second, 5 * time.Second / 2
	testdb.Only(t, "its own servers are the distribution's, where it ran", "mariadb", "postgresql")
	maria, target := ownServer(t, nil, "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)", "INSERT INTO d.t VALUES (1, 1)")
	pg, err := testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pg.Stop() })
	conn, err := catalogmysql.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalogmysql.Instrument(t.Context(), conn, catalog.Options{Schemas: []string{"d"}}); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	elephant, err := dsn.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		target  dsn.Target
		signal  func(syscall.Signal)
		clients func(t *testing.T, srv *proxyserver.Server)
	}{
		"MariaDB": {target, maria.Signal, func(t *testing.T, srv *proxyserver.Server) {
			for _, statements := range [][]string{{"BEGIN", "UPDATE t SET n = n + 1 WHERE id = 1"},
				{"SELECT SLEEP(60)"}, {"UPDATE t SET n = 1"}} {
				c := dialRaw(t, srv.Addr().String(), "d", 0)
				for i, s := range statements {
					c.write(0, append([]byte{gomysql.COM_QUERY}, s...))
					if i < len(statements)-1 {
						c.read()
					}
				}
			}
		}},
		"PostgreSQL": {elephant, pg.Signal, func(t *testing.T, srv *proxyserver.Server) {
			for _, statement := range []string{"BEGIN", "SELECT 1"} {
				c, err := postgresConn(t.Context(), srv, "disable")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Conn().Close() })
				if _, err := c.Exec(t.Context(), statement).ReadAll(); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		for _, predicates := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, predicates %v", name, predicates), func(t *testing.T) {
				core, logs := observer.New(zap.InfoLevel)
				srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: tt.target,
					Listen: "127.0.0.1:0", Recording: filepath.Join(t.TempDir(), "rec"),
					Args: true, Predicates: predicates, Definitions: true, Drain: drain, Logger: zap.New(core)})
				if err != nil {
					t.Fatal(err)
				}
				tt.clients(t, srv)
				time.Sleep(300 * time.Millisecond)
				tt.signal(syscall.SIGSTOP)
				defer tt.signal(syscall.SIGCONT)
				c, err := net.Dial("tcp", srv.Addr().String()) // for which the server is dialed now
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.Write(append([]byte{0, 0, 0, 17, 0, 3, 0, 0}, "user\x00me\x00\x00"...))
				time.Sleep(100 * time.Millisecond)
				started := time.Now()
				if err := srv.Stop(); err != nil {
					t.Log(err)
				}
				if took := time.Since(started); took > drain+slack {
					t.Errorf("a drain of %v took %v", drain, took)
				}
				for _, message := range []string{"drain begins: no more clients are taken", "draining", "drain ended"} {
					if logs.FilterMessage(message).Len() == 0 {
						t.Errorf("%q is not logged", message)
					}
				}
				if end := logs.FilterMessage("drain ended").All(); len(end) == 1 &&
					end[0].ContextMap()["clients_cut_off"] == int64(0) {
					t.Error("nobody was cut off")
				}
			})
		}
	}
}

// TestNewClientMayStayForADrain has a client connect just before a drain and ask something a while later.
func TestNewClientMayStayForADrain(t *testing.T) {
	o := postgresOptions(t)
	o.Drain = testdb.Patience
	srv := startProxy(t, o)
	c, err := postgresConn(t.Context(), srv, "disable")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Stop() }()
	time.Sleep(100 * time.Millisecond)
	if _, err := c.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
		t.Errorf("its first statement: %v", err)
	}
	if b, err := io.ReadAll(c.Conn()); err != nil || len(b) == 0 {
		t.Errorf("it is not told when it has to go: %q, %v", b, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
