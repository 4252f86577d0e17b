package mysql

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestUnionsTellWhatTheirSubqueriesRead draws UNIONs whose queries have subqueries. It holds what these collect against
// what they find for the rows of their queries, and what a client sees, and the plan, against what it saw.
func TestUnionsTellWhatTheirSubqueriesRead(t *testing.T) {
	s := carriedServer(t)
	s.exec(CaptureInit)
	all, exact, ordered, lacking := 0, 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		query, queries := drawUnitedSubqueries(r)
		query += one("", "", " ORDER BY 1, 2", " ORDER BY 2 DESC, 1", " ORDER BY 1") + one("", "", " LIMIT 40")
		p := s.rewriter.Plan(query, s.session)
		if all++; p.Observation != history.Exact || len(p.Writes.Beside) == 0 {
			return
		}
		original := s.original(query, false)
		original.warnings = s.warned(0)
		proxied, rows := s.collected(p)
		found, known := s.collectedBeside(p)
		if !known || p.Result.Limit != nil && uint64(len(original.rows)) >= p.Result.Limit.Rows {
			lacking++
			return // inexact
		}
		if exact++; strings.Contains(query, "ORDER") {
			ordered++
		}
		want := make(map[string]bool)
		for _, q := range queries {
			_, from, _ := strings.Cut(q.text, " FROM ")
			for _, id := range s.readBy("SELECT d.id, d.boss FROM "+from, false, []fromQuery{q}) {
				want[id] = true
			}
		}
		for _, id := range rows {
			found[s.versioned(id)] = true
		}
		if !maps.Equal(found, want) {
			r.Fatalf("%s\n%s\ntells %q, not %q", query, literal(p, Values{}), slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)))
		}
		if !slices.Equal(original.rows, proxied.rows) || !slices.Equal(original.columns, proxied.columns) || original.warnings != proxied.warnings {
			r.Fatalf("%s: %v, not %v", query, proxied, original)
		}
		text := literal(p, Values{})
		if as, is := s.flags(query, 0), s.flags(text, p.HiddenColumns()); !slices.Equal(as, is) {
			r.Fatalf("%s has the flags %x, not %x", query, is, as)
		}
		if lacks := less(s.accessed(query, "Extra"), s.accessed(text, "Extra")); len(lacks) > 0 && !p.Upstream.MayHideLocks {
			r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(query))
		}
	})
	if t.Logf("%d are exact, %d with ORDER BY; %d lack something", exact, ordered, lacking); exact == 0 && all >= 100 {
		t.Error("none was exact")
	}
}

// drawUnitedSubqueries draws the queries of a UNION with subqueries, and those by themselves.
func drawUnitedSubqueries(r *rapid.T) (query string, queries []fromQuery) {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
	for i := range rapid.IntRange(2, 3).Draw(r, "queries") {
		q := drawFromQuery(r)
		_, from, _ := strings.Cut(q.text, " FROM ")
		if rapid.IntRange(0, 3).Draw(r, "plain") == 0 {
			q.ors, from = nil, one("d WHERE d.boss > 2", "d WHERE d.boss = 4", "d")
		}
		q.text = "SELECT " + one("d.boss, d.name", "d.id, d.boss", "d.boss, d.boss + 1", "d.boss, d.id", "d.boss, 'x'") + " FROM " + from
		if i > 0 {
			query += one(" UNION ", " UNION ", " UNION DISTINCT ", " UNION ALL ")
		}
		query, queries = query+one(q.text, "("+q.text+")"), append(queries, q)
	}
	return query, queries
}

// collectedBeside returns what the subqueries of a UNION, which was just run by collected, told of the rows that they
// read. It reports whether that is all of them.
func (s *readServer) collectedBeside(p *Plan) (found map[string]bool, known bool) {
	s.t.Helper()
	found = make(map[string]bool)
	shown := make([]bool, len(p.Writes.Beside))
	for _, e := range s.arrays {
		var texts []*string
		if json.Unmarshal([]byte(e.Array), &texts) != nil || len(texts) >= p.Writes.Beside[e.Source].Limit {
			return nil, false
		}
		shown[e.Source] = true
		for _, text := range texts {
			found[strings.TrimSuffix(*text, "=0")] = true
		}
	}
	for i, of := range p.Writes.Beside {
		if of.Whole && !shown[i] {
			return nil, false
		}
	}
	return found, true
}

// versioned returns an identity of d or e with its versions, where it has more than the first.
func (s *readServer) versioned(id string) string {
	name, _ := s.exec("SELECT CONCAT_WS('=', isotap_rowid, NULLIF(isotap_wlist, '0')) FROM "+id[:1]+" WHERE isotap_rowid = '"+id+"'").GetString(0, 0)
	return name
}
