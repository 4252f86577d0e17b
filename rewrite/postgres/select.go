package postgres

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// maxTargets is how many columns a result may have (MaxTupleAttributeNumber), less two that a SELECT around it adds.
const maxTargets = 1664 - 2

// otherPlan returns the reason "plan" where the server might answer a block without reading the rows, or with
// other indexes: identities would have it read more, in another order, and at SERIALIZABLE lock more (ADR 3).
func (r *reading) otherPlan(b *block, u *usage) (history.Reason, error) {
	plan := history.ReasonPlan
	if !r.rewriter.options.StrictPlans && r.plan.Session.Cursor == nil {
		return r.otherLocks(b, u)
	}
	switch {
	case b.n.GroupClause != nil, b.unique, extremes(u):
		return plan, nil // groups may come in an index's order, minimum and maximum from its ends
	case slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.base == nil && len(rel.sights) > 0 }):
		return plan, nil // of a query only those columns are computed that are asked of it
	case b.n.LockingClause != nil:
		return history.Reason{}, nil // for these the server goes to the tables in any case
	}
	shown, err := r.inspect(b.n.TargetList, b.n.DistinctClause, b.n.WhereClause, b.n.HavingClause, b.n.WindowClause,
		b.n.SortClause)
	if err != nil {
		return history.Reason{}, err
	}
	for _, rel := range b.rels {
		if len(rel.sights) == 0 {
			continue
		}
		if rel.sights[0].nullable && !rel.used(shown) || covered(rel.base, u) {
			return plan, nil
		}
	}
	return history.Reason{}, nil
}

// covered reports whether an index alone might answer for a table.
func covered(s *source, u *usage) bool {
	if u.columns[s.ref] { // the whole row
		return false
	}
	return slices.ContainsFunc(s.table.Indexes, func(x Index) bool { return s.within(x, u) })
}

// within reports whether an index holds all columns of the source that the statement uses.
func (s *source) within(x Index, u *usage) bool {
	all := u.columns["*"] || u.columns[s.ref+".*"]
	for i, c := range s.table.Columns {
		used := all || u.columns[s.names[i]] || u.columns[s.ref+"."+s.names[i]]
		if used && !slices.Contains(x.Columns, c.Name) {
			return false
		}
	}
	return true
}
