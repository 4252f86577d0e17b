package e2e

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// notes are a hundred notes on document 2, and one on document 1.
func notes() []string {
	setup := []string{"CREATE TABLE doc (id INT PRIMARY KEY, k INT)", "CREATE TABLE note (id INT PRIMARY KEY, doc INT)",
		"INSERT INTO doc VALUES (1, 10), (2, 20)", "INSERT INTO note VALUES (0, 1)"}
	for i := range 100 {
		setup = append(setup, fmt.Sprintf("INSERT INTO note VALUES (%d, 2)", i+1))
	}
	return setup
}

// subqueryCases are statements over notes, in order, and what is recorded of them.
var subqueryCases = []subqueryCase{
	{"SELECT k FROM doc WHERE id = 1 AND EXISTS (SELECT * FROM note WHERE note.doc = doc.id)", "exact, 2 reads"},
	{"SELECT k, (SELECT COUNT(*) FROM note n WHERE n.doc = 1) FROM doc", "exact, 3 reads"},
	{"SELECT EXISTS (SELECT * FROM note n WHERE n.id = 1)", "exact, 1 reads"},
	{"SELECT k FROM doc WHERE id = 9 AND k > (SELECT MAX(n.id) FROM note n WHERE n.doc = 1)", "inexact (subquery), 0 reads"},
	{"SELECT k FROM doc WHERE id = 9 AND EXISTS (SELECT * FROM note n WHERE n.doc = doc.id)", "exact, 0 reads"},
	{"SELECT id FROM doc WHERE id = 2 AND EXISTS (SELECT 1 FROM note WHERE note.doc = doc.id)", "inexact (subquery), 65 reads"},
	{"SELECT id FROM doc WHERE id = 1 AND EXISTS (SELECT 1 FROM note WHERE note.doc = doc.id)", "inexact (subquery), 1 reads"},
}

