package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// Subqueries in the WHERE clause of a query in FROM, or of the WITH clause, are run again in that query's select list.
// It passes what they read outwards, as it does with its rows' identities. A row of the statement hangs on them as one
// of theirs does. What bounds the time is volatile, and the server joins no table with the tables of a query that has
// such a column. So it stands in the query where that is all that there is in the statement's FROM clause, or where the
// server computes it apart in any case. Elsewhere it stands in the statement's own list, if the server makes the query
// one with that.

// A standing is how a query stands in the FROM clause of the statement.
type standing uint8

const (
	notAlone    standing = iota
	aloneInFrom          // there is nothing else
	aloneByName          // its name is all there is, in whose place the server puts it
	oneWithIt            // it is joined, or grouped: the server makes it one with the statement
	optional             // it is on the optional side of an outer join
	apart                // the server computes it by itself: it has a LIMIT, locks, or is a query of WITH that stays one
	cutShort             // it is a query of WITH with a LIMIT, which the server puts in the place of its name
	recalledBy           // a copy of a subquery that names it has it in the place of its name
)

// besideWritten returns how a query stands in the FROM or USING clause of a statement that writes, where it stands so
// in that of a SELECT: its rows are joined with those that are written, and RETURNING has what it passes outwards.
func (at standing) besideWritten(stmt ast.Stmt) standing {
	switch stmt.(type) {
	case *ast.UpdateStmt, *ast.DeleteStmt:
	default:
		return notAlone
	}
	switch at {
	case aloneInFrom, aloneByName, oneWithIt:
		return oneWithIt
	case optional, apart, cutShort, recalledBy:
		return at
	}
	return notAlone
}

// onlyItem reports whether the walker is at the only item of the statement's FROM clause.
func (w *walker) onlyItem() bool {
	return w.tree != nil && w.around == w.tree && w.tree.Op == ast.SETOP_NONE && !w.joined
}

// stands returns how a query in FROM stands there.
func (w *walker) stands(n *ast.RangeSubselect, query *ast.SelectStmt, nullable bool) standing {
	switch {
	case n.Lateral || w.lateral > 0:
		return notAlone
	case query.LimitCount != nil || query.LimitOffset != nil || query.LockingClause != nil:
		return apart
	case w.onlyItem() && !w.collects():
		return aloneInFrom
	case w.inStatement() && nullable:
		return optional
	case w.inStatement():
		return oneWithIt
	}
	return notAlone
}

// inStatement reports whether the walker is in the statement's FROM clause.
func (w *walker) inStatement() bool {
	return w.tree != nil && w.around == w.tree && w.tree.Op == ast.SETOP_NONE
}

// collects reports whether a row of the statement stands for several.
func (r *reading) collects() bool {
	n := r.tree
	u, err := r.inspect(n.TargetList, n.SortClause)
	return err != nil || u.aggregate || n.GroupClause != nil || n.HavingClause != nil || n.DistinctClause != nil
}

// standsByName returns how a query of the WITH clause stands where a FROM clause first names it.
func (w *walker) standsByName(c *common, nullable bool) standing {
	switch {
	case c.recursive:
	case w.staysApart(c):
		return apart
	case w.again != nil:
		return w.namedBeside(c)
	case !c.once || c.def.Ctematerialized == ast.CTEMaterializeAlways || !w.inStatement():
	case limits(c.def.Ctequery):
		return cutShort
	case nullable:
		return optional
	case w.onlyItem() && !w.collects():
		return aloneByName
	default:
		return oneWithIt
	}
	return notAlone
}

// locksApart reports whether what stands so locks no rows but its own tables', and is computed by itself then. Where
// the server waits for a row it computes the list anew, with its later version.
func (r *reading) locksApart(n *ast.SelectStmt, at standing) bool {
	if !locks(n) {
		return r.tree.LockingClause == nil
	}
	unlocked := *n
	unlocked.LockingClause = nil
	var inner []*ast.RangeSubselect
	for _, item := range nodes(n.FromClause) {
		inner = queriesIn(item, inner)
	}
	return at == apart && r.tree.LockingClause == nil && !locks(&unlocked) && len(inner) == 0
}

