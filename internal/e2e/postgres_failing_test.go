package e2e

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/internal/testdb"
)

// failingShapes are statements of all shapes that isotap adds to, in which %s is an expression that may fail.
var failingShapes = []string{
	"SELECT %s FROM t1",
	"SELECT id FROM t1 WHERE %s IS NULL",
	"SELECT id, b FROM t1 ORDER BY %s",
	"SELECT id FROM t1 WHERE id = 2 AND %s IS NOT NULL FOR UPDATE",
	"SELECT t1.id, %s FROM t1 JOIN t2 ON k1 = t1.id",
	"SELECT t1.id FROM t1 LEFT JOIN t2 ON k1 = t1.id AND %s IS NULL",
	"SELECT b, count(*), %s FROM t1 GROUP BY b",
	"SELECT b, count(*) FROM t1 GROUP BY b, %s",
	"SELECT b, count(*) FROM t1 WHERE %s IS NULL GROUP BY b HAVING count(*) > 0",
	"SELECT b, count(*) FROM t1 GROUP BY b HAVING %s IS NULL",
	"SELECT count(%s) FROM t1",
	"SELECT count(*) FROM t1 WHERE %s IS NULL",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id AND %s IS NULL)",
	"SELECT id FROM t1 WHERE id IN (SELECT k1 FROM t2 WHERE %s IS NULL)",
	"SELECT id, (SELECT max(v) FROM t2 WHERE %s IS NULL) FROM t1",
	"SELECT id, (SELECT max(v) AS %s FROM t2 WHERE k1 = id) FROM t1",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 AS %s WHERE k1 = id)",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id AND %s)",
	"SELECT id FROM t1 UNION SELECT %s FROM t2",
	"SELECT id FROM t1 WHERE %s IS NULL UNION ALL SELECT k1 FROM t2",
	"SELECT id FROM t1 EXCEPT SELECT k1 FROM t2 WHERE %s IS NULL",
	"SELECT DISTINCT %s FROM t1",
	"SELECT DISTINCT id FROM t1 WHERE %s IS NULL",
	"SELECT DISTINCT ON (%s) id FROM t1",
	"WITH q AS (SELECT %s AS n FROM t1) SELECT * FROM q",
	"WITH q AS (SELECT id FROM t1 WHERE %s IS NULL) SELECT count(*) FROM q",
	"SELECT d.n FROM (SELECT %s AS n, id FROM t1) d",
	"SELECT d.id FROM (SELECT id FROM t1 WHERE %s IS NULL) AS d",
	"SELECT id, sum(a) OVER (ORDER BY %s) FROM t1",
	"SELECT %s FROM t1, t1 AS o",
	"INSERT INTO t3 (x) VALUES (%s)",
	"INSERT INTO t3 (x) SELECT %s FROM t1",
	"INSERT INTO t3 (x) SELECT id FROM t1 WHERE %s IS NULL",
	"INSERT INTO t3 (x) SELECT id FROM t1 WHERE EXISTS (SELECT FROM t2 WHERE k1 = id AND %s IS NULL)",
	"INSERT INTO t1 (id, a) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET a = %s",
	"INSERT INTO t1 (id, a) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET a = 5 WHERE %s IS NULL",
	"INSERT INTO t1 (id) VALUES (91) RETURNING %s",
	"UPDATE t1 SET a = %s",
	"UPDATE t1 SET b = 'z' WHERE %s IS NULL RETURNING id",
	"UPDATE t1 SET b = 'z' RETURNING %s",
	"UPDATE t1 SET b = (SELECT k2 FROM t2 WHERE %s IS NULL LIMIT 1) WHERE id = 1",
	"UPDATE t1 SET b = 'z' WHERE EXISTS (SELECT FROM t2 WHERE k1 = id AND %s IS NULL)",
	"UPDATE t1 SET b = k2 FROM t2 WHERE k1 = id AND %s IS NULL",
	"DELETE FROM t2 WHERE %s IS NULL",
	"DELETE FROM t2 USING t1 WHERE k1 = id AND %s IS NULL RETURNING *",
	"DELETE FROM t2 RETURNING %s",
	"WITH w AS (UPDATE t2 SET v = v + 1 RETURNING k1) SELECT %s FROM w",
	"WITH w AS (DELETE FROM t2 WHERE %s IS NULL RETURNING k1) SELECT count(*) FROM w",
	"DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t1 WHERE %s IS NULL; FETCH ALL c; CLOSE c",
	"PREPARE s AS SELECT id FROM t1 WHERE %s IS NULL; EXECUTE s; DEALLOCATE s",
	"VALUES (%s)",
}

