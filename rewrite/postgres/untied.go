package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A condition that names columns of groups and of what they are joined with is left out of the copy as one that names
// groups alone is. Without it the copy must not join each with each.

// bound reports whether the copy joins the rows of a flat query by a column of the only table there is, and no others:
// a flat query before an outer join would show those that are joined with nothing.
func (f *flattening) bound(n *ast.SelectStmt) bool {
	return f.equal && len(f.flats) == 1 && len(f.tables) == 1 && !f.others &&
		(f.flats[0].left || !outerJoins(n.FromClause))
}

// equates reports whether a condition wants a column of a flat query to equal one of another item.
func (f *flattening) equates(n ast.Node) bool {
	e, ok := bare(n).(*ast.A_Expr)
	return ok && e.Kind == ast.AEXPR_OP && isString(nodes(e.Name), "=") &&
		(f.isFlatColumn(e.Lexpr) && f.isOthersColumn(e.Rexpr) || f.isFlatColumn(e.Rexpr) && f.isOthersColumn(e.Lexpr))
}

func (f *flattening) isFlatColumn(n ast.Node) bool {
	_, ok := bare(n).(*ast.ColumnRef)
	return ok && !f.namesOthers(n)
}

func (f *flattening) isOthersColumn(n ast.Node) bool {
	_, ok := bare(n).(*ast.ColumnRef)
	return ok && f.namesOthers(n)
}

// untie leaves the other items out of the copy, and all conditions with them: without those that name both the copy
// would join each row of these with each of the groups. It reports whether that tells what the client's query reads
// wherever that has a row. Then it has computed all groups: nothing else is asked of them before.
func (f *flattening) untie(n *ast.SelectStmt, main span) bool {
	if len(f.flats) != 1 || outerJoins(n.FromClause) || f.givesARowOfNone(n) {
		return false // there may be a row without groups
	}
	g := f.flats[0]
	if g.query.GroupClause == nil || g.query.Op != ast.SETOP_NONE || len(g.used) > 0 {
		return false
	}
	if sub, ok := g.node.(*ast.RangeSubselect); ok && sub.Lateral {
		return false // it may name columns of what is left out
	}
	at := f.places.queries[g.query]
	within := main.from <= at.from && at.to <= main.to
	f.cuts = slices.DeleteFunc(f.cuts, func(c cut) bool {
		return c.from >= main.from && !(within && at.from <= c.from && c.to <= at.to)
	})
	if within {
		f.cut(span{main.from, at.from}, func(x *excerpt) { x.add("FROM (") })
		f.cut(span{at.to, main.to}, func(x *excerpt) { x.add(") AS " + quoted(g.ref)) })
	} else {
		f.cut(main, func(x *excerpt) { x.add("FROM " + quoted(g.node.(*ast.RangeVar).RelName) + " AS " + quoted(g.ref)) })
	}
	f.alone = true
	return true
}

// givesARowOfNone reports whether a statement may give a row where its FROM clause has none, as aggregates do.
func (f *flattening) givesARowOfNone(n *ast.SelectStmt) bool {
	u, err := f.inspect(n.TargetList, n.SortClause, n.HavingClause)
	return err != nil || n.GroupClause == nil && (u.aggregate || n.HavingClause != nil) ||
		slices.ContainsFunc(nodes(n.GroupClause), func(n ast.Node) bool { _, set := n.(*ast.GroupingSet); return set })
}

// outerJoins reports whether a FROM clause has outer joins.
func outerJoins(from *ast.NodeList) (outer bool) {
	pgtree.Each(func(n ast.Node) bool {
		j, ok := n.(*ast.JoinExpr)
		outer = outer || ok && j.Jointype != ast.JOIN_INNER
		_, query := n.(*ast.SelectStmt)
		return !query
	}, from)
	return outer
}

// leftOut reports whether the server may leave the flat query of a LEFT JOIN out, since only the join's own condition
// names a column of it.
func (f *flattening) leftOut(n *ast.SelectStmt) bool {
	return slices.ContainsFunc(f.flats, func(g *flat) bool { return g.left && !g.named(n) })
}

// named reports whether a statement surely names a column of a flat query elsewhere than in its FROM clause.
func (g *flat) named(n *ast.SelectStmt) bool {
	found, whole := g.namedIn(false, n.TargetList, n.DistinctClause, n.WhereClause, n.GroupClause, n.HavingClause, n.WindowClause, n.SortClause)
	return found && whole
}

// asked reports whether a condition of the statement, but for that of its own join, may ask for a column of a flat
// query: rows that have none are left out by it.
func (g *flat) asked(n *ast.SelectStmt) bool {
	conditions := []ast.Node{n.WhereClause}
	pgtree.Each(func(n ast.Node) bool {
		if j, ok := n.(*ast.JoinExpr); ok && bare(j.Rarg) != g.node {
			conditions = append(conditions, j.Quals)
		}
		_, query := n.(*ast.SelectStmt)
		return !query
	}, n.FromClause)
	found, whole := g.namedIn(true, conditions...)
	return found || !whole
}

// chosen reports whether a condition chooses rows by the flat query of a join.
func (f *flattening) chosen(n *ast.SelectStmt, join *ast.JoinExpr) bool {
	return slices.ContainsFunc(f.flats, func(g *flat) bool { return g.node == bare(join.Rarg) && g.asked(n) })
}

// namedIn reports whether parts of a statement name a column of a flat query, in their subqueries as well or not.
func (g *flat) namedIn(subqueries bool, parts ...ast.Node) (found, whole bool) {
	whole = pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := fields(ref)
			found = found || names[0] == "*" || names[0] == g.ref || len(names) == 1 && g.chooses(names[0]) != another
		}
		_, query := n.(*ast.SubLink)
		return (subqueries || !query) && !found
	}, parts...)
	return found, whole || found
}
