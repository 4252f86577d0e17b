package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// insert makes an INSERT return the versions that it stored.
func (pl *planner) insert(n *ast.InsertStmt) error {
	around := pl.ctes
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.around = around
	inConflict := w.readsInConflict(n)
	if q, ok := n.SelectStmt.(*ast.SelectStmt); ok && (len(nodes(q.ValuesLists)) > 0 || isRow(q)) {
		w.readsInValues(n)
	} else {
		w.readsInArms(n)
	}
	if err := w.settle(n.SelectStmt, n.OnConflictClause); err != nil {
		return err
	}
	w.sources(n)
	w.inserts()
	w.values = endsWithValues(n)
	if c := n.OnConflictClause; c != nil && c.Action == ast.ONCONFLICT_UPDATE {
		if err = w.conflict(c); err == nil {
			w.tellConflicting(n, inConflict)
		}
	} else {
		w.left()
	}
	if err != nil {
		return err
	}
	return w.returning()
}

// isRow reports whether a query makes one row at most, of no table's: SELECT 1, 'x' WHERE NOT EXISTS (...).
func isRow(q *ast.SelectStmt) bool {
	return q.Op == ast.SETOP_NONE && len(nodes(q.FromClause)) == 0 && q.WithClause == nil && q.GroupClause == nil &&
		q.HavingClause == nil && q.DistinctClause == nil && q.WindowClause == nil && q.LockingClause == nil
}

// readsInValues looks into the subqueries among the values of an INSERT, and in the condition of its only row.
func (w *write) readsInValues(n *ast.InsertStmt) {
	where := n.SelectStmt.(*ast.SelectStmt).WhereClause
	s := writing{stmt: n, query: &ast.SelectStmt{WithClause: n.WithClause, TargetList: n.ReturningList,
		WhereClause: where}}
	if n.WithClause != nil {
		w.readsFrom(s)
	} else if hasSubquery(where) || slices.ContainsFunc(append(assigned(n), w.client...), hasSubquery) {
		w.looked, _ = w.lookInto(nil, where, assigned(n), s.others())
	}
}

// endsWithValues reports whether nothing stands behind VALUES and its rows.
func endsWithValues(n *ast.InsertStmt) bool {
	q, ok := n.SelectStmt.(*ast.SelectStmt)
	return ok && len(nodes(q.ValuesLists)) > 0 && q.WithClause == nil && q.Op == ast.SETOP_NONE &&
		len(nodes(q.SortClause)) == 0 && q.LimitCount == nil && q.LimitOffset == nil && q.LockingClause == nil &&
		n.OnConflictClause == nil && len(nodes(n.ReturningList)) == 0
}

// readsTables reports whether a query may have rows of tables for its own.
func readsTables(n *ast.SelectStmt) bool {
	return n.WithClause != nil || n.Op != ast.SETOP_NONE || len(nodes(n.FromClause)) > 0
}

// conflict adds what tells inserted rows from updated ones.
func (w *write) conflict(n *ast.OnConflictClause) error {
	w.updates(nodes(n.TargetList))
	switch {
	case w.target.tagged: // the list tells an inserted row, which has one tag
		w.left()
		return w.append("CONFLICT", nodes(n.TargetList))
	case w.session.Version >= 18 && w.target.table.Partitioned && !w.versions.hide(w.target.ref):
		w.left()
		w.id.add(ItemInserted, "("+quoted(w.versions.old)+".ctid IS NULL)")
	case w.target.table.Partitioned:
		return refusal(history.ReasonOnConflict) // there is no xmax to tell by
	case w.both:
		w.replaced()
		w.id.add(ItemInserted, "("+quoted(w.versions.old)+".ctid IS NULL)")
	default:
		w.left()
		// A row that was just inserted is locked by nobody, an updated one by its updater.
		w.id.add(ItemInserted, "("+w.target.system("xmax")+" OPERATOR(pg_catalog.=) '0')")
	}
	w.keyed(w.assigns(nodes(n.TargetList)), nil)
	return nil
}

// A conflicting column shows what a subquery of the ON CONFLICT clause reads. One that is tested is of the condition,
// and may have been evaluated for rows that are neither inserted nor updated.
type conflicting struct {
	*besides
	tested bool
}

