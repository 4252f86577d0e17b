package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// all returns the sights of all blocks.
func all(blocks []*block) []*sight {
	var out []*sight
	for _, b := range blocks {
		out = append(out, b.sights...)
	}
	return out
}

// query looks at a query in whose place sc says what names mean, and returns the blocks whose rows are its rows.
// What these cannot show is missed.
func (r *reading) query(n *ast.SelectStmt, sc *scope) ([]*block, error) {
	r.known[n] = true
	sc, err := r.enter(n.WithClause, sc)
	if err != nil {
		return nil, err
	}
	if n.Op == ast.SETOP_NONE {
		b, err := r.block(n, sc)
		if err != nil {
			return nil, err
		}
		return []*block{b}, nil
	}
	if n == r.tree && n.Op == ast.SETOP_UNION && !n.All {
		return r.union(n, sc)
	}
	blocks, err := r.operands(n, sc)
	if err != nil {
		return nil, err
	}
	u, err := r.inspect(n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil {
		return nil, err
	}
	r.missBeside(u)
	for _, b := range blocks {
		reason := b.unfit(n, blocks[0])
		if reason.IsZero() && r.st.is(r.places.queries[b.n].from, "TABLE") && len(unionColumns(blocks)) == 0 {
			reason = history.ReasonSetOperation // an error about its types has no place, and would have one in a SELECT
		}
		if !reason.IsZero() && len(all(blocks)) > 0 {
			r.drop(blocks)
			r.miss(reason)
		}
	}
	return blocks, nil
}

// unfit returns the reason why a block cannot show anything as a part of a set operation, of which first is the
// first block.
func (b *block) unfit(operation *ast.SelectStmt, first *block) history.Reason {
	switch {
	case !b.fixed.IsZero():
		return b.fixed
	case b.unique:
		return history.ReasonDistinct
	case b.columns() != first.columns(), !b.counted(), !first.counted():
		return history.ReasonSetOperation // an error, whose place depends on what the columns are
	case beyond(operation.SortClause, b.columns()):
		return history.ReasonOrderByPosition
	}
	return history.Reason{}
}

// drop has blocks show nothing.
func (r *reading) drop(blocks []*block) {
	for _, b := range blocks {
		b.sights = nil
	}
}

// operands returns the blocks of both sides of a set operation. Only UNION ALL keeps each of their rows.
func (r *reading) operands(n *ast.SelectStmt, sc *scope) ([]*block, error) {
	left, err := r.query(n.Larg, sc)
	if err != nil {
		return nil, err
	}
	right, err := r.query(n.Rarg, sc)
	if err != nil {
		return nil, err
	}
	blocks := append(left, right...)
	if err := uncarried(blocks); err != nil {
		return nil, err
	}
	if n.Op != ast.SETOP_UNION || !n.All {
		if len(all(blocks)) > 0 {
			r.miss(history.ReasonSetOperation)
		}
		r.drop(blocks)
		for _, b := range blocks {
			b.fixed = history.ReasonSetOperation
		}
	}
	return blocks, nil
}

// carrier is the query that a carried sight is from.
func (b *block) carrier(s *sight) ast.Node {
	for _, rel := range b.rels {
		for _, other := range rel.sights {
			if other == s {
				return rel.node
			}
		}
	}
	return nil
}

// missBeside takes note of what a query does beside reading its own tables.
func (r *reading) missBeside(u *usage) {
	if r.readsBeside(u) {
		r.miss(history.ReasonSubquery)
	}
	if u.function {
		r.miss(history.ReasonFunction)
	}
}

// block looks at a query without set operators.
func (r *reading) block(n *ast.SelectStmt, sc *scope) (*block, error) {
	b := &block{n: n, outer: r.outer, lateral: r.lateral > 0}
	if len(nodes(n.ValuesLists)) > 0 {
		u, err := r.inspect(n.ValuesLists, n.SortClause, n.LimitCount, n.LimitOffset)
		if err == nil {
			r.missBeside(u)
		}
		b.fixed = history.ReasonValuesStatement
		return b, err
	}
	u, err := r.inspect(n.TargetList, n.DistinctClause, n.FromClause, n.WhereClause, n.GroupClause, n.HavingClause,
		n.WindowClause,
		n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil {
		return nil, err
	}
	if b.rels, err = r.relations(n, sc); err != nil {
		return nil, err
	}
	b.grouped = u.aggregate || n.GroupClause != nil || n.HavingClause != nil || r.inPlace(n)
	b.unique = n.DistinctClause != nil && len(nodes(n.DistinctClause)) == 0
	if err := r.removable(b); err != nil {
		return nil, err
	}
	for _, rel := range b.rels {
		b.sights = append(b.sights, rel.sights...)
	}
	if err := r.see(b, u); err != nil {
		return nil, err
	}
	r.missBeside(u)
	return b, nil
}

// inPlace reports whether a query stands in the place of one of the client's.
func (r *reading) inPlace(n *ast.SelectStmt) bool { return r.of != nil && n == r.tree }

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
	r.lowerBlock(b, u)
	if b.grouped || b.unique {
		r.collect(b)
	}
	return nil
}

// hide has a block show nothing.
func (r *reading) hide(b *block, reason history.Reason) error {
	for _, rel := range b.rels {
		if rel.base == nil && len(rel.sights) > 0 {
			return &bar{rel.node, reason} // a star may hold what it passes outwards
		}
	}
	r.miss(reason)
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
		if reason := r.ends(b, u); !reason.IsZero() {
			return reason, nil
		}
		return b.tooMuch(), nil
	}
	return history.Reason{}, nil
}

// lowerBlock takes note of what the block reads and does not show.
func (r *reading) lowerBlock(b *block, u *usage) {
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	for _, rel := range b.rels {
		if rel.grouped() && !rel.whole && (limited || r.hides(b, rel)) {
			r.miss(history.ReasonGroupsLeftOut)
		}
	}
	switch {
	case b.n.HavingClause != nil, limited && (b.n.GroupClause != nil || b.unique):
		r.miss(history.ReasonGroupsLeftOut)
	case len(nodes(b.n.DistinctClause)) > 0:
		r.miss(history.ReasonDistinct) // the rows that others were preferred to
	case u.window && (limited || b.n != r.tree):
		r.miss(history.ReasonWindowFunction) // its values came from rows that are not among the result's
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
// last columns, behind the client's.
func (r *reading) starred(b *block) error {
	held := make(map[string]bool)
	list := nodes(b.n.TargetList)
	for i, item := range list {
		ref := star(item)
		if ref == nil {
			continue
		}
		names := fields(ref)
		if !b.expands(ref) {
			continue // it shows a relation of a block around: see wholeRow
		}
		r.stars[ref] = true
		for k, rel := range b.rels {
			if len(rel.sights) == 0 || rel.base != nil || !rel.within(ref) {
				continue
			}
			last := i == len(list)-1 && (len(names) > 1 || k == len(b.rels)-1)
			if b.grouped || b.unique || !last {
				return &bar{rel.node, history.ReasonDerivedStar}
			}
			for _, s := range rel.sights {
				if s.repeated {
					return &bar{rel.node, history.ReasonJoinedAggregate} // the star shows it however long it is
				}
				if held[s.names[0]] {
					return &bar{rel.node, history.ReasonDerivedStar}
				}
				held[s.names[0]], s.carried = true, true
			}
		}
	}
	return nil
}
