package postgres

import (
	"slices"
	"strings"
	"time"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// What subqueries in WHERE and in the select list read is shown by hidden columns that run them again, in the same
// statement and so in the same snapshot (ADR 62). Such a column is an array: of the rows that satisfy the subquery's
// own WHERE, for the row of the result beside which it stands. The subquery's text is the client's, copied, but for its
// select list.

const (
	// MaxBeside is how many identities one subquery may show beside a row.
	MaxBeside = 64
	// maxBesideColumns is how many columns of this kind a statement gets.
	maxBesideColumns = 6
	// besideFor is how long a statement runs subqueries again, from its first row on.
	besideFor = 500 * time.Millisecond
)

// A subquery is one that is run again.
type subquery struct {
	query *ast.SelectStmt
	// from, where and end are tokens: of FROM, of WHERE (where it has none, end), and the one behind both; order is
	// that of ORDER, 0 where it does not count.
	from, where, end, order int
	// list is its select list, fromEnd the token behind what the copy has of its FROM clause.
	list    span
	fromEnd int
	// joined is the FROM clause without the LATERAL queries that hang on its rows.
	joined  *ast.NodeList
	hanging []*ast.RangeSubselect
	// limit is what stands behind LIMIT, offset OFFSET and what stands behind that; empty where there is none.
	limit, offset span
	exists        bool
	outermost     bool // it is within no other subquery
	limiting      limiting
	tables        []*source
	common        []*relation // queries and views among these
	// instead are the queries and views in its FROM clause, inner the tables of these queries, and edits what the copy
	// of the clause has otherwise.
	instead []placeholder
	inner   []*relation
	edits   []edit
	// optional are those of the tables of which an outer join may show no row.
	optional map[*source]bool
	// unread are those that the server leaves out.
	unread []*source
	// recalled are those of them that the WITH clause has.
	recalled []recalled
	// test compares the subquery's column with the one in front of IN: only rows that are equal are read.
	test string
	// within are the subqueries in its own WHERE clause.
	within []*subquery
	// whole says that it reads the same for all rows of the result.
	whole bool
	// most is how many rows it shows at most; 0: [MaxBeside].
	most int
	// tests must hold for it to be evaluated.
	tests []test
	// gates must hold for its copy to read anything.
	gates []gate
}

// lookInto finds out how the subqueries of the statement's only block can be run again. It reports whether that is so
// for all that read tables.
func (r *reading) lookInto(b *block, u *usage, sc *scope) (bool, error) {
	n := b.n
	if n != r.tree || r.of != nil || !r.runsSubqueriesAgain() {
		return false, nil
	}
	if !b.grouped && (u.reachesOut(b.rels) || u.unsure) || b.unique && len(b.sights) == 0 ||
		beyond(n.SortClause, b.columns()) || beyond(n.GroupClause, b.columns()) {
		return false, nil
	}
	others, err := r.inspect(n.DistinctClause, n.HavingClause, n.WindowClause, n.LimitCount, n.LimitOffset)
	if err != nil || others.subquery || !r.rehearses(b) {
		return false, nil
	}
	behind := !hasSubquery(n.SortClause) && !hasSubquery(n.GroupClause) // which the server looks at last
	s := seeker{planner: r.planner, fails: true, behind: behind}
	at := r.places.queries[n]
	if !s.list(n.TargetList, span{at.from + 1, at.listEnd + 1}) || !s.groups(b, span{at.listEnd + 1, at.to}) ||
		!s.order(n, at) || !s.joins(b, span{at.listEnd + 1, at.to}) || !s.seek(n.WhereClause, r.places.whereClause(at.listEnd+1, at.to), ofAll, nil) {
		return false, nil
	}
	l := looker{reading: r, sc: sc, block: b, behind: behind}
	if !l.lookAt(s.links) || !l.namedAgain() {
		return false, l.bar
	}
	r.besides = l.found
	return true, nil
}

// lookAt looks into the subqueries of the block. It reports whether all that they read can be shown.
func (l *looker) lookAt(links []link) bool {
	for _, link := range links {
		if l.readsNothing(link) || l.readsItself(link) {
			continue
		}
		all, ok := l.look(link, l.block.rels, 1)
		if !ok {
			return false
		}
		before := len(l.found)
		for _, q := range all {
			l.columns(nil, q)
		}
		for _, c := range l.found[before:] {
			c.perGroup = link.shown
		}
	}
	return len(l.found) <= maxBesideColumns
}

// readsNothing reports whether a subquery has no rows of tables for its own.
func (pl *planner) readsNothing(at link) bool {
	u, err := pl.inspect(at.SubLink)
	return err == nil && !pl.readsBeside(u) && !u.function
}

// runsSubqueriesAgain reports whether subqueries of the statement may be run a second time.
func (pl *planner) runsSubqueriesAgain() bool {
	return !pl.masked && !pl.session.Narrow &&
		!pl.rewriter.options.StrictPlans && pl.plan.Session.Cursor == nil
}

// hasSubquery reports whether an expression may hold a subquery.
func hasSubquery(n ast.Node) (found bool) {
	if pgtree.Missing(n) {
		return false
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		_, is := n.(*ast.SubLink)
		found = found || is
		return !found
	}, n)
	return found || !whole
}

