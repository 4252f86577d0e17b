package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A chosenFrom are the tables of a query, and what its conditions say of each of them.
type chosenFrom struct {
	scope
	ons     []onCondition
	parts   map[*chosenSource]bool // those of which the query names partitions or versions
	nested  bool                   // joins stand in parentheses
	follows []equality
	natural map[*chosenSource]bool // those on the inner side of outer joins that have no ON
	// where is the condition of WHERE in the text, if it has one.
	where *conjunct
	// firstOnly says that the tables but the first are joined by LEFT JOIN, so that each of its rows is there.
	// leftover says that WHERE hangs on more than the first table's row.
	firstOnly, leftover bool
}

// An onCondition is that of a join, which chooses among the rows of some of its tables.
type onCondition struct {
	expr ast.ExprNode
	of   []*chosenSource
	// all are the join's tables, and optional those on its inner side, if it is an outer join: rows of the others are
	// there without one of theirs.
	all, optional []*chosenSource
	simplified    bool // it was an outer join
}

// An equality says that a column, where it counts, is equal to another one.
type equality struct{ from, to chosenColumn }

// join takes in what is joined, and returns its tables. leftmost says that nothing is to the left of it.
func (b *chosenFrom) join(w *conditionWalk, n ast.ResultSetNode, leftmost bool) (all []*chosenSource) {
	switch n := n.(type) {
	case *ast.Join:
		return b.joined(w, n, leftmost)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			b.nested = true
			return b.joined(w, inner, leftmost)
		}
		s := w.source(n)
		if base, ok := n.Source.(*ast.TableName); ok &&
			(len(base.PartitionNames) > 0 || base.TableSample != nil || base.AsOf != nil) {
			if b.parts == nil {
				b.parts = make(map[*chosenSource]bool)
			}
			b.parts[s] = true
		}
		b.sources = append(b.sources, s)
		return []*chosenSource{s}
	case nil:
		return nil
	}
	s := &chosenSource{}
	b.sources = append(b.sources, s)
	return []*chosenSource{s}
}

// joined is join for a join: what is on the inner side of outer ones in it is not chosen from by its own condition.
func (b *chosenFrom) joined(w *conditionWalk, n *ast.Join, leftmost bool) []*chosenSource {
	b.nested = b.nested || n.ExplicitParens
	left := b.join(w, n.Left, leftmost)
	if n.Right == nil {
		return left
	}
	right := b.join(w, n.Right, false)
	all, inner := slices.Concat(left, right), []*chosenSource(nil)
	b.firstOnly = b.firstOnly && leftmost && n.Tp == ast.LeftJoin && len(right) == 1 && !n.NaturalJoin
	chosen := all
	switch n.Tp {
	case ast.LeftJoin:
		chosen, inner = right, right
	case ast.RightJoin:
		chosen, inner = left, left
	}
	if n.On != nil {
		of := slices.DeleteFunc(slices.Clone(chosen), func(s *chosenSource) bool { return s.outer })
		b.ons = append(b.ons, onCondition{expr: n.On.Expr, of: of, all: all, optional: inner})
	}
	for _, s := range inner {
		s.outer = true
		if n.On == nil {
			b.natural[s] = true
		}
	}
	return all
}

// simplify makes inner joins of outer ones that another condition wants a row of their optional side for: WHERE, or
// that of a join which is inner itself. So does the server.
func (b *chosenFrom) simplify(st *statement, where ast.ExprNode) {
	required := make(map[*chosenSource]bool)
	b.require(st, where, required)
	for found := true; found; {
		found = false
		for i := range b.ons {
			on := &b.ons[i]
			if b.within(*on) || len(on.optional) > 0 &&
				!slices.ContainsFunc(on.optional, func(s *chosenSource) bool { return required[s] }) {
				continue
			}
			found = b.require(st, on.expr, required) || found || len(on.optional) > 0
			if len(on.optional) > 0 {
				on.optional, on.simplified = nil, true
			}
		}
	}
	for _, s := range b.sources {
		s.outer = s.outer && b.optional(s)
	}
	for i, on := range b.ons {
		if on.simplified {
			b.ons[i].of = slices.DeleteFunc(slices.Clone(on.all), func(s *chosenSource) bool { return s.outer })
		}
	}
}

