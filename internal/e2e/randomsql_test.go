package e2e

import (
	"fmt"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"
)

// mirrorTables are what random statements run on: a table with an automatic key and a second unique
// one, one with a key of two parts, one with no key at all. Servers keep the statistics that they have: when
// they count anew in between, equal statements get other plans, which show in the flags of columns.
var mirrorTables = []string{
	"CREATE TABLE t1 (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20), c DECIMAL(8,2), UNIQUE KEY ua (a), " +
		"KEY kb (b)) STATS_AUTO_RECALC = 0",
	"CREATE TABLE t2 (k1 INT, k2 VARCHAR(8), v INT NOT NULL DEFAULT 7, f FLOAT, j TEXT, PRIMARY KEY (k1, k2), " +
		"KEY kv (v)) STATS_AUTO_RECALC = 0",
	"CREATE TABLE t3 (x INT, y DOUBLE, e ENUM('p', 'q', 'r'), KEY kx (x)) STATS_AUTO_RECALC = 0",
	"INSERT INTO t1 VALUES (1, 10, 'one', 1.5), (2, 20, 'two', 2), (3, NULL, NULL, NULL), (4, 40, 'one', 4.25)",
	"INSERT INTO t2 VALUES (1, 'a', 1, 1.25, 'x'), (1, 'b', 2, NULL, NULL), (2, 'a', 3, 0.1, 'yy')",
	"INSERT INTO t3 VALUES (1, 1, 'p'), (1, 1, 'p'), (2, 2.5, 'q'), (NULL, NULL, NULL)",
}

// A randomStatement is one statement with its parameters, if it is to be prepared.
type randomStatement struct {
	text     string
	prepared bool
	params   []any // int64, string
	// ordered says that its rows come in an order that the statement itself settles.
	ordered bool
	// converts says that it compares texts with numbers: the server warns as often as its plan has it compare.
	converts bool
}

// A chooser makes the choices of a writer of random SQL.
type chooser struct{ t *rapid.T }

func (c chooser) n(below int) int { return rapid.IntRange(0, below-1).Draw(c.t, "n") }

func (c chooser) oneOf(texts ...string) string { return rapid.SampledFrom(texts).Draw(c.t, "text") }

// maybe returns the text once in so many times.
func (c chooser) maybe(in int, text string) string {
	if c.n(in) == 0 {
		return text
	}
	return ""
}

// values are an integer and a text, as literals or parameters.
type values interface {
	int() string
	str() string
}

// conditionOn is a condition over t1, which both families have, under the name given.
func (c chooser) conditionOn(t string, v values) string {
	switch c.n(7) {
	case 0:
		return t + ".id = " + v.int()
	case 1:
		return t + ".a > " + v.int()
	case 2:
		return t + ".b = " + v.str()
	case 3:
		return t + ".id IN (" + v.int() + ", " + v.int() + ")"
	case 4:
		return t + ".a IS NULL OR " + t + ".b LIKE 'o%'"
	case 5:
		return t + ".id BETWEEN " + v.int() + " AND " + v.int()
	}
	return "NOT (" + t + ".c < " + v.int() + ")"
}

// A writer of random SQL. Types are right by construction, so that most statements succeed; what SQL
// leaves to the server (an order, a choice) is left out.
type sqlWriter struct {
	chooser
	s randomStatement
}

func drawStatement(t *rapid.T) randomStatement {
	w := &sqlWriter{chooser: chooser{t}, s: randomStatement{prepared: rapid.IntRange(0, 2).Draw(t, "prepared") == 0}}
	w.s.text = w.statement()
	if strings.HasPrefix(w.s.text, "!") { // not for preparing
		w.s.text, w.s.prepared = w.s.text[1:], false
	}
	return w.s
}

// another returns a second row of VALUES, or none.
func (w *sqlWriter) another(row func() string) string {
	if w.n(2) == 0 {
		return ""
	}
	return ", " + row()
}

func (w *sqlWriter) int() string {
	v := int64(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 10, 20, 40, 41}).Draw(w.t, "int"))
	if w.s.prepared && w.n(2) == 0 {
		w.s.params = append(w.s.params, v)
		return "?"
	}
	return strconv.FormatInt(v, 10)
}

