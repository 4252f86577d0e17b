package mysql

import (
	"math"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// A copy of a subquery's condition may be evaluated for rows that the server does not come to. What fails for no row
// may stand in it: beside comparisons these are CASE, functions that give one of their arguments, and sums and
// products of integers that no value of their columns makes too large. That the server warns of nothing in it a
// [listener] tells.

// picksArgument are functions that give one of their arguments.
var picksArgument = set("coalesce ifnull if isnull nullif greatest least")

// failsForNone reports whether a node, but not what is in it, surely fails for no row.
func (p *pure) failsForNone(n ast.Node) bool {
	if p.l == nil {
		return false
	}
	switch n := n.(type) {
	case *ast.CaseExpr, *ast.WhenClause:
		return true
	case *ast.FuncCallExpr:
		return n.Schema.L == "" && (picksArgument[n.FnName.L] || n.FnName.L == ast.DateLiteral)
	case *ast.BinaryOperationExpr:
		return p.l.most(n) < math.MaxInt64/2
	case *ast.UnaryOperationExpr:
		return n.Op == opcode.Minus && p.l.most(n.V) < math.MaxInt64/2
	}
	return false
}

// inCopies returns the kind of what further functions give, of which the server warns for no row. How it groups by them
// is another matter.
func (l *listener) inCopies(name string, args []ast.ExprNode) valueKind {
	switch {
	case (name == "greatest" || name == "least") && l.alike(args...):
		return l.oneOf(args)
	case name == "nullif" && len(args) == 2 && l.alike(args...):
		return l.kind(args[0])
	case name == ast.DateLiteral:
		return moment
	}
	return noisy
}

// bounds are the largest values of columns that are integers with a sign, without it.
var bounds = map[string]float64{"tinyint": 1 << 7, "smallint": 1 << 15, "mediumint": 1 << 23, "int": 1 << 31}

// most returns how large an integer that an expression computes may be, without its sign; infinity where that is not
// known.
func (l *listener) most(e ast.ExprNode) float64 {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return l.most(e.Expr)
	case *ast.ColumnNameExpr:
		for _, s := range l.srcs {
			if s.table == nil {
				return math.Inf(1)
			}
		}
		c, _, ok := l.srcs.owner(e.Name)
		b, known := bounds[columnType(c)]
		if ok && known && !c.Generated && !strings.Contains(c.Full, "unsigned") && !strings.Contains(c.Full, "zerofill") {
			return b
		}
	case *test_driver.ValueExpr:
		if e.Kind() == test_driver.KindInt64 {
			return math.Abs(float64(e.GetInt64()))
		}
	case *ast.BinaryOperationExpr:
		left, right := l.most(e.L), l.most(e.R)
		switch e.Op {
		case opcode.Plus, opcode.Minus:
			return left + right
		case opcode.Mul:
			return left * right
		case opcode.Mod:
			if divisor(e.R) {
				return max(left, right)
			}
		}
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Minus {
			return l.most(e.V)
		}
	}
	return math.Inf(1)
}

// columnType returns a column's type; empty where there is none.
func columnType(c *Column) string {
	if c == nil {
		return ""
	}
	return c.Type
}