// readsInConflict looks into the subqueries of what ON CONFLICT assigns and of its condition, and returns the columns
// that show what they read. RETURNING has the row as it is, and not the one that was to be inserted.
func (w *write) readsInConflict(n *ast.InsertStmt) (found []conflicting) {
	c := n.OnConflictClause
	if c == nil || c.Action != ast.ONCONFLICT_UPDATE || !hasSubquery(c.TargetList) && !hasSubquery(c.WhereClause) ||
		w.target.tagged || !w.runsSubqueriesAgain() {
		return nil
	}
	links, ok := w.linksInConflict(c)
	if !ok {
		return nil
	}
	target, excluded := &relation{ref: w.target.ref, base: &w.target}, &relation{ref: "excluded", base: &w.target}
	around := []*relation{target, excluded}
	l := &looker{reading: newReading(w.planner, nil, nil), sc: w.seenByPart(), behind: true, block: &block{rels: around[:1]}}
	for _, link := range links {
		if w.readsNothing(link.link) {
			continue
		}
		all, ok := l.look(link.link, around, 1)
		if !ok || link.testsRefer(around[1:]) {
			return nil
		}
		for _, q := range all {
			l.found = nil
			l.columns(nil, q)
			if mayReferTo(q.query, q.own(), around[1:]) || !w.seesWritten(link.link, q, around[:1], nodes(c.TargetList), l.found) {
				return nil
			}
			for _, column := range l.found {
				found = append(found, conflicting{column, link.at == inCondition})
			}
		}
	}
	if len(found) > maxBesideColumns {
		return nil
	}
	w.toldBeside = c
	return found
}

// linksInConflict collects the subqueries of an ON CONFLICT clause.
func (w *write) linksInConflict(c *ast.OnConflictClause) (links []writtenLink, ok bool) {
	at := w.st.onConflict()
	s := seeker{planner: w.planner, fails: true, behind: true}
	add := func(at written) {
		for _, link := range s.links {
			links = append(links, writtenLink{link, at})
		}
		s.links = nil
	}
	for _, a := range nodes(c.TargetList) {
		if t, ok := a.(*ast.ResTarget); !ok || !s.seek(t.Val, at, anyValue, nil) {
			return nil, false
		}
	}
	add(inValues)
	if where := w.st.find(at.from, "WHERE"); where >= 0 {
		at.from = where + 1
	}
	if !s.seek(c.WhereClause, at, ofAll, nil) {
		return nil, false
	}
	add(inCondition)
	return links, true
}

// onConflict returns the tokens of DO UPDATE SET and what stands behind it, up to RETURNING.
func (st *statement) onConflict() span {
	to := st.find(0, "RETURNING")
	if to < 0 {
		to = len(st.toks)
	}
	for i := to - 1; i > 0; i-- {
		if st.is(i, "DO") && st.is(i+1, "UPDATE") && st.is(i+2, "SET") {
			return span{i + 3, to}
		}
	}
	return span{to, to}
}

// testsRefer reports whether what is tested for a subquery may name a column of relations.
func (at *link) testsRefer(rels []*relation) bool {
	return slices.ContainsFunc(at.tests, func(t test) bool {
		return t.node != nil && mayReferTo(&ast.SelectStmt{WhereClause: t.node}, nil, rels) ||
			t.ofNode != nil && mayReferTo(&ast.SelectStmt{WhereClause: t.ofNode}, nil, rels)
	})
}

// tellConflicting shows what subqueries read that ON CONFLICT evaluates. What it assigns is evaluated for the rows that
// are updated. So is its condition, but also for those that it leaves out: where no row was updated, nobody knows
// whether there are any, unless the only row was inserted.
func (w *write) tellConflicting(n *ast.InsertStmt, found []conflicting) {
	updated := slices.Index(w.id.items, ItemInserted)
	query, _ := n.SelectStmt.(*ast.SelectStmt)
	one := query != nil && len(nodes(query.ValuesLists)) == 1 && scalars(query.ValuesLists)
	for _, c := range found {
		b := &block{}
		c.asText = w.part != nil
		s := append(spelling{{text: "CASE WHEN NOT " + w.id.exprs[updated] + " THEN "}},
			c.spell(&reading{planner: w.planner}, b)...)
		switch {
		case !c.tested || !one:
		case c.asText:
			s.text(" ELSE ''")
		default:
			s.text(" ELSE '{}'::pg_catalog.text[]")
		}
		s.text(" END")
		shown := c.source(b)
		shown.Whole = shown.Whole && (c.tested || c.unless != nil)
		w.columns = append(w.columns, column{edits: s, text: s.in(w.st), sources: []Source{shown}})
	}
}

