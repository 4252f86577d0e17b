package mysql

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// carriedServer has so many rows that plans differ, and statistics that stay as they are.
func carriedServer(t *testing.T) *readServer {
	t.Helper()
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	s := newReadServer(t)
	s.session.Repeats = true
	s.exec("INSERT INTO d (id, name, boss, isotap_rowid, isotap_wlist) SELECT 3 + n, CONCAT('d', n % 4), n % 9, CONCAT('d', 3 + n), '0' FROM (" +
		testdb.Numbers(20) + ") AS numbers")
	s.exec("INSERT INTO e (id, dep, pay, note, isotap_rowid, isotap_wlist) SELECT 100 + (n * 37) % 500, n % 12, n % 31, " +
		"CONCAT('n', n % 5), CONCAT('e', 100 + (n * 37) % 500), '0' FROM (" + testdb.Numbers(60) + ") AS numbers")
	for _, table := range []string{"d", "e"} {
		s.exec("ALTER TABLE " + table + " STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
	}
	s.exec("ANALYZE TABLE d, e")
	return s
}

// A fromQuery is a query in FROM, or of the WITH clause, with conditions that must all hold.
type fromQuery struct {
	text string
	ors  [][]operand
}

// TestQueriesInFromTellWhatTheirSubqueriesRead draws queries in FROM and of the WITH clause with subqueries. It holds
// what these show against what they find for the rows of the statement, and what a client sees against what it saw.
func TestQueriesInFromTellWhatTheirSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact, covered, tried := 0, 0, 0
	forms := make(map[string]int)
	rapid.Check(t, func(r *rapid.T) {
		query, form, joined, all := drawFrom(r)
		p := s.rewriter.Plan(query, s.session)
		tried++
		if p.Observation != history.Exact || !slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Beside }) {
			return
		}
		original := s.original(query, false)
		original.warnings = s.warned(0)
		if len(original.rows) == 0 {
			return // of a subquery that hangs on no row it is not known then whether it ran
		}
		exact++
		forms[form]++
		text := literal(p, Values{})
		proxied := s.see(text, p.HiddenColumns(), false)
		proxied.warnings = s.warned(0)
		if proxied.full() {
			return // inexact
		}
		if want, got := s.readBy(query, joined, all), ids(proxied.seen(t, p.Result.Sources)); !slices.Equal(want, got) {
			r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, want)
		}
		plain := s.session
		plain.Repeats = false
		before := s.rewriter.Plan(query, plain)
		known := s.see(literal(before, Values{}), before.HiddenColumns(), false)
		if !slices.Equal(known.rows, original.rows) || !slices.Equal(known.columns, original.columns) {
			covered++ // an index alone answered (ADR 3)
			original.rows, original.columns = known.rows, known.columns
		}
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) ||
			original.warnings != proxied.warnings {
			r.Fatalf("%s\n%s: %v, %v, %s, not %v, %v, %s", query, text, proxied.rows, proxied.columns, proxied.warnings, original.rows,
				original.columns, original.warnings)
		}
		as, is := s.accessed(literal(before, Values{})), s.accessed(text)
		for _, line := range as {
			at := slices.Index(is, line)
			if at < 0 {
				r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(literal(before, Values{})))
			}
			is = slices.Delete(is, at, at+1)
		}
	})
	t.Logf("%d of %d are exact, %v; of %d an index alone answers some", exact, tried, forms, covered)
	if exact == 0 {
		t.Error("none was exact")
	}
}

// full reports whether an array has as many identities as it may.
func (p sight) full() bool {
	return slices.ContainsFunc(p.hidden, func(row []string) bool {
		return slices.ContainsFunc(row, func(cell string) bool { return strings.Count(cell, `"`) >= 2*MaxBeside })
	})
}

// ids cuts identities apart, without versions that tell nothing.
func ids(seen string) []string {
	return slices.Sorted(slices.Values(strings.Fields(strings.ReplaceAll(seen+" ", "=0 ", " "))))
}

