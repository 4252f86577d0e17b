package mysql

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
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
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e)":                                                                                                                                           "d1 d2 " + dep1 + " e3 e4",
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e WHERE pay > 20)":                                                                                                                            "d2 e3 e4",
		"SELECT name FROM d WHERE d.id NOT IN (SELECT dep FROM e WHERE note = 'a')":                                                                                                                    "d2 d3 e1",
		"SELECT name FROM d WHERE EXISTS (SELECT 1 FROM e JOIN d y USING (id) WHERE e.dep = d.id AND y.boss > 1)":                                                                                      "d1 d2 " + dep1,
		"SELECT d.id, (SELECT COUNT(*) FROM e y JOIN e z USING (dep, note) WHERE y.dep = d.id AND y.id > z.id) AS n FROM d WHERE d.id = 1":                                                             "d1",
		"SELECT d.name, e.id FROM d JOIN e ON e.dep = d.id AND EXISTS (SELECT 1 FROM d y WHERE y.id = e.id AND y.boss > 3)":                                                                            "d1 d2 e2=0,000001a.1,000001b.1",
		"SELECT d.id FROM d JOIN e ON e.dep = d.id AND d.boss IN (SELECT y.id FROM e y WHERE y.pay > 20) LEFT JOIN d z ON z.id = e.id WHERE z.id > 2 AND EXISTS (SELECT 1 FROM e w WHERE w.id = d.id)": "d2 d3 e2=0,000001a.1,000001b.1 e3 e4",
		"SELECT name FROM d WHERE (boss, d.id) IN (SELECT e.id, dep FROM e WHERE pay > 20)":                                                                                                            "d2 e4",
		"SELECT name FROM d WHERE id IN (SELECT x.boss FROM d x)":                                                                                                                                      "d1 d2",
		"SELECT x.id FROM (SELECT id, boss FROM d) x WHERE x.id IN (SELECT dep FROM e WHERE pay > 20)":                                                                                                 "d2 e3 e4",
		"SELECT x.k FROM (SELECT y.k FROM (SELECT d.id AS k FROM d) y) x WHERE k IN (SELECT dep FROM e WHERE pay > 20)":                                                                                "d2 e3 e4",
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'a')":                                                                                                            "d1 e1",
		"SELECT name FROM d x WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.dep = x.id LIMIT 1)":                                                                                                           "d3",
		"SELECT name FROM d WHERE EXISTS (SELECT 1 FROM e WHERE e.dep = d.id AND e.id = 3 LIMIT 1)":                                                                                                    "d2 e3",
		"SELECT name, (SELECT COUNT(*) FROM e WHERE dep = d.id AND e.id > 3) AS n FROM d":                                                                                                              "d1 d2 d3 e4",
		"SELECT name, IFNULL((SELECT MAX(pay) FROM e WHERE e.id < 2), 0) FROM d WHERE id = 1":                                                                                                          "d1 e1",
		"SELECT id FROM e WHERE pay = (SELECT MAX(x.pay) FROM e x WHERE x.id > 2)":                                                                                                                     "e3 e4 e5",
		"SELECT name FROM d WHERE id = 1 OR EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'd')":                                                                                                  "d1 d2 e4",
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id) OR boss > 2":                                                                                                               "d1 d2 " + dep1,
		"SELECT name FROM d WHERE boss IS NOT NULL AND (id IN (SELECT dep FROM e WHERE pay > 20) OR NOT id > 1)":                                                                                       "d1 d2 e3 e4",
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'd') OR id IN (SELECT boss FROM d x)":                                                                            "d2 e4",
		"SELECT name FROM d WHERE id < 3 AND (id IN (SELECT dep FROM e WHERE pay > 20) OR boss = 2 OR EXISTS (SELECT * FROM d y WHERE y.id = d.boss))":                                                 "d1 d2 e3 e4",
		"SELECT name FROM d WHERE (id = 1 OR EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'd')) AND (boss > 3 OR id IN (SELECT dep FROM e WHERE pay < 20))":                                     "d1 d2 e1 e4",
		"SELECT name FROM d WHERE NOT EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'a') OR EXISTS (SELECT * FROM e x WHERE x.dep = d.id AND x.id = 2)":                                          "d1 d2 d3 " + dep1,
		"SELECT name FROM d WHERE EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'a') OR NOT EXISTS (SELECT * FROM e x WHERE x.dep = d.id AND x.id > 2)":                                          "d1 d3 e1",
		"SELECT name FROM d WHERE boss BETWEEN 1 AND 3 AND (EXISTS (SELECT * FROM e WHERE dep = d.id AND note = 'a') AND (boss = 9 OR id IN (SELECT dep FROM e WHERE id = 2)))":                        "d1 " + dep1,
		"SELECT name FROM d WHERE id = 1 OR boss < (SELECT SUM(e.id) FROM e WHERE dep = d.id)":                                                                                                         "d1 d2 e3 e4",
		"SELECT name FROM d WHERE boss > (SELECT MAX(id) FROM e WHERE dep = d.id) OR EXISTS (SELECT 1 FROM e x WHERE x.dep = d.id AND x.note = 'd')":                                                   "d2 e3 e4",
		"SELECT name FROM d WHERE id = 2 OR NOT (boss > (SELECT MAX(id) FROM e WHERE dep = d.id) OR EXISTS (SELECT 1 FROM e x WHERE x.dep = d.id AND x.note = 'd'))":                                   "d1 d2 " + dep1,
		"SELECT name FROM d WHERE id = 1 OR (boss = 4 AND EXISTS (SELECT 1 FROM e WHERE dep = d.id AND pay > 1) AND id IN (SELECT dep FROM e x WHERE x.note = 'd'))":                                   "d1 d2 e3 e4",
		"SELECT name, CASE WHEN boss > 3 THEN (SELECT MAX(pay) FROM e WHERE dep = d.id) END FROM d":                                                                                                    "d1 d2 d3 e3 e4",
		"SELECT name, CASE boss WHEN 2 THEN 1 WHEN 4 THEN (SELECT MAX(pay) FROM e WHERE dep = d.id) ELSE (SELECT MIN(x.pay) FROM e x WHERE x.id > d.id) END c FROM d":                                  "d1 d2 d3 e3 e4 e5",
		"SELECT name, COALESCE(boss, (SELECT MAX(pay) FROM e WHERE e.id > d.id)), IF(d.id = 1, (SELECT MAX(note) FROM e x WHERE x.id = d.id), 2) FROM d":                                               "d1 d2 d3 e1 e4 e5",
		"SELECT name, (SELECT pay FROM e WHERE e.dep = d.id ORDER BY e.id DESC LIMIT 1) AS last FROM d ORDER BY d.id":                                                                                  "d1 d2 d3 e2=0,000001a.1,000001b.1 e4",
		"SELECT name FROM d WHERE (SELECT e.note FROM e WHERE e.dep = d.id ORDER BY pay, id LIMIT 1) = 'a'":                                                                                            "d1 e1",
		"SELECT d.name, x.n FROM d JOIN (SELECT dep, COUNT(*) AS n FROM e WHERE id > 1 GROUP BY dep) x ON x.dep = d.id WHERE d.id = 2":                                                                 "d2 e3 e4",
		"SELECT d.name, x.n FROM d LEFT JOIN (SELECT dep, MAX(pay) AS n FROM e GROUP BY e.dep) x ON x.dep = d.id":                                                                                      "d1 d2 d3 " + dep1 + " e3 e4",
		"SELECT d.name, x.n FROM d JOIN (SELECT e.dep AS grp, COUNT(*) AS n FROM e GROUP BY dep) x WHERE d.id = 3 AND x.grp IS NULL":                                                                   "d3 e5",
		"SELECT d.*, x.m FROM (SELECT MAX(pay) AS m FROM e WHERE e.id < 3) x, d WHERE d.id = 1":                                                                                                        "d1 " + dep1,
		"WITH x AS (SELECT dep, boss, SUM(pay) AS s FROM e JOIN d ON d.id = e.dep GROUP BY dep, boss) SELECT d.id, x.s FROM d, x WHERE x.boss = d.id":                                                  "d1 d2 " + dep1,
		"SELECT name FROM d WHERE id IN (SELECT dep FROM e WHERE pay > 20) ORDER BY name DESC LIMIT 1":                                                                                                 "d2 e3 e4",
		"SELECT name, (SELECT COUNT(*) FROM e WHERE dep = d.id) AS n FROM d ORDER BY n DESC, d.id LIMIT 1":                                                                                             "d1 " + dep1,
		"SELECT COUNT(*) FROM (SELECT DISTINCT dep FROM e WHERE id < 3) AS x":                                                                                                                          dep1,
		"SELECT COUNT(*) AS n FROM (SELECT DISTINCT d.id, d.name AS c FROM d JOIN e ON e.dep = d.id WHERE e.id > 2) x":                                                                                 "d2 e3 e4",
		"SELECT MAX(n), COUNT(*) FROM (SELECT COUNT(*) AS n FROM e GROUP BY dep HAVING n > 1) AS x":                                                                                                    everyE,
		"SELECT COUNT(*) FROM (SELECT id FROM d WHERE id = 1 UNION SELECT dep FROM e WHERE id > 3 ORDER BY 1) AS x":                                                                                    "d1 e4 e5",
		"SELECT COUNT(*) FROM ((SELECT id FROM d WHERE id = 1) UNION ALL (SELECT dep FROM e WHERE id = 3)) AS x":                                                                                       "d1 e3",
		"SELECT EXISTS (SELECT * FROM e WHERE id = 4)":                                                                                                                                                 "e4",
		"SELECT (SELECT name FROM d WHERE id = 2), (SELECT MAX(id) FROM e WHERE id < 2) AS m":                                                                                                          "d2 e1",
		"SELECT COUNT(*) FROM d WHERE boss > (SELECT MIN(x.id) FROM e x WHERE x.id < 3)":                                                                                                               "d1 d2 " + dep1,
		"SELECT COUNT(*), (SELECT 1) FROM d WHERE id = 1":                                                                                                                                              "d1",
		"SELECT name FROM d WHERE EXISTS (SELECT 1 FROM e JOIN d y ON y.boss = e.id WHERE y.id = d.id AND e.id = 4)":                                                                                   "d2 e4",
	} {
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact && s.session.Dialect == MySQL && strings.Contains(query, ") OR EXISTS (SELECT 1 FROM e x") {
			continue
		}
		if p.Observation != history.Exact && query != "SELECT COUNT(*), (SELECT 1) FROM d WHERE id = 1" && s.session.Dialect != TiDB {
			t.Errorf("%s: %v: %s", query, p.Observation, p.Reason)
		}
		s.compare(query, want)
	}
}

