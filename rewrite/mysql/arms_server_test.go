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
}

// TestArmsTellTheRowsOfTheirTurn draws conditions of several ORs, and holds what their subqueries show against what
// they find when it is their turn: behind arms that do not hold, where no condition of the row alone does.
func TestArmsTellTheRowsOfTheirTurn(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
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
		original := s.see(query, 0, false)
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
		if lacks := less(s.accessed(before), s.accessed(literal(p, Values{}))); len(lacks) > 0 {
			rt.Fatalf("%s has the plan\n%s\nnot\n%s", query, s.explained(literal(p, Values{})), s.explained(before))
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
	if slices.ContainsFunc(or, func(a operand) bool { return len(a.rows) == 0 && holds(a) }) {
		return
	}
	for _, a := range or {
		for _, query := range a.rows {
			r := s.exec(strings.ReplaceAll(query, "d.id", fmt.Sprint(id)))
			for i := range r.Values {
				row, _ := r.GetString(i, 0)
				found[row] = true
			}
		}
		if len(a.rows) > 0 && holds(a) {
			return
		}
	}
}

// drawArm draws an operand of an OR.
func drawArm(t *rapid.T) operand {
	if rapid.IntRange(0, 9).Draw(t, "group") == 0 { // what must hold as a whole
		first, second := drawCondition(t), drawCondition(t)
		all := operand{text: first.text + " AND " + second.text, rows: append(first.rows, second.rows...)}
		if rapid.Bool().Draw(t, "negated") && !strings.Contains(all.text, " IN (") { // NOT IN reads all rows
			all.text = "NOT (" + first.text + " OR " + second.text + ")"
		}
		return operand{text: "(" + all.text + ")", rows: all.rows}
	}
	return drawCondition(t)
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
