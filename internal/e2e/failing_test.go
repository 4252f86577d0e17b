package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// failingMySQLShapes are statements of all shapes that isotap adds to, in which %s is an expression that may fail.
var failingMySQLShapes = []string{
	"SELECT %s FROM t1",
	"SELECT id FROM t1 WHERE %s IS NULL",
	"SELECT id, b FROM t1 ORDER BY %s",
	"SELECT id FROM t1 WHERE id = 2 AND %s IS NOT NULL FOR UPDATE",
	"SELECT t1.id, %s FROM t1 JOIN t2 ON k1 = t1.id",
	"SELECT t1.id FROM t1 LEFT JOIN t2 ON k1 = t1.id AND %s IS NULL",
	"SELECT b, COUNT(*), %s FROM t1 GROUP BY b",
	"SELECT b, COUNT(*) FROM t1 GROUP BY b, %s",
	"SELECT b, COUNT(*) FROM t1 WHERE %s IS NULL GROUP BY b HAVING COUNT(*) > 0",
	"SELECT b, COUNT(*) FROM t1 GROUP BY b HAVING %s IS NULL",
	"SELECT COUNT(%s) FROM t1",
	"SELECT COUNT(*) FROM t1 WHERE %s IS NULL",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id AND %s IS NULL)",
	"SELECT id FROM t1 WHERE id IN (SELECT k1 FROM t2 WHERE %s IS NULL)",
	"SELECT id, (SELECT MAX(v) FROM t2 WHERE %s IS NULL) FROM t1",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id AND %s)",
	"SELECT id FROM t1 UNION SELECT %s FROM t2",
	"SELECT id FROM t1 WHERE %s IS NULL UNION ALL SELECT k1 FROM t2",
	"SELECT id FROM t1 EXCEPT SELECT k1 FROM t2 WHERE %s IS NULL",
	"SELECT DISTINCT %s FROM t1",
	"SELECT DISTINCT id FROM t1 WHERE %s IS NULL",
	"WITH q AS (SELECT %s AS n FROM t1) SELECT * FROM q",
	"WITH q AS (SELECT id FROM t1 WHERE %s IS NULL) SELECT COUNT(*) FROM q",
	"SELECT d.n FROM (SELECT %s AS n, id FROM t1) d",
	"SELECT d.id FROM (SELECT id FROM t1 WHERE %s IS NULL) AS d",
	"SELECT id, SUM(a) OVER (ORDER BY %s) FROM t1",
	"SELECT %s FROM t1, t1 AS o",
	"INSERT INTO t3 (x) VALUES (%s)",
	"INSERT INTO t3 (x) SELECT %s FROM t1",
	"INSERT INTO t3 (x) SELECT id FROM t1 WHERE %s IS NULL",
	"INSERT INTO t1 (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = %s",
	"INSERT IGNORE INTO t1 (id, a) VALUES (91, %s)",
	"REPLACE INTO t1 (id, a) VALUES (1, %s)",
	"UPDATE t1 SET a = %s",
	"UPDATE IGNORE t1 SET a = %s",
	"UPDATE t1 SET b = 'z' WHERE %s IS NULL",
	"UPDATE t1 SET b = (SELECT k2 FROM t2 WHERE %s IS NULL LIMIT 1) WHERE id = 1",
	"UPDATE t1 SET b = 'z' WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id AND %s IS NULL)",
	"UPDATE t1 JOIN t2 ON k1 = id SET b = k2 WHERE %s IS NULL",
	"DELETE FROM t2 WHERE %s IS NULL",
	"DELETE t2 FROM t2 JOIN t1 ON k1 = id WHERE %s IS NULL",
	"DELETE FROM t1 WHERE %s IS NULL RETURNING id",
	"INSERT INTO t1 (id) VALUES (92) RETURNING %s",
	"VALUES (%s)",
}

