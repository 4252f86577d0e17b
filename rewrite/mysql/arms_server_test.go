package mysql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// An operand is one of an OR: a condition of the row alone, or one with a subquery.
type operand struct {
	text string
	// rows are the queries of what its subqueries find for a row of the table d, whose key is d.id.
	rows []string
	// parts are what AND joins in it, in the order of the text.
	parts []operand
}

// TestArmsTellTheRowsOfTheirTurn draws conditions of several ORs, and holds what their subqueries show against what
// they find when it is their turn: behind arms that do not hold, where no condition of the row alone does.
func TestArmsTellTheRowsOfTheirTurn(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	s.makeView("v", "SELECT e.id, e.dep, e.pay, e.note FROM e WHERE e.id < 9999 AND (e.note <> 'zz' OR e.note IS NULL)", "id int, dep int, pay decimal, note text")
	s.makeView("vd", "SELECT e.id, e.dep, d.boss, e.pay, e.note FROM e JOIN d ON d.id = e.dep", "id int, dep int, boss int, pay decimal, note text")
	exact := 0
	rapid.Check(t, func(rt *rapid.T) {
		ors := make([][]operand, rapid.IntRange(1, 2).Draw(rt, "ors"))
		var texts []string
		for i := range ors {
			var arms []string
			for range rapid.IntRange(1, 3).Draw(rt, "arms") {
				a := drawArm(rt)
				if rapid.IntRange(0, 7).Draw(rt, "whole") == 0 {
					where := rapid.SampledFrom([]string{"x.note = 'a'", "x.pay > 99", "x.id < 3"}).Draw(rt, "where")
					a = operand{text: "EXISTS (SELECT 1 FROM e x WHERE " + where + ")", rows: []string{
						"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE " + where}}
				}
				ors[i], arms = append(ors[i], a), append(arms, a.text)
			}
			texts = append(texts, "("+strings.Join(arms, " OR ")+")")
		}
		query := "SELECT d.id, d.name, d.boss FROM d WHERE " + strings.Join(texts, " AND ")
		body := rapid.SampledFrom([]string{"SELECT id, dep, pay, note FROM e", "SELECT * FROM e", "SELECT id, note, y.dep, pay FROM e y WHERE y.id < 9999",
			"SELECT DISTINCT id, dep, pay, note FROM e", "SELECT dep, id, pay, COUNT(*) AS n, MAX(note) AS note FROM e GROUP BY dep, pay, id"}).Draw(rt, "body")
		switch rapid.IntRange(0, 3).Draw(rt, "passing") {
		case 0:
			query = "WITH w AS (" + body + ") " + strings.ReplaceAll(query, "FROM e x", "FROM w x")
		case 1:
			query = strings.Replace(query, "FROM e x", "FROM ("+body+") x", 1)
		case 2:
			query = strings.ReplaceAll(query, "FROM e x", "FROM v x")
		}
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || len(p.Result.Sources) < 2 {
			return
		}
		exact++
		want := make(map[string]bool)
		r := s.exec(query)
		for i := range r.Values {
			id, _ := r.GetInt(i, 0)
			want[fmt.Sprintf("d%d", id)] = true
			for _, or := range ors {
				s.turns(or, int(id), want)
			}
		}
		var all []string
		for id := range want {
			all = append(all, id)
		}
		slices.Sort(all)
		original := s.original(query, false)
		original.warnings = s.warned(0)
		proxied := s.see(literal(p, Values{}), p.HiddenColumns(), false)
		proxied.warnings = s.warned(0)
		if proxied.lacks(p.Result.Sources) {
			exact--
		}
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) ||
			original.warnings != proxied.warnings {
			rt.Fatalf("%s: %v, not %v", query, proxied, original)
		}
		plain := s.session
		plain.Repeats = false
		before := literal(s.rewriter.Plan(query, plain), Values{})
		lacks := less(s.accessed(before), s.accessed(literal(p, Values{})))
		if len(lacks) > 0 && !strings.Contains(s.explained(before), "Impossible WHERE") { // MySQL: nothing is read
			rt.Fatalf("%s lacks %v and has the plan\n%s\nnot\n%s", query, lacks, s.explained(literal(p, Values{})), s.explained(before))
		}
		shown := proxied.seen(t, p.Result.Sources)
		if got := strings.ReplaceAll(shown+" ", "=0 ", " "); strings.TrimSpace(got) != strings.Join(all, " ") {
			rt.Fatalf("%s shows %q, not %q", query, got, all)
		}
	})
	t.Logf("%d are exact", exact)
}