// A looker looks into the subqueries of a block.
type looker struct {
	*reading
	sc    *scope
	block *block
	found []*besides
	bar   error // a query that must stay as it is, if one is in the way
	// present spells what is not NULL in a row of the client's, where more than that is to be known; nil: true.
	present spelling
	// late says that what is read aside may fail where the client's query has not come to its end.
	late bool
	// behind says that the server takes what is copied for a query behind the one that it is a copy of, and has the
	// types of its parameters by then.
	behind bool
	// ofPart says which columns are surely asked of a part that is told aside.
	ofPart wanting
	// limit says of a parameter that it must not be 0 for such parts to be read.
	limit []gate
	// with are the queries of the WITH clause by their names, where these are looked into.
	with map[string]*ast.SelectStmt
}

// columns adds the columns that show what a subquery, behind those around it, reads.
func (l *looker) columns(around []*subquery, q *subquery) {
	chain := append(slices.Clone(around), q)
	for _, s := range q.tables {
		shown, err := sightOf(s)
		if err == nil && !slices.Contains(q.unread, s) {
			if q.optional[s] {
				shown.text = "CASE WHEN " + shown.exprs[0] + " IS NOT NULL THEN " + shown.text + " END"
			}
			l.found = append(l.found, &besides{chain: chain, shown: shown})
		}
	}
	for _, rel := range q.common {
		for _, s := range rel.sights {
			l.found = append(l.found, &besides{chain: chain, shown: s})
		}
	}
	for _, inner := range q.within {
		if !inner.whole {
			l.columns(chain, inner)
			continue
		}
		before := len(l.found)
		l.columns(nil, inner)
		for _, c := range l.found[before:] {
			c.unless = q // where the one around it finds no row, it need not have been evaluated
		}
	}
}

// maxNested is how many subqueries may stand in each other.
const maxNested = 3

// look looks into a subquery that stands among relations: of a set operation, into each query that it is made of.
func (l *looker) look(at link, around []*relation, depth int) (found []*subquery, ok bool) {
	n, ok := at.Subselect.(*ast.SelectStmt)
	if !ok || depth > maxNested {
		return nil, false
	}
	for {
		within, asked := l.wrapped(n, &at, around)
		if within == nil {
			break
		}
		if depth == 0 && !l.takesAllRows(n) || l.leavesAggregates(within, asked) ||
			depth > 1 && !at.lists && l.mayFail(n.FromClause) { // all of it is copied with the one around it
			return nil, false
		}
		n, at.matched, at.derived, at.asked = within, false, true, asked
	}
	arms, ok := l.arms(n)
	for _, arm := range arms {
		if len(nodes(arm.FromClause)) == 0 && arm.WhereClause == nil {
			inItems, ok := l.inItems(&at, arm, around, depth) // of a row of no table's
			if !ok {
				return nil, false
			}
			found = append(found, inItems...)
			continue
		}
		q, ok := l.lookAtQuery(at, arm, around, depth)
		if !ok || depth == 0 && !l.takesAllRows(arm) {
			return nil, false
		}
		found = append(found, q)
	}
	return found, ok
}

