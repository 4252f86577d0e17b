package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// selectRows appends the identity columns of every base table to the select list.
func (pl *planner) selectRows(n *ast.SelectStmt) error {
	edits, besides, parameters := pl.edits, pl.besides, pl.parameters
	b, use, err := pl.block(n)
	if err != nil {
		pl.edits, pl.besides, pl.parameters = edits, besides, parameters
		return pl.groupedAside(n, err)
	}
	if n.LockInfo != nil {
		pl.plan.Locking = locking(n.LockInfo.LockType)
	}
	switch {
	case n.From == nil && use.subquery && !use.function:
		return pl.selectSubqueries(n)
	case n.From == nil:
		return pl.selectNothing(n, use)
	case b.list == nil:
		return pl.unobservable(b.srcs, use)
	}
	if err := pl.show(b); err != nil {
		return err
	}
	if len(pl.besides) > 0 {
		if err := pl.appendBesides(b); err != nil {
			return err
		}
	}
	pl.showOrder(b)
	if err := pl.keepInVariables(); err != nil {
		return err
	}
	pl.plan.Upstream.MayHideLocks = mayHideLocks(n, b.srcs) || b.grouped && skipsRows(n)
	if pl.rewriter.options.StrictPlans && (pl.plan.Upstream.MayHideLocks || n.GroupBy != nil) {
		return refusal(history.ReasonPlan)
	}
	return nil
}

// collapsing returns the reason why more columns would change which rows a SELECT returns.
func collapsing(n *ast.SelectStmt) history.Reason {
	switch {
	case n.Kind != ast.SelectStmtKindSelect:
		return history.ReasonUnparsable
	case n.SelectIntoOpt != nil:
		return history.ReasonInto
	case n.Distinct:
		return history.ReasonDistinct
	}
	return history.Reason{}
}

func locking(t ast.SelectLockType) history.Locking {
	switch t {
	case ast.SelectLockNone:
		return history.NoLock
	case ast.SelectLockForShare, ast.SelectLockForShareNoWait, ast.SelectLockForShareSkipLocked:
		return history.LockShare
	}
	return history.LockUpdate
}

// selectNothing plans a SELECT without a table.
func (pl *planner) selectNothing(n *ast.SelectStmt, u *usage) error {
	switch {
	case u.subquery:
		return refusal(history.ReasonSubquery)
	case u.function:
		return refusal(history.ReasonFunction)
	}
	pl.plan.Observation = history.Nothing
	return nil
}

// unobservable plans a SELECT none of whose tables has isotap's columns.
func (pl *planner) unobservable(srcs sources, u *usage) error {
	if err := srcs.unobservable(); err != nil {
		return err
	}
	switch { // server tables only
	case u.subquery:
		return refusal(history.ReasonSubquery)
	case u.function:
		return refusal(history.ReasonFunction)
	}
	pl.plan.Observation = history.Nothing
	return nil
}

// positionBeyond reports whether ORDER BY or GROUP BY might name the position of a column that only the
// wider list has: the original fails then.
func positionBeyond(n *ast.SelectStmt, srcs sources) bool {
	columns := len(n.Fields.Fields) // a star is at least one
	if f := n.Fields.Fields[0]; f.WildCard != nil && len(srcs) == 1 && columns == 1 && srcs[0].table != nil {
		columns = len(visibleColumns(srcs[0].table))
	}
	beyond := func(item *ast.ByItem) bool {
		p, ok := item.Expr.(*ast.PositionExpr)
		return ok && p.N > columns
	}
	return n.OrderBy != nil && slices.ContainsFunc(n.OrderBy.Items, beyond) ||
		n.GroupBy != nil && slices.ContainsFunc(n.GroupBy.Items, beyond)
}

// show puts the identities behind the statement's select list.
func (pl *planner) show(b *block) error {
	shown := b.shown()
	switch {
	case len(shown) == 0 && (len(pl.besides) == 0 || b.srcs.observable()):
		return refusal(history.ReasonNestedAggregate)
	case len(shown) == 0:
		return nil // what is behind views is shown alone
	}
	if pl.nesting.columns > 0 && MentionsCarried(pl.st.SQL) {
		return refusal(history.ReasonOwnColumn)
	}
	var items strings.Builder
	for _, s := range shown {
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, s.source)
		for _, e := range s.expressions {
			if s.source.Array {
				e = binaryArray(e)
			}
			items.WriteString(", " + e)
		}
		if s.from.table == nil {
			pl.plan.Result.Carried += b.stars(s.from) * s.source.Columns()
		}
	}
	for _, s := range b.srcs {
		pl.plan.Result.Carried += b.stars(s) * len(s.carries)
	}
	pl.appendToList(b, items.String())
	pl.plan.Result.Reply = rewrite.Trimmed
	pl.observed(b.n)
	return pl.changeCommon(b.n)
}

