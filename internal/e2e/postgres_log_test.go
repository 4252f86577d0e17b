package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/serverlog"
)

// newLoggedBench is newPostgresBench with the server's log, or without.
func newLoggedBench(t *testing.T, use serverlog.Use, setup ...string) *postgresBench {
	t.Helper()
	return startLoggedBench(t, func(o *proxyserver.Options) { o.ServerLog = use }, setup...)
}

// startLoggedBench starts isotap with changed options, over a database in which setup has run.
func startLoggedBench(t *testing.T, change func(*proxyserver.Options), setup ...string) *postgresBench {
	t.Helper()
	b := &postgresBench{t: t, database: testdb.NewPostgreSQLDatabase(t), recording: t.TempDir() + "/rec"}
	testdb.Exec(t, testdb.OpenPostgreSQL(t, b.database), setup...)
	// What a server that commits asynchronously has not flushed yet is read, and went past isotap.
	testdb.Exec(t, testdb.OpenPostgreSQL(t, b.database), "SET synchronous_commit = on; CREATE TABLE flushed ()")
	b.start(change)
	return b
}

// undisputed analyzes what a bench recorded, whose log must have all that statements returned.
func (b *postgresBench) undisputed() *analyzer.Result {
	b.t.Helper()
	r := b.analyze()
	if l := r.Coverage.Log; l.Disputed > 0 || len(l.Stretches) != 1 || l.Stretches[0].Reason != "" {
		b.t.Errorf("the server's log: %+v", l)
	}
	return r
}

// TestLostUpdatePastIsotapIsNamed has one client of isotap's lose an update of another client's, who is past it, in
// tables with a key and without.
func TestLostUpdatePastIsotapIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, table string
		use         serverlog.Use
		seeded      bool // past isotap, before the run
	}{
		{"without the log", "stock (id int PRIMARY KEY, n int)", serverlog.Off, true},
		{"with a key", "stock (id int PRIMARY KEY, n int)", serverlog.Require, true},
		{"without a key", "stock (id int, n int)", serverlog.Require, true},
		{"without a key, inserted through isotap", "stock (id int, n int)", serverlog.Require, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setup, rows := []string{"CREATE TABLE " + tt.table}, "INSERT INTO stock VALUES (1, 10), (2, 5)"
			if tt.seeded {
				setup = append(setup, rows)
			}
			b := newLoggedBench(t, tt.use, setup...)
			x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			if !tt.seeded {
				b.exec(x, rows)
			}
			past := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			b.exec(x, "BEGIN", "SELECT n FROM stock WHERE id = 1")
			b.exec(past, "BEGIN", "SAVEPOINT s", "UPDATE stock SET n = 9 WHERE id = 1", "RELEASE s", "COMMIT")
			b.exec(x, "UPDATE stock SET n = 8 WHERE id = 1", "COMMIT", "SELECT n FROM stock",
				"UPDATE stock SET n = 6 WHERE id = 2")
			if tt.use == serverlog.Off {
				if r := b.analyze(); len(r.Findings) != 0 {
					t.Errorf("%d findings", len(r.Findings))
				}
				return
			}
			r := b.undisputed()
			if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 {
				t.Fatalf("%d findings", len(r.Findings))
			}
			named := slices.ContainsFunc(r.Findings[0].Txns(), func(x *history.Txn) bool {
				return x.ID.Run().Past() && strings.Contains(x.Stmts[0].Shape, "past isotap")
			})
			if !named || r.Coverage.Log.Past != 1 {
				t.Errorf("the other transaction is not named: %+v", r.Coverage.Log)
			}
			if r.Coverage.Inexact > 0 {
				t.Errorf("not exact: %v", r.Coverage.Reasons)
			}
		})
	}
}

