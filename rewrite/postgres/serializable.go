package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
)

// At SERIALIZABLE a read conflicts with the writes to what its plan looked at: rows, pages of indexes, whole tables. A
// statement that shows identities must look at no more than the client's own would. The server plans both from the same
// conditions, so it finds the rows by the same paths, but where an index alone could answer, where an order is of use
// to make groups, and where it need not look at all (ADR 32).

// otherLocks returns the reason "plan" where identities could have the server take other predicate locks for a block.
func (r *reading) otherLocks(b *block, u *usage) (history.Reason, error) {
	plan := history.ReasonPlan
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	switch {
	case (b.grouped || b.unique) && limited:
		return plan, nil // it stops when it has enough groups, in the order of its plan
	case extremes(u) && !b.beyondEnds() && b.indexed(argumentsOf(u), false):
		return plan, nil
	case b.indexed(b.n.GroupClause, true), b.unique && b.indexed(b.n.TargetList, true):
		// Groups may come in an index's order, from all of it or, one by one, from a part.
		if b.n.WhereClause != nil || b.n != r.tree {
			return plan, nil
		}
		r.atOnce = r.session.Extended
	}
	if b.n.LockingClause != nil {
		return history.Reason{}, nil
	}
	computed, shown, err := r.computed(b)
	if err != nil {
		return history.Reason{}, err
	}
	for _, rel := range b.rels {
		switch {
		case len(rel.sights) == 0:
		case rel.sights[0].nullable && !rel.used(shown), rel.base != nil && covered(rel.base, computed) &&
			!b.readsAll(rel):
			return plan, nil
		}
	}
	return history.Reason{}, nil
}

// readsAll reports whether a block that groups reads all rows of a table, whatever its plan: nothing but outer joins
// come to it. It conflicts with every write to the table then. A scan locks the table; one of an index locks each page
// where an entry could come, and the rows or their pages.
func (b *block) readsAll(rel *relation) bool {
	n := b.n
	if !b.grouped || n.WhereClause != nil || n.HavingClause != nil || n.LimitCount != nil || n.LimitOffset != nil ||
		len(nodes(n.FromClause)) != 1 {
		return false
	}
	item := bare(n.FromClause.Items[0])
	for {
		join, ok := item.(*ast.JoinExpr)
		if !ok || join.Jointype != ast.JOIN_LEFT {
			return item == rel.node
		}
		item = bare(join.Larg)
	}
}

// indexed reports whether a part of the block may be of a column in an index of one of its tables, or as the first one.
// An index on an expression has no name for it.
func (b *block) indexed(part *ast.NodeList, first bool) bool {
	return slices.ContainsFunc(b.rels, func(rel *relation) bool {
		return rel.base != nil && slices.ContainsFunc(rel.base.table.Indexes, func(x Index) bool {
			columns := x.Columns
			if first {
				columns = columns[:min(1, len(columns))]
			}
			return slices.ContainsFunc(columns, func(c string) bool { return c == "" || b.mayName(part, rel.base, c) })
		})
	})
}

// mayName reports whether a list of expressions may hold a column of a table.
func (b *block) mayName(part *ast.NodeList, s *source, column string) (may bool) {
	whole := guard.Whole(func() {
		i := slices.IndexFunc(s.table.Columns, func(c Column) bool { return c.Name == column })
		for _, item := range nodes(part) {
			if c, ok := bare(item).(*ast.A_Const); ok { // a position, or a value
				if position, ok := c.Val.(*ast.Integer); ok && len(nodes(b.n.TargetList)) >= position.IVal &&
					position.IVal > 0 {
					item = b.n.TargetList.Items[position.IVal-1]
				}
			}
			pgtree.Each(func(n ast.Node) bool {
				if ref, ok := n.(*ast.ColumnRef); ok {
					names := fields(ref)
					last := names[len(names)-1]
					may = may || i < 0 || last == s.names[i] || last == "*" || b.aliased(last, s.names[i])
				}
				return true
			}, item)
		}
	})
	return may || !whole
}

// aliased reports whether a name is the select list's for something that may be of a column.
func (b *block) aliased(name, column string) bool {
	return slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		return ok && t.Name == name && name != column
	})
}

// computed returns what the server surely computes of a block, and what of it beside joining. Of a query in a FROM
// clause these are the columns that are asked of it.
func (r *reading) computed(b *block) (all, shown *usage, err error) {
	n := b.n
	list := nodes(n.TargetList)
	switch {
	case r.inPlace(n):
		list = nodes(r.of.TargetList)
	case n != r.tree && !b.unique:
		list = r.askedOf(b)
	}
	parts := []ast.Node{ast.NewNodeList(list...), n.WhereClause, n.GroupClause, n.HavingClause, n.WindowClause,
		n.DistinctClause, n.SortClause}
	if shown, err = r.inspect(parts...); err == nil {
		all, err = r.inspect(append(parts, n.FromClause)...)
	}
	return all, shown, err
}

// askedOf returns the items of a block's select list that the block around surely asks for; of stars, references to the
// columns by their names.
func (r *reading) askedOf(b *block) (list []ast.Node) {
	asked := r.asked[b.n]
	for _, item := range nodes(b.n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			continue
		}
		if ref := star(item); ref != nil {
			if !b.expands(ref) { // it shows columns of a block around
				list = append(list, t)
				continue
			}
			for name := range asked {
				list = append(list, ast.NewColumnRef(ast.NewString(name)))
			}
			continue
		}
		name := t.Name
		if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && name == "" {
			all := fields(ref)
			name = all[len(all)-1]
		}
		if asked["*"] || asked[name] {
			list = append(list, t)
		}
	}
	return list
}

// ask takes note of which columns of a query in its FROM clause the block surely asks for: the query's alias must not
// rename them.
func (w *walker) ask(query *ast.SelectStmt, ref string, renames *ast.NodeList) {
	if len(nodes(renames)) > 0 || !w.session.Serializable {
		return
	}
	parts := []ast.Node{w.around.WhereClause, w.around.FromClause}
	if w.around == w.tree {
		parts = append(parts, w.around.TargetList)
	}
	u, err := w.inspect(parts...)
	if err != nil {
		return
	}
	asked := make(map[string]bool)
	for name := range u.columns {
		of, column, qualified := strings.Cut(name, ".")
		switch {
		case !qualified:
			asked[of] = true
		case of == ref:
			asked[column] = true
		}
	}
	w.asked[query] = asked
}
