package e2e

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
)

// TestStarsOverRelationsAroundShowNoIdentities has stars over relations of blocks around them, of CTEs and of derived
// tables that carry identities, mostly in LATERAL, which is MySQL's.
func TestStarsOverRelationsAroundShowNoIdentities(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE a (id INT PRIMARY KEY, v INT)", "CREATE TABLE b (id INT PRIMARY KEY, q1 INT)",
		"INSERT INTO a VALUES (1, 10), (2, 20)", "INSERT INTO b VALUES (1, 100), (2, 200)")
	statements := []string{
		"SELECT ss.* FROM (SELECT id AS c1 FROM a) ss JOIN b ON b.id = ss.c1 ORDER BY 1",
		"WITH w AS (SELECT * FROM a) SELECT w.*, x.* FROM w JOIN (SELECT w.* FROM w) x ON x.id = w.id ORDER BY 1",
		"WITH w AS (SELECT * FROM a), y AS (SELECT w.*, b.q1 FROM w JOIN b ON b.id = w.id) SELECT * FROM y ORDER BY 1",
		"SELECT * FROM (SELECT * FROM (SELECT * FROM a) x) y ORDER BY 1",
		"SELECT a.*, (SELECT MAX(x.q1) FROM (SELECT * FROM b) x WHERE x.id = a.id) FROM a ORDER BY 1",
		"SELECT * FROM a WHERE EXISTS (SELECT a.* FROM b WHERE b.id = a.id) ORDER BY 1",
		"SELECT * FROM a NATURAL JOIN (SELECT * FROM b) x ORDER BY 1",
	}
	if testdb.EngineName() == testdb.MySQL.Name {
		statements = append(statements,
			"TABLE a ORDER BY 1",
			"SELECT ss2.* FROM (SELECT id AS c1 FROM a) ss1, LATERAL (SELECT ss1.*, b.q1 FROM b WHERE b.id = ss1.c1) ss2 ORDER BY 1",
			"SELECT * FROM (SELECT id AS c1 FROM a) ss1, LATERAL (SELECT ss1.*, b.q1 FROM b WHERE b.id = ss1.c1) ss2 ORDER BY 1",
			"SELECT x.* FROM a, LATERAL (SELECT a.* FROM b ORDER BY b.id LIMIT 1) x ORDER BY 1",
			"SELECT x.* FROM a, LATERAL (SELECT a.*, b.* FROM b WHERE b.id = a.id) x ORDER BY 1",
			"WITH w AS (SELECT id, v FROM a) SELECT x.* FROM w, LATERAL (SELECT w.* FROM b ORDER BY b.id LIMIT 1) x ORDER BY 1",
			"SELECT x.* FROM (SELECT id FROM a) s LEFT JOIN LATERAL (SELECT s.*, b.q1 FROM b WHERE b.id = s.id) x ON TRUE ORDER BY 1",
			"SELECT y.* FROM (SELECT id FROM a) s, LATERAL (SELECT x.* FROM b, LATERAL (SELECT s.*, b.q1) x "+
				"WHERE b.id = s.id) y ORDER BY 1",
			"SELECT y.* FROM (SELECT id FROM a) s, LATERAL (SELECT * FROM (SELECT s.*) x) y ORDER BY 1",
			"SELECT y.* FROM (SELECT * FROM a) s, LATERAL (SELECT COUNT(*), s.* FROM b GROUP BY s.id, s.v) y ORDER BY 1, 2",
			"SELECT * FROM (SELECT * FROM a) s, LATERAL (SELECT s.* UNION ALL SELECT * FROM b WHERE b.id = s.id) y ORDER BY 1, 2, 3",
		)
	}
	for _, statement := range statements {
		if want, got := table(b.direct.Query(statement)), table(b.through.Query(statement)); got != want {
			t.Errorf("%s:\nthrough isotap:\n%s\ndirectly:\n%s", statement, got, want)
		}
	}
	if n := b.srv.Stats().Misplanned; n > 0 {
		t.Errorf("%d plans were wrong", n)
	}
}

// table prints a result with its columns, or the error in its place: MySQL refuses stars over relations of blocks
// around.
func table(rows *sql.Rows, err error) string {
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintln(&b, columns)
	values, at := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return err.Error()
		}
		fmt.Fprintln(&b, values)
	}
	if err := rows.Err(); err != nil {
		return err.Error()
	}
	return b.String()
}