// TestTheServerEvaluatesArmsInTheOrderOfTheText counts the runs of subqueries that are arms of one OR: where the first
// is true for all rows, the second is not run.
func TestTheServerEvaluatesArmsInTheOrderOfTheText(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	arms := map[string][]string{
		"true": {"EXISTS (SELECT 1 FROM e AS %s WHERE dep = d.id)", "d.id IN (SELECT dep FROM e AS %s)",
			"d.id IN (SELECT dep FROM e AS %s WHERE pay > 15)", "NOT EXISTS (SELECT 1 FROM e AS %s WHERE dep = d.id AND note = 'z')",
			"NOT (d.id IN (SELECT dep FROM e AS %s WHERE note = 'z'))", "d.id NOT IN (SELECT dep FROM e AS %s WHERE note = 'z')",
			"d.id NOT IN (SELECT id FROM e AS %s WHERE dep = d.boss AND note = 'z')", "d.boss IN (SELECT e.id FROM e JOIN d AS %[1]s ON %[1]s.id < e.id WHERE d.id < 9)",
			"d.boss > (SELECT MIN(%[1]s.dep) FROM e AS %[1]s WHERE dep = d.id)", "NOT (d.id < (SELECT COUNT(note) - 9 FROM e AS %s WHERE pay > 5 AND dep = d.id))"},
		"any": {"EXISTS (SELECT 1 FROM e AS %s WHERE dep = d.boss AND note = 'd')", "NOT EXISTS (SELECT 1 FROM e AS %s WHERE dep = d.boss)",
			"d.id NOT IN (SELECT dep FROM e AS %s WHERE pay > 15)", "d.id IN (SELECT dep FROM e AS %s WHERE note = 'a')",
			"d.boss < (SELECT MAX(pay) FROM e AS %s WHERE dep = d.boss)"},
	}
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		s.exec("SET SESSION TRANSACTION ISOLATION LEVEL " + level)
		for _, first := range arms["true"] {
			for _, second := range arms["any"] {
				for _, text := range []string{"%s OR %s", "%s OR name = 'x' OR %s", "name = 'x' OR (%s OR %s)", "%s OR (%s OR boss > 9)"} {
					text = "SELECT id FROM d WHERE d.id < 3 AND (" + fmt.Sprintf(text, fmt.Sprintf(first, "one"), fmt.Sprintf(second, "two")) + ")"
					if ran := s.runs(text); ran["one"] == 0 || ran["two"] != 0 {
						t.Errorf("%s: the first arm ran %v times, the second %v", text, ran["one"], ran["two"])
					}
				}
				// What AND joins in an arm is evaluated in the order of the text, too.
				both := "NOT (" + fmt.Sprintf(first, "one") + ") AND " + fmt.Sprintf(second, "two")
				text := "SELECT id FROM d WHERE d.id < 3 AND (" + both + " OR EXISTS (SELECT 1 FROM e AS o WHERE o.dep = d.id))"
				if ran := s.runs(text); ran["one"] == 0 || ran["two"] != 0 {
					t.Errorf("%s: the first ran %v times, the second %v", text, ran["one"], ran["two"])
				}
			}
		}
	}
}

