package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// Where a value does not fit its column, the server's error or warning tells the row's number. It counts the rows that
// the last subquery looked at in the same number, so that a copy of one may change it (ADR 62): none may be run between
// two values of which one may not fit.

// allInsertedFit reports whether the server has surely nothing to say of any value that INSERT ... SELECT inserts, nor
// of what it chooses rows by.
func (pl *planner) allInsertedFit(n *ast.InsertStmt, sel *ast.SelectStmt, t *Table, b *block, found []*besides) bool {
	columns := insertedColumns(n, t)
	if len(columns) != len(sel.Fields.Fields) {
		return false
	}
	l := outsideOf(found, b)
	for i, f := range sel.Fields.Fields {
		if c := t.ColumnInAnyCase(columns[i]); c == nil || f.Expr == nil || !l.storable(f.Expr, c) {
			return false
		}
	}
	var conditions []ast.ExprNode
	ons(sel.From.TableRefs, &conditions)
	return !slices.ContainsFunc(append(conditions, sel.Where), func(e ast.ExprNode) bool { return !l.silent(e) })
}

// insertedColumns returns the columns to which an INSERT gives values.
func insertedColumns(n *ast.InsertStmt, t *Table) (columns []string) {
	for _, c := range n.Columns {
		columns = append(columns, c.Name.O)
	}
	if columns == nil {
		columns = visibleColumns(t)
	}
	return columns
}

// computesBehind reports whether the server computes more of a row, behind the values that it is given, which need not
// fit: generated columns, expressions in indexes, and for an INSERT the defaults of columns that are not named. Those
// of moments are nearly always CURRENT_TIMESTAMP.
func (pl *planner) computesBehind(t *Table, inserts bool, named []string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool {
		return c.Generated || inserts && c.ComputedDefault && kindOf(c.Type) != moment &&
			!slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, c.Name) })
	}) || pl.session.Dialect == MySQL && slices.ContainsFunc(t.Indexes, func(x rewrite.Index) bool {
		return slices.Contains(x.Columns, "")
	})
}

// An outside tells of what stands around the subqueries of a write whether the server may warn of it.
type outside struct {
	listener
	queries map[*ast.SelectStmt]sources
	alias   string // of the row that ON DUPLICATE KEY UPDATE has in the place of VALUES()
}

// outsideOf returns that of a statement with these subqueries.
func outsideOf(found []*besides, b *block) *outside {
	l := &outside{listener: listener{srcs: b.srcs}, queries: make(map[*ast.SelectStmt]sources)}
	for _, c := range found {
		l.queries[c.node] = append(l.queries[c.node], c.of)
	}
	return l
}

// silent reports whether the server has surely nothing to say of a condition outside of its subqueries.
func (l *outside) silent(e ast.ExprNode) bool {
	if e == nil {
		return true
	}
	if !hasSubquery(e) {
		return l.truth(e)
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return l.silent(e.Expr)
	case *ast.UnaryOperationExpr:
		return (e.Op == opcode.Not || e.Op == opcode.Not2) && l.silent(e.V)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd, opcode.LogicOr, opcode.LogicXor:
			return l.silent(e.L) && l.silent(e.R)
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
			return l.comparable(e.L, e.R)
		}
	case *ast.ExistsSubqueryExpr:
		return true
	case *ast.PatternInExpr:
		return e.Sel != nil && l.comparable(e.Expr, e.Sel)
	case *ast.CompareSubqueryExpr:
		return l.comparable(e.L, e.R)
	}
	return false
}

// comparable reports whether two values are of the same kind, so that neither is converted.
func (l *outside) comparable(a, b ast.ExprNode) bool {
	x, y := l.valueOf(a), l.valueOf(b)
	return x != noisy && y != noisy && (x == y && x != anyKind || parameter(a) || parameter(b) || fits(a, y) || fits(b, x))
}

// valueOf returns the kind of a value that may be a subquery, or computed of one.
func (l *outside) valueOf(e ast.ExprNode) valueKind {
	if !hasSubquery(e) {
		return l.kind(e)
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return l.valueOf(e.Expr)
	case *ast.SubqueryExpr:
		n, ok := e.Query.(*ast.SelectStmt)
		if !ok || len(n.Fields.Fields) != 1 || n.Fields.Fields[0].Expr == nil {
			return noisy
		}
		inner := listener{srcs: append(slices.Clone(l.queries[n]), l.srcs...)}
		return inner.kind(n.Fields.Fields[0].Expr)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.Plus, opcode.Minus, opcode.Mul:
			return l.numberIf(l.valueOf(e.L) == numeric && l.valueOf(e.R) == numeric)
		}
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) == 2 && l.comparable(e.Args[0], e.Args[1]) {
			return l.valueOf(e.Args[0])
		}
	}
	return noisy
}

// integerBits are the sizes of integers.
var integerBits = map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// storable reports whether a value surely fits a column.
func (l *outside) storable(e ast.ExprNode, c *Column) bool {
	bits := integerBits[c.Type]
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return l.storable(e.Expr, c)
	case *test_driver.ValueExpr:
		switch e.Kind() {
		case test_driver.KindNull:
			return !c.NotNull
		case test_driver.KindInt64:
			return bits > 0 && e.GetInt64() < 1<<(bits-1)
		case test_driver.KindString:
			var room int
			n, _ := fmt.Sscanf(c.Full, "varchar(%d)", &room)
			return n == 1 && len(e.GetString()) <= room && ascii(e.GetString())
		}
	case *ast.ValuesExpr:
		return e.Column.Name.Name.L == strings.ToLower(c.Name)
	case *ast.ColumnNameExpr:
		if l.alias != "" && e.Name.Table.L == l.alias {
			return e.Name.Name.L == strings.ToLower(c.Name)
		}
		of, as, ok := l.srcs.owner(e.Name)
		return ok && of.Full != "" && of.Full == c.Full && of.Collation == c.Collation && kindOf(c.Type) != moment &&
			(!c.NotNull || of.NotNull && !l.srcs.named(as).outer)
	case *ast.UnaryOperationExpr:
		return (e.Op == opcode.Not || e.Op == opcode.Not2) && bits > 0 && l.silent(e.V)
	case *ast.ExistsSubqueryExpr:
		return bits > 0
	case *ast.SubqueryExpr:
		n, ok := e.Query.(*ast.SelectStmt)
		if !ok || bits < 32 || len(n.Fields.Fields) != 1 || n.GroupBy != nil || n.Having != nil {
			return false
		}
		a, ok := n.Fields.Fields[0].Expr.(*ast.AggregateFuncExpr)
		return ok && strings.EqualFold(a.F, ast.AggFuncCount)
	}
	return false
}
