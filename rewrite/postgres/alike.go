package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A copy of a query tells what the query reads if it reads the same rows: in one snapshot it does unless it chooses
// among rows that are equal to what chooses.

// readsAlike reports whether a statement reads the same rows each time: nothing in it chooses among them but by an
// order that tells all of them apart, or locks. EXISTS asks for any.
func (pl *planner) readsAlike(tree ast.Node) bool {
	alike, exists := true, make(map[ast.Node]bool)
	pl = pl.knowing(tree)
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			exists[n.Subselect] = n.SubLinkType == ast.EXISTS_SUBLINK
		case *ast.SelectStmt:
			limited := n.LimitCount != nil || n.LimitOffset != nil
			alike = alike && len(nodes(n.DistinctClause)) == 0 && n.LockingClause == nil &&
				(!limited || exists[n] && n.LimitOffset == nil || pl.byKeys(n))
		case *ast.FuncCall:
			alike = alike && n.Over == nil
		case *ast.RangeTableSample:
			alike = false
		}
		return alike
	}, tree)
	return alike && whole
}

// byKeys reports whether the LIMIT or OFFSET of a query is by an order that tells all rows of its only table apart.
func (pl *planner) byKeys(n *ast.SelectStmt) bool {
	from := nodes(n.FromClause)
	if n.LimitCount == nil && n.LimitOffset == nil || n.Op != ast.SETOP_NONE || len(from) != 1 || n.DistinctClause != nil ||
		n.GroupClause != nil || n.HavingClause != nil || n.WindowClause != nil || n.LockingClause != nil || !pl.oneForEach(n.TargetList) {
		return false
	}
	item, ok := bare(from[0]).(*ast.RangeVar)
	if !ok {
		return false
	}
	t, _ := pl.knowing(n).table(item)
	if t == nil {
		return false
	}
	s, err := pl.sourceOf(t, item)
	if err != nil {
		return false
	}
	q := &subquery{query: n, tables: []*source{&s}}
	sorted, ok := q.sorted()
	return ok && q.byKey(sorted)
}

// knowing returns a planner that knows the names which WITH clauses in a statement define.
func (pl *planner) knowing(tree ast.Node) *planner {
	own := *pl
	own.ctes = slices.Clone(pl.ctes)
	pgtree.Walk(func(n ast.Node) bool {
		if def, ok := n.(*ast.CommonTableExpr); ok {
			own.ctes = append(own.ctes, def.Ctename)
		}
		return true
	}, tree)
	return &own
}
