package mysql

import (
	"slices"
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

// lookInto finds out how the subqueries of the statement's only block can be run again, and reports whether that is so
// for all of them.
func (pl *planner) lookInto(b *block) bool {
	n := b.n
	if n != pl.alone {
		return pl.lookOutwards(b)
	}
	if !pl.readsAgain(n) {
		return false
	}
	rest := &usage{}
	for _, part := range []ast.Node{n.GroupBy, n.Having, n.OrderBy} {
		if !missing(part) {
			part.Accept(rest)
		}
	}
	if rest.subquery {
		return false
	}
	links, arms, ok := pl.listed(b)
	for i := range links {
		links[i].tree = true
	}
	if !ok || b.grouped && (len(arms) > 0 || !pl.hangOnGroups(links, b)) {
		return false
	}
	if b.grouped {
		b.nests = true // once for each group, as the client's
		found, ok := pl.lookAll(links, nil, b)
		if !ok {
			return false
		}
		pl.besides, links = append(pl.besides, found...), nil
		b.nests = pl.nestsArrays(n)
		if !pl.lookIntoAggregates(b) {
			return false
		}
	}
	if n.From != nil {
		joins, ok := joinLinks(n.From.TableRefs)
		if !ok || !pl.nameAlike(b, joins) {
			return false
		}
		for _, at := range joins {
			if at.beside == nil {
				links = append(links, at.link)
			} else if missing, ok := pl.isMissing(at.beside, b); ok {
				arms = append(arms, alternative{link: at.link, decided: missing})
			} else {
				return false
			}
		}
	}
	if n.Where != nil {
		where, behindOr, ok := pl.hanging(n.Where, pl.conditionOf(n, b), b)
		if !ok {
			return false
		}
		links, arms = append(links, where...), append(arms, behindOr...)
	}
	found, ok := pl.lookAll(links, arms, b)
	if !ok {
		return false
	}
	if pl.copiesLimits(found) {
		return false
	}
	for _, c := range found {
		pl.nest(c, b)
	}
	pl.besides, pl.literal = append(pl.besides, found...), true // the copies hold literals
	return true
}

// lookIntoAggregates looks into the subqueries in the arguments of a block's aggregates, which are evaluated for each
// row of a group. It reports whether all of them hang on the row: of others nothing tells whether there was one.
func (pl *planner) lookIntoAggregates(b *block) bool {
	found, ok := pl.lookAll(b.inAggregates, nil, b)
	for _, c := range found {
		if ok = ok && !c.whole; ok {
			pl.nest(c, b)
		}
	}
	pl.besides = append(pl.besides, found...)
	return ok
}

// isMissing returns the condition that a row of a block has none of a table.
func (pl *planner) isMissing(n *ast.TableSource, b *block) (condition []Piece, ok bool) {
	at := slices.IndexFunc(b.srcs, func(s *source) bool { return s.node == n })
	if at < 0 || b.srcs[at].table == nil || b.srcs[at].leftOut || pl.checkSpelling(b.srcs[at].name) != nil {
		return nil, false
	}
	return []Piece{text(quoted(b.srcs[at].name) + "." + rewrite.RowIDColumn + " IS NULL")}, true
}

// listed finds the subqueries of a block's select list: those that are evaluated for each row, and those that are for
// the rows that come to them. It reports whether there are no others.
func (pl *planner) listed(b *block) (links []link, arms []alternative, ok bool) {
	for i, f := range b.n.Fields.Fields {
		var own []link
		switch {
		case f.Expr == nil:
		case shownSubqueries(evaluated(f.Expr), &own):
			links = append(links, own...)
		case b.grouped && b.n == pl.alone && aggregated(f.Expr, &b.inAggregates):
		default:
			if i >= len(b.list) {
				return nil, nil, false
			}
			found, ok := pl.branches(f, b.list[i], b)
			if !ok {
				return nil, nil, false
			}
			arms = append(arms, found...)
		}
	}
	return links, arms, true
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

// look returns the columns that show what a subquery of a block reads.
func (pl *planner) look(at *link, b *block) ([]*besides, bool) {
	n := at.query
	var listed []link
	if at.tree && at.isValue() {
		inner, asked := unwrapped(n)
		var ok bool
		if listed, ok = shownWithin(inner, asked); !ok {
			return nil, false
		}
		n = inner
	}
	var cuts []replacement
	if at.tree {
		rest, hung, without, ok := pl.hung(n)
		if !ok {
			return nil, false
		}
		n, listed, cuts = rest, append(listed, hung...), without
	}
	of := *at
	if of.query = n; !plainQuery(&of) || hasSubquery(n.Fields) && len(listed) == 0 {
		return nil, false
	}
	srcs := flatten(n.From.TableRefs)
	passing, ok := pl.readSources(n, srcs)
	views := slices.ContainsFunc(srcs, func(s *source) bool { return s.behind != nil })
	if !ok || (views || len(passing) > 0) && (len(cuts) > 0 || pl.renamed != nil || b.n == nil) ||
		views && (of.picks() || merges(n.From.TableRefs)) {
		return nil, false
	}
	query, ok := pl.cutOut(n, append(cuts, passing...))
	within, silent := pl.harmlessBut(n, append(slices.Clone(srcs), b.srcs...))
	if !ok || !silent || merges(n.From.TableRefs) && (len(within) > 0 || pl.renamed != nil || !mergesQuietly(n.From.TableRefs, srcs)) {
		return nil, false
	}
	whole := !refersTo(n, srcs, b.srcs)
	var equal ast.ExprNode
	if at.matched && at.equal != nil {
		if b.grouped && !b.nests {
			return nil, false
		}
		test, ok := pl.equalTo(&of, srcs, b.srcs)
		switch {
		case ok:
			query, whole, equal = joined(query, test), false, at.equal
		case !asksForEqual(n):
		case whole && len(within) == 0 && len(passing) == 0 && !views:
			return pl.lookBesideName(&of, srcs, query, b)
		default:
			return nil, false // the rows that are equal were read, and not all
		}
	}
	if b.grouped && !whole && !b.nests {
		return nil, false
	}
	read, picked, ok := pl.picked(&of, srcs, query, pl.alone != nil && !pl.oneOf && (whole || pl.session.Dialect == MySQL && !b.grouped))
	if !ok {
		return nil, false
	}
	var found []*besides
	own := srcs
	if views {
		own, query = joinBehind(srcs, query)
		read = query.pieces()
	}
	for _, s := range own {
		found = append(found, &besides{of: s, node: n, equal: equal, query: read, parts: query, whole: whole,
			first: picked.first, limit: picked.limit, leading: picked.leading})
	}
	if len(listed) > 0 && (views || len(passing) > 0 || of.picks()) {
		return nil, false
	}
	inner, ok := pl.lookWithin(n, append(within, listed...), srcs, query, b, whole)
	return append(found, inner...), ok
}

// plainQuery reports whether a subquery reads tables alone, by joins of which each row has one of each table.
func plainQuery(at *link) bool {
	n := at.query
	return n.Kind == ast.SelectStmtKindSelect && n.From != nil && n.With == nil && n.LockInfo == nil && n.TableHints == nil &&
		n.SelectIntoOpt == nil && (n.Limit == nil || at.exists && plainLimit(n.Limit) || at.picks()) &&
		innerJoins(n.From.TableRefs)
}

// isValue reports whether a subquery is one whose value is asked for.
func (at *link) isValue() bool {
	return at.query != nil && !at.exists && !at.set && !at.part && at.equal == nil && at.queries == nil
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

// cutOut returns a query's FROM clause and condition from the text, with other pieces in the place of some of the FROM
// clause's tokens. It stands in parentheses, or is one of the queries of a set operation that does.
func (pl *planner) cutOut(n *ast.SelectStmt, by []replacement) (c clauses, ok bool) {
	verb := pl.armVerb(n)
	if verb < 1 || pl.st.Tokens[verb].Depth == 0 {
		return c, false
	}
	return pl.clausesIn(n, verb, pl.endOf(verb), by)
}

// harmless reports whether a query's conditions cannot fail, nor be the reason for a warning, whatever rows they are
// evaluated for: the server may come to other rows, and to the same ones another number of times.
func (pl *planner) harmless(n *ast.SelectStmt, srcs sources) bool {
	within, ok := pl.harmlessBut(n, srcs)
	return ok && len(within) == 0
}

// harmlessBut is harmless, except that it leaves subqueries of the WHERE clause out of account, and returns them.
func (pl *planner) harmlessBut(n *ast.SelectStmt, srcs sources) (within []link, ok bool) {
	l := listener{srcs: srcs, bodies: pl.nesting.bodies, copies: true}
	all := parts(n.Where, nil)
	inWhere := len(all)
	ons(n.From.TableRefs, &all)
	for i, e := range all {
		p := pure{l: &l}
		if at, is := existence(e); is && i < inWhere {
			within = append(within, at)
		} else if at, is := pl.valueWithin(e, &l); is && i < inWhere {
			within = append(within, at)
		} else if e.Accept(&p); p.other || !l.truth(e) || !pl.copyParams(e, &l) {
			return nil, false
		}
	}
	return within, true
}

// valueWithin returns the subquery that a condition compares, if the condition may be evaluated once more.
func (pl *planner) valueWithin(e ast.ExprNode, l *listener) (at link, ok bool) {
	of, ok := e.(*ast.BinaryOperationExpr)
	if !ok {
		return at, false
	}
	if at, ok = comparedScalar(of); !ok {
		return at, false
	}
	p := pure{l: l}
	at.with.Accept(&p)
	return at, !p.other && l.kind(at.with) != noisy && pl.copyParams(at.with, l) && pl.comparesSilently(&at, &block{srcs: l.srcs})
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
type pure struct {
	other bool
	l     *listener // tells what columns are; nil: more is taken for what may fail
}

// Enter implements ast.Visitor.
func (p *pure) Enter(n ast.Node) (ast.Node, bool) {
	if p.failsForNone(n) {
		return n, false
	}
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
	case *ast.FuncCallExpr:
		p.other = p.other || n.Schema.L != "" || !failsForNone[n.FnName.L]
	case *ast.ColumnNameExpr, *ast.ColumnName, *ast.ParenthesesExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.BetweenExpr,
		*ast.PatternInExpr, *ast.PatternLikeOrIlikeExpr, *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
	default:
		p.other = true
	}
	return n, p.other
}

// failsForNone are functions of texts that give a value for each, no longer than that, and of whose arguments alone the
// server may warn.
var failsForNone = set("lower lcase upper ucase trim ltrim rtrim left right substr substring char_length character_length " +
	"length octet_length")

// Leave implements ast.Visitor.
func (p *pure) Leave(n ast.Node) (ast.Node, bool) { return n, !p.other }

// refersTo reports whether a query may name a column of the tables around it.
func refersTo(n *ast.SelectStmt, own, around sources) bool {
	c := argumentTables{outside: true}
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
