package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// What subqueries in WHERE and in the select list read is shown by hidden columns that run them again, in the same
// statement and so in the same snapshot, if its reads are of one (ADR 62). Such a column is an array: of the rows that
// satisfy the subquery's own WHERE, for the row of the result beside which it stands. The subquery's text is the
// client's, but for its select list.

const (
	// MaxBeside is how many identities one subquery may show beside a row.
	MaxBeside = 64
	// maxBesideColumns is how many columns of this kind a statement gets.
	maxBesideColumns = 6
	// besideFor is how long a statement runs subqueries again, from its beginning on, in microseconds.
	besideFor = 500_000
	// maxBesideBytes is how long an array may be on MySQL. A longer one is cut, and so is no array. Of rows with a
	// column of over 64 KiB the server sorts the ids, and keeps them in a temporary table before, which shows in the
	// flags of the client's columns.
	maxBesideBytes = 16_000
	// Lacking stands in the place of identities that were not collected.
	Lacking = "*"
)

// A besides is a hidden column that shows what a subquery read of one table.
type besides struct {
	of    *source
	node  *ast.SelectStmt
	equal ast.ExprNode // what its rows are equal to, by isotap's condition; nil: they need not be
	query []Piece      // the subquery's FROM and WHERE
	// decided is a condition under which the row does not hang on the subquery; nil where it does in any case.
	decided []Piece
	// whole says that it reads the same for all rows of the result.
	whole bool
	limit int // of its identities; 0: MaxBeside
	// all says that it reads all rows, whatever their number, as the client's subquery does.
	all bool
	// first says that it shows the first row alone, where the server stops there.
	first bool
	// gated says that a ShownHole decides whether it shows anything.
	gated bool
	// gathers says that it collects its rows one by one; see gathering.
	gathers bool
	// none says that it has read nothing where there is a row.
	none bool
}

// A link is a subquery where it stands. Matched says that a row is left out unless the subquery finds one that is equal
// to this expression, or, where that is missing, any.
type link struct {
	query   *ast.SelectStmt
	equal   ast.ExprNode
	exists  bool
	matched bool
	set     bool // something is compared with all its rows, until one decides
	// operands are columns in the same expression: where one is NULL, so is that.
	operands []*ast.ColumnName
}

// lookInto finds out how the subqueries of the statement's only block can be run again, and reports whether that is so
// for all of them.
func (pl *planner) lookInto(b *block) bool {
	n := b.n
	if n != pl.alone || !pl.readsAgain(n) {
		return false
	}
	rest := &usage{}
	for _, part := range []ast.Node{n.GroupBy, n.Having, n.OrderBy, n.From} {
		if !missing(part) {
			part.Accept(rest)
		}
	}
	if rest.subquery {
		return false
	}
	var links []link
	for _, f := range n.Fields.Fields {
		if f.Expr != nil && !shownSubqueries(f.Expr, &links) {
			return false
		}
	}
	if len(links) > 0 && b.grouped {
		return false
	}
	var arms []alternative
	shown := len(links)
	if n.Where != nil && !conjuncts(n.Where, &links) {
		var ok bool
		if arms, ok = pl.alternatives(n, b); !ok {
			return false
		}
		links = links[:shown]
	}
	var found []*besides
	for i := range links {
		columns, ok := pl.look(&links[i], b)
		if !ok {
			return false
		}
		found = append(found, columns...)
	}
	decided, ok := pl.lookIntoArms(arms, b, false)
	found = append(found, decided...)
	if !ok || len(pl.besides)+len(found) > maxBesideColumns {
		return false
	}
	pl.besides, pl.literal = append(pl.besides, found...), true // the copies hold literals
	return true
}

// missing reports whether a clause is not there.
func missing(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GroupByClause:
		return n == nil
	case *ast.HavingClause:
		return n == nil
	case *ast.OrderByClause:
		return n == nil
	case *ast.TableRefsClause:
		return n == nil
	}
	return n == nil
}

// hasSubquery reports whether an expression holds a subquery.
func hasSubquery(e ast.Node) bool {
	u := &usage{}
	e.Accept(u)
	return u.subquery
}

