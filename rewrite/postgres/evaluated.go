package postgres

import (
	"reflect"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// Where OR, CASE or COALESCE stand around a subquery, a row may not hang on it. The server evaluates their parts in the
// order of the text, and none behind one that decides; it may leave away what a part without a subquery decides alone.
// So a subquery is surely evaluated for a row if neither the parts before it decide, nor those without subqueries. The
// column that shows what it reads tests that, by copies of the client's text.

// A span is the tokens [from, to).
type span struct{ from, to int }

// A test is an expression of the client's that must have some value for a subquery to be evaluated. Without one it is
// what stands in must.
type test struct {
	span
	node ast.Node
	must must
	// of is what stands behind CASE, where the expression is compared with it: the tokens, and the expression.
	of     span
	ofNode ast.Node
}

// A must is what a test asks of its expression: the condition of a CASE by what stands before it and behind it, and
// whether that must hold or must not. The server says the same of a wrong expression there as where the client has it.
type must struct {
	before, behind string
	not            bool
}

var (
	notTrue   = must{"(", " OR false) IS NOT TRUE", false}
	isTrue    = must{"(", " AND true) IS TRUE", false}
	notFalse  = must{"(", " AND true) IS NOT FALSE", false}
	when      = must{}
	whenNot   = must{not: true}
	isMissing = must{"(", ") IS NOT DISTINCT FROM NULL", false} // as COALESCE sees it: a row of NULLs is not
)

func (t test) queries() bool { return hasSubquery(t.node) || t.ofNode != nil && hasSubquery(t.ofNode) }

// ofText reports whether the test copies something of the client's.
func (t test) ofText() bool { return t.node != nil || t.ofNode != nil }

// A need says what becomes of the value of an expression.
type need uint8

const (
	anyValue need = iota
	truth         // it matters only whether it is true
	ofAll         // it is true of all rows of the result
	ofSome        // it is true of those that the other arms of an OR do not let pass
)

// A link is a subquery where it stands; matched says that a row is left out, or does not hang on it, unless it finds
// one. It is evaluated where all tests hold.
type link struct {
	*ast.SubLink
	matched bool
	orders  bool    // it stands in ORDER BY
	item    int     // of the select list that it stands in, counted from 1; 0: none
	inside  bool    // it stands in the arguments of an aggregate
	shown   bool    // it is evaluated for a row of the result, where that stands for several rows
	derived bool    // what is looked into is a query in its FROM clause
	lists   bool    // it stands in the select list of another subquery
	asked   wanting // what of its list is surely asked for
	tests   []test
}

// A seeker collects the subqueries of expressions that are surely evaluated for a row, and what they hang on. Without a
// planner it finds no tests.
type seeker struct {
	*planner
	links []link
	// fails says that what is tested may be such as could fail, so far as the server evaluates it anyway.
	fails bool
	// behind says that the server has the types of the parameters when it comes to the copies.
	behind bool
}

// conjuncts collects the subqueries of a condition whose parts are all true of a row that it lets pass. It reports
// whether it is known of all when they are evaluated.
func conjuncts(n ast.Node, links *[]link) bool {
	s := seeker{links: *links}
	ok := s.seek(n, span{}, ofAll, nil)
	*links = s.links
	return ok
}

// certain is as conjuncts, of an expression that any value may come of.
func certain(n ast.Node, links *[]link) bool {
	s := seeker{links: *links}
	ok := s.seek(n, span{}, anyValue, nil)
	*links = s.links
	return ok
}

// seek collects the subqueries of an expression somewhere in a span, which is evaluated where all tests hold. It
// reports whether it is known of all when they are.
func (s *seeker) seek(n ast.Node, at span, value need, tests []test) bool {
	if pgtree.Missing(n) {
		return true
	}
	within := func(parts ...ast.Node) bool {
		return !slices.ContainsFunc(parts, func(part ast.Node) bool { return !s.seek(part, at, anyValue, tests) })
	}
	switch n := bare(n).(type) {
	case *ast.SubLink:
		if q := fromless(n); q != nil && (value >= ofAll || !severalQueries(q.WhereClause)) {
			return s.seek(q.WhereClause, s.conditionOf(q, at), max(value, truth), tests)
		}
		s.links = append(s.links, link{SubLink: n, matched: value >= ofAll, tests: inOrder(tests)})
		return within(n.Testexpr)
	case *ast.BoolExpr:
		if n.Boolop == ast.NOT_EXPR {
			return within(nodes(n.Args)...)
		}
		return s.arms(n, at, value, tests)
	case *ast.CaseExpr:
		return s.branches(n, at, tests)
	case *ast.CoalesceExpr:
		return s.arguments(n, at, tests)
	case *ast.A_Expr:
		if n.Kind == ast.AEXPR_OP {
			return within(n.Lexpr, n.Rexpr)
		}
	case *ast.MultiAssignRef: // SET (a, b) = (SELECT ...): one for each column, which share it
		return n.Colno > 1 || within(n.Source)
	case *ast.NullTest:
		return within(n.Arg)
	case *ast.BooleanTest:
		return within(n.Arg)
	case *ast.TypeCast:
		return within(n.Arg)
	case *ast.FuncCall:
		if n.Over != nil && !ofAllRows(n) || n.AggWithinGroup || hasSubquery(n.AggOrder) || n.AggFilter != nil && hasSubquery(n.Args) {
			break // the arguments are evaluated for the rows that FILTER lets pass
		}
		before := len(s.links)
		if !within(nodes(n.Args)...) || !s.seek(n.AggFilter, s.filter(n, at), truth, tests) {
			return false
		}
		if n.Over != nil {
			return true
		}
		aggregate, known := functions[lastName(n.Funcname)]
		for i := range s.links[before:] {
			s.links[before+i].inside = s.links[before+i].inside || aggregate || !known
		}
		return true
	}
	return !hasSubquery(n)
}

// filter returns the tokens of the condition of a FILTER clause somewhere in a span; that where it is not found.
func (s *seeker) filter(n *ast.FuncCall, at span) span {
	for i := at.from; s.planner != nil && n.AggFilter != nil && i < at.to; i++ {
		if s.st.is(i, "FILTER") && s.st.mark(i+1, "(") && s.st.is(i+2, "WHERE") {
			if in := (span{i + 3, s.st.closing(i + 1)}); s.reads(n.AggFilter, in) {
				return in
			}
		}
	}
	return at
}

// ofAllRows reports whether a window function surely evaluates what it is given for each row: an aggregate does, of a
// frame that is not chosen.
func ofAllRows(n *ast.FuncCall) bool {
	return functions[lastName(n.Funcname)] && n.Over.FrameOptions&ast.FRAMEOPTION_NONDEFAULT == 0 && n.Over.Name == "" &&
		n.Over.Refname == "" && !hasSubquery(n.Over.PartitionClause) && !hasSubquery(n.Over.OrderClause)
}

// fromless returns the query of EXISTS (SELECT ... WHERE ...) without a FROM clause, which says what its condition
// says; nil where it is another one.
func fromless(n *ast.SubLink) *ast.SelectStmt {
	q, ok := n.Subselect.(*ast.SelectStmt)
	if !ok || n.SubLinkType != ast.EXISTS_SUBLINK || q.Op != ast.SETOP_NONE || len(nodes(q.FromClause)) > 0 ||
		len(nodes(q.ValuesLists)) > 0 || q.WithClause != nil || q.GroupClause != nil || q.HavingClause != nil ||
		q.LimitCount != nil || q.LimitOffset != nil || q.LockingClause != nil || hasCall(q.TargetList) ||
		hasSubquery(q.TargetList) {
		return nil
	}
	return q
}

// severalQueries reports whether more than one of the parts that AND joins have subqueries: those of a condition the
// server tests in an order of its own.
func severalQueries(where ast.Node) bool {
	if pgtree.Missing(where) {
		return false
	}
	with := 0
	for _, part := range flatten(bare(where), ast.AND_EXPR) {
		if hasSubquery(part) {
			with++
		}
	}
	return with > 1
}

// conditionOf returns the tokens of the condition of a subquery somewhere in a span.
func (s *seeker) conditionOf(q *ast.SelectStmt, at span) span {
	if s.planner == nil {
		return span{}
	}
	for i := at.from; i < at.to; i++ {
		closing := s.st.closing(i)
		if !s.st.mark(i, "(") || !s.st.is(i+1, "SELECT") || closing < 0 {
			continue
		}
		tree, err := parse(s.readable(s.st.text[s.st.toks[i+1].Start:s.st.toks[closing-1].End]))
		if err == nil && reflect.DeepEqual(tree, ast.Stmt(q)) {
			p := placer{statement: s.st}
			return p.whereClause(i+2, closing)
		}
	}
	return span{}
}

// inOrder returns tests in the order of the text: of two that are wrong the server finds fault with the first.
func inOrder(tests []test) []test {
	return slices.SortedStableFunc(slices.Values(tests), func(a, b test) int { return a.from - b.from })
}

// list collects the subqueries of the items of a select list.
func (s *seeker) list(list *ast.NodeList, at span) bool {
	items := nodes(list)
	spans := s.st.cut(at, ",")
	for i, t := range items {
		item, ok := t.(*ast.ResTarget)
		if !ok {
			return false
		}
		here := at
		if len(spans) == len(items) {
			here = spans[i]
			if item.Name != "" { // a name stands behind it
				here.to--
			}
			if s.st.is(here.to-1, "AS") {
				here.to--
			}
		}
		before := len(s.links)
		if !s.seek(item.Val, here, anyValue, nil) {
			return false
		}
		for k := range s.links[before:] {
			s.links[before+k].item = i + 1
		}
	}
	return true
}

// order collects the subqueries in the ORDER BY clause of a query. They are evaluated for all of its rows: where some
// are left out, these are not known. Of a row that is locked the key is that of the version before.
func (s *seeker) order(n *ast.SelectStmt, at querySpan) bool {
	before := len(s.links)
	for _, item := range nodes(n.SortClause) {
		by, ok := item.(*ast.SortBy)
		if !ok || !s.seek(by.Node, span{at.listEnd + 1, at.to}, anyValue, nil) {
			return false
		}
	}
	for i := range s.links[before:] {
		s.links[before+i].orders = true
	}
	return len(s.links) == before || n.LimitCount == nil && n.LimitOffset == nil && n.LockingClause == nil
}

// arms collects the subqueries behind AND and OR.
func (s *seeker) arms(n *ast.BoolExpr, at span, value need, tests []test) bool {
	if !hasSubquery(n) {
		return true
	}
	or, all := n.Boolop == ast.OR_EXPR, flatten(n, n.Boolop)
	if !or && value == ofAll {
		return !slices.ContainsFunc(all, func(part ast.Node) bool { return !s.seek(part, at, ofAll, tests) })
	}
	word, must := "AND", notFalse
	switch {
	case or:
		word, must = "OR", notTrue
	case value != anyValue:
		must = isTrue
	}
	spans := s.split(at, n, word, all)
	if spans == nil {
		return false
	}
	if or && value == ofAll {
		value = ofSome
	}
	for i, arm := range all {
		if !hasSubquery(arm) {
			continue
		}
		of := slices.Clone(tests)
		for k, other := range all {
			if k == i || k > i && hasSubquery(other) {
				continue
			}
			if !s.mayTest(other, spans[k], k < i) {
				return false
			}
			of = append(of, test{span: spans[k], node: other, must: must})
		}
		if !s.seek(arm, spans[i], value, of) {
			return false
		}
	}
	return true
}

// branches collects the subqueries of a CASE.
func (s *seeker) branches(n *ast.CaseExpr, at span, tests []test) bool {
	if !hasSubquery(n) {
		return true
	}
	var parts []ast.Node
	for _, w := range nodes(n.Args) {
		when, ok := w.(*ast.CaseWhen)
		if !ok {
			return false
		}
		parts = append(parts, when.Expr, when.Result)
	}
	if !pgtree.Missing(n.Defresult) {
		parts = append(parts, n.Defresult)
	}
	spans := s.parts(n, at, "CASE", parts)
	of, ok := s.compared(n, at, spans, tests)
	if !ok {
		return false
	}
	for i, part := range parts {
		isWhen, isElse := i%2 == 0 && i < 2*len(nodes(n.Args)), i == 2*len(nodes(n.Args))
		if !hasSubquery(part) {
			continue
		}
		value := anyValue
		if isWhen && pgtree.Missing(n.Arg) {
			value = truth
		}
		if i == 0 {
			if !s.seek(part, at, value, tests) {
				return false
			}
			continue
		}
		if spans == nil {
			return false
		}
		hold := slices.Clone(tests)
		for k := 0; k < i; k += 2 {
			must := whenNot
			if k == i-1 && !isWhen && !isElse {
				must = when
			}
			if !s.mayTest(parts[k], spans[k], true) {
				return false
			}
			hold = append(hold, test{spans[k], parts[k], must, of.of, of.ofNode})
		}
		if !s.seek(part, spans[i], value, hold) {
			return false
		}
	}
	return true
}

// compared has the tests of a CASE's conditions compare these with what stands behind CASE, if something does. It
// collects the subqueries there.
func (s *seeker) compared(n *ast.CaseExpr, at span, spans []span, tests []test) (of test, ok bool) {
	if pgtree.Missing(n.Arg) {
		return of, true
	}
	if !s.seek(n.Arg, at, anyValue, tests) {
		return of, false
	}
	if spans == nil {
		return of, true // as long as no test is needed
	}
	of.of, of.ofNode = span{spans[0].from - 1, spans[0].from - 1}, n.Arg
	for of.of.from--; of.of.from > at.from && !s.reads(n.Arg, of.of); {
		of.of.from--
	}
	return of, s.reads(n.Arg, of.of) && s.mayTest(n.Arg, of.of, true)
}

// arguments collects the subqueries of a COALESCE.
func (s *seeker) arguments(n *ast.CoalesceExpr, at span, tests []test) bool {
	args := nodes(n.Args)
	if len(args) == 0 || !hasSubquery(n) {
		return true
	}
	if !s.seek(args[0], at, anyValue, tests) {
		return false
	}
	if !slices.ContainsFunc(args[1:], hasSubquery) {
		return true
	}
	spans := s.parts(n, at, "COALESCE", args)
	if spans == nil {
		return false
	}
	of := slices.Clone(tests)
	for i, arg := range args {
		if i > 0 && !s.seek(arg, spans[i], anyValue, of) {
			return false
		}
		if !slices.ContainsFunc(args[i+1:], hasSubquery) {
			return true
		}
		if !s.mayTest(arg, spans[i], true) || s.st.hasParams(spans[i]) && !s.behind {
			return false // IS NOT DISTINCT FROM NULL would make a parameter a text
		}
		of = append(of, test{span: spans[i], node: arg, must: isMissing})
	}
	return true
}

// flatten returns the parts of an expression with AND or OR, in the order of the text.
func flatten(n ast.Node, op ast.BoolExprType) (parts []ast.Node) {
	e, ok := n.(*ast.BoolExpr)
	if !ok || e.Boolop != op {
		return []ast.Node{n}
	}
	for _, arg := range nodes(e.Args) {
		parts = append(parts, flatten(arg, op)...)
	}
	return parts
}

// mayTest reports whether the copy of an expression tells what the expression is: nothing in it changes, and it fails
// for no row. Where it surely has been evaluated for the row, it has not failed.
func (s *seeker) mayTest(n ast.Node, at span, evaluated bool) bool {
	u, err := s.inspect(n)
	if err != nil || u.function || u.volatile || u.aggregate || u.window || locks(n) ||
		!(evaluated && s.fails) && s.mayFailBut(n) {
		return false
	}
	for i := at.from; i < at.to; i++ {
		if s.st.toks[i].Kind == pgtoken.Param && !s.behind && !s.st.once(i) {
			return false // the server takes its type from where it meets it first
		}
	}
	return true
}

// mayFailBut is as mayFail, but for subqueries that cannot fail.
func (pl *planner) mayFailBut(n ast.Node) bool {
	if pl.failing(false, n) {
		return true
	}
	bad := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		if sub, ok := n.(*ast.SubLink); ok {
			q, isSelect := sub.Subselect.(*ast.SelectStmt)
			bad = bad || !isSelect || !(&link{SubLink: sub}).harmless() || pl.mayFail(q.FromClause) ||
				pl.failing(false, q.WhereClause)
		}
		return !bad
	}, n)
	return bad || !whole
}