// failingExpressions fail, or have the server give a notice, each in a way of its own.
var failingExpressions = []string{
	"nothing", "nowhere.id", "idd", "ctidd", "isotap_1", "isotap_rows.id", "isotap_xmin", "t1.isotap_client",
	"t1.nothing", "nofunc(1)", "'é' || nothing", "1 / 0", "1 / (length(version()) * 0)", "'x'::int",
	"CAST('x' AS int)", "CAST('2026-01-01' AS timestamp(9))", "CAST('1 day' AS interval(9))",
	"a" + strings.Repeat("b", 70), `'a\b'`, `E'\u12'`, "sum(count(*))", "max(id)", "count(*)", "(SELECT 1, 2)",
	"(SELECT g FROM generate_series(1, 2) g)", "(SELECT id FROM t1)", "$1", "$3", "NULL::nowhere", "ARRAY[1, 'x']",
	`'a' COLLATE "x"`, "'a' + 'b'", "1 + 'x'", "row(1, 2)", "count(*) FILTER (WHERE nothing)",
	"sum(1) OVER (PARTITION BY nothing)", "row_number() OVER ()", "id", "v", "'' ", "1", "2",
	"generate_series(1, 2)", "noting(1)", "noting(0) / 0", "DEFAULT", "*", "t1.*", "9999999999999", "interval '1'",
	"(t1.id * 0)::text::uuid", "a.b.c.d.e", "jsonb '{'", "GROUPING(id)",
}

