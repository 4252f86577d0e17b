package mysql

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestGroupsThatHavingLeavesOutAreTold draws queries that group with HAVING. It holds what they show against all rows
// that they group, and what a client sees against what it saw.
func TestGroupsThatHavingLeavesOutAreTold(t *testing.T) {
	s := carriedServer(t)
	exact, none, forms := 0, 0, make(map[string]int)
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		from := one("d", "d WHERE d.boss > 2", "d WHERE d.id < 9 OR d.boss = 3", "d JOIN e ON e.dep = d.id", "d, e WHERE e.dep = d.boss AND e.pay < 20", "e JOIN d USING (id)")
		list := one("COUNT(*) AS n", "SUM(d.id) AS n", "MAX(d.id) AS n", "COUNT(DISTINCT d.name), COUNT(*) AS n", "MIN(d.name), COUNT(*) AS n", "COUNT(d.boss) AS n")
		group := one("d.boss", "d.boss, d.id", "d.name", "")
		having := one("COUNT(*) > 1", "n > 1", "n < 3", "MAX(d.id) < 5", "n = 1 AND COUNT(*) < 9", "COUNT(*) > 1 OR n > 2", "NOT (n = 1)", "SUM(d.boss) IS NULL", "n > 1 AND "+group+" > 1", "MIN(d.boss) > 2")
		if strings.Contains(having, "AND ") && strings.Contains(having, ",") || strings.Contains(having, "AND  >") {
			having = "n > 1"
		}
		query := "SELECT " + list + " FROM " + from
		if group != "" {
			query = "SELECT " + one(group+", ", "") + list + " FROM " + from + " GROUP BY " + group
		}
		query += " HAVING " + having
		if group != "" {
			query += one(" ORDER BY "+group, "")
		}
		switch rapid.IntRange(0, 3).Draw(r, "form") {
		case 0: // on groups in FROM, or of the WITH clause
			inner, behind, _ := strings.Cut(query, " HAVING ")
			where := one("q.n > 1", "n < 3 AND q.n > 1", "q.n = 1 OR n > 2", "NOT q.n > 2", "q.n > 1 AND q.g > 1", "q.n > 9 OR q.g > 1 AND q.n > 1")
			having = strings.ReplaceAll(where, "AND q.g", "AND d.")
			having = strings.ReplaceAll(having, "OR q.g", "AND d.")
			if group == "" || strings.Contains(group, ",") {
				return
			}
			inner = strings.Replace(inner, "SELECT ", "SELECT "+group+" AS g, ", 1) + one("", " HAVING COUNT(*) < 9")
			query = "SELECT q.n FROM (" + inner + ") AS q WHERE " + where
			if _, _, ordered := strings.Cut(behind, " ORDER BY "); ordered {
				query = "WITH q AS (" + inner + ") SELECT q.n, q.g FROM q WHERE " + where + " ORDER BY q.g"
			}
		case 1: // on windows
			window := one("ROW_NUMBER() OVER (ORDER BY d.id", "COUNT(*) OVER (PARTITION BY d.boss", "RANK() OVER (PARTITION BY d.boss ORDER BY d.id") + ")"
			where := one("q.n > 1", "n < 3", "q.n = 1 OR n > 2", "q.n <= 2 AND q.boss > 1")
			having = strings.ReplaceAll(where, "AND q.", "AND d.")
			query = "SELECT q.n FROM (SELECT d.id, d.boss, " + window + " AS n FROM " + from + ") AS q WHERE " + where
			if of, of1 := strings.ReplaceAll(window, "d.", "w."), from[:1] == "d" && !strings.Contains(from, "e."); of1 {
				query = one(query, "WITH w AS (SELECT id, boss, name FROM "+from+"), q AS (SELECT w.*, "+of+" AS n FROM w) SELECT q.n FROM q WHERE "+where,
					"WITH w AS (SELECT d.* FROM "+from+"), q AS (SELECT v.id, v.boss, "+strings.ReplaceAll(of, "w.", "v.")+" AS n FROM w v WHERE v.id > 2) SELECT q.n FROM q WHERE "+where,
					"SELECT q.n FROM (SELECT w.id, w.boss, "+of+" AS n FROM (SELECT d.id, d.boss FROM "+from+") AS w) AS q WHERE "+where)
				if strings.Contains(query, "v.id > 2") {
					from = "(SELECT * FROM " + from + ") AS d WHERE d.id > 2"
				}
			}
		}
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			return
		}
		forms[query[:4]+strings.SplitAfter(query, "FROM ")[1][:1]]++
		if strings.Contains(having, "AND d.") {
			r.Fatalf("%s is exact", query)
		}
		text := literal(p, Values{})
		proxied := s.see(text, p.HiddenColumns(), false)
		if len(proxied.rows) == 0 {
			none++
			return // inexact
		}
		exact++
		proxied.warnings = s.warned(0)
		original := s.original(query, false)
		original.warnings = s.warned(0)
		want := make(map[string]bool)
		for _, table := range []string{"d", "e"} {
			if table == "e" && !strings.Contains(from, "e ") {
				continue
			}
			rows := s.exec("SELECT DISTINCT " + table + ".id FROM " + from)
			for i := range rows.Values {
				id, _ := rows.GetInt(i, 0)
				want[s.identity(table, id)] = true
			}
		}
		if got := ids(proxied.seen(s.t, p.Result.Sources)); !slices.Equal(slices.Sorted(maps.Keys(want)), got) {
			r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, slices.Sorted(maps.Keys(want)))
		}
		plain := s.session
		plain.Repeats = false
		before := s.rewriter.Plan(query, plain)
		without := query // what is told aside alone
		if before.Upstream.Pieces != nil {
			without = literal(before, Values{})
		}
		known := s.see(without, before.HiddenColumns(), false)
		if !slices.Equal(known.rows, proxied.rows) || !slices.Equal(known.columns, proxied.columns) || original.warnings != proxied.warnings {
			r.Fatalf("%s\n%s: %v, not %v", query, text, proxied, known)
		}
		if slices.Sort(original.rows); !strings.Contains(query, "ORDER BY") {
			slices.Sort(proxied.rows)
		} else {
			original.rows = s.original(query, false).rows
		}
		if !slices.Equal(original.rows, proxied.rows) {
			r.Fatalf("%s\n%s: %v, not %v", query, text, proxied.rows, original.rows)
		}
		if as, is := s.flags(without, before.HiddenColumns()), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if lacks := less(s.accessed(without, "Extra"), s.accessed(text, "Extra")); len(lacks) > 0 {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(without))
		}
	})
	if t.Logf("%d are exact, %d had no group: %v", exact, none, forms); exact == 0 {
		t.Error("none was exact")
	}
}

// TestConditionsOnPartitionsChooseRowsBeforeWindows holds why such conditions leave a statement inexact: the server
// reads the rows of the partitions that they ask for alone. One on another column chooses among all rows.
func TestConditionsOnPartitionsChooseRowsBeforeWindows(t *testing.T) {
	s := carriedServer(t)
	for where, within := range map[string]bool{"v.boss < 3": true, "v.name > 'd1'": false, "v.boss < v.id": false} {
		plan := s.explainedBy("EXPLAIN FORMAT=JSON SELECT * FROM (SELECT id, boss, name, RANK() OVER (PARTITION BY boss ORDER BY id) AS r FROM d) v WHERE v.r <= 1 AND " + where)
		inner := strings.Contains(plan, "d.boss < 3") || strings.Contains(plan, "`d`.`boss` < 3")
		if inner != within {
			t.Errorf("%s: before the windows: %t\n%s", where, inner, plan)
		}
	}
}