// subqueryOf returns the query that an expression is.
func subqueryOf(e ast.ExprNode) (*ast.SelectStmt, bool) {
	for {
		p, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			break
		}
		e = p.Expr
	}
	s, ok := e.(*ast.SubqueryExpr)
	if !ok {
		return nil, false
	}
	n, ok := s.Query.(*ast.SelectStmt)
	return n, ok
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
	case *ast.ExistsSubqueryExpr:
		n, ok := subqueryOf(e.Sel)
		*links = append(*links, link{query: n, exists: true})
		return ok
	case *ast.UnaryOperationExpr:
		return shownSubqueries(e.V, links)
	case *ast.IsNullExpr:
		return shownSubqueries(e.Expr, links)
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) > 0 &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return shownSubqueries(e.Args[0], links)
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
		n, ok := subqueryOf(e.Sel)
		*links = append(*links, link{query: n, exists: true, matched: !e.Not})
		return ok
	case *ast.PatternInExpr:
		if e.Sel != nil && !e.Not {
			n, ok := subqueryOf(e.Sel)
			*links = append(*links, link{query: n, equal: e.Expr, matched: true})
			return ok && compared(e.Expr, links)
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
		n, ok := subqueryOf(e.Sel)
		*links = append(*links, link{query: n, exists: true})
		return ok
	case *ast.PatternInExpr:
		if e.Sel != nil {
			n, ok := subqueryOf(e.Sel)
			*links = append(*links, link{query: n, set: true})
			return ok && compared(e.Expr, links)
		}
	case *ast.CompareSubqueryExpr:
		n, ok := subqueryOf(e.R)
		*links = append(*links, link{query: n, set: true})
		return ok && compared(e.L, links)
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "coalesce" || name == "ifnull") && len(e.Args) > 0 &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return compared(e.Args[0], links)
		}
	}
	return !hasSubquery(e)
}

// An alternative is a subquery behind OR, and the condition under which a row does not hang on it.
type alternative struct {
	link
	decided []Piece
}

// alternatives finds the subqueries of a query's condition, EXISTS or IN, on which a row need not hang.
func (pl *planner) alternatives(n *ast.SelectStmt, b *block) ([]alternative, bool) {
	if b.grouped || n != pl.alone || !pl.st.is(0, "SELECT") || len(b.srcs) == 0 {
		return nil, false
	}
	at, ok := pl.clauseSpans(n, 0, pl.st.last()+1)
	if !ok || at.where < 0 {
		return nil, false
	}
	return pl.alternativesIn(n.Where, span{at.where + 1, at.end}, b)
}

// alternativesIn finds the subqueries of a condition of ANDs, ORs and NOTs, which has these tokens: one, or several
// that are arms of one OR. A row does not hang on one if the condition is true with NULL in its place and in those
// behind it: it is then true whatever they find. The server evaluates arms in the order of the text.
func (pl *planner) alternativesIn(where ast.ExprNode, at span, b *block) (found []alternative, ok bool) {
	var links []link
	l := listener{srcs: b.srcs, bodies: pl.nesting.bodies}
	if !pl.logic(where, &l, &links) || len(links) == 0 || len(links) > 1 && !armsOfOne(where, len(links)) {
		return nil, false
	}
	places := make([]span, len(links))
	for i := range links {
		if places[i], ok = pl.placeOf(&links[i], at); !ok {
			return nil, false
		}
	}
	for i := range links {
		found = append(found, alternative{links[i], pl.nulled(at, places[i:])})
	}
	return found, true
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

// armsOfOne reports whether so many subqueries of a condition are arms of one OR: EXISTS and IN, none behind NOT.
func armsOfOne(where ast.ExprNode, subqueries int) bool {
	return slices.ContainsFunc(parts(where, nil), func(part ast.ExprNode) bool {
		count := 0
		return countArms(part, &count) && count == subqueries
	})
}

// countArms counts the subqueries that are arms of ORs. It reports whether there are no others.
func countArms(e ast.ExprNode, count *int) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return countArms(e.Expr, count)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicOr {
			return countArms(e.L, count) && countArms(e.R, count)
		}
	}
	if at, ok := existence(e); ok && at.matched {
		*count++
		return true
	}
	return !hasSubquery(e)
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

