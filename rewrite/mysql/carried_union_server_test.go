package mysql

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestUnionAllTellsWhatSubqueriesRead draws UNION ALLs whose queries have subqueries. It holds what these show against
// what they find for the rows of their queries, and what a client sees against what it saw.
func TestUnionAllTellsWhatSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		var texts []string
		want := make(map[string]bool)
		for range rapid.IntRange(2, 3).Draw(r, "queries") {
			q := drawFromQuery(r)
			_, from, _ := strings.Cut(q.text, " FROM ")
			text := "SELECT d.id, d.boss FROM " + from
			if rapid.IntRange(0, 3).Draw(r, "plain") == 0 {
				text, q.ors = "SELECT d.id, d.boss FROM d WHERE d.boss > 2", nil
			}
			for _, id := range s.readBy(text, false, []fromQuery{q}) {
				want[id] = true
			}
			texts = append(texts, one(text, "("+text+")"))
		}
		query := strings.Join(texts, " UNION ALL ") + one("", "", " ORDER BY 1, 2", " ORDER BY id DESC, boss LIMIT 50")
		p := s.rewriter.Plan(query, s.session)
		if p.Observation != history.Exact || !slices.ContainsFunc(p.Result.Sources, func(s Source) bool { return s.Beside }) {
			return
		}
		text := literal(p, Values{})
		if proxied := s.see(text, p.HiddenColumns(), false); proxied.full() || proxied.lacks(p.Result.Sources) {
			return // inexact
		}
		if exact++; strings.Contains(query, "LIMIT") && len(s.exec(query).Values) == 50 {
			return
		}
		s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
		if as, is := s.flags(query, 0), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
	})
	if t.Logf("%d are exact", exact); exact == 0 {
		t.Error("none was exact")
	}
}

// lacks reports whether no row tells what a subquery read that is the same for all rows of its query.
func (p sight) lacks(sources []Source) bool {
	at := 0
	for _, s := range sources {
		if s.Whole && s.Apart && !slices.ContainsFunc(p.hidden, func(row []string) bool { return row[at] != "NULL" }) {
			return true
		}
		at += s.Columns()
	}
	return false
}