// TestReadsOfUnseenWritesAreTold has rows written in the ways that tell no version, and read.
func TestReadsOfUnseenWritesAreTold(t *testing.T) {
	const table, log = "CREATE TABLE stock (id int PRIMARY KEY, n int)", "CREATE TABLE note (id int PRIMARY KEY, n int)"
	trigger := []string{table, log, "INSERT INTO note VALUES (1, 0)",
		`CREATE FUNCTION noted() RETURNS trigger AS $$ BEGIN UPDATE note SET n = n + 1; RETURN NULL; END $$ LANGUAGE plpgsql`,
		"CREATE TRIGGER noting AFTER INSERT ON stock FOR EACH ROW EXECUTE FUNCTION noted()"}
	for _, tt := range []struct {
		name                  string
		setup                 []string
		write                 func(b *postgresBench, through *pgx.Conn)
		read                  string
		past, effects, unseen int
	}{
		{"past the proxy", []string{table}, func(b *postgresBench, _ *pgx.Conn) {
			b.exec(b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol), "INSERT INTO stock VALUES (1, 10)")
		}, "SELECT n FROM stock WHERE id = 1", 1, 0, 0},
		{"by COPY", []string{table}, func(b *postgresBench, c *pgx.Conn) {
			if _, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader("1\t10\n"), "COPY stock FROM STDIN"); err != nil {
				t.Fatal(err)
			}
		}, "SELECT n FROM stock WHERE id = 1", 0, 1, 0},
		{"by a DO block beside a write", []string{table, "INSERT INTO stock VALUES (1, 10), (2, 10)"},
			func(b *postgresBench, c *pgx.Conn) {
				b.exec(c, "BEGIN", "UPDATE stock SET n = 1 WHERE id = 2", "DO $$ BEGIN UPDATE stock SET n = 3 WHERE id = 1; END $$",
					"COMMIT")
			}, "SELECT n FROM stock WHERE id = 1", 0, 1, 0},
		{"by a trigger", trigger, func(b *postgresBench, c *pgx.Conn) { b.exec(c, "INSERT INTO stock VALUES (1, 1)") },
			"SELECT n FROM note WHERE id = 1", 0, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, tt.setup...)
			c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			tt.write(b, c)
			b.exec(c, tt.read)
			r := b.undisputed()
			l := r.Coverage.Log
			if l.Past != tt.past || l.Effects != tt.effects || r.Coverage.UnseenOrigins != tt.unseen || len(r.Findings) > 0 {
				t.Errorf("%+v, %d reads of unseen origin, %d findings", l, r.Coverage.UnseenOrigins, len(r.Findings))
			}
		})
	}
}

// TestLostUpdateByUnseenWritesIsNamed has a client lose an update to one that writes the row without a statement that
// tells: by a trigger, a cascade, a function, a procedure, DO or COPY.
func TestLostUpdateByUnseenWritesIsNamed(t *testing.T) {
	setup := []string{"CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 10)",
		"CREATE TABLE sale (id int PRIMARY KEY)",
		"CREATE TABLE kind (id int PRIMARY KEY)", "INSERT INTO kind VALUES (1)",
		"CREATE TABLE item (id int PRIMARY KEY, n int, kind int REFERENCES kind ON DELETE SET NULL)",
		"INSERT INTO item VALUES (1, 10, 1)",
		`CREATE FUNCTION sold() RETURNS trigger AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = 1; RETURN NULL; END $$
			LANGUAGE plpgsql`,
		"CREATE TRIGGER selling AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION sold()",
		`CREATE FUNCTION sell() RETURNS void AS 'UPDATE stock SET n = n - 1 WHERE id = 1' LANGUAGE sql`,
		`CREATE PROCEDURE sells() AS 'UPDATE stock SET n = n - 1 WHERE id = 1' LANGUAGE sql`}
	for _, tt := range []struct{ name, table, write string }{
		{"a trigger", "stock", "INSERT INTO sale VALUES (1)"},
		{"a cascade", "item", "DELETE FROM kind WHERE id = 1"},
		{"a function", "stock", "SELECT sell()"},
		{"a procedure", "stock", "CALL sells()"},
		{"DO", "stock", "DO $$ BEGIN UPDATE stock SET n = n - 1; UPDATE stock SET n = n + 3; END $$"},
		{"a trigger of COPY", "stock", "COPY sale FROM STDIN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, setup...)
			x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(x, "BEGIN", "SELECT n FROM "+tt.table+" WHERE id = 1")
			b.exec(y, "BEGIN")
			if strings.HasPrefix(tt.write, "COPY") {
				if _, err := y.PgConn().CopyFrom(t.Context(), strings.NewReader("1\n"), tt.write); err != nil {
					t.Fatal(err)
				}
			} else {
				b.exec(y, tt.write)
			}
			b.exec(y, "COMMIT")
			b.exec(x, "UPDATE "+tt.table+" SET n = 9 WHERE id = 1", "COMMIT")
			r := b.undisputed()
			if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 || r.Coverage.Log.Told == 0 {
				t.Fatalf("%d findings, %+v", len(r.Findings), r.Coverage.Log)
			}
			if advice := strings.Join(r.Findings[0].Advice, "\n"); strings.Contains(advice, "WHERE of `UPDATE public") ||
				r.Coverage.Kinds[history.Update].Statements() > 1 {
				t.Errorf("isotap's own statement counts: %s", advice)
			}
			if told := transactionsOf(r.Findings[0]); !strings.Contains(told, "unseen, from the log") {
				t.Errorf("the write is not named: %s", told)
			}
		})
	}
}

