package e2e

import (
	"cmp"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/testdb"
)

// TestSubqueriesAreAnsweredAsByTheServer runs random SELECTs with subqueries, SELECT DISTINCTs and reads of views,
// directly and through isotap: the columns that show what these read change neither rows nor what is said of the
// client's own columns.
func TestSubqueriesAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil)
	rapid.Check(t, func(rt *rapid.T) {
		r := m.reflect(t)
		defer r.close()
		begin := rapid.SampledFrom([]string{"COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"})
		queries := []string{begin.Draw(rt, "begin"),
			"INSERT INTO t1 (id, a, b) VALUES (11, 21, 'p'), (12, 22, 'q'), (13, NULL, 'p'), (14, 24, NULL)",
			"INSERT INTO t2 (k1, k2, v) VALUES (11, 'p', 1), (11, 'q', 2), (12, 'p', 2), (21, 'r', 11)",
			"INSERT INTO t3 VALUES (11, 1.5, 'p'), (11, 2.5, 'q'), (12, 1, NULL), (2, 2, 'r')",
			"CREATE OR REPLACE VIEW v1 AS SELECT id, b AS label, a FROM t1 WHERE a > 5 OR id > 12",
			"CREATE OR REPLACE VIEW v2 (k, l, n, m) AS SELECT o.k1, o.k2, t1.c, t1.b FROM t1 JOIN t2 AS o ON o.k1 = t1.id"}
		statements := make([]randomStatement, 0, len(queries)+12)
		for _, q := range queries {
			statements = append(statements, randomStatement{text: q})
		}
		for range 12 {
			statements = append(statements, drawParameters(rt, rapid.OneOf(rapid.Custom(drawSubqueries),
				rapid.Custom(drawDistinct), rapid.Custom(drawUnion), rapid.Custom(drawViews), rapid.Custom(drawWritesOfSubqueries)).Draw(rt, "text")))
		}
		for _, s := range statements {
			if diff := r.run(s); diff != "" {
				rt.Fatalf("%s\nafter:\n%s", diff, strings.Join(r.history[9:], "\n"))
			}
		}
	})
}

// TestCopiesOfSubqueriesNumberNoRowAnew has writes of whose rows the server says something that does not come from the
// values that are assigned: it tells them by a number that counts what subqueries read, too.
func TestCopiesOfSubqueriesNumberNoRowAnew(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name)
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil,
		"CREATE TABLE n (id INT PRIMARY KEY, doc INT)", "INSERT INTO n SELECT seq, seq FROM seq_1_to_100",
		"CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), k INT)", "INSERT INTO t VALUES (1, 'x', 1), (2, 'zz', 2), (3, '2020-99-01', 3)",
		"CREATE TABLE made (id INT PRIMARY KEY, s VARCHAR(9), g VARCHAR(3) AS (s) STORED)",
		"CREATE TABLE filled (id INT PRIMARY KEY, s INT, e VARCHAR(3) DEFAULT (CONCAT(s, 'abcdef')))",
		"CREATE TABLE kept (id INT PRIMARY KEY, k INT)")
	few := " k < (SELECT COUNT(*) FROM n WHERE doc < 50)"
	r := m.reflect(t)
	defer r.close()
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		for _, text := range []string{"SET NAMES utf8mb4, sql_mode = ''", "SET SESSION TRANSACTION ISOLATION LEVEL " + level,
			"UPDATE t SET k = 1 WHERE s <= DATE'2020-01-01' AND" + few,
			"UPDATE t SET k = NOT (s <= DATE'2020-01-01') WHERE" + few,
			"UPDATE t SET k = 1 WHERE s < (SELECT CURDATE() + INTERVAL MAX(doc) DAY FROM n WHERE doc < 50) AND" + few,
			"INSERT INTO kept SELECT id, k FROM t WHERE s <= DATE'2020-01-01' AND" + few,
			"INSERT INTO made (id, s) SELECT 5, 'abcdef' WHERE 3 < (SELECT COUNT(*) FROM n WHERE doc < 50)",
			"INSERT INTO filled (id, s) SELECT 5, 5 WHERE 3 < (SELECT COUNT(*) FROM n WHERE doc < 50)",
		} {
			for _, text := range []string{text, "SHOW WARNINGS"} {
				if diff := r.run(randomStatement{text: text, ordered: true}); diff != "" {
					t.Errorf("%s at %s: %s", r.history[len(r.history)-2], level, diff)
				}
			}
		}
		r.both(command{name: "truncate", bytes: query("DELETE FROM made; DELETE FROM filled; DELETE FROM kept")})
	}
}