// selectList finds the select list in the text, and refuses when the parser saw its items begin
// elsewhere.
func (pl *planner) selectList(n *ast.SelectStmt) ([]item, error) {
	st := pl.st
	if len(n.Fields.Fields) == 0 {
		return nil, refusal(history.ReasonUnparsable)
	}
	first := st.tokenAt(n.Fields.Fields[0].Offset)
	verb := first - 1
	for verb >= 0 && st.Tokens[verb].Kind == mysqltoken.Word && !st.is(verb, "SELECT") {
		verb-- // ALL, SQL_NO_CACHE, ...
	}
	if verb < 0 || !st.is(verb, "SELECT") {
		return nil, refusal(history.ReasonUnparsable)
	}
	depth := st.Tokens[verb].Depth
	end := st.find(first, st.last()+1, depth, "FROM")
	if end < 0 && n.From == nil {
		if end = st.find(first, st.last()+1, depth, "WHERE", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK"); end < 0 {
			end = st.last() + 1
		}
		if on := st.onDuplicate(); on > first && on < end && depth == 0 {
			end = on
		}
	}
	if end < 0 {
		return nil, refusal(history.ReasonUnparsable)
	}
	if into := pl.into.from; !pl.into.empty() && first < into && into < end {
		end = into
	}
	var list []item
	for i := first; i < end; i++ {
		switch {
		case st.Tokens[i].Depth < depth:
			end = i // the parenthesis around the statement
		case st.Tokens[i].Depth == depth && st.mark(i, ","):
			list = append(list, item{first, i - 1})
			first = i + 1
		}
	}
	list = append(list, item{first, end - 1})
	return list, sameItems(st, list, n.Fields.Fields)
}

// sameItems refuses when lexer and parser disagree about where the items of a select list begin.
func sameItems(st *statement, list []item, fields []*ast.SelectField) error {
	if len(list) != len(fields) {
		return refusal(history.ReasonUnparsable)
	}
	for i, it := range list {
		if it.first > it.last || st.Tokens[it.first].Start != fields[i].Offset {
			return refusal(history.ReasonUnparsable)
		}
	}
	return nil
}

// A block is one SELECT whose rows show what was read: the statement itself, a derived table, or the
// body of a common table expression.
type block struct {
	n       *ast.SelectStmt
	srcs    sources
	list    []item
	grouped bool
	nests   bool // it groups, and arrays may stand in those of its groups
	limit   int  // of its arrays
	carries []carried
	dialect Dialect
	// inAggregates are the subqueries in the arguments of its aggregates.
	inAggregates []link
}

// A nesting is what the planner of a statement with queries in its FROM clause keeps in mind.
type nesting struct {
	columns int // identity columns that got a name so far
	with    *withScope
	// counted is the only source of a statement that has one row of all that this has.
	counted *source
	// joined says that the query being looked at is joined with something: an array of its rows would be
	// repeated for every row of that.
	joined bool
	// optional says that rows of the query being looked at may be missing beside those of the statement.
	optional bool
	// observed are the blocks whose identities are passed outwards.
	observed []*ast.SelectStmt
	ctes     []*cte // that are used
	// shown tells for which columns of the query being looked at what is around it surely asks, and joins what is known
	// of the outer joins around.
	shown shownColumns
	joins *outerJoins
	// bodies are the queries of FROM clauses whose sources are known.
	bodies map[*ast.SelectStmt]*block
}

// A cte is a common table expression. It is looked at when a FROM clause first names it, and changed
// once however often it is named: one that nothing names is not read.
type cte struct {
	def     *ast.CommonTableExpression
	scope   *withScope // what its own query sees
	known   bool
	shows   []identity
	carries []carried
	reason  history.Reason // why it shows nothing, or not everything
	edits   []edit
}