// within reports whether a join is on the optional side of another one.
func (b *chosenFrom) within(on onCondition) bool {
	return !slices.ContainsFunc(on.all, func(s *chosenSource) bool { return !b.optional(s) })
}

// optional reports whether a table is on the optional side of an outer join.
func (b *chosenFrom) optional(s *chosenSource) bool {
	return b.natural[s] || slices.ContainsFunc(b.ons, func(on onCondition) bool { return slices.Contains(on.optional, s) })
}

// require takes note of the tables that a condition is true for no NULL of. It reports whether there are new ones.
func (b *chosenFrom) require(st *statement, condition ast.ExprNode, required map[*chosenSource]bool) (found bool) {
	if condition == nil {
		return false
	}
	for _, l := range st.leaves(condition, span{}) {
		n, ok := l.expr.(*ast.BinaryOperationExpr)
		if !ok || !rejectsNull(n) {
			continue
		}
		for _, side := range []ast.ExprNode{n.L, n.R} {
			if s := b.plain(side).source; s != nil && slices.Contains(b.sources, s) && !required[s] {
				required[s], found = true, true
			}
		}
	}
	return found
}

// filterOn gives the tables their parts of the conditions behind ON, which stand in a stretch of the text.
func (b *chosenFrom) filterOn(st *statement, in span, depth int) {
	texts := st.onClauses(in, depth)
	if b.nested || len(texts) != len(b.ons) {
		texts = make([]span, len(b.ons)) // which is which is not known
	}
	for i, on := range b.ons {
		for _, l := range st.leaves(on.expr, texts[i]) {
			b.filter(st, l, func(s *chosenSource) bool { return slices.Contains(on.of, s) })
		}
	}
}

// filterWhere gives the tables their parts of the condition behind WHERE.
func (b *chosenFrom) filterWhere(st *statement, where ast.ExprNode, at span) {
	if where == nil {
		return
	}
	if b.leftover = at.empty(); !b.leftover {
		b.where = &conjunct{at: at}
	}
	for _, l := range st.leaves(where, at) {
		of, ok := b.filter(st, l, func(s *chosenSource) bool { return !s.outer || rejectsNull(l.expr) })
		first := len(of) == 0 || len(of) == 1 && of[b.sources[0]]
		b.leftover = b.leftover || !ok || !first
	}
}

// filter gives a part of a condition to the table that it names, if it names no other and chooses among its rows. It
// returns the tables that it names, and reports whether it hangs on nothing else.
func (b *chosenFrom) filter(st *statement, l leaf, chooses func(*chosenSource) bool) (of map[*chosenSource]bool, ok bool) {
	b.equate(st, l, chooses)
	settled, ok := b.settle(l.expr)
	of, timed := settled.sources, settled.timed
	if ok = ok && !l.at.empty() && timed == st.countTimes(l.at); !ok || len(of) > 1 {
		return of, ok
	}
	if b.where != nil && timed > 0 {
		b.where.timed = true
	}
	if settled.within > 0 {
		return of, true // of a wide condition it matters where it does not hold, too
	}
	for _, s := range b.sources {
		if (len(of) == 0 || of[s]) && chooses(s) {
			s.filters = append(s.filters, conjunct{at: l.at, timed: timed > 0, rowless: len(of) == 0})
		}
	}
	return of, true
}

// equate takes note of a part that says that a column is equal to another one or to a literal.
func (b *chosenFrom) equate(st *statement, l leaf, chooses func(*chosenSource) bool) {
	n, ok := l.expr.(*ast.BinaryOperationExpr)
	if !ok || n.Op != opcode.EQ {
		return
	}
	left, right := b.plain(n.L), b.plain(n.R)
	counts := func(c chosenColumn) bool {
		return c.source != nil && slices.Contains(b.sources, c.source) && chooses(c.source)
	}
	if left.column != nil && right.column != nil {
		if alike(left.column, right.column) {
			for _, e := range []equality{{left, right}, {right, left}} {
				if counts(e.to) {
					b.follows = append(b.follows, e)
				}
			}
		}
		return
	}
	for _, side := range []struct {
		chosenColumn
		other ast.ExprNode
	}{{left, n.R}, {right, n.L}} {
		if value, ok := st.literalBeside(l.at, side.other); ok && counts(side.chosenColumn) {
			b.equal[side.chosenColumn] = value
		}
	}
}