// turns adds the rows that the subqueries of an OR find for a row of the result.
func (s *readServer) turns(or []operand, id int, found map[string]bool) {
	holds := func(a operand) bool {
		n, _ := s.exec(fmt.Sprintf("SELECT COUNT(*) FROM d WHERE d.id = %d AND (%s)", id, a.text)).GetInt(0, 0)
		return n == 1
	}
	if slices.ContainsFunc(or, func(a operand) bool { return len(a.rows)+len(a.parts) == 0 && holds(a) }) {
		return
	}
	for _, a := range or {
		if slices.ContainsFunc(a.parts, func(p operand) bool { return len(p.rows) == 0 && !holds(p) }) {
			continue
		}
		for _, p := range append([]operand{{rows: a.rows}}, a.parts...) {
			for _, query := range p.rows {
				r := s.exec(strings.ReplaceAll(query, "d.id", fmt.Sprint(id)))
				for i := range r.Values {
					row, _ := r.GetString(i, 0)
					found[row] = true
				}
			}
			if p.text != "" && !holds(p) {
				break
			}
		}
		if len(a.rows)+len(a.parts) > 0 && holds(a) {
			return
		}
	}
}

// drawArm draws an operand of an OR.
func drawArm(t *rapid.T) operand {
	if rapid.IntRange(0, 5).Draw(t, "group") > 0 {
		return drawCondition(t)
	}
	first, second := drawCondition(t), drawCondition(t)
	if rapid.IntRange(0, 2).Draw(t, "negated") == 0 && !strings.Contains(first.text+second.text, " IN (") { // NOT IN reads all rows
		return operand{text: "(NOT (" + first.text + " OR " + second.text + "))", rows: append(first.rows, second.rows...)}
	}
	all := operand{text: first.text + " AND " + second.text, parts: []operand{first, second}}
	if rapid.IntRange(0, 2).Draw(t, "third") == 0 {
		third := drawCondition(t)
		all.text, all.parts = all.text+" AND "+third.text, append(all.parts, third)
	}
	if len(slices.Concat(first.rows, second.rows, all.parts[len(all.parts)-1].rows)) == 0 {
		return operand{text: "(" + all.text + ")"}
	}
	if rapid.Bool().Draw(t, "open") {
		all.text = "(" + all.text + ")"
	}
	return all
}