// TestSubqueriesWithParametersAreObserved has prepared statements whose parameters stand in their subqueries, among
// them some that the server would warn of, were they compared a second time.
func TestSubqueriesWithParametersAreObserved(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, append(notes(), "CREATE TABLE word (id INT PRIMARY KEY, w VARCHAR(9), d DATE)",
		"INSERT INTO word VALUES (1, 'a', '2026-01-02'), (2, 'b', '2026-01-03'), (3, 'b', NULL)")...)
	c, direct := b.conn(b.through), b.conn(b.direct)
	type given struct {
		subqueryCase
		args []any
	}
	var related []given
	if testdb.EngineName() == testdb.MySQL.Name { // MariaDB's queries in FROM see no row around
		const ofRow = "SELECT k, (SELECT JSON_ARRAYAGG(q.id) FROM (SELECT n.id FROM note n WHERE n.doc = doc.id ORDER BY n.id LIMIT ?) q) FROM doc"
		related = []given{{subqueryCase{ofRow, "exact, 4 reads"}, []any{1}}, {subqueryCase{ofRow, "inexact (parameter type), 2 reads"}, []any{nil}}}
	}
	const firstNotes = "SELECT k, (SELECT JSON_ARRAYAGG(q.id) FROM (SELECT n.id FROM note n ORDER BY n.id LIMIT ?) q) FROM doc"
	var cases []subqueryCase
	for _, s := range append(related, []given{
		{subqueryCase{"SELECT k FROM doc WHERE EXISTS (SELECT * FROM note WHERE note.doc = doc.id AND note.id < ?)",
			"exact, 4 reads"}, []any{2}},
		{subqueryCase{"SELECT k, (SELECT COUNT(*) FROM note n WHERE n.id IN (?, ?)) FROM doc WHERE id = ? LIMIT ?",
			"exact, 3 reads"}, []any{4, 5, 1, 7}},
		{subqueryCase{"SELECT EXISTS (SELECT * FROM note n WHERE n.id = ?)", "exact, 1 reads"}, []any{3}},
		{subqueryCase{"SELECT k FROM doc WHERE id IN (SELECT id FROM word WHERE w = ?)", "exact, 2 reads"}, []any{"b"}},
		{subqueryCase{"SELECT k FROM doc WHERE id IN (SELECT id FROM word WHERE w = ?)", "inexact (parameter type), 2 reads"},
			[]any{0}},
		{subqueryCase{"SELECT k FROM doc WHERE id IN (SELECT id FROM word WHERE d > ?)", "exact, 2 reads"},
			[]any{"2026-01-02"}},
		{subqueryCase{"SELECT k FROM doc WHERE id IN (SELECT id FROM word WHERE d > ?)", "inexact (parameter type), 2 reads"},
			[]any{"2026-1-1"}},
		{subqueryCase{"SELECT k FROM doc WHERE id IN (SELECT n.id FROM note n WHERE n.id = ?)",
			"inexact (parameter type), 1 reads"}, []any{"1"}},
		{subqueryCase{"SELECT k FROM doc WHERE k > ? OR EXISTS (SELECT * FROM note n WHERE n.doc = doc.id AND n.id < ?)",
			"exact, 3 reads"}, []any{15, 2}},
		{subqueryCase{"SELECT k FROM doc WHERE k > ? OR EXISTS (SELECT * FROM note n WHERE n.doc = doc.id AND n.id < ?)",
			"inexact (parameter type), 2 reads"}, []any{"15", 2}},
		{subqueryCase{"SELECT n.doc, COUNT(*) FROM note n WHERE n.id < ? GROUP BY n.doc HAVING COUNT(*) > ?", "exact, 5 reads"}, []any{3, 1}},
		{subqueryCase{"SELECT n.doc, COUNT(*) FROM note n WHERE n.id < ? GROUP BY n.doc HAVING COUNT(*) > ?", "inexact (parameter type), 2 reads"},
			[]any{"3", 1}},
		{subqueryCase{"SELECT k, (SELECT n.id FROM note n WHERE n.doc = doc.id LIMIT ?) FROM doc WHERE id = 1", "exact, 2 reads"}, []any{1}},
		{subqueryCase{"SELECT k, (SELECT n.id FROM note n WHERE n.doc = doc.id LIMIT ?) FROM doc WHERE id = 1", "inexact (parameter type), 1 reads"},
			[]any{2}},
		{subqueryCase{"SELECT k, (SELECT n.id FROM note n WHERE n.doc = doc.id LIMIT ?) FROM doc WHERE id = 1", "inexact (parameter type), 1 reads"},
			[]any{0}},
		{subqueryCase{"SELECT k FROM doc WHERE id - 1 IN (SELECT n.id FROM note n WHERE n.doc = ?)", "exact, 2 reads"}, []any{2}},
		{subqueryCase{firstNotes, "exact, 4 reads"}, []any{2}}, // two of doc, and two of note
		{subqueryCase{firstNotes, "exact, 3 reads"}, []any{"1"}},
		{subqueryCase{firstNotes, "exact, 2 reads"}, []any{0}},
	}...) {
		if want, got := answer(t.Context(), direct, s.sql, s.args...), answer(t.Context(), c, s.sql, s.args...); got != want {
			t.Errorf("%s: through the proxy %s, want %s", s.sql, got, want)
		}
		cases = append(cases, s.subqueryCase)
	}
	c.Close()
	holdSubqueries(t, b.txns(), cases)
}

