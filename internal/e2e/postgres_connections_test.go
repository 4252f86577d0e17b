package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// postgresOptions are those of isotap before the test server of PostgreSQL that offers clients TLS.
func postgresOptions(t *testing.T) proxyserver.Options {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(testdb.NewPostgreSQLDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	offered, err := proxyserver.ParseClientTLS("optional", "auto", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return proxyserver.Options{Upstream: target, ClientTLS: offered, Listen: "127.0.0.1:0",
		Recording: filepath.Join(t.TempDir(), "rec")}
}

// postgresConn connects to isotap.
func postgresConn(ctx context.Context, srv *proxyserver.Server, sslmode string) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=%s", srv.Upstream().User, srv.Addr(),
		srv.Upstream().Database, sslmode))
}

// TestThousandsOfPostgreSQLConnectionsLeaveNothingBehind opens and closes them several at once: with TLS and
// without, ended by the client as it should and as it should not.
func TestThousandsOfPostgreSQLConnectionsLeaveNothingBehind(t *testing.T) {
	total := 2_000
	if testing.Short() {
		total = 500
	}
	o := postgresOptions(t)
	// What isotap leaves behind is looked at, not the server, of which each connection were a process.
	sessions := backends.Start(t, o.Upstream.Address)
	o.Upstream.Address = sessions.Addr
	srv := startProxy(t, o)
	connect := func(n int) error {
		mode, statement := "disable", "SELECT 1"
		if n%4 == 0 {
			mode = "require"
		}
		if n%3 == 0 {
			statement = "BEGIN" // and hang up
		}
		c, err := postgresConn(t.Context(), srv, mode)
		if err != nil {
			return err
		}
		_, err = c.Exec(t.Context(), statement).ReadAll()
		if n%2 == 0 {
			return errors.Join(err, c.Conn().Close())
		}
		return errors.Join(err, c.Close(t.Context()))
	}
	leavesNothingBehind(t, total, connect, sessions.EndIdle)
}

// TestDrainTellsPostgreSQLClients stops an isotap that has an idle client and one in a transaction.
func TestDrainTellsPostgreSQLClients(t *testing.T) {
	o := postgresOptions(t)
	o.Drain = time.Minute
	srv, err := proxyserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*pgconn.PgConn
	for i, statement := range []string{"SELECT 1", "BEGIN"} {
		if conns[i], err = postgresConn(t.Context(), srv, "disable"); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close(context.Background())
		if _, err := conns[i].Exec(t.Context(), statement).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Stop() }()
	idle, busy := conns[0], conns[1]
	told := func(c *pgconn.PgConn) {
		t.Helper()
		var e *pgconn.PgError
		if m, err := c.ReceiveMessage(t.Context()); !errors.As(err, &e) || e.Code != "57P01" {
			t.Errorf("told %v, %v", m, err)
		}
	}
	told(idle)
	if _, err := busy.Exec(t.Context(), "CREATE TABLE t (a int)").ReadAll(); err != nil {
		t.Errorf("the transaction does not go on: %v", err)
	}
	if r := busy.ExecParams(t.Context(), "COMMIT", nil, nil, nil, nil).Read(); r.Err != nil ||
		r.CommandTag.String() != "COMMIT" {
		t.Errorf("its end: %s, %v", r.CommandTag, r.Err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestPostgreSQLClientThatDoesNotReadIsBounded has a client stop within a large result, and within a
// pipeline of results.
func TestPostgreSQLClientThatDoesNotReadIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("moves half a gigabyte")
	}
	srv := startProxy(t, postgresOptions(t))
	const rows = 200_000
	query := fmt.Sprintf("SELECT repeat('x', 1000) FROM generate_series(1, %d)", rows)
	for _, mode := range []string{"disable", "require"} {
		c, err := postgresConn(t.Context(), srv, mode)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		peak := heapPeak(func() {
			results := c.Exec(t.Context(), query)
			time.Sleep(time.Second)
			n := 0
			for results.NextResult() {
				for r := results.ResultReader(); r.NextRow(); {
					n++
				}
			}
			if err := results.Close(); err != nil || n != rows {
				t.Errorf("%d rows, %v", n, err)
			}
		})
		if peak > 64<<20 {
			t.Errorf("sslmode=%s: the heap grew by %d MiB", mode, peak>>20)
		}
	}
}

// TestLongPipelineComesThrough sends statements ahead with far more bytes and far larger results than any
// buffer holds, and copies a large table out and in.
func TestLongPipelineComesThrough(t *testing.T) {
	srv := startProxy(t, postgresOptions(t))
	statements, size := 100, 500_000
	if testing.Short() {
		statements = 40
	}
	for _, mode := range []string{"disable", "require"} {
		c, err := postgresConn(t.Context(), srv, mode)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		p := c.StartPipeline(t.Context())
		long := make([]byte, size)
		for i := range long {
			long[i] = 'x'
		}
		for range statements {
			p.SendQueryParams("SELECT $1::text", [][]byte{long}, nil, nil, nil)
		}
		if err := p.Sync(); err != nil { // pgx reads meanwhile, when it cannot write
			t.Fatal(err)
		}
		rows := 0
		for {
			results, err := p.GetResults()
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := results.(*pgconn.ResultReader); ok {
				for r.NextRow() {
					rows++
					if len(r.Values()[0]) != size {
						t.Fatalf("a value has %d bytes", len(r.Values()[0]))
					}
				}
			}
			if rows == statements {
				break
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Exec(t.Context(), "CREATE TEMP TABLE sink (a text)").ReadAll(); err != nil {
			t.Fatal(err)
		}
		// A row that is no row ends the COPY early: the client hears of it while it sends.
		endless := &io.LimitedReader{R: broken{}, N: 1 << 30}
		if _, err := c.CopyFrom(t.Context(), endless, "COPY sink FROM STDIN"); err == nil || endless.N == 0 {
			t.Errorf("a COPY of nonsense ends with %v when %d bytes are left to send", err, endless.N)
		}
	}
}

// broken is endless rows with a column too many.
type broken struct{}

func (broken) Read(b []byte) (int, error) {
	const row = "a\tb\n"
	n := 0
	for n+len(row) <= len(b) {
		n += copy(b[n:], row)
	}
	return n, nil
}
