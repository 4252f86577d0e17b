package postgres

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// INSERT ... SELECT returns what it wrote. What it read a query in its RETURNING clause tells: that has the FROM and
// WHERE clauses of the client's own, is computed once, in the snapshot of the statement, and shown with the first
// row (ADR 32). It has those items of the client's list, too, that have subqueries: their copies stand in the place of
// the list.

// identitiesRead is the column that tells what was read, maxTold how many bytes of it are shown at most.
const (
	identitiesRead = "isotap_read.identities"
	maxTold        = 1 << 20
)

// limitedRows is what such a copy calls the rows that a LIMIT lets through.
const limitedRows = "limited_rows"

// sources makes an INSERT tell the rows that its query, and the subqueries in it, read. It returns the reason why it
// does not tell all of them.
func (w *write) sources(n *ast.InsertStmt) (missed history.Reason) {
	q, ok := n.SelectStmt.(*ast.SelectStmt)
	if !ok || len(nodes(q.ValuesLists)) > 0 || !readsTables(q) {
		return history.Reason{}
	}
	w.inserted = q
	p, err := w.placed(n)
	ok = err == nil && !w.masked && !w.holdsUnlogged()
	if ok {
		w.with, ok = w.clauseBefore(n, p)
	}
	if !ok {
		return history.ReasonInsertSelect
	}
	missed = w.arms(q, p, n.OnConflictClause != nil || leavesOut(q))
	if missed.IsZero() && hasSubquery(q) {
		w.looked = !slices.ContainsFunc(w.client, hasSubquery) && (n.OnConflictClause == nil ||
			w.toldBeside == ast.Node(n.OnConflictClause) || !hasSubquery(n.OnConflictClause))
	}
	return missed
}

// arms makes each query of a set operation tell its rows. It returns the reason why not all of them are told.
func (w *write) arms(q *ast.SelectStmt, p *placer, conflict bool) history.Reason {
	switch {
	case q.WithClause != nil && q != w.inserted, passesOver(q) || q.Op != ast.SETOP_NONE && locks(q),
		(q.LimitCount != nil || q.LimitOffset != nil) && (q.Op != ast.SETOP_NONE || w.session.Serializable):
		// Which rows are chosen, and what they are once they are locked, a query beside cannot tell.
		return history.ReasonInsertSelect
	case q.Op != ast.SETOP_NONE:
		left := w.arms(q.Larg, p, conflict)
		return cmp.Or(left, w.arms(q.Rarg, p, conflict))
	case !hasSubquery(q) && (len(nodes(q.FromClause)) == 0 || w.readsNoTable(q)):
		return history.Reason{}
	}
	return w.tell(q, p, conflict)
}

// readsNoTable reports whether a query reads only what parts of the WITH clause wrote.
func (w *write) readsNoTable(q *ast.SelectStmt) bool {
	u, err := w.inspect(&ast.SubLink{Subselect: &ast.SelectStmt{FromClause: q.FromClause}})
	return err == nil && len(w.silent) > 0 && !u.function && !w.readsBeside(u)
}

// An armCopy is the copy of a query of an INSERT that tells what it reads.
type armCopy struct {
	*excerpt
	told *planner
	// rows are the tokens of the query's FROM and WHERE clauses, listed says that the copy has items of its list.
	rows   span
	listed bool
	// ordered says that it has the query's LIMIT, by an order that tells all rows apart.
	ordered bool
}

