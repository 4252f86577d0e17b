package postgres

import (
	"regexp"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// What statement_timestamp() and clock_timestamp() gave is not known, but two moments that it lies between. A condition
// that compares it once changes once at most as time goes by, so that it holds all the while where it holds at both.
// The parts that AND joins may each compare it.

// holdsBetween reports whether a condition that holds at two moments holds at all between them.
func holdsBetween(where ast.Node) bool {
	where = bare(where)
	if and, ok := where.(*ast.BoolExpr); ok && and.Boolop == ast.AND_EXPR {
		return !slices.ContainsFunc(nodes(and.Args), func(n ast.Node) bool { return !holdsBetween(n) })
	}
	calls, compared := withins(where)
	if e, ok := where.(*ast.A_Expr); ok && e.Kind == ast.AEXPR_BETWEEN {
		return calls == momentsBetween(e)
	}
	return calls == compared && calls < 2
}

// withins returns how often a condition has such a moment, and how often it compares one.
func withins(condition ast.Node) (calls, compared int) {
	pgtree.Each(func(n ast.Node) bool {
		if momentWithin(n) {
			calls++
		}
		if e, ok := n.(*ast.A_Expr); ok && comparesMoment(e) {
			compared++
		}
		return true
	}, condition)
	return calls, compared
}

// momentWithin reports whether an expression is a call that gives a moment while the statement ran.
func momentWithin(n ast.Node) bool {
	param, ok := asks(n)
	return ok && param == rewrite.Within
}

// comparesMoment reports whether an expression says that such a moment is before or after another.
func comparesMoment(e *ast.A_Expr) bool {
	names := nodes(e.Name)
	return e.Kind == ast.AEXPR_OP && len(names) == 1 &&
		slices.ContainsFunc([]string{"<", "<=", ">", ">="}, func(op string) bool { return isString(names, op) }) &&
		goesByTime(e.Lexpr) != goesByTime(e.Rexpr)
}

// momentsBetween returns how many such moments BETWEEN compares, each with none that is another one; -1 where it
// compares two.
func momentsBetween(e *ast.A_Expr) (n int) {
	bounds, ok := e.Rexpr.(*ast.NodeList)
	if !ok {
		return -1
	}
	for _, bound := range nodes(bounds) {
		if goesByTime(bound) {
			n++
		}
	}
	switch {
	case !goesByTime(e.Lexpr):
		return n
	case n == 0:
		return 1
	}
	return -1
}

// goesByTime reports whether an expression is such a moment, or one that stands a fixed time before or after it.
func goesByTime(n ast.Node) bool {
	if pgtree.Missing(n) {
		return false
	}
	n = bare(n)
	if e, ok := n.(*ast.A_Expr); ok && e.Kind == ast.AEXPR_OP && len(nodes(e.Name)) == 1 &&
		(isString(nodes(e.Name), "+") || isString(nodes(e.Name), "-")) {
		return !pgtree.Missing(e.Lexpr) && momentWithin(bare(e.Lexpr)) && fixedInterval(e.Rexpr)
	}
	return momentWithin(n)
}

// plainInterval is how an interval is written that is as long wherever it begins. Days are not: clocks are put back.
var plainInterval = regexp.MustCompile(`^\s*\d{1,6}(\.\d{1,6})?\s*(microsecond|millisecond|second|sec|minute|min|hour)s?\s*$`)

// fixedInterval reports whether an expression is such an interval.
func fixedInterval(n ast.Node) bool {
	if pgtree.Missing(n) {
		return false
	}
	cast, ok := bare(n).(*ast.TypeCast)
	if !ok || pgtree.Missing(cast.Arg) || cast.TypeName == nil || len(nodes(cast.TypeName.Typmods)) > 0 {
		return false
	}
	names := nodes(cast.TypeName.Names)
	constant, ok := bare(cast.Arg).(*ast.A_Const)
	if !ok || len(names) == 0 || !isString(names[len(names)-1:], "interval") {
		return false
	}
	text, ok := constant.Val.(*ast.String)
	return ok && plainInterval.MatchString(text.SVal)
}