// readBy returns the identities of the rows that a query of drawFrom reads: of d by its first column, of e by a column
// named z, and what the conditions find for those rows.
func (s *readServer) readBy(query string, joined bool, all []fromQuery) []string {
	want := make(map[string]bool)
	r := s.exec(query)
	of := make(map[int64]bool)
	for i := range r.Values {
		id, _ := r.GetInt(i, 0)
		of[id] = true
		if z, _ := r.GetInt(i, 2); joined && z > 0 {
			want[s.identity("e", z)] = true
		}
	}
	delete(of, 0) // there is none
	for id := range of {
		want[s.identity("d", id)] = true
		for _, q := range all {
			for _, or := range q.ors {
				s.turns(or, int(id), want)
			}
		}
	}
	var sorted []string
	for id := range want {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	return sorted
}

// identity returns that of a row.
func (s *readServer) identity(table string, id int64) string {
	name, _ := s.exec(fmt.Sprintf("SELECT CONCAT_WS('=', isotap_rowid, NULLIF(isotap_wlist, '0')) FROM %s WHERE id = %d", table, id)).GetString(0, 0)
	return name
}

// accessed returns how a plan reads each table, and more columns of what EXPLAIN says.
func (s *readServer) accessed(query string, more ...string) (lines []string) {
	s.t.Helper()
	format := ""
	if s.session.Dialect == MySQL {
		format = "FORMAT=TRADITIONAL " // from 9 on it prints a tree otherwise
	}
	r := s.exec("EXPLAIN " + format + query)
	for i := range r.Values {
		var cells []string
		for _, name := range append([]string{"table", "type", "key", "key_len", "ref"}, more...) {
			cell, err := r.GetStringByName(i, name)
			if err != nil {
				s.t.Fatal(err)
			}
			cells = append(cells, cell)
		}
		lines = append(lines, numbered.ReplaceAllString(strings.Join(cells, "|"), "<$1>"))
	}
	return lines
}

// numbered are the names of queries in a plan, such as <derived2>.
var numbered = regexp.MustCompile("<([a-z]+)[0-9,]+>")

// drawFrom draws a statement with such queries, what its first column is named d's key, and whether its third is e's.
func drawFrom(r *rapid.T) (query, form string, joined bool, all []fromQuery) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	first := drawFromQuery(r)
	all = []fromQuery{first}
	where := one("", "", " WHERE x.boss > 2", " WHERE x.id < 9", " WHERE x.boss = 4 OR x.id = 1", " WHERE x.boss IS NULL")
	order := one("", "", " ORDER BY x.id", " ORDER BY x.boss, x.id DESC", " ORDER BY x.id LIMIT 2")
	total := one("", " ORDER BY x.id, z.id", " ORDER BY z.pay DESC, z.id, x.id LIMIT 3")
	list := one("x.id, x.boss", "x.*", "*", "x.id, x.boss + 1")
	switch form = one("derived", "limit", "with", "nested", "join", "left", "optional", "on", "two", "outer", "columns", "plain"); form {
	case "plain":
		query = strings.Replace(first.text, "d.*", "d.id, d.boss, d.name", 1)
	case "limit":
		query = "SELECT " + list + " FROM (" + first.text + " ORDER BY d.id" + one("", " DESC") + " LIMIT " + one("1", "3", "50") + ") AS x" + where + order
	case "with":
		query = "WITH x AS (" + first.text + ") SELECT " + list + " FROM x" + where + order
	case "columns":
		query = "WITH x (id, boss, n) AS (" + strings.Replace(first.text, "d.*", "d.id, d.boss, d.name", 1) + ") SELECT " + list + " FROM x" + where + order
	case "nested":
		query = "SELECT " + list + " FROM (SELECT " + one("w.id, w.boss", "w.*", "*") + " FROM (" + first.text + ") AS w" +
			one("", " WHERE w.boss < 7", " ORDER BY w.id LIMIT 3") + ") AS x" + where + order
	case "join":
		joined = true
		query = "SELECT x.id, x.boss, z.id, z.pay FROM " + one("("+first.text+") AS x JOIN e z ON z.dep = x.id", "e z JOIN ("+first.text+") AS x ON x.id = z.dep AND z.pay > 9",
			"("+first.text+") AS x JOIN e z ON z.id = x.boss") + where + total
	case "left":
		joined = true
		query = "SELECT x.id, x.boss, z.id, z.pay FROM (" + first.text + ") AS x LEFT JOIN e z ON z.dep = x.id AND z.pay > 12" + where + total
	case "optional":
		joined = true
		query = "SELECT x.id, x.boss, z.id, z.pay FROM e z LEFT JOIN (" + first.text + ") AS x ON x.id = z.dep" +
			one("", " AND z.pay > 12", " AND x.boss < 5") + one("", " WHERE z.pay < 20", " WHERE x.id IS NULL OR x.boss > 1") + total
	case "two":
		second := drawFromQuery(r)
		all = append(all, second)
		query = "SELECT x.id, x.boss, y.boss FROM (" + first.text + ") AS x JOIN (" + second.text + ") AS y ON y.id = x.id" + where + order
	case "on":
		joined = true
		own := drawCondition(r)
		all = []fromQuery{{ors: [][]operand{{own}}}}
		query = "SELECT d.id, d.boss, z.id, z.pay FROM d JOIN e z ON z.dep = d.id AND " + own.text +
			one("", " WHERE d.boss > 2", " WHERE z.pay > 9") + one("", " ORDER BY d.id, z.id")
	case "outer":
		own := drawCondition(r)
		all = append(all, fromQuery{ors: [][]operand{{own}}})
		query = "SELECT x.id, x.boss FROM (" + first.text + ") AS x WHERE " + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(own.text, "x.", "q."), "e x", "e q"), "d.", "x.")
	default:
		query = "SELECT " + list + " FROM (" + first.text + ") AS x" + where + order
	}
	return query, form, joined, all
}

