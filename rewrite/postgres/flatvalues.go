package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// An aggregate evaluates what it is given for each row that is grouped, and is computed with the groups if anything is
// asked of its value. So what the subqueries in that read is told by each row of the flat copy, in whose list they
// stand in the place of the aggregate.

// flatValue begins the names of such items.
const flatValue = "flat_value_"

// valued finds what aggregates of a grouping query are given, and its other items, where these have subqueries. It
// reports whether the server surely comes to all subqueries of the list.
func (g *flat) valued(f *flattening) bool {
	items := nodes(g.query.TargetList)
	at := f.places.queries[g.query]
	spans := f.st.cut(span{at.from + 1, at.listEnd + 1}, ",")
	if g.query.Op != ast.SETOP_NONE || g.query.DistinctClause != nil || len(spans) != len(items) || f.namesValues() {
		return false
	}
	for i, item := range items {
		if !hasSubquery(item) {
			continue
		}
		t, ok := item.(*ast.ResTarget)
		switch {
		case !ok || t.Name == "" || !f.asksFor(g.ref, t.Name):
			return false
		case g.given(f, bare(t.Val), spans[i]):
		default:
			g.computed = append(g.computed, i)
		}
	}
	return true
}

// given adds what an aggregate, which is all of an item, is given.
func (g *flat) given(f *flattening, n ast.Node, at span) bool {
	call, ok := n.(*ast.FuncCall)
	if !ok || call.Over != nil || call.AggOrder != nil || call.AggFilter != nil || call.AggWithinGroup || !functions[lastName(call.Funcname)] {
		return false
	}
	open := at.from
	for open < at.to && !f.st.mark(open, "(") {
		open++
	}
	to := f.st.closing(open)
	if to < 0 || to >= at.to {
		return false
	}
	in, s := span{open + 1, to}, seeker{planner: f.planner}
	if f.st.is(in.from, "ALL", "DISTINCT") {
		in.from++
	}
	parts := f.st.cut(in, ",")
	if s.matching(parts, nodes(call.Args)) == nil {
		return false
	}
	for i, part := range parts {
		if hasSubquery(nodes(call.Args)[i]) {
			g.values = append(g.values, part)
		}
	}
	return true
}

// namesValues reports whether the statement has such a name itself.
func (f *flattening) namesValues() bool {
	return strings.Contains(strings.ToLower(f.st.text), flatValue)
}

// asksFor reports whether the statement surely asks for a column: shows it, or an aggregate of it, or compares it.
func (f *flattening) asksFor(ref, column string) bool {
	is := func(n ast.Node) bool {
		of, ok := bare(n).(*ast.ColumnRef)
		if !ok {
			return false
		}
		names := fields(of)
		return slices.Equal(names, []string{ref, column}) || slices.Equal(names, []string{column})
	}
	for _, item := range nodes(f.tree.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return false
		}
		if all := star(item); all != nil && (len(fields(all)) == 1 || fields(all)[0] == ref) || is(t.Val) {
			return true
		}
		call, ok := bare(t.Val).(*ast.FuncCall)
		if ok && call.Over == nil && functions[lastName(call.Funcname)] && slices.ContainsFunc(nodes(call.Args), is) {
			return true
		}
	}
	for _, part := range flatten(bare(f.tree.WhereClause), ast.AND_EXPR) {
		e, ok := part.(*ast.A_Expr)
		if ok && e.Kind == ast.AEXPR_OP && slices.Contains(comparisons, lastName(e.Name)) &&
			(is(e.Lexpr) && isLiteral(e.Rexpr) || is(e.Rexpr) && isLiteral(e.Lexpr)) {
			return true
		}
	}
	return false
}

// isLiteral reports whether an expression is a number or a text.
func isLiteral(n ast.Node) bool {
	c, ok := bare(n).(*ast.A_Const)
	return ok && !c.Isnull
}

// valueItems are the items of a flat query's list that stand in the place of aggregates.
func (g *flat) valueItems(f *flattening) (items []func(*excerpt)) {
	for i, at := range g.values {
		items = append(items, func(x *excerpt) {
			x.take(f.st, at.from, at.to)
			x.add(" AS " + flatValue + strconv.Itoa(i+1))
		})
	}
	return items
}

// onlyValues reports whether all subqueries of a copy's list stand in such items.
func onlyValues(n *ast.SelectStmt) bool {
	return !slices.ContainsFunc(nodes(n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		return !ok || hasSubquery(t) && !strings.HasPrefix(t.Name, flatValue)
	})
}