// TestExistsOfValuesShowsTheRowThatItEndsWith has EXISTS among the values of an INSERT, at REPEATABLE READ: it reads up
// to the first row that it finds, and shows that one.
func TestExistsOfValuesShowsTheRowThatItEndsWith(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.exec(string(New(tables{}, Options{}).Plan("CREATE TABLE k (id INT PRIMARY KEY, n INT)", s.session).Append(nil, noHoles)))
	s.rewriter.schema.(tables)[s.session.Schema+".k"] = table("k", "id int, n int", "primary(id)")
	s.session.WriteReads = ReadLocked
	s.exec(CaptureInit)
	for i, where := range []string{"note = 'a'", "pay > 10", "pay > 10 AND note = 'd'", "dep = 2 AND pay > 1", "note = 'z'",
		"(note = 'x' OR pay = 30) AND id > 3", "pay > 1000 OR note = 'e'", "dep > 1 AND pay < 99", "id = 4 AND pay = 30", "note > 'a' OR pay < 0"} {
		p := s.rewriter.Plan(fmt.Sprintf("INSERT INTO k VALUES (%d, EXISTS (SELECT 1 FROM e WHERE %s)), (%d, 1)", i, where, 100+i), s.session)
		if p.Observation != history.Exact {
			t.Fatalf("%s: %v", where, p.Reason)
		}
		s.exec(literal(p, Values{Tag: history.Tag{Txn: history.MakeTxnID(7, uint32(i+1)), Stmt: 1}}))
		b, _ := s.exec(CaptureRead).GetString(0, 0)
		entries, _, err := ParseCapture([]byte(b))
		var all []string
		for _, e := range entries {
			var shown []string
			if jsonErr := json.Unmarshal([]byte(e.Array), &shown); err != nil || jsonErr != nil {
				t.Fatalf("%s: %q: %v, %v", where, b, err, jsonErr)
			}
			all = append(all, shown...)
		}
		want := ""
		if first := s.exec("SELECT CONCAT_WS('=', isotap_rowid, isotap_wlist) FROM e WHERE " + where + " LIMIT 1"); len(first.Values) > 0 {
			want, _ = first.GetString(0, 0)
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s shows %q, not %q", where, got, want)
		}
		if n, _ := s.exec(fmt.Sprintf("SELECT n FROM k WHERE id = %d", i)).GetInt(0, 0); n == 1 != (want != "") {
			t.Errorf("%s is %d", where, n)
		}
	}
}