// failingMySQLExpressions fail, or have the server give a warning, each in a way of its own.
var failingMySQLExpressions = []string{
	"nothing", "nowhere.id", "isotap_1", "isotap_rows.id", "isotap_carried_1", "t1.isotap_client", "t1.nothing",
	"nofunc(1)", "CONCAT('é', nothing)", "1 / 0", "1 / (id - 1)", "CAST('x' AS SIGNED)", "CAST('x' AS DATETIME)",
	"CAST('1' AS DECIMAL(90, 2))", "CAST('1' AS DATETIME(9))", "'x' + 1", "b + 1", "SUM(COUNT(*))", "MAX(id)",
	"COUNT(*)", "(SELECT 1, 2)", "(SELECT id FROM t2)", "(SELECT k1 FROM t2)", "(SELECT v FROM t2)",
	"_latin1'a' COLLATE utf8mb4_bin", "CONCAT(b, _latin1'\\xe9' COLLATE latin1_bin)", "ROW(1, 2)", "(1, 2)",
	"SUM(1) OVER (PARTITION BY nothing)", "ROW_NUMBER() OVER ()", "id", "v", "''", "1", "2", "3", "DEFAULT", "*",
	"t1.*", "9223372036854775807 + 1", "id - 18446744073709551615", "INTERVAL 1 DAY", "a.b.c.d",
	"JSON_EXTRACT('{', '$')", "JSON_EXTRACT('{}', '$[')", "GROUPING(id)", "DEFAULT(nothing)", "VALUES(nothing)",
	"@x := nothing", "EXTRACTVALUE('<a', '/a')", "DATE_ADD('2026-02-30', INTERVAL 1 DAY)", "nothing + 1",
	"SLEEP(NULL)", "LAST_INSERT_ID('x')", "SUBSTR(b, nothing)", "IF(1)", "REPEAT('a', 99999999999)",
	"MATCH (b) AGAINST ('x')", "`" + strings.Repeat("ab", 40) + "`", "id AS `" + strings.Repeat("ab", 140) + "`",
	"1 IN (SELECT 1, 2)", "(id, a) = (SELECT 1)", "(id, a) IN ((1, 2), (3))", "TIMESTAMP'x'", "x'1'",
	"'a' 'b' nothing", "id ORDER", ")",
}