// split finds the parts of an expression with AND or OR in a span: it is all of that, or in parentheses there. It
// returns nil where it is neither.
func (s *seeker) split(at span, n *ast.BoolExpr, word string, parts []ast.Node) []span {
	if s.planner == nil {
		return nil
	}
	at = s.st.inner(at)
	if s.reads(n, at) {
		return s.matching(s.st.cut(at, word), parts)
	}
	for i := at.from; i < at.to; i++ {
		if closing := s.st.closing(i); s.st.mark(i, "(") && closing > i && closing < at.to {
			if in := s.st.inner(span{i, closing + 1}); s.reads(n, in) && s.alone(in) {
				return s.matching(s.st.cut(in, word), parts)
			}
		}
	}
	return nil
}

// parts finds the parts of a CASE or COALESCE somewhere in a span.
func (s *seeker) parts(n ast.Node, at span, word string, parts []ast.Node) []span {
	if s.planner == nil {
		return nil
	}
	for i := at.from; i < at.to; i++ {
		if !s.st.is(i, word) {
			continue
		}
		in := span{i, s.st.closing(i+1) + 1}
		if word == "CASE" {
			in.to = s.st.endOfCase(i) + 1
		}
		if in.to <= i || in.to > at.to || !s.reads(n, in) || !s.alone(in) {
			continue
		}
		if word == "CASE" {
			spans := s.st.cut(span{i + 1, in.to - 1}, "WHEN", "THEN", "ELSE")
			return s.matching(spans[1:], parts) // the first one is what stands behind CASE
		}
		return s.matching(s.st.cut(span{i + 2, in.to - 1}, ","), parts)
	}
	return nil
}

