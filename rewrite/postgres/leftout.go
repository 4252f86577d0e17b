package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A LEFT JOIN adds columns to rows, and none to their number, where its condition finds one row at most. If nothing
// asks for these columns nothing hangs on what it finds, and the server leaves the join out (join_is_removable in its
// analyzejoins.c). ORMs count so: SELECT count(*) FROM a LEFT JOIN b ON b.id = a.b_id. A column of isotap's would have
// the server join, and tell rows that nobody read.

// leaveOut takes the sights off the tables of a block's LEFT JOINs that find one row at most, of which nothing asks.
func (r *reading) leaveOut(b *block) {
	if r.copies || r.inPlace(b.n) || !outerJoin(b.n.FromClause) {
		return
	}
	list := b.n.TargetList
	if asked, noted := r.asked[b.n]; noted && !asked["*"] && b.n.DistinctClause == nil {
		list = ast.NewNodeList(askedItems(nodes(list), asked, b.expands)...)
	}
	shown, err := r.inspect(list)
	if err != nil {
		return
	}
	for i, item := range nodes(b.n.FromClause) {
		others := *b.n
		others.FromClause = ast.NewNodeList(slices.Delete(slices.Clone(nodes(b.n.FromClause)), i, i+1)...)
		r.leaveOutOf(b, item, others, list, shown)
	}
}

// leaveOutOf does so for an item of the FROM clause; kept is the block without it, list what is surely asked for of its
// select list. Where something may ask for the table's columns, and need not, it is not known what was read.
func (r *reading) leaveOutOf(b *block, item ast.Node, kept ast.SelectStmt, list *ast.NodeList, shown *usage) {
	for {
		join, ok := bare(item).(*ast.JoinExpr)
		if !ok || join.IsNatural || merges(join.Larg) || join.Alias != nil || join.JoinUsingAlias != nil {
			return
		}
		join = leftOf(join)
		item = join.Larg
		if rel := b.leftJoined(join); rel != nil && r.findsOne(rel, join) && !rel.used(shown) {
			rest, others := kept, slices.DeleteFunc(slices.Clone(b.rels), func(o *relation) bool { return o == rel })
			rest.FromClause = ast.NewNodeList(append(slices.Clone(nodes(kept.FromClause)), item)...)
			asks := mayReferTo(&rest, others, []*relation{rel})
			if rest.TargetList = list; !asks || !mayReferTo(&rest, others, []*relation{rel}) {
				if rel.sights = nil; asks {
					r.markUnseen(history.ReasonPlan)
				}
				continue
			}
		}
		if len(nodes(join.UsingClause)) > 0 {
			return // it names columns of what stands within
		}
		kept.FromClause.Append(join.Rarg)
		kept.WhereClause = both(kept.WhereClause, join.Quals)
	}
}

// leftJoined returns the table on the optional side of a LEFT JOIN; nil where there is something else.
func (b *block) leftJoined(join *ast.JoinExpr) *relation {
	table, ok := bare(join.Rarg).(*ast.RangeVar)
	i := slices.IndexFunc(b.rels, func(rel *relation) bool { return rel.node == ast.Node(table) && rel.base != nil })
	if !ok || join.Jointype != ast.JOIN_LEFT || i < 0 {
		return nil
	}
	return b.rels[i]
}

// findsOne reports whether the server knows that a join finds one row of a table at most. Before 16 it knows of no
// partitioned one.
func (pl *planner) findsOne(rel *relation, join *ast.JoinExpr) bool {
	return rel.findsOne(join) && (pl.session.Version >= 16 || !rel.base.table.Partitioned)
}

// findsOne reports whether a join finds one row of a table at most: it equates all columns of a unique index with
// something that does not name the table.
func (rel *relation) findsOne(join *ast.JoinExpr) bool {
	if t := rel.base.table; len(t.Leaves) > 0 && !t.Partitioned && !rel.base.only {
		return false // its children have keys of their own
	}
	equated := make(map[string]bool)
	add := func(name string) {
		if i := slices.Index(rel.base.names, name); i >= 0 {
			equated[rel.base.table.Columns[i].Name] = true
		}
	}
	for _, name := range nodes(join.UsingClause) {
		add(name.(*ast.String).SVal)
	}
	for _, part := range flatten(bare(join.Quals), ast.AND_EXPR) {
		n, ok := bare(part).(*ast.A_Expr)
		if !ok || n.Kind != ast.AEXPR_OP || !isString(nodes(n.Name), "=") {
			continue
		}
		for _, sides := range [][2]ast.Node{{n.Lexpr, n.Rexpr}, {n.Rexpr, n.Lexpr}} {
			ref, ok := bare(sides[0]).(*ast.ColumnRef)
			if ok && len(fields(ref)) == 2 && fields(ref)[0] == rel.ref &&
				!mayReferTo(&ast.SelectStmt{WhereClause: sides[1]}, nil, []*relation{rel}) {
				add(last(ref))
			}
		}
	}
	return slices.ContainsFunc(rel.base.table.Indexes, func(x Index) bool {
		return (x.Primary || x.Unique) && !slices.ContainsFunc(x.Columns, func(name string) bool { return name == "" || !equated[name] })
	})
}

// both returns the condition that is one and another; either may be missing.
func both(one, other ast.Node) ast.Node {
	switch {
	case pgtree.Missing(one):
		return other
	case pgtree.Missing(other):
		return one
	}
	return ast.NewBoolExpr(ast.AND_EXPR, ast.NewNodeList(one, other))
}