func (w *sqlWriter) str() string {
	v := w.oneOf("a", "b", "one", "two", "ONE", "", "é", "x'y")
	if w.s.prepared && w.n(2) == 0 {
		w.s.params = append(w.s.params, v)
		return "?"
	}
	return "'" + strings.ReplaceAll(v, "'", "''") + "'"
}

func (w *sqlWriter) intOrNull() string {
	if w.n(5) == 0 {
		return "NULL"
	}
	return w.int()
}

func (w *sqlWriter) statement() string {
	switch w.n(26) {
	case 0, 1, 2:
		return w.simpleSelect()
	case 3:
		return w.join()
	case 4:
		return w.aggregate()
	case 5:
		return w.distinct()
	case 6:
		return w.setOperation()
	case 7:
		return w.derived()
	case 8:
		return w.subquery()
	case 9, 10, 11:
		return w.insert()
	case 12:
		return w.upsert()
	case 13:
		return w.insertSelect()
	case 14, 15, 16:
		return w.update()
	case 17:
		return w.updateTwo()
	case 18, 19:
		return w.delete()
	case 20, 21, 22:
		return w.transaction()
	case 23:
		return w.several()
	case 24:
		return w.into()
	}
	return w.diagnostics()
}

func (w *sqlWriter) where1(t string) string { return w.conditionOn(t, w) }

func (w *sqlWriter) simpleSelect() string {
	switch w.n(6) {
	case 0:
		w.s.ordered = true
		return "SELECT * FROM t1 WHERE " + w.where1("t1") + " ORDER BY id" +
			w.maybe(2, " LIMIT "+w.oneOf("1", "2", "1, 2"))
	case 1:
		return "SELECT a, b FROM t1 WHERE " + w.where1("t1") + w.maybe(3, " FOR UPDATE")
	case 2:
		return "SELECT /* note */ t2.*, 1 + v AS w FROM t2 WHERE v >= " + w.int() + w.maybe(3, " LOCK IN SHARE MODE")
	case 3:
		return "SELECT * FROM t3 WHERE x = " + w.int() + " OR y IS NULL"
	case 4:
		return "(SELECT id, c FROM t1 AS q WHERE " + w.where1("q") + ")"
	}
	return "SELECT `id`, CASE WHEN a > " + w.int() + " THEN 'big' ELSE b END FROM t1"
}

func (w *sqlWriter) join() string {
	join := w.oneOf("JOIN", "LEFT JOIN", "RIGHT JOIN")
	switch w.n(4) {
	case 0:
		return "SELECT * FROM t1 " + join + " t2 ON t2.k1 = t1.id"
	case 1:
		return "SELECT p.id, q.id FROM t1 p " + join + " t1 q ON q.a > p.a WHERE " + w.where1("p")
	case 2:
		return "SELECT t1.b, t3.* FROM t1, t3 WHERE t1.id = t3.x"
	}
	return "SELECT k1, k2, x FROM t2 " + join + " t3 ON x = k1 AND e = " + w.oneOf("'p'", "'q'")
}

func (w *sqlWriter) aggregate() string {
	switch w.n(8) {
	case 0:
		return "SELECT COUNT(*), SUM(a), MAX(b) FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "SELECT k1, COUNT(*), MIN(v) FROM t2 GROUP BY k1" + w.maybe(3, " WITH ROLLUP")
	case 2:
		return "SELECT b, SUM(c) AS s FROM t1 GROUP BY b HAVING s > " + w.int()
	case 3:
		return "SELECT COUNT(DISTINCT x) FROM t3"
	case 4:
		return "SELECT t1.b, COUNT(k1) FROM t1 LEFT JOIN t2 ON k1 = id GROUP BY t1.b"
	case 5:
		return "SELECT a, COUNT(*) FROM t1 GROUP BY a, " + w.converted()
	case 6:
		return "SELECT x AS n, SUM(y) FROM t3 GROUP BY x HAVING " + w.oneOf("n > 'q'", "n > '1'", "MAX(e) > 1",
			"n / 0 IS NULL", w.converted())
	}
	w.s.ordered = true
	return "SELECT k1, SUM(v) FROM t2 GROUP BY k1 ORDER BY k1 LIMIT 1"
}