// allOf returns the query that a subquery has in its FROM clause alone, and takes all rows of; nil where it does not.
func allOf(n *ast.SelectStmt, exists bool) *ast.SelectStmt {
	from := nodes(n.FromClause)
	if n.Op != ast.SETOP_NONE || len(from) != 1 || n.WhereClause != nil || n.LimitCount != nil && !exists ||
		n.LimitOffset != nil || n.WithClause != nil || n.LockingClause != nil || n.IntoClause != nil ||
		hasSubquery(n.TargetList) || hasSubquery(n.GroupClause) || hasSubquery(n.HavingClause) || hasSubquery(n.SortClause) {
		return nil
	}
	item, ok := bare(from[0]).(*ast.RangeSubselect)
	if !ok {
		return nil
	}
	query, _ := item.Subquery.(*ast.SelectStmt)
	return query
}

// arms returns the queries that a set operation is made of, all rows of which it reads: of INTERSECT and EXCEPT
// PostgreSQL 18 does not read the second where the first has none.
func (l *looker) arms(n *ast.SelectStmt) (arms []*ast.SelectStmt, ok bool) {
	switch {
	case n.Op == ast.SETOP_NONE:
		return []*ast.SelectStmt{n}, true
	case n.WithClause != nil, n.LimitCount != nil, n.LimitOffset != nil, n.LockingClause != nil, hasSubquery(n.SortClause),
		n.Op != ast.SETOP_UNION && l.session.Version >= 18:
		return nil, false
	}
	left, ok1 := l.arms(n.Larg)
	right, ok2 := l.arms(n.Rarg)
	return append(left, right...), ok1 && ok2
}

// lookAtQuery looks into a query of a subquery.
func (l *looker) lookAtQuery(at link, n *ast.SelectStmt, around []*relation, depth int) (*subquery, bool) {
	if depth > maxNested || n.Op != ast.SETOP_NONE || n.WithClause != nil || n.IntoClause != nil ||
		n.LockingClause != nil || len(nodes(n.ValuesLists)) > 0 || hasSubquery(n.TargetList) && !l.evaluatesItems(&at, n) || hasSubquery(n.GroupClause) || hasSubquery(n.HavingClause) || hasSubquery(n.SortClause) {
		return nil, false
	}
	q := &subquery{query: n, exists: at.SubLinkType == ast.EXISTS_SUBLINK && !at.derived, outermost: depth <= 1,
		tests: at.tests, optional: make(map[*source]bool)}
	q.joined, q.hanging = hanging(n.FromClause)
	for _, item := range nodes(q.joined) {
		if !l.tables(q, item, at, false) {
			return nil, false
		}
	}
	if len(nodes(n.FromClause)) == 0 || !l.place(q, at, around) || l.fromMayFail(q) || !l.behind && !l.typed(q) || !l.fixed(q) ||
		l.session.Serializable && !l.scansAll(q) {
		return nil, false
	}
	inner := q.relations()
	if misnames(n, inner) || !l.leaveOut(q, at) {
		return nil, false // the copy comes first, and so would its error
	}
	s := seeker{planner: l.planner}
	if !s.seek(n.WhereClause, span{min(q.where+1, q.end), q.end}, ofAll, nil) ||
		!l.gated(q, n.WhereClause, append(inner, around...)) {
		return nil, false
	}
	for _, link := range s.links {
		if !link.harmless() {
			return nil, false // it may fail for a row that the server would not come to
		}
		if !l.addWithin(q, link, append(inner, around...), depth) {
			return nil, false
		}
	}
	if !l.listed(q, &at, around, depth) || !l.hung(q, &at, around, depth) {
		return nil, false
	}
	if l.session.Serializable && !q.ofOneTable() {
		return nil, false
	}
	own := q.own()
	if len(q.hanging) > 0 || hasSubquery(n.TargetList) {
		own = append(own, l.relationsIn(n)...)
	}
	refers, sure := refersTo(n, own, around)
	if q.whole = !refers; !sure {
		return nil, false
	}
	l.compare(q, at)
	collects := (l.block.grouped || l.block.unique) && !at.shown
	if q.whole && collects && slices.ContainsFunc(q.tests, test.queries) {
		return nil, false // nothing would bound what these take
	}
	if collects && (!q.whole || len(q.tests) > 0) &&
		slices.ContainsFunc(q.within, func(w *subquery) bool { return w.whole }) {
		return nil, false // which of the rows it was evaluated for nothing bounds, either
	}
	return q, true
}