// TestRowsBehindViewsAreObserved has views that show the keys of their tables, and some that do not.
func TestRowsBehindViewsAreObserved(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, append(notes(), "CREATE TABLE pair (a INT, b VARCHAR(5), doc INT, PRIMARY KEY (a, b))",
		"INSERT INTO pair VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', NULL)",
		"CREATE VIEW docs AS SELECT k, id AS number FROM doc WHERE k > 5",
		"CREATE VIEW noted AS SELECT note.id AS n, doc.k FROM note JOIN doc ON doc.id = note.doc WHERE note.id < 3",
		"CREATE VIEW keyed AS SELECT note.id AS n, note.doc, doc.k FROM note JOIN doc ON doc.id = note.doc WHERE note.id < 3",
		"CREATE VIEW pairs AS SELECT p.*, d.id FROM pair p LEFT JOIN doc d ON d.id = p.doc",
		"CREATE VIEW counted AS SELECT doc, COUNT(*) AS n FROM note GROUP BY doc",
		"CREATE VIEW above AS SELECT * FROM docs", "CREATE VIEW first AS SELECT id FROM doc ORDER BY k LIMIT 1")...)
	c, direct := b.conn(b.through), b.conn(b.direct)
	cases := []subqueryCase{
		{"SELECT * FROM docs", "exact, 2 reads"},
		{"SELECT k FROM docs AS d WHERE number = 2 ORDER BY k", "exact, 1 reads"},
		{"SELECT k FROM docs WHERE number = 9", "exact, 0 reads"},
		{"SELECT * FROM noted", "opaque (view), 0 reads"},
		{"SELECT * FROM keyed", "exact, 5 reads"},
		{"SELECT * FROM pairs ORDER BY a, b LIMIT 2", "exact, 4 reads"},
		{"SELECT * FROM pairs WHERE doc IS NULL", "exact, 1 reads"},
		{"SELECT n.id, docs.k FROM note n JOIN docs ON docs.number = n.doc WHERE n.id = 0", "exact, 2 reads"},
		{"SELECT k FROM docs WHERE number IN (SELECT n.doc FROM note n WHERE n.id = 0)", "exact, 2 reads"},
		{"SELECT n.id FROM note n WHERE n.id = 0 AND n.doc IN (SELECT number FROM docs)", "exact, 2 reads"},
		{"SELECT n.id FROM note n WHERE n.id = 0 AND EXISTS (SELECT 1 FROM keyed d WHERE d.k > 5)", "exact, 6 reads"},
		{"SELECT n.id, c.n FROM note n JOIN counted c ON c.doc = n.doc WHERE n.id = 0", "inexact (view), 1 reads"},
		{"SELECT * FROM above", "opaque (view), 0 reads"},
		{"SELECT * FROM first", "opaque (view), 0 reads"},
		{"SELECT COUNT(*) FROM docs", "opaque (view), 0 reads"},
		{"SELECT k FROM docs FOR UPDATE", "opaque (view), 0 reads"},
	}
	for _, s := range cases {
		if want, got := answer(t.Context(), direct, s.sql), answer(t.Context(), c, s.sql); got != want {
			t.Errorf("%s: through the proxy %s, want %s", s.sql, got, want)
		}
	}
	c.Close()
	holdSubqueries(t, b.txns(), cases)
}

// recordedAs says how a statement was recorded.
func recordedAs(s *history.Stmt) string {
	how := s.Observation.String()
	if s.Observation != history.Exact {
		how += " (" + s.Reason.String() + ")"
	}
	return fmt.Sprintf("%s, %d reads", how, len(s.Accesses))
}

// A subqueryCase is a statement, and what is recorded of it.
type subqueryCase struct{ sql, want string }

func holdSubqueries(t *testing.T, txns []*history.Txn, cases []subqueryCase) {
	t.Helper()
	var all []string
	for _, txn := range txns {
		for i := range txn.Stmts {
			all = append(all, recordedAs(&txn.Stmts[i]))
		}
	}
	if len(all) != len(cases) {
		t.Fatalf("%d statements: %q", len(all), all)
	}
	for i, c := range cases {
		if all[i] != c.want {
			t.Errorf("%s is %s, not %s", c.sql, all[i], c.want)
		}
	}
}

// TestSubqueriesAreObservedAsFarAsTheyShow has subqueries that show all they read, some that show too much, and some
// without a row to show it beside.
func TestSubqueriesAreObservedAsFarAsTheyShow(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, notes()...)
	c := b.conn(b.through)
	for _, s := range subqueryCases {
		b.exec(c, s.sql)
	}
	c.Close()
	holdSubqueries(t, b.txns(), subqueryCases)
}

