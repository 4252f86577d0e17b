package analyzer

import (
	"cmp"
	"slices"
)

// Include adds findings of the same history that another analysis made, of a part of it or with more knowledge. Those
// that are there stay as they are.
func (r *Result) Include(found []*Finding) {
	occurs := make(map[Anomaly]bool)
	for _, l := range r.Levels.Violated {
		occurs[l.By] = true
	}
	for _, f := range found {
		if slices.ContainsFunc(r.Findings, func(g *Finding) bool { return g.ID == f.ID }) {
			continue
		}
		r.Findings = append(r.Findings, f)
		if !slices.ContainsFunc(f.Witness, func(e Edge) bool { return e.Inexact || e.Wide }) {
			occurs[f.Anomaly] = true
		}
	}
	r.Levels = verdict(inOrderOfStrictness(occurs))
	slices.SortStableFunc(r.Findings, func(f, g *Finding) int {
		return cmp.Or(cmp.Compare(g.Class, f.Class), cmp.Compare(g.Count, f.Count))
	})
}