// INSERT ... SELECT returns what it wrote. What it read a query in its RETURNING clause tells: that has the FROM and
// WHERE clauses of the client's own, is computed once, in the snapshot of the statement, and shown with the first
// row (ADR 32).

// identitiesRead is the column that tells what was read, maxTold how many bytes of it are shown at most.
const (
	identitiesRead = "isotap_read.identities"
	maxTold        = 1 << 20
)

// sources makes an INSERT tell the rows that its query reads.
func (w *write) sources(n *ast.InsertStmt) {
	q, ok := n.SelectStmt.(*ast.SelectStmt)
	if !ok || len(nodes(q.ValuesLists)) > 0 || !readsTables(q) {
		return
	}
	w.inserted = q
	p, err := w.placed(n)
	ok = err == nil && !w.masked && !w.holdsUnlogged()
	if ok {
		w.with, ok = w.clauseBefore(n, p)
	}
	if !ok {
		w.downgrade(history.ReasonInsertSelect)
		return
	}
	w.arms(q, p, n.OnConflictClause != nil || leavesOut(q))
}

// placed places the query of an INSERT.
func (w *write) placed(n *ast.InsertStmt) (*placer, error) {
	p := &placer{statement: w.st, queries: make(map[*ast.SelectStmt]querySpan)}
	after := 0
	if n.WithClause != nil {
		var err error
		if after, err = p.with(n.WithClause, 0, len(w.st.toks)); err != nil {
			return nil, err
		}
	}
	from, to := w.st.inserted(after, n.OnConflictClause != nil)
	if from < 0 {
		return nil, errUnplaced
	}
	return p, p.place(n.SelectStmt.(*ast.SelectStmt), from, to)
}

// leavesOut reports whether a query may read rows and show none.
func leavesOut(q *ast.SelectStmt) bool {
	if q.Op == ast.SETOP_NONE {
		return q.HavingClause != nil
	}
	return q.Op != ast.SETOP_UNION || leavesOut(q.Larg) || leavesOut(q.Rarg)
}

// readsInArms looks into the subqueries of the query of an INSERT. They are run again as that query's own tables are:
// RETURNING shows what they read with the first row.
func (w *write) readsInArms(n *ast.InsertStmt) {
	q, ok := n.SelectStmt.(*ast.SelectStmt)
	if !ok || n.WithClause != nil || !w.runsSubqueriesAgain() || w.session.Serializable || w.holdsUnlogged() ||
		!hasSubquery(q) || n.OnConflictClause != nil && hasSubquery(n.OnConflictClause) ||
		slices.ContainsFunc(w.client, hasSubquery) || locks(q) {
		return
	}
	p, err := w.placed(n)
	if err != nil {
		return
	}
	r := newReading(w.planner, nil, nil)
	r.places = *p
	l := &looker{reading: r, behind: true}
	if !l.insertedBy(q) || len(l.found) > maxBesideColumns {
		return
	}
	w.looked = true
	for _, c := range l.found {
		c.asText = w.part != nil
		s := spelling{{text: firstRow}}
		limited := c.unless == nil && c.chain[0].query.LimitCount != nil
		if limited {
			limit, plain := w.st.limitAt(c.chain[0].query, c.chain[0].end, p.queries[c.chain[0].query].to)
			if !plain || c.asText {
				w.looked = false
				w.columns = nil
				return
			}
			s.unlessMore(w.st, c.chain[0], limit)
		}
		s = append(s, c.spell(r, l.block)...)
		if limited {
			s.text(" END")
		}
		s.text(" END")
		shown := c.source(l.block)
		shown.Whole = c.unless != nil || n.OnConflictClause != nil || leavesOut(q) // else nothing is read where no row is
		w.columns = append(w.columns, column{edits: s, text: s.in(w.st), sources: []Source{shown}})
	}
}