// converted is an expression of whose values the server may warn.
func (w *sqlWriter) converted() string {
	return w.oneOf("'a' || 'b'", "'1' + 1", "1 / 0", "CAST('2x' AS SIGNED)", "DATE('no')", "LOWER('A')", "2 > '1x'")
}

func (w *sqlWriter) distinct() string {
	if w.n(2) == 0 {
		return "SELECT DISTINCT b FROM t1 WHERE " + w.where1("t1")
	}
	return "SELECT DISTINCT x, e FROM t3"
}

func (w *sqlWriter) setOperation() string {
	op := w.oneOf("UNION", "UNION ALL", "INTERSECT", "EXCEPT")
	switch w.n(3) {
	case 0:
		return "SELECT id FROM t1 WHERE " + w.where1("t1") + " " + op + " SELECT k1 FROM t2"
	case 1:
		return "(SELECT a, b FROM t1) " + op + " (SELECT k1, k2 FROM t2 WHERE v > " + w.int() + ")"
	}
	w.s.ordered = true
	return "SELECT id FROM t1 " + op + " SELECT x FROM t3 WHERE x IS NOT NULL " + "ORDER BY 1"
}

func (w *sqlWriter) derived() string {
	switch w.n(6) {
	case 0:
		return "SELECT * FROM (SELECT id, a FROM t1 WHERE " + w.where1("t1") + ") AS d"
	case 1:
		return "SELECT d.k1, t1.b FROM (SELECT k1, MAX(v) AS m FROM t2 GROUP BY k1) d JOIN t1 ON t1.id = d.k1"
	case 2:
		return "WITH q AS (SELECT id, b FROM t1) SELECT * FROM q WHERE id > " + w.int()
	case 3:
		return "WITH q (n, m) AS (SELECT k1, v FROM t2), r AS (SELECT x FROM t3) SELECT q.*, r.x FROM q LEFT JOIN r ON r.x = q.n"
	case 4:
		return "SELECT COUNT(*) FROM (SELECT DISTINCT b FROM t1) d"
	}
	return "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS rn, SUM(a) OVER (PARTITION BY b) FROM t1"
}

func (w *sqlWriter) subquery() string {
	switch w.n(9) {
	case 3:
		return "SELECT id, b FROM t1 WHERE id NOT IN (SELECT x FROM t3 WHERE x " + w.oneOf("<", "=") + " " + w.int() + ")"
	case 4:
		return "SELECT a, IFNULL((SELECT MAX(v) FROM t2 WHERE k1 = id AND k2 <> " + w.str() + "), 0) FROM t1 WHERE " + w.where1("t1")
	case 5:
		return "SELECT " + w.oneOf("COUNT(*)", "id, b", "MAX(c)") + " FROM t1 WHERE " + w.oneOf("", "NOT ") +
			"EXISTS (SELECT 1 FROM t2, t3 WHERE k1 = " + w.oneOf("id", "1", "x") + " AND x = " + w.oneOf("k1", "id", "2") + ")"
	case 6:
		return "SELECT EXISTS (SELECT * FROM t2 WHERE v = " + w.int() + "), (SELECT COUNT(*) FROM t3)"
	case 7:
		return "SELECT x, e FROM t3 WHERE x = (SELECT k1 FROM t2 WHERE " + w.oneOf("v < 2", "k1 = x", "k2 = 'a'") + ")"
	case 0:
		return "SELECT * FROM t1 WHERE id IN (SELECT k1 FROM t2 WHERE v > " + w.int() + ")"
	case 1:
		return "SELECT id, (SELECT COUNT(*) FROM t2 WHERE k1 = t1.id) AS n FROM t1"
	case 2:
		return "SELECT k1 FROM t2 WHERE EXISTS (SELECT * FROM t3 WHERE x = k1)"
	}
	return "SELECT MAX(id) FROM t1 WHERE a = (SELECT MAX(a) FROM t1)"
}

func (w *sqlWriter) row1() string {
	return "(" + w.intOrNull() + ", " + w.str() + ", " + w.int() + ")"
}

