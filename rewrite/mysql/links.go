package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// Links are the subqueries of an expression by what they mean for the row that it is evaluated for.

// A link is a subquery where it stands. Matched says that a row is left out unless the subquery finds one that is equal
// to this expression, or, where that is missing, any.
type link struct {
	query   *ast.SelectStmt
	equal   ast.ExprNode
	exists  bool
	matched bool
	with    ast.ExprNode // what the value of a scalar subquery behind OR is compared with
	set     bool         // something is compared with all its rows, until one decides
	// operands are columns in the same expression: where one is NULL, so is that.
	operands []*ast.ColumnName
	part     bool              // it is one of the queries of a set operation, which reads what each of them reads
	queries  []*ast.SelectStmt // those of a set operation; query is the first one
	tree     bool              // it may have subqueries in its select list, and be of a query in FROM
	chooses  bool              // that does not unite their rows: what was read is known where it gave an equal one
}

// hasSubquery reports whether an expression holds a subquery.
func hasSubquery(e ast.Node) bool {
	u := &usage{}
	e.Accept(u)
	return u.subquery
}

// subqueryOf returns the query that an expression is.
func subqueryOf(e ast.ExprNode) (*ast.SelectStmt, bool) {
	n, ok := queryOf(e).(*ast.SelectStmt)
	return n, ok
}

// queryOf returns the query, or set operation, that an expression is; nil for another expression.
func queryOf(e ast.ExprNode) ast.ResultSetNode {
	for {
		p, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			break
		}
		e = p.Expr
	}
	if s, ok := e.(*ast.SubqueryExpr); ok {
		return s.Query
	}
	return nil
}

// addTo adds links of this kind for a subquery, one for each query of a set operation. It reports whether it is one of
// these.
func (at link) addTo(links *[]link, e ast.ExprNode) bool {
	of, ok := at.to(e)
	*links = append(*links, of.each()...)
	return ok
}

// to returns a link of this kind to a subquery, or to a set operation of several.
func (at link) to(e ast.ExprNode) (link, bool) {
	if n, ok := subqueryOf(e); ok {
		at.query = n
		return at, true
	}
	queries, unites, ok := combined(e)
	if !ok || !unites && (!at.matched || at.equal == nil) {
		return at, false
	}
	at.query, at.queries, at.chooses = queries[0], queries, !unites
	return at, true
}

// each returns links to each of the queries.
func (at link) each() (all []link) {
	if at.queries == nil {
		return []link{at}
	}
	for _, n := range at.queries {
		one := at
		one.query, one.queries, one.part = n, nil, true
		all = append(all, one)
	}
	return all
}

// combined returns the queries of a subquery that is a set operation of them, with one kind of operator. If it does not
// unite their rows, a row that it gives is one that the first query has, and hangs on the equal ones of the others.
func combined(e ast.ExprNode) (queries []*ast.SelectStmt, unites, ok bool) {
	n, ok := queryOf(e).(*ast.SetOprStmt)
	if !ok || n.With != nil || n.SelectList == nil || n.SelectList.With != nil || n.Limit != nil || n.OrderBy != nil {
		return nil, false, false
	}
	kinds := make(map[ast.SetOprType]bool)
	for _, operand := range n.SelectList.Selects {
		query, after := onlyQuery(operand)
		if query == nil || query.Limit != nil || query.OrderBy != nil {
			return nil, false, false
		}
		if after != nil {
			kinds[*after&^1] = true // with ALL or without
		}
		queries = append(queries, query)
	}
	return queries, kinds[ast.Union], len(queries) > 1 && len(kinds) == 1
}

// shownSubqueries collects the subqueries of an item of the select list that are evaluated for each row. It reports
// whether there are no others.
func shownSubqueries(e ast.ExprNode, links *[]link) bool {
	if n, ok := subqueryOf(e); ok {
		*links = append(*links, link{query: n})
		return true
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return shownSubqueries(e.Expr, links)
	case *ast.FuncCastExpr:
		return shownSubqueries(e.Expr, links)
	case *ast.ExistsSubqueryExpr:
		return link{exists: true}.addTo(links, e.Sel)
	case *ast.UnaryOperationExpr:
		return shownSubqueries(e.V, links)
	case *ast.IsNullExpr:
		return shownSubqueries(e.Expr, links)
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) > 0 &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return shownSubqueries(e.Args[0], links)
		}
		if name := e.FnName.L; e.Schema.L == "" && (name == "json_object" || name == "json_array") {
			return !slices.ContainsFunc(e.Args, func(a ast.ExprNode) bool { return !shownSubqueries(a, links) })
		}
	}
	return !hasSubquery(e)
}