// tell adds a column that has the rows of one query, and returns the reason why it does not tell all of them.
func (w *write) tell(q *ast.SelectStmt, p *placer, conflict bool) history.Reason {
	at := p.queries[q]
	a, ok := w.copied(q, p)
	if ok {
		ok = w.telling(q, a)
	}
	if ok && a.told.plan.Observation == history.Nothing {
		return history.Reason{}
	}
	limit, plain := 0, true
	if !a.ordered {
		limit, plain = w.st.limitAt(q, a.rows.to, at.to)
	}
	if !ok || !plain || len(a.told.plan.Result.Sources) == 0 || !w.repeats(q, a) {
		return history.ReasonInsertSelect
	}
	c := column{sources: a.told.plan.Result.Sources}
	for i := range c.sources {
		c.sources[i].Joint, c.sources[i].Whole = -1, c.sources[i].Whole && c.sources[i].Beside
	}
	c.sources[0].Joint, c.sources[0].Whole = len(c.sources), c.sources[0].Whole || conflict
	c.add(edit{text: firstRow})
	ends := " END"
	if locks(q) {
		ends += " END"
		c.add(edit{text: "CASE WHEN pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.~~) 'read%' THEN " +
			w.missing(len(c.sources)) + " ELSE "})
	}
	if limit > 0 {
		ends += " END"
		w.unlessMore(&c, a.rows, limit)
	}
	shown := identitiesRead
	if w.part != nil && len(c.sources) == 1 {
		shown = "COALESCE(pg_catalog.array_to_string(" + identitiesRead + ", '" + ElementSeparator + "'), '')"
	}
	c.add(edit{text: "(SELECT CASE WHEN pg_catalog.pg_column_size(" +
		identitiesRead + ") OPERATOR(pg_catalog.>) " + strconv.Itoa(maxTold) + " THEN " +
		w.missing(len(c.sources)) + " ELSE " + shown + " END FROM ("})
	c.excerpt(a.excerpt, a.told.sorted())
	c.add(edit{text: ") AS isotap_read (identities))" + ends})
	w.columns = append(w.columns, c)
	return a.told.plan.Reason
}

// copied returns the copy of a query. It reports whether there can be one.
func (w *write) copied(q *ast.SelectStmt, p *placer) (*armCopy, bool) {
	at := p.queries[q]
	a := &armCopy{excerpt: &excerpt{}}
	if a.rows.from, a.rows.to = w.st.rowsOf(at); a.rows.from < 0 {
		a.rows = p.whereClause(at.listEnd+1, at.to)
		if a.rows.from < a.rows.to {
			a.rows.from-- // the WHERE before it
		}
	}
	items, ok := w.queried(q, at)
	if !ok || hasSubquery(q.GroupClause) || hasSubquery(q.HavingClause) || hasSubquery(q.SortClause) ||
		hasSubquery(q.WindowClause) || hasSubquery(q.LimitCount) || hasSubquery(q.LimitOffset) ||
		hasSubquery(q) && (locks(q) || w.session.Serializable || !w.runsSubqueriesAgain()) {
		return a, false
	}
	a.listed, a.ordered = len(items) > 0, w.byKeys(q)
	w.with.add(a.excerpt, w.st)
	if a.ordered {
		a.add("SELECT FROM (")
	}
	a.add("SELECT ")
	for i, item := range items {
		if i > 0 {
			a.add(", ")
		}
		a.take(w.st, item.from, item.to)
	}
	if len(items) > 0 {
		a.add(" ")
	}
	if a.rows.from < a.rows.to {
		a.take(w.st, a.rows.from, a.rows.to)
	}
	if a.ordered {
		a.add(" ")
		a.take(w.st, a.rows.to, at.to)
		a.add(") AS " + limitedRows)
	}
	return a, true
}

// queried returns the items of a query's list that have subqueries, which are evaluated for each row that it reads. It
// reports whether that is so.
func (w *write) queried(q *ast.SelectStmt, at querySpan) (items []span, ok bool) {
	if !hasSubquery(q.TargetList) {
		return nil, true
	}
	list := span{at.from + 1, at.listEnd + 1}
	if w.st.is(list.from, "ALL", "DISTINCT") {
		list.from++
	}
	spans := w.st.cut(list, ",")
	if len(spans) != len(nodes(q.TargetList)) || q.HavingClause != nil || len(nodes(q.DistinctClause)) > 0 || hasSet(q.GroupClause) {
		return nil, false
	}
	for i, item := range nodes(q.TargetList) {
		if hasSubquery(item) {
			items = append(items, spans[i])
		}
	}
	return items, true
}