func (w *sqlWriter) insert() string {
	verb := w.oneOf("INSERT", "INSERT", "INSERT IGNORE")
	switch w.n(7) {
	case 0, 1:
		return verb + " INTO t1 (a, b, c) VALUES " + w.row1() + w.another(w.row1)
	case 2:
		return verb + " INTO t2 VALUES (" + w.int() + ", " + w.str() + ", DEFAULT, NULL, 'j')"
	case 3:
		return verb + " INTO t2 SET k1 = " + w.int() + ", k2 = " + w.str() + ", v = " + w.int()
	case 4:
		return verb + " t3 VALUES (" + w.intOrNull() + ", " + w.int() + ", 'p'), (" + w.int() + ", NULL, NULL)"
	case 5:
		return "INSERT INTO t1 () VALUES ()"
	}
	return verb + " INTO t1 VALUES (" + w.int() + ", " + w.intOrNull() + ", " + w.str() + ", 0.125)"
}

func (w *sqlWriter) upsert() string {
	switch w.n(5) {
	case 3:
		return "INSERT INTO t2 (k1, k2, v) SELECT t1.id, 'a', " + w.int() + " FROM t1 WHERE " + w.where1("t1") +
			" ON DUPLICATE KEY UPDATE v = VALUES(v)" + w.maybe(2, " + t2.v") + w.maybe(3, ", t2.j = "+w.str())
	case 4:
		return "INSERT INTO t2 (k1, k2, v) SELECT " + w.int() + ", 'b', " + w.oneOf("3", "(SELECT COUNT(*) FROM t3 WHERE t3.y > 1)") +
			" ON DUPLICATE KEY UPDATE " + w.oneOf("v = VALUES(v) + v", "v = (SELECT COUNT(*) FROM t3 WHERE t3.y > 1)", "v = v && 1, f = 2")
	case 0:
		return "INSERT INTO t1 (id, a, b) VALUES (" + w.int() + ", " + w.int() + ", " + w.str() +
			") ON DUPLICATE KEY UPDATE b = " + w.str() + ", c = c + 1"
	case 1:
		return "INSERT INTO t2 (k1, k2, v) VALUES (" + w.int() + ", 'a', 1), (1, 'b', " + w.int() +
			") ON DUPLICATE KEY UPDATE v = VALUES(v) + v"
	}
	// The row differs from all others: of equal ones isotap cannot give the server's count.
	return "REPLACE INTO t2 (k1, k2, v, j) VALUES (" + w.int() + ", " + w.str() + ", " + w.int() + ", '" +
		strconv.Itoa(rapid.IntRange(0, 1<<40).Draw(w.t, "unique")) + "')"
}

func (w *sqlWriter) insertSelect() string {
	switch w.n(4) {
	case 0:
		return "INSERT INTO t3 (x, y) SELECT id, a FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "INSERT IGNORE INTO t2 (k1, k2) SELECT id, COALESCE(LEFT(b, 8), 'n') FROM t1 ORDER BY id"
	case 2:
		return "INSERT INTO t3 SELECT * FROM t3 WHERE x = " + w.int()
	}
	return "INSERT INTO t3 (x) SELECT COUNT(*) FROM t2 UNION SELECT " + w.int()
}

func (w *sqlWriter) update() string {
	switch w.n(8) {
	case 0:
		return "UPDATE t1 SET b = " + w.str() + " WHERE " + w.where1("t1")
	case 1:
		return "UPDATE t1 SET c = c + " + w.int() + ", b = CONCAT(b, c) WHERE id = " + w.int()
	case 2:
		return "UPDATE t1 SET a = " + w.intOrNull() + " WHERE id = " + w.int()
	case 3:
		return "UPDATE t2 SET v = v + 1, f = v / 3 WHERE k1 <= " + w.int()
	case 4:
		return "UPDATE IGNORE t2 SET k2 = " + w.str() + " WHERE k1 = " + w.int() + " ORDER BY k1, k2 LIMIT 1"
	case 5:
		return "UPDATE t3 SET x = x + 1, e = " + w.oneOf("'p'", "'q'", "NULL") + " WHERE x IS NOT NULL"
	case 6:
		return "UPDATE t1 SET id = id + 100 WHERE id = " + w.int()
	}
	return "UPDATE t1 SET c = (SELECT MAX(v) FROM t2 WHERE k1 = t1.id)"
}

