package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// silentConditions are conditions of a subquery of e beside a row of d that may fail, or be warned of, for none.
var silentConditions = map[string][]string{
	"where": {"<number> <op> <number>", "<number> <op> <number>", "<text> <op> <text>", "<moment> <op> <moment>", "<where> AND <where>", "<where> OR <where>", "NOT (<where>)",
		"CASE WHEN <where> THEN <number> ELSE <number> END <op> <number>", "CASE WHEN <where> THEN <where> ELSE <where> END", "<number> BETWEEN <number> AND <number>", "IF(<where>, <where>, <number>)",
		"<number> IN (<number>, <int>)", "ISNULL(<number>)", "<text> LIKE <text>"},
	"op": {"=", "<>", "<", "<=", ">", ">=", "<=>"},
	"number": {"x.id", "x.dep", "x.pay", "d.id", "d.boss", "<int>", "<int>", "COALESCE(<number>, <number>)", "IFNULL(<number>, <int>)", "NULLIF(<number>, <number>)", "GREATEST(<number>, <number>)",
		"LEAST(<number>, <int>)", "(<whole> + <whole>)", "(<whole> - <whole>)", "(<whole> * <int>) % 1000", "CASE x.dep WHEN <number> THEN <number> ELSE <number> END", "IF(<where>, <number>, <number>)",
		"- x.dep", "(d.boss * x.id)", "(x.id * x.dep * d.id * d.boss)", "CHAR_LENGTH(<text>)", "6 / x.dep", "(x.pay + 1)"},
	"whole":  {"x.id", "x.dep", "d.boss", "<int>", "(<whole> - <whole>) % 7", "(<whole> % <int>)"},
	"text":   {"x.note", "d.name", "'n1'", "LOWER(<text>)", "COALESCE(<text>, 'n2')", "CASE WHEN <where> THEN <text> ELSE 'x' END", "NULLIF(<text>, <text>)", "GREATEST(<text>, 'b')"},
	"moment": {"DATE '2020-01-01'", "DATE '2021-02-03'", "'2020-01-01'", "COALESCE(DATE '2020-01-01', DATE '2021-02-03')"},
	"int":    {"1", "2", "3", "9", "0", "-2"},
}

// TestWhatFailsForNoneIsReadAgain draws subqueries with such conditions, and holds what they tell, and what a client
// sees, and the plan, against what they find.
func TestWhatFailsForNoneIsReadAgain(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		where := drawText(r, silentConditions, "<where>")
		query := drawText(r, map[string][]string{"query": {"SELECT d.id, d.boss FROM d WHERE EXISTS (SELECT 1 FROM e x WHERE %s)", "SELECT d.id, d.boss, (SELECT COUNT(*) FROM e x WHERE %s) AS n FROM d",
			"SELECT d.id, d.boss FROM d WHERE d.id > (SELECT MIN(x.dep) FROM e x WHERE %s)", "SELECT d.id, d.boss FROM d WHERE d.id = 1 OR d.boss IN (SELECT x.dep FROM e x WHERE %s)",
			"SELECT COUNT(*), MAX(d.name) FROM d WHERE EXISTS (SELECT 1 FROM e x WHERE %s)"}}, "<query>")
		behind := strings.Contains(query, " OR ")
		query = fmt.Sprintf(query, where)
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Beside }) {
			return
		}
		proxied := s.see(literal(p, Values{}), p.HiddenColumns(), false)
		if proxied.full() || proxied.cutOff(p.Result.Sources) || len(proxied.rows) == 0 {
			return // inexact
		}
		exact++
		want := make(map[string]bool)
		grouped := strings.Contains(query, "COUNT(*), MAX")
		rows := s.exec(query)
		if grouped {
			rows = s.exec("SELECT d.id, d.boss FROM d WHERE EXISTS (SELECT 1 FROM e x WHERE " + where + ")")
		}
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			want[s.identity("d", id)] = true
			if behind && id == 1 {
				continue
			}
			own := ""
			if behind {
				own = " AND d.boss = x.dep"
			}
			found := s.exec(fmt.Sprintf("SELECT x.id FROM e x, d WHERE d.id = %d AND (%s)%s", id, where, own))
			for k := range found.Values {
				x, _ := found.GetInt(k, 0)
				want[s.identity("e", x)] = true
			}
		}
		s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
		plain := s.session
		plain.Repeats = false
		before := literal(s.rewriter.Plan(query, plain), Values{})
		if lacks := less(s.accessed(before), s.accessed(literal(p, Values{}))); len(lacks) > 0 {
			r.Fatalf("%s lacks %q of its plan", query, lacks)
		}
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}