// TestSubqueriesWithinSubqueriesAreObserved has them in conditions that each row of the one around meets.
func TestSubqueriesWithinSubqueriesAreObserved(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, append(notes(), "CREATE TABLE part (id INT PRIMARY KEY, n INT)", "INSERT INTO part VALUES (1, 1), (2, 2), (3, 3)",
		"CREATE TABLE word (n INT PRIMARY KEY, w VARCHAR(9))", "INSERT INTO word VALUES (1, 'x'), (3, NULL), (7, 'y')")...)
	c, direct := b.conn(b.through), b.conn(b.direct)
	cases := []subqueryCase{
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id < 2 AND doc IN (SELECT p.n FROM part p))", "exact, 6 reads"},
		{"SELECT (SELECT COUNT(*) FROM note n WHERE n.doc = doc.id AND n.id < 9 AND EXISTS (SELECT * FROM part p JOIN word w ON w.n = p.n WHERE p.n = n.id)) FROM doc",
			"exact, 8 reads"},
		{"SELECT k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note m WHERE m.doc = doc.id AND NOT EXISTS (SELECT 1 FROM part p WHERE p.n = m.doc))", "exact, 2 reads"},
		{"SELECT k FROM doc WHERE id NOT IN (SELECT m.doc FROM note m, word WHERE m.id = word.n AND EXISTS (SELECT 1 FROM part p WHERE p.id = m.id))", "exact, 7 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id = 0 AND EXISTS (SELECT 1 FROM part p WHERE n = doc))", "exact, 3 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE id = 0 AND EXISTS (SELECT 1 FROM part p WHERE n = doc))", "inexact (subquery), 1 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id = 0 AND EXISTS (SELECT 1 FROM part p))", "inexact (subquery), 1 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id = 0 AND doc IN (SELECT w FROM word))", "inexact (subquery), 0 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id < 2 AND (doc = 7 OR doc IN (SELECT n FROM part)))", "inexact (subquery), 2 reads"},
	}
	for _, s := range cases {
		if want, got := answer(t.Context(), direct, s.sql), answer(t.Context(), c, s.sql); got != want {
			t.Errorf("%s: through the proxy %s, want %s", s.sql, got, want)
		}
	}
	c.Close()
	holdSubqueries(t, b.txns(), cases)
}