// drawParameters makes some statements prepared ones, with parameters in the place of their comparisons' literals. Not
// all of them are of the type of their columns. The server warns as often as its plan compares such, and that hangs on
// the tables' statistics: on MySQL 9.7, 7 or 6 times for the same join, before ANALYZE TABLE and behind it, and 6 times
// by a scan, 2 by an index, for a number compared with the texts of an indexed column.
func drawParameters(t *rapid.T, text string) randomStatement {
	if !rapid.Bool().Draw(t, "prepared") {
		return randomStatement{text: text}
	}
	s := randomStatement{prepared: true}
	parts := strings.Split(text, "> 1")
	for range len(parts) - 1 {
		s.params = append(s.params, rapid.SampledFrom([]any{int64(1), int64(2), nil, "1", "x"}).Draw(t, "number"))
	}
	s.text = strings.Join(parts, "> ?")
	for _, v := range s.params {
		_, text := v.(string)
		s.converts = s.converts || text
	}
	parts = strings.Split(s.text, "= 'p'")
	if len(parts) == 1 || len(s.params) > 0 {
		return s
	}
	for range len(parts) - 1 {
		s.params = append(s.params, rapid.SampledFrom([]any{"one", "p", "q", "ü", int64(0), nil}).Draw(t, "word"))
	}
	s.text = strings.Join(parts, "= ?")
	for _, v := range s.params {
		_, number := v.(int64)
		s.converts = s.converts || number
	}
	return s
}

// drawSubqueries draws a SELECT with subqueries.
func drawSubqueries(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	inner := func() string {
		return one("SELECT k1 FROM t2", "SELECT k1 FROM t2 WHERE v > 1", "SELECT v FROM t2", "SELECT x FROM t3",
			"SELECT x FROM t3 WHERE x = t1.id", "SELECT k1 FROM t2 WHERE v = t1.a", "SELECT k1 FROM t2, t3 WHERE x = k1",
			"SELECT MAX(x) FROM t3", "SELECT id FROM t1 AS s WHERE s.b = t1.b",
			"SELECT k1 FROM t2 WHERE k2 = 'p' AND v > 1",
			"SELECT k1 FROM t2 WHERE EXISTS (SELECT 1 FROM t3 WHERE x = k1)", "SELECT x FROM t3 WHERE x IN (SELECT k1 FROM t2 WHERE v > 1)",
			"SELECT o.k1 FROM t2 AS p, t1 AS o2 JOIN t2 AS o ON o.k1 = o2.id WHERE p.v = o.v AND NOT EXISTS (SELECT * FROM t3 WHERE x = o2.id AND e = 'p')", "SELECT x FROM t3 WHERE e = 'p' AND x = t1.id", "SELECT k1 FROM t2 WHERE k2 = t1.b ORDER BY k1")
	}
	joined := rapid.Bool().Draw(t, "joined")
	test := func() string {
		before := one("t1.id NOT IN (", "NOT EXISTS (", "t1.id >= ALL (", "t1.id > ANY (")
		if joined { // the server makes joins of these
			before = one("t1.id IN (", "t1.a IN (", "EXISTS (", before)
		}
		if rapid.IntRange(0, 3).Draw(t, "scalar") == 0 {
			return "t1.a " + one(">", "<=", "<>") + " (SELECT " + one("MAX(v)", "COUNT(*)", "SUM(k1)") + " FROM t2 WHERE k1 = t1.id" +
				one("", " AND v > 1") + ")"
		}
		return before + inner() + ")"
	}
	shown := one("t1.id, t1.b", "t1.*", "t1.a, t1.a", "t1.b", "*", "t1.id + 1, t1.c", "t1.id, EXISTS ("+inner()+")", "COUNT(*)",
		"t1.id, CASE WHEN t1.a > 21 THEN (SELECT MAX(v) FROM t2 WHERE k1 = t1.id) WHEN t1.b = 'p' THEN 3 ELSE (SELECT MIN(x) FROM t3) END",
		"t1.b, COALESCE(t1.a, (SELECT SUM(v) FROM t2 WHERE k1 = t1.id)), IF(t1.b = 'q', (SELECT COUNT(*) FROM t3 WHERE x = t1.id), NULL) AS n",
		"t1.id, (SELECT s.v FROM t2 AS s WHERE s.k1 = t1.id ORDER BY "+one("s.v, k1, k2 DESC", "s.v", "k2, k1")+" LIMIT 1) AS picked")
	from := one("t1", "t1", "t1", "t1 JOIN t2 AS o ON o.k1 = t1.id", "t1, t3 AS o", "t1 LEFT JOIN t3 AS o ON o.x = t1.id")
	if rapid.IntRange(0, 3).Draw(t, "groups") == 0 {
		return drawJoinedGroups(t)
	}
	order := ""
	if from == "t1" && !joined { // of sorted joins the flags of columns may differ
		order = one("", " ORDER BY t1.id", " ORDER BY 1, t1.id", " ORDER BY t1.b DESC, t1.a + 0", " ORDER BY t1.a, t1.id LIMIT 2",
			" ORDER BY t1.id DESC LIMIT 1, 3")
	}
	united := ""
	if shown == "t1.b" && order == "" {
		united = one("", " UNION SELECT t3.e FROM t3", " UNION SELECT t1.c FROM t1 WHERE "+test()+" ORDER BY 1")
	}
	return "SELECT " + shown + " FROM " + from + " WHERE " + test() + one("", " AND "+test(), " AND t1.id < 14", " OR t1.b = 'one'",
		" OR "+test(), " OR "+test()+" OR t1.id = 3", " OR NOT ("+test()+" OR "+test()+")", " OR ("+test()+" AND "+test()+")", " AND (t1.a > 11 OR "+test()+") AND ("+test()+" OR t1.b = 'q')") + order +
		cmp.Or(united, one("", "", "", " FOR UPDATE", " LOCK IN SHARE MODE"))
}

