package mysql

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
)

// TestLateralQueriesAreComputedForEachRow holds, by EXPLAIN ANALYZE, that MySQL computes a LATERAL query that
// aggregates for each row before it, whether or not anything asks for it, and whatever it is compared with behind LEFT
// JOIN; not so where it is equal to what it cannot be.
func TestLateralQueriesAreComputedForEachRow(t *testing.T) {
	testdb.Only(t, "others have no LATERAL", testdb.MySQL.Name)
	s := newReadServer(t)
	s.exec("CREATE TABLE small (id INT PRIMARY KEY, d INT, t TINYINT NOT NULL, u INT UNSIGNED NOT NULL)")
	s.exec("INSERT INTO small VALUES (1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 3, 3)")
	for on, loops := range map[string]string{"TRUE": "loops=3", "l.t > 300": "loops=3", "l.t <= -300": "loops=3", "l.u < 0": "loops=3", "l.n <= -5": "loops=3",
		"300 < l.t": "loops=3", "l.t <> 300": "loops=3", "l.t > '300'": "loops=3", "l.n > d.id": "loops=3", "l.t = 99999999999999": "Zero rows (Impossible filter)"} {
		plan := s.explainedBy("EXPLAIN ANALYZE SELECT d.id FROM d LEFT JOIN LATERAL (SELECT MAX(x.t) AS t, MAX(x.u) AS u, COUNT(*) AS n " +
			"FROM small x WHERE x.d = d.id) AS l ON " + on)
		computed := ""
		for line := range strings.Lines(plan) {
			if strings.Contains(line, "Materialize") || strings.Contains(line, "Impossible") {
				computed = line
			}
		}
		if !strings.Contains(computed, loops) {
			t.Errorf("ON %s: not %s\n%s", on, loops, plan)
		}
	}
}

// explainedBy returns the text that a kind of EXPLAIN shows.
func (s *readServer) explainedBy(query string) string {
	text, _ := s.exec(query).GetString(0, 0)
	return text
}