// TestTransactionsThatWriteUnseenTellTheirIDs has a client write past isotap while a transaction runs that shows no
// version that it leaves: which of the log's is whose is known all the same.
func TestTransactionsThatWriteUnseenTellTheirIDs(t *testing.T) {
	b := newLoggedBench(t, serverlog.Require, "CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 0)",
		"CREATE TABLE note (id int PRIMARY KEY, n int)", "INSERT INTO note SELECT i, 0 FROM generate_series(1, 9) i",
		`CREATE FUNCTION touch(int) RETURNS void AS 'UPDATE note SET n = n + 1 WHERE id = $1' LANGUAGE sql`)
	past := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
	wrote := 0
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec,
		pgx.QueryExecModeCacheStatement} {
		c := b.connect(b.through(), mode)
		for i, statements := range [][]string{
			{"DELETE FROM note WHERE id = 1", "INSERT INTO note VALUES (1, 0)"},
			{"DELETE FROM note WHERE id = 1"},
			{"SAVEPOINT s", "DELETE FROM note WHERE id = 2", "RELEASE s"},
			{"DO $$ BEGIN UPDATE note SET n = 3 WHERE id = 3; END $$"},
			{"SELECT touch(4)"},
			{"SAVEPOINT s", "DO $$ BEGIN UPDATE note SET n = 3 WHERE id = 3; END $$", "ROLLBACK TO s"},
			{"SELECT count(*) FROM pg_catalog.pg_class"},
			{"COPY note FROM PROGRAM 'true'"},
		} {
			b.exec(c, "BEGIN")
			b.exec(c, statements...)
			b.exec(past, fmt.Sprintf("UPDATE stock SET n = n + 1 WHERE id = 1 AND %d < 99", i))
			wrote++
			b.exec(c, "COMMIT")
		}
		b.exec(c, "SELECT n FROM stock WHERE id = 1")
	}
	if r := b.undisputed(); r.Coverage.Log.Past != wrote || r.Coverage.UnseenOrigins != 0 {
		t.Errorf("of %d transactions past isotap %d are known, %d reads are of unseen origin", wrote, r.Coverage.Log.Past,
			r.Coverage.UnseenOrigins)
	}
}

// TestLogAccusesNobodyBesideUnseenWriters is TestServerIsNotBlamedBesideUnseenWriters with the server's log, and with
// transactions that write unseen, too, to a table with a key or without: the server keeps its word all the while.
func TestLogAccusesNobodyBesideUnseenWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for i := range 6 {
		level := []history.Level{history.ReadCommitted, history.RepeatableRead, history.Serializable}[i/2]
		hiding := i%2 == 1
		key := []string{" PRIMARY KEY", ""}[(i+i/2)%2]
		t.Run(fmt.Sprintf("%s, hiding %v,%s", level, hiding, key), func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, "CREATE TABLE counter (id int"+key+", v int, n int NOT NULL DEFAULT 0)",
				"INSERT INTO counter SELECT i, 0 FROM generate_series(1, 12) i",
				`CREATE FUNCTION touch(int) RETURNS void AS 'UPDATE counter SET n = n + 1 WHERE id = $1' LANGUAGE sql`,
				"CREATE TABLE event (id serial PRIMARY KEY, counter int)",
				`CREATE FUNCTION touched() RETURNS trigger AS $$ BEGIN UPDATE counter SET n = n + 1 WHERE id = NEW.counter;
					RETURN NULL; END $$ LANGUAGE plpgsql`,
				"CREATE TRIGGER touching AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION touched()")
			beside := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan int)
			go func() {
				r, n := rand.New(rand.NewPCG(5, 5)), 0
				for ; ctx.Err() == nil; n++ {
					_, err := beside.Exec(t.Context(), fmt.Sprintf(
						"BEGIN ISOLATION LEVEL %s; UPDATE counter SET v = v + 1 WHERE id = %d; COMMIT", level, 1+r.IntN(6)))
					if err != nil {
						beside.Exec(t.Context(), "ROLLBACK")
					}
				}
				done <- n
			}()
			b.plant(level.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched, error) {
				return nil, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
					for range 1 + r.IntN(3) {
						sql := fmt.Sprintf("SELECT v FROM counter WHERE id IN (%d, %d)", 1+r.IntN(6), 1+r.IntN(12))
						choice := r.IntN(7)
						if !hiding && choice > 1 {
							choice = 4
						}
						switch choice {
						case 0, 1:
							sql = fmt.Sprintf("UPDATE counter SET v = v + 1 WHERE id = %d", 1+r.IntN(12))
						case 2:
							sql = fmt.Sprintf("DO $$ BEGIN UPDATE counter SET n = n + 1 WHERE id = %d; END $$", 1+r.IntN(12))
						case 3:
							sql = fmt.Sprintf("SELECT touch(%d)", 1+r.IntN(12))
						case 6:
							sql = fmt.Sprintf("INSERT INTO event (counter) VALUES (%d)", 1+r.IntN(12))
						}
						if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
							return err
						}
					}
					return nil
				})
			})
			stop()
			wrote := <-done
			r := b.undisputed()
			for _, f := range r.Findings {
				if f.Class == analyzer.Violation {
					t.Errorf("%s is said to be the server's fault: %v", f.Anomaly, f.Txns()[0].ID)
				}
			}
			if level == history.Serializable && len(r.Findings) > 0 {
				t.Errorf("%d findings where every writer is serializable", len(r.Findings))
			}
			if !hiding && (r.Coverage.Log.Past < 20 || r.Coverage.UnseenOrigins > 0) {
				t.Errorf("%d went past isotap, %d reads of unseen origin", r.Coverage.Log.Past, r.Coverage.UnseenOrigins)
			}
			if hiding && r.Coverage.Log.Told == 0 {
				t.Error("no write by a trigger or a function was told")
			}
			t.Logf("%d writes beside, %+v, %d reads of unseen origin, %d findings", wrote, r.Coverage.Log,
				r.Coverage.UnseenOrigins, len(r.Findings))
		})
	}
}