// plain returns the column that an expression is; none where it is something else.
func (b *chosenFrom) plain(n ast.ExprNode) (c chosenColumn) {
	if name, ok := n.(*ast.ColumnNameExpr); ok {
		c.source, c.column = b.column(name.Name)
	}
	return c
}

// alike reports whether columns compare alike with others: what is equal to one of two that are equal is to the other.
func alike(a, b *Column) bool {
	whole := func(c *Column) bool {
		return slices.Contains([]string{"tinyint", "smallint", "mediumint", "int", "bigint"}, c.Type)
	}
	return whole(a) && whole(b) || a.Type == b.Type && a.Collation == b.Collation
}

// propagate gives tables the literals that their columns are equal to because others are.
func (b *chosenFrom) propagate() {
	for found := true; found; {
		found = false
		for _, e := range b.follows {
			value, known := b.literal(e.from)
			if _, has := b.equal[e.to]; !known || has || e.to.column.Generated {
				continue
			}
			if !hasImage(e.to.column) {
				continue
			}
			found = true
			b.equal[e.to] = value
			e.to.source.filters = append(e.to.source.filters, conjunct{
				quoted(e.to.source.name) + "." + quoted(e.to.column.Name) + " = ", value.at, false, false})
		}
	}
}

// literal returns what a column is equal to, here or in a query around.
func (in *scope) literal(c chosenColumn) (value conjunct, known bool) {
	for ; in != nil && !known; in = in.up {
		value, known = in.equal[c]
	}
	return value, known
}

// rejectsNull reports whether a condition on one column is surely not true of NULL.
func rejectsNull(n ast.ExprNode) bool {
	b, ok := n.(*ast.BinaryOperationExpr)
	if !ok {
		return false
	}
	switch b.Op {
	case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
	default:
		return false
	}
	_, left := b.L.(*ast.ColumnNameExpr)
	_, right := b.R.(*ast.ColumnNameExpr)
	return left || right
}

// A leaf is a part of a condition that is no conjunction itself, and its tokens; none where they are not certain.
type leaf struct {
	expr ast.ExprNode
	at   span
}

// leaves returns the parts of a condition that must all hold.
func (st *statement) leaves(n ast.ExprNode, at span) []leaf {
	switch n := n.(type) {
	case *ast.ParenthesesExpr:
		if !at.empty() && st.group(at.from) == at.to-1 {
			return st.leaves(n.Expr, span{at.from + 1, at.to - 1})
		}
		return st.leaves(n.Expr, span{})
	case *ast.BinaryOperationExpr:
		if n.Op != opcode.LogicAnd {
			break
		}
		operands, texts := operandsBy(n, opcode.LogicAnd), st.between(at, "AND", "&&")
		if len(texts) != len(operands) {
			texts = make([]span, len(operands))
		}
		var all []leaf
		for i, o := range operands {
			all = append(all, st.leaves(o, texts[i])...)
		}
		return all
	}
	return []leaf{{n, at}}
}

// operandsBy returns what an operator, AND or OR, joins.
func operandsBy(n ast.ExprNode, op opcode.Op) []ast.ExprNode {
	if b, ok := n.(*ast.BinaryOperationExpr); ok && b.Op == op {
		return append(operandsBy(b.L, op), operandsBy(b.R, op)...)
	}
	return []ast.ExprNode{n}
}

// between returns the stretches between the ANDs of a conjunction, or the ORs of a disjunction, which is a word or a
// mark. The AND of BETWEEN is none, nor are those in CASE.
func (st *statement) between(at span, word, mark string) (parts []span) {
	if at.empty() {
		return nil
	}
	depth, between, cases, from := st.Tokens[at.from].Depth, 0, 0, at.from
	for i := at.from; i < at.to; i++ {
		switch {
		case st.Tokens[i].Depth != depth:
		case st.is(i, "CASE"):
			cases++
		case cases > 0:
			if st.is(i, "END") {
				cases--
			}
		case st.is(i, "BETWEEN"):
			between++
		case st.is(i, "AND") && between > 0:
			between--
		case st.is(i, word), st.mark(i, mark):
			parts = append(parts, span{from, i})
			from = i + 1
		}
	}
	return append(parts, span{from, at.to})
}