func (w *sqlWriter) updateTwo() string {
	if w.n(2) == 0 {
		return "UPDATE t1 JOIN t2 ON t2.k1 = t1.id SET t1.a = " + w.intOrNull() + " WHERE t2.v > " + w.int()
	}
	return "UPDATE t1, t2 SET t1.c = " + w.int() + ", t2.v = " + w.int() + " WHERE t2.k1 = t1.id"
}

func (w *sqlWriter) delete() string {
	switch w.n(6) {
	case 0:
		return "DELETE FROM t1 WHERE " + w.where1("t1")
	case 1:
		return "DELETE FROM t2 WHERE k1 = " + w.int() + " ORDER BY k1, k2 LIMIT 1"
	case 2:
		return "DELETE t2 FROM t2 JOIN t1 ON t1.id = t2.k1 WHERE t1.b = " + w.str()
	case 3:
		return "DELETE t1, t2 FROM t1 JOIN t2 ON t2.k1 = t1.id WHERE t1.id = " + w.int()
	case 4:
		return "DELETE FROM t3 WHERE x = " + w.int() + " OR y > " + w.int()
	}
	return "DELETE FROM t2 WHERE v NOT IN (SELECT id FROM t1)"
}

func (w *sqlWriter) transaction() string {
	return w.oneOf("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE SAVEPOINT s",
		"SET autocommit = 0",
		"SET autocommit = 1", "COMMIT AND CHAIN", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"START TRANSACTION WITH CONSISTENT SNAPSHOT")
}

func (w *sqlWriter) several() string {
	w.s.prepared = false
	var parts []string
	for range 2 + w.n(2) {
		switch w.n(5) {
		case 0:
			parts = append(parts, w.simpleSelect())
		case 1:
			parts = append(parts, w.insert())
		case 2:
			parts = append(parts, w.update())
		case 3:
			parts = append(parts, w.delete())
		default:
			parts = append(parts, w.oneOf("BEGIN", "COMMIT", "SELECT 1", "DO 1"))
		}
	}
	w.s.ordered = false
	return "!" + strings.Join(parts, "; ")
}

func (w *sqlWriter) into() string {
	switch w.n(3) {
	case 0:
		return "SELECT a INTO @v FROM t1 WHERE id = " + w.int()
	case 1:
		return "SET @v = (SELECT COUNT(*) FROM t2)"
	}
	return "SELECT @v, @@warning_count"
}

func (w *sqlWriter) diagnostics() string {
	return "!" + w.oneOf("SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SELECT ROW_COUNT()", "SELECT 1",
		"SELECT FOUND_ROWS()", "SELECT LAST_INSERT_ID()",
		"SELECT @@in_transaction", "DESCRIBE t1", "TRUNCATE t3", "SELECT @@warning_count")
}

// commands returns what says the statement: its text, or the preparation and the execution of the nth prepared
// statement.
func (s *randomStatement) commands(prepared int) []command {
	if !s.prepared {
		return []command{{name: s.text, bytes: query(s.text)}}
	}
	b := statementCommand(gomysql.COM_STMT_EXECUTE, uint32(prepared), 0, 1, 0, 0, 0)
	if len(s.params) > 0 {
		b = append(b, make([]byte, (len(s.params)+7)/8)...)
		b = append(b, 1)
		var values []byte
		for _, p := range s.params {
			switch p := p.(type) {
			case int64:
				b = append(b, gomysql.MYSQL_TYPE_LONGLONG, 0)
				for i := range 8 {
					values = append(values, byte(p>>(8*i)))
				}
			case string:
				b = append(b, gomysql.MYSQL_TYPE_VAR_STRING, 0)
				values = append(append(values, byte(len(p))), p...)
			}
		}
		b = append(b, values...)
	}
	return []command{
		{name: "prepare " + s.text, bytes: append([]byte{gomysql.COM_STMT_PREPARE}, s.text...)},
		{name: fmt.Sprintf("execute %s %v", s.text, s.params), bytes: b},
	}
}
