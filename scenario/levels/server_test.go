package levels

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// An asker returns the number that a query gives.
type asker func(query string) int

func askerOf(t *testing.T, open func(database string) (*sql.DB, error)) asker {
	t.Helper()
	db, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(query string) (n int) {
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
}

// A long scenario shows when it is under way: a statement of it runs on the server then.
func long(sql string) []Row {
	return Each([]*scenario.Scenario{{Name: "long", Setup: []string{"CREATE TABLE item (id INT)"},
		Sessions: []scenario.Session{{Name: "T1"}}, Steps: []scenario.Step{{Session: "T1", SQL: sql}},
		Witness: map[int]scenario.Reply{1: {}}}})
}

func TestNothingIsLeftWhenItIsInterrupted(t *testing.T) {
	mariadb, postgresql := testdb.MariaDB(t), testdb.PostgreSQL(t)
	for _, on := range []struct {
		url, sleep, running, left string
		db                        asker
	}{
		{mariadb.URL(), "SELECT SLEEP(25)", "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'",
			"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'isotap_replay%'", askerOf(t, mariadb.DB)},
		{postgresql.URL(), "SELECT pg_sleep(25)", "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'",
			"SELECT COUNT(*) FROM pg_namespace WHERE nspname LIKE 'isotap_replay%'", askerOf(t, postgresql.DB)},
	} {
		target, err := dsn.Parse(on.url)
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.Open(t.Context(), target, runner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		interrupted := errors.New("interrupted")
		ctx, interrupt := context.WithCancelCause(t.Context())
		go func() {
			for end := time.Now().Add(20 * time.Second); on.db(on.running) == 0 && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			interrupt(interrupted)
		}()
		columns, err := Columns(r, []history.Level{history.Serializable})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Measure(ctx, r, columns, long(on.sleep), nil); !errors.Is(err, interrupted) {
			t.Errorf("%s: %v", r.Server.Engine, err)
		}
		if n := on.db(on.left); n > 0 {
			t.Errorf("%s: %d databases are left", r.Server.Engine, n)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLevelsThatTheServerLacksAreRefused(t *testing.T) {
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), target, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = Columns(r, []history.Level{history.Serializable, history.ReadUncommitted})
	if err == nil || !strings.Contains(err.Error(), "postgresql has no level READ UNCOMMITTED of its own") {
		t.Errorf("%v", err)
	}
	columns, err := Columns(r, nil)
	if err != nil || len(columns) != 3 || !slices.ContainsFunc(columns, func(c Column) bool { return c.Default }) {
		t.Errorf("%v, %v", columns, err)
	}
}

// What may harm a server is played on servers of its own, and on none where there can be none: a throw-away one that it
// has ended is followed by another.
func TestWhatEndsServersIsPlayedOnItsOwn(t *testing.T) {
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), target, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	columns, err := Columns(r, []history.Level{history.ReadCommitted, history.Serializable})
	if err != nil {
		t.Fatal(err)
	}
	script := func(needs scenario.ServerNeeds, witness scenario.Reply, setUp string, steps ...string) *scenario.Scenario {
		s := &scenario.Scenario{Name: steps[0], Server: needs, Setup: []string{setUp},
			Sessions: []scenario.Session{{Name: "T1"}}, Witness: map[int]scenario.Reply{len(steps): witness}}
		for _, sql := range steps {
			s.Steps = append(s.Steps, scenario.Step{Session: "T1", SQL: sql})
		}
		return s
	}
	yes := "1"
	found := [][]*string{{&yes}}
	rows := Each([]*scenario.Scenario{
		script(scenario.ServerNeeds{}, scenario.Reply{Lost: true}, "DO 0", "SHUTDOWN", "SELECT SLEEP(20)",
			"SELECT 1"), // the SELECT before may yet get an error
		script(scenario.ServerNeeds{Args: []string{"--query-cache-type=1"}}, scenario.Reply{Values: found}, "DO 0",
			"SELECT @@query_cache_type = 'ON'"),
		script(scenario.ServerNeeds{}, scenario.Reply{Values: found}, "CREATE TABLE", "SELECT 1"),
		{Name: "nothing tells"},
	})
	starts := 0
	own := func(ctx context.Context, args []string) (*runner.Runner, func() error, error) {
		starts++
		s, err := testdb.Start(ctx, testdb.Options{Args: args})
		if err != nil {
			return nil, nil, err
		}
		target, err := dsn.Parse(s.URL())
		if err != nil {
			return nil, nil, err
		}
		on, err := runner.Open(ctx, target, runner.Options{})
		return on, s.Stop, err
	}
	for _, c := range []struct {
		own    Own
		want   []Outcome
		starts int
	}{
		{nil, []Outcome{NotPlayed, NotPlayed, NotPlayed, NotPlayed}, 0},
		{own, []Outcome{Permitted, Permitted, NotPlayed, NotPlayed}, 3 + 1}, // READ COMMITTED and SERIALIZABLE twice
	} {
		starts = 0
		table, err := Measure(t.Context(), r, columns, rows, c.own)
		if err != nil {
			t.Fatal(err)
		}
		for i, of := range table.cells {
			for j := range of {
				if got := of[j].outcome(); got != c.want[i] {
					t.Errorf("%s at %s: %v, want %v", rows[i].Name, columns[j].name(), got, c.want[i])
				}
			}
		}
		if starts != c.starts {
			t.Errorf("%d servers were started, want %d", starts, c.starts)
		}
	}
}
