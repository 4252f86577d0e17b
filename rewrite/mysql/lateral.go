package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// A LATERAL query that aggregates and does not group has one row for each row of the tables before it. MySQL computes
// it for each of these, whether or not anything asks for its columns. So it reads what a subquery in the select list
// would, or, where a condition asks for what it computes, one in that condition (ADR 62).

// rowsOfLateral returns the columns that show what such a query reads beside the rows of a block.
func (pl *planner) rowsOfLateral(s *source, b *block) ([]*besides, bool) {
	_, hung := withoutLaterals(b.n.From.TableRefs, joinedBefore)
	if pl.session.Dialect != MySQL || !slices.Contains(hung, s.node) || merges(b.n.From.TableRefs) {
		return nil, false
	}
	q := s.node.Source.(*ast.SelectStmt)
	if !pl.namesOwn(q) {
		return nil, false
	}
	before := *b // it sees what stands before it
	before.srcs = b.srcs[:slices.Index(b.srcs, s)]
	return pl.look(&link{query: q, tree: true}, &before)
}

// namesOwn reports whether each name without a table in a query is one of its own tables' columns: it might be another
// table's elsewhere.
func (pl *planner) namesOwn(q *ast.SelectStmt) bool {
	rest, _ := withoutLaterals(q.From.TableRefs, joinedAnyway)
	own := flatten(rest)
	if !pl.baseSources(own) {
		return false
	}
	c := argumentTables{outside: true}
	q.Accept(&c)
	return !slices.ContainsFunc(c.unqualified, func(name string) bool {
		return !slices.ContainsFunc(own, func(s *source) bool { return s.table.ColumnInAnyCase(name) != nil })
	})
}

// withoutLaterals returns the joins of a FROM clause without the LATERAL queries that have one row for each row of what
// stands before them, and are joined so, and these.
func withoutLaterals(n *ast.Join, joined func(*ast.Join) bool) (rest *ast.Join, hung []*ast.TableSource) {
	if n == nil || n.Tp == ast.RightJoin {
		return n, nil
	}
	left, ok := n.Left.(*ast.Join)
	if ok {
		left, hung = withoutLaterals(left, joined)
	}
	last, is := n.Right.(*ast.TableSource)
	if is && joined(n) && isHung(last) {
		if hung = append(hung, last); ok {
			return left, hung
		}
		return &ast.Join{Left: n.Left}, hung
	}
	if len(hung) == 0 {
		return n, nil
	}
	kept := *n
	kept.Left = left
	return &kept, hung
}

// joinedAnyway reports whether a join has each row of its first side with one of the second, if that has one.
func joinedAnyway(n *ast.Join) bool {
	if n.NaturalJoin || len(n.Using) > 0 || n.StraightJoin {
		return false
	}
	if n.On == nil {
		return true
	}
	v, literal := n.On.Expr.(*test_driver.ValueExpr)
	return literal && v.Kind() == test_driver.KindInt64 && v.GetInt64() != 0
}

// joinedBefore reports whether the second side of a join is computed for each of its rows. That of a LEFT JOIN is not
// if the server finds that its condition holds for none: it does of x.n = 99999999999999, and not of one comparison by
// another operator.
func joinedBefore(n *ast.Join) bool {
	if joinedAnyway(n) || n.NaturalJoin || len(n.Using) > 0 || n.StraightJoin {
		return joinedAnyway(n)
	}
	return n.Tp == ast.CrossJoin || n.Tp == ast.LeftJoin && comparesOnce(n.On.Expr, n.Right.(*ast.TableSource).AsName.L)
}

// comparesOnce reports whether a condition is one such comparison, of a column of that table with a column or a
// literal.
func comparesOnce(e ast.ExprNode, table string) bool {
	for p, ok := e.(*ast.ParenthesesExpr); ok; p, ok = e.(*ast.ParenthesesExpr) {
		e = p.Expr
	}
	of, ok := e.(*ast.BinaryOperationExpr)
	if !ok {
		return false
	}
	switch of.Op {
	case opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
	default:
		return false
	}
	named := false
	for _, side := range []ast.ExprNode{of.L, of.R} {
		switch side := side.(type) {
		case *ast.ColumnNameExpr:
			named = named || side.Name.Table.L == table
		case *test_driver.ValueExpr:
			ok = ok && side.Kind() != test_driver.KindNull
		default:
			ok = false
		}
	}
	return ok && named
}

