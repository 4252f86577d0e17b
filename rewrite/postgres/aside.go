package postgres

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// INTERSECT and EXCEPT show rows of one side alone, UNION one of those that are equal, HAVING leaves groups out, and
// what counts the rows of these shows none: what they read cannot stand beside what they show. It stands beside all of
// it (ADR 62). The client's query goes into the FROM clause of another that has hidden columns, one for each table of
// each part of it: arrays of the rows that the part's FROM and WHERE clauses find, computed once, in the same
// snapshot, and shown with each row. Where there is none a row of NULLs stands for it that the client does not see.

const (
	// MaxAside is how many identities a part of a set operation shows at most.
	MaxAside = 1000
	// maxAsideColumns is how many columns of this kind a statement gets.
	maxAsideColumns = 12
	// clientName and asideRows are the names of the client's query in the FROM clause, and of its rows.
	clientName = "isotap_client"
	asideRows  = "isotap_rows"
)

// readAside has a SELECT that is planned already, or was refused by an error, show what it reads aside, if that makes
// it exact. Otherwise it returns the error.
func (pl *planner) readAside(refused error) error {
	reason := pl.plan.Reason
	if refused != nil {
		reason = reasonOf(refused)
	}
	switch reason {
	case history.ReasonSetOperation, history.ReasonGroupsLeftOut, history.ReasonDistinct, history.ReasonSubquery, history.ReasonWholeRow,
		history.ReasonWith, history.ReasonWindowFunction, history.ReasonPlan:
	default:
		return refused
	}
	tree, err := parse(pl.readable(pl.st.source()))
	n, ok := tree.(*ast.SelectStmt)
	if pl.unread || !pl.runsSubqueriesAgain() || len(pl.parts) > 0 || pl.st.reserved() != nil ||
		err != nil || !ok {
		return refused
	}
	for i, tell := range []func(*planner, *ast.SelectStmt) error{(*planner).aside, (*planner).tellFlattened, (*planner).tellTree, (*planner).tellDistinct} {
		plan, q := *pl.plan, *pl
		plan.Observation, plan.Reason, plan.Result = history.Exact, history.Reason{}, Result{}
		q.plan, q.edits = &plan, nil
		if i > 0 && pl.session.Serializable {
			break
		}
		if i < 2 && reason == history.ReasonWholeRow {
			continue
		}
		if tell(&q, n) == nil && plan.Observation == history.Exact {
			*pl.plan, pl.edits, pl.whole = plan, q.edits, q.whole
			return nil
		}
	}
	return refused
}

// showsLess reports whether a query may show less than it reads, or takes all rows of one in its FROM clause.
func showsLess(n *ast.SelectStmt) bool {
	return n.Op != ast.SETOP_NONE || n.HavingClause != nil || len(nodes(n.DistinctClause)) > 0 ||
		n.DistinctClause != nil && n.LimitCount != nil || takesAllOf(n) != nil
}

// takesAllOf returns the query that one has in its FROM clause alone, and takes all rows of, whatever it makes of
// them; nil where it does not. Of UNION ALL the server makes one query with the other, and its aggregates may then be
// answered from an end of an index; subqueries in a select list it need not evaluate.
func takesAllOf(n *ast.SelectStmt) *ast.SelectStmt {
	within := allOf(n, false)
	if within == nil || n.HavingClause != nil || hasSubquery(n.DistinctClause) || hasSubquery(n.WindowClause) ||
		within.Op == ast.SETOP_UNION && within.All || within.Op == ast.SETOP_NONE && hasSubquery(within.TargetList) {
		return nil
	}
	return within
}