// TestArmsOrdersAndGroupsAreObserved has several subqueries behind one OR, some with ORDER BY and LIMIT 1, and groups
// that are joined.
func TestArmsOrdersAndGroupsAreObserved(t *testing.T) {
	unasked := "inexact (plan), 2 reads" // MariaDB leaves them out
	if testdb.EngineName() == testdb.MySQL.Name {
		unasked = "inexact (joined aggregate), 2 reads"
	}
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, append(notes(), "CREATE TABLE part (id INT PRIMARY KEY, n INT, w INT NOT NULL)",
		"INSERT INTO part VALUES (1, 1, 5), (2, 2, 5), (3, NULL, 6), (4, 2, 7)")...)
	c, direct := b.conn(b.through), b.conn(b.direct)
	cases := []subqueryCase{
		{"SELECT k FROM doc WHERE EXISTS (SELECT 1 FROM part p WHERE p.n = doc.id AND p.w = 5) OR EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id)",
			"exact, 4 reads"}, // the second is not read where the first holds
		{"SELECT k FROM doc WHERE id IN (SELECT doc FROM note WHERE note.id < 1) OR k = 7 OR id IN (SELECT p.n FROM part p WHERE p.w > 6)", "exact, 4 reads"},
		{"SELECT k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id) OR EXISTS (SELECT 1 FROM part p WHERE p.n = doc.id)",
			"inexact (subquery), 70 reads"}, // of the hundred notes of the second
		{"SELECT k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 3) OR EXISTS (SELECT 1 FROM part p WHERE p.n = doc.id)",
			"exact, 8 reads"},
		{"SELECT k FROM doc WHERE (k = 9 OR EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 3)) AND (doc.id = 1 OR doc.id IN (SELECT p.n FROM part p))",
			"exact, 7 reads"},
		{"SELECT k, (SELECT n.doc FROM note n WHERE n.doc = doc.id ORDER BY n.doc, n.id DESC LIMIT 1) AS latest FROM doc", "exact, 4 reads"},
		{"SELECT k FROM doc WHERE (SELECT p.w FROM part p WHERE p.n = doc.id ORDER BY id LIMIT 1) > 4", "exact, 4 reads"},
		{"SELECT k, (SELECT p.w FROM part p WHERE p.n = 9 ORDER BY id LIMIT 1) FROM doc", "exact, 2 reads"},
		{"SELECT k, (SELECT p.w FROM part p WHERE p.n = doc.id ORDER BY w LIMIT 1) FROM doc", "exact, 4 reads"},
		{"SELECT k, g.s FROM doc JOIN (SELECT n, SUM(w) AS s FROM part GROUP BY n) g ON g.n = doc.id WHERE doc.id = 2", "exact, 3 reads"},
		{"SELECT k, g.s FROM doc LEFT JOIN (SELECT n, MAX(w) AS s FROM part WHERE id > 1 GROUP BY n) g ON g.n = doc.id", "exact, 4 reads"},
		{"SELECT k, g.s FROM doc LEFT JOIN (SELECT w AS grp, COUNT(*) AS s FROM part GROUP BY w) g ON g.grp > doc.id + 5", "exact, 3 reads"},
		{"WITH g AS (SELECT n, COUNT(*) AS s FROM part GROUP BY n) SELECT doc.id FROM doc JOIN g ON g.n IS NULL AND g.s = doc.id", "exact, 2 reads"},
		{"SELECT k FROM (SELECT MAX(w) AS m FROM part) g, doc WHERE doc.id < g.m", "exact, 6 reads"},
		{"SELECT k FROM (SELECT MAX(w) AS m FROM part) g, doc WHERE doc.id > g.m", "inexact (subquery), 0 reads"},
		{"SELECT k, g.s FROM doc JOIN (SELECT n, SUM(w) AS s FROM part GROUP BY n HAVING s > 1) g ON g.n = doc.id", "inexact (joined aggregate), 2 reads"},
		{"SELECT doc.id FROM doc LEFT JOIN (SELECT n, SUM(w) AS s FROM part GROUP BY n) g ON g.n = doc.id", unasked},
		{"SELECT doc.id, g.c FROM doc JOIN (SELECT doc, COUNT(*) AS c FROM note GROUP BY doc) g ON g.doc = doc.id", "inexact (subquery), 67 reads"},
		{"SELECT n, COUNT(*) AS s FROM part GROUP BY n HAVING s > 1", "exact, 6 reads"},
		{"SELECT n, COUNT(*) AS s FROM part GROUP BY n HAVING s > 9", "inexact (subquery), 0 reads"}, // no row shows them
		{"SELECT g.s FROM (SELECT n, COUNT(*) AS s FROM part GROUP BY n) g WHERE g.s > 1", "exact, 6 reads"},
		{"SELECT g.id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS s FROM part) g WHERE g.s < 2", "exact, 5 reads"},
		{"SELECT id FROM part WHERE n IN (SELECT id FROM part WHERE w = 5)", "exact, 5 reads"},
		{"SELECT k FROM doc WHERE id IN (SELECT p.n FROM part p WHERE p.w > 6 UNION SELECT n.doc FROM note n WHERE n.id < 2)", "exact, 5 reads"},
		{"SELECT k FROM doc WHERE (EXISTS (SELECT 1 FROM part p WHERE p.n = doc.id) AND k < (SELECT MAX(p.w) FROM part p WHERE p.n = doc.id)) OR EXISTS (SELECT 1 FROM note n WHERE n.id = 0 AND n.doc = doc.id)", "exact, 4 reads"},
	}
	for _, s := range cases {
		if want, got := answer(t.Context(), direct, s.sql), answer(t.Context(), c, s.sql); got != want {
			t.Errorf("%s: through the proxy %s, want %s", s.sql, got, want)
		}
	}
	c.Close()
	holdSubqueries(t, b.txns(), cases)
}

