package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// The server may answer without looking at all rows, and then does not meet the errors that are in the others: a
// division by zero in a row that was never read. Identities would have it read them.

// ends returns the reason why identities would have the server read rows that it might not read for the block alone.
func (r *reading) ends(b *block, u *usage) history.Reason {
	plan := history.ReasonPlan
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	switch {
	case b.grouped && !u.aggregate && !groupsBy(b.n.GroupClause) && !r.inPlace(b.n):
		return plan // HAVING alone: there is one row, whatever the tables hold
	case b.n.GroupClause != nil || b.unique || !extremes(u) || b.beyondEnds():
	case b.looksUp(), mayFail(b.n.WhereClause, b.n.FromClause, argumentsOf(u)):
		return plan // the minimum may come from the end of an index
	case b.n.WhereClause == nil && len(b.rels) == 1 && b.rels[0].base != nil && b.rels[0].base.leads(u):
		return plan
	}
	switch {
	case !limited && !(b.unique && r.pinned(b)), !b.unique && !b.grouped:
	case b.looksUp(), mayFail(b.n.TargetList, b.n.FromClause, b.n.WhereClause, b.n.GroupClause):
		return plan
	}
	return history.Reason{}
}

// beyondEnds reports whether no end of an index can answer the block: it joins tables, or reads a query that groups.
func (b *block) beyondEnds() bool {
	stay := 0
	for _, rel := range b.rels {
		if rel.grouped() {
			return true
		}
		if rel.base != nil {
			stay++
		}
	}
	return stay > 1
}

// pinned reports whether DISTINCT may be of values that are the same in all rows, of which the server needs one:
// there is no column but those that a condition may fix.
func (r *reading) pinned(b *block) bool {
	conditions, err := r.inspect(b.n.WhereClause, b.n.FromClause)
	if err != nil {
		return true
	}
	fixed := make(map[string]bool)
	for name := range conditions.columns {
		fixed[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	return !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return false
		}
		ref, ok := bare(t.Val).(*ast.ColumnRef)
		if !ok {
			return false
		}
		names := fields(ref)
		return !fixed[names[len(names)-1]]
	})
}

// argumentsOf returns the arguments of the aggregates.
func argumentsOf(u *usage) *ast.NodeList {
	all := ast.NewNodeList()
	for _, n := range u.calls {
		all.Items = append(all.Items, nodes(n.Args)...)
		if n.AggFilter != nil {
			all.Append(n.AggFilter)
		}
	}
	return all
}

// groupsBy reports whether a GROUP BY clause has anything in it but empty sets.
func groupsBy(clause *ast.NodeList) bool {
	return slices.ContainsFunc(nodes(clause), func(item ast.Node) bool {
		set, ok := item.(*ast.GroupingSet)
		return !ok || groupsBy(set.Content)
	})
}

// removable takes the sights off the relations of a block that the server may leave out: of which nothing is used
// but in the condition of an outer join, where that may fail.
func (r *reading) removable(b *block) error {
	shown, err := r.inspect(b.n.TargetList, b.n.DistinctClause, b.n.WhereClause, b.n.GroupClause, b.n.HavingClause,
		b.n.WindowClause,
		b.n.SortClause)
	if err != nil {
		return err
	}
	fails := mayFail(b.n.FromClause)
	for _, rel := range b.rels {
		if !fails && !rel.looksUp() || len(rel.sights) == 0 || !rel.sights[0].nullable || rel.used(shown) {
			continue
		}
		if rel.base == nil {
			return &bar{rel.node, history.ReasonPlan}
		}
		r.miss(history.ReasonPlan)
		rel.sights = nil
	}
	return nil
}

// used reports whether one of the relation's columns surely occurs.
func (rel *relation) used(u *usage) bool {
	if u.columns["*"] || u.columns[rel.ref+".*"] || u.columns[rel.ref] {
		return true
	}
	return slices.ContainsFunc(rel.columnNames(), func(name string) bool { return u.columns[rel.ref+"."+name] })
}

// comparisons are operators of which it is known that they do not fail, for the types that have them by default.
var comparisons = []string{"=", "<>", "!=", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*"}

// mayFail reports whether an expression may fail for the values of some rows.
func mayFail(parts ...ast.Node) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncCall, *ast.SubLink:
			may = true
		case *ast.TypeCast:
			_, literal := bare(n.Arg).(*ast.A_Const)
			may = may || !literal
		case *ast.A_Expr:
			may = may || slices.ContainsFunc(nodes(n.Name), func(part ast.Node) bool {
				name, ok := part.(*ast.String)
				return ok && !slices.Contains(comparisons, name.SVal)
			})
		}
		return true
	}, parts...)
	return may || !whole
}