// look returns the columns that show what a subquery of a block reads.
func (pl *planner) look(at *link, b *block) ([]*besides, bool) {
	n := at.query
	if !plainQuery(at) {
		return nil, false
	}
	srcs := flatten(n.From.TableRefs)
	if !pl.baseSources(srcs) {
		return nil, false
	}
	query, ok := pl.cutOut(n)
	within, silent := pl.harmlessBut(n, append(slices.Clone(srcs), b.srcs...))
	if !ok || !silent {
		return nil, false
	}
	whole := !refersTo(n, srcs, b.srcs)
	var equal ast.ExprNode
	if at.matched && at.equal != nil {
		if b.grouped {
			return nil, false
		}
		test, ok := equalTo(at, srcs, b.srcs)
		if ok {
			query, whole, equal = joined(query, test), false, at.equal
		}
	}
	if b.grouped && !whole {
		return nil, false
	}
	read := query.pieces()
	if at.picksOne() {
		order, ok := pl.keyOrder(n, srcs)
		if !ok {
			return nil, false
		}
		read = append(read, text(order))
	}
	var found []*besides
	for _, s := range srcs {
		found = append(found, &besides{of: s, node: n, equal: equal, query: read, whole: whole, first: at.picksOne()})
	}
	inner, ok := pl.lookWithin(n, within, srcs, query, b, whole)
	return append(found, inner...), ok
}

// plainQuery reports whether a subquery reads tables alone, by joins of which each row has one of each table.
func plainQuery(at *link) bool {
	n := at.query
	return n.Kind == ast.SelectStmtKindSelect && n.From != nil && n.With == nil && n.LockInfo == nil && n.TableHints == nil &&
		n.SelectIntoOpt == nil && (n.Limit == nil || at.exists && plainLimit(n.Limit) || at.picksOne()) &&
		!merges(n.From.TableRefs) && !hasSubquery(n.Fields) && innerJoins(n.From.TableRefs)
}

// baseSources finds the tables of a FROM clause. It reports whether there is nothing else, under names of their own.
func (pl *planner) baseSources(srcs sources) bool {
	for i, s := range srcs {
		base, ok := s.node.Source.(*ast.TableName)
		if !ok || !plainTable(base) {
			return false
		}
		if c, uncertain := pl.nesting.with.find(base.Name.O); base.Schema.L == "" && (c != nil || uncertain) {
			return false
		}
		if s.name = base.Name.O; s.node.AsName.O != "" {
			s.name = s.node.AsName.O
		}
		if s.table, _ = pl.table(base); s.table == nil || srcs[:i].named(s.name) != nil {
			return false
		}
	}
	return true
}

// plainLimit reports whether a limit leaves EXISTS as it is.
func plainLimit(l *ast.Limit) bool {
	count, ok := l.Count.(*test_driver.ValueExpr)
	return ok && l.Offset == nil && (count.Kind() == test_driver.KindInt64 || count.Kind() == test_driver.KindUint64) &&
		count.GetInt64() > 0
}

// innerJoins reports whether all joins are inner ones, so that each row of the join has one of each table.
func innerJoins(n ast.ResultSetNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		return n == nil || n.Tp != ast.LeftJoin && n.Tp != ast.RightJoin && innerJoins(n.Left) && innerJoins(n.Right)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return innerJoins(inner)
		}
	}
	return true
}

// A clauses is the text of a subquery's FROM clause and its condition.
type clauses struct{ from, where []Piece }

func (c clauses) pieces() []Piece {
	if c.where == nil {
		return c.from
	}
	return slices.Concat(c.from, []Piece{text(" WHERE ")}, c.where)
}

// joined adds a condition.
func joined(c clauses, test string) clauses {
	if c.where == nil {
		return clauses{c.from, []Piece{text(test)}}
	}
	return clauses{c.from, slices.Concat([]Piece{text("(")}, c.where, []Piece{text(") AND " + test)})}
}

// armVerb returns the token SELECT of a query; -1 where it is not found.
func (pl *planner) armVerb(n *ast.SelectStmt) int {
	st := pl.st
	first := st.tokenAt(n.Fields.Fields[0].Offset)
	verb := first - 1
	for verb >= 0 && st.Tokens[verb].Kind == mysqltoken.Word && !st.is(verb, "SELECT") {
		verb--
	}
	if first < 0 || verb < 0 || !st.is(verb, "SELECT") {
		return -1
	}
	return verb
}

// verbOf returns the token SELECT of a query in parentheses; -1 where it is not found.
func (pl *planner) verbOf(n *ast.SelectStmt) int {
	if verb := pl.armVerb(n); verb > 0 && pl.st.mark(verb-1, "(") {
		return verb
	}
	return -1
}