// insertedBy looks into the subqueries of what is inserted.
func (l *looker) insertedBy(n *ast.SelectStmt) bool {
	switch {
	case n.WithClause != nil, n.LimitOffset != nil, hasSubquery(n.SortClause), hasSubquery(n.LimitCount):
		return false
	case n.Op != ast.SETOP_NONE:
		return l.insertedBy(n.Larg) && l.insertedBy(n.Rarg)
	case !hasSubquery(n.TargetList) && !hasSubquery(n.WhereClause):
		return !hasSubquery(n.FromClause) && !hasSubquery(n.HavingClause) && !hasSubquery(n.GroupClause)
	}
	before := len(l.found)
	if !l.aPart(n) {
		return false
	}
	// What the part itself reads is told already.
	within := slices.DeleteFunc(slices.Clone(l.found[before:]),
		func(c *besides) bool { return len(c.chain) == 1 && c.unless == nil })
	l.found = append(l.found[:before], within...)
	return true
}

// unlessMore begins what is shown of an INSERT's query with a LIMIT only if that leaves out no row.
func (s *spelling) unlessMore(st *statement, q *subquery, limit int) {
	most := func() {
		s.text("LEAST(" + strconv.Itoa(MaxAside) + ", ")
		s.copy(st, limit, limit+1)
		s.text(")")
	}
	s.text("CASE WHEN (SELECT pg_catalog.count(*) FROM (SELECT ")
	s.copy(st, q.from, q.end)
	s.text(" LIMIT 1 OPERATOR(pg_catalog.+) ")
	most()
	s.text(") AS isotap_counted) OPERATOR(pg_catalog.>) ")
	most()
	s.text(" THEN " + lacking + " ELSE ")
}

// inserted returns the tokens of the query of an INSERT, which begins at token from; -1 where they are not found.
func (st *statement) inserted(from int, conflict bool) (_, to int) {
	for ; from < len(st.toks); from++ {
		if st.is(from, "SELECT", "WITH") {
			break
		}
	}
	for st.mark(from-1, "(") {
		from--
	}
	if to = st.find(from, "RETURNING"); to < 0 {
		to = len(st.toks)
	}
	if !conflict {
		return from, to
	}
	for i := to - 1; i > from; i-- {
		if st.is(i, "ON") && st.is(i+1, "CONFLICT") {
			return from, i
		}
	}
	return -1, -1
}

// arms makes each query of a set operation tell its rows.
func (w *write) arms(q *ast.SelectStmt, p *placer, conflict bool) {
	switch {
	case q.WithClause != nil && q != w.inserted, q.LimitOffset != nil, passesOver(q) || q.Op != ast.SETOP_NONE && locks(q),
		q.LimitCount != nil && (q.Op != ast.SETOP_NONE || w.session.Serializable):
		// Which rows are chosen, and what they are once they are locked, a query beside cannot tell.
		w.downgrade(history.ReasonInsertSelect)
	case q.Op != ast.SETOP_NONE:
		w.arms(q.Larg, p, conflict)
		w.arms(q.Rarg, p, conflict)
	case len(nodes(q.FromClause)) == 0, w.readsNoTable(q):
	case !w.tell(q, p.queries[q], conflict):
		w.downgrade(history.ReasonInsertSelect)
	}
}

// A query that locks rows inserts of the versions that it locks. Where the transaction goes by one snapshot these are
// the snapshot's, which the copy reads: were one of them replaced, that would be an error. At READ COMMITTED it is not
// known.

// passesOver reports whether a query may leave out rows that others have locked.
func passesOver(q *ast.SelectStmt) bool {
	return slices.ContainsFunc(nodes(q.LockingClause), func(c ast.Node) bool {
		locking, ok := c.(*ast.LockingClause)
		return !ok || locking.WaitPolicy == ast.LockWaitSkip
	})
}

// readsNoTable reports whether a query reads only what parts of the WITH clause wrote.
func (w *write) readsNoTable(q *ast.SelectStmt) bool {
	u, err := w.inspect(&ast.SubLink{Subselect: &ast.SelectStmt{FromClause: q.FromClause}})
	return err == nil && len(w.silent) > 0 && !u.function && !w.readsBeside(u)
}