// A withScope is what the names of tables may mean beside tables: the expressions of a WITH clause, as far
// as a query sees them, and those around it.
type withScope struct {
	up   *withScope
	ctes []*cte
}

// A source is one table of a FROM clause.
type source struct {
	node *ast.TableSource
	name string // by which the statement refers to it
	// table is the instrumented base table; nil when the source cannot be observed, for the reason, or
	// need not be: the server's own tables have no reason.
	table  *Table
	reason history.Reason
	outer  bool // rows of it may be missing: the inner side of an outer join
	// leftOut says that the server does not read it, or, where there is a reason, may not. It shows nothing then.
	leftOut bool
	// shows is what the source has of identities: those of its own rows, or what a query in its place
	// passes outwards.
	shows []identity
	// carries are the columns that it passes outwards for its subqueries, and query is what it is, if it is a query.
	carries []carried
	query   *ast.SelectStmt
	rows    *ast.SelectStmt // the query whose rows it has, whatever the names of their columns
	behind  []viewed        // the tables behind a view in a subquery
}

type sources []*source

// windowed reports whether some source has values that came from other rows than those that it shows beside them.
func (ss sources) windowed() bool {
	return slices.ContainsFunc(ss, func(s *source) bool {
		return slices.ContainsFunc(s.shows, func(i identity) bool { return i.windowed })
	})
}

// An identity is what a source shows of the rows of one base table: two columns, or one with an array.
type identity struct {
	rowID, wList string // the columns' names; an array has one
	source       Source
	outer        bool // it may be NULL
	// windowed says that values beside it come from other rows, too: those of a window function. Where a row is left
	// out, what it told the others was read all the same.
	windowed bool
}

// An item of a select list: its first and last token.
type item struct{ first, last int }

// body takes note of a block's sources.
func (n *nesting) body(b *block) {
	if n.bodies == nil {
		n.bodies = make(map[*ast.SelectStmt]*block)
	}
	n.bodies[b.n] = b
}

// checkBlock refuses a block whose names or positions the identity columns would change.
func (pl *planner) checkBlock(b *block) error {
	starred := slices.ContainsFunc(b.srcs, func(s *source) bool {
		return s.table == nil && len(s.shows) > 0 &&
			b.stars(s) > 0
	})
	switch {
	case positionBeyond(b.n, b.srcs), starred && usesPositions(b.n):
		return refusal(history.ReasonOrderByPosition)
	case starred && (b.grouped || pl.session.Dialect == TiDB && merges(b.n.From.TableRefs)):
		return refusal(history.ReasonDerivedStar)
	case merges(b.n.From.TableRefs) && b.srcs.repeatNames():
		return refusal(history.ReasonNaturalJoin)
	}
	if b.grouped {
		var err error
		b.limit, err = pl.session.arrayLimit()
		return err
	}
	return nil
}

// downgradeBlock lowers the plan for what the block reads and does not show.
func (pl *planner) downgradeBlock(b *block, use *usage) {
	n := b.n
	for _, s := range b.srcs {
		if !s.reason.IsZero() {
			pl.downgrade(s.reason)
		}
	}
	if use.subquery && !pl.readsNone(n, n.Where, b.srcs) && !pl.lookInto(b) {
		pl.downgrade(history.ReasonSubquery)
	}
	if pl.stopUnasked(b) || b.grouped && pl.groupCarried(b) {
		pl.downgrade(history.ReasonSubquery)
	}
	if use.function {
		pl.downgrade(history.ReasonFunction)
	}
	arrays := slices.ContainsFunc(b.srcs, func(s *source) bool {
		return slices.ContainsFunc(s.shows, func(i identity) bool { return i.source.Array })
	})
	aside := (arrays || b.srcs.windowed()) && pl.leftOutAside(b, use)
	if use.window && n.Limit != nil ||
		!aside && b.srcs.windowed() && (n.Where != nil || n.Having != nil || n.Limit != nil || len(b.srcs) > 1) {
		pl.downgrade(history.ReasonWindowFunction) // its values came from rows that are not among the result's
	}
	switch {
	case aside:
	case arrays && b.grouped:
		pl.downgrade(history.ReasonNestedAggregate)
	case b.grouped && n.Having != nil && pl.groupsAside(b, use):
	case b.grouped && hidesGroups(n), arrays && (n.Where != nil || n.Having != nil || n.Limit != nil ||
		len(b.srcs) > 1):
		pl.downgrade(history.ReasonGroupsLeftOut)
	}
}

