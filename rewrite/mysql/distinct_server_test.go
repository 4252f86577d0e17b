package mysql

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestDistinctTellsAllRowsThatItReads holds what SELECT DISTINCT shows against all rows that it reads, those that gave
// way to equal ones among them.
func TestDistinctTellsAllRowsThatItReads(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	for query, want := range map[string]string{
		"SELECT DISTINCT dep, note FROM e":                                                everyE,
		"SELECT DISTINCT note, dep FROM e WHERE id < 3 ORDER BY 1":                        dep1,
		"SELECT DISTINCT d.* FROM d JOIN e ON e.dep = d.id WHERE e.id < 4 AND pay > 1":    "d1 d2 " + dep1 + " e3",
		"SELECT DISTINCT name, boss FROM d, e WHERE dep = d.id AND pay = 30 AND e.id = 4": "d2 e4",
		"SELECT DISTINCT UPPER(name), 1 + 1, boss FROM d x WHERE x.id = 1":                "d1",
		"select distinctrow id from e where dep in (1, 7) or note is null":                dep1 + " e3",
	} {
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			t.Errorf("%s: %v: %s", query, p.Observation, p.Reason)
		}
		s.compare(query, want)
	}
	for _, query := range []string{"SELECT DISTINCT pay FROM e LIMIT 1", "SELECT DISTINCT dep FROM e", "SELECT DISTINCT COUNT(*) FROM e GROUP BY dep",
		"SELECT DISTINCT pay FROM e FOR UPDATE", "SELECT DISTINCT pay FROM e WHERE 1 / id > 0",
		"SELECT DISTINCT d.id FROM d LEFT JOIN e ON e.dep = d.id", "SELECT DISTINCT pay FROM e WHERE note = 1"} {
		if p := s.rewriter.Plan(query, s.session); p.Observation == history.Exact {
			t.Errorf("%s is exact", query)
		}
	}
}

// TestDistinctKeepsTheOrderOfRows has random SELECT DISTINCTs give their rows as they came, though nothing orders them.
func TestDistinctKeepsTheOrderOfRows(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	s.exec("INSERT INTO e (id, dep, pay, note) SELECT 100 + (n * 37) % 500, n % 7, n % 11, CONCAT('n', n % 5) FROM (" +
		testdb.Numbers(400) + ") AS numbers")
	// Statistics that change between the two runs change the plan, and with it the order of both.
	s.exec("ALTER TABLE d STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
	s.exec("ALTER TABLE e STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
	s.exec("ANALYZE TABLE d, e")
	rewritten := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		query := "SELECT DISTINCT " + one("dep", "note", "dep, note", "pay", "e.id", "note, pay", "pay DIV 2", "dep, 1", "*") +
			one(" FROM e", " FROM e", " FROM d, e", " FROM e JOIN d ON d.id = dep") +
			one("", " WHERE e.id > 300", " WHERE dep = 3", " WHERE note < 'n3' AND dep > 2") +
			one("", "", " ORDER BY 1", " ORDER BY e.id + 0 DESC")
		p := s.rewriter.Plan(query, s.session)
		if p.Upstream.Pieces == nil {
			return
		}
		rewritten++
		original, proxied := s.original(query, false), s.see(literal(p, Values{}), p.HiddenColumns(), false)
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) {
			r.Fatalf("%s: %v, not %v", query, proxied, original)
		}
	})
	if rewritten == 0 {
		t.Error("no query was rewritten")
	}
}
