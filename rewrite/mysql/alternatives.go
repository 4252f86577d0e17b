package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// A row need not hang on a subquery behind OR. Whether it does is asked of a copy of the condition (ADR 62).

// An alternative is a subquery behind OR, and the condition under which a row does not hang on it.
type alternative struct {
	link
	decided []Piece
	// copies says that this condition has other subqueries, which run once more.
	copies bool
}

// hanging finds the subqueries of a condition: those on which each row hangs that meets it, and those on which it need
// not. at are the condition's tokens, none where they are not certain. It reports whether there are no others.
func (pl *planner) hanging(where ast.ExprNode, at span, b *block) (links []link, arms []alternative, ok bool) {
	for _, part := range pl.st.leaves(where, at) {
		var own []link
		if conjuncts(part.expr, &own) {
			links = append(links, own...)
			continue
		}
		found, ok := pl.alternatives(part.expr, part.at, b)
		if !ok {
			return nil, nil, false
		}
		arms = append(arms, found...)
	}
	return links, arms, true
}

// conditionOf returns the tokens of the condition of the statement's only query; none where they are not certain, or
// it has no tables.
func (pl *planner) conditionOf(n *ast.SelectStmt, b *block) span {
	if n != pl.alone || !pl.st.is(0, "SELECT") || len(b.srcs) == 0 {
		return span{}
	}
	at, ok := pl.clauseSpans(n, 0, pl.st.last()+1)
	if !ok || at.where < 0 {
		return span{}
	}
	return span{at.where + 1, at.end}
}

// alternatives finds the subqueries of a part of a condition, one, or several that are arms of ORs, on which a row need
// not hang. It does not hang on one if the part is true with NULL in its place and in those behind it: it is then true
// whatever they find. The server evaluates arms in the order of the text.
func (pl *planner) alternatives(part ast.ExprNode, at span, b *block) (found []alternative, ok bool) {
	var links []link
	l := listener{srcs: b.srcs, bodies: pl.nesting.bodies}
	if b.grouped || !pl.logic(part, &l, &links) || len(links) == 0 || len(links) > 1 && !areArms(part) {
		return nil, false
	}
	places := make([]span, len(links))
	for i := range links {
		if places[i], ok = pl.placeOf(&links[i], at); !ok || i < len(links)-1 && !pl.comparesSilently(&links[i], b) {
			return nil, false
		}
	}
	for i := range links {
		found = append(found, alternative{links[i], pl.nulled(at, places[i:]), i > 0})
	}
	return found, true
}

// comparesSilently reports whether the server surely does not warn of what a subquery is compared with: where that is
// run once more it would do so twice.
func (pl *planner) comparesSilently(at *link, b *block) bool {
	if at.exists {
		return true
	}
	if at.equal == nil || at.query.From == nil {
		return false
	}
	own := flatten(at.query.From.TableRefs)
	if !pl.baseSources(own) {
		return false
	}
	_, equal := equalTo(at, own, b.srcs)
	return equal
}

// placeOf returns the tokens of a subquery within those of a condition: from EXISTS on, or its parentheses.
func (pl *planner) placeOf(of *link, within span) (at span, ok bool) {
	if of.query == nil {
		return at, false
	}
	verb := pl.verbOf(of.query)
	if verb < 1 {
		return at, false
	}
	at = span{verb - 1, pl.st.group(verb-1) + 1}
	if of.exists {
		at.from--
	}
	return at, at.from >= within.from && at.to <= within.to && (!of.exists || pl.st.is(at.from, "EXISTS"))
}

// nulled returns the text of a condition with NULL in the place of some of its tokens.
func (pl *planner) nulled(at span, places []span) (pieces []Piece) {
	pos := at.from
	for _, p := range places {
		if p.from > pos {
			pieces = append(append(pieces, pl.copied(pos, p.from)...), text(" "))
		}
		pieces = append(pieces, text("(NULL)"))
		if pos = p.to; pos < at.to {
			pieces = append(pieces, text(" "))
		}
	}
	if pos < at.to {
		pieces = append(pieces, pl.copied(pos, at.to)...)
	}
	return pieces
}

// areArms reports whether a condition's subqueries are all arms of ORs: EXISTS and IN, or one of them behind NOT.
func areArms(e ast.ExprNode) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return areArms(e.Expr)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicOr {
			return areArms(e.L) && areArms(e.R)
		}
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			return isExistence(e.V) || !hasSubquery(e)
		}
	}
	return isExistence(e) || !hasSubquery(e)
}

// isExistence reports whether an expression is EXISTS, or IN, of a subquery, or what NOT makes of one.
func isExistence(e ast.ExprNode) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return isExistence(e.Expr)
	case *ast.ExistsSubqueryExpr:
		return true
	case *ast.PatternInExpr:
		return e.Sel != nil
	}
	return false
}

// lookIntoArms returns the columns that show what subqueries read on which a row need not hang.
func (pl *planner) lookIntoArms(arms []alternative, b *block, locks bool) (found []*besides, ok bool) {
	for i := range arms {
		columns, ok := pl.lookFrom(&arms[i].link, b, locks)
		if !ok {
			return nil, false
		}
		for _, c := range columns {
			if c.decided = arms[i].decided; c.whole {
				return nil, false // whether it ran for a row that is left out is not known
			}
		}
		found = append(found, columns...)
	}
	return found, true
}

// logic collects the subqueries of a condition of ANDs, ORs and NOTs. It reports whether all else in it may be
// evaluated once more.
func (pl *planner) logic(e ast.ExprNode, l *listener, links *[]link) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return pl.logic(e.Expr, l, links)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd || e.Op == opcode.LogicOr {
			return pl.logic(e.L, l, links) && pl.logic(e.R, l, links)
		}
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			from := len(*links)
			ok := pl.logic(e.V, l, links)
			for i := range (*links)[from:] {
				(*links)[from+i].matched = false
			}
			return ok
		}
	case *ast.ExistsSubqueryExpr:
		n, ok := subqueryOf(e.Sel)
		*links = append(*links, link{query: n, exists: true})
		return ok
	case *ast.PatternInExpr:
		if e.Sel != nil {
			_, column := e.Expr.(*ast.ColumnNameExpr)
			n, ok := subqueryOf(e.Sel)
			*links = append(*links, link{query: n, equal: e.Expr, matched: !e.Not})
			return ok && column && l.kind(e.Expr) != noisy
		}
	}
	var p pure
	e.Accept(&p)
	return !p.other && l.truth(e) && pl.copyParams(e, l)
}