// scansAll reports whether the server can read the tables of a subquery by scans of all of them alone. Each locks its
// table, at SERIALIZABLE, and so a second one locks nothing that the first has not. By an index it may be other rows.
func (l *looker) scansAll(q *subquery) bool {
	tids := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := fields(ref)
			tids = tids || isSystemColumn(names[len(names)-1])
		}
		return true
	}, q.query)
	return whole && !tids && !slices.ContainsFunc(q.tables, func(s *source) bool {
		return len(l.indexesOf(s.table)) > 0 || len(s.table.Leaves) > 0 || s.table.Partitioned
	})
}

// ofOneTable reports whether a subquery, and those within it, read one table alone. Of two the server scans none but
// the first where that has no row, and which one that is may be another in a copy.
func (q *subquery) ofOneTable() bool {
	var tables []*source
	var add func(q *subquery)
	add = func(q *subquery) {
		tables = append(tables, q.tables...)
		for _, w := range q.within {
			add(w)
		}
	}
	add(q)
	return !slices.ContainsFunc(tables, func(s *source) bool { return s.table.Name != tables[0].table.Name })
}

// misnames reports whether a query names a column that one of its relations surely does not have.
func misnames(n *ast.SelectStmt, rels []*relation) (found bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := fields(ref)
			found = found || len(names) == 2 && names[1] != "*" && slices.ContainsFunc(rels, func(rel *relation) bool {
				return rel.ref == names[0] && !rel.has(names[1]) && !isSystemColumn(names[1])
			})
		}
		return !found
	}, n)
	return found || !whole
}

// harmless reports whether a subquery within one cannot fail for any of that one's rows.
func (at *link) harmless() bool {
	n, ok := at.Subselect.(*ast.SelectStmt)
	switch {
	case !ok || mayFail(n.GroupClause, n.HavingClause):
		return false
	case n.Op != ast.SETOP_NONE:
		return at.SubLinkType != ast.EXPR_SUBLINK && !mayFail(n)
	case at.SubLinkType == ast.EXISTS_SUBLINK:
		return true
	case at.SubLinkType == ast.ANY_SUBLINK, at.SubLinkType == ast.ALL_SUBLINK, at.SubLinkType == ast.ARRAY_SUBLINK:
		return !mayFail(n.TargetList)
	case n.GroupClause != nil, n.HavingClause != nil, len(nodes(n.TargetList)) != 1:
		return false
	}
	item, ok := nodes(n.TargetList)[0].(*ast.ResTarget)
	if !ok {
		return false
	}
	call, ok := item.Val.(*ast.FuncCall)
	if !ok || call.Over != nil || call.AggFilter != nil || len(nodes(call.Funcname)) != 1 || mayFail(call.Args) {
		return false
	}
	name, ok := nodes(call.Funcname)[0].(*ast.String)
	return ok && slices.Contains([]string{"count", "min", "max"}, name.SVal) // one row, whatever there is
}