// staysApart reports whether the server surely computes a query of the statement's WITH clause by itself: it locks, is
// to be materialized, or is named several times.
func (r *reading) staysApart(c *common) bool {
	if query, ok := c.def.Ctequery.(*ast.SelectStmt); ok && query.LockingClause != nil {
		return true
	}
	tree, reads := r.stmt.(*ast.SelectStmt)
	if reads && tree != r.tree || r.forParts || withOf(r.stmt) == nil || c.def.Ctematerialized == ast.CTEMaterializeNever {
		return false
	}
	defined, seen, times := 0, false, mentions(r.stmt, c.def.Ctename)
	for _, item := range nodes(withOf(r.stmt).Ctes) {
		if seen = seen || item == ast.Node(c.def); !seen || item == ast.Node(c.def) {
			times -= mentions(item, c.def.Ctename)
		}
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		if def, ok := n.(*ast.CommonTableExpr); ok && def.Ctename == c.def.Ctename {
			defined++
		}
		return true
	}, r.stmt)
	return whole && seen && defined == 1 && (times > 1 || c.def.Ctematerialized == ast.CTEMaterializeAlways)
}

// lookWithin has a block in the statement's FROM clause show what the subqueries of its WHERE clause read. It reports
// whether that is so for all that read tables.
func (r *reading) lookWithin(b *block, u *usage, sc *scope) bool {
	n := b.n
	at := r.alone[n]
	if r.copies {
		return r.lookWithinCopy(b, u, sc)
	}
	switch {
	case r.forParts && at != apart:
		at = notAlone // what the parts make of it is not known
	case !r.forParts && r.stmt != ast.Stmt(r.tree):
		at = at.besideWritten(r.stmt)
	}
	if at == notAlone || !r.barred[n].IsZero() || r.of != nil || len(r.parts) > 0 ||
		r.tree.Op != ast.SETOP_NONE || r.session.Serializable ||
		!r.runsSubqueriesAgain() || !r.locksApart(n, at) || b.grouped || b.unique || u.reachesOut(b.rels) || u.unsure ||
		u.volatile || n.DistinctClause != nil || beyond(n.SortClause, b.columns()) || !r.plansAlike(b, u, at) {
		return false
	}
	others, err := r.inspect(n.FromClause, n.WindowClause, n.SortClause, n.LimitCount, n.LimitOffset)
	s, here := seeker{planner: r.planner}, r.places.queries[n]
	if err != nil || others.subquery || !r.rehearses(b) || !s.list(n.TargetList, span{here.from + 1, here.listEnd + 1}) ||
		!s.seek(n.WhereClause, r.places.whereClause(here.listEnd+1, here.to), ofAll, nil) {
		return false
	}
	l := looker{reading: r, sc: sc, block: b}
	if !l.lookAt(s.links) || l.bar != nil || at != optional && !l.namedAgain() {
		return false
	}
	if slices.ContainsFunc(l.found, func(c *besides) bool { return c.unless != nil }) {
		return false
	}
	if at == optional || at == cutShort { // all of it stands in FROM
		return r.lift(b, l.found, s.links)
	}
	for i, c := range l.found {
		if r.noteWhole(n, c); at == recalledBy && c.chain[0].whole {
			continue
		}
		c.asText = r.forParts // a part has one text for each source
		s := &sight{source: c.source(b), exprs: []string{""}, types: []string{"pg_catalog.text[]"}, within: n,
			spelled: c.spell(r, b), single: r.forParts}
		if s.single {
			s.spelled = slices.Concat(spelling{{text: "ARRAY["}}, s.spelled, spelling{{text: "]"}})
		}
		switch {
		case (at == aloneByName || at == oneWithIt) && !s.source.Whole: // what is volatile stays where it stands
			s.spelled, s.unbounded = c.array(r.st), true
		case at == recalledBy: // the copy is bounded
			s.spelled = c.array(r.st)
		}
		if i == 0 {
			s.spelled = r.rehearsed(b, s.spelled)
		}
		b.sights = append(b.sights, s)
	}
	return true
}

