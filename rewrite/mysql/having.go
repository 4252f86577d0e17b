package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/isotap/isotap/history"
)

// Groups that HAVING leaves out were read, and no row of the result shows theirs. So all that the statement groups
// stands beside each group, read a second time by its own FROM clause and condition, and computed once (ADR 62). So
// does what a query in FROM groups, or has windows over, if the statement has a condition on these.

// groupsAside has a statement show all rows that it groups, whatever HAVING leaves out. It reports whether it does.
func (pl *planner) groupsAside(b *block, use *usage) bool {
	n := b.n
	return n == pl.alone && n.With == nil && !use.window && pl.leavesOut(b, use) && choosesGroups(n, b.srcs) && pl.tellAside(n, mayHave{windows: true})
}

// leftOutAside has a statement show all rows of the only query in its FROM clause, whatever conditions leave out on
// what that has computed of groups or of other rows. It reports whether it does.
func (pl *planner) leftOutAside(b *block, use *usage) bool {
	n := b.n
	if n != pl.alone || b.grouped || len(b.srcs) != 1 || n.Where == nil || n.Having != nil || use.window || !pl.leavesOut(b, use) {
		return false
	}
	q := b.srcs[0].query
	if q == nil || q.Distinct || q.From == nil || !asksForComputed(n.Where, q) ||
		q.Having != nil && !choosesGroups(q, flatten(q.From.TableRefs)) {
		return false
	}
	if name, ok := b.srcs[0].node.Source.(*ast.TableName); ok {
		c, _ := pl.nesting.with.find(name.Name.O)
		if c == nil {
			return false
		}
		outside := pl.nesting.with
		defer func() { pl.nesting.with = outside }()
		pl.nesting.with = c.scope // what its own query sees
	}
	return pl.tellAside(q, mayHave{windows: true, named: true})
}

// leavesOut reports whether a statement may read what it reads once more, and has nothing else that leaves rows out.
func (pl *planner) leavesOut(b *block, use *usage) bool {
	return pl.plan.Observation == history.Exact && b.n.Limit == nil && !use.subquery && !use.function && pl.readsAgain(b.n)
}

// tellAside has the statement show all rows that a query reads. It reports whether it does.
func (pl *planner) tellAside(n *ast.SelectStmt, may mayHave) bool {
	var all []*besides
	if !pl.asideOf(n, &all, may) || len(pl.besides)+len(all) > maxBesideColumns {
		return false
	}
	pl.besides, pl.literal = append(pl.besides, all...), true
	return true
}

// choosesGroups reports whether each comparison of a query's HAVING asks for what is computed of a group: by another
// one the server may leave rows out before it groups.
func choosesGroups(n *ast.SelectStmt, srcs sources) bool {
	return !slices.ContainsFunc(comparisons(n.Having.Expr, nil), func(e ast.ExprNode) bool {
		a := groupValues{n: n, srcs: srcs}
		e.Accept(&a)
		return !a.found
	})
}

// comparisons collects the conditions that AND, OR and NOT join.
func comparisons(e ast.ExprNode, all []ast.ExprNode) []ast.ExprNode {
	switch of := e.(type) {
	case *ast.ParenthesesExpr:
		return comparisons(of.Expr, all)
	case *ast.UnaryOperationExpr:
		if of.Op == opcode.Not || of.Op == opcode.Not2 {
			return comparisons(of.V, all)
		}
	case *ast.BinaryOperationExpr:
		if of.Op == opcode.LogicAnd || of.Op == opcode.LogicOr || of.Op == opcode.LogicXor {
			return comparisons(of.R, comparisons(of.L, all))
		}
	}
	return append(all, e)
}

// asksForComputed reports whether each comparison of a condition asks for what a query in FROM has computed of groups,
// or of other rows: the server takes others into that query.
func asksForComputed(where ast.ExprNode, q *ast.SelectStmt) bool {
	return !slices.ContainsFunc(comparisons(where, nil), func(e ast.ExprNode) bool {
		var names namedColumns
		e.Accept(&names)
		return !slices.ContainsFunc(names.names, func(c *ast.ColumnName) bool {
			return slices.ContainsFunc(q.Fields.Fields, func(f *ast.SelectField) bool {
				return f.AsName.L == c.Name.L && f.Expr != nil && computedOfRows(f.Expr)
			})
		})
	})
}

// computedOfRows reports whether an item of a select list is an aggregate or a window function.
func computedOfRows(e ast.ExprNode) bool {
	switch e.(type) {
	case *ast.AggregateFuncExpr, *ast.WindowFuncExpr:
		return true
	}
	return false
}

// groupValues looks for aggregates, and for names of items of the select list that are such.
type groupValues struct {
	n     *ast.SelectStmt
	srcs  sources
	found bool
}

// Enter implements ast.Visitor.
func (v *groupValues) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.AggregateFuncExpr:
		v.found = true
	case *ast.ColumnNameExpr:
		if n.Name.Table.L == "" && !v.srcs.mayMean(n.Name) {
			v.found = v.found || slices.ContainsFunc(v.n.Fields.Fields, func(f *ast.SelectField) bool {
				_, aggregate := f.Expr.(*ast.AggregateFuncExpr)
				return aggregate && f.AsName.L == n.Name.Name.L
			})
		}
	}
	return n, v.found
}

// Leave implements ast.Visitor.
func (v *groupValues) Leave(n ast.Node) (ast.Node, bool) { return n, true }
