package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// A subquery in a branch of CASE or IF, or the last argument of COALESCE, is evaluated for the rows that come to it.
// The same conditions, as the client wrote them, tell which these are (ADR 62).

// branches finds the subqueries of an item of the select list that is such an expression. It reports whether there are
// no others, and whether all conditions before them may be evaluated once more.
func (pl *planner) branches(f *ast.SelectField, it item, b *block) (found []alternative, ok bool) {
	br := &branching{pl: pl, b: b, l: &listener{srcs: b.srcs, bodies: pl.nesting.bodies}}
	switch e := evaluated(f.Expr).(type) {
	case *ast.BinaryOperationExpr:
		ok = br.ofOperands(e)
	case *ast.CaseExpr:
		it.first = pl.st.find(it.first, it.last+1, -1, "CASE")
		ok = it.first >= 0 && br.ofCase(e, it)
	case *ast.FuncCallExpr:
		for it.first <= it.last && !(pl.st.is(it.first, strings.ToUpper(e.FnName.L)) && pl.st.mark(it.first+1, "(")) {
			it.first++
		}
		ok = it.first <= it.last && br.ofCall(e, it)
	}
	return br.found, ok
}

// evaluated returns the part of an expression that has all its subqueries, where the server surely evaluates it. What
// stands before it in the text are literals, and names of functions of which it is the first argument.
func evaluated(e ast.ExprNode) ast.ExprNode {
	for {
		switch of := e.(type) {
		case *ast.ParenthesesExpr:
			e = of.Expr
			continue
		case *ast.FuncCastExpr:
			e = of.Expr
			continue
		case *ast.BinaryOperationExpr:
			_, literal := of.L.(*test_driver.ValueExpr)
			switch {
			case !strictly[of.Op]:
			case !hasSubquery(of.R):
				e = of.L
				continue
			case literal && of.L.(*test_driver.ValueExpr).Kind() != test_driver.KindNull:
				e = of.R
				continue
			}
		case *ast.FuncCallExpr:
			if of.Schema.L == "" && len(of.Args) > 0 && evaluatesFirst[of.FnName.L] &&
				!slices.ContainsFunc(of.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
				e = of.Args[0]
				continue
			}
		}
		return e
	}
}

// strictly are the operators whose second operand is evaluated where the first is not NULL.
var strictly = map[opcode.Op]bool{opcode.Plus: true, opcode.Minus: true, opcode.Mul: true, opcode.Div: true, opcode.IntDiv: true,
	opcode.Mod: true, opcode.EQ: true, opcode.NE: true, opcode.LT: true, opcode.LE: true, opcode.GT: true, opcode.GE: true}

// A branching collects the subqueries of branches.
type branching struct {
	pl    *planner
	b     *block
	l     *listener
	found []alternative
}

// add takes the subqueries of a branch, which no row hangs on for which a condition holds.
func (br *branching) add(e ast.ExprNode, decided []Piece) bool {
	return br.take(e, alternative{decided: decided, shown: true})
}

// take takes the subqueries of an expression as such alternatives.
func (br *branching) take(e ast.ExprNode, as alternative) bool {
	var links []link
	if e == nil || !hasSubquery(e) {
		return true
	}
	ok := shownSubqueries(evaluated(e), &links)
	for _, at := range links {
		as.link = at
		br.found = append(br.found, as)
	}
	return ok
}

// ofOperands takes those of the second operand of an operator whose first one is a column: where that is NULL, so is
// all of it, and the server need not look at the other one.
func (br *branching) ofOperands(e *ast.BinaryOperationExpr) bool {
	name, ok := e.L.(*ast.ColumnNameExpr)
	if !ok || !strictly[e.Op] {
		return false
	}
	c, as, ok := br.b.srcs.owner(name.Name)
	if !ok || c.Generated || br.pl.checkSpelling(as, c.Name) != nil {
		return false
	}
	if c.NotNull && !br.optional(as) {
		return br.take(e.R, alternative{})
	}
	return br.take(e.R, alternative{decided: []Piece{text(br.pl.spelled(as, c, br.b.srcs) + " IS NULL")}})
}

// optional reports whether rows of a source may be missing.
func (br *branching) optional(name string) bool {
	s := br.b.srcs.named(name)
	return s == nil || s.outer || br.pl.nesting.optional
}

// repeatable reports whether an expression may be evaluated once more.
func (br *branching) repeatable(e ast.ExprNode) bool {
	var p pure
	e.Accept(&p)
	return !p.other && br.l.kind(e) != noisy && br.pl.copyParams(e, br.l)
}