// literalBeside returns the literal or placeholder that is one side of an equation in the text.
func (st *statement) literalBeside(at span, value ast.ExprNode) (c conjunct, ok bool) {
	switch value.(type) {
	case *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
	default:
		return c, false
	}
	for i := at.from; i < at.to; i++ {
		if !st.mark(i, "=") {
			continue
		}
		for _, side := range []span{{at.from, i}, {i + 1, at.to}} {
			if side.to-side.from != 1 {
				continue
			}
			switch st.Tokens[side.from].Kind {
			case mysqltoken.String, mysqltoken.Number, mysqltoken.Placeholder:
				return conjunct{at: side}, true
			}
		}
		break
	}
	return c, false
}

// queryTokens finds a query in the text: its tokens behind the first item of its list, and how deep it stands.
func (st *statement) queryTokens(n *ast.SelectStmt) (query span, depth int, ok bool) {
	if n.Fields == nil || len(n.Fields.Fields) == 0 {
		return span{}, 0, false
	}
	first := st.tokenAt(n.Fields.Fields[0].Offset)
	verb := first - 1
	for verb >= 0 && st.Tokens[verb].Kind == mysqltoken.Word && !st.is(verb, "SELECT") {
		verb--
	}
	if first < 0 || !st.is(verb, "SELECT") {
		return span{}, 0, false
	}
	depth = st.Tokens[verb].Depth
	query = span{first, st.last() + 1}
	for i := first; i < query.to; i++ {
		if t := st.Tokens[i]; t.Depth < depth || t.Depth == depth && (st.is(i, "UNION", "INTERSECT", "EXCEPT") ||
			st.is(i, "ON") && st.is(i+1, "DUPLICATE") && st.is(i+2, "KEY")) {
			query.to = i
			break
		}
	}
	return query, depth, true
}

// clauseEnds are the words that end the clauses FROM and WHERE.
var clauseEnds = []string{"WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK",
	"PROCEDURE", "INTO", "RETURNING"}

// clause returns the tokens behind a keyword of a query, up to the next clause. It is empty where there is no such
// clause.
func (st *statement) clause(query span, depth int, keyword string) span {
	from := st.find(query.from, query.to, depth, keyword)
	if from < 0 {
		return span{}
	}
	from++
	to := query.to
	for i := from; i < query.to; i++ {
		if st.Tokens[i].Depth == depth && st.is(i, clauseEnds...) && !st.mark(i-1, ".") && !st.indexHint(i) {
			to = i
			break
		}
	}
	return span{from, to}
}

// indexHint reports whether a token is the FOR of USE INDEX FOR JOIN.
func (st *statement) indexHint(i int) bool { return st.is(i, "FOR") && st.is(i-1, "INDEX", "KEY") }

// onClauses returns the conditions behind ON in a FROM clause.
func (st *statement) onClauses(in span, depth int) (all []span) {
	for i := in.from; i < in.to; i++ {
		if st.Tokens[i].Depth != depth || !st.is(i, "ON") {
			continue
		}
		end := i + 1
		for end < in.to && !(st.Tokens[end].Depth == depth && (st.mark(end, ",") ||
			st.is(end, "ON", "JOIN", "INNER", "CROSS", "NATURAL", "STRAIGHT_JOIN", "WHERE", "SET") ||
			st.is(end, "LEFT", "RIGHT") && !st.mark(end+1, "("))) {
			end++
		}
		all = append(all, span{i + 1, end})
		i = end - 1
	}
	return all
}

// onlyAggregates reports whether a query's list has an aggregate function, outside subqueries: without GROUP BY it has
// one row.
func onlyAggregates(n *ast.SelectStmt) bool {
	var u usage
	u.list = true
	n.Fields.Accept(&u)
	return u.aggregate
}
