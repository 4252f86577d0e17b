package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// LIKE fails where it comes to the end of a pattern that ends with a backslash, which escapes nothing there (22025). A
// pattern in the text shows how it ends. One that is a parameter may end so: a copy of what has it asks for that first,
// and reads nothing if it does.

// likes are the operators of LIKE and ILIKE, and of what NOT makes of them.
var likes = []string{"~~", "!~~", "~~*", "!~~*"}

// patternMayFail reports whether an expression of LIKE may fail by how its pattern ends.
func patternMayFail(n *ast.A_Expr) bool {
	return slices.ContainsFunc(operatorOf(n), func(name string) bool { return slices.Contains(likes, name) }) &&
		!endsWell(n.Rexpr, n.Kind == ast.AEXPR_OP_ANY || n.Kind == ast.AEXPR_OP_ALL)
}

// endsWell reports whether a pattern surely does not end with a backslash. An array that is a string has patterns
// within.
func endsWell(pattern ast.Node, several bool) bool {
	switch n := bare(pattern).(type) {
	case *ast.TypeCast:
		return endsWell(n.Arg, several)
	case *ast.CollateClause:
		return endsWell(n.Arg, several)
	case *ast.ArrayExpr:
		return !slices.ContainsFunc(nodes(n.Elements), func(e ast.Node) bool { return !endsWell(e, false) })
	case *ast.A_Const:
		s, ok := n.Val.(*ast.String)
		return !ok || !strings.HasSuffix(s.SVal, `\`) && !(several && strings.Contains(s.SVal, `\`))
	}
	return false
}

// A gate is a parameter that is the pattern of a LIKE in a subquery, or the LIMIT of a query that reads all unless that
// is 0.
type gate struct {
	param int
	limit bool
}

// text is the condition that the parameter does not end with a backslash, or is not 0. It hangs on no row, so the
// server asks for it before it reads any: a One-Time Filter. It stands behind the client's text, which says the
// parameter's type.
func (g gate) text() string {
	param := "$" + strconv.Itoa(g.param)
	if g.limit {
		return "COALESCE(" + param + "::pg_catalog.int8 OPERATOR(pg_catalog.>) 0, true)"
	}
	return "COALESCE(pg_catalog.right(" + param + "::pg_catalog.text, 1) OPERATOR(pg_catalog.<>) pg_catalog.chr(92), true)"
}

// gated reports whether a condition fails for no row if parameters in it do not end with a backslash, which it adds to
// the gates of the subquery. What they are patterns for is a column of texts among relations.
func (l *looker) gated(q *subquery, condition ast.Node, rels []*relation) bool {
	own := *l.planner
	own.patterns = func(n *ast.A_Expr) bool {
		pattern := n.Rexpr
		if cased := own.cased(pattern); cased != nil {
			pattern = cased // it ends as that does
		}
		param, ok := bare(pattern).(*ast.ParamRef)
		if !ok || n.Kind != ast.AEXPR_LIKE && n.Kind != ast.AEXPR_ILIKE || !own.ofText(n.Lexpr, rels) {
			return false
		}
		q.gates = append(q.gates, gate{param: param.Number})
		return true
	}
	return !own.failing(false, condition)
}

// ofText reports whether an expression is a column of texts of one of the relations, perhaps in upper or lower case.
func (pl *planner) ofText(n ast.Node, rels []*relation) bool {
	if cased := pl.cased(n); cased != nil {
		n = cased
	}
	ref, ok := bare(n).(*ast.ColumnRef)
	return ok && typesAre(ref, rels, func(c Column) bool { return slices.Contains([]string{"text", "varchar", "bpchar"}, c.Type) })
}

// typesAre reports whether a name is of a column of tables among relations, and each that it may be of is such.
func typesAre(ref *ast.ColumnRef, rels []*relation, such func(Column) bool) (found bool) {
	names := fields(ref)
	name := names[len(names)-1]
	for _, rel := range rels {
		switch {
		case len(names) == 2 && names[0] != rel.ref, len(names) > 2, !rel.has(name):
			continue
		case rel.base == nil:
			return false
		}
		i := slices.Index(rel.base.names, name)
		if i < 0 || !such(rel.base.table.Columns[i]) {
			return false
		}
		found = true
	}
	return found
}

// cased returns what is made upper or lower case by an expression; nil where it is another.
func (pl *planner) cased(n ast.Node) ast.Node {
	call, ok := bare(n).(*ast.FuncCall)
	if !ok || !pl.surely(call) || !slices.Contains([]string{"lower", "upper"}, lastName(call.Funcname)) {
		return nil
	}
	return call.Args.Items[0]
}

// gate spells the condition of the subquery's gates.
func (q *subquery) gate() string {
	var all []string
	for _, g := range q.gates {
		all = append(all, g.text())
	}
	return strings.Join(all, " AND ")
}