// failingMySQLStatements are others.
var failingMySQLStatements = []string{
	"SELECT id FROM t1 ORDER BY 2", "SELECT id FROM t1 ORDER BY 3", "SELECT id FROM t1 ORDER BY 0",
	"SELECT id, b FROM t1 GROUP BY 3", "SELECT b FROM t1 GROUP BY 2", "SELECT DISTINCT id FROM t1 ORDER BY 2",
	"SELECT DISTINCT id FROM t1 ORDER BY b", "SELECT DISTINCT b FROM t1 ORDER BY id + 1",
	"SELECT id FROM t1 UNION SELECT k1, k2 FROM t2", "SELECT id FROM t1 UNION ALL SELECT k1, k2 FROM t2",
	"SELECT id, a FROM t1 INTERSECT SELECT k1 FROM t2", "SELECT * FROM t1 EXCEPT SELECT * FROM t3",
	"SELECT * FROM t1 UNION SELECT * FROM t2", "SELECT * FROM t1 UNION ALL SELECT * FROM t2",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 ORDER BY 2",
	"SELECT id FROM t1 UNION ALL SELECT k1 FROM t2 ORDER BY nothing",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 ORDER BY t1.id",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2 LIMIT nothing",
	"(SELECT id FROM t1 ORDER BY nothing) UNION (SELECT k1 FROM t2)", "SELECT id INTO @x FROM t1",
	"SELECT id, b INTO @x FROM t1 LIMIT 1", "SELECT id FROM t1 LIMIT 1 INTO nothing",
	"SELECT id FROM t1 FOR UPDATE OF nothing", "SELECT id FROM t1 FOR UPDATE OF t2",
	"SELECT * FROM (SELECT id FROM t1) AS d (a, b)", "SELECT * FROM (SELECT id, id FROM t1) AS d",
	"SELECT * FROM (SELECT * FROM t1 JOIN t3 AS t1x) AS d", "SELECT * FROM (SELECT * FROM t1 AS a, t1 AS b) AS d",
	"SELECT * FROM (SELECT id FROM t1)", "WITH q (a, b) AS (SELECT id FROM t1) SELECT * FROM q",
	"WITH q (a, a) AS (SELECT id, a FROM t1) SELECT * FROM q", "WITH q AS (SELECT id, id FROM t1) SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT id FROM t1 UNION SELECT id, 1 FROM q) SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT id FROM q) SELECT * FROM q",
	"WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q) SELECT n FROM q, t1",
	"WITH q AS (SELECT 1), q AS (SELECT 2) SELECT * FROM q",
	"SELECT id FROM t1 WHERE id = (SELECT k1, v FROM t2 LIMIT 1)",
	"SELECT id FROM t1 WHERE id IN (SELECT k1, v FROM t2)", "SELECT id FROM t1 WHERE (id, a) IN (SELECT k1 FROM t2)",
	"SELECT id FROM t1 WHERE (id, a) = (SELECT k1 FROM t2 LIMIT 1)", "SELECT (SELECT k1, v FROM t2 LIMIT 1) FROM t1",
	"SELECT (SELECT * FROM t2 LIMIT 1) FROM t1", "SELECT id FROM t1 WHERE id = (SELECT k1 FROM t2)",
	"SELECT (SELECT k1 FROM t2) FROM t1", "SELECT id FROM t1 WHERE id IN (SELECT k1 FROM t2 LIMIT 1)",
	"UPDATE t1 SET a = (SELECT k1 FROM t2)", "UPDATE t1 SET a = (SELECT k1, v FROM t2 LIMIT 1)",
	"UPDATE t1 SET a = (SELECT MAX(a) FROM t1)", "DELETE FROM t1 WHERE id = (SELECT MAX(id) FROM t1)",
	"INSERT INTO t1 (a) SELECT MAX(a) FROM t1", "UPDATE t1, t2 SET a = (SELECT MAX(id) FROM t1)",
	"INSERT INTO t3 VALUES (1, 2, 'p', 4)", "INSERT INTO t3 VALUES (1, 2)", "INSERT INTO t3 (x, y) VALUES (1)",
	"INSERT INTO t3 (x) VALUES (1), (1, 2)", "INSERT INTO t3 (x, y) VALUES (1, 2), (3)",
	"INSERT INTO t3 (x, y) SELECT 1", "INSERT INTO t3 (x) SELECT id, a FROM t1",
	"INSERT INTO t3 (x) SELECT * FROM t1", "INSERT INTO t3 SELECT * FROM t1", "INSERT INTO t3 SELECT id, a FROM t1",
	"INSERT INTO t3 TABLE t1", "INSERT INTO t3 (x, x) VALUES (1, 2)", "INSERT INTO t3 (x, nothing) VALUES (1, 2)",
	"INSERT INTO t3 SET nothing = 1", "INSERT INTO t3 SET x = nothing", "INSERT INTO t3 (x) VALUES ('x')",
	"INSERT INTO t3 (x) SELECT b FROM t1", "INSERT INTO t3 (e) VALUES ('z')",
	"INSERT INTO t3 (x, e) VALUES (1, 'p'), (2, 'z'), (3, 'y')",
	"INSERT IGNORE INTO t3 (x, e) VALUES (1, 'p'), ('b', 'z'), (3, 'y')", "INSERT INTO t1 (id) VALUES (1)",
	"INSERT INTO t1 (a) VALUES (50), (10)", "INSERT IGNORE INTO t1 (id, a) VALUES (1, 2), (71, 10), (72, 'x')",
	"INSERT INTO t1 (id) SELECT k1 FROM t2", "INSERT IGNORE INTO t1 (id) SELECT k1 FROM t2",
	"INSERT INTO t1 SELECT * FROM t1", "REPLACE INTO t1 (id, nothing) VALUES (1, 2)", "REPLACE INTO t1 VALUES (1)",
	"REPLACE INTO t1 SELECT * FROM t2", "INSERT INTO t2 (k1) VALUES (NULL)",
	"INSERT INTO t2 (k1, k2, v) VALUES (9, 'z', NULL)", "INSERT INTO t2 (k1, k2) VALUES (9, 'much too long')",
	"INSERT IGNORE INTO t2 (k1, k2, v) VALUES (9, 'much too long', NULL)", "INSERT INTO t2 (k1) VALUES (9)",
	"INSERT INTO t1 (c) VALUES (123456789)", "INSERT INTO t1 (c) VALUES (1.23456)",
	"INSERT INTO t1 (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE nothing = 3",
	"INSERT INTO t1 (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(nothing)",
	"INSERT INTO t1 (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = 2",
	"INSERT INTO t1 (id, a) VALUES (1, 2) AS n ON DUPLICATE KEY UPDATE a = n.nothing",
	"INSERT INTO t1 (id, a) VALUES (1, 2) AS n (x) ON DUPLICATE KEY UPDATE a = x",
	"INSERT INTO t1 (id, a) VALUES (1, 2) AS n (x, y) ON DUPLICATE KEY UPDATE a = z", "UPDATE t1 SET a = 1, a = 2",
	"UPDATE t1 SET a = 10", "UPDATE t1 SET id = id + 1", "UPDATE IGNORE t1 SET a = 10", "UPDATE t1 SET id = DEFAULT",
	"UPDATE t1 SET a = 'x'", "UPDATE t1 SET c = 123456789", "UPDATE t1 SET b = REPEAT('x', 30)",
	"UPDATE IGNORE t1 SET b = REPEAT('x', 30), c = 123456789", "UPDATE t2 SET v = NULL",
	"UPDATE IGNORE t2 SET v = NULL", "UPDATE t1 SET nothing = 1", "UPDATE t1 AS x SET t1.a = 1",
	"UPDATE t1 SET a = MAX(a)", "UPDATE t1 SET a = 1 WHERE COUNT(*) > 1",
	"UPDATE t1 SET a = 1 ORDER BY nothing LIMIT 1", "UPDATE t1 SET a = 1 LIMIT -1",
	"UPDATE t1, t2 SET a = 1 LIMIT 1", "UPDATE t1 JOIN t2 ON k1 = nothing SET a = 1", "UPDATE t1, t1 SET a = 1",
	"UPDATE t1 SET b = 'x' WHERE b = 1", "UPDATE t1 SET b = 'x' WHERE b + 1 > 0", "DELETE FROM t1 WHERE b = 1",
	"DELETE FROM t1 ORDER BY nothing LIMIT 1", "DELETE nothing FROM t1", "DELETE t2 FROM t1",
	"DELETE t1 FROM t1 AS x", "DELETE FROM t1 USING t1 AS x", "DELETE FROM t1 LIMIT nothing",
	"DELETE FROM t1 RETURNING nothing", "DELETE FROM t1 WHERE id = 1 RETURNING MAX(id)",
	"INSERT INTO t1 (id) VALUES (95) RETURNING nothing", "INSERT INTO t1 (id) VALUES (1) RETURNING id",
	"SELECT * FROM t1 JOIN t2 USING (nothing)", "SELECT * FROM t1 JOIN t3 USING (id)",
	"SELECT * FROM t1 NATURAL JOIN t2 WHERE nothing", "SELECT id FROM t1 JOIN t1", "SELECT id FROM t1 a, t1 b",
	"SELECT a.id FROM t1 a JOIN t1 b ON id = 1", "SELECT * FROM t1 JOIN t2 ON id = k2",
	"SELECT * FROM t1, LATERAL (SELECT nothing) l", "SELECT * FROM t1, (SELECT t1.id) l",
	"SELECT * FROM t1, nowhere", "SELECT * FROM t1 LIMIT 'x'", "SELECT * FROM t1 LIMIT id",
	"SELECT * FROM t1 LIMIT -1", "SELECT b FROM t1 HAVING nothing", "SELECT id FROM t1 HAVING b = 1",
	"SELECT id, b FROM t1 GROUP BY b", "SELECT *, COUNT(*) FROM t1", "SELECT COUNT(*), b FROM t1 ORDER BY id",
	"SELECT COUNT(*) FROM t1 GROUP BY b ORDER BY c", "SELECT SUM(a) FROM t1 GROUP BY SUM(a)",
	"SELECT SUM(a) OVER w FROM t1", "SELECT id FROM t1 WHERE SUM(a) OVER () > 1",
	"SELECT LAG(id, -1) OVER (ORDER BY id) FROM t1", "SELECT NTILE(0) OVER (ORDER BY id) FROM t1",
	"SELECT JSON_OBJECTAGG(b, 1) FROM t1", "SELECT JSON_OBJECTAGG(NULL, 1) FROM t1",
	"SELECT GROUP_CONCAT(b, j) FROM t1, t2", "SELECT id, t1.b FROM t1 FORCE INDEX (nothing)",
	"SELECT id FROM t1 USE INDEX (nothing) WHERE id = 1", "SELECT id FROM t1 PARTITION (p0)",
	"SELECT id FROM t1 WHERE id = 'x'", "SELECT id FROM t1 WHERE b = 0", "SELECT id FROM t1 WHERE id IN ('1x', 2)",
	"SELECT id FROM t1 WHERE id BETWEEN '1x' AND '3x'",
	"SELECT id FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k2 = id)",
	"SELECT id FROM t1 WHERE b IN (SELECT v FROM t2)", "SELECT id FROM t1 WHERE id IN (SELECT k2 FROM t2)",
	"SELECT id FROM t1 WHERE (SELECT MAX(k2) FROM t2) > 0", "SELECT (SELECT MAX(k2 + 0) FROM t2) FROM t1",
	"SELECT COUNT(*) FROM t1 WHERE b = 0", "SELECT b, COUNT(*) FROM t1 WHERE b < 3 GROUP BY b",
	"SELECT DISTINCT b FROM t1 WHERE b < 3", "SELECT id FROM t1 WHERE b = 0 UNION SELECT k1 FROM t2 WHERE k2 = 0",
	"SELECT id FROM t1 WHERE b = 0 UNION ALL SELECT k1 FROM t2 WHERE k2 = 0",
	"SELECT id FROM t1 WHERE b = 0 FOR UPDATE", "SELECT id FROM t1 WHERE", "SELECT id, FROM t1",
	"SELECT id FROM t1 t2 t3", "SELECT id FROM t1; SELECT nothing FROM t2",
	"SELECT id FROM t1; SELECT v + 'x' FROM t2; SELECT 1", "CREATE TABLE t1 AS SELECT id FROM t2",
	"CREATE TABLE fresh AS SELECT nothing FROM t1", "CREATE TEMPORARY TABLE ctas AS SELECT id, id FROM t1",
	"CREATE VIEW v1 AS SELECT nothing FROM t1", "CREATE VIEW v1 (a, b) AS SELECT id FROM t1",
	"EXPLAIN SELECT nothing FROM t1", "PREPARE s FROM 'SELECT nothing FROM t1'",
	"PREPARE s FROM 'SELECT id FROM t1 WHERE id = ?'; EXECUTE s",
	"PREPARE s FROM 'SELECT id FROM t1 WHERE b = 0'; EXECUTE s", "PREPARE s FROM 'SELECT id FROM t1; SELECT 1'",
	"EXECUTE nothing", "DEALLOCATE PREPARE nothing", "SELECT SQL_CALC_FOUND_ROWS id FROM t1 WHERE b = 0 LIMIT 1",
	"SELECT id FROM t1 PROCEDURE ANALYSE()", "SELECT id FROM t1 ORDER BY b + 0",
	"SELECT id FROM t1 ORDER BY b + 0 LIMIT 1", "SELECT b FROM t1 GROUP BY b WITH ROLLUP HAVING b + 0",
	"SELECT id FROM t1 GROUP BY id ORDER BY MAX(b + 0)", "SELECT @x := b + 0 FROM t1",
	"SELECT id FROM t1 WHERE ? = 1", "SELECT `id FROM t1", "SELECT 'id FROM t1", "SELECT id FROM t1 /* open",
	"SELECT id FROM mirror_a.nowhere", "SELECT id FROM nowhere.t1", "DO nothing",
	"SET @x = (SELECT nothing FROM t1)", "SET @x = (SELECT id FROM t1)",
	"HANDLER t1 OPEN; HANDLER t1 READ nothing FIRST; HANDLER t1 CLOSE", "TABLE t1 UNION TABLE t3",
	"VALUES ROW(1, 2), ROW(3)", "TABLE t1 ORDER BY 9", "CALL nowhere()",
}

