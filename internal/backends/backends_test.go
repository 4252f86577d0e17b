package backends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// dsnOf is the connection string of the pool.
func dsnOf(t *testing.T, p *Pool) string {
	t.Helper()
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("host=%s port=%s user=postgres database=postgres sslmode=prefer ", host, port)
}

// connect logs in with further parameters of a connection string.
func connect(t *testing.T, p *Pool, parameters string) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), dsnOf(t, p)+parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// ask returns the only value of a statement's last result.
func ask(t *testing.T, c *pgconn.PgConn, sql string) string {
	t.Helper()
	all, err := c.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if last := all[len(all)-1]; len(last.Rows) == 1 {
		return string(last.Rows[0][0])
	}
	return ""
}

// leftovers counts what clients leave in a session.
const leftovers = `SELECT (SELECT count(*) FROM pg_class WHERE relpersistence = 't')
	+ (SELECT count(*) FROM pg_prepared_statements) + (SELECT count(*) FROM pg_listening_channels())
	+ (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')`

func TestNextClientFindsTheSessionAsNew(t *testing.T) {
	for name, leave := range map[string]func(*pgconn.PgConn){
		"with a word":    func(c *pgconn.PgConn) { c.Close(context.Background()) },
		"without a word": func(c *pgconn.PgConn) { c.Conn().Close() },
	} {
		for _, last := range []string{"SELECT 1", "BEGIN; SELECT pg_advisory_xact_lock(2)", "BEGIN"} {
			t.Run(name+" after "+last, func(t *testing.T) {
				p := Start(t, testdb.PostgreSQL(t).Addr())
				first := connect(t, p, "search_path=one,two")
				if path := ask(t, first, "SHOW search_path"); path != "one, two" {
					t.Errorf("the search path is %q", path)
				}
				ask(t, first, `CREATE TEMP TABLE temporary (a int); PREPARE prepared AS SELECT 1; LISTEN channel;
					SELECT pg_advisory_lock(1); SET work_mem = '1MB'`)
				ask(t, first, last)
				leave(first)
				second := awaitSession(t, p, first.PID(), "")
				if n := ask(t, second, leftovers); n != "0" {
					t.Errorf("%s things of the first client are left", n)
				}
				if s := ask(t, second, "SHOW search_path"); s != `"$user", public` || second.TxStatus() != 'I' {
					t.Errorf("the search path is %q, the status %c", s, second.TxStatus())
				}
				if s := ask(t, second, "SELECT source FROM pg_settings WHERE name = 'work_mem'"); s != "default" {
					t.Errorf("work_mem is the %s's", s)
				}
			})
		}
	}
}

// awaitSession connects until it gets the session.
func awaitSession(t *testing.T, p *Pool, pid uint32, parameters string) *pgconn.PgConn {
	t.Helper()
	for range 1000 {
		c := connect(t, p, parameters)
		if c.PID() == pid {
			return c
		}
	}
	t.Fatalf("session %d does not come back", pid)
	return nil
}

func TestSessionLeftWithinSomethingEnds(t *testing.T) {
	for name, said := range map[string]string{
		"a statement":             string(message('Q', "SELECT pg_sleep(0.2)\x00")),
		"the extended protocol":   string(message('P', "\x00SELECT 1\x00\x00\x00")),
		"a copy":                  string(message('Q', "COPY (SELECT 1) TO STDOUT\x00")),
		"a copy that has no rows": string(message('Q', "CREATE TEMP TABLE t (a int); COPY t FROM STDIN\x00")),
	} {
		t.Run(name, func(t *testing.T) {
			p := Start(t, testdb.PostgreSQL(t).Addr())
			c := connect(t, p, "")
			if _, err := c.Conn().Write([]byte(said)); err != nil {
				t.Fatal(err)
			}
			c.Conn().Close()
			there := fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d", c.PID())
			other := connect(t, p, "application_name=other")
			for end := time.Now().Add(testdb.Patience); ask(t, other, there) != "0"; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the session goes on")
				}
			}
		})
	}
}

func TestRefusalsAndCancelsArePassedOn(t *testing.T) {
	p := Start(t, testdb.PostgreSQL(t).Addr())
	c := connect(t, p, "")
	var refused *pgconn.PgError
	_, err := pgconn.Connect(t.Context(), strings.Replace(dsnOf(t, p), "database=postgres", "database=none", 1))
	if !errors.As(err, &refused) || refused.Code != "3D000" {
		t.Errorf("a database that is not there: %v", err)
	}
	cancelled := make(chan error)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_sleep(60)").ReadAll()
		cancelled <- err
	}()
	for {
		if err := c.CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-cancelled:
			if !errors.As(err, &refused) || refused.Code != "57014" {
				t.Errorf("a statement that is cancelled: %v", err)
			}
			return
		case <-time.After(10 * time.Millisecond): // it had not begun
		}
	}
}
