package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// What NOW(6) and SYSDATE() gave is not known, but two moments that it lies between. A condition that compares it once
// changes once at most as time goes by, so that it holds all the while where it holds at both. The parts that AND joins
// may each compare it.

// holdsBetween reports whether a condition, which is no conjunction, holds at all between two moments if it does at
// both.
func holdsBetween(condition ast.ExprNode) bool {
	for p, ok := condition.(*ast.ParenthesesExpr); ok; p, ok = condition.(*ast.ParenthesesExpr) {
		condition = p.Expr
	}
	var c momentComparisons
	condition.Accept(&c)
	if between, ok := condition.(*ast.BetweenExpr); ok && !between.Not {
		return c.calls == momentsBetween(between)
	}
	return c.calls == c.compared && c.calls < 2
}

// momentComparisons counts how often a condition has a moment while the statement ran, and how often it compares one.
type momentComparisons struct{ calls, compared int }

// Enter implements ast.Visitor.
func (c *momentComparisons) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.FuncCallExpr:
		if momentWithin(n) {
			c.calls++
		}
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.LT, opcode.LE, opcode.GT, opcode.GE:
			if goesByTime(n.L) != goesByTime(n.R) {
				c.compared++
			}
		}
	}
	return n, false
}

// Leave implements ast.Visitor.
func (c *momentComparisons) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// momentsBetween returns how many such moments BETWEEN compares, each with none that is another one; -1 where it
// compares two.
func momentsBetween(n *ast.BetweenExpr) (moments int) {
	for _, bound := range []ast.ExprNode{n.Left, n.Right} {
		if goesByTime(bound) {
			moments++
		}
	}
	switch {
	case !goesByTime(n.Expr):
		return moments
	case moments == 0:
		return 1
	}
	return -1
}

// goesByTime reports whether an expression is such a moment, or one that stands a fixed time before or after it: a
// later one is never less.
func goesByTime(n ast.ExprNode) bool {
	switch n := n.(type) {
	case *ast.ParenthesesExpr:
		return goesByTime(n.Expr)
	case *ast.FuncCallExpr:
		switch n.FnName.L {
		case ast.DateAdd, ast.DateSub, ast.AddDate, ast.SubDate:
			return len(n.Args) == 3 && constantInterval(n.Args[1]) && goesByTime(n.Args[0])
		}
		return momentWithin(n)
	}
	return false
}

// constantInterval reports whether an interval is the same for all rows.
func constantInterval(n ast.ExprNode) bool {
	switch n.(type) {
	case *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
		return true
	}
	return false
}

// momentWithin reports whether a call is one of the fractionFunctions that gives one.
func momentWithin(n *ast.FuncCallExpr) bool {
	if fractionFunctions[n.FnName.L] == nil || n.Schema.L != "" {
		return false
	}
	return len(n.Args) == 1 || len(n.Args) == 0 && timeFunctions[n.FnName.L] == nil
}