// conjuncts collects the subqueries of a condition whose parts are all true of a row that it lets pass. It reports
// whether the row hangs on all that there are.
func conjuncts(e ast.ExprNode, links *[]link) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return conjuncts(e.Expr, links)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			return conjuncts(e.L, links) && conjuncts(e.R, links)
		}
	case *ast.ExistsSubqueryExpr:
		return link{exists: true, matched: !e.Not}.addTo(links, e.Sel)
	case *ast.PatternInExpr:
		if e.Sel != nil && !e.Not {
			return link{equal: e.Expr, matched: true}.addTo(links, e.Sel) && compared(e.Expr, links)
		}
	}
	return compared(e, links)
}

// compared collects the subqueries of an expression that cannot be true unless they were evaluated. It reports whether
// there are no others.
func compared(e ast.ExprNode, links *[]link) bool {
	if n, ok := subqueryOf(e); ok {
		*links = append(*links, link{query: n})
		return true
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return compared(e.Expr, links)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.Plus, opcode.Minus, opcode.Mul,
			opcode.Div, opcode.Mod:
			return compared(e.L, links) && compared(e.R, links)
		}
	case *ast.UnaryOperationExpr:
		return compared(e.V, links)
	case *ast.ExistsSubqueryExpr:
		return link{exists: true}.addTo(links, e.Sel)
	case *ast.PatternInExpr:
		if e.Sel != nil {
			return link{set: true}.addTo(links, e.Sel) && compared(e.Expr, links)
		}
	case *ast.CompareSubqueryExpr:
		return link{set: true}.addTo(links, e.R) && compared(e.L, links)
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) > 0 &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return compared(e.Args[0], links)
		}
	}
	return !hasSubquery(e)
}

// A joinLink is a subquery in the condition of a join. Beside rows that lack one of a table, as an outer join has them,
// it is not known what it found; nil: each row meets the condition.
type joinLink struct {
	link
	beside *ast.TableSource
}

// joinLinks returns the subqueries in the conditions of joins. It reports whether the row hangs on all that there are.
func joinLinks(n ast.ResultSetNode) (links []joinLink, ok bool) {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return nil, true
		}
		left, ok1 := joinLinks(n.Left)
		right, ok2 := joinLinks(n.Right)
		if !ok1 || !ok2 {
			return nil, false
		}
		var optional ast.ResultSetNode
		own := right
		switch n.Tp {
		case ast.LeftJoin:
			optional = n.Right
		case ast.RightJoin:
			optional, own = n.Left, left
		}
		var found []link
		if n.On != nil && hasSubquery(n.On.Expr) && !conjuncts(n.On.Expr, &found) {
			return nil, false
		}
		for _, at := range found {
			own = append(own, joinLink{link: at})
		}
		if optional != nil && len(own) > 0 {
			there := surelyThere(optional)
			for i := range own {
				if own[i].beside == nil {
					own[i].beside, ok1 = there, ok1 && there != nil
				}
			}
		}
		if n.Tp == ast.RightJoin {
			return append(own, right...), ok1
		}
		return append(own, left...), ok1
	case *ast.TableSource:
		if inner, is := n.Source.(*ast.Join); is {
			return joinLinks(inner)
		}
	}
	return nil, true
}

// surelyThere returns a table of which each row of a join has one; nil where none is known.
func surelyThere(n ast.ResultSetNode) *ast.TableSource {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil || n.Right == nil {
			break
		}
		if n.Tp != ast.RightJoin {
			return surelyThere(n.Left)
		}
		return surelyThere(n.Right)
	case *ast.TableSource:
		if inner, is := n.Source.(*ast.Join); is {
			return surelyThere(inner)
		}
		return n
	}
	return nil
}

// nameAlike reports whether names in subqueries of joins mean the same in the block's select list, which sees more
// tables.
func (pl *planner) nameAlike(b *block, links []joinLink) bool {
	return !slices.ContainsFunc(links, func(at joinLink) bool {
		names, ok := pl.outerNames(at.query)
		return !ok || slices.ContainsFunc(names, func(name *ast.ColumnName) bool {
			_, _, one := b.srcs.owner(name)
			return name.Table.L == "" && !one
		})
	})
}