// lookWithinCopy has a block of a copy show what the subqueries of its WHERE and FROM clauses read, by one text for
// each row. So it does those of a list that is evaluated for each.
func (r *reading) lookWithinCopy(b *block, u *usage, sc *scope) bool {
	n, here := b.n, r.places.queries[b.n]
	others, err := r.inspect(n.WindowClause, n.SortClause, n.LimitCount, n.LimitOffset, n.GroupClause, n.HavingClause)
	s := seeker{planner: r.planner, behind: true}
	if err != nil || others.subquery || b.grouped && !r.inPlace(n) || n.DistinctClause != nil || u.reachesOut(b.rels) ||
		u.unsure || u.volatile || locks(n) || hasSubquery(n.TargetList) && !r.evaluatesList(n) ||
		!s.list(n.TargetList, span{here.from + 1, here.listEnd + 1}) ||
		!s.seek(n.WhereClause, r.places.whereClause(here.listEnd+1, here.to), ofAll, nil) ||
		!s.joins(b, span{here.listEnd + 1, here.to}) {
		return false
	}
	l := looker{reading: r, sc: sc, block: b, behind: true}
	if !l.lookAt(s.links) || l.bar != nil || slices.ContainsFunc(l.found, func(c *besides) bool { return c.unless != nil }) {
		return false
	}
	for _, c := range l.found {
		c.asText, c.perGroup = true, true
		shown := c.source(b)
		b.sights = append(b.sights, &sight{source: shown, exprs: []string{""}, spelled: c.spell(r, b),
			types: []string{"pg_catalog.text"}, within: n, repeated: true, nullable: shown.Whole})
	}
	return true
}

// evaluatesList reports whether the client's query surely evaluates the list of one in a copy, for each row of that.
func (r *reading) evaluatesList(n *ast.SelectStmt) bool {
	if r.valued && onlyValues(n) {
		return true
	}
	if !r.limited {
		return r.listed && r.inPlace(n)
	}
	from, ok := bare(nodes(r.tree.FromClause)[0]).(*ast.RangeSubselect)
	return ok && r.listed && from.Subquery == ast.Node(n)
}

// plansAlike reports whether a column in the block's list has the server do no more, and meet no other error. A query
// in FROM it does not make one with the statement where the column is volatile: what the statement asks of its rows is
// asked of them as before, unless that is a subquery's, and its list is made for each of them. Where the column is not,
// the server must make the query one with the statement. Subqueries in its list it surely evaluates where it computes
// the query by itself, and so all columns of a query of WITH.
func (r *reading) plansAlike(b *block, u *usage, at standing) bool {
	n, around := b.n, r.tree.WhereClause
	computes := hasSubquery(n.TargetList)
	switch at {
	case apart:
		return !u.window && ofEachRow(n.TargetList) && n.WithClause == nil &&
			(!computes || n.LimitCount == nil && n.LimitOffset == nil)
	case recalledBy:
		return !u.window && ofEachRow(n.TargetList) && n.WithClause == nil && !computes
	case cutShort:
		return !u.window && ofEachRow(n.TargetList) && n.WithClause == nil && (!computes || r.showsValues(n))
	case aloneByName, oneWithIt, optional:
		return n.SortClause == nil && n.LimitCount == nil && n.LimitOffset == nil && n.WithClause == nil &&
			!u.window && ofEachRow(n.TargetList) && (!computes || r.showsValues(n))
	}
	var links []link
	if computes && (u.window || !ofEachRow(n.TargetList) || !r.showsValues(n) || hasSubquery(around)) {
		return false
	}
	return !r.failing(false, n.TargetList) && conjuncts(around, &links) && !r.failing(false, around) &&
		(len(links) == 0 || !r.failing(false, n.WhereClause)) &&
		!slices.ContainsFunc(links, func(l link) bool { return !l.harmless() })
}

// showsValues reports whether each row of the statement surely shows what the subqueries in the select list of a query
// in its FROM clause, or of its WITH clause, find: their items are items of its own list, of all its rows. They must
// not fail, for it may compute them in another order.
func (r *reading) showsValues(n *ast.SelectStmt) bool {
	ref, ok := nameIn(r.tree, n)
	if !ok || r.collects() || r.tree.LimitCount != nil || r.tree.LimitOffset != nil ||
		r.tree.SortClause != nil && r.mayFail(r.tree.TargetList) {
		return false
	}
	var links []link
	for _, item := range nodes(n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok || hasSubquery(t) && (t.Name == "" || !r.lists(ref, t.Name)) {
			return false
		}
		links = append(links, sublinks(t)...)
	}
	return !slices.ContainsFunc(links, func(l link) bool { return !l.harmless() })
}