// ofCase takes those of CASE: the row hangs on what stands behind its first WHEN that holds.
func (br *branching) ofCase(e *ast.CaseExpr, it item) bool {
	st := br.pl.st
	whens, ends := st.caseParts(it.first)
	if len(whens) != len(e.WhenClauses) || len(ends) != len(whens) {
		return false
	}
	if e.Value != nil && !br.repeatable(e.Value) {
		return false
	}
	before := br.pl.copied(it.first, whens[0])
	for i, w := range e.WhenClauses {
		test := w.Expr
		if e.Value != nil {
			test = &ast.BinaryOperationExpr{Op: opcode.EQ, L: e.Value, R: w.Expr}
		}
		if i == 0 && hasSubquery(test) {
			return br.ofFirstTest(test) && !subqueriesBehindFirstTest(e)
		}
		if hasSubquery(test) || !br.repeatable(test) || !br.l.truth(test) {
			return false
		}
		before = append(append(before, text(" ")), br.pl.copied(whens[i], ends[i])...)
		if !br.add(w.Result, append(before[:len(before):len(before)], text(" THEN 0 ELSE 1 END"))) {
			return false
		}
		before = append(before, text(" THEN 1"))
	}
	return br.add(e.ElseClause, append(before[:len(before):len(before)], text(" ELSE 0 END")))
}

// ofFirstTest takes those of the first condition of a CASE, which is evaluated for each row.
func (br *branching) ofFirstTest(e ast.ExprNode) bool {
	e = evaluated(e)
	if of, ok := e.(*ast.BinaryOperationExpr); ok && !hasSubquery(of.L) {
		return br.ofOperands(of)
	}
	return br.take(e, alternative{})
}

// subqueriesBehindFirstTest reports whether a CASE has subqueries in other places than its first condition.
func subqueriesBehindFirstTest(e *ast.CaseExpr) bool {
	for i, w := range e.WhenClauses {
		if hasSubquery(w.Result) || i > 0 && hasSubquery(w.Expr) {
			return true
		}
	}
	return e.ElseClause != nil && hasSubquery(e.ElseClause)
}

// caseParts finds the WHENs of the CASE at a token, and the THENs that end their conditions; none where it is no CASE.
func (st *statement) caseParts(at int) (whens, thens []int) {
	if !st.is(at, "CASE") {
		return nil, nil
	}
	nested := 0
	for i := at + 1; i < len(st.Tokens) && st.Tokens[i].Depth >= st.Tokens[at].Depth; i++ {
		switch {
		case st.Tokens[i].Depth != st.Tokens[at].Depth:
		case st.is(i, "CASE"):
			nested++
		case st.is(i, "END") && nested == 0:
			return whens, thens
		case st.is(i, "END"):
			nested--
		case nested > 0:
		case st.is(i, "WHEN"):
			whens = append(whens, i)
		case st.is(i, "THEN"):
			thens = append(thens, i)
		}
	}
	return nil, nil
}

// ofCall takes those of COALESCE, whose arguments are evaluated up to the first that is not NULL, and of IF.
func (br *branching) ofCall(e *ast.FuncCallExpr, it item) bool {
	name := e.FnName.L
	args := br.pl.st.arguments(it.first + 1)
	if len(args) != len(e.Args) || e.Schema.L != "" {
		return false
	}
	if name == "if" && len(args) == 3 {
		if hasSubquery(e.Args[0]) || !br.repeatable(e.Args[0]) || !br.l.truth(e.Args[0]) {
			return false
		}
		condition := br.pl.copied(args[0].from, args[0].to)
		test := func(end string) []Piece {
			return append(append([]Piece{text("(")}, condition...), text(end))
		}
		return br.add(e.Args[1], test(") IS NOT TRUE")) && br.add(e.Args[2], test(") IS TRUE"))
	}
	if name != "coalesce" && name != "ifnull" {
		return false
	}
	var before []Piece
	for i, a := range e.Args {
		if hasSubquery(a) {
			return i == len(e.Args)-1 && before != nil && br.add(a, before)
		}
		if !br.repeatable(a) {
			return false
		}
		if before != nil {
			before = append(before, text(" OR "))
		}
		before = append(append(append(before, text("(")), br.pl.copied(args[i].from, args[i].to)...), text(") IS NOT NULL"))
	}
	return false
}

// arguments returns the tokens of the arguments in the parentheses that open at a token.
func (st *statement) arguments(open int) (args []span) {
	if open >= len(st.Tokens) {
		return nil
	}
	end := st.group(open)
	if end < 0 {
		return nil
	}
	from := open + 1
	for i := from; i <= end; i++ {
		if i == end || st.Tokens[i].Depth == st.Tokens[open].Depth+1 && st.mark(i, ",") {
			if i == from {
				return nil
			}
			args = append(args, span{from, i})
			from = i + 1
		}
	}
	return args
}