// drawCondition draws a condition of the row alone, or one with a subquery.
func drawCondition(t *rapid.T) operand {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if kind < 3 {
		return operand{text: one("d.id = 1", "d.boss > 3", "d.name = 'ops'", "d.boss IS NULL", "d.id > 9")}
	}
	where := one("x.note = 'a'", "x.pay > 15", "x.id < 4", "x.note IS NULL", "x.id > 40", "x.pay < 25 AND x.id > 1")
	not := one("", "", "NOT ")
	const of = "SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE "
	rows := []string{of + "x.dep = d.id AND " + where}
	switch {
	case kind == 8 && not == "" && rapid.IntRange(0, 2).Draw(t, "same") == 0: // its table's name hides the row's
		where = strings.NewReplacer("x.", "", "note", "name", "pay", "boss").Replace(where)
		return operand{text: one("d.boss", "boss") + " IN (SELECT " + one("id", "d.id") + " FROM d WHERE " + where + ")", rows: []string{
			"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM d x WHERE x.id = (SELECT w.boss FROM d w WHERE w.id = d.id) AND " + where}}
	case kind == 8 && not == "" && rapid.IntRange(0, 3).Draw(t, "computed") == 0:
		value := one("%s + 1", "(%s * 2 - 3)", "3 - %s", "%s + d.id * 0")
		rows := []string{strings.Replace(of, "e x WHERE ", "e x JOIN d w ON w.id = d.id WHERE ", 1) + "x.dep = " +
			strings.ReplaceAll(fmt.Sprintf(value, "w.boss"), "d.id", "w.id") + " AND " + where}
		return operand{text: fmt.Sprintf(value, one("boss", "d.boss")) + " IN (SELECT x.dep FROM e x WHERE " + where + ")", rows: rows}
	case kind == 8 && not == "" && rapid.IntRange(0, 2).Draw(t, "text") == 0:
		value := one("LEFT(%s, 1)", "LOWER(SUBSTRING(%s, 1, 1))", "CONCAT(TRIM(LEFT(%s, 1)), '')", "CASE WHEN %s = 'ops' THEN 'a' ELSE 'd' END",
			"IF(%s IS NULL, 'b', 'e')", "CAST(LEFT(%s, 1) AS CHAR)", "(LEFT(%s, 1) COLLATE utf8mb4_bin)")
		own := one("x.note", "LOWER(x.note)", "TRIM(note)")
		rows := []string{strings.Replace(of, "e x WHERE ", "e x JOIN d w ON w.id = d.id WHERE ", 1) + own + " = " + fmt.Sprintf(value, "w.name") + " AND " + where}
		return operand{text: fmt.Sprintf(value, one("name", "d.name")) + " IN (SELECT " + own + " FROM e x WHERE " + where + ")", rows: rows}
	case kind == 8 && not == "" && rapid.IntRange(0, 2).Draw(t, "union") == 0:
		other := one("x.name <> 'ops'", "x.boss IS NOT NULL", "x.id < 3")
		const boss = "SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM d x WHERE x.boss = d.id AND "
		union := one(" UNION ", " UNION ALL ", " UNION DISTINCT (", " INTERSECT ", " EXCEPT ", " INTERSECT (") // what it opens is closed
		end := strings.Repeat(")", strings.Count(union, "("))
		all := []string{rows[0], strings.Replace(boss, " = d.id", " = (SELECT w.id FROM d w WHERE w.id = d.id)", 1) + other}
		if rapid.Bool().Draw(t, "in") || !strings.Contains(union, "UNION") {
			return operand{text: "d.id IN (SELECT x.dep FROM e x WHERE " + where + union + "SELECT x.boss FROM d x WHERE " + other + end + ")", rows: all}
		}
		return operand{text: "EXISTS (SELECT 1 FROM e x WHERE x.dep = d.id AND " + where + union + "SELECT 2 FROM d x WHERE x.boss = d.id AND " + other + end + ")",
			rows: all}
	case kind < 6:
		return operand{text: not + "(d.boss " + one("<", ">=", "<>") + " (SELECT " + one("MAX(x.pay)", "COUNT(*)", "SUM(x.id)", "MIN(x.dep)") +
			" FROM e x WHERE x.dep = d.id AND " + where + "))", rows: rows}
	case kind == 7 && rapid.IntRange(0, 2).Draw(t, "using") == 0:
		const joined = " FROM e x JOIN d w USING (id) WHERE x.dep = d.id AND "
		return operand{text: not + "EXISTS (SELECT 1" + joined + where + ")", rows: []string{
			"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0'))" + joined + where,
			"SELECT CONCAT_WS('=', w.isotap_rowid, NULLIF(w.isotap_wlist, '0'))" + joined + where}}
	case kind == 6 && not == "" && rapid.IntRange(0, 2).Draw(t, "row") == 0:
		return operand{text: "(d.id, d.boss) IN (SELECT x.dep, x.pay FROM e x WHERE " + where + ")",
			rows: []string{of + "x.dep = d.id AND x.pay = (SELECT w.boss FROM d w WHERE w.id = d.id) AND " + where}}
	case kind == 6 && not == "":
		return operand{text: "d.id IN (SELECT x.dep FROM e x WHERE " + where + ")", rows: rows}
	}
	return operand{text: not + "EXISTS (SELECT 1 FROM e x WHERE x.dep = d.id AND " + where + ")", rows: rows}
}
