package mysql

import (
	"slices"

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
	// shown says that it stands in the select list, and runs for no row that is left out.
	shown bool
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
	if n != pl.alone || !pl.st.is(0, "SELECT", "WITH") || len(b.srcs) == 0 {
		return span{}
	}
	return pl.whereOf(n)
}

// alternatives finds the subqueries of a part of a condition, one, or several that are arms of ORs, on which a row need
// not hang. It does not hang on one if the part is true with NULL in its place and in those behind it: it is then true
// whatever they find. The server evaluates arms in the order of the text. Where the last arm has several subqueries
// that must all let it be true, they are one thing. In an arm before, it does not hang on one if what AND joins before
// that does not hold, or what has no subquery.
func (pl *planner) alternatives(part ast.ExprNode, at span, b *block) (found []alternative, ok bool) {
	var links []link
	l := listener{srcs: b.srcs, bodies: pl.nesting.bodies}
	if b.grouped && !b.nests || !pl.logic(part, &l, &links) || len(links) == 0 {
		return nil, false
	}
	last, ok := lastArm(part, len(links))
	if !ok {
		return nil, false
	}
	needs, ok := pl.st.needs(part, at, last)
	if !ok {
		return nil, false
	}
	places := make([]span, len(links))
	for i := range links {
		each := links[i].each()
		if links[i].chooses && (i < last || !links[i].matched) {
			return nil, false
		}
		if places[i], ok = pl.placeOf(&links[i], at); !ok || i < last && slices.ContainsFunc(each, func(of link) bool {
			return !pl.comparesSilently(&of, b)
		}) {
			return nil, false
		}
	}
	for i := range links {
		from, need := last, need{}
		if i < last {
			from, need = needs[i].first, needs[i]
		}
		again, ok := pl.asDerived(links[:from])
		within, fine := pl.asDerived(links[from:max(i, from)])
		if !ok || !fine {
			return nil, false
		}
		for _, p := range places[from:] {
			again = append(again, replacement{p, []Piece{text("(NULL)")}})
		}
		decided := pl.replaced(at, again)
		if len(need.conjuncts) > 0 {
			decided = pl.unneeded(decided, need.conjuncts, within)
		}
		for _, of := range links[i].each() {
			found = append(found, alternative{link: of, decided: decided, copies: from > 0 || i > from && i < last})
		}
	}
	return found, true
}

// unneeded returns the condition that a row does not hang on a subquery, since other arms decide, or since one of the
// conditions that AND joins with it, whose tokens these are, does not hold.
func (pl *planner) unneeded(decided []Piece, conjuncts []span, by []replacement) []Piece {
	pieces := slices.Concat([]Piece{text("(")}, decided, []Piece{text(") IS TRUE OR (")})
	for i, at := range conjuncts {
		if i > 0 {
			pieces = append(pieces, text(" AND "))
		}
		own := slices.DeleteFunc(slices.Clone(by), func(r replacement) bool { return r.at.from < at.from || r.at.to > at.to })
		pieces = slices.Concat(pieces, []Piece{text("(")}, pl.replaced(at, own), []Piece{text(")")})
	}
	return append(pieces, text(") IS NOT TRUE"))
}

// asDerived returns what has the scalar subqueries among some read their tables in a query in FROM. MySQL takes a
// column for one that may be NULL if a subquery that aggregates names it, and not if it stands in such a query.
func (pl *planner) asDerived(links []link) (all []replacement, ok bool) {
	if pl.session.Dialect != MySQL {
		return nil, true
	}
	for _, at := range links {
		if at.with == nil {
			continue
		}
		verb := pl.verbOf(at.query)
		end := pl.st.group(verb - 1)
		read, ok := pl.clauseSpans(at.query, verb, end)
		own := flatten(at.query.From.TableRefs)
		if !ok || len(own) != 1 || !pl.baseSources(own) || pl.checkSpelling(own[0].name) != nil {
			return nil, false
		}
		name := quoted(own[0].name)
		all = append(all, replacement{span{read.from, read.from}, []Piece{text("FROM (SELECT " + name + ".*")}},
			replacement{span{read.end, read.end}, []Piece{text(") AS " + name)}})
	}
	return all, true
}

