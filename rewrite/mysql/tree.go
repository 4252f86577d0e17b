package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// Programs ask for trees: a row with an array of those that belong to it, each with arrays of its own. Such arrays are
// subqueries in the select list of one. For each row of that one they are evaluated, if what shows the row surely asks
// for their values. So the rows that they read are those of a join, as of a subquery in its condition (ADR 62).

// A wanting says which columns of a query are asked for; nil: all are.
type wanting map[string]bool

// unwrapped returns the query that a subquery takes all rows of, by one in its FROM clause, and what it asks of that.
func unwrapped(n *ast.SelectStmt) (*ast.SelectStmt, wanting) {
	var asked wanting
	for {
		s := wrappedSource(n)
		if s == nil {
			return n, asked
		}
		named := make(map[string]bool)
		for _, f := range n.Fields.Fields {
			if f.WildCard != nil {
				named["*"] = true
			} else if asked == nil || asked["*"] || asked[fieldName(f)] {
				asksFor(f.Expr, named)
			}
		}
		n, asked = s.Source.(*ast.SelectStmt), named
	}
}

// unwrap has a subquery that is a value be the query that it takes all rows of, and returns what it asks of that.
func (at *link) unwrap() (asked wanting) {
	if at.isValue() && at.with == nil {
		at.query, asked = unwrapped(at.query)
	}
	return asked
}

// wrappedSource returns the query in a FROM clause of which another one takes all rows; nil where it does not.
func wrappedSource(n *ast.SelectStmt) *ast.TableSource {
	if n.Kind != ast.SelectStmtKindSelect || n.From == nil || n.Where != nil || n.GroupBy != nil || n.Having != nil ||
		n.Limit != nil || n.Distinct || n.With != nil || n.LockInfo != nil || n.TableHints != nil || n.SelectIntoOpt != nil ||
		len(n.WindowSpecs) > 0 || hasSubquery(n.Fields) || n.OrderBy != nil && hasSubquery(n.OrderBy) || inspectWrite(n.Fields).window {
		return nil
	}
	srcs := flatten(n.From.TableRefs)
	if len(srcs) != 1 || srcs[0].node.AsName.L == "" || srcs[0].node.Lateral || len(srcs[0].node.ColumnNames) > 0 {
		return nil
	}
	query, ok := srcs[0].node.Source.(*ast.SelectStmt)
	if a := aggregatesOf(n); !ok || a.extremes && !a.sums || query.Kind != ast.SelectStmtKindSelect || query.From == nil {
		return nil
	}
	return srcs[0].node
}

// fieldName is the name of an item of a select list; empty where the server chooses it.
func fieldName(f *ast.SelectField) string {
	if c, ok := f.Expr.(*ast.ColumnNameExpr); ok && f.AsName.L == "" {
		return c.Name.Name.L
	}
	return f.AsName.L
}

// shownWhole are functions and aggregates that evaluate all of their arguments for each row.
var shownWhole = set("json_object json_array json_arrayagg json_objectagg group_concat concat concat_ws")

// asksFor collects the columns whose values an expression surely asks for.
func asksFor(e ast.ExprNode, named map[string]bool) {
	switch e := evaluated(e).(type) {
	case *ast.ColumnNameExpr:
		named[e.Name.Name.L] = true
	case *ast.AggregateFuncExpr:
		if shownWhole[strings.ToLower(e.F)] {
			for _, a := range e.Args {
				asksFor(a, named)
			}
		}
	case *ast.FuncCallExpr:
		switch name := e.FnName.L; {
		case e.Schema.L != "":
		case name == "json_object" || name == "json_array":
			for _, a := range e.Args {
				asksFor(a, named)
			}
		case (name == "coalesce" || name == "ifnull") && len(e.Args) > 0:
			asksFor(e.Args[0], named)
		}
	}
}

// shownWithin collects the subqueries in the select list of one that are evaluated for each of its rows. It reports
// whether there are no others.
func shownWithin(n *ast.SelectStmt, asked wanting) (links []link, ok bool) {
	if !hasSubquery(n.Fields) {
		return nil, true
	}
	if n.GroupBy != nil || n.Having != nil || n.Distinct || n.Limit != nil || len(n.WindowSpecs) > 0 {
		return nil, false
	}
	a := aggregatesOf(n)
	for _, f := range n.Fields.Fields {
		var own []link
		switch {
		case f.Expr == nil || !hasSubquery(f.Expr):
			continue
		case asked != nil && !asked["*"] && (fieldName(f) == "" || !asked[fieldName(f)]):
			return nil, false
		case a.sums || a.extremes || a.distinct:
			if !aggregated(f.Expr, &own) {
				return nil, false
			}
		case !shownSubqueries(f.Expr, &own):
			return nil, false
		}
		links = append(links, own...)
	}
	return links, true
}

// aggregated collects the subqueries in the arguments of aggregates. It reports whether there are no others.
func aggregated(e ast.ExprNode, links *[]link) bool {
	switch e := evaluated(e).(type) {
	case *ast.AggregateFuncExpr:
		if !shownWhole[strings.ToLower(e.F)] || e.Order != nil && hasSubquery(e.Order) {
			break
		}
		return !slices.ContainsFunc(e.Args, func(a ast.ExprNode) bool { return !shownSubqueries(a, links) })
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) > 0 &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return aggregated(e.Args[0], links)
		}
	}
	return !hasSubquery(e)
}