// failingStatements are others.
var failingStatements = []string{
	"SELECT id FROM t1 ORDER BY 2", "SELECT id FROM t1 ORDER BY 3", "SELECT id FROM t1 ORDER BY 0",
	"SELECT id, b FROM t1 GROUP BY 3", "SELECT b FROM t1 GROUP BY 2", "SELECT DISTINCT id FROM t1 ORDER BY 2",
	"SELECT DISTINCT id FROM t1 ORDER BY b", "SELECT DISTINCT ON (2) id FROM t1",
	"SELECT DISTINCT ON (b) id FROM t1 ORDER BY id", "SELECT id FROM t1 UNION SELECT k1, k2 FROM t2",
	"SELECT id FROM t1 UNION ALL SELECT k1, k2 FROM t2", "SELECT id, a FROM t1 INTERSECT SELECT k1 FROM t2",
	"SELECT * FROM t1 EXCEPT SELECT * FROM t2", "SELECT id FROM t1 UNION SELECT k2 FROM t2",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 ORDER BY 2",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 ORDER BY nothing",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 ORDER BY id + 1",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 FOR UPDATE", "SELECT b, count(*) FROM t1 GROUP BY b FOR UPDATE",
	"SELECT DISTINCT id FROM t1 FOR UPDATE", "SELECT count(*) FROM t1 FOR SHARE",
	"SELECT t1.id FROM t1 LEFT JOIN t2 ON k1 = id FOR UPDATE", "SELECT id FROM t1 FOR UPDATE OF nothing",
	"SELECT id FROM t1 FOR UPDATE OF t2", "SELECT id FROM v2 FOR UPDATE", "TABLE t1 UNION TABLE t2",
	"VALUES (1, 2), (3)", "SELECT * FROM (VALUES (1), (2)) AS d (a, b)",
	"SELECT * FROM (SELECT id FROM t1) AS d (a, b)",
	"SELECT * FROM (SELECT id FROM t1 WHERE EXISTS (SELECT FROM t2 WHERE k1 = id)) AS d (a, b)",
	"WITH q (a, b) AS (SELECT id FROM t1) SELECT * FROM q",
	"WITH q (a, b) AS (SELECT id FROM t1 WHERE EXISTS (SELECT FROM t2 WHERE k1 = id)) SELECT * FROM q",
	"WITH q AS (SELECT id FROM t1) SELECT * FROM q AS r (a, b)",
	"WITH q (a, b) AS (UPDATE t1 SET b = 'x' RETURNING id) SELECT * FROM q",
	"WITH q AS (UPDATE t1 SET b = 'x') SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT id FROM t1 UNION SELECT id, 1 FROM q) SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT id FROM t1 UNION SELECT id::text FROM q) SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT id FROM q) SELECT * FROM q",
	"WITH q AS (SELECT 1), q AS (SELECT 2) SELECT * FROM q",
	"SELECT id FROM t1 WHERE id = (SELECT k1, v FROM t2 LIMIT 1)",
	"SELECT id FROM t1 WHERE id IN (SELECT k1, v FROM t2)", "SELECT id FROM t1 WHERE (id, a) IN (SELECT k1 FROM t2)",
	"SELECT id FROM t1 WHERE (id, a) = (SELECT k1 FROM t2 LIMIT 1)", "SELECT (SELECT k1, v FROM t2 LIMIT 1) FROM t1",
	"SELECT id FROM t1 WHERE id = (SELECT k1 FROM t2)", "SELECT (SELECT k1 FROM t2) FROM t1",
	"UPDATE t1 SET a = (SELECT k1 FROM t2)", "UPDATE t1 SET (a, b) = (SELECT k1 FROM t2)",
	"UPDATE t1 SET (a, b) = (1, 2, 3)", "UPDATE t1 SET (a, b) = (SELECT k1, k2, v FROM t2)",
	"INSERT INTO t3 VALUES (1, 2, 'sad', 4)", "INSERT INTO t3 VALUES (1, 2, 'sad', 4) RETURNING x",
	"INSERT INTO t3 (x, y) VALUES (1)", "INSERT INTO t3 (x) VALUES (1, 2)", "INSERT INTO t3 (x, y) SELECT 1",
	"INSERT INTO t3 (x) SELECT id, a FROM t1", "INSERT INTO t3 (x) SELECT * FROM t1",
	"INSERT INTO t3 SELECT * FROM t1", "INSERT INTO t3 TABLE t1", "INSERT INTO t3 (x, y) SELECT id FROM t1",
	"INSERT INTO t3 (x) SELECT (id, a) FROM t1", "INSERT INTO t3 (x, x) SELECT id, a FROM t1",
	"INSERT INTO t3 (x, nothing) VALUES (1, 2)", "INSERT INTO t3 (x) VALUES (1), (1, 2)",
	"INSERT INTO t3 VALUES ('x', 2)", "INSERT INTO t3 (x) SELECT b FROM t1",
	"INSERT INTO t3 (e) SELECT 'happi' FROM t1", "INSERT INTO t3 (e) VALUES ('happi')",
	"INSERT INTO t1 (id) SELECT k1 FROM t2", "INSERT INTO t1 (id, a) VALUES (50, 10)",
	"INSERT INTO t1 SELECT * FROM t1 RETURNING *",
	"INSERT INTO t1 (id) SELECT k1 FROM t2 ON CONFLICT (id) DO UPDATE SET a = 3",
	"INSERT INTO t1 (id) VALUES (1), (1) ON CONFLICT (id) DO UPDATE SET a = 3",
	"INSERT INTO t1 (id) VALUES (77), (77) ON CONFLICT (id) DO UPDATE SET a = 3",
	"INSERT INTO t1 VALUES (1) ON CONFLICT (nothing) DO NOTHING",
	"INSERT INTO t1 VALUES (1) ON CONFLICT DO UPDATE SET a = 3",
	"INSERT INTO t1 VALUES (1) ON CONFLICT ON CONSTRAINT nothing DO NOTHING",
	"INSERT INTO t1 (id, a) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = excluded.nothing",
	"INSERT INTO t1 (id, a) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = id.excluded",
	"INSERT INTO t2 (g) VALUES (1)", "INSERT INTO t2 (k1, k2, v) VALUES (9, 'z', NULL)",
	"INSERT INTO t2 (k1, k2, v) SELECT 9, 'z', NULL", "INSERT INTO t2 (k1, k2, v) SELECT id, b, a FROM t1",
	"INSERT INTO kid VALUES (9, 77) RETURNING id", "INSERT INTO kid SELECT 9, 77",
	"INSERT INTO par VALUES (1, 'too long for ten')", "UPDATE par SET s = 'too long for ten'",
	"INSERT INTO tu VALUES ('x')", "INSERT INTO tu (id, n) SELECT id, 5000 FROM tu",
	"INSERT INTO tx (d, co) VALUES ('2026-02-30', (1, 'x'))", "INSERT INTO tx (d, co) VALUES ('2026-02-20', '(1')",
	"INSERT INTO tx (d, ar) VALUES ('2026-02-20', '{1')", "INSERT INTO tx (d, ch) VALUES ('2026-02-20', 'abcde')",
	"INSERT INTO pt VALUES (NULL, 'x')", "UPDATE pt SET id = 4 WHERE id = 1",
	"INSERT INTO derived VALUES (10, 'x', 2)", "UPDATE t1 SET a = 1, a = 2", "UPDATE t1 SET t1.a = 1",
	"UPDATE t1 SET a = 10", "UPDATE t1 SET id = id + 1", "UPDATE t1 SET id = DEFAULT", "UPDATE t2 SET g = 5",
	"UPDATE t1 AS x SET a = t1.a", "UPDATE t1 SET a = 1 FROM t1", "UPDATE t1 SET a = k1 FROM t2 WHERE t1.id = t1.k1",
	"UPDATE t1 SET a = 1 WHERE count(*) > 1", "UPDATE t1 SET a = max(a)", "UPDATE t1 SET a = 1 RETURNING max(a)",
	"UPDATE t1 SET a = 1 RETURNING *, nothing", "UPDATE t1 SET c = 12345678 RETURNING id", "UPDATE v2 SET n = 1",
	"UPDATE v3 SET v = 1", "UPDATE rl SET v = -1 RETURNING id", "INSERT INTO v2 VALUES (1, 2)",
	"UPDATE t1 SET b = 'x' WHERE CURRENT OF nowhere", "DELETE FROM t1 WHERE CURRENT OF nowhere RETURNING id",
	"UPDATE tr SET v = 4 / (id - 2)", "UPDATE tr SET v = 2147483647", "DELETE FROM par WHERE id = 1 RETURNING s",
	"DELETE FROM t1 LIMIT 1", "UPDATE t1 SET b = 'x' ORDER BY id", "DELETE FROM t1 USING t1",
	"DELETE FROM t2 USING t1 WHERE id", "DELETE FROM t1 AS x WHERE t1.id = 1",
	"MERGE INTO t1 USING t2 ON id = k1 WHEN MATCHED THEN UPDATE SET a = nothing",
	"MERGE INTO t1 USING t2 ON id = k1 WHEN MATCHED THEN UPDATE SET b = k2",
	"MERGE INTO t1 USING t2 ON id = k1 WHEN MATCHED THEN UPDATE SET a = 5 RETURNING nothing",
	"MERGE INTO t1 USING (SELECT 1 AS n) s ON id = n WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
	"SELECT * FROM t1 JOIN t2 USING (nothing)", "SELECT * FROM t1 NATURAL JOIN t2 WHERE nothing",
	"SELECT id FROM t1 JOIN t1 ON true", "SELECT id FROM t1 a, t1 b", "SELECT * FROM t1 a JOIN t1 b ON a.id",
	"SELECT * FROM t1 JOIN t2 ON id = k2", "SELECT * FROM t1, LATERAL (SELECT nothing) l",
	"SELECT * FROM t1, (SELECT t1.id) l", "SELECT * FROM t1, nowhere", "SELECT * FROM t1 TABLESAMPLE nothing (10)",
	"SELECT * FROM t1 LIMIT 'x'", "SELECT * FROM t1 LIMIT id", "SELECT * FROM t1 LIMIT -1",
	"SELECT id FROM t1 ORDER BY id OFFSET -1", "SELECT id FROM t1 FETCH FIRST 1 ROW WITH TIES",
	"SELECT id FROM t1 LIMIT (SELECT k1, k2 FROM t2)", "SELECT b FROM t1 HAVING true",
	"SELECT id, b FROM t1 GROUP BY b", "SELECT *, count(*) FROM t1", "SELECT *, count(*) FROM t1 GROUP BY id",
	"SELECT t2.*, count(*) FROM t2 GROUP BY k1", "SELECT sum(b) FROM t1", "SELECT sum(a) FROM t1 GROUP BY sum(a)",
	"SELECT json_object_agg(NULL, 1) FROM t1", "SELECT json_object_agg(a, 1) FROM t1",
	"SELECT array_agg(ar) FROM tx", "SELECT string_agg(b) FROM t1",
	"SELECT percentile_cont(2) WITHIN GROUP (ORDER BY a) FROM t1", "SELECT sum(a) OVER w FROM t1",
	"SELECT id FROM t1 WHERE sum(a) OVER () > 1", "SELECT lag(id, -1, 'x') OVER (ORDER BY id) FROM t1",
	"SELECT ntile(0) OVER (ORDER BY id) FROM t1", "SELECT sum(a) OVER (ORDER BY id ROWS -1 PRECEDING) FROM t1",
	"SELECT id INTO nowhere.tab FROM t1", "SELECT id INTO TEMP tmp FROM t1; SELECT id INTO TEMP tmp FROM t1",
	"CREATE TABLE fresh AS SELECT id FROM t1", "CREATE TEMP TABLE ctas (a, b) AS SELECT id FROM t1",
	"CREATE TEMP TABLE ctas AS SELECT id, id FROM t1", "CREATE TEMP TABLE ctas AS SELECT nothing FROM t1",
	"CREATE VIEW v1 AS SELECT 1", "CREATE OR REPLACE VIEW v1 AS SELECT id FROM t1", "EXPLAIN SELECT nothing FROM t1",
	"EXPLAIN (NOTHING) SELECT id FROM t1", "COPY (SELECT nothing FROM t1) TO STDOUT", "COPY t1 (nothing) TO STDOUT",
	"DECLARE c CURSOR FOR SELECT id FROM t1", "BEGIN; DECLARE c CURSOR FOR SELECT nothing FROM t1; COMMIT",
	"BEGIN; DECLARE c CURSOR FOR SELECT 1 / (id - 2) FROM t1; FETCH ALL c; COMMIT",
	"BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t1 FOR UPDATE; COMMIT",
	"BEGIN; DECLARE c CURSOR FOR SELECT id FROM t1 GROUP BY id; UPDATE t1 SET a = 1 WHERE CURRENT OF c; COMMIT",
	"BEGIN; DECLARE c CURSOR FOR SELECT id FROM t1; UPDATE t1 SET b = 'q' WHERE CURRENT OF c; COMMIT",
	"BEGIN; DECLARE c CURSOR FOR SELECT id FROM t1; FETCH 1 c; UPDATE t2 SET v = 5 WHERE CURRENT OF c; COMMIT",
	"BEGIN; DECLARE c CURSOR FOR SELECT id FROM t1; FETCH 1 c; UPDATE t1 SET b = nothing WHERE CURRENT OF c; COMMIT",
	"BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t1 ORDER BY id; FETCH 1 c; FETCH PRIOR c; COMMIT",
	"FETCH 1 c", "CLOSE c", "EXECUTE nothing", "EXECUTE nothing (1)",
	"PREPARE s (int) AS SELECT id FROM t1 WHERE id = $1; EXECUTE s; DEALLOCATE s",
	"PREPARE s (int) AS SELECT id FROM t1 WHERE id = $1; EXECUTE s (1, 2)",
	"DEALLOCATE s; PREPARE s (int) AS SELECT id FROM t1 WHERE id = $1; EXECUTE s ('x'); DEALLOCATE s",
	"PREPARE s AS SELECT 1; PREPARE s AS SELECT id FROM t1",
	"DEALLOCATE ALL; PREPARE s AS SELECT id FROM t1 WHERE id = $2; EXECUTE s (1)",
	"PREPARE s AS SELECT id FROM t1 WHERE b = 'é' AND nothing", "DEALLOCATE nothing",
	"DO $$BEGIN PERFORM nothing FROM t1; END$$", "DO $$BEGIN UPDATE t1 SET a = 10; END$$",
	"SELECT noting(id) / 0 FROM t1 WHERE id = 1", "SELECT noting(id), nothing FROM t1", "SELECT 1 / (v - 3) FROM rl",
	"SELECT * FROM v6", "SELECT rows_of('x')", "SELECT * FROM rows_of(1, 2)", "SELECT id FROM t1 WHERE b LIKE 'a\\'",
	"SELECT id FROM t1 WHERE b SIMILAR TO '*'", "SELECT id FROM t1 WHERE b ~ '('",
	"SELECT id FROM t1 WHERE b = 'x' ESCAPE", "SELECT id FROM t1 WHERE id BETWEEN 1", "SELECT id FROM t1 t2 t3",
	"SELECT id FROM t1 WHERE", "SELECT id, FROM t1", "SELECT FROM t1 WHERE nothing",
	"SELECT id FROM t1; SELECT nothing FROM t2", "SELECT id FROM t1; SELECT 1 / (v - 1) FROM t2",
	"UPDATE t1 SET b = 'w'; SELECT 1 / (v - 1) FROM t2 ORDER BY k1",
	"BEGIN; UPDATE t1 SET b = 'w'; SELECT nothing FROM t2; COMMIT", "SELECT id FROM t1 WHERE a = 'x' OR id = 1",
	"SELECT id AS " + longName + " FROM t1",
	"SELECT " + longName + ".id FROM t1 AS " + longName,
	"SELECT count(" + longName + ".id) FROM t1 AS " + longName,
	"SELECT id FROM t1 WHERE EXISTS (SELECT FROM t2 AS " + longName + " WHERE k1 = id)",
	"SELECT id FROM t1 AS " + longName + " UNION SELECT 1 FROM t2 AS " + strings.Repeat("cd", 40),
	"UPDATE t1 AS " + longName + " SET b = 'x' WHERE " + longName + ".id = 1",
	"INSERT INTO t3 (x) SELECT " + longName + ".id FROM t1 AS " + longName + " WHERE a > 5",
	"SELECT DISTINCT " + longName + ".id FROM t1 AS " + longName,
	"DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t1 AS " + longName + "; CLOSE c",
	"WITH " + longName + " AS (SELECT id FROM t1) SELECT * FROM " + longName,
	"PREPARE " + longName + " AS SELECT id FROM t1 AS " + longName,
	"SAVEPOINT " + longName,
}

