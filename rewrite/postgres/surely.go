package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// Most functions fail for some values. Of these of the server's own it is known that they do not, whatever texts,
// numbers or arrays they are given: what has them is copied, and may be tested for a row that the server does not come
// to.

// total are such functions, and how many arguments they have, at least and at most.
var total = map[string][2]int{"lower": {1, 1}, "upper": {1, 1}, "initcap": {1, 1}, "char_length": {1, 1},
	"character_length": {1, 1}, "length": {1, 1}, "octet_length": {1, 1}, "btrim": {1, 2}, "ltrim": {1, 2},
	"rtrim": {1, 2}, "left": {2, 2}, "right": {2, 2}, "reverse": {1, 1}, "concat": {1, 100},
	"concat_ws": {2, 100}, "array_length": {2, 2}, "cardinality": {1, 1}, "now": {0, 0}}

// byCollation are those of them that ask for the collation of their argument. It may be that of two columns, which is
// an error for the first row, unless there is one column.
var byCollation = []string{"lower", "upper", "initcap"}

// surely reports whether a call is of such a function, for all that its arguments may be.
func (pl *planner) surely(n *ast.FuncCall) bool {
	names, args := nodes(n.Funcname), nodes(n.Args)
	name := lastName(n.Funcname)
	count, ok := total[name]
	if pl == nil || !ok || len(names) > 1 && !isString(names[:1], "pg_catalog") || len(names) > 2 ||
		len(args) < count[0] || len(args) > count[1] || n.Over != nil || n.AggFilter != nil || n.AggOrder != nil ||
		n.AggDistinct || n.AggStar || n.FuncVariadic || pl.functions(name) != NoFunction {
		return false
	}
	if !slices.Contains(byCollation, name) {
		return true
	}
	switch bare(args[0]).(type) {
	case *ast.ColumnRef, *ast.ParamRef, *ast.A_Const:
		return true
	}
	return false
}