// aside puts the statement into a SELECT that shows what it reads.
func (pl *planner) aside(n *ast.SelectStmt) error {
	missed := refusal(history.ReasonSubquery)
	u, err := pl.inspect(&ast.SubLink{Subselect: n})
	if !showsLess(n) || err != nil || u.function || u.volatile || u.unsure || locks(n) {
		return missed
	}
	r := newReading(pl, n, nil)
	if err := r.places.place(n, 0, len(pl.st.toks)); err != nil {
		return err
	}
	l := &looker{reading: r, behind: true}
	if !l.parts(n) || len(l.found) == 0 || len(l.found) > maxAsideColumns || l.late && n.Op == ast.SETOP_UNION && n.All {
		return missed
	}
	return l.wrap(n, "")
}

// parts looks into the queries of a set operation. It reports whether all that they read can be shown.
func (l *looker) parts(n *ast.SelectStmt) bool {
	if n.WithClause != nil || n.IntoClause != nil || hasSubquery(n.SortClause) ||
		(n.LimitCount != nil || n.LimitOffset != nil) && !l.readsAll(n) {
		return false // of what a LIMIT leaves out not all is read
	}
	if within := takesAllOf(n); within != nil {
		l.ofPart = l.asksOf(bare(nodes(n.FromClause)[0]).(*ast.RangeSubselect), (&link{asked: l.ofPart}).items(n), nil)
		return l.parts(within)
	}
	if n.Op == ast.SETOP_NONE {
		return l.aPart(n)
	}
	l.ofPart = nil // it compares all columns
	if n.Op != ast.SETOP_UNION && l.session.Version >= 18 {
		return false // where the left side is empty, the right one is not read
	}
	return l.parts(n.Larg) && l.parts(n.Rarg)
}

// readsAll reports whether the server reads all rows of a UNION or DISTINCT, whatever its LIMIT is. From 17 on it may
// merge two in the order of their indexes. A LIMIT of 0 reads nothing: whether it is that the text alone tells, or the
// copy where it is a parameter.
func (l *looker) readsAll(n *ast.SelectStmt) bool {
	union := n.Op == ast.SETOP_UNION && !n.All && l.session.Version < 17
	if n.LimitOffset != nil || !union && !l.sortsAll(n) {
		return false
	}
	if param, ok := n.LimitCount.(*ast.ParamRef); ok && n.Op == ast.SETOP_NONE {
		l.limit = []gate{{param.Number, true}}
		return true
	}
	limit, ok := n.LimitCount.(*ast.A_Const)
	if !ok {
		return false
	}
	number, ok := limit.Val.(*ast.Integer)
	l.plan.ofLiterals = true
	return ok && number.IVal > 0
}

// sortsAll reports whether a query is DISTINCT of columns of a table of which no index begins with one: the server
// sorts them, or puts them into a hash table. A condition on one might fix its value, so that one row would do. One on
// another may have an index give the rows in the order of columns behind that one.
func (l *looker) sortsAll(n *ast.SelectStmt) bool {
	from := nodes(n.FromClause)
	if n.DistinctClause == nil || len(nodes(n.DistinctClause)) > 0 || hasSubquery(n.WhereClause) || n.GroupClause != nil ||
		n.HavingClause != nil || len(from) != 1 {
		return false
	}
	item, ok := bare(from[0]).(*ast.RangeVar)
	if !ok {
		return false
	}
	t, _ := l.table(item)
	if t == nil || t.Partitioned || len(t.Leaves) > 0 {
		return false
	}
	s, err := l.sourceOf(t, item)
	if err != nil {
		return false
	}
	rels := []*relation{{ref: s.ref, base: &s}}
	return !slices.ContainsFunc(nodes(n.TargetList), func(item ast.Node) bool {
		ref, ok := shownColumn(item)
		if !ok {
			return true
		}
		column, found, ok := columnAround(fields(ref), rels)
		i := slices.Index(s.names, column.name)
		return !ok || !found || i < 0 || asksOfColumn(n.WhereClause, column) || slices.ContainsFunc(l.indexesOf(t), func(x Index) bool {
			of := x.Columns[:min(1, len(x.Columns))]
			if n.WhereClause != nil {
				of = x.Columns
			}
			return len(of) == 0 || slices.Contains(of, "") || slices.Contains(of, t.Columns[i].Name)
		})
	})
}