// longName is longer than the server lets a name be.
var longName = strings.Repeat("ab", 40)

// wideShapes are statements in which %s is a list of columns that may be too long.
var wideShapes = []string{
	"SELECT %s FROM t1", "SELECT DISTINCT %s FROM t1", "SELECT %s FROM t1 GROUP BY id",
	"SELECT %s FROM t1 UNION SELECT %s FROM t1", "UPDATE t1 SET b = 'w' RETURNING %s",
	"SELECT %s FROM t1 WHERE EXISTS (SELECT FROM t2 WHERE k1 = id)", "WITH q AS (SELECT %s FROM t1) SELECT 1 FROM q",
	"INSERT INTO t1 (a) SELECT x FROM t3 RETURNING %s", "SELECT ROW(%s) FROM t1",
	"BEGIN; DECLARE c CURSOR FOR SELECT %s FROM t1; CLOSE c; COMMIT",
}

// everyFailure has each shape fail by half of the expressions, which takes minutes.
var everyFailure = flag.Bool("failures.all", false, "fail by more expressions in each shape")

// failures are statements of all shapes that fail or have the server give notices. Each shape has a twenty-fourth of
// the expressions, or one half for an even turn, and the other one for an odd turn.
func failures(turn int) []string {
	all := slices.Clone(failingStatements)
	for i, shape := range failingShapes {
		for j, e := range failingExpressions {
			if *everyFailure && (turn+i+j)%2 == 0 || (turn+i+j)%24 == 0 {
				all = append(all, strings.ReplaceAll(shape, "%s", e))
			}
		}
	}
	for n := 1658; n <= 1665; n++ { // the server takes 1664
		if !*everyFailure && (turn+n)%2 == 0 {
			continue
		}
		list := strings.TrimSuffix(strings.Repeat("id, ", n), ", ")
		for _, shape := range wideShapes {
			all = append(all, strings.ReplaceAll(shape, "%s", list))
		}
	}
	return all
}

