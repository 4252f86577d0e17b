package mysql

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestGroupsTellWhatTheirSubqueriesRead draws queries that group, whose conditions have subqueries. It holds what these
// show against what they find for the rows of the groups, and what a client sees against what it saw.
func TestGroupsTellWhatTheirSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact, cut := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		query, reads, q := drawGrouped(r)
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Beside }) {
			return
		}
		text := literal(p, Values{})
		proxied := s.see(text, p.HiddenColumns(), false)
		if proxied.cutOff(p.Result.Sources) || proxied.lacks(p.Result.Sources) || len(s.exec(reads).Values) == 0 {
			cut++
			return // inexact
		}
		exact++
		original := s.original(query, false)
		original.warnings = s.warned(0)
		proxied = s.see(text, p.HiddenColumns(), false)
		proxied.warnings = s.warned(0)
		if want, got := s.readBy(reads, false, []fromQuery{q}), ids(proxied.seen(s.t, p.Result.Sources)); !slices.Equal(want, got) {
			r.Fatalf("%s\n%s\nshows %q, not %q", query, text, got, want)
		}
		plain := s.session
		plain.Repeats = false
		before := s.rewriter.Plan(query, plain)
		known := s.see(literal(before, Values{}), before.HiddenColumns(), false)
		original.columns = known.columns // the types of some expressions hang on whether groups are stored (ADR 10)
		if !strings.Contains(query, "ORDER BY") {
			slices.Sort(original.rows)
			if !slices.Equal(known.rows, proxied.rows) {
				r.Fatalf("%s\n%s: %v, not %v", query, text, proxied.rows, known.rows)
			}
			slices.Sort(proxied.rows)
		}
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) || original.warnings != proxied.warnings {
			r.Fatalf("%s\n%s: %v, not %v", query, text, proxied, original)
		}
		if as, is := s.flags(literal(before, Values{}), before.HiddenColumns()), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if lacks := less(s.accessed(literal(before, Values{}), "Extra"), s.accessed(text, "Extra")); len(lacks) > 0 {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(literal(before, Values{})))
		}
	})
	if t.Logf("%d are exact, %d were cut", exact, cut); exact == 0 {
		t.Error("none was exact")
	}
}

// drawGrouped draws a query that groups, one of the rows of d that it reads, and what its subqueries are.
func drawGrouped(r *rapid.T) (query, reads string, q fromQuery) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	q = drawFromQuery(r)
	_, from, _ := strings.Cut(q.text, " FROM ")
	reads = "SELECT d.id, d.boss FROM " + from
	name := "d."
	switch rapid.IntRange(0, 3).Draw(r, "form") {
	case 0:
		from, name = "(SELECT d.id, d.boss, d.name FROM "+from+") AS x", "x."
	case 1:
		q.ors, from = nil, one("d", "d WHERE d.boss > 2", "d WHERE d.id < 9")
		reads = "SELECT d.id, d.boss FROM " + from
	}
	list := one("COUNT(*)", "SUM(d.id)", "MAX(d.id)", "COUNT(DISTINCT d.name), COUNT(*)", "MIN(d.name), COUNT(*)", "AVG(d.boss)")
	group := one("d.boss", "d.boss, d.id", "d.name", "")
	if rapid.Bool().Draw(r, "listed") {
		item := drawListed(r)
		list, q.ors = list+", "+item.text, append(q.ors, []operand{item})
	}
	query = "SELECT " + list + " FROM " + from
	if group != "" {
		query = "SELECT " + one(group+", ", "") + list + " FROM " + from + " GROUP BY " + group + one(" ORDER BY "+group, "")
	}
	if name == "x." {
		before, behind, _ := strings.Cut(query, from)
		query = strings.ReplaceAll(before, "d.", name) + from + strings.ReplaceAll(behind, "d.", name)
	}
	return query, reads, q
}

// drawListed draws a subquery that stands in a select list.
func drawListed(r *rapid.T) operand {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	where := one("y.dep = d.boss AND y.pay < 9", "y.dep = d.id AND y.note < 'n2'", "y.id < 4", "y.dep = d.boss AND y.id IN (1, 3, 103)")
	rows := []string{"SELECT CONCAT_WS('=', y.isotap_rowid, NULLIF(y.isotap_wlist, '0')) FROM e y WHERE " +
		strings.ReplaceAll(where, "d.boss", "(SELECT w.boss FROM d w WHERE w.id = d.id)")}
	if one("value", "exists") == "exists" {
		return operand{text: "EXISTS (SELECT 1 FROM e y WHERE " + where + ")", rows: rows}
	}
	return operand{text: "(SELECT " + one("COUNT(*)", "MAX(y.pay)", "SUM(y.id)") + " FROM e y WHERE " + where + ")", rows: rows}
}

// cutOff reports whether an array of what subqueries read may lack something.
func (p sight) cutOff(sources []Source) bool {
	for _, row := range p.hidden {
		for _, s := range sources {
			var texts []*string
			if s.Beside && json.Unmarshal([]byte(row[0]), &texts) == nil {
				if !s.Grouped && len(texts) >= s.Limit || s.Rows > 0 && len(texts) >= s.Rows {
					return true
				}
				for _, text := range texts {
					if text == nil || !s.Grouped {
						continue
					}
					if n, whole := EachOfGroup([]byte(*text), func([]byte) {}); !whole || n >= s.Limit {
						return true
					}
				}
			}
			row = row[s.Columns():]
		}
	}
	return false
}