// tables adds the tables of an item of the subquery's FROM clause. What is none that is observed is the reason to look
// no further.
func (l *looker) tables(q *subquery, item ast.Node, at link, optional bool) bool {
	switch n := bare(item).(type) {
	case *ast.RangeVar:
		if c := l.sc.find(n.RelName); c != nil && n.SchemaName == "" {
			return !optional && l.named(q, c, n, at)
		}
		if l.inWith(n) {
			return false
		}
		if l.view(n) != nil {
			q.instead = append(q.instead, placeholder{n, optional})
			return true
		}
		t, _ := l.table(n)
		if t == nil {
			return false
		}
		s, err := l.sourceOf(t, n)
		if err != nil || slices.ContainsFunc(q.tables, func(o *source) bool { return o.ref == s.ref }) {
			return false
		}
		q.tables = append(q.tables, &s)
		if optional {
			q.optional[&s] = true
		}
		return true
	case *ast.RangeSubselect:
		q.instead = append(q.instead, placeholder{n, optional})
		return true
	case *ast.JoinExpr:
		left, right := n.Jointype == ast.JOIN_RIGHT || n.Jointype == ast.JOIN_FULL,
			n.Jointype == ast.JOIN_LEFT || n.Jointype == ast.JOIN_FULL
		return n.JoinUsingAlias == nil && n.Alias == nil &&
			l.tables(q, n.Larg, at, optional || left) && l.tables(q, n.Rarg, at, optional || right)
	}
	return false
}

// named adds a query of a WITH clause by its name. The hidden column names it once more, and may read on where the
// subquery stopped.
func (l *looker) named(q *subquery, c *common, n *ast.RangeVar, at link) bool {
	query, ok := c.def.Ctequery.(*ast.SelectStmt)
	if !ok || c.recursive || l.session.Serializable || takesAll(q.query) || !l.reads(l.sc, at) {
		return false
	}
	l.asked[q.query] = map[string]bool{"*": !q.exists}
	w := &walker{reading: l.reading, sc: l.sc, filters: true, joined: true, around: q.query, again: n}
	if err := w.common(c, n, false); err != nil {
		l.bar = err
		return false
	}
	rel := w.rels[0]
	if !l.addWhole(q, query, rel) {
		return false
	}
	u, err := l.inspect(&ast.SubLink{Subselect: query})
	if err != nil || len(rel.sights) == 0 && (len(u.reads) > 0 || u.function) ||
		rel.grouped() && !rel.whole && (q.query.WhereClause != nil || q.query.LimitCount != nil) ||
		picks(query, c.sc) && !(at.matched && q.outermost) && l.hides(&block{n: q.query}, unkeyed(rel)) ||
		slices.ContainsFunc(q.relations(), func(o *relation) bool { return o.ref == rel.ref }) ||
		slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.text == "" }) {
		return false
	}
	q.common, q.recalled = append(q.common, rel), append(q.recalled, recalled{c, n})
	return true
}

// unkeyed is a relation as one without keys.
func unkeyed(rel *relation) *relation {
	return &relation{ref: rel.ref, names: rel.names, open: rel.open}
}

// picks reports whether a query, or one of the WITH clause that it names, has a LIMIT or OFFSET: a row that a condition
// leaves out takes the place of another one.
func picks(query ast.Node, sc *scope) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			may = may || n.LimitCount != nil || n.LimitOffset != nil
		case *ast.RangeVar:
			if c := sc.find(n.RelName); c != nil && n.SchemaName == "" && !c.recursive {
				may = may || picks(c.def.Ctequery, c.sc)
			}
		}
		return !may
	}, query)
	return may || !whole
}