// matching returns the spans if they are read as the parts.
func (s *seeker) matching(spans []span, parts []ast.Node) []span {
	if len(spans) != len(parts) {
		return nil
	}
	for i, part := range parts {
		if !s.reads(part, spans[i]) {
			return nil
		}
	}
	return spans
}

// reads reports whether a span is read as an expression.
func (s *seeker) reads(n ast.Node, at span) bool {
	if at.from >= at.to {
		return false
	}
	tree, err := parse("SELECT " + s.readable(s.st.text[s.st.toks[at.from].Start:s.st.toks[at.to-1].End]))
	if err != nil {
		return false
	}
	query, ok := tree.(*ast.SelectStmt)
	if !ok || len(nodes(query.TargetList)) != 1 || query.FromClause != nil {
		return false
	}
	item, ok := nodes(query.TargetList)[0].(*ast.ResTarget)
	return ok && item.Name == "" && reflect.DeepEqual(bare(item.Val), bare(n))
}

// alone reports whether no other part of the statement differs from this one in literals only: the plan must hold for
// all texts that differ in these.
func (s *seeker) alone(at span) bool {
	for i := range s.st.toks {
		if i != at.from && s.st.sameWords(at.from, i, at.to-at.from) {
			return false
		}
	}
	return true
}

// inner is a span without the parentheses around all of it.
func (st *statement) inner(at span) span {
	for at.from < at.to-1 && st.mark(at.from, "(") && st.closing(at.from) == at.to-1 {
		at = span{at.from + 1, at.to - 1}
	}
	return at
}

