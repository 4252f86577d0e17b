package mysql

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesTellTheirRows holds what subqueries show against the rows that they are defined to read (ADR 62), and
// what the client sees against what it saw.
func TestSubqueriesTellTheirRows(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	s := newReadServer(t)
	s.session.Repeats = true
	for query, want := range map[string]string{
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e)":                                                           "d1 d2 " + dep1 + " e3 e4",
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e WHERE pay > 20)":                                            "d2 e3 e4",
		"SELECT name FROM d WHERE d.id NOT IN (SELECT dep FROM e WHERE note = 'a')":                                    "d2 d3 e1",
		"SELECT name FROM d WHERE id IN (SELECT boss FROM d)":                                                          everyD,
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'a')":                            "d1 e1",
		"SELECT name FROM d x WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.dep = x.id LIMIT 1)":                           "d3",
		"SELECT name FROM d WHERE EXISTS (SELECT 1 FROM e WHERE e.dep = d.id AND e.id = 3 LIMIT 1)":                    "d2 e3",
		"SELECT name, (SELECT COUNT(*) FROM e WHERE dep = d.id AND e.id > 3) AS n FROM d":                              "d1 d2 d3 e4",
		"SELECT name, IFNULL((SELECT MAX(pay) FROM e WHERE e.id < 2), 0) FROM d WHERE id = 1":                          "d1 e1",
		"SELECT id FROM e WHERE pay = (SELECT MAX(x.pay) FROM e x WHERE x.id > 2)":                                     "e3 e4 e5",
		"SELECT name FROM d WHERE id = 1 OR EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'd')":                  "d1 d2 e4",
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id) OR boss > 2":                               "d1 d2 " + dep1,
		"SELECT name FROM d WHERE boss IS NOT NULL AND (id IN (SELECT dep FROM e WHERE pay > 20) OR NOT id > 1)":       "d1 d2 e3 e4",
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e WHERE pay > 20) ORDER BY name DESC LIMIT 1":                 "d2 e3 e4",
		"SELECT name, (SELECT COUNT(*) FROM e WHERE dep = d.id) AS n FROM d ORDER BY n DESC, d.id LIMIT 1":             "d1 " + dep1,
		"SELECT COUNT(*) FROM (SELECT DISTINCT dep FROM e WHERE id < 3) AS x":                                          dep1,
		"SELECT COUNT(*) AS n FROM (SELECT DISTINCT d.id, d.name AS c FROM d JOIN e ON e.dep = d.id WHERE e.id > 2) x": "d2 e3 e4",
		"SELECT MAX(n), COUNT(*) FROM (SELECT COUNT(*) AS n FROM e GROUP BY dep HAVING n > 1) AS x":                    everyE,
		"SELECT COUNT(*) FROM (SELECT id FROM d WHERE id = 1 UNION SELECT dep FROM e WHERE id > 3 ORDER BY 1) AS x":    "d1 e4 e5",
		"SELECT COUNT(*) FROM ((SELECT id FROM d WHERE id = 1) UNION ALL (SELECT dep FROM e WHERE id = 3)) AS x":       "d1 e3",
		"SELECT EXISTS (SELECT * FROM e WHERE id = 4)":                                                                 "e4",
		"SELECT (SELECT name FROM d WHERE id = 2), (SELECT MAX(id) FROM e WHERE id < 2) AS m":                          "d2 e1",
		"SELECT COUNT(*) FROM d WHERE boss > (SELECT MIN(x.id) FROM e x WHERE x.id < 3)":                               "d1 d2 " + dep1,
		"SELECT COUNT(*), (SELECT 1) FROM d WHERE id = 1":                                                              "d1",
		"SELECT name FROM d WHERE EXISTS (SELECT 1 FROM e JOIN d y ON y.boss = e.id WHERE y.id = d.id AND e.id = 4)":   "d2 e4",
	} {
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact && query != "SELECT COUNT(*), (SELECT 1) FROM d WHERE id = 1" {
			t.Errorf("%s: %v: %s", query, p.Observation, p.Reason)
		}
		s.compare(query, want)
	}
}