// cutOut returns a query's FROM clause and condition from the text.
func (pl *planner) cutOut(n *ast.SelectStmt) (c clauses, ok bool) {
	st, verb := pl.st, pl.verbOf(n)
	if verb < 0 {
		return c, false
	}
	end := st.group(verb - 1)
	if end < 0 {
		return c, false
	}
	return pl.clausesIn(n, verb, end)
}

// harmless reports whether a query's conditions cannot fail, nor be the reason for a warning, whatever rows they are
// evaluated for: the server may come to other rows, and to the same ones another number of times.
func (pl *planner) harmless(n *ast.SelectStmt, srcs sources) bool {
	within, ok := pl.harmlessBut(n, srcs)
	return ok && len(within) == 0
}

// harmlessBut is harmless, except that it leaves subqueries of the WHERE clause out of account, and returns them.
func (pl *planner) harmlessBut(n *ast.SelectStmt, srcs sources) (within []link, ok bool) {
	l := listener{srcs: srcs, bodies: pl.nesting.bodies}
	all := parts(n.Where, nil)
	inWhere := len(all)
	ons(n.From.TableRefs, &all)
	for i, e := range all {
		var p pure
		if at, is := existence(e); is && i < inWhere {
			within = append(within, at)
		} else if e.Accept(&p); p.other || !l.truth(e) || !pl.copyParams(e, &l) {
			return nil, false
		}
	}
	return within, true
}

// ons collects the conditions of joins.
func ons(n ast.ResultSetNode, all *[]ast.ExprNode) {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return
		}
		if n.On != nil {
			*all = append(*all, n.On.Expr)
		}
		ons(n.Left, all)
		ons(n.Right, all)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			ons(inner, all)
		}
	}
}

// pure looks for what may fail.
type pure struct{ other bool }

// Enter implements ast.Visitor.
func (p *pure) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ, opcode.LogicAnd,
			opcode.LogicOr, opcode.LogicXor:
		default:
			p.other = true
		}
	case *ast.UnaryOperationExpr:
		_, literal := n.V.(*test_driver.ValueExpr)
		p.other = p.other || n.Op != opcode.Not && n.Op != opcode.Not2 && !literal
	case *ast.ColumnNameExpr, *ast.ColumnName, *ast.ParenthesesExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.BetweenExpr,
		*ast.PatternInExpr, *ast.PatternLikeOrIlikeExpr, *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
	default:
		p.other = true
	}
	return n, p.other
}

// Leave implements ast.Visitor.
func (p *pure) Leave(n ast.Node) (ast.Node, bool) { return n, !p.other }

// refersTo reports whether a query may name a column of the tables around it.
func refersTo(n *ast.SelectStmt, own, around sources) bool {
	var c argumentTables
	n.Accept(&c)
	for _, t := range c.tables {
		if own.named(t) == nil && around.named(t) != nil {
			return true
		}
	}
	for _, name := range c.unqualified {
		inside := slices.ContainsFunc(own, func(s *source) bool { return s.table.ColumnInAnyCase(name) != nil })
		if !inside && len(around) > 0 {
			return true
		}
	}
	return false
}

// equalTo returns the condition that the column of a subquery behind IN is equal to what stands before that: the
// subquery then means EXISTS, and the server may read no other rows.
func equalTo(at *link, own, around sources) (string, bool) {
	n := at.query
	if n.GroupBy != nil || n.Having != nil || n.Limit != nil || len(n.Fields.Fields) != 1 {
		return "", false
	}
	inner, ok1 := n.Fields.Fields[0].Expr.(*ast.ColumnNameExpr)
	outer, ok2 := at.equal.(*ast.ColumnNameExpr)
	if !ok1 || !ok2 {
		return "", false
	}
	left, as, ok1 := around.owner(outer.Name)
	right, _, ok2 := own.owner(inner.Name)
	l := listener{srcs: append(slices.Clone(own), around...)}
	if !ok1 || !ok2 || own.named(as) != nil || kindOf(left.Type) == anyKind || kindOf(left.Type) != kindOf(right.Type) ||
		l.kind(inner) == noisy || l.kind(outer) == noisy {
		return "", false
	}
	_, of, _ := own.owner(inner.Name)
	return quoted(as) + "." + quoted(left.Name) + " = " + quoted(of) + "." + quoted(right.Name), true
}

