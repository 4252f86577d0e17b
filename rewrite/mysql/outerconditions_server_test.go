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

// TestConditionsOfOuterJoinsTellWhatSubqueriesRead draws outer joins whose conditions have subqueries. It holds what
// these show against what they find for the rows that have one of the optional table, and what a client sees, and the
// plan, against what it saw.
func TestConditionsOfOuterJoinsTellWhatSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact, without := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		own := drawCondition(r)
		if rapid.IntRange(0, 4).Draw(r, "whole") == 0 {
			own = operand{text: "d.boss < (SELECT MAX(x.pay) FROM e x WHERE x.note = 'n2')",
				rows: []string{"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE x.note = 'n2'"}}
		}
		query := "SELECT d.id, d.boss, z.id, z.pay FROM " + fmt.Sprintf(one("d LEFT JOIN e z ON z.dep = d.id AND %s", "e z RIGHT JOIN d ON z.id = d.boss AND z.pay > 9 AND %s",
			"d LEFT JOIN e z ON %s AND z.id = d.boss", "d LEFT JOIN (e z JOIN e y ON y.id = z.id) ON z.dep = d.id AND %s", "d w JOIN d ON d.id = w.id LEFT JOIN e z ON z.dep = d.id AND %s"), own.text) +
			one("", " WHERE d.boss > 2", " WHERE z.pay > 9", " WHERE z.id IS NULL") + one("", " ORDER BY d.id, z.id")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Beside }) {
			return
		}
		text := literal(p, Values{})
		proxied := s.see(text, p.HiddenColumns(), false)
		if proxied.full() || proxied.lacks(p.Result.Sources) {
			without++
			return // inexact
		}
		exact++
		want := make(map[string]bool)
		rows := s.exec(query)
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			want[s.identity("d", id)] = true
			if z, _ := rows.GetInt(i, 2); z > 0 {
				want[s.identity("e", z)] = true
				s.turns([]operand{own}, int(id), want)
			}
		}
		proxied.warnings = ""
		if got := ids(proxied.seen(s.t, p.Result.Sources)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, slices.Sorted(maps.Keys(want)))
		}
		plain := s.session
		plain.Repeats = false
		before := s.rewriter.Plan(query, plain)
		known := s.see(literal(before, Values{}), before.HiddenColumns(), false)
		if !slices.Equal(known.rows, proxied.rows) || !slices.Equal(known.columns, proxied.columns) {
			r.Fatalf("%s\n%s: %v, not %v", query, text, proxied, known)
		}
		if lacks := less(s.accessed(literal(before, Values{}), "Extra"), s.accessed(text, "Extra")); len(lacks) > 0 {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(literal(before, Values{})))
		}
	})
	if t.Logf("%d are exact, %d lack something", exact, without); exact == 0 {
		t.Error("none was exact")
	}
}