// reads reports whether the queries of the WITH clauses do nothing but read what was there before, and cannot fail
// where a subquery that names them need not come to their end. Who reads what a part returned, by such a query, changes
// when the part writes.
func (l *looker) reads(sc *scope, at link) bool {
	n, ok := at.Subselect.(*ast.SelectStmt)
	toItsEnd := ok && n.LimitCount == nil &&
		(at.SubLinkType == ast.EXPR_SUBLINK || at.SubLinkType == ast.ARRAY_SUBLINK)
	for ; sc != nil; sc = sc.up {
		for _, c := range sc.common {
			u, err := l.inspect(&ast.SubLink{Subselect: c.def.Ctequery})
			written := func(name string) bool { return name != c.def.Ctename && mentions(c.def.Ctequery, name) > 0 }
			if err != nil || u.function || u.volatile || slices.ContainsFunc(l.silent, written) ||
				locks(c.def.Ctequery) || !toItsEnd && l.mayFailBut(c.def.Ctequery) {
				return false
			}
		}
	}
	return true
}

// locks reports whether a query may lock rows.
func locks(n ast.Node) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		_, is := n.(*ast.LockingClause)
		may = may || is
		return !may
	}, n)
	return may || !whole
}

// relations are what the subquery's FROM clause names.
func (q *subquery) relations() []*relation {
	var rels []*relation
	for _, s := range q.tables {
		rels = append(rels, &relation{ref: s.ref, base: s})
	}
	return append(rels, q.common...)
}

// own are the relations of the subquery and of those within it.
func (q *subquery) own() []*relation {
	rels := append(q.relations(), q.inner...)
	for _, inner := range q.within {
		rels = append(rels, inner.own()...)
	}
	return rels
}

func hasCall(n ast.Node) (found bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		_, is := n.(*ast.FuncCall)
		found = found || is
		return !found
	}, n)
	return found || !whole
}

// compare has a subquery behind IN read those rows alone that are equal to what stands before it, where a row of the
// result hangs on its finding one: then it means EXISTS, and the server may read no others.
func (l *looker) compare(q *subquery, at link) {
	n := q.query
	if !at.matched || at.SubLinkType != ast.ANY_SUBLINK || len(nodes(at.OperName)) > 0 || n.GroupClause != nil ||
		n.HavingClause != nil || n.LimitCount != nil || len(nodes(n.TargetList)) != 1 {
		return
	}
	item, ok := nodes(n.TargetList)[0].(*ast.ResTarget)
	if !ok {
		return
	}
	inner, ok1 := bare(item.Val).(*ast.ColumnRef)
	outer, ok2 := bare(at.Testexpr).(*ast.ColumnRef)
	if !ok1 || !ok2 {
		return
	}
	left, ok1 := qualifiedColumn(outer, l.block.rels)
	right, ok2 := qualifiedColumn(inner, q.relations())
	if !ok1 || !ok2 || slices.ContainsFunc(q.tables, func(s *source) bool {
		return strings.HasPrefix(left, quoted(s.ref)+".")
	}) {
		return
	}
	q.test, q.whole = left+" = "+right, false
}

// qualifiedColumn returns a column of one of the relations with the name of its table.
func qualifiedColumn(ref *ast.ColumnRef, rels []*relation) (string, bool) {
	names := fields(ref)
	column := names[len(names)-1]
	var owner *relation
	for _, rel := range rels {
		switch {
		case len(names) == 2 && names[0] != rel.ref, len(names) > 2:
		case rel.base == nil && (rel.open || rel.has(column)):
			return "", false
		case rel.base != nil && rel.base.has(column):
			if owner != nil {
				return "", false
			}
			owner = rel
		}
	}
	if owner == nil || owner.ref == "" {
		return "", false
	}
	return quoted(owner.ref) + "." + quoted(column), true
}