// newCancelingBench starts isotap on its way to a server that fails each question for a transaction's id, as a cancel
// request has it. Asked says that there was one.
func newCancelingBench(t *testing.T, setup ...string) (b *postgresBench, asked *atomic.Bool) {
	t.Helper()
	question := regexp.MustCompile(`SELECT [^\x00]*_if_assigned\(\)[^\x00]*`)
	asked = &atomic.Bool{}
	b = &postgresBench{t: t, database: testdb.NewPostgreSQLDatabase(t), recording: t.TempDir() + "/rec"}
	testdb.Exec(t, testdb.OpenPostgreSQL(t, b.database), setup...)
	relay := newChangingCutter(t, testdb.PostgreSQL(t).Addr(), func(p []byte) []byte {
		return question.ReplaceAllFunc(p, func(asks []byte) []byte {
			asked.Store(true)
			return fmt.Appendf(nil, "%-*s", len(asks), "SELECT 1/0")
		})
	})
	b.start(func(o *proxyserver.Options) {
		o.ServerLog, o.Upstream.Address = serverlog.Require, relay.Addr().String()
	})
	return b, asked
}

// TestCommitAfterACanceledQuestionFails has the question fail that isotap asks before a COMMIT for the transaction's
// id, as a cancel request has it: the client is told that he has committed nothing, and goes on.
func TestCommitAfterACanceledQuestionFails(t *testing.T) {
	b, asked := newCancelingBench(t, "CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 10)")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement,
		pgx.QueryExecModeExec} {
		c := b.connect(b.through(), mode)
		for _, end := range []string{"COMMIT", "COMMIT AND CHAIN", "PREPARE TRANSACTION 'p'"} {
			asked.Store(false)
			b.exec(c, "BEGIN", "DO 'BEGIN UPDATE stock SET n = n + 1; END'")
			var refused *pgconn.PgError
			if _, err := c.Exec(t.Context(), end); !asked.Load() || !errors.As(err, &refused) || refused.Code != "22012" {
				t.Errorf("%s in mode %v: asked %v, the client gets %v", end, mode, asked.Load(), err)
			}
			b.exec(c, "ROLLBACK")
			n := 0
			if err := c.QueryRow(t.Context(), "SELECT n FROM stock").Scan(&n); err != nil || n != 10 {
				t.Errorf("%s in mode %v: n is %d, and %v", end, mode, n, err)
			}
		}
	}
	if c := b.undisputed().Coverage; c.Aborted != 9 || c.Indeterminate != 0 {
		t.Errorf("%d transactions aborted, %d indeterminate", c.Aborted, c.Indeterminate)
	}
}