// comparesSilently reports whether the server surely does not warn of what a subquery is compared with, and takes one
// value of it at most: where it is run once more the server would warn twice, or might fail.
func (pl *planner) comparesSilently(at *link, b *block) bool {
	if at.exists {
		return true
	}
	if at.query.From == nil {
		return false
	}
	own := flatten(at.query.From.TableRefs)
	if !pl.baseSources(own) {
		return false
	}
	if at.with != nil {
		l := listener{srcs: append(slices.Clone(own), b.srcs...)}
		fields := at.query.Fields.Fields
		return len(own) == 1 && at.query.GroupBy == nil && readsAll(at.query, own[0]) &&
			len(fields) == 1 && fields[0].Expr != nil && l.alike(fields[0].Expr, at.with)
	}
	if at.equal == nil {
		return false
	}
	_, equal := pl.equalTo(at, own, b.srcs)
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
	if of.queries != nil && pl.st.is(at.to, "UNION", "INTERSECT", "EXCEPT") && pl.st.mark(at.from-1, "(") {
		// Its first query stands in parentheses of its own.
		at = span{at.from - 1, pl.st.group(at.from-1) + 1}
	}
	if of.exists {
		at.from--
	} else if _, row := of.equal.(*ast.RowExpr); row { // NULL cannot stand where a row is compared
		at.from = pl.st.rowBefore(at.from)
	}
	return at, at.from >= within.from && at.to <= within.to && (!of.exists || pl.st.is(at.from, "EXISTS"))
}

// rowBefore returns the first token of the row of columns before IN, whose parenthesis is a token; -1 where it is not
// found.
func (st *statement) rowBefore(open int) int {
	end := open - 1
	if end < 0 || !st.is(end, "IN") {
		return -1
	}
	if end--; end > 0 && st.is(end, "NOT") {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if st.mark(i, "(") && st.group(i) == end {
			if i > 0 && st.is(i-1, "ROW") {
				i--
			}
			return i
		}
	}
	return -1
}

// again reports whether what stands before IN, a value or a row of columns, may be evaluated once more.
func (pl *planner) again(e ast.ExprNode, l *listener) bool {
	all := []ast.ExprNode{e}
	if row, ok := e.(*ast.RowExpr); ok {
		all = row.Values
	}
	return !slices.ContainsFunc(all, func(e ast.ExprNode) bool {
		var p pure
		e.Accept(&p)
		return p.other || l.kind(e) == noisy || !pl.copyParams(e, l)
	})
}

// A replacement is what stands in a copy in the place of some tokens, before one where there are none.
type replacement struct {
	at     span
	pieces []Piece
}

// replaced returns the text of a condition with other pieces in the place of some of its tokens.
func (pl *planner) replaced(at span, by []replacement) (pieces []Piece) {
	pos := at.from
	for _, r := range by {
		if r.at.from > pos {
			pieces = append(append(pieces, pl.copied(pos, r.at.from)...), text(" "))
		}
		pieces = append(pieces, r.pieces...)
		if pos = r.at.to; pos < at.to {
			pieces = append(pieces, text(" "))
		}
	}
	if pos < at.to {
		pieces = append(pieces, pl.copied(pos, at.to)...)
	}
	return pieces
}

// lastArm returns the first of the subqueries, of which there are so many, that stand in the last arm which has any. It
// reports whether no arm has ORs of some within what AND joins.
func lastArm(part ast.ExprNode, subqueries int) (first int, ok bool) {
	if subqueries == 1 {
		return 0, true
	}
	for _, a := range armsOf(part, false) {
		switch {
		case a.subqueries == 0:
			continue
		case a.mixed:
			return 0, false
		}
		if first += a.subqueries; first == subqueries {
			return first - a.subqueries, true
		}
	}
	return 0, false
}

// A need is what must hold that the server comes to a subquery: conditions that AND joins with it, whose tokens these
// are. First is the number of its arm's first subquery.
type need struct {
	first     int
	conjuncts []span
}