// sublinks returns the subqueries of an expression, without those within them.
func sublinks(n ast.Node) (links []link) {
	pgtree.Walk(func(n ast.Node) bool {
		sub, ok := n.(*ast.SubLink)
		if ok {
			links = append(links, link{SubLink: sub})
		}
		return !ok
	}, n)
	return links
}

// lists reports whether the statement's list, or what an UPDATE assigns, has a column of what its FROM clause calls so,
// as it is, or all of them.
func (r *reading) lists(ref, column string) bool {
	items := nodes(r.tree.TargetList)
	if n, ok := r.stmt.(*ast.UpdateStmt); ok {
		items = append(slices.Clone(items), nodes(n.TargetList)...)
	}
	return slices.ContainsFunc(items, func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return false
		}
		c, ok := bare(t.Val).(*ast.ColumnRef)
		if !ok {
			return false
		}
		switch names := nodes(c.Fields); len(names) {
		case 1:
			_, star := names[0].(*ast.A_Star)
			return star || isString(names, column) && !joins(r.tree.FromClause)
		case 2:
			_, star := names[1].(*ast.A_Star)
			return isString(names[:1], ref) && (star || isString(names[1:], column))
		}
		return false
	})
}

// joins reports whether a FROM clause has more than one item.
func joins(from *ast.NodeList) bool {
	items := nodes(from)
	if len(items) != 1 {
		return true
	}
	_, join := bare(items[0]).(*ast.JoinExpr)
	return join
}

// nameIn returns what the FROM clause of a statement calls a query that stands there, or in the WITH clause. It reports
// whether that is known, and the query's columns have no other names there.
func nameIn(tree, query *ast.SelectStmt) (ref string, ok bool) {
	common := ""
	if tree.WithClause != nil {
		for _, c := range nodes(tree.WithClause.Ctes) {
			if c, ok := c.(*ast.CommonTableExpr); ok && c.Ctequery == ast.Node(query) {
				if common = c.Ctename; len(nodes(c.Aliascolnames)) > 0 {
					return "", false
				}
			}
		}
	}
	times := 0
	whole := pgtree.Walk(func(n ast.Node) bool {
		var alias *ast.Alias
		switch n := n.(type) {
		case *ast.RangeSubselect:
			if n.Subquery != ast.Node(query) {
				return false
			}
			alias, ref = n.Alias, ""
		case *ast.RangeVar:
			if common == "" || n.SchemaName != "" || n.RelName != common {
				return false
			}
			alias, ref = n.Alias, common
		case *ast.SelectStmt:
			return false
		default:
			return true
		}
		times++
		if alias != nil {
			ref, ok = alias.AliasName, len(nodes(alias.ColNames)) == 0
		} else {
			ok = ref != ""
		}
		return false
	}, tree.FromClause)
	return ref, ok && whole && times == 1
}

// passes has what a query in the FROM clause shows of its subqueries be bounded in time where nothing there does. Where
// the block makes one row of several, it is to be collected.
func (b *block) passes() error {
	for _, s := range b.sights {
		if s.within == nil {
			continue
		}
		switch {
		case s.single:
			continue
		case s.source.Marked:
			s.text = s.exprs[0]
			continue
		case s.spelled != nil && (b.grouped || b.unique):
			return &queryRefusal{s.within, history.ReasonSubquery}
		case s.spelled != nil:
			continue
		}
		if b.grouped || b.unique {
			if s.source.Whole {
				return &queryRefusal{s.within, history.ReasonSubquery}
			}
			s.text = "pg_catalog.array_to_string(" + s.exprs[0] + ", '" + ElementSeparator + "')"
			if s.unbounded {
				s.text = boundedFrom + s.text + " ELSE '" + Lacking + "' END"
			}
		} else if s.unbounded {
			s.exprs = []string{boundedFrom + s.exprs[0] + boundedTo}
		}
	}
	return nil
}
