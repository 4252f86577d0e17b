package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

var readTables = []string{
	"CREATE TABLE d (id INT PRIMARY KEY, name VARCHAR(20))",
	"INSERT INTO d VALUES (1, 'dev'), (2, 'ops'), (3, 'none')",
	"CREATE TABLE e (id INT PRIMARY KEY, dep INT, pay DECIMAL(8,2), note TEXT)",
	"INSERT INTO e VALUES (1, 1, 10.5, 'a'), (2, 1, 20, 'b'), (3, 2, 30, NULL)",
}

// reads runs statements through isotap and returns what was recorded of the last run of each: observation,
// reason and the rows read of each table. Each is also compared with its direct answer, as text and
// prepared.
func reads(t *testing.T, statements ...string) []string {
	t.Helper()
	b := newBench(t, nil, readTables...)
	for _, s := range statements {
		want := answer(t.Context(), b.direct, s)
		if got := answer(t.Context(), b.through, s); got != want {
			t.Errorf("%s: through the proxy\n%s\nwant\n%s", s, got, want)
		}
		want = answer(t.Context(), preparer{b.direct}, s)
		if got := answer(t.Context(), preparer{b.through}, s); got != want {
			t.Errorf("%s (prepared): through the proxy\n%s\nwant\n%s", s, got, want)
		}
	}
	txns := b.txns()
	if len(txns) != 2*len(statements) {
		t.Fatalf("%d transactions recorded, want %d", len(txns), 2*len(statements))
	}
	var seen []string
	for i := 0; i < len(txns); i += 2 {
		text, prepared := readsOf(txns[i].Stmts[0]), readsOf(txns[i+1].Stmts[0])
		if text != prepared {
			t.Errorf("%s: recorded %s as text and %s prepared", statements[i/2], text, prepared)
		}
		seen = append(seen, text)
	}
	return seen
}

// readsOf describes what was recorded of a statement: "exact d3 e2" is three rows of d and two of e.
func readsOf(s history.Stmt) string {
	counts := make(map[string]int)
	for _, a := range s.Accesses {
		_, table, _ := strings.Cut(a.Row.Table, ".")
		counts[table]++
	}
	out := s.Observation.String()
	if !s.Reason.IsZero() {
		out += " (" + s.Reason.String() + ")"
	}
	for _, table := range []string{"d", "e"} {
		if n := counts[table]; n > 0 {
			out += fmt.Sprintf(" %s%d", table, n)
		}
	}
	return out
}

// A preparer prepares every query.
type preparer struct{ *sql.DB }

func (p preparer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer stmt.Close() // the server's side of it is closed with the rows
	return stmt.QueryContext(ctx, args...)
}

func checkReads(t *testing.T, want map[string]string) {
	t.Helper()
	var statements []string
	for s := range want {
		statements = append(statements, s)
	}
	for i, got := range reads(t, statements...) {
		if got != want[statements[i]] {
			t.Errorf("%s is recorded as %s, want %s", statements[i], got, want[statements[i]])
		}
	}
}

func TestAggregatesAreRecordedRowByRow(t *testing.T) {
	checkReads(t, map[string]string{
		"SELECT COUNT(*), MAX(note) FROM e":                             "exact e3",
		"SELECT COUNT(*) FROM e WHERE id > 5":                           "exact",
		"SELECT COUNT(*) FROM d JOIN e ON d.id > e.id - 3":              "exact d3 e3",
		"SELECT COUNT(e.id), SUM(pay) FROM d LEFT JOIN e ON dep = d.id": "exact d3 e3",
		"SELECT MIN(note), COUNT(*) FROM e WHERE dep = 2":               "exact e1",
		"SELECT dep, COUNT(*) FROM e GROUP BY dep":                      "exact e3",
		"SELECT dep, COUNT(*) n FROM e GROUP BY dep HAVING n > 1":       "exact e5", // three of all groups, and two of that one
		"SELECT dep, COUNT(*) n FROM e GROUP BY dep HAVING dep > 1":     "inexact (groups left out) e1",
	})
}

