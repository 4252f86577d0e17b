package random

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A server is one that random statements are for.
type server struct {
	engine Engine
	open   func(database string) *sql.DB
	fresh  func() string
}

func servers(t *testing.T) []server {
	t.Helper()
	return []server{
		{Engine{Name: "mariadb"}, func(database string) *sql.DB { return testdb.Open(t, database) }, func() string { return testdb.NewDatabase(t) }},
		{Engine{Name: "postgresql"}, func(database string) *sql.DB { return testdb.OpenPostgreSQL(t, database) }, func() string { return testdb.NewPostgreSQLDatabase(t) }},
	}
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	draw := func(seed uint64) []string {
		g := New(Engine{Name: "postgresql"}, Profile{}, seed)
		all := append(g.Setup(), fmt.Sprint(g.Sessions()))
		for n := range 20 {
			all = append(all, g.Transaction(n+1)...)
		}
		return all
	}
	if !reflect.DeepEqual(draw(7), draw(7)) {
		t.Error("two draws of one seed differ")
	}
	if reflect.DeepEqual(draw(7), draw(8)) {
		t.Error("two seeds give the same")
	}
}

// Also of databases of one table, whose writes may read no other.
func TestTransactionsAreDrawnForEveryEngine(t *testing.T) {
	for _, e := range []Engine{{Name: "mariadb"}, {Name: "mysql"}, {Name: "mysql", Version: "5.6.24"}, {Name: "tidb"}, {Name: "tidb", Optimistic: true}, {Name: "postgresql"}} {
		for seed := range uint64(40) {
			g := New(e, Profile{}, seed)
			for n := range g.Transactions() {
				all := g.Transaction(n + 1)
				if all[0] != e.begin() {
					t.Fatalf("%v, seed %d: a transaction begins with %q", e, seed, all[0])
				}
				for _, sql := range all {
					if !e.skipsLocked() && strings.Contains(sql, "SKIP LOCKED") || e.old() && (strings.Contains(sql, " OVER ") || strings.HasPrefix(sql, "WITH")) {
						t.Fatalf("%v, seed %d: %s", e, seed, sql)
					}
				}
			}
		}
	}
}

func TestBadProfilesAreRefused(t *testing.T) {
	for want, p := range map[string]Profile{
		"tables is -1":             {Tables: -1},
		"rollback is 101":          {Rollback: 101},
		"keyed is -2":              {Keyed: -2},
		`there is no kind "merge"`: {Weights: map[string]int{"merge": 1}},
		"weights: select is -2":    {Weights: map[string]int{"select": -2}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	if err := (Profile{Weights: map[string]int{"delete": 0}}).Check(); err != nil {
		t.Error(err)
	}
}

// IsoRel's statements are right by construction: but for constraints and each other's doings, they succeed.
func TestNearlyAllStatementsSucceed(t *testing.T) {
	for _, s := range servers(t) {
		t.Run(s.engine.Name, func(t *testing.T) {
			statements, failed := 0, 0
			mistakes := make(map[string]*Mistake)
			for seed := range uint64(6) {
				g := New(s.engine, Profile{Transactions: 60}, seed)
				db := s.open(s.fresh())
				for _, text := range g.Setup() {
					if _, err := db.Exec(text); err != nil {
						t.Fatalf("seed %d: %s: %v", seed, text, err)
					}
				}
				o, err := Run(t.Context(), g, history.RepeatableRead, Patience, func(ctx context.Context, _ int) (*sql.Conn, error) { return db.Conn(ctx) })
				if err != nil {
					t.Fatal(err)
				}
				if o.Transactions != 60 || len(o.Odd) > 0 {
					t.Errorf("seed %d: %d transactions; odd: %v", seed, o.Transactions, o.Odd)
				}
				statements, failed = statements+o.Statements, failed+o.Failed
				for code, m := range o.Mistakes {
					if mistakes[code] == nil {
						mistakes[code] = &Mistake{Code: code, Message: m.Message, SQL: m.SQL}
					}
					mistakes[code].Count += m.Count
				}
			}
			t.Logf("%d of %d statements failed", failed, statements)
			for _, m := range mistakes {
				t.Logf("%d times %s: %s: %s", m.Count, m.Code, m.Message, m.SQL)
			}
			if failed*20 > statements {
				t.Errorf("%d of %d statements failed", failed, statements)
			}
		})
	}
}