// wideMySQLShapes are statements in which %s is a list of columns that may be too long.
var wideMySQLShapes = []string{
	"SELECT %s FROM t1", "SELECT %s FROM t1 GROUP BY id",
	"SELECT %s FROM t1 UNION SELECT %s FROM t1", "SELECT %s FROM t1 ORDER BY b",
	"SELECT %s FROM t1 WHERE EXISTS (SELECT 1 FROM t2 WHERE k1 = id)", "SELECT 1 FROM (SELECT %s FROM t1) d",
}

// mysqlFailures are statements of all shapes that fail or that the server warns of. Each shape has one in 24
// expressions, or one in three.
func mysqlFailures() []string {
	all := slices.Clone(failingMySQLStatements)
	for i, shape := range failingMySQLShapes {
		for j, e := range failingMySQLExpressions {
			if *everyFailure && (i+j)%3 == 0 || (i+j)%24 == 0 {
				all = append(all, strings.ReplaceAll(shape, "%s", e))
			}
		}
	}
	for _, n := range []int{4092, 4093, 4094, 4095, 4096, 4097} { // the server takes 4096, in a temporary table fewer
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint("id + ", i, " AS c", i)
		}
		shapes := wideMySQLShapes
		if *everyFailure || n == 4096 { // it takes the server seconds
			shapes = append(slices.Clip(shapes), "SELECT DISTINCT %s FROM t1")
		}
		for _, shape := range shapes {
			all = append(all, strings.ReplaceAll(shape, "%s", strings.Join(list, ", ")))
		}
	}
	return all
}