// failingSettings are what the server goes by as it tells of an error.
var failingSettings = []string{"", "SET log_parameter_max_length_on_error = -1; SET standard_conforming_strings = off"}

// TestFailingPostgreSQLStatementsAreAnsweredAlike has statements of all shapes fail, directly and through isotap, as a
// text, prepared and bound with format codes, alone and in a transaction: each error and notice has the same fields.
// Nobody but the test analyzes the tables: of two that join on nothing it hangs on the plan whether a condition fails
// that is tested of one.
func TestFailingPostgreSQLStatementsAreAnsweredAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for n, mode := range tapModes[:2] {
		m := newPostgreSQLMirror(t, mode)
		m.evolves = mode.columns
		r, err := m.reflect()
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		still := postgresStep{name: "no autovacuum", messages: texts("ALTER TABLE t1 SET (autovacuum_enabled = off); " +
			"ALTER TABLE t2 SET (autovacuum_enabled = off); ALTER TABLE t3 SET (autovacuum_enabled = off)")}
		if diff := r.run(still); diff != "" {
			t.Fatal(diff)
		}
		for i, s := range failures(n) {
			if mode.columns && testdb.PostgreSQL(t).Major() >= 16 && strings.Contains(s, "t1.isotap_client") {
				continue // the hint is left out; another line of the server's source gives it
			}
			turn := i + i/len(failingExpressions)
			for _, step := range failingSteps(s, turn) {
				if diff := r.run(step); diff != "" {
					t.Errorf("in mode %s, after %q: %s", mode.name, failingSettings[turn%2], diff[:min(len(diff), 1500)])
				}
			}
		}
	}
}