// drawNested draws EXISTS with a condition that compares what another subquery finds for its rows.
func drawNested(r *rapid.T) operand {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	where := "x.dep = d.id AND x.pay " + one("<", ">=", "<>") + " (SELECT " + one("MAX(y.pay)", "COUNT(*)", "MIN(y.pay)") +
		" FROM e y WHERE " + one("y.dep = x.dep AND ", "y.id > x.id AND ") + one("y.note = 'n1'", "y.pay > 8", "y.id > 200") + ")"
	_, inner, _ := strings.Cut(strings.TrimSuffix(where, ")"), "FROM e y WHERE ")
	return operand{text: one("", "NOT ") + "EXISTS (SELECT 1 FROM e x WHERE " + where + ")", rows: []string{
		"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE " + where,
		"SELECT CONCAT_WS('=', y.isotap_rowid, NULLIF(y.isotap_wlist, '0')) FROM e x, e y WHERE " +
			strings.ReplaceAll(strings.ReplaceAll(where, "y.", "z."), "e y", "e z") + " AND " + inner}}
}

// drawFromQuery draws a query of the table d with conditions.
func drawFromQuery(r *rapid.T) (q fromQuery) {
	var texts []string
	for range rapid.IntRange(1, 2).Draw(r, "ors") {
		var or []operand
		var arms []string
		for range rapid.IntRange(1, 2).Draw(r, "arms") {
			a := drawArm(r)
			if rapid.IntRange(0, 4).Draw(r, "whole") == 0 {
				a = operand{text: "d.boss < (SELECT MAX(x.pay) FROM e x WHERE x.note = 'n2')",
					rows: []string{"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE x.note = 'n2'"}}
			}
			if rapid.IntRange(0, 4).Draw(r, "nested") == 0 {
				a = drawNested(r)
			}
			or, arms = append(or, a), append(arms, a.text)
		}
		q.ors, texts = append(q.ors, or), append(texts, "("+strings.Join(arms, " OR ")+")")
	}
	q.text = "SELECT " + rapid.SampledFrom([]string{"d.id, d.boss, d.name", "d.*", "d.id, d.boss"}).Draw(r, "list") + " FROM d WHERE " + strings.Join(texts, " AND ")
	return q
}

// TestCountsTellWhatSubqueriesRead draws counts of what a query in FROM has of distinct rows, or groups, with
// subqueries. It holds what they show against what the query and its subqueries find, and what a client sees against
// what it saw.
func TestCountsTellWhatSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		where, all := drawConditions(r)
		list := one("d.boss", "d.boss, d.name", "d.name, d.boss + 1 AS boss", "d.boss, d.id")
		inner := "SELECT DISTINCT " + list + where
		if rapid.Bool().Draw(r, "groups") {
			inner = "SELECT d.boss, COUNT(*) AS n" + where + " GROUP BY d.boss" + one("", " HAVING n > 1")
		}
		query := "SELECT " + one("COUNT(*)", "COUNT(*) AS n, MAX(q.boss)", "SUM(q.boss)") + " FROM (" + inner + ") AS q"
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !strings.Contains(where, "(SELECT") {
			return
		}
		exact++
		s.holds(r, query, p, s.foundBy(where, all))
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}

// drawConditions draws a FROM clause with conditions that must all hold.
func drawConditions(r *rapid.T) (text string, all []operand) {
	var texts []string
	for range rapid.IntRange(1, 3).Draw(r, "conditions") {
		c := drawCondition(r)
		if rapid.IntRange(0, 3).Draw(r, "whole") == 0 {
			where := rapid.SampledFrom([]string{"x.note = 'n2'", "x.pay > 25", "x.id < 4"}).Draw(r, "part")
			c = operand{text: "d.boss < (SELECT MAX(x.pay) FROM e x WHERE " + where + ")", rows: []string{
				"SELECT CONCAT_WS('=', x.isotap_rowid, NULLIF(x.isotap_wlist, '0')) FROM e x WHERE " + where}}
		}
		c.text = strings.ReplaceAll(c.text, "e x", fmt.Sprintf("e x%d", len(all)))
		c.text = strings.ReplaceAll(c.text, "x.", fmt.Sprintf("x%d.", len(all)))
		all, texts = append(all, c), append(texts, c.text)
	}
	return " FROM d WHERE " + strings.Join(texts, " AND "), all
}