// cut divides a span at words, outside of parentheses, of CASE, and of BETWEEN's AND.
func (st *statement) cut(at span, words ...string) (parts []span) {
	depth, between, from := 0, false, at.from
	for i := at.from; i < at.to; i++ {
		switch {
		case st.mark(i, "("), st.mark(i, "["), st.is(i, "CASE"):
			depth++
		case st.mark(i, ")"), st.mark(i, "]"), st.is(i, "END"):
			depth--
		case depth > 0:
		case st.is(i, "BETWEEN"):
			between = true
		case between && st.is(i, "AND"):
			between = false
		case st.is(i, words...), words[0] == "," && st.mark(i, ","):
			parts = append(parts, span{from, i})
			from = i + 1
		}
	}
	return append(parts, span{from, at.to})
}

// endOfCase returns the END of the CASE at token i; -1 where there is none.
func (st *statement) endOfCase(i int) int {
	depth := 0
	for ; i < len(st.toks); i++ {
		switch {
		case st.is(i, "CASE"):
			depth++
		case st.is(i, "END"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// once reports whether the parameter at a token stands nowhere else.
func (st *statement) once(at int) bool {
	for i := range st.toks {
		if i != at && st.toks[i].Kind == pgtoken.Param && st.tok(i) == st.tok(at) {
			return false
		}
	}
	return true
}

// hasParams reports whether a parameter stands in a span.
func (st *statement) hasParams(at span) bool {
	return slices.ContainsFunc(st.toks[at.from:at.to], func(t pgtoken.Token) bool { return t.Kind == pgtoken.Param })
}

// whereClause returns the condition of a query that is a span of tokens, behind token i of it; an empty span where it
// has none.
func (p *placer) whereClause(i, to int) span {
	for i = p.clause(i, to); i < to; i = p.clause(i+1, to) {
		if p.is(i, "WHERE") {
			return span{i + 1, p.clause(i+1, to)}
		}
	}
	return span{to, to}
}
