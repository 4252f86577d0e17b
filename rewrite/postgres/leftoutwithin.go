package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A LEFT JOIN in a subquery the server leaves out likewise. A copy that shows rows of the joined table would have the
// server join it, and tell what nobody read.

// A leaving decides which tables of a subquery the server leaves out.
type leaving struct {
	*looker
	*subquery
	rels []*relation
	// list is what its select list may ask for, surely what it surely asks for.
	list, surely *ast.NodeList
	decided      map[*relation]bool
}

// leaveOut has a subquery show nothing of tables that the server leaves out. It reports whether that is known of all.
func (l *looker) leaveOut(q *subquery, at link) bool {
	n, v := q.query, leaving{looker: l, subquery: q, decided: make(map[*relation]bool)}
	if !outerJoin(n.FromClause) {
		return true
	}
	v.list, v.surely = n.TargetList, n.TargetList
	switch {
	case q.exists && l.simplifies(n):
		some := *n
		some.GroupClause, some.DistinctClause, some.SortClause = nil, nil, nil
		n, v.list, v.surely = &some, nil, nil
	case at.asked != nil && n.DistinctClause == nil:
		v.surely = ast.NewNodeList(slices.DeleteFunc(slices.Clone(nodes(n.TargetList)), func(item ast.Node) bool {
			name := resultName(item)
			if star(item) != nil {
				name = "*"
			}
			return !at.asksFor(name)
		})...)
	}
	for _, item := range tablesOf(n.FromClause) {
		for _, s := range q.tables {
			if s.ref == refOf(item) {
				v.rels = append(v.rels, &relation{ref: s.ref, base: s, node: item})
			}
		}
	}
	for i, item := range nodes(n.FromClause) {
		others := *n
		others.FromClause = ast.NewNodeList(slices.Delete(slices.Clone(nodes(n.FromClause)), i, i+1)...)
		if !v.along(item, others) {
			return false
		}
	}
	return v.settled(n)
}

// simplifies reports whether the server takes away what EXISTS does not ask for of a query (simplify_EXISTS_query).
func (l *looker) simplifies(n *ast.SelectStmt) bool {
	u, err := l.inspect(n.TargetList, n.SortClause)
	return err == nil && !u.aggregate && !u.window && !u.unsure && n.HavingClause == nil && n.WindowClause == nil &&
		n.LimitOffset == nil && n.LimitCount == nil && !slices.ContainsFunc(nodes(n.GroupClause), func(n ast.Node) bool {
		_, set := n.(*ast.GroupingSet)
		return set
	})
}

// tablesOf returns the names in a FROM clause, but for those in queries.
func tablesOf(from *ast.NodeList) (found []*ast.RangeVar) {
	pgtree.Each(func(n ast.Node) bool {
		if name, ok := n.(*ast.RangeVar); ok {
			found = append(found, name)
		}
		_, query := n.(*ast.SelectStmt)
		return !query
	}, from)
	return found
}

// along decides about the tables that an item of the FROM clause joins, one after the other, the last one first. It
// reports whether it can. kept is the query without that item.
func (v *leaving) along(item ast.Node, kept ast.SelectStmt) bool {
	for {
		join, ok := bare(item).(*ast.JoinExpr)
		if !ok || join.IsNatural || merges(join.Larg) || join.Alias != nil || join.JoinUsingAlias != nil {
			return true
		}
		if join = leftOf(join); join.Jointype == ast.JOIN_LEFT {
			i := slices.IndexFunc(v.rels, func(rel *relation) bool { return rel.node == bare(join.Rarg) })
			if i >= 0 {
				leaves, known := v.leaves(v.rels[i], join, kept)
				if !known {
					return false
				}
				if v.decided[v.rels[i]] = true; leaves {
					v.unread = append(v.unread, v.rels[i].base)
					item = join.Larg
					continue
				}
			}
		}
		if len(nodes(join.UsingClause)) > 0 {
			return true // it names columns of what stands within
		}
		item = join.Larg
		kept.FromClause.Append(join.Rarg)
		kept.WhereClause = both(kept.WhereClause, join.Quals)
	}
}

