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

// keyChanges is an expression that is true where the row may have had another key than the new row has. It is empty
// where the condition compares a column of the key with nothing, or with more than a value.
func (w *write) keyChanges(where ast.Node) string {
	key := w.target.table.Key
	values := make([]ast.Node, len(key))
	w.comparedKey(where, values)
	if len(key) == 0 || slices.Contains(values, nil) {
		return ""
	}
	var now, before []string
	coarse := ""
	for i, k := range key {
		column, value := w.target.columnOf(k), values[i].SqlString()
		now, before = append(now, column), append(before, value)
		if _, ok := values[i].(*ast.ParamRef); ok {
			coarse += " OR " + w.mayTakeForOne(k, column, value)
		}
	}
	return "(ROW(" + strings.Join(now, ", ") + ") IS DISTINCT FROM ROW(" + strings.Join(before, ", ") + ")" + coarse + ")"
}

// equalsAsItself are types of keys, and the oids of those whose values equal such a key, by the server's operators, if
// they are that key.
var equalsAsItself = map[string]string{
	"int2": "20,21,23,1700", "int4": "20,21,23,1700", "int8": "20,21,23,1700", "text": "25,1043", "varchar": "25,1043",
}

// mayTakeForOne is an expression that is true unless a parameter has a type in which no two keys are equal: as bpchar
// 'a' is 'a ', and as float8 two integers may be one.
func (w *write) mayTakeForOne(key, column, parameter string) string {
	typeOf := "pg_catalog.pg_typeof(" + parameter + ")"
	other := typeOf + " OPERATOR(pg_catalog.<>) pg_catalog.pg_typeof(" + column + ")"
	c := w.target.table.Column(key)
	if c == nil || equalsAsItself[c.Type] == "" {
		return other
	}
	return typeOf + "::pg_catalog.oid OPERATOR(pg_catalog.<>) ALL ('{" + equalsAsItself[c.Type] + "}'::pg_catalog.oid[])"
}

// comparedKey sets those of the values that a condition asks for, or a part of it that AND joins.
func (w *write) comparedKey(condition ast.Node, values []ast.Node) {
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
			if at < 0 || len(names) > 2 || len(names) == 2 && names[0] != w.target.ref {
				continue
			}
			if _, literal := bare(side[1]).(*ast.A_Const); literal {
				w.plan.ofLiterals = true // whether it is a value hangs on how it is written
			}
			if isValue(side[1]) {
				values[at] = bare(side[1])
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
