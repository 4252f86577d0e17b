package e2e

import (
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/testdb"
)

// TestSubqueriesAreAnsweredAsByTheServer runs random SELECTs with subqueries directly and through isotap: the columns
// that show what these read change neither rows nor what is said of the client's own columns.
func TestSubqueriesAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil)
	rapid.Check(t, func(rt *rapid.T) {
		r := m.reflect(t)
		defer r.close()
		begin := rapid.SampledFrom([]string{"COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"})
		queries := []string{begin.Draw(rt, "begin"),
			"INSERT INTO t1 (id, a, b) VALUES (11, 21, 'p'), (12, 22, 'q'), (13, NULL, 'p'), (14, 24, NULL)",
			"INSERT INTO t2 (k1, k2, v) VALUES (11, 'p', 1), (11, 'q', 2), (12, 'p', 2), (21, 'r', 11)",
			"INSERT INTO t3 VALUES (11, 1.5, 'p'), (11, 2.5, 'q'), (12, 1, NULL), (2, 2, 'r')"}
		for range 12 {
			queries = append(queries, drawSubqueries(rt))
		}
		for _, q := range queries {
			if diff := r.run(randomStatement{text: q}); diff != "" {
				rt.Fatalf("%s\nafter:\n%s", diff, strings.Join(r.history[9:], "\n"))
			}
		}
	})
}

// drawSubqueries draws a SELECT with subqueries. It has no ORDER BY: MySQL sorts some joins in temporary tables, and
// hidden columns of any kind can change that, and with it the flags of columns.
func drawSubqueries(t *rapid.T) string {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	inner := func() string {
		return one("SELECT k1 FROM t2", "SELECT k1 FROM t2 WHERE v > 1", "SELECT v FROM t2", "SELECT x FROM t3",
			"SELECT x FROM t3 WHERE x = t1.id", "SELECT k1 FROM t2 WHERE v = t1.a", "SELECT k1 FROM t2, t3 WHERE x = k1",
			"SELECT MAX(x) FROM t3", "SELECT id FROM t1 AS s WHERE s.b = t1.b", "SELECT k1 FROM t2 WHERE k2 = t1.b ORDER BY k1")
	}
	test := func() string {
		return one("t1.id IN (", "t1.a IN (", "t1.id NOT IN (", "EXISTS (", "NOT EXISTS (", "t1.id >= ALL (", "t1.id > ANY (") +
			inner() + ")"
	}
	shown := one("t1.id, t1.b", "t1.*", "t1.a, t1.a", "t1.b", "*", "t1.id + 1, t1.c", "t1.id, EXISTS ("+inner()+")", "COUNT(*)")
	from := one("t1", "t1", "t1 JOIN t2 AS o ON o.k1 = t1.id", "t1, t3 AS o", "t1 LEFT JOIN t3 AS o ON o.x = t1.id")
	return "SELECT " + shown + " FROM " + from + " WHERE " + test() + one("", " AND "+test(), " AND t1.id < 14") +
		one("", "", "", " FOR UPDATE", " LOCK IN SHARE MODE")
}