// asksOfColumn reports whether a condition may name a column.
func asksOfColumn(where ast.Node, column liftedColumn) (may bool) {
	if pgtree.Missing(where) {
		return false
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := fields(ref)
			may = may || last(ref) == column.name || last(ref) == "*" || len(names) == 1 && last(ref) == column.ref
		}
		return !may
	}, where)
	return may || !whole
}

// aPart looks into a query that is no set operation.
func (l *looker) aPart(n *ast.SelectStmt) bool {
	if len(nodes(n.FromClause)) == 0 {
		return n.WhereClause == nil && !hasSubquery(n.TargetList) && len(nodes(n.ValuesLists)) == 0 &&
			!hasSubquery(n.HavingClause)
	}
	at, placed := l.places.queries[n]
	u, err := l.inspect(n.TargetList, n.HavingClause, n.SortClause)
	if !placed || err != nil || len(nodes(n.TargetList)) == 0 || !l.st.is(at.from, "SELECT") ||
		l.mayFail(n.FromClause) || hasSubquery(n.GroupClause) || hasSubquery(n.DistinctClause) ||
		n.WindowClause != nil && hasSubquery(n.WindowClause) {
		return false
	}
	grouped := u.aggregate || n.GroupClause != nil || n.HavingClause != nil
	if n.HavingClause != nil && (!groupsBy(n.GroupClause) || !l.ofGroups(n.HavingClause)) ||
		grouped && n.GroupClause == nil && extremes(u) {
		return false // it may read no row, or some only, or the ends of an index
	}
	q := &subquery{query: n, whole: true, most: MaxAside, joined: n.FromClause, gates: slices.Clone(l.limit),
		optional: make(map[*source]bool)}
	for _, item := range nodes(n.FromClause) {
		if !l.tables(q, item, link{SubLink: &ast.SubLink{Subselect: n}}, false) {
			return false
		}
	}
	for _, s := range q.tables {
		if n.WhereClause == nil && s.table.Rows > MaxAside {
			return false
		}
	}
	q.from = l.places.clause(at.from+1, at.to)
	if !l.st.is(q.from, "FROM") {
		return false
	}
	q.where = l.places.clause(q.from+1, at.to)
	if q.end, q.fromEnd = q.where, q.where; l.st.is(q.where, "WHERE") && q.where < at.to {
		q.end = l.places.clause(q.where+1, at.to)
	}
	asked := link{SubLink: &ast.SubLink{Subselect: n}, asked: l.ofPart}
	return l.seeInto(q, l.places.queries, nil) && l.leaveOut(q, asked) && l.within(q, u, grouped)
}

// A condition that may fail for a row fails in the client's query, too, if the server has that test the same rows. It
// does where the condition is one comparison and there is one table: nothing chooses rows before it. What is read aside
// then waits for the last row of the client's, of which a window function knows: whatever fails has failed by then.

// computing are operators and functions that always give the same of the same values.
var computing = []string{"+", "-", "*", "/", "%", "||", "abs", "mod", "round", "floor", "ceil", "char_length", "length", "lower",
	"upper", "btrim", "ltrim", "rtrim", "substring", "concat"}