// failingSteps are those of one statement: under one of the settings, and alone or in a transaction.
func failingSteps(s string, turn int) []postgresStep {
	begin := []string{"ROLLBACK", "ROLLBACK; BEGIN"}[turn/2%2]
	steps := []postgresStep{{name: "set", messages: texts("ROLLBACK; RESET ALL; " + failingSettings[turn%2])}}
	add := func(how string, messages []pgproto3.FrontendMessage) {
		steps = append(steps, postgresStep{name: begin, messages: texts(begin)},
			postgresStep{name: how + " after " + begin + ": " + s, messages: messages})
	}
	add("prepared", preparedAs(s, 0))
	add("text", texts(s))
	add("bound with codes", preparedAs(s, 1+turn%7))
	end := "ROLLBACK; DEALLOCATE ALL; CLOSE ALL"
	return append(steps, postgresStep{name: end, messages: texts(end)})
}

// preparedAs prepares, describes and runs a statement, with so many format codes.
func preparedAs(s string, codes int) []pgproto3.FrontendMessage {
	bind := &pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s", ResultFormatCodes: make([]int16, codes)}
	if strings.Contains(s, "$1") {
		bind.Parameters = [][]byte{[]byte("1")}
	}
	return []pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'S', Name: "s"},
		&pgproto3.Parse{Name: "s", Query: s}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, bind,
		&pgproto3.Describe{ObjectType: 'P', Name: "p"}, &pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{}}
}