// TestTheFirstInAnOrderIsToldWhereItIsAlone draws scalar subqueries with LIMIT 1 in an order, of rows some of which are
// equal, or in none, and on MySQL of queries in FROM. It holds what is told against what is equal to the first one.
func TestTheFirstInAnOrderIsToldWhereItIsAlone(t *testing.T) {
	s := carriedServer(t)
	exact, tied := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		columns := strings.Split(one("pay", "pay,dep", "dep,pay", "dep", "pay,id", "x.pay", "note"), ",")
		var order, equal []string
		from := " FROM e x WHERE x.dep = d.id" + one("", " AND x.pay < 20", " AND (x.note = 'n1' OR x.id < 4)", " AND x.pay < 9 AND x.id > 3")
		for _, c := range columns {
			order = append(order, c+one("", " DESC", " ASC"))
		}
		by := " ORDER BY " + strings.Join(order, ", ") + " LIMIT 1"
		if rapid.IntRange(0, 2).Draw(r, "unordered") == 0 {
			by, columns = " LIMIT 1", nil
		}
		for _, c := range columns {
			equal = append(equal, " AND "+c+" <=> (SELECT "+c+from+by+")")
		}
		value := "(SELECT x.pay" + from + by + ")"
		if s.session.Dialect == MySQL && rapid.Bool().Draw(r, "wrapped") {
			value = "(SELECT JSON_OBJECT('i', q.id, 'p', q.pay) FROM (SELECT " + one("x.*", "x.id, x.pay") + from + by + ") AS q)"
		}
		query := "SELECT d.id, d.boss, " + value + " AS n FROM d" + one("", " WHERE d.id < 4", " WHERE d.boss = 2", " WHERE d.id = 2")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			return
		}
		want, ties := make(map[string]bool), false
		rows := s.exec(query)
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			want[s.identity("d", id)] = true
			first := s.exec(strings.ReplaceAll("SELECT x.id"+from+strings.Join(equal, ""), "d.id", fmt.Sprint(id)))
			ties = ties || len(first.Values) > 1
			for k := range first.Values {
				picked, _ := first.GetInt(k, 0)
				want[s.identity("e", picked)] = true
			}
		}
		proxied := s.see(literal(p, Values{}), p.HiddenColumns(), false)
		if told := !proxied.cutOff(p.Result.Sources); told == ties {
			r.Fatalf("%s: of several it tells one: %t, %t; %q", query, told, ties, proxied.hidden)
		}
		if tied++; !ties {
			exact++
			tied--
			s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
		}
	})
	if t.Logf("%d are exact, in %d others rows are equal", exact, tied); exact == 0 || tied == 0 {
		t.Error("none was exact, or none not")
	}
}

// TestTheFirstRowsInAnOrderAreTold draws trees of the first rows in an order that tells all rows apart, and holds what
// they tell against these.
func TestTheFirstRowsInAnOrderAreTold(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		limit := rapid.IntRange(0, 70).Draw(r, "limit")
		hangs := one(" FROM e x WHERE x.dep = d.id", " FROM e x WHERE x.dep = d.boss AND x.pay > 3", " FROM e x WHERE x.dep < d.id")
		if s.session.Dialect == MariaDB || rapid.IntRange(0, 3).Draw(r, "whole") == 0 {
			hangs = one(" FROM e x WHERE x.dep = 3", " FROM e x WHERE x.dep < 9", " FROM e x")
		}
		from := hangs + " ORDER BY " + one("x.id", "x.id DESC", "x.pay, x.id", "x.dep DESC, x.pay, x.id DESC") + fmt.Sprintf(" LIMIT %d", limit)
		query := "SELECT d.id, d.boss, (SELECT " + one("JSON_ARRAYAGG(q.i)", "COALESCE(JSON_ARRAYAGG(JSON_OBJECT('i', q.i)), 1)") + " FROM (SELECT x.id AS i, x.pay" + from +
			") AS q) AS n FROM d" + one("", " WHERE d.id < 4", " WHERE d.boss = 2", " WHERE d.id = 2")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			return
		}
		want := make(map[string]bool)
		rows := s.exec(query)
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			boss, _ := rows.GetString(i, 1)
			if boss == "" {
				boss = "NULL"
			}
			want[s.identity("d", id)] = true
			first := s.exec(strings.NewReplacer("d.id", fmt.Sprint(id), "d.boss", boss).Replace("SELECT x.id" + from))
			for k := range first.Values {
				picked, _ := first.GetInt(k, 0)
				want[s.identity("e", picked)] = true
			}
		}
		if proxied := s.see(literal(p, Values{}), p.HiddenColumns(), false); len(rows.Values) == 0 || proxied.cutOff(p.Result.Sources) {
			if limit < MaxBeside && len(rows.Values) > 0 {
				r.Fatalf("%s tells not all of %d", query, limit)
			}
			return
		}
		exact++
		s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
		plain := s.session
		plain.Repeats = false
		before := literal(s.rewriter.Plan(query, plain), Values{})
		if lacks := less(s.accessed(before, "Extra"), s.accessed(literal(p, Values{}), "Extra")); len(lacks) > 0 {
			r.Fatalf("%s lacks %q of its plan", query, lacks)
		}
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}