// stars is how many stars of the block's select list hold the columns of a source.
func (b *block) stars(s *source) int {
	n := 0
	for _, f := range b.n.Fields.Fields {
		if f.WildCard != nil && (f.WildCard.Table.L == "" || strings.EqualFold(f.WildCard.Table.O, s.name)) {
			n++
		}
	}
	return n
}

// shown returns the identities that the block's rows can show, as expressions, in the order of the sources.
func (b *block) shown() []shownIdentity {
	var all []shownIdentity
	for _, s := range b.srcs {
		for _, i := range s.shows {
			if b.grouped && i.source.Array {
				continue // arrays of arrays would be cut
			}
			all = append(all, b.show(s, i))
		}
	}
	return all
}

// A shownIdentity is an identity at the outside of a block: the expressions of its columns.
type shownIdentity struct {
	identity
	from        *source
	expressions []string
}

func (b *block) show(s *source, i identity) shownIdentity {
	out := shownIdentity{identity: i, from: s}
	out.outer = i.outer || s.outer
	rowID, wList := quoted(s.name)+"."+i.rowID, quoted(s.name)+"."+i.wList
	switch {
	case b.grouped:
		out.expressions = []string{b.dialect.array(rowID, wList, b.limit, out.outer)}
		out.source = Source{Table: i.source.Table, Array: true, Limit: b.limit}
	case i.source.Array:
		out.expressions = []string{rowID}
	default:
		out.expressions, out.source.Always = []string{rowID, wList}, s.table != nil && !out.outer
	}
	return out
}

// showOutwards appends what a block in a FROM clause shows to its select list under names of their own,
// and returns it as the block around it sees it. What a star of the block holds is shown already.
func (pl *planner) showOutwards(b *block) []identity {
	var text strings.Builder
	var out []identity
	for _, s := range b.shown() {
		i := s.identity
		if s.from.table == nil && b.stars(s.from) > 0 {
			i.outer = s.outer
			out = append(out, i)
			continue
		}
		i.rowID, i.wList = pl.columnName(), ""
		fmt.Fprintf(&text, ", %s AS %s", s.expressions[0], i.rowID)
		if len(s.expressions) > 1 {
			i.wList = pl.columnName()
			fmt.Fprintf(&text, ", %s AS %s", s.expressions[1], i.wList)
		}
		i.source, i.outer = s.source, s.outer
		out = append(out, i)
	}
	for _, c := range b.carries {
		fmt.Fprintf(&text, ", %s AS %s", c.value, c.name)
	}
	for _, s := range b.srcs {
		if b.stars(s) > 0 {
			continue
		}
		for _, c := range s.carries {
			fmt.Fprintf(&text, ", %s.%s", quoted(s.name), c.name)
		}
	}
	pl.appendToList(b, text.String())
	return out
}

// columnName returns a name that no other column of the statement has.
func (pl *planner) columnName() string {
	pl.nesting.columns++
	return fmt.Sprintf("%s%d", rewrite.CarriedPrefix, pl.nesting.columns)
}

// appendToList puts items, each behind a comma, at the end of a block's select list.
func (pl *planner) appendToList(b *block, items string) {
	if items == "" {
		return
	}
	pos, gap := pl.after(b.list[len(b.list)-1].last)
	pl.insertAt(pos, text(items+gap))
}

// derived has a query in a FROM clause show its identities, or the reason why it cannot.
func (pl *planner) derived(query ast.ResultSetNode) ([]identity, []carried, history.Reason) {
	n, ok := query.(*ast.SelectStmt)
	if !ok {
		return nil, nil, history.ReasonUnion
	}
	var shows []identity
	var carries []carried
	besides, parameters := pl.besides, pl.parameters
	within, joined := len(pl.nesting.observed), pl.nesting.joined
	edits, lowered, err := pl.apart(func() error {
		b, use, err := pl.block(n)
		if err != nil {
			return err
		}
		pl.nesting.body(b)
		if b.list != nil && b.grouped && joined {
			return refusal(history.ReasonJoinedAggregate)
		}
		if b.list == nil {
			pl.downgradeBy(use)
			return b.srcs.unobservable()
		}
		shows, carries = pl.showOutwards(b), append(b.carries, b.passOn()...)
		if len(shows) == 0 {
			return refusal(history.ReasonNestedAggregate)
		}
		for i := range shows {
			shows[i].windowed = use.window || b.srcs.windowed()
		}
		return nil
	})
	if err != nil {
		pl.nesting.observed = pl.nesting.observed[:within]
		pl.besides, pl.parameters = besides, parameters
		return nil, nil, reasonOf(err)
	}
	pl.observed(n)
	pl.edits = append(pl.edits, edits...)
	return shows, carries, lowered
}

