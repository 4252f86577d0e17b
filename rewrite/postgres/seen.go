package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// see decides what of its rows' identities a block shows.
func (r *reading) see(b *block, u *usage) error {
	if len(b.sights) == 0 {
		return nil
	}
	reason, err := r.hindrance(b, u)
	switch {
	case err != nil:
		return err
	case !reason.IsZero():
		return r.hide(b, reason)
	}
	if err := r.starred(b); err != nil {
		return err
	}
	r.downgradeBlock(b, u)
	if b.grouped || b.unique {
		r.collect(b)
	}
	return nil
}

// hide has a block show nothing.
func (r *reading) hide(b *block, reason history.Reason) error {
	for _, rel := range b.rels {
		if rel.base == nil && len(rel.sights) > 0 {
			return &queryRefusal{rel.node, reason} // a star may hold what it passes outwards
		}
	}
	r.markUnseen(reason)
	b.sights = nil
	return nil
}

// hindrance returns the reason why a block cannot show what it reads.
func (r *reading) hindrance(b *block, u *usage) (history.Reason, error) {
	n := b.n
	wide := len(nodes(n.TargetList))
	switch {
	case !b.grouped && u.reachesOut(b.rels):
		return history.ReasonAggregate, nil
	case u.unsure && !b.grouped && r.mayAggregate(b):
		return history.ReasonFunction, nil
	case beyond(n.SortClause, b.columns()), beyond(n.GroupClause, b.columns()), beyond(n.DistinctClause, b.columns()):
		return history.ReasonOrderByPosition, nil
	case wide > maxTargets:
		return history.ReasonColumns, nil
	case b.looksUp() && (r.rewriter.options.StrictPlans || r.plan.Session.Cursor != nil),
		b.n.LockingClause == nil && slices.ContainsFunc(b.rels, func(rel *relation) bool {
			return rel.base != nil &&
				r.byDistance(b, rel.base, u)
		}):
		return history.ReasonPlan, nil
	case r.session.Serializable, r.rewriter.options.StrictPlans, r.plan.Session.Cursor != nil:
		if reason, err := r.otherPlan(b, u); !reason.IsZero() || err != nil {
			return reason, err
		}
	}
	if b.unique {
		if reason := b.ungroupable(u); !reason.IsZero() {
			return reason, nil
		}
	}
	if b.grouped || b.unique {
		if b.unique && b.n.LimitCount != nil && b.n.SortClause == nil {
			return history.ReasonDistinct, nil // beside an array the server may come to others first
		}
		if r.of == nil && (b.n.GroupClause != nil || b.unique) && r.failure() == ordinary && r.joinsTables() {
			return history.ReasonPlan, nil // an array has a price, as one that a query in FROM passes outwards
		}
		if reason := r.ends(b, u); !reason.IsZero() {
			return reason, nil
		}
		return b.tooMuch(), nil
	}
	return history.Reason{}, nil
}

// downgradeBlock takes note of what the block reads and does not show.
func (r *reading) downgradeBlock(b *block, u *usage) {
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	for _, rel := range b.rels {
		if rel.grouped() && !rel.whole && (limited || !rel.hangs && r.hides(b, rel)) {
			r.markUnseen(history.ReasonGroupsLeftOut)
		}
	}
	switch {
	case b.n.HavingClause != nil, limited && (b.n.GroupClause != nil || b.unique):
		r.markUnseen(history.ReasonGroupsLeftOut)
	case len(nodes(b.n.DistinctClause)) > 0:
		r.markUnseen(history.ReasonDistinct) // the rows that others were preferred to
	case u.window && (limited || b.n != r.tree):
		r.markUnseen(history.ReasonWindowFunction) // its values came from rows that are not among the result's
	}
}

// mayAggregate reports whether a function of which it is not known whether it aggregates stands where an aggregate
// may. It is none if the select list holds a column as it is.
func (r *reading) mayAggregate(b *block) bool {
	for _, t := range nodes(b.n.TargetList) {
		item, ok := t.(*ast.ResTarget)
		if !ok {
			continue
		}
		if ref, ok := bare(item.Val).(*ast.ColumnRef); ok && b.own(ref) {
			return false
		}
	}
	u, err := r.inspect(b.n.TargetList, b.n.SortClause)
	return err != nil || u.unsure
}

// own reports whether a reference is surely to a column of the block's own base tables.
func (b *block) own(ref *ast.ColumnRef) bool {
	names := fields(ref)
	for _, rel := range b.rels {
		if rel.base == nil || len(rel.base.names) == 0 {
			continue
		}
		switch {
		case names[0] == "*", len(names) == 2 && names[0] == rel.ref, len(names) == 1 && rel.base.has(names[0]):
			return true
		}
	}
	return false
}

// starred looks for stars in the select list that hold columns which queries pass outwards: these must be the
// last columns, behind the client's. Elsewhere the client's columns stand in the star's place, one by one.
func (r *reading) starred(b *block) error {
	held := make(map[string]bool)
	for i, item := range nodes(b.n.TargetList) {
		ref := star(item)
		if ref == nil || !b.expands(ref) {
			continue // a star may show a relation of a block around: see wholeRow
		}
		r.stars[ref] = true
		carried, err := b.carriedBy(ref, i, held)
		if err != nil {
			if r.spellStar(b, ref, i) {
				continue
			}
			return err
		}
		for _, s := range carried {
			held[s.names[0]], s.carried = true, true
		}
	}
	return nil
}

// carriedBy returns the columns of isotap's that a star, an item of the select list, holds; an error where it must not.
func (b *block) carriedBy(ref *ast.ColumnRef, item int, held map[string]bool) (carried []*sight, err error) {
	for k, rel := range b.rels {
		if len(rel.sights) == 0 || rel.base != nil || !rel.within(ref) {
			continue
		}
		last := item == len(nodes(b.n.TargetList))-1 && (len(fields(ref)) > 1 || k == len(b.rels)-1)
		if b.grouped || b.unique || !last {
			return nil, &queryRefusal{rel.node, history.ReasonDerivedStar}
		}
		for _, s := range rel.sights {
			switch {
			case s.repeated: // the star shows it however long it is
				return nil, &queryRefusal{rel.node, history.ReasonJoinedAggregate}
			case s.unbounded:
				return nil, &queryRefusal{s.within, history.ReasonSubquery}
			case held[s.names[0]]:
				return nil, &queryRefusal{rel.node, history.ReasonDerivedStar}
			}
			carried = append(carried, s)
		}
	}
	return carried, nil
}
