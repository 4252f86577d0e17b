package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/workload"
)

// provokable make databases of either family, with a counter and accounts.
var provokable = map[string]func(t *testing.T) dsn.Target{
	"MySQL's family": func(t *testing.T) dsn.Target {
		t.Helper()
		database := testdb.NewDatabase(t)
		testdb.Exec(t, testdb.Open(t, database), counterTable, counterRow,
			"CREATE TABLE account (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(50))")
		return instrument(t, database)
	},
	"PostgreSQL": func(t *testing.T) dsn.Target {
		t.Helper()
		database := testdb.NewPostgreSQLDatabase(t)
		testdb.Exec(t, testdb.OpenPostgreSQL(t, database), counterTable, counterRow,
			"CREATE TABLE account (id SERIAL PRIMARY KEY, email VARCHAR(50))")
		target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(database))
		if err != nil {
			t.Fatal(err)
		}
		return target
	},
}

const (
	counterTable = "CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)"
	counterRow   = "INSERT INTO counter VALUES (1, 0)"
)

// onBoth runs a test on either family.
func onBoth(t *testing.T, test func(t *testing.T, target dsn.Target)) {
	t.Helper()
	for family, database := range provokable {
		t.Run(family, func(t *testing.T) { test(t, database(t)) })
	}
}

// provokes starts isotap that holds statements back; nil: it does not.
func provokes(t *testing.T, target dsn.Target, how *provoke.Options,
	change ...func(*proxyserver.Options)) (srv *proxyserver.Server, recording string) {
	t.Helper()
	recording = filepath.Join(t.TempDir(), "rec")
	o := proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording, Args: true, Auto: true,
		Drain: time.Second, Provoke: how, Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}
	for _, c := range change {
		c(&o)
	}
	srv, err := proxyserver.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	return srv, recording
}

// clientsOf connects clients to isotap. Inline ones write arguments into their statements, others prepare these.
func clientsOf(t *testing.T, srv *proxyserver.Server, database string, inline bool, n int) (clients []*workload.Client) {
	t.Helper()
	data := srv.DSN(database)
	dialect := workload.DialectOf(data)
	db, err := dialect.Open(data, inline)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for i := range n {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.ExecContext(t.Context(), dialect.SetLevel(history.ReadCommitted)); err != nil { // MariaDB 11.8 refuses more
			t.Fatal(err)
		}
		clients = append(clients, &workload.Client{Number: i + 1, Conn: c, Dialect: dialect})
	}
	return clients
}

// A request is what a client does at once, with no time in between.
type request func(ctx context.Context, c *workload.Client, number int) error

// count reads a number and writes it back one higher, in a transaction.
func count(ctx context.Context, c *workload.Client, _ int) error {
	return c.Transaction(ctx, func(tx workload.Handle) error {
		n, err := tx.Int(ctx, "SELECT n FROM counter WHERE id = ?", 1)
		if err != nil {
			return err
		}
		return tx.Exec(ctx, "UPDATE counter SET n = ? WHERE id = ?", n+1, 1)
	})
}

// register looks for an account and adds it where there is none, in autocommit. Two requests each want the same one.
func register(ctx context.Context, c *workload.Client, number int) error {
	email := fmt.Sprintf("%d@example.org", number/2)
	_, err := c.Alone().Int(ctx, "SELECT id FROM account WHERE email = ? LIMIT 1", email)
	if errors.Is(err, sql.ErrNoRows) {
		return c.Alone().Exec(ctx, "INSERT INTO account (email) VALUES (?)", email)
	}
	return err
}

