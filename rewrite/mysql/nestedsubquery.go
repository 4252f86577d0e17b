package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// A subquery within a subquery, EXISTS or IN in a condition that each row of that one meets, reads rows for each of its
// rows. An array in the elements of another is cut at group_concat_max_len (ADR 62). But all rows that it reads are
// those of a join: of the tables of both, by the conditions of both. So they are one array.

// lookWithin returns the columns that show what the subqueries of a subquery read, which has these tables and this
// text.
func (pl *planner) lookWithin(n *ast.SelectStmt, links []link, srcs sources, query clauses, b *block, whole bool) (
	found []*besides, ok bool) {
	for i := range links {
		at := &links[i]
		asked := at.unwrap()
		rest, hung, cuts, ok := pl.hung(at.query)
		if !ok {
			return nil, false
		}
		at.query = rest
		inner, own, ok := pl.nested(at, srcs, b, cuts)
		if !ok || !apart(n, at, own, srcs) {
			return nil, false
		}
		if at.with != nil && pl.session.Dialect == MySQL && refersTo(at.query, slices.Concat(own, srcs), b.srcs) {
			return nil, false // it says of the column that is named that it may be NULL
		}
		test, equal := "", false
		if at.equal != nil {
			if test, equal = pl.equalTo(at, own, srcs); !equal {
				return nil, false
			}
		} else if !refersTo(at.query, own, srcs) {
			return nil, false // whether it ran hangs on rows that are not shown
		}
		if equal {
			inner = joined(inner, test)
		}
		both := query.and(inner)
		for _, s := range own {
			found = append(found, &besides{of: s, node: n, query: both.pieces(), whole: whole})
		}
		deeper, ok := pl.listedWithin(at, asked, hung, slices.Concat(own, srcs), both, b, whole)
		if !ok {
			return nil, false
		}
		found = append(found, deeper...)
	}
	return found, true
}

// listedWithin returns the columns that show what the subqueries in the select list of one within another read, and the
// LATERAL queries that are joined with its rows.
func (pl *planner) listedWithin(at *link, asked wanting, hung []link, srcs sources, query clauses, b *block, whole bool) (
	[]*besides, bool) {
	if !hasSubquery(at.query.Fields) {
		return pl.lookWithin(at.query, hung, srcs, query, b, whole)
	}
	links, ok := shownWithin(at.query, asked)
	if !ok || !at.isValue() || at.with != nil {
		return nil, false
	}
	return pl.lookWithin(at.query, append(links, hung...), srcs, query, b, whole)
}

// nested returns the text of a subquery within one that has these tables, without what is cut out, and its own tables.
func (pl *planner) nested(at *link, around sources, b *block, cuts []replacement) (c clauses, own sources, ok bool) {
	m := at.query
	if m == nil || !plainQuery(at) || merges(m.From.TableRefs) || m.GroupBy != nil || m.Having != nil {
		return c, nil, false
	}
	own = flatten(m.From.TableRefs)
	if !pl.baseSources(own) || slices.ContainsFunc(own, func(s *source) bool {
		return around.named(s.name) != nil || b.srcs.named(s.name) != nil
	}) {
		return c, nil, false
	}
	if at.picks() && !(len(own) == 1 && pinned(m, own[0]) && pl.copyOne(m)) {
		return c, nil, false
	}
	c, ok = pl.cutOut(m, cuts)
	return c, own, ok && pl.harmless(m, slices.Concat(own, around, b.srcs))
}

// apart reports whether no name without a table means another column where the tables of a subquery stand beside those
// of the one within it.
func apart(n *ast.SelectStmt, at *link, own, around sources) bool {
	has := func(srcs sources, name string) bool {
		return slices.ContainsFunc(srcs, func(s *source) bool { return s.table.ColumnInAnyCase(name) != nil })
	}
	var all, inner argumentTables
	n.Accept(&all)
	at.query.Accept(&inner)
	return !slices.ContainsFunc(all.unqualified, func(name string) bool {
		return has(own, name) && (has(around, name) || !slices.Contains(inner.unqualified, name))
	})
}

// and has the tables and conditions of two queries be those of one.
func (c clauses) and(other clauses) clauses {
	from := slices.Concat([]Piece{text("FROM (")}, c.tables(), []Piece{text("), (")}, other.tables(), []Piece{text(")")})
	switch {
	case c.where == nil:
		return clauses{from, other.where}
	case other.where == nil:
		return clauses{from, c.where}
	}
	return clauses{from, slices.Concat([]Piece{text("(")}, c.where, []Piece{text(") AND (")}, other.where,
		[]Piece{text(")")})}
}

// tables returns the FROM clause without its first word.
func (c clauses) tables() []Piece {
	tables := slices.Clone(c.from)
	tables[0].Text = tables[0].Text[len("FROM"):]
	return tables
}

// parts collects the parts of a condition that AND joins.
func parts(e ast.ExprNode, all []ast.ExprNode) []ast.ExprNode {
	switch of := e.(type) {
	case nil:
		return all
	case *ast.ParenthesesExpr:
		return parts(of.Expr, all)
	case *ast.BinaryOperationExpr:
		if of.Op == opcode.LogicAnd {
			return parts(of.R, parts(of.L, all))
		}
	}
	return append(all, e)
}

// existence returns the subquery that a part of a condition is: EXISTS, or a column IN one that needs no conversion.
func existence(e ast.ExprNode) (at link, ok bool) {
	switch e := e.(type) {
	case *ast.ExistsSubqueryExpr:
		n, ok := subqueryOf(e.Sel)
		return link{query: n, exists: true, matched: !e.Not}, ok
	case *ast.PatternInExpr:
		if _, column := e.Expr.(*ast.ColumnNameExpr); e.Sel != nil && !e.Not && column {
			n, ok := subqueryOf(e.Sel)
			return link{query: n, equal: e.Expr, matched: true}, ok
		}
	}
	return at, false
}