// needs returns what must hold for each subquery of a part of a condition, but for those of the last arm, which begin
// with that number.
func (st *statement) needs(part ast.ExprNode, at span, last int) (all []need, ok bool) {
	if last == 0 {
		return nil, true
	}
	for _, arm := range st.armTexts(part, at) {
		first, conjuncts := len(all), st.leaves(arm.expr, arm.at)
		for i, own := range conjuncts {
			count := 0
			for _, a := range armsOf(own.expr, false) {
				count += a.subqueries
			}
			if count == 0 || first >= last {
				continue
			}
			if count > 1 {
				return nil, false
			}
			n := need{first: first}
			for j, other := range conjuncts {
				if j < i || j > i && !hasSubquery(other.expr) {
					n.conjuncts = append(n.conjuncts, other.at)
				}
			}
			if slices.ContainsFunc(n.conjuncts, span.empty) {
				return nil, false
			}
			all = append(all, n)
		}
	}
	return all, len(all) == last
}

// armTexts returns the arms of a condition's ORs, and their tokens; none where they are not certain.
func (st *statement) armTexts(e ast.ExprNode, at span) []leaf {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		if !at.empty() && st.group(at.from) == at.to-1 {
			return st.armTexts(e.Expr, span{at.from + 1, at.to - 1})
		}
	case *ast.BinaryOperationExpr:
		if e.Op != opcode.LogicOr {
			break
		}
		arms, texts := operandsBy(e, opcode.LogicOr), st.between(at, "OR", "||")
		var all []leaf
		for i, arm := range arms {
			var of span
			if len(texts) == len(arms) {
				of = texts[i]
			}
			all = append(all, st.armTexts(arm, of)...)
		}
		return all
	}
	return []leaf{{e, at}}
}

// An orArm is an arm of a condition's ORs. Mixed says that AND joins it of several conditions, and that ORs with
// subqueries are among these.
type orArm struct {
	subqueries int
	mixed      bool
}

// armsOf returns the arms of a condition's ORs, or of what stands behind NOT: NOT (a AND b) is NOT a OR NOT b.
func armsOf(e ast.ExprNode, negated bool) []orArm {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return armsOf(e.Expr, negated)
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			return armsOf(e.V, !negated)
		}
	case *ast.BinaryOperationExpr:
		if e.Op != opcode.LogicAnd && e.Op != opcode.LogicOr {
			break
		}
		left, right := armsOf(e.L, negated), armsOf(e.R, negated)
		if (e.Op == opcode.LogicOr) != negated {
			return append(left, right...)
		}
		var all orArm
		for _, side := range [][]orArm{left, right} {
			for _, a := range side {
				all.subqueries += a.subqueries
				all.mixed = all.mixed || a.mixed || a.subqueries > 0 && len(side) > 1
			}
		}
		return []orArm{all}
	}
	if hasSubquery(e) {
		return []orArm{{subqueries: 1}}
	}
	return []orArm{{}}
}

// lookIntoArms returns the columns that show what subqueries read on which a row need not hang.
func (pl *planner) lookIntoArms(arms []alternative, b *block, locks bool) (found []*besides, ok bool) {
	for i := range arms {
		columns, ok := pl.lookFrom(&arms[i].link, b, locks)
		if !ok {
			return nil, false
		}
		for _, c := range columns {
			switch c.decided = arms[i].decided; {
			case !c.whole:
			case arms[i].shown:
				c.whole = false
			case b.grouped:
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
		if at, ok := comparedScalar(e); ok {
			var p pure
			at.with.Accept(&p)
			*links = append(*links, at)
			return !p.other && l.kind(at.with) != noisy && pl.copyParams(at.with, l)
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
		at, ok := link{exists: true}.to(e.Sel)
		*links = append(*links, at)
		return ok
	case *ast.PatternInExpr:
		if e.Sel != nil {
			at, ok := link{equal: e.Expr, matched: !e.Not}.to(e.Sel)
			*links = append(*links, at)
			return ok && pl.again(e.Expr, l)
		}
	}
	var p pure
	e.Accept(&p)
	return !p.other && l.truth(e) && pl.copyParams(e, l)
}

// comparedScalar returns the subquery that a comparison is one of, with something that holds none: it is NULL, and so
// is what NOT makes of it, with NULL in the subquery's place.
func comparedScalar(e *ast.BinaryOperationExpr) (at link, ok bool) {
	switch e.Op {
	case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
	default:
		return at, false
	}
	for _, of := range [][2]ast.ExprNode{{e.L, e.R}, {e.R, e.L}} {
		if n, is := subqueryOf(of[0]); is && !hasSubquery(of[1]) {
			return link{query: n, with: of[1]}, true
		}
	}
	return at, false
}