// drawJoinedGroups draws a SELECT that joins a table with groups of another.
func drawJoinedGroups(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	groups := one("SELECT k1 AS grp, COUNT(*) AS n FROM t2 GROUP BY k1", "SELECT v AS grp, MAX(f) AS n, k2 FROM t2 WHERE k1 < 12 GROUP BY k2, v",
		"SELECT x AS grp, SUM(y) AS n FROM t3 GROUP BY x", "SELECT COUNT(*) AS n, MIN(x) AS grp FROM t3 WHERE e = 'p'",
		"SELECT v AS grp, MIN(k1) AS n, k2 FROM t2 GROUP BY t2.k2, v", "SELECT o.k1 AS grp, MAX(t3.y) AS n FROM t2 AS o JOIN t3 ON t3.x = o.k1 GROUP BY o.k1")
	on := one("g.grp = t1.id", "g.grp = t1.id", "g.grp = t1.id AND g.n > 1", "g.n > t1.id")
	shown := one("t1.id, g.n", "*", "g.*, t1.b", "t1.id, g.grp + 0, g.n", "t1.b")
	where := one("", "", " WHERE t1.id > 1", " WHERE g.n IS NULL", " WHERE t1.b = 'p'", " WHERE EXISTS (SELECT 1 FROM t3 WHERE x = t1.id)")
	if rapid.Bool().Draw(t, "common") {
		return "WITH g AS (" + groups + ") SELECT " + shown + " FROM t1 " + one("JOIN g ON ", "LEFT JOIN g ON ") + on + where
	}
	return "SELECT " + shown + " FROM t1 " + one("JOIN", "LEFT JOIN") + " (" + groups + ") AS g ON " + on + where
}