// leftOf returns a RIGHT JOIN as the LEFT JOIN that it is.
func leftOf(join *ast.JoinExpr) *ast.JoinExpr {
	if join.Jointype != ast.JOIN_RIGHT {
		return join
	}
	turned := *join
	turned.Jointype, turned.Larg, turned.Rarg = ast.JOIN_LEFT, join.Rarg, join.Larg
	return &turned
}

// leaves reports whether the server leaves a table out that a LEFT JOIN adds, and whether that is known.
func (v *leaving) leaves(rel *relation, join *ast.JoinExpr, kept ast.SelectStmt) (leaves, known bool) {
	kept.FromClause = ast.NewNodeList(append(slices.Clone(nodes(kept.FromClause)), join.Larg)...)
	others := slices.DeleteFunc(slices.Clone(v.rels), func(o *relation) bool { return o == rel })
	others = append(others, v.common...)
	asks := func(list *ast.NodeList) (asks, sure bool) {
		rest := kept
		if rest.TargetList = list; slices.ContainsFunc(nodes(list), func(item ast.Node) bool {
			ref := star(item)
			return ref != nil && rel.within(ref)
		}) {
			return true, true
		}
		return refersTo(&rest, others, []*relation{rel})
	}
	if surely, sure := asks(v.surely); surely && sure {
		return false, true
	}
	perhaps, sure := asks(v.list)
	switch {
	case !comparesOnly(join.Quals):
		return false, false // in whose form it may find one row is not known
	case !v.findsOne(rel, join):
		return false, true
	}
	return true, !perhaps && sure
}

// comparesOnly reports whether a condition compares values that are no rows, and does not do so with lists.
func comparesOnly(n ast.Node) bool {
	plain := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RowExpr, *ast.SubLink:
			plain = false
		case *ast.A_Expr:
			plain = plain && n.Kind == ast.AEXPR_OP
		}
		return plain
	}, n)
	return plain && whole
}

// settled reports whether it is known of each table, query and view that an outer join adds whether it is left out. One
// that several tables stand for is not.
func (v *leaving) settled(n *ast.SelectStmt) bool {
	u, err := v.inspect(v.surely, n.DistinctClause, n.WhereClause, n.GroupClause, n.HavingClause, n.WindowClause, n.SortClause)
	if err != nil {
		return false
	}
	known := true
	check := func(side ast.Node) {
		i := slices.IndexFunc(v.rels, func(rel *relation) bool { return rel.node == bare(side) })
		switch {
		case i >= 0:
			known = known && (v.decided[v.rels[i]] || v.rels[i].used(u))
		default:
			j := slices.IndexFunc(v.common, func(rel *relation) bool { return rel.node == bare(side) })
			_, join := bare(side).(*ast.JoinExpr)
			known = known && (join || j >= 0 && v.common[j].used(u) || v.ofNoKey(bare(side)))
		}
	}
	hung := func(side ast.Node) bool {
		return slices.ContainsFunc(v.hanging, func(q *ast.RangeSubselect) bool { return bare(side) == ast.Node(q) })
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		if join, ok := n.(*ast.JoinExpr); ok && join.Jointype != ast.JOIN_INNER {
			turned := leftOf(join)
			if !hung(turned.Rarg) {
				check(turned.Rarg)
			}
			if join.Jointype == ast.JOIN_FULL {
				check(join.Larg)
			}
		}
		_, query := n.(*ast.SelectStmt)
		return !query
	}, n.FromClause)
	return known && whole
}

// ofNoKey reports whether an item of a FROM clause is a query of one table without unique indexes, of each of its rows.
func (v *leaving) ofNoKey(item ast.Node) bool {
	from, ok := item.(*ast.RangeSubselect)
	if !ok {
		return false
	}
	n, ok := from.Subquery.(*ast.SelectStmt)
	if !ok || len(nodes(n.FromClause)) != 1 || n.GroupClause != nil || n.DistinctClause != nil || limits(n) || !ofEachRow(n.TargetList) {
		return false
	}
	name, ok := bare(nodes(n.FromClause)[0]).(*ast.RangeVar)
	if !ok || v.inWith(name) {
		return false
	}
	t, _ := v.table(name)
	return t != nil && !slices.ContainsFunc(t.Indexes, func(x Index) bool { return x.Primary || x.Unique })
}
