package random

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
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
		{Engine{Name: "mariadb"}, func(database string) *sql.DB { return testdb.Open(t, database) },
			func() string { return testdb.NewDatabase(t) }},
		{Engine{Name: "postgresql"}, func(database string) *sql.DB { return testdb.OpenPostgreSQL(t, database) },
			func() string { return testdb.NewPostgreSQLDatabase(t) }},
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
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, e := range []Engine{{Name: "mariadb"}, {Name: "mysql"}, {Name: "mysql", Version: "5.6.24"}, {Name: "tidb"},
		{Name: "tidb", Optimistic: true}, {Name: "postgresql"}} {
		for seed := range uint64(80) {
			g := New(e, Profile{Deep: seed >= 40}, seed)
			for n := range g.Transactions() {
				all := g.Transaction(n + 1)
				if all[0] != e.begin() {
					t.Fatalf("%v, seed %d: a transaction begins with %q", e, seed, all[0])
				}
				for _, sql := range all {
					if !e.laterals() && strings.Contains(sql, "LATERAL") || !e.skipsLocked() && strings.Contains(sql, "SKIP LOCKED") || e.old() &&
						(strings.Contains(sql, " OVER ") || strings.HasPrefix(sql, "WITH")) {
						t.Fatalf("%v, seed %d: %s", e, seed, sql)
					}
				}
			}
		}
	}
}

// TestGuidedTransactionsMeet: what transactions of about one time have in common is theirs, and not that of others.
func TestGuidedTransactionsMeet(t *testing.T) {
	tables := regexp.MustCompile(`\bt\d\b`)
	among := func(guided int) (share float64) {
		all, near := 0, 0
		for seed := range uint64(20) {
			g := New(Engine{Name: dbms.PostgreSQL}, Profile{Guided: guided, Sessions: 2, Transactions: 40}, seed)
			focused := New(g.engine, Profile{Guided: 1, Sessions: 2}, seed) // of the same tables
			if len(g.tables) < 3 {
				continue
			}
			for n := 1; n <= 40; n++ {
				f := focused.focusOf(n)
				for _, name := range tables.FindAllString(strings.Join(g.Transaction(n), "; "), -1) {
					if all++; name == f[0].table.name || name == f[1].table.name {
						near++
					}
				}
			}
		}
		return float64(near) / float64(all)
	}
	if plain, guided := among(0), among(90); guided < 0.9 || plain > 0.8 {
		t.Errorf("%.2f of the tables named are those of the focus, where nothing guides %.2f", guided, plain)
	}
}

func TestBadProfilesAreRefused(t *testing.T) {
	for want, p := range map[string]Profile{
		"tables is -1":             {Tables: -1},
		"rollback is 101":          {Rollback: 101},
		"keyed is -2":              {Keyed: -2},
		"guided is 101":            {Guided: 101},
		`there is no kind "merge"`: {Weights: map[string]int{"merge": 1}},
		"weights: select is -2":    {Weights: map[string]int{"select": -2}},
		"rate is -1":               {Rate: -1},
		"duration is -1s":          {Duration: -time.Second},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	if err := (Profile{Weights: map[string]int{"delete": 0}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestTransactionsWaitForTheirTurn(t *testing.T) {
	r := &run{g: New(Engine{Name: "mariadb"}, Profile{Rate: 50}, 1), began: time.Now()}
	if err := r.due(t.Context(), 1); err != nil {
		t.Errorf("the first waits: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if r.due(ended, 1_000_000) == nil {
		t.Error("one whose turn is in hours began")
	}
}

// TestRefilledDatabaseHoldsTheRowsRead: a database is refilled with the rows that were read of another.
func TestRefilledDatabaseHoldsTheRowsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, s := range servers(t) {
		t.Run(s.engine.Name.String(), func(t *testing.T) {
			for seed := range uint64(3) {
				g := New(s.engine, Profile{}, seed)
				first, second := s.open(s.fresh()), s.open(s.fresh())
				for _, text := range g.Setup() {
					if _, err := first.Exec(text); err != nil {
						t.Fatalf("seed %d: %s: %v", seed, text, err)
					}
				}
				for n := range 10 {
					for _, text := range g.Transaction(n + 1)[1:] {
						_, _ = first.Exec(text) // each by itself: constraints refuse some
					}
				}
				want := swept(t, g, first)
				for _, text := range g.Refill(want) {
					if _, err := second.Exec(text); err != nil {
						t.Errorf("seed %d: %s: %v", seed, text, err)
					}
				}
				if got := swept(t, g, second); !reflect.DeepEqual(got, want) {
					t.Errorf("seed %d: other rows", seed)
				}
			}
		})
	}
}

// swept reads every table, its rows in the order of their texts.
func swept(t *testing.T, g *Generator, db *sql.DB) [][][]*string {
	t.Helper()
	var tables [][][]*string
	for _, text := range g.Sweep() {
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var all [][]*string
		for rows.Next() {
			row, places := make([]*string, len(columns)), make([]any, len(columns))
			for i := range row {
				places[i] = &row[i]
			}
			if err := rows.Scan(places...); err != nil {
				t.Fatal(err)
			}
			all = append(all, row)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b []*string) int { return strings.Compare(rowText(a), rowText(b)) })
		tables = append(tables, all)
	}
	return tables
}

func rowText(row []*string) string {
	var b strings.Builder
	for _, v := range row {
		if v == nil {
			b.WriteString("NULL,")
			continue
		}
		fmt.Fprintf(&b, "%q,", *v)
	}
	return b.String()
}

// IsoRel's statements are right by construction: but for constraints and each other's doings, they succeed.
func TestNearlyAllStatementsSucceed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, s := range servers(t) {
		for name, p := range map[string]Profile{"shallow": {Transactions: 60}, "deep": {Transactions: 60, Deep: true}} {
			t.Run(s.engine.Name.String()+" "+name, func(t *testing.T) { nearlyAllSucceed(t, s, p) })
		}
	}
}

func nearlyAllSucceed(t *testing.T, s server, p Profile) {
	statements, failed := 0, 0
	mistakes := make(map[string]*Mistake)
	for seed := range uint64(6) {
		g := New(s.engine, p, seed)
		db := s.open(s.fresh())
		for _, text := range g.Setup() {
			if _, err := db.Exec(text); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, text, err)
			}
		}
		o, err := Run(t.Context(), g, history.RepeatableRead, Patience,
			func(ctx context.Context, _ int) (*sql.Conn, error) { return db.Conn(ctx) })
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
}
