package e2e

import (
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/testdb"
)

// TestSetOperationsAreAnsweredAsByTheServer runs random UNIONs, INTERSECTs and EXCEPTs directly and through isotap:
// rows of isotap's own behind the client's change neither these, nor their order, nor what is said of columns.
func TestSetOperationsAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "others' are not read again", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	m := newMirror(t, gomysql.CLIENT_DEPRECATE_EOF, nil)
	rapid.Check(t, func(rt *rapid.T) {
		r := m.reflect(t)
		defer r.close()
		w := &sqlWriter{chooser: chooser{rt}}
		queries := []string{w.oneOf("COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"),
			"INSERT INTO t1 (id, a, b) VALUES (11, 21, 'p'), (12, 22, 'q'), (13, NULL, 'p'), (14, 24, NULL)",
			"INSERT INTO t2 (k1, k2, v) VALUES (11, 'p', 1), (11, 'q', 2), (12, 'p', 2), (21, 'r', 11)",
			"INSERT INTO t3 VALUES (11, 1.5, 'p'), (11, 2.5, 'q'), (12, 1, NULL), (2, 2, 'r')"}
		for range 10 {
			queries = append(queries, w.setOperations())
			if w.n(4) == 0 {
				queries = append(queries, w.oneOf("SELECT FOUND_ROWS()", "SHOW WARNINGS", "SELECT ROW_COUNT()"))
			}
		}
		for _, q := range queries {
			s := randomStatement{text: q, prepared: w.n(3) == 0 && strings.Contains(q, "FROM t")}
			// An arm of UNION ALL shows its identities itself, for which the server may take another index.
			s.ordered = strings.Count(q, "UNION") > strings.Count(q, "UNION ALL") || strings.Contains(q, "EXCEPT") ||
				strings.Contains(q, "INTERSECT")
			if diff := r.run(s); diff != "" {
				rt.Fatalf("%s\nafter:\n%s", diff, strings.Join(r.history[9:], "\n"))
			}
		}
	})
}

// setOperations draws a UNION, INTERSECT or EXCEPT of up to four queries with one or two columns each.
func (w *sqlWriter) setOperations() string {
	columns := 1 + w.n(2)
	arm := func() string {
		items := [][]string{{"id", "b"}, {"a", "c"}, {"a + 1", "COALESCE(b, 'n')"},
			{"CASE WHEN id > 11 THEN id ELSE a END", "b"}, {"(SELECT MAX(v) FROM t2 WHERE k1 = t1.id)", "b"}, {"id", "(SELECT k2 FROM t2 WHERE k1 = 12)"},
			{"12", "'q'"}, {"id", "a"}}[w.n(8)]
		where := w.oneOf("", "", "id > 11", "b = 'p'", "a IS NULL", "id IN (SELECT k1 FROM t2 WHERE v > 1)",
			"EXISTS (SELECT 1 FROM t3 WHERE x = t1.id)",

			"NOT EXISTS (SELECT * FROM t3 WHERE x > 11)", "id > 100", "b > 0", "(a % 1000) > 20")
		from := "t1"
		switch w.n(6) {
		case 0:
			items, where, from = []string{"k1", "k2"}, w.oneOf("", "v > 1", "k2 = 'p'"), "t2"
		case 1:
			items, from = []string{"x", w.oneOf("e", "y", "NULL")}, "t3"
			where = w.oneOf("", "x = 11", "x = (SELECT MIN(k1) FROM t2)")
		case 2:
			items, where, from = []string{"x", "k2"}, w.oneOf("", "v > 1"), "t3 "+w.oneOf("", "LEFT ")+"JOIN t2 ON k1 = x"
		case 3:
			if w.n(4) == 0 {
				return "SELECT " + strings.Join([]string{"11", "'p'"}[:columns], ", ")
			}
		}
		if where != "" {
			where = " WHERE " + where
		}
		return "SELECT " + w.maybe(5, "DISTINCT ") + strings.Join(items[:columns], ", ") + " FROM " + from + where
	}
	text := arm()
	if w.n(4) == 0 {
		text = "(" + text + ")"
	}
	for range 1 + w.n(3) {
		text += " " + w.oneOf("UNION", "UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION DISTINCT") + " " + arm()
	}
	order := []string{" ORDER BY 1", " ORDER BY 2, 1"}[columns-1]
	return text + w.oneOf("", "", "", order, order+" LIMIT 2")
}