// testsEveryRow reports whether the server surely tests a part's condition for each row of its table.
func (l *looker) testsEveryRow(n *ast.SelectStmt, at querySpan) bool {
	where, ok := bare(n.WhereClause).(*ast.A_Expr)
	from := nodes(n.FromClause)
	if !ok || where.Kind != ast.AEXPR_OP || len(from) != 1 || n.DistinctClause != nil ||
		!slices.ContainsFunc(comparisons, func(name string) bool { return isString(nodes(where.Name), name) }) {
		return false
	}
	if _, ok := bare(from[0]).(*ast.RangeVar); !ok || l.st.hasParams(l.places.whereClause(at.listEnd+1, at.to)) {
		return false // an index is looked up with a parameter before there is a row
	}
	bad := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		name := ""
		switch n := n.(type) {
		case *ast.SubLink, *ast.BoolExpr, *ast.RowExpr, *ast.TypeCast, *ast.A_Indirection:
			bad = true
		case *ast.A_Expr:
			bad = bad || n.Kind != ast.AEXPR_OP || len(nodes(n.Name)) != 1
			name = lastName(n.Name)
		case *ast.FuncCall:
			bad = bad || n.Over != nil || len(nodes(n.Funcname)) > 1 && !isString(nodes(n.Funcname)[:1], "pg_catalog")
			name = lastName(n.Funcname)
		default:
			return !bad
		}
		bad = bad || !slices.Contains(computing, name)
		return !bad
	}, where.Lexpr, where.Rexpr)
	return whole && !bad
}

// lastName is the last of the parts of a name.
func lastName(name *ast.NodeList) string {
	parts := nodes(name)
	if len(parts) == 0 {
		return ""
	}
	s, ok := parts[len(parts)-1].(*ast.String)
	if !ok {
		return ""
	}
	return s.SVal
}

// ofGroups reports whether each part of a HAVING clause is of an aggregate: the server has others choose rows, as WHERE
// does.
func (pl *planner) ofGroups(having ast.Node) bool {
	if n, ok := bare(having).(*ast.BoolExpr); ok && n.Boolop == ast.AND_EXPR {
		return !slices.ContainsFunc(nodes(n.Args), func(part ast.Node) bool { return !pl.ofGroups(part) })
	}
	u, err := pl.inspect(having)
	return err == nil && u.aggregate
}

// within looks into the subqueries of a part, and adds the columns that show what it reads.
func (l *looker) within(q *subquery, u *usage, grouped bool) bool {
	n := q.query
	rels := q.relations()
	l.block = &block{n: n, rels: rels}
	filters, shown, at := seeker{planner: l.planner}, seeker{planner: l.planner}, l.places.queries[n]
	mayFail := l.failing(false, n.WhereClause)
	l.late = l.late || mayFail
	if u.reachesOut(rels) || mayFail && !l.testsEveryRow(n, at) ||
		!filters.seek(n.WhereClause, l.places.whereClause(at.listEnd+1, at.to), ofAll, nil) ||
		!certain(n.HavingClause, &shown.links) || !shown.list(n.TargetList, span{at.from + 1, at.listEnd + 1}) {
		return false
	}
	for i, at := range append(filters.links, shown.links...) {
		if l.readsNothing(at) && i >= len(filters.links) {
			continue
		}
		if i < len(filters.links) && !at.harmless() {
			return false // the copy of the condition may come to more rows than the client's
		}
		all, ok := l.look(at, rels, 2)
		if !ok || slices.ContainsFunc(all, func(w *subquery) bool {
			return w.whole && len(w.tests) > 0 || i >= len(filters.links) && grouped && !w.whole ||
				slices.ContainsFunc(w.within, func(v *subquery) bool { return v.whole })
		}) {
			return false // it may have not been run
		}
		q.within = append(q.within, all...)
	}
	if l.session.Serializable && (!l.scansAll(q) || !q.ofOneTable()) {
		return false
	}
	l.asideColumns(q)
	return true
}

// asideColumns adds the columns that show what a part reads.
func (l *looker) asideColumns(q *subquery) {
	inner := q.within
	q.within = nil
	l.columns(nil, q)
	for _, w := range inner {
		before := len(l.found)
		if !w.whole {
			l.columns([]*subquery{q}, w)
			continue
		}
		l.columns(nil, w)
		for _, c := range l.found[before:] {
			c.unless = q
		}
	}
}

