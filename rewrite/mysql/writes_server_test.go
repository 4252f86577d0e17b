package mysql

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// A drawnWrite is a write, and what its subqueries find: for a row of d whose id stands in the place of d.id, or, where
// the write says so, once.
type drawnWrite struct {
	text  string
	turns string // a query of the rows of d for which they run, by id; empty: once
	ends  string // a query of the rows that end the reading, if there are some
	finds string // a query of what they find
}

// TestWritesTellWhatTheirSubqueriesRead draws writes at REPEATABLE READ, and holds what they tell against what their
// subqueries find.
func TestWritesTellWhatTheirSubqueriesRead(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.exec(string(New(tables{}, Options{}).Plan("CREATE TABLE k (id INT PRIMARY KEY, n INT)", s.session).Append(nil, noHoles)))
	s.exec("INSERT INTO k (id, n) VALUES (1, 1), (2, 2)")
	s.rewriter.schema.(tables)[s.session.Schema+".k"] = table("k", "id int, n int", "primary(id)")
	s.session.WriteReads = ReadLocked
	s.exec(CaptureInit)
	exact := make(map[string]int)
	tried := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawKnownWrite(rt)
		p := s.rewriter.Plan(w.text, s.session)
		if p.Observation != history.Exact {
			return
		}
		tried++
		exact[w.text[:strings.IndexByte(w.text, ' ')]]++
		if strings.HasPrefix(w.text, "INSERT INTO k (id, n) SELECT") {
			exact["INSERT ... SELECT"+map[bool]string{true: " without FROM"}[!strings.Contains(w.text, "FROM d")]]++
		}
		s.exec("BEGIN")
		defer s.exec("ROLLBACK")
		want := s.expected(w)
		tag := history.Tag{Txn: history.MakeTxnID(9, tried), Stmt: 1}
		if got := s.toldBy(literal(p, Values{Tag: tag}), p); got != want {
			rt.Fatalf("%s\n%s\ntells %q, not %q", w.text, literal(p, Values{Tag: tag}), got, want)
		}
	})
	t.Logf("%v are exact", exact)
	if tried > 100 && (exact["INSERT ... SELECT"] == 0 || exact["INSERT ... SELECT without FROM"] == 0) {
		t.Error("no INSERT ... SELECT is exact")
	}
}

