package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// Where a value does not fit its column, the server's error or warning tells the row's number. It counts the rows that
// the last subquery looked at in the same number, so that a copy of one may change it (ADR 62): none may be run between
// two values of which one may not fit.

// allInsertedFit reports whether the server has surely nothing to say of any value that INSERT ... SELECT inserts.
func allInsertedFit(n *ast.InsertStmt, sel *ast.SelectStmt, t *Table, srcs sources) bool {
	columns := visibleColumns(t)
	if len(n.Columns) > 0 {
		columns = nil
		for _, c := range n.Columns {
			columns = append(columns, c.Name.O)
		}
	}
	generated := slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Generated })
	if generated || len(columns) != len(sel.Fields.Fields) {
		return false
	}
	for i, f := range sel.Fields.Fields {
		if c := t.ColumnInAnyCase(columns[i]); c == nil || f.Expr == nil || !storable(f.Expr, c, srcs) {
			return false
		}
	}
	return true
}

// integerBits are the sizes of integers.
var integerBits = map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// storable reports whether a value surely fits a column.
func storable(e ast.ExprNode, c *Column, srcs sources) bool {
	bits := integerBits[c.Type]
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return storable(e.Expr, c, srcs)
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
	case *ast.ColumnNameExpr:
		of, as, ok := srcs.owner(e.Name)
		return ok && of.Full != "" && of.Full == c.Full && of.Collation == c.Collation && c.Type != "timestamp" &&
			(!c.NotNull || of.NotNull && !srcs.named(as).outer)
	case *ast.UnaryOperationExpr:
		return (e.Op == opcode.Not || e.Op == opcode.Not2) && bits > 0
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