// drawWritesOfSubqueries draws an INSERT ... SELECT, a REPLACE, an UPDATE or a DELETE with subqueries.
func drawWritesOfSubqueries(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	id := one("t1.id", "11")
	inner := func(list string) string {
		return "(SELECT " + list + " FROM t2 WHERE " + one("v > 1", "k2 = 'p'", "k2 = 'p' AND v > 1", "k1 = "+id, "k1 = 12", "f IS NULL") + ")"
	}
	test := one("EXISTS "+inner("1"), "NOT EXISTS "+inner("*"), id+" IN "+inner("k1"), id+" NOT IN "+inner("k1"), "2 < "+inner("COUNT(*)"),
		id+" > "+inner("MAX(v)"), id+" = "+inner("k1"))
	value := one("1", inner("COUNT(*)"), inner("MIN(k1)"), "EXISTS "+inner("1"), inner("SUM(v)"), "REPEAT('long', t1.a)")
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 5:
		row := one("(c, id, b) VALUES ("+value+", 11, 'q')", "SET b = 'long', a = "+value, "(a, b) VALUES (31, "+value+")",
			"(a, c) VALUES (ABS("+value+"), "+inner("MAX(v)")+")", "(id, a, b) VALUES (11, "+value+", 'p'), (15, 4, "+value+")",
			"(id, a, b) VALUES (15, "+value+", 'p'), (16, REPEAT('long', 3), 'q'), (17, 1, NULL)")
		return one("INSERT INTO ", "INSERT IGNORE INTO ", "REPLACE INTO ") + "t1 " + strings.NewReplacer("t1.id", "11", "t1.a", "3").Replace(row)
	case kind > 2:
		list := one("c = ", "a = ", "b = ") + one(value, "COALESCE("+value+", 7)", "CONCAT("+value+", 'x')") +
			one("", "", ", a = "+value, ", b = 'q'", ", b = REPEAT('long', 9)", ", c = c + "+value)
		where := " WHERE " + one("", "t1.id = 11 AND ", "t1.id = 12 AND ", "t1.id < 14 AND ", "t1.b = 'one' OR ") + test
		return "UPDATE " + one("", "", "IGNORE ") + "t1 SET " + strings.ReplaceAll(list, "11", "t1.id") + where +
			one("", "", " ORDER BY id LIMIT 2")
	case kind == 0:
		return "DELETE FROM " + one("t1 WHERE ", "t1 WHERE t1.id < 14 AND ") +
			strings.ReplaceAll(test, "11", "t1.id")
	case id == "11":
		return one("INSERT INTO ", "INSERT IGNORE INTO ", "REPLACE INTO ") + "t3 (x, y) SELECT " + id + ", " + value + one("", " FROM DUAL") + " WHERE " + test
	}
	return one("INSERT INTO ", "REPLACE INTO ") + "t3 (x, y) SELECT " + id + ", " + value + " FROM t1 WHERE " + one("", "t1.b = 'p' AND ") + test
}

// drawDistinct draws a SELECT DISTINCT that needs a column that is in no index. What an index answers alone the server
// may read in another way when the table has isotap's columns, whoever asks.
func drawDistinct(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	from := one("t1", "t1", "t2", "t3", "t1 JOIN t3 AS o ON o.x = t1.id AND o.y > 0")
	shown, where := one("t1.c", "t1.b, t1.c", "t1.*", "t1.c + 1, t1.a"), one("", " WHERE t1.b = 'p'", " WHERE t1.id > 1")
	switch from {
	case "t2":
		shown, where = one("f", "f, v", "*", "k2, f", "v, j"), one("", " WHERE v > 1", " WHERE k2 = 'p'")
	case "t3":
		shown, where = one("y", "e", "x, e", "*", "UPPER(e)"), one("", " WHERE e = 'p'", " WHERE x IS NULL")
	}
	return "SELECT DISTINCT " + shown + " FROM " + from + where + one("", "", " ORDER BY 1", " ORDER BY 1 DESC")
}

// drawUnion draws a UNION of queries that need a column which is in no index, as drawDistinct does.
func drawUnion(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	query := func() string {
		return one("SELECT t1.b, t1.c FROM t1", "SELECT c, a FROM t1 WHERE t1.id > 1", "SELECT k2, f FROM t2", "SELECT v, j FROM t2 WHERE k2 = 'p'",
			"SELECT e, y FROM t3", "SELECT 1, 'p'", "(SELECT x, e FROM t3 WHERE x IS NULL)", "SELECT UPPER(e), y + 1 FROM t3 WHERE e = 'p'",
			"SELECT NULL, f FROM t2 WHERE v > 1", "SELECT e FROM t3")
	}
	text := query()
	for range rapid.IntRange(1, 2).Draw(t, "more") {
		text += one(" UNION ", " UNION ", " UNION ALL ") + query()
	}
	return text
}

// drawViews draws a SELECT of views.
func drawViews(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	from := one("v1", "v1", "v2", "v2", "v1 JOIN v2 ON v1.id = v2.k", "v1 LEFT JOIN t2 ON t2.k1 = v1.id", "t3, v1 AS w")
	shown := one("*", "*", "1 + 1", "COUNT(*)")
	switch from {
	case "v1":
		return "SELECT " + one("*", "label", "a, id", "v1.*, label", "id + 1, label") + " FROM v1" +
			one("", " WHERE id > 1", " WHERE label = 'p'", " WHERE id NOT IN (SELECT k1 FROM t2 WHERE v > 1)") +
			one("", " ORDER BY id", " ORDER BY label, id LIMIT 2", " FOR UPDATE")
	case "v2":
		return "SELECT " + one("*", "m", "n, k", "l AS x, v2.*") + " FROM v2" + one("", " WHERE k = 11", " WHERE m > 'a'")
	}
	return "SELECT " + shown + " FROM " + from
}