// seldom has two clients make requests in turns: one begins when the one before it has ended, or after so long. They
// meet by chance only where a request takes that long.
func seldom(t *testing.T, clients []*workload.Client, r request, pause time.Duration) {
	t.Helper()
	const requests = 4
	ended := make(chan error, requests)
	working := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	close(working[0])
	close(working[1])
	for number := range requests {
		who := number % 2
		<-working[who]
		if number == 0 { // the other is there, too
			if _, err := clients[1].Conn.ExecContext(t.Context(), "DELETE FROM account"); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan struct{})
		working[who] = done
		go func() {
			defer close(done)
			ended <- r(t.Context(), clients[who], number)
		}()
		select {
		case <-done:
		case <-time.After(pause):
		}
	}
	for range requests {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestSeldomRacesShowWhenProvoked(t *testing.T) {
	onBoth(t, func(t *testing.T, target dsn.Target) {
		for _, r := range []struct {
			does   request
			finds  analyzer.Anomaly
			inline bool
		}{{count, analyzer.LostUpdate, false}, {count, analyzer.LostUpdate, true}, {register, analyzer.DoubleInsert, false},
			{register, analyzer.DoubleInsert, true}} {
			for _, provoked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, inline %t, provoked %t", r.finds, r.inline, provoked), func(t *testing.T) {
					var how *provoke.Options
					if provoked {
						how = &provoke.Options{Max: 4 * time.Second, Seed: 1}
					}
					srv, recording := provokes(t, target, how)
					seldom(t, clientsOf(t, srv, target.Database, r.inline, 2), r.does, 500*time.Millisecond)
					if err := srv.Stop(); err != nil {
						t.Error(err)
					}
					if got := srv.Provoked(); (got.Met > 0) != provoked || (got.Held > 0) != provoked {
						t.Errorf("held back: %+v", got)
					}
					holdFound(t, recording, r.finds, provoked)
				})
			}
		}
	})
}

// holdFound sees whether an anomaly was recorded, and no violation.
func holdFound(t *testing.T, recording string, anomaly analyzer.Anomaly, there bool) {
	t.Helper()
	result, err := analysis.Analyze(t.Context(), []string{recording}, analyzer.Options{Scope: analyzer.GuessedScope})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range result.Findings {
		found = found || f.Anomaly == anomaly
		if f.Class == analyzer.Violation || !there {
			t.Errorf("%s %s: %v%s", f.Class, f.Anomaly, f.Explanation, transactionsOf(f))
		}
	}
	if found != there {
		t.Errorf("%s: found %t, want %t", anomaly, found, there)
	}
}

// held returns a client of isotap whose statement is held back, with what ends its patience. Its UPDATE is to be held
// for seconds.
func held(t *testing.T, srv *proxyserver.Server, database string) (gaveUp context.CancelFunc, done chan error) {
	t.Helper()
	clients := clientsOf(t, srv, database, false, 2)
	ctx, gaveUp := context.WithCancel(t.Context())
	done = make(chan error, 1)
	if _, err := clients[1].Conn.ExecContext(ctx, "DELETE FROM account"); err != nil {
		t.Fatal(err)
	}
	go func() { done <- count(ctx, clients[0], 0) }()
	select {
	case err := <-done:
		t.Fatalf("it was not held back: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	return gaveUp, done
}

func TestWhatIsHeldGoesOnWhenItsClientLeaves(t *testing.T) {
	onBoth(t, func(t *testing.T, target dsn.Target) {
		srv, _ := provokes(t, target, &provoke.Options{Max: 8 * time.Second, Seed: 1})
		gaveUp, done := held(t, srv, target.Database)
		gaveUp()
		<-done
		for began := time.Now(); srv.Provoked().Held == 0; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 2*time.Second {
				t.Fatal("it is held back although its client has gone")
			}
		}
	})
}

func TestWhatIsHeldGoesOnInADrain(t *testing.T) {
	onBoth(t, func(t *testing.T, target dsn.Target) {
		srv, _ := provokes(t, target, &provoke.Options{Max: 8 * time.Second, Seed: 1})
		_, done := held(t, srv, target.Database)
		began := time.Now()
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the drain took %v", took)
		}
		if err := <-done; err != nil {
			t.Errorf("a transaction that was open had time to end: %v", err)
		}
	})
}