// tell adds a column that has the rows of one query, and reports whether it could.
func (w *write) tell(q *ast.SelectStmt, at querySpan, conflict bool) bool {
	from, to := w.st.rowsOf(at)
	if from < 0 {
		return false
	}
	x := &excerpt{}
	w.with.add(x, w.st)
	x.add("SELECT ")
	x.take(w.st, from, to)
	pl, ok := w.telling(q, x.text)
	if ok && pl.plan.Observation == history.Nothing {
		return true
	}
	limit, plain := w.st.limitAt(q, to, at.to)
	if !ok || !plain || len(pl.plan.Result.Sources) == 0 || !w.repeats(q, from, to) {
		return false
	}
	if pl.plan.Observation != history.Exact && (pl.plan.Reason != history.ReasonSubquery || !w.looked) {
		w.downgrade(pl.plan.Reason)
	}
	c := column{sources: pl.plan.Result.Sources}
	for i := range c.sources {
		c.sources[i].Joint, c.sources[i].Whole = -1, false
	}
	c.sources[0].Joint, c.sources[0].Whole = len(c.sources), conflict
	c.add(edit{text: firstRow})
	if locks(q) {
		c.add(edit{text: "CASE WHEN pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.~~) 'read%' THEN " +
			w.missing(len(c.sources)) + " ELSE "})
	}
	if limit > 0 {
		w.unlessMore(&c, from, to, limit)
	}
	shown := identitiesRead
	if w.part != nil && len(c.sources) == 1 {
		shown = "COALESCE(pg_catalog.array_to_string(" + identitiesRead + ", '" + ElementSeparator + "'), '')"
	}
	c.add(edit{text: "(SELECT CASE WHEN pg_catalog.pg_column_size(" +
		identitiesRead + ") OPERATOR(pg_catalog.>) " + strconv.Itoa(maxTold) + " THEN " +
		w.missing(len(c.sources)) + " ELSE " + shown + " END FROM ("})
	c.excerpt(x, pl.sorted())
	c.add(edit{text: ") AS isotap_read (identities))"})
	if limit > 0 {
		c.add(edit{text: " END"})
	}
	if locks(q) {
		c.add(edit{text: " END"})
	}
	c.add(edit{text: " END"})
	w.columns = append(w.columns, c)
	return true
}

// telling has the copy of a query tell what it reads, by one array. It reports whether it can.
func (pl *planner) telling(q *ast.SelectStmt, text string) (*planner, bool) {
	return pl.tellingAs(q, text, func(*planner) {})
}

// tellingAs is as telling, by a planner that knows more of the copy.
func (pl *planner) tellingAs(q *ast.SelectStmt, text string, knows func(*planner)) (*planner, bool) {
	toks, _ := pgtoken.Scan(nil, text, pl.session.Backslashes)
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: &statement{text: text, toks: toks},
		plan: &Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact}}, of: q,
		ctes: pl.ctes, silent: pl.silent}
	knows(c)
	tree, err := parse(c.readable(text))
	if err != nil {
		return nil, false
	}
	n, ok := tree.(*ast.SelectStmt)
	return c, ok && c.selectRows(n) == nil
}

// firstRow begins what is shown with the first row that is inserted: the second position is computed once, with that
// row, and every further row moves the first one.
const firstRow = "CASE WHEN " + logPosition + " OPERATOR(pg_catalog.<=) (SELECT " + logPosition + ") THEN "

// limitAt returns the token of the number behind a query's LIMIT, which stands at its end; 0 where it has none. It
// reports whether that is all there is.
func (st *statement) limitAt(q *ast.SelectStmt, from, to int) (limit int, ok bool) {
	if q.LimitCount == nil {
		return 0, true
	}
	p := placer{statement: st}
	limit = p.findIn(from, to, "LIMIT") + 1
	return limit, limit > 0 && limit+1 == to && st.toks[limit].Kind == pgtoken.Number
}