// wrap puts the client's query, and what keeps it apart, into the SELECT around it, and proves that it is read as that.
func (l *looker) wrap(n *ast.SelectStmt, behind string) error {
	var columns spelling
	var sources []Source
	begin, end := "", ""
	if l.late {
		begin, end = "CASE WHEN pg_catalog.count(*) OVER () OPERATOR(pg_catalog.>) 0 THEN ", " END"
	}
	for i, c := range l.found {
		// What took the client long would take as long again.
		intime := l.elapsed("<", cmp.Or(l.rewriter.options.CollectFor, collectFor))
		columns.text(", " + begin + "(SELECT CASE WHEN " + intime + " THEN ")
		columns = append(columns, c.spell(l.reading, l.block)...)
		columns.text(" ELSE " + lacking + " END)" + end + " AS " + rewrite.NamePrefix + strconv.Itoa(i+1))
		sources = append(sources, c.source(l.block))
	}
	return l.wrapIn(n, nil, columns, sources, behind)
}

// wrapIn puts the client's query, with columns of its own beside its rows, into a SELECT with columns of these sources.
// What stands behind it there keeps the server from making it one with that.
func (l *looker) wrapIn(n *ast.SelectStmt, beside *besideRows, columns spelling, sources []Source, behind string) error {
	result := Result{Reply: rewrite.Trimmed, Tag: "SELECT ", Sources: append([]Source{{Present: true}}, sources...)}
	if beside != nil {
		result.Sources = append(slices.Clone(beside.sources), result.Sources...)
		n.TargetList.Items = append(n.TargetList.Items, beside.items...)
		l.insertSpelled(l.places.queries[n].listEnd, ", ", beside.columns)
	}
	const head = "SELECT " + asideRows + ".*"
	from := spelling{{text: " FROM (SELECT 1) AS isotap_one LEFT JOIN (SELECT " + clientName + ".*, "}}
	if l.present == nil {
		from.text("true")
	}
	from = append(from, l.present...)
	from.text(" AS " + presentName + " FROM (")
	tail := ") AS " + clientName + behind + ") AS " + asideRows + " ON true"
	wanted, err := parse(l.readable(head + columns.in(l.st) + from.in(l.st) + "SELECT 1" + tail))
	if err != nil {
		return err
	}
	if !holds(wanted, n) {
		return refusal(history.ReasonUnparsable)
	}
	first, to := l.st.span()
	at := l.st.toks[0].Start
	for _, e := range slices.Concat(spelling{{text: head}}, columns, from) {
		e.start, e.end = at, at
		l.edits = append(l.edits, e)
	}
	l.insertAfter(len(l.st.toks)-1, tail)
	if !l.session.utf8() && slices.ContainsFunc(l.edits, func(e edit) bool { return !ascii(e.text) }) {
		return refusal(history.ReasonCharset) // the schema spells names in UTF-8
	}
	tree, err := parse(l.readable(spliced(l.st.text, first, to, l.sorted())))
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(tree, wanted) {
		return refusal(history.ReasonUnparsable)
	}
	l.plan.Result = result
	return nil
}

// holds puts a query in the place of the innermost one in the FROM clause of the SELECT that is to hold it.
func holds(outer ast.Stmt, n *ast.SelectStmt) (done bool) {
	pgtree.Walk(func(node ast.Node) bool {
		in, ok := node.(*ast.RangeSubselect)
		if ok && in.Alias != nil && in.Alias.AliasName == clientName && !done {
			in.Subquery, done = n, true
		}
		return !done
	}, outer)
	return done
}

// unlessNone spells what a column shows only if a part has rows: where it has none, a subquery of it need not have run.
func (c *besides) unlessNone(st *statement, s spelling) spelling {
	if c.unless == nil {
		return s
	}
	var all spelling
	all.text("CASE WHEN EXISTS (SELECT ")
	all.copyFrom(st, c.unless)
	c.unless.condition(st, &all, "")
	all.text(") THEN ")
	all = append(all, s...)
	all.text(" END")
	return all
}

// atMost is how many identities of the subquery's rows are shown.
func (q *subquery) atMost() int {
	if q.most > 0 {
		return q.most
	}
	return MaxBeside
}