// foundBy returns the identities of what drawConditions finds: the rows, what subqueries find for each, and what those
// find that hang on no row.
func (s *readServer) foundBy(from string, all []operand) []string {
	want := make(map[string]bool)
	rows := s.exec("SELECT d.id" + from)
	for i := range rows.Values {
		id, _ := rows.GetInt(i, 0)
		want[s.identity("d", id)] = true
		for _, c := range all {
			s.turns([]operand{c}, int(id), want)
		}
	}
	for _, c := range all {
		if len(c.rows) > 0 && !strings.Contains(c.rows[0], "d.id") && strings.Contains(c.text, "MAX") {
			s.turns([]operand{{text: "1 = 1", rows: c.rows}}, 1, want)
		}
	}
	return slices.Sorted(maps.Keys(want))
}

// holds demands that a client sees of a query what it saw, and that the rows that it tells are those.
func (s *readServer) holds(r *rapid.T, query string, p *Plan, want []string) {
	text := literal(p, Values{})
	original := s.original(query, false)
	original.warnings = s.warned(0)
	proxied := s.see(text, p.HiddenColumns(), false)
	proxied.warnings = s.warned(0)
	if got := ids(proxied.seen(s.t, p.Result.Sources)); !slices.Equal(want, got) {
		r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, want)
	}
	if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) ||
		original.warnings != proxied.warnings {
		r.Fatalf("%s\n%s: %v, %v, %s, not %v, %v, %s", query, text, proxied.rows, proxied.columns, proxied.warnings, original.rows,
			original.columns, original.warnings)
	}
}

// TestQueriesInFromTellWhatTheirItemsRead draws queries in FROM with subqueries in the select list, likewise.
func TestQueriesInFromTellWhatTheirItemsRead(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		item, branches := drawBranches(r)
		item, _, _ = strings.Cut(item, " AS x")
		inner := "SELECT d.id, d.boss, " + fmt.Sprintf(one("%s", "%s", "1 + %s", "CONCAT(%s, 'x')"), item) + " AS n FROM d" +
			one("", " WHERE d.boss > 1", " WHERE d.id < 9", " ORDER BY d.id LIMIT 4")
		list := one("x.id, x.boss, x.n", "x.*", "*", "x.id, x.boss", "x.id, x.boss, x.n + 1", "x.id, n, x.boss")
		behind := " AS x" + one("", " WHERE x.n > 9", " WHERE x.n IS NULL OR x.boss > 3", " WHERE x.boss > 2", " JOIN d y ON y.id = x.id AND y.boss < 99") +
			one("", " ORDER BY x.id", " ORDER BY x.id DESC LIMIT 2")
		query := "SELECT " + list + " FROM (" + inner + ")" + behind
		if rapid.Bool().Draw(r, "with") {
			query = "WITH x AS (" + inner + ") SELECT " + list + " FROM " + strings.TrimPrefix(behind, " AS ")
		}
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact {
			return
		}
		if exact++; !strings.Contains(list, "n") && !strings.Contains(list, "*") && strings.Contains(item, "(SELECT") {
			r.Fatalf("%s is exact", query)
		}
		rows := s.exec(query)
		want := make(map[string]bool)
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			want[s.identity("d", id)] = true
			s.take(branches, int(id), want)
		}
		s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}

// TestDistinctTellsWhatSubqueriesRead draws SELECT DISTINCT with subqueries, likewise.
func TestDistinctTellsWhatSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		where, all := drawConditions(r)
		query := "SELECT DISTINCT " + one("d.boss", "d.boss, d.name", "d.name, d.boss + 1 AS boss", "d.boss, d.id", "*") + where +
			one("", "", " ORDER BY 1", " ORDER BY boss DESC", " ORDER BY boss, name", " ORDER BY 2 DESC, 1")
		s.session.Lasts = rapid.Bool().Draw(r, "lasts")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !strings.Contains(where, "(SELECT") {
			return
		}
		result, err := s.conn.Execute(query)
		if err != nil {
			return
		}
		alone := slices.ContainsFunc(all, func(c operand) bool { return len(c.rows) > 0 && !strings.Contains(c.rows[0], "d.id") })
		if whole := slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Whole }); whole != alone {
			r.Fatalf("%s: that there is no row tells that nothing was read: %t, not %t", query, !whole, !alone)
		}
		if len(result.Values) == 0 {
			return
		}
		exact++
		s.holds(r, query, p, s.foundBy(where, all))
		text := literal(p, Values{})
		if as, is := s.flags(query, 0), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if lacks := less(s.accessed(query), s.accessed(text)); len(lacks) > 0 {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(query))
		}
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}