// expected returns the rows that a write's subqueries find.
func (s *readServer) expected(w drawnWrite) string {
	finds := []string{w.finds}
	if w.turns != "" {
		finds = nil
		r := s.exec(w.turns)
		for i := range r.Values {
			id, _ := r.GetInt(i, 0)
			finds = append(finds, strings.ReplaceAll(w.finds, "d.id", fmt.Sprint(id)))
		}
	}
	if w.ends != "" && len(s.exec(w.ends).Values) > 0 {
		finds = []string{w.ends}
	}
	var all []string
	for _, query := range finds {
		r := s.exec(query)
		for i := range r.Values {
			row, _ := r.GetString(i, 0)
			all = append(all, row)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// toldBy runs a write and returns the rows of e that it tells.
func (s *readServer) toldBy(text string, p *Plan) string {
	var all []string
	add := func(array string) {
		var shown []string
		if err := json.Unmarshal([]byte(array), &shown); err != nil {
			s.t.Fatalf("%q: %v", array, err)
		}
		all = append(all, shown...)
	}
	r := s.exec(text)
	if r.Resultset != nil {
		for _, row := range r.Values {
			for i, of := range p.Result.Sources {
				if at := 2 + i - 1; of.Beside && row[at].Value() != nil {
					add(string(row[at].AsString()))
				}
			}
		}
	}
	b, _ := s.exec(CaptureRead).GetString(0, 0)
	entries, _, err := ParseCapture([]byte(b))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Array != "" {
			add(e.Array)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// drawKnownWrite draws a write with one subquery.
func drawKnownWrite(t *rapid.T) drawnWrite {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	const found = "SELECT CONCAT_WS('=', x.isotap_rowid, x.isotap_wlist) FROM e x WHERE "
	test := one("x.note = 'a'", "x.pay > 15", "x.note IS NULL", "x.pay < 25 AND x.id > 1", "x.note > 'zz'", "x.pay > 5 OR x.note = 'e'")
	where := "(" + test + ")"
	if rapid.Bool().Draw(t, "correlated") {
		where += " AND x.dep = d.id"
	}
	number := "(SELECT " + one("COUNT(*)", "MAX(x.pay)", "SUM(x.id)") + " FROM e x WHERE " + where + ")"
	verb := one("UPDATE d SET boss = 7 WHERE ", "UPDATE d SET boss = NULL WHERE ", "DELETE FROM d WHERE ")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 8: // without a FROM clause, of a row that is there or not
		return drawnWrite{text: "INSERT INTO k (id, n) SELECT " + one("1", "9") + ", (SELECT COUNT(*) FROM e x WHERE " + test +
			") ON DUPLICATE KEY UPDATE n = " + one("VALUES(n)", "3"), finds: found + "(" + test + ")"}
	case 9: // with one that is assigned
		w := drawnWrite{text: "INSERT INTO k (id, n) SELECT " + one("1", "9") + ", 5 ON DUPLICATE KEY UPDATE n = " +
			strings.Replace(number, where, "("+test+")", 1), finds: found + "(" + test + ")"}
		if strings.Contains(w.text, "SELECT 9") {
			w.turns = "SELECT 0 LIMIT 0"
		}
		return w
	case 6: // INSERT ... SELECT ... ON DUPLICATE KEY UPDATE, with one in the condition
		second := "d.id " + one("<", ">=", "<>") + " " + number
		return drawnWrite{text: "INSERT INTO k (id, n) SELECT d.id, d.boss FROM d WHERE " + second + " ON DUPLICATE KEY UPDATE n = " + one("VALUES(n)", "3"),
			turns: "SELECT d.id FROM d WHERE " + second, finds: found + where}
	case 7: // with one that is assigned
		w := drawnWrite{text: "INSERT INTO k (id, n) SELECT d.id" + one("", " + 10") + ", d.boss FROM d ON DUPLICATE KEY UPDATE n = (SELECT COUNT(*) FROM e x WHERE " + test + ")",
			finds: found + "(" + test + ")"}
		if strings.Contains(w.text, "+ 10") {
			w.turns = "SELECT 0 LIMIT 0"
		}
		return w
	case 0: // behind OR
		first := one("d.id = 1", "d.id > 1", "d.name = 'ops'", "d.id > 0", "d.id > 9")
		second := "d.id " + one("<", ">=", "<>") + " " + number
		return drawnWrite{text: verb + first + " OR " + second, turns: "SELECT d.id FROM d WHERE NOT (" + first + ") AND " + second, finds: found + where}
	case 1:
		second := "d.id " + one("<", ">=", "<>") + " " + number
		return drawnWrite{text: verb + second, turns: "SELECT d.id FROM d WHERE " + second, finds: found + where}
	case 2: // assigned
		return drawnWrite{text: "UPDATE d SET boss = (SELECT COUNT(*) FROM e x WHERE " + where + ") WHERE d.id < 9", turns: "SELECT d.id FROM d",
			finds: found + where}
	case 3: // ON DUPLICATE KEY UPDATE, of a row that is there or not
		key := one("1", "9", "1, 5), (2")
		w := drawnWrite{text: "INSERT INTO k (id, n) VALUES (" + key + ", 5) ON DUPLICATE KEY UPDATE n = " +
			strings.Replace(number, where, "("+test+")", 1), turns: "SELECT 0 LIMIT 0", finds: found + "(" + test + ")"}
		if strings.HasPrefix(key, "1") {
			w.turns = ""
		}
		return w
	case 4: // among values
		value := "(SELECT COUNT(*) FROM e x WHERE " + test + ")"
		return drawnWrite{text: "INSERT INTO k (id, n) VALUES (" + one("9", "8, 2), (9", "7, 3), (9") + ", " + value + ")" +
			one(" ON DUPLICATE KEY UPDATE n = VALUES(n)", " ON DUPLICATE KEY UPDATE n = 3", ""), finds: found + "(" + test + ")"}
	}
	value, column := one("2", "30", "7"), one("x.id", "x.pay")
	if rapid.Bool().Draw(t, "text") {
		value, column = one("'a'", "'x'"), "x.note"
	}
	return drawnWrite{text: "INSERT INTO k (id, n) VALUES (8, " + value + one(" IN ", " NOT IN ") + "(SELECT " + column + " FROM e x WHERE " + test + "))",
		ends: found + "(" + test + ") AND " + column + " = " + value + " LIMIT 1", finds: found + "(" + test + ")"}
}

// TestRunsOfCopiesAreBounded has an UPDATE of many rows whose subquery hangs on the row, on MySQL at REPEATABLE READ,
// where no clock ends what is run again: it tells the first rows', and that others are lacking.
func TestRunsOfCopiesAreBounded(t *testing.T) {
	testdb.Only(t, "others have a clock", testdb.MySQL.Name)
	s := newReadServer(t)
	s.exec("INSERT INTO d (id, name, boss) SELECT 100 + 10 * x.id + y.id, 'more', 1 FROM e x JOIN e y JOIN d z ON z.id = 1")
	s.exec("INSERT INTO d (id, name, boss) SELECT 1000 + 100 * x.id + y.id, 'more', 1 FROM e x JOIN d y ON y.id > 100")
	s.exec("UPDATE d SET isotap_rowid = CONCAT(_binary'd', id), isotap_wlist = '0'")
	s.session.WriteReads = ReadLocked
	s.exec(CaptureInit)
	for i, tc := range []struct {
		query         string
		arrays, lacks int
	}{
		{"UPDATE d SET boss = (SELECT COUNT(*) FROM e WHERE e.dep < d.id AND note = 'a')", 64, 1},
		{"UPDATE d SET boss = (SELECT COUNT(*) FROM e WHERE e.dep < d.id AND note = 'a') WHERE id < 100", 3, 0},
		{"UPDATE e SET dep = 1 WHERE id < (SELECT COUNT(*) FROM d WHERE boss <> e.id)", 2, 1}, // more rows than one may tell
	} {
		s.exec("BEGIN")
		p := s.rewriter.Plan(tc.query, s.session)
		if p.Observation != history.Exact {
			t.Fatalf("%s is %v: %s", tc.query, p.Observation, p.Reason)
		}
		s.exec(literal(p, Values{Tag: history.Tag{Txn: history.MakeTxnID(11, uint32(i+1)), Stmt: 1}}))
		b, _ := s.exec(CaptureRead).GetString(0, 0)
		entries, _, err := ParseCapture([]byte(b))
		if err != nil {
			t.Fatal(err)
		}
		arrays, lacks := 0, 0
		for _, e := range entries {
			switch e.Array {
			case "[]": // it begins
				arrays++
			case Lacking:
				lacks++
			}
		}
		if arrays != tc.arrays || lacks != tc.lacks {
			t.Errorf("%s tells of %d runs, and %d times that some are lacking", tc.query, arrays, lacks)
		}
		s.exec("ROLLBACK")
	}
}
