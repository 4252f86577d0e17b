package postgres

import (
	"slices"
	"strings"
	"unicode"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// Programs that write whole objects set the key of a row, too, to the value that it has:
//
//	UPDATE feature SET name = $1, description = $2 WHERE name = $3
//
// Before PostgreSQL 18 RETURNING has the new row alone. But each row that the statement writes had the key that its
// condition asks for.

// keyBefore returns the values that a condition compares the columns of the target's key with, in their order: rows
// that it lets pass have that key. It is nil where one of them is compared with nothing, or with more than a value.
func (w *write) keyBefore(where ast.Node) []string {
	key := w.target.table.Key
	values := make([]string, len(key))
	w.comparedKey(where, values)
	if len(key) == 0 || slices.Contains(values, "") {
		return nil
	}
	return values
}

// comparedKey sets those of the values that a condition asks for, or a part of it that AND joins.
func (w *write) comparedKey(condition ast.Node, values []string) {
	if pgtree.Missing(condition) {
		return
	}
	switch n := bare(condition).(type) {
	case *ast.BoolExpr:
		if n.Boolop == ast.AND_EXPR {
			for _, part := range nodes(n.Args) {
				w.comparedKey(part, values)
			}
		}
	case *ast.A_Expr:
		if n.Kind != ast.AEXPR_OP || !isString(nodes(n.Name), "=") {
			return
		}
		for _, side := range [2][2]ast.Node{{n.Lexpr, n.Rexpr}, {n.Rexpr, n.Lexpr}} {
			ref, ok := bare(side[0]).(*ast.ColumnRef)
			if !ok {
				continue
			}
			names := fields(ref)
			at := slices.Index(w.target.table.Key, names[len(names)-1])
			if at >= 0 && (len(names) == 1 || len(names) == 2 && names[0] == w.target.ref) && isValue(side[1]) {
				values[at] = bare(side[1]).SqlString()
			}
		}
	}
}

// isValue reports whether an expression is a parameter, or a constant other than NULL that is written in one way
// whatever the client's encoding and the server's settings are.
func isValue(n ast.Node) bool {
	switch n := bare(n).(type) {
	case *ast.ParamRef:
		return n.Number > 0
	case *ast.A_Const:
		text := n.SqlString()
		return !n.Isnull && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r == '\\' })
	}
	return false
}