// runs returns how often a query read the tables of each name.
func (s *readServer) runs(query string) map[string]float64 {
	s.t.Helper()
	ran := make(map[string]float64)
	if s.session.Dialect == MySQL {
		for line := range strings.Lines(string(s.exec("EXPLAIN ANALYZE " + query).Values[0][0].AsString())) {
			for _, name := range []string{"one", "two"} {
				if strings.Contains(line, " on "+name+" ") && !strings.Contains(line, "(never executed)") {
					ran[name]++
				}
			}
		}
		return ran
	}
	var plan any
	if err := json.Unmarshal(s.exec("ANALYZE FORMAT=JSON " + query).Values[0][0].AsString(), &plan); err != nil {
		s.t.Fatal(err)
	}
	countRuns(plan, ran)
	return ran
}

// countRuns adds how often MariaDB read the tables of a plan.
func countRuns(plan any, ran map[string]float64) {
	switch plan := plan.(type) {
	case []any:
		for _, of := range plan {
			countRuns(of, ran)
		}
	case map[string]any:
		if name, ok := plan["table_name"].(string); ok {
			loops, _ := plan["r_loops"].(float64)
			if plan["r_table_time_ms"] != nil && loops == 0 { // MariaDB 11: by index_subquery
				loops = 1
			}
			ran[name] += loops
		}
		for _, of := range plan {
			countRuns(of, ran)
		}
	}
}