// TestFailingStatementsAreAnsweredAsByTheServer has statements of all shapes fail, directly and through isotap, as
// texts and prepared: errors are equal, and so are all warnings. The tables have no indexes but their keys: which index
// holds all that a query asks for hangs on what it asks for, and the order of its rows and warnings on that.
func TestFailingStatementsAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil)
	r := m.reflect(t)
	defer r.close()
	for _, s := range []string{"ALTER TABLE t1 DROP KEY kb, DROP KEY ua", "ALTER TABLE t2 DROP KEY kv",
		"ALTER TABLE t3 DROP KEY kx"} {
		r.both(command{name: s, bytes: query(s)})
	}
	for i, s := range mysqlFailures() {
		mode := []string{"DEFAULT", "''", "'ONLY_FULL_GROUP_BY'"}[(i+i/len(failingMySQLExpressions))%3]
		for _, st := range []randomStatement{{text: "SET sql_mode = " + mode},
			{text: "BEGIN"}, {text: s}, {text: "SHOW WARNINGS", ordered: true}, {text: "SHOW COUNT(*) ERRORS"},
			{text: "ROLLBACK"}, {text: "BEGIN"}, {text: s, prepared: true}, {text: "SHOW WARNINGS", ordered: true}, {text: "ROLLBACK"}} {
			if diff := r.run(st); diff != "" {
				t.Errorf("in mode %s: %s: %s", mode, s[:min(len(s), 300)], diff[:min(len(diff), 1200)])
			}
		}
	}
}