// TestSubqueriesOfLockingReadsLockNothing has another transaction hold the rows that a locking read's subqueries read,
// and change them before it reads again.
func TestSubqueriesOfLockingReadsLockNothing(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	const beside = "SELECT k, (SELECT COUNT(*) FROM note n WHERE n.doc = 1) FROM doc WHERE id = 1 FOR UPDATE"
	const within = "SELECT k FROM doc WHERE id = 1 AND EXISTS (SELECT * FROM note WHERE note.doc = doc.id) FOR UPDATE"
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		b := newBench(t, nil, notes()...)
		c, other := b.conn(b.through), b.conn(b.direct)
		b.exec(other, "BEGIN", "UPDATE note SET doc = 3 WHERE id < 2")
		b.exec(c, "SET innodb_lock_wait_timeout = 1", "SET SESSION TRANSACTION ISOLATION LEVEL "+level, "BEGIN", beside, within)
		b.exec(other, "COMMIT")
		b.exec(c, beside, "COMMIT")
		c.Close()
		other.Close()
		var all []string
		for _, txn := range b.txns() {
			for i := range txn.Stmts {
				if s := &txn.Stmts[i]; s.Kind == history.Select {
					all = append(all, recordedAs(s))
				}
			}
		}
		want := []string{"exact, 2 reads", "exact, 2 reads", map[string]string{"READ COMMITTED": "exact, 1 reads",
			"REPEATABLE READ": "exact, 2 reads"}[level]}
		if !slices.Equal(all, want) {
			t.Errorf("at %s: %q, not %q", level, all, want)
		}
	}
}

// TestSubqueriesAreReadOnceWhereReadsLock has the levels at which a second evaluation could lock, or see something
// else.
func TestSubqueriesAreReadOnceWhereReadsLock(t *testing.T) {
	for _, level := range []string{"READ UNCOMMITTED", "SERIALIZABLE"} {
		b := newBench(t, nil, notes()...)
		c := b.conn(b.through)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level, "BEGIN", subqueryCases[0].sql, "COMMIT")
		c.Close()
		for _, s := range stmts(b.txns(), "SELECT k FROM doc WHERE id = ? AND EXISTS (SELECT * FROM note WHERE note.doc = doc.id)") {
			if s.Observation == history.Exact || len(s.Accesses) > 1 {
				t.Errorf("at %s: %s", level, recordedAs(&s))
			}
		}
	}
}

// postgresSubqueryCases are more of them, which are observed on PostgreSQL alone.
var postgresSubqueryCases = slices.Concat(subqueryCases, []subqueryCase{
	{"SELECT d.* FROM (SELECT id, k FROM doc WHERE EXISTS (SELECT 1 FROM note WHERE note.doc = doc.id)) d WHERE d.id = 1",
		"exact, 2 reads"},
	{"SELECT k FROM (SELECT id, k FROM doc WHERE k > (SELECT MIN(n.id) FROM note n WHERE n.doc < 2)) d WHERE d.id < 9",
		"exact, 3 reads"},
	{"SELECT d.k FROM (SELECT * FROM doc WHERE EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id " +
		"AND n.id > 1000)) d", "exact, 0 reads"},
	{"SELECT k FROM (SELECT id, k FROM doc WHERE k > (SELECT MIN(n.id) FROM note n WHERE n.doc < 2)) d WHERE d.id = 9",
		"inexact (subquery), 0 reads"},
	{"WITH d AS (SELECT id FROM doc WHERE EXISTS (SELECT FROM note n WHERE n.doc = doc.id AND n.id < 3)) SELECT id " +
		"FROM d WHERE id < 3",
		"exact, 5 reads"},
	{"SELECT d.* FROM (SELECT id FROM doc WHERE EXISTS (SELECT 1 FROM note WHERE note.doc = doc.id)) d WHERE d.id = 2",
		"inexact (subquery), 65 reads"},
	{"SELECT d.* FROM (SELECT id FROM doc WHERE EXISTS (SELECT 1 FROM note WHERE note.doc = doc.id)) d WHERE d.id = 1",
		"inexact (subquery), 1 reads"},
})

