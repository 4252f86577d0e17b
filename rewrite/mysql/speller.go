package mysql

import (
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/charset"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
	"github.com/pingcap/tidb/pkg/parser/types"
)

// A copy that asks for equal rows has what is computed of columns beside tables of its own, so that its names have to
// be told apart: such an expression is printed, each column with its table.

// A speller prints expressions that are computed of the columns of some tables.
type speller struct {
	pl     *planner
	of     sources
	tables []string // that it named
}

// spelledOperators are the operators that a speller prints.
var spelledOperators = map[opcode.Op]string{opcode.Plus: " + ", opcode.Minus: " - ", opcode.Mul: " * ", opcode.Div: " / ",
	opcode.EQ: " = ", opcode.NE: " <> ", opcode.LT: " < ", opcode.LE: " <= ", opcode.GT: " > ", opcode.GE: " >= ",
	opcode.LogicAnd: " AND ", opcode.LogicOr: " OR "}

// spell prints an expression. It reports whether that surely means the same.
func (s *speller) spell(e ast.ExprNode) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return s.spell(e.Expr)
	case *ast.ColumnNameExpr:
		return s.column(e.Name)
	case *test_driver.ValueExpr:
		return s.literal(e)
	case *ast.BinaryOperationExpr:
		left, ok1 := s.spell(e.L)
		right, ok2 := s.spell(e.R)
		sign := spelledOperators[e.Op]
		return "(" + left + sign + right + ")", sign != "" && ok1 && ok2
	case *ast.IsNullExpr:
		of, ok := s.spell(e.Expr)
		if e.Not {
			return "(" + of + " IS NOT NULL)", ok
		}
		return "(" + of + " IS NULL)", ok
	case *ast.FuncCallExpr:
		args, ok := s.list(e.Args)
		return e.FnName.L + "(" + args + ")", ok && e.Schema.L == "" && nativeFunctions[e.FnName.L]
	case *ast.CaseExpr:
		return s.cases(e)
	case *ast.SetCollationExpr:
		of, ok := s.spell(e.Expr)
		return "(" + of + " COLLATE " + e.Collate + ")", ok
	case *ast.FuncCastExpr:
		of, ok := s.spell(e.Expr)
		return "CAST(" + of + " AS CHAR)", ok && e.FunctionType == ast.CastFunction && !e.ExplicitCharSet &&
			e.Tp.GetType() == mysql.TypeVarString && e.Tp.GetFlen() == types.UnspecifiedLength
	}
	return "", false
}

// list prints expressions with commas between them.
func (s *speller) list(all []ast.ExprNode) (text string, ok bool) {
	var texts []string
	for _, e := range all {
		text, ok := s.spell(e)
		if !ok {
			return "", false
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), true
}

// column prints a column that surely is one of the tables'.
func (s *speller) column(n *ast.ColumnName) (text string, ok bool) {
	c, as, ok := s.of.owner(n)
	if !ok || c.Generated || s.pl.checkSpelling(as, c.Name) != nil {
		return "", false
	}
	s.tables = append(s.tables, as)
	return quoted(as) + "." + quoted(c.Name), true
}

// literal prints a whole number, or a plain text of the connection's charset.
func (s *speller) literal(e *test_driver.ValueExpr) (text string, ok bool) {
	s.pl.literal = true
	switch e.Kind() {
	case test_driver.KindNull:
		return "NULL", true
	case test_driver.KindInt64:
		return strconv.FormatInt(e.GetInt64(), 10), true
	case test_driver.KindString:
		own := e.Type.GetFlag()&mysql.UnderScoreCharsetFlag != 0 || e.Type.GetCharset() == charset.CharsetBin
		return "'" + e.GetString() + "'", !own && !strings.ContainsFunc(e.GetString(), func(r rune) bool {
			return r < ' ' || r > '~' || r == '\'' || r == '\\' || r == '"'
		})
	}
	return "", false
}

// cases prints a CASE.
func (s *speller) cases(e *ast.CaseExpr) (text string, ok bool) {
	var b strings.Builder
	ok = true
	part := func(word string, e ast.ExprNode) {
		if e == nil {
			return
		}
		text, fine := s.spell(e)
		b.WriteString(word + text)
		ok = ok && fine
	}
	part(" ", e.Value)
	for _, w := range e.WhenClauses {
		part(" WHEN ", w.Expr)
		part(" THEN ", w.Result)
	}
	part(" ELSE ", e.ElseClause)
	return "(CASE" + b.String() + " END)", ok
}

// integers reports whether an expression is one of whole numbers and columns of these.
func (s *speller) integers(e ast.ExprNode) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return s.integers(e.Expr)
	case *ast.ColumnNameExpr:
		c, _, ok := s.of.owner(e.Name)
		return ok && integerType(c.Type)
	case *test_driver.ValueExpr:
		return e.Kind() == test_driver.KindInt64
	case *ast.BinaryOperationExpr:
		return (e.Op == opcode.Plus || e.Op == opcode.Minus || e.Op == opcode.Mul) && s.integers(e.L) && s.integers(e.R)
	}
	return false
}