// unlessMore begins what is shown of a query with a LIMIT, FROM and WHERE of which are the tokens [from, to): only if
// it leaves out no row it is known which ones it read.
func (w *write) unlessMore(c *column, from, to, limit int) {
	x := &excerpt{}
	most := func() {
		x.add("LEAST(" + strconv.Itoa(MaxAside) + ", ")
		x.take(w.st, limit, limit+1)
		x.add(")")
	}
	x.add("CASE WHEN (SELECT pg_catalog.count(*) FROM (")
	w.with.add(x, w.st)
	x.add("SELECT ")
	x.take(w.st, from, to)
	x.add(" LIMIT 1 OPERATOR(pg_catalog.+) ")
	most()
	x.add(") AS isotap_counted) OPERATOR(pg_catalog.>) ")
	most()
	x.add(" THEN " + w.missing(len(c.sources)) + " ELSE ")
	c.excerpt(x, nil)
}

// rowsOf returns the tokens of a query's FROM and WHERE clauses; -1 where it has none.
func (st *statement) rowsOf(at querySpan) (from, to int) {
	p := placer{statement: st}
	from = p.clause(at.from+1, at.to)
	if !st.is(from, "FROM") || from >= at.to {
		return -1, -1
	}
	if to = p.clause(from+1, at.to); st.is(to, "WHERE") && to < at.to {
		to = p.clause(to+1, at.to)
	}
	return from, to
}

// repeats reports whether a query's FROM and WHERE clauses, the tokens [from, to), choose the same rows when they are
// read a second time in one snapshot, by the same plan where that matters, and do nothing else.
func (w *write) repeats(q *ast.SelectStmt, from, to int) bool {
	if w.st.chooses(from, to) {
		return false
	}
	read := &ast.SelectStmt{FromClause: q.FromClause, WhereClause: q.WhereClause}
	if w.with != nil {
		read.WithClause = w.with.of
	}
	for _, name := range slices.Concat(w.around, w.silent) {
		if mentions(read, name) > 0 {
			return false // it would be computed for this, and at another time
		}
	}
	u, err := w.inspect(q.FromClause, q.WhereClause)
	if err != nil || u.function || u.volatile {
		return false
	}
	list, err := w.inspect(q.TargetList)
	if err != nil || q.LimitCount != nil && (list.function || !scalars(q.TargetList)) {
		return false // one row may become several
	}
	atOnce := q == w.inserted && list.aggregate && q.GroupClause == nil && q.LimitCount == nil
	if !atOnce && (w.with.mayFail() || w.mayFail(q.FromClause) || w.failing(false, q.WhereClause)) {
		return false // a row may be inserted, and another one refused, before the server comes to the one that fails
	}
	alike := q.GroupClause == nil && q.HavingClause == nil && q.DistinctClause == nil &&
		q.SortClause == nil && q.WindowClause == nil
	if !w.session.Serializable {
		return true
	}
	return alike && !list.aggregate && !list.window
}

// chooses reports whether something in the tokens [from, to) may choose among rows, or lock them.
func (st *statement) chooses(from, to int) bool {
	for i := from; i < to; i++ {
		if st.is(i, "LIMIT", "OFFSET", "FETCH", "OVER", "DISTINCT", "TABLESAMPLE", "FOR") {
			return true
		}
	}
	return false
}

// scalars reports whether all functions in a select list surely give one value for each row.
func scalars(list *ast.NodeList) (so bool) {
	so = true
	whole := pgtree.Walk(func(n ast.Node) bool {
		if call, ok := n.(*ast.FuncCall); ok {
			names := nodes(call.Funcname)
			last, ok := names[len(names)-1].(*ast.String)
			so = so && ok && (immutable[last.SVal] || functions[last.SVal])
		}
		return so
	}, list)
	return so && whole
}

// holdsUnlogged reports whether rows may be inserted that the write-ahead log does not tell of.
func (w *write) holdsUnlogged() bool {
	if w.target.table.Unlogged {
		return true
	}
	for _, leaf := range w.target.table.Leaves {
		schema, name, _ := strings.Cut(leaf, ".")
		if t := w.rewriter.schema.Table(schema, name); t != nil && t.Unlogged {
			return true
		}
	}
	return false
}

// add appends to the column.
func (c *column) add(e edit) {
	c.edits = append(c.edits, e)
	c.text += e.text
}