// TestPostgreSQLSubqueriesAreObservedAsFarAsTheyShow is TestSubqueriesAreObservedAsFarAsTheyShow, on PostgreSQL.
func TestPostgreSQLSubqueriesAreObservedAsFarAsTheyShow(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		b := newPostgresBench(t, notes()...)
		c := b.connect(b.through(), mode)
		for _, s := range postgresSubqueryCases {
			b.exec(c, s.sql)
		}
		b.stop()
		r, err := recorder.Open(b.recording)
		if err != nil {
			t.Fatal(err)
		}
		var txns []*history.Txn
		for txn, err := range r.Txns(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			txns = append(txns, txn)
		}
		r.Close()
		holdSubqueries(t, txns, postgresSubqueryCases)
	}
}

// TestWriteSkewThroughSubqueriesIsFound has two doctors look for each other in subqueries, and leave both.
func TestWriteSkewThroughSubqueriesIsFound(t *testing.T) {
	const table, rows = "CREATE TABLE oncall (id INT PRIMARY KEY, duty INT)", "INSERT INTO oncall VALUES (1, 1), (2, 1)"
	look := func(id int) string {
		return fmt.Sprintf("SELECT EXISTS (SELECT * FROM oncall o WHERE o.id = %d AND o.duty = 1)", id)
	}
	leave := func(id int) string { return fmt.Sprintf("UPDATE oncall SET duty = 0 WHERE id = %d", id) }
	hold := func(t *testing.T, r *analyzer.Result) {
		if countOf(t, r, analyzer.WriteSkew) != 1 {
			t.Errorf("%d findings, none of them write skew", len(r.Findings))
		}
	}
	t.Run("MariaDB", func(t *testing.T) {
		testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
		b := newBench(t, nil, table, rows)
		x, y := b.conn(b.through), b.conn(b.through)
		b.exec(x, "BEGIN", look(2))
		b.exec(y, "BEGIN", look(1), leave(2), "COMMIT")
		b.exec(x, leave(1), "COMMIT")
		x.Close()
		y.Close()
		hold(t, b.analyze())
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		b := newPostgresBench(t, table, rows)
		x, y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol), b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
		const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
		b.exec(x, begin, look(2))
		b.exec(y, begin, look(1), leave(2), "COMMIT")
		b.exec(x, leave(1), "COMMIT")
		hold(t, b.analyze())
	})
}

// TestSubqueriesAreReadOnceUnderLockTables has statements with subqueries, some prepared before, between LOCK TABLES
// and UNLOCK TABLES: the server lets none of them name a table twice by one name.
func TestSubqueriesAreReadOnceUnderLockTables(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, notes()...)
	c := b.conn(b.through)
	texts := []string{subqueryCases[0].sql, "UPDATE doc SET k = 3 WHERE id = 1 AND 0 < (SELECT SUM(id) FROM note)",
		"INSERT INTO doc SELECT 9, 1 FROM DUAL WHERE 0 < (SELECT SUM(id) FROM note WHERE id = 1)", "DELETE FROM doc WHERE id = (SELECT MIN(id) + 9 FROM note WHERE doc > 0)"}
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	var prepared []*sql.Stmt
	for _, text := range texts {
		p, err := c.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		prepared = append(prepared, p)
	}
	b.exec(c, "LOCK TABLES doc WRITE, note READ")
	b.exec(c, texts...)
	for i, p := range prepared {
		if _, err := p.ExecContext(t.Context()); err != nil {
			t.Errorf("%s, prepared: %v", texts[i], err)
		}
	}
	b.exec(c, "UNLOCK TABLES", "FLUSH TABLES doc", texts[0])
	c.Close()
	if testdb.EngineName() != testdb.MySQL.Name { // which prepares no LOCK TABLES
		c = b.conn(b.through)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "EXECUTE IMMEDIATE 'LOCK TABLES doc WRITE, note READ'")
		b.exec(c, slices.Concat(texts[1:], texts)...)
		c.Close()
	}
	found := stmts(b.txns(), "SELECT k FROM doc WHERE id = ? AND EXISTS (SELECT * FROM note WHERE note.doc = doc.id)")
	if len(found) < 3 || found[0].Observation == history.Exact || found[2].Observation != history.Exact {
		t.Errorf("recorded are %v", found)
	}
}