// isHung reports whether the second side of a join is a LATERAL query with one row.
func isHung(s *ast.TableSource) bool {
	q, ok := s.Source.(*ast.SelectStmt)
	if !ok || !s.Lateral || s.AsName.L == "" || len(s.ColumnNames) > 0 {
		return false
	}
	used := aggregatesOf(q)
	return q.Kind == ast.SelectStmtKindSelect && q.From != nil && (used.sums || used.extremes) && q.GroupBy == nil && q.Having == nil &&
		q.Limit == nil && !q.Distinct && !hasSubquery(q.Fields) && q.OrderBy == nil
}

// asksElsewhere reports whether a query asks for a column of a LATERAL one outside of its select list.
func asksElsewhere(n *ast.SelectStmt, s *ast.TableSource) bool {
	var names namedColumns
	for _, part := range []ast.Node{n.Where, n.GroupBy, n.Having, n.OrderBy} {
		if !missing(part) {
			part.Accept(&names)
		}
	}
	var conditions []ast.ExprNode
	ons(n.From.TableRefs, &conditions)
	for _, e := range conditions {
		e.Accept(&names)
	}
	shown := make(map[string]bool)
	for _, f := range s.Source.(*ast.SelectStmt).Fields.Fields {
		if f.WildCard != nil {
			return true
		}
		shown[fieldName(f)] = true
	}
	return shown[""] || slices.ContainsFunc(names.names, func(c *ast.ColumnName) bool {
		return strings.EqualFold(c.Table.O, s.AsName.O) || c.Table.L == "" && shown[c.Name.L]
	})
}

// hung returns a subquery without the LATERAL queries that are joined with its rows, links to these, and what has a
// copy of its FROM clause be without them.
func (pl *planner) hung(n *ast.SelectStmt) (rest *ast.SelectStmt, links []link, cuts []replacement, ok bool) {
	if n.From == nil {
		return n, nil, nil, true
	}
	joins, laterals := withoutLaterals(n.From.TableRefs, joinedAnyway)
	if len(laterals) == 0 {
		return n, nil, nil, true
	}
	kept := *n
	kept.From = &ast.TableRefsClause{TableRefs: joins}
	for _, s := range laterals {
		at, ok := pl.joinOf(s)
		if q := s.Source.(*ast.SelectStmt); !ok || n.Limit != nil || asksElsewhere(n, s) || !pl.namesOwn(q) {
			return nil, nil, nil, false
		}
		links = append(links, link{query: s.Source.(*ast.SelectStmt), tree: true})
		cuts = append(cuts, replacement{at: at})
	}
	return &kept, links, cuts, true
}

// joinOf finds a LATERAL query in the text, with the words that join it.
func (pl *planner) joinOf(s *ast.TableSource) (at span, ok bool) {
	st := pl.st
	open := pl.verbOf(s.Source.(*ast.SelectStmt)) - 1
	if open < 3 || !st.is(open-1, "LATERAL") {
		return at, false
	}
	from := open - 2
	switch {
	case st.mark(from, ","):
	case !st.is(from, "JOIN"):
		return at, false
	case st.is(from-1, "OUTER") && st.is(from-2, "LEFT"):
		from -= 2
	case st.is(from-1, "LEFT", "INNER", "CROSS"):
		from--
	}
	end := st.group(open) + 1
	if st.is(end, "AS") {
		end++
	}
	if end++; !st.isName(end-1, s.AsName.O) {
		return at, false
	}
	if st.is(end, "ON") {
		if end += 2; !st.is(end-1, "TRUE") && st.tok(end-1) != "1" {
			return at, false
		}
	}
	return span{from, end}, true
}