// owner returns the column that a name surely means, and the name of its table here.
func (ss sources) owner(n *ast.ColumnName) (c *Column, as string, ok bool) {
	if n.Schema.L != "" {
		return nil, "", false
	}
	for _, s := range ss {
		switch {
		case n.Table.L != "" && !strings.EqualFold(n.Table.O, s.name):
			continue
		case s.table == nil:
			return nil, "", false
		}
		if mine := s.table.ColumnInAnyCase(n.Name.O); mine != nil {
			if c != nil {
				return nil, "", false
			}
			c, as = mine, s.name
		}
	}
	return c, as, c != nil
}

// spell returns the column's expression. The server runs a whole one once. A query in FROM reads no more rows than it
// shows; MySQL's may name the row around it, MariaDB's may not.
func (c *besides) spell(d Dialect) []Piece {
	rowID, wList := quoted(c.of.name)+"."+rewrite.RowIDColumn, quoted(c.of.name)+"."+rewrite.WListColumn
	limit := c.most()
	head := "(SELECT JSON_ARRAYAGG(isotap_row) FROM (SELECT " + d.element(rowID, wList, c.of.outer) + " AS isotap_row "
	tail := " LIMIT " + strconv.Itoa(limit) + ") AS isotap_rows)"
	cast, end := "CAST(", " AS BINARY)"
	if d == MySQL && limit == MaxBeside {
		cast, end = "LEFT("+cast, end+", "+strconv.Itoa(maxBesideBytes)+")"
	}
	if c.first {
		head = "(SELECT CONCAT(_latin1'[\"', " + d.element(rowID, wList, c.of.outer) + ", _latin1'\"]') "
		tail = " LIMIT 1)"
	}
	if c.all {
		head, tail = "(SELECT "+d.array(rowID, wList, limit, c.of.outer)+" ", ")"
	}
	switch {
	case c.whole && c.gated:
		return slices.Concat([]Piece{text(cast + "IF("), {Hole: ShownHole}, text(", " + head)}, c.query,
			[]Piece{text(tail + ", _latin1'" + Lacking + "')" + end)})
	case c.whole:
		return slices.Concat([]Piece{text(cast + head)}, c.query, []Piece{text(tail + end)})
	case d == MariaDB && !c.first && !c.all:
		head, tail = "(SELECT "+d.array(rowID, wList, limit, c.of.outer)+" ", ")"
	}
	if c.decided != nil {
		head, tail = ", NULL, "+head, tail+")"
	}
	begin := []Piece{text(cast + "IF(")}
	if c.gated {
		begin = append(begin, Piece{Hole: ShownHole}, text(" AND "))
	}
	begin = append(begin, text("SYSDATE(6) < NOW(6) + INTERVAL "+strconv.Itoa(besideFor)+" MICROSECOND, "))
	if c.decided != nil {
		begin = slices.Concat(begin, []Piece{text("IF((")}, c.decided, []Piece{text(") IS TRUE")})
	}
	return slices.Concat(begin, []Piece{text(head)}, c.query, []Piece{text(tail + ", _latin1'" + Lacking + "')" + end)})
}

// source says what the column carries.
func (c *besides) source() Source {
	return Source{Table: c.of.table.Name, Array: true, Limit: c.most(), Beside: true, Whole: c.whole}
}

// most returns how many identities the column shows at most.
func (c *besides) most() int {
	if c.limit > 0 {
		return c.limit
	}
	return MaxBeside
}

// appendBesides puts the columns that show what subqueries read behind all others.
func (pl *planner) appendBesides(b *block) error {
	var items []Piece
	for _, c := range pl.besides {
		if err := pl.checkSpelling(c.of.name); err != nil {
			return err
		}
		items = append(append(items, text(", ")), c.spell(pl.session.Dialect)...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, c.source())
	}
	pos, gap := pl.after(b.list[len(b.list)-1].last)
	pl.insertAt(pos, append(items, text(gap))...)
	pl.plan.Upstream.Copies = append(pl.plan.Upstream.Copies, pl.parameters...)
	pl.plan.Result.Reply, pl.plan.Upstream.Repeats = rewrite.Trimmed, true
	return nil
}

// selectSubqueries plans a SELECT without a table that has subqueries.
func (pl *planner) selectSubqueries(n *ast.SelectStmt) error {
	b := &block{n: n, dialect: pl.session.Dialect}
	if !pl.lookInto(b) || len(pl.besides) == 0 {
		return refusal(history.ReasonSubquery)
	}
	var err error
	if b.list, err = pl.selectList(n); err != nil {
		return err
	}
	return pl.appendBesides(b)
}