func TestQueriesInFromAreRecorded(t *testing.T) {
	checkReads(t, map[string]string{
		"SELECT * FROM (SELECT * FROM e) x WHERE id > 1":                                         "exact e2",
		"SELECT x.*, d.*, x.note FROM d JOIN (SELECT id, note, dep FROM e) x ON x.dep = d.id":    "exact d3 e3",
		"SELECT * FROM (SELECT y.*, y.id + 1 FROM (SELECT id, note FROM e) y) x":                 "exact e3",
		"SELECT * FROM (SELECT dep, SUM(pay), COUNT(note) FROM e GROUP BY dep) x ORDER BY dep":   "exact e3",
		"SELECT * FROM d LEFT JOIN (SELECT * FROM e WHERE pay > 10.5) x ON x.dep = d.id":         "exact d3 e2",
		"WITH c AS (SELECT * FROM e) SELECT c.*, 1 AS one FROM c":                                "exact e3",
		"WITH c (a, b) AS (SELECT id, note FROM e) SELECT * FROM c WHERE a = 2":                  "exact e1",
		"SELECT * FROM (SELECT id, name FROM d) a NATURAL JOIN (SELECT * FROM e) b":              "exact d3 e3",
		"SELECT COUNT(*) FROM (SELECT id FROM e LIMIT 2) x":                                      "exact e2",
		"SELECT * FROM d JOIN (SELECT dep, COUNT(*) FROM e GROUP BY dep) x ON x.dep = d.id":      "exact d2 e3",
		"SELECT * FROM (SELECT id FROM e WHERE id IN (SELECT id FROM d) AND id = 1) x JOIN d d2": "exact d4 e3",
	})
}

func TestWindowFunctionsAreRecorded(t *testing.T) {
	checkReads(t, map[string]string{
		"SELECT *, ROW_NUMBER() OVER (ORDER BY id) FROM e":                                            "exact e3",
		"SELECT id, SUM(pay) OVER w FROM e WINDOW w AS (ORDER BY id) LIMIT 1":                         "inexact (window function) e1",
		"SELECT * FROM (SELECT *, RANK() OVER (PARTITION BY dep ORDER BY id) n FROM e) x WHERE n = 1": "exact e5",
	})
}

// TestLargeAggregatesAreLeftAlone has an array that cannot hold all rows: what it holds is recorded, the
// client sees no warning, and from then on the statement goes as it is, in all sessions, until the
// tables change.
func TestLargeAggregatesAreLeftAlone(t *testing.T) {
	testdb.Only(t, "its arrays have no bound", "mariadb", testdb.MariaDB118.Name)
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_400")
	small, other := b.conn(b.through), b.conn(b.through)
	b.exec(small, "SET group_concat_max_len = 20000")
	b.exec(other, "SET group_concat_max_len = 20000")
	const count = "SELECT COUNT(*) FROM t WHERE id > 0"
	for _, c := range []executor{small, other} {
		if got, want := answer(t.Context(), c, count), answer(t.Context(), b.direct, count); got != want {
			t.Errorf("answer %s, want %s", got, want)
		}
		if got := answer(t.Context(), c, "SHOW WARNINGS"); strings.Contains(got, "|") {
			t.Errorf("warnings: %s", got)
		}
	}
	b.exec(small, "CREATE TABLE another (id INT)", "SELECT COUNT(*) FROM t WHERE id > 1")
	b.exec(small, "SET group_concat_max_len = 1024", "SELECT COUNT(*) FROM t WHERE id > 2")
	var got []string
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			if s.Kind == history.Select && s.Observation != history.Nothing {
				got = append(got, fmt.Sprintf("%v %s %d", s.Observation, s.Reason, len(s.Accesses)))
			}
		}
	}
	// The first session's three, then the second one's.
	want := "inexact large aggregate 149\ninexact large aggregate 149\nopaque group_concat_max_len 0\nopaque large aggregate 0"
	if strings.Join(got, "\n") != want {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