// hasSet reports whether a GROUP BY clause has several groupings.
func hasSet(by *ast.NodeList) bool {
	return slices.ContainsFunc(nodes(by), func(n ast.Node) bool { _, set := n.(*ast.GroupingSet); return set })
}

// telling has the copy of a query tell what it reads, by one array. Where it shows less than it reads, as by a
// condition on groups, a flat copy of the copy does. It reports whether it can.
func (w *write) telling(q *ast.SelectStmt, a *armCopy) (ok bool) {
	a.told, ok = w.tellingAs(q, a.text, func(c *planner) {
		c.copies, c.listed, c.limited = true, a.listed, a.ordered
	})
	if a.told == nil || a.told.unread || a.listed || a.ordered {
		return ok
	}
	if told := a.told.plan.Observation; ok && (told == history.Exact || told == history.Nothing) {
		return ok
	}
	c := w.reader(q, a.text)
	tree, err := parse(c.readable(a.text))
	n, isSelect := tree.(*ast.SelectStmt)
	if err != nil || !isSelect {
		return ok
	}
	f, x, flat := c.flatCopy(n)
	if flat == nil || f.apart || len(f.left) > 0 {
		return ok
	}
	a.excerpt, a.told = x.of(a.excerpt), flat
	return true
}

// repeats reports whether the copy of a query chooses the same rows as the query does, in one snapshot, by the same
// plan where that matters, and does nothing else.
func (w *write) repeats(q *ast.SelectStmt, a *armCopy) bool {
	tree, err := parse(a.told.readable(a.text))
	if err != nil || !w.readsAlike(tree) {
		return false
	}
	for _, name := range slices.Concat(w.around, w.silent) {
		if mentions(tree, name) > 0 {
			return false // it would be computed for this, and at another time
		}
	}
	u, err := w.inspect(&ast.SubLink{Subselect: tree})
	if err != nil || u.function || u.volatile {
		return false
	}
	list, err := w.inspect(q.TargetList)
	if err != nil || (q.LimitCount != nil || q.LimitOffset != nil) && (list.function || !scalars(q.TargetList)) {
		return false // one row may become several
	}
	atOnce := q == w.inserted && list.aggregate && q.GroupClause == nil && q.LimitCount == nil && !hasSubquery(q)
	if n := tree.(*ast.SelectStmt); !atOnce {
		if a.listed {
			n.TargetList = nil // copies stand in its place
		}
		if w.mayFailBut(n) {
			return false // a row may be inserted, and another one refused, before the server comes to the one that fails
		}
	}
	alike := q.GroupClause == nil && q.HavingClause == nil && q.DistinctClause == nil &&
		q.SortClause == nil && q.WindowClause == nil
	if !w.session.Serializable {
		return true
	}
	return alike && !list.aggregate && !list.window
}

// unlessMore begins what is shown of a query with a LIMIT, of which some tokens are the FROM and WHERE clauses: only if
// it leaves out no row it is known which ones it read.
func (w *write) unlessMore(c *column, rows span, limit int) {
	x := &excerpt{}
	most := func() {
		x.add("LEAST(" + strconv.Itoa(MaxAside) + ", ")
		x.take(w.st, limit, limit+1)
		x.add(")")
	}
	x.add("CASE WHEN (SELECT pg_catalog.count(*) FROM (")
	w.with.add(x, w.st)
	x.add("SELECT ")
	x.take(w.st, rows.from, rows.to)
	x.add(" LIMIT 1 OPERATOR(pg_catalog.+) ")
	most()
	x.add(") AS isotap_counted) OPERATOR(pg_catalog.>) ")
	most()
	x.add(" THEN " + w.missing(len(c.sources)) + " ELSE ")
	c.excerpt(x, nil)
}