// observed takes note that a block is one whose columns isotap may add to.
func (pl *planner) observed(n *ast.SelectStmt) {
	pl.nesting.observed = append(pl.nesting.observed, n)
}

// apart runs f and returns the edits that it made and the reason for which it lowered the plan, without
// either being done.
func (pl *planner) apart(f func() error) (edits []edit, lowered history.Reason, err error) {
	before, observation, reason := pl.edits, pl.plan.Observation, pl.plan.Reason
	pl.edits, pl.plan.Observation, pl.plan.Reason = nil, history.Exact, history.Reason{}
	err = f()
	edits, lowered = pl.edits, pl.plan.Reason
	pl.edits, pl.plan.Observation, pl.plan.Reason = before, observation, reason
	return edits, lowered, err
}

// usesPositions reports whether a SELECT names columns by their position.
func usesPositions(n *ast.SelectStmt) bool {
	position := func(item *ast.ByItem) bool {
		_, ok := item.Expr.(*ast.PositionExpr)
		return ok
	}
	return n.OrderBy != nil && slices.ContainsFunc(n.OrderBy.Items, position) ||
		n.GroupBy != nil && slices.ContainsFunc(n.GroupBy.Items, position)
}

// block looks at a SELECT and at the queries in its FROM clause. What these cannot show lowers the
// plan; the error is the reason why the block itself cannot be observed. A block without a FROM clause,
// or none of whose sources shows anything, has no list.
func (pl *planner) block(n *ast.SelectStmt) (*block, *usage, error) {
	if reason := collapsing(n); !reason.IsZero() {
		return nil, nil, refusal(reason)
	}
	leave := pl.enterWith(n.With)
	defer leave()
	use := pl.inspectSelect(n)
	b := &block{n: n, grouped: use.aggregate || n.GroupBy != nil, dialect: pl.session.Dialect}
	switch {
	case use.window && b.grouped && pl.session.Dialect == MariaDB:
		return nil, nil, refusal(history.ReasonWindowFunction) // beside JSON_ARRAYAGG, ORDER BY is not obeyed
	case b.grouped && pl.session.Dialect == MySQL && changesTypes(n) && !pl.nesting.joined:
		return nil, nil, refusal(history.ReasonAggregate)
	case use.outward && !b.grouped, b.grouped && n.Having != nil && n.Limit != nil:
		// Whether there is one row or many is not certain.
		return nil, nil, refusal(history.ReasonAggregate)
	case n.From == nil:
		return b, use, nil
	}
	b.srcs = flatten(n.From.TableRefs)
	pl.nesting.counted = nil
	if pl.countsRows(b, use) {
		pl.nesting.counted = b.srcs[0]
	}
	leaveJoins := pl.enterJoins(n, b.srcs)
	err := pl.resolve(b.srcs)
	leaveJoins()
	if err != nil {
		return nil, nil, err
	}
	pl.lookIntoGroups(b)
	if behind := pl.lookBehind(b); !b.srcs.observable() && !behind && len(pl.besides) == 0 {
		return b, use, nil
	}
	if pl.mayWarn(n, b.srcs) {
		return nil, nil, refusal(history.ReasonWarnings)
	}
	if !pl.nesting.joined && (pl.changesPlannedTypes(n, b.srcs) ||
		pl.session.Dialect == MySQL && groupsByBits(n, b.srcs)) {
		return nil, nil, refusal(history.ReasonAggregate)
	}
	if b.list, err = pl.selectList(n); err != nil {
		return nil, nil, err
	}
	if err := pl.checkBlock(b); err != nil {
		return nil, nil, err
	}
	pl.downgradeBlock(b, use)
	return b, use, nil
}
