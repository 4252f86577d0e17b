package mysql

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestGroupsToldAsideAreThoseOfTheClient draws statements that group and cannot have arrays in their groups. It holds
// what they show against all rows that they group, and rows, their order, columns, flags, warnings and plans against
// those of the client's text.
func TestGroupsToldAsideAreThoseOfTheClient(t *testing.T) {
	s := carriedServer(t)
	exact, all, forms := 0, 0, make(map[string]int)
	rapid.Check(t, func(r *rapid.T) {
		query, reads := drawGroups(r)
		plain := s.session
		plain.Repeats = false
		if s.rewriter.Plan(query, plain).Upstream.Pieces != nil {
			return // it has arrays
		}
		all++
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			return
		}
		text := literal(p, Values{})
		proxied := s.see(text, p.HiddenColumns(), false)
		if len(proxied.rows) == 0 {
			return // inexact
		}
		exact++
		if strings.Contains(query, " FROM (") {
			forms["in FROM"]++
		}
		forms[p.Upstream.Pieces[0].Text[len("SELECT "):][:strings.IndexAny(query[len("SELECT "):], "(,")]]++
		proxied.warnings = s.warned(0)
		original := s.see(query, 0, false)
		original.warnings = s.warned(0)
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) || original.warnings != proxied.warnings {
			r.Fatalf("%s\n%s: %v, not %v", query, text, proxied, original)
		}
		if as, is := s.flags(query, 0), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if lacks := less(s.accessed(query, "Extra"), s.accessed(text, "Extra")); len(lacks) > 0 {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(query))
		}
		want := make(map[string]bool)
		for _, of := range reads {
			rows := s.exec("SELECT DISTINCT " + of.alias + ".id FROM " + of.from + " AND " + of.alias + ".id IS NOT NULL")
			for i := range rows.Values {
				id, _ := rows.GetInt(i, 0)
				want[s.identity(of.alias[:1], id)] = true
			}
		}
		if got := ids(proxied.seen(s.t, p.Result.Sources)); !slices.Equal(slices.Sorted(maps.Keys(want)), got) {
			r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, slices.Sorted(maps.Keys(want)))
		}
	})
	if t.Logf("%d of %d are exact: %v", exact, all, forms); exact == 0 && all >= 100 {
		t.Error("none was exact")
	}
}

// drawGroups draws a statement that groups, and what it reads.
func drawGroups(r *rapid.T) (query string, reads []treeRead) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	from := one("d", "d", "d JOIN e ON e.dep = d.id", "e JOIN d ON e.id = d.id", "d LEFT JOIN e ON e.dep = d.id AND e.pay < 30", "e RIGHT JOIN d ON e.id = d.id")
	where := one("d.boss > 2", "(d.id < 9 OR d.boss = 3)", "d.id > 0", "d.boss IS NOT NULL")
	reads = []treeRead{{"d", from + " WHERE " + where}}
	inner := ""
	switch rapid.IntRange(0, 4).Draw(r, "subquery") {
	case 0:
		where += " AND EXISTS (SELECT 1 FROM e e2 WHERE e2.dep = d.id)"
		inner = "JOIN e e2 ON e2.dep = d.id"
	case 1:
		where += " AND d.id < (SELECT MAX(e2.id) FROM e e2)"
		inner = "JOIN e e2"
	case 2:
		where += " AND d.id IN (SELECT e2.dep FROM e e2 WHERE e2.pay < 40)"
		inner = "JOIN e e2 ON e2.dep = d.id AND e2.pay < 40"
	}
	reads[0].from = from + " WHERE " + where
	if strings.Contains(from, "e ") {
		reads = append(reads, treeRead{"e", reads[0].from})
	}
	if inner != "" {
		reads = append(reads, treeRead{"e2", from + " " + inner + " WHERE " + where})
	}
	group := one("d.boss", "d.name", "d.boss, d.name", "d.boss > 3", "LENGTH(d.name)", "d.id", "d.name + 0")
	items := []string{one("MIN(d.id)", "MAX(d.boss)", "COUNT(*)", "MAX(d.name)", "SUM(d.id), MIN(d.name)", "COUNT(DISTINCT d.id), MIN(d.boss)")}
	if rapid.Bool().Draw(r, "shows it") {
		items = append([]string{group}, items...)
	}
	if column := strings.Split(group, ",")[0]; column == "d.boss" || column == "d.name" || column == "d.id" {
		items = append(items, one(column+" > 2 AS c", "CONCAT("+column+", 'x')", "IF("+column+" IS NULL, 1, 2)", "COALESCE("+column+", 7)", "YEAR("+column+" + 20010101)", "1"))
	}
	rows := from + " WHERE " + where
	if rapid.IntRange(0, 2).Draw(r, "in FROM") == 0 {
		rows = "(SELECT d.id, d.boss, d.name FROM " + rows + ") AS d"
	}
	query = "SELECT " + strings.Join(items, ", ") + " FROM " + rows + " GROUP BY " + group + one("", "", " WITH ROLLUP") +
		one("", "", " HAVING COUNT(*) > 1", " HAVING MIN(d.id) < 9")
	return query + one("", " ORDER BY 1", " ORDER BY 1 DESC", " ORDER BY COUNT(*), MIN(d.id)"), reads
}
