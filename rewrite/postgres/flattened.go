package postgres

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// A condition on the values of groups, windows and UNIONs in FROM leaves out what was read all the same. So their rows
// are told aside, by a copy of the statement's WITH, FROM and WHERE clauses in which such a query is flat: it does not
// group, has no windows, and keeps equal rows. Of the conditions the copy has those that choose rows before they are
// put together: of what is grouped by, of what all windows are partitioned by, of a UNION's columns (ADR 62).

// A flattening makes the copy.
type flattening struct {
	*reading
	flats []*flat
	plain bool // there are other items in the FROM clause of the statement
	cuts  []cut
	// tables are those of the other items that are tables, others says that some are not.
	tables []*ast.RangeVar
	others bool
	// apart says that a row of these goes with what a condition leaves out: the copy tells of the flat queries alone.
	apart bool
	// flatsAlone asks for that in any case.
	flatsAlone bool
	// tied says that such a condition names a column of theirs: without it they might be joined by nothing.
	tied bool
	// equal says that a condition of the copy equates a column of theirs with one of a flat query.
	equal bool
	// alone says that the copy has nothing but the flat query. Its rows were read if the client's query has a row.
	alone bool
	// joined tells the rows of these where the client's rows do not show all of them.
	joined *asideCopy
	// left are conditions with subqueries that the copy does not have.
	left []omitted
}

// An omitted one is a condition that the copy does not have, and where it stands.
type omitted struct {
	ast.Node
	span
}

// A cut is tokens of the client's that have others in their place.
type cut struct {
	span
	put func(*excerpt)
}

// tellFlattened puts the statement into a SELECT that shows what such a copy reads.
func (pl *planner) tellFlattened(n *ast.SelectStmt) error {
	missed := refusal(history.ReasonSubquery)
	f, x, told := pl.flatCopy(n)
	if told == nil {
		return missed
	}
	beside, ok := f.beside(n)
	if !ok {
		return missed
	}
	l := &looker{reading: f.reading}
	var c column
	l.tellAside(&c, asideCopy{x, told}, f.alone)
	if f.joined != nil {
		l.tellAside(&c, *f.joined, false)
	}
	return l.wrapIn(n, beside, c.edits, c.sources, " OFFSET 0")
}

// tellAside adds what shows what a copy tells, which is not known where present is set and the client has no row.
func (l *looker) tellAside(c *column, a asideCopy, present bool) {
	begin, end := "(", ")"
	if present {
		begin, end = "(CASE WHEN "+asideRows+"."+presentName+" THEN (", ") END)"
	}
	intime := l.elapsed("<", cmp.Or(l.rewriter.options.CollectFor, collectFor))
	c.add(edit{text: ", " + begin + "SELECT CASE WHEN " + intime + " THEN "})
	a.spell(c, present)
	l.hidden++
	c.add(edit{text: " ELSE " + lacking + " END" + end + " AS " + rewrite.NamePrefix + strconv.Itoa(l.hidden)})
}

// spell adds what a copy tells, which is not known where it is shown with no row and must be.
func (a asideCopy) spell(c *column, must bool) {
	sources := slices.Clone(a.told.plan.Result.Sources)
	for i := range sources {
		sources[i].Joint, sources[i].Whole = -1, sources[i].Whole && sources[i].Beside
	}
	sources[0].Joint, sources[0].Whole = len(sources), sources[0].Whole || must
	c.add(edit{text: "(SELECT CASE WHEN pg_catalog.pg_column_size(" + identitiesRead +
		") OPERATOR(pg_catalog.>) " + strconv.Itoa(maxTold) + " THEN " + lacking + " ELSE " + identitiesRead + " END FROM ("})
	c.excerpt(a.excerpt, a.told.sorted())
	c.add(edit{text: ") AS isotap_read (identities))"})
	c.sources = append(c.sources, sources...)
}

// flatCopy returns such a copy of a statement, and what it tells; nil where there is none that tells all it reads.
func (pl *planner) flatCopy(n *ast.SelectStmt) (*flattening, *excerpt, *planner) {
	return pl.flatCopyOf(n, false)
}

// flatCopyOf is as flatCopy, of the flat queries alone or not.
func (pl *planner) flatCopyOf(n *ast.SelectStmt, flatsAlone bool) (*flattening, *excerpt, *planner) {
	u, err := pl.inspect(&ast.SubLink{Subselect: n})
	if err != nil || u.function || u.volatile || u.unsure || locks(n) || n.Op != ast.SETOP_NONE ||
		n.IntoClause != nil || n.LimitCount != nil || n.LimitOffset != nil || n.WithClause != nil && n.WithClause.Recursive {
		return nil, nil, nil
	}
	f := &flattening{reading: newReading(pl, n, nil), flatsAlone: flatsAlone}
	if f.places.place(n, 0, len(pl.st.toks)) != nil {
		return nil, nil, nil
	}
	x, ok := f.copy(n)
	if !ok {
		return nil, nil, nil
	}
	tree, err := parse(pl.readable(x.text))
	if err != nil || pl.mayFailBut(tree) || !pl.readsAlike(tree) {
		return nil, nil, nil
	}
	told, ok := pl.tellingFlats(n, x.text, f.only(), slices.ContainsFunc(f.flats, func(g *flat) bool { return len(g.values) > 0 }))
	if !ok || told.plan.Observation != history.Exact || len(told.plan.Result.Sources) == 0 {
		return nil, nil, nil
	}
	return f, x, told
}

// only are the names of what the copy tells of; nil: of all.
func (f *flattening) only() (refs []string) {
	if !f.apart && !f.flatsAlone {
		return nil
	}
	for _, g := range f.flats {
		refs = append(refs, g.ref)
	}
	return refs
}

// tellingFlats has the copy tell what it reads of the relations of these names, its subqueries among it, also those of
// what aggregates are given or not.
func (pl *planner) tellingFlats(n *ast.SelectStmt, text string, only []string, valued bool) (*planner, bool) {
	return pl.tellingAs(n, text, func(c *planner) { c.copies, c.only, c.valued = true, only, valued })
}

// copy returns the copy of the statement. It reports whether one is to be made, and tells what is read.
func (f *flattening) copy(n *ast.SelectStmt) (*excerpt, bool) {
	at := f.places.queries[n]
	list, err := f.inspect(n.TargetList, n.SortClause, n.HavingClause)
	from := f.places.clause(at.from+1, at.to)
	if err != nil || !f.st.is(at.from, "SELECT") || !f.st.is(from, "FROM") || from >= at.to ||
		list.aggregate && n.GroupClause == nil && extremes(list) || n.HavingClause != nil && !f.ofGroups(n.HavingClause) {
		return nil, false
	}
	for _, item := range nodes(n.FromClause) {
		if !f.item(n, item, nil) {
			return nil, false
		}
	}
	to := f.places.clause(from+1, at.to)
	f.cut(span{at.from + 1, from}, func(*excerpt) {})
	if len(f.flats) == 0 || !f.joins(n, span{from + 1, to}) {
		return nil, false
	}
	if f.st.is(to, "WHERE") && to < at.to {
		where := span{to + 1, f.places.clause(to+1, at.to)}
		kept, dropped, ok := f.conditions(n.WhereClause, where)
		if !ok {
			return nil, false
		}
		f.apart = f.apart || dropped && f.plain // a row that is left out with a group is not read
		f.cut(span{to, where.to}, func(x *excerpt) { f.put(x, " WHERE ", kept) })
		to = where.to
	}
	for _, g := range f.flats {
		f.apart = f.apart || g.query.HavingClause != nil && f.plain && !g.left
		if !f.flatten(g) {
			return nil, false
		}
	}
	if f.leftOut(n) || f.apart && (f.others || f.tied && !f.bound(n) && !f.untie(n, span{from, to})) {
		return nil, false
	}
	return f.excerpt(to)
}

func (f *flattening) cut(at span, put func(*excerpt)) { f.cuts = append(f.cuts, cut{at, put}) }

// put adds conditions.
func (f *flattening) put(x *excerpt, before string, conditions []span) {
	for _, c := range conditions {
		x.add(before + "(")
		x.take(f.st, c.from, c.to)
		x.add(")")
		before = " AND "
	}
}

// excerpt makes the cuts in the tokens before one.
func (f *flattening) excerpt(to int) (*excerpt, bool) {
	slices.SortStableFunc(f.cuts, func(a, b cut) int { return a.from - b.from })
	x, at := &excerpt{}, 0
	for _, c := range f.cuts {
		if c.from < at {
			return nil, false
		}
		if at < c.from {
			x.take(f.st, at, c.from)
		}
		x.add(" ")
		c.put(x)
		x.add(" ")
		at = c.to
	}
	if at < to {
		x.take(f.st, at, to)
	}
	return x, true
}

// item looks at an item of the statement's FROM clause, which join puts beside others.
func (f *flattening) item(n *ast.SelectStmt, item ast.Node, join *ast.JoinExpr) bool {
	switch item := bare(item).(type) {
	case *ast.JoinExpr:
		return item.Alias == nil && !item.IsNatural && item.UsingClause == nil && f.item(n, item.Larg, item) &&
			f.item(n, item.Rarg, item)
	case *ast.RangeSubselect:
		query, ok := item.Subquery.(*ast.SelectStmt)
		if ok && f.isFlat(query) {
			return item.Alias != nil && len(nodes(item.Alias.ColNames)) == 0 && f.add(query, item.Alias.AliasName, item, join)
		}
		f.plain, f.others = true, true
		return ok && f.allPlain(query)
	case *ast.RangeVar:
		query, def := f.named(n, item)
		if query == nil || !f.isFlat(query) {
			f.plain, f.others = true, f.others || query != nil
			f.tables = append(f.tables, item)
			return true
		}
		ref := item.RelName
		if item.Alias != nil {
			ref = item.Alias.AliasName
		}
		return len(nodes(def.Aliascolnames)) == 0 && (item.Alias == nil || len(nodes(item.Alias.ColNames)) == 0) &&
			mentions(n, def.Ctename) == 1 && f.add(query, ref, item, join)
	}
	return false
}

// named returns the query of the statement's WITH clause that a name means; nil where it means none.
func (f *flattening) named(n *ast.SelectStmt, item *ast.RangeVar) (*ast.SelectStmt, *ast.CommonTableExpr) {
	if n.WithClause == nil || item.SchemaName != "" {
		return nil, nil
	}
	for _, c := range nodes(n.WithClause.Ctes) {
		if def, ok := c.(*ast.CommonTableExpr); ok && def.Ctename == item.RelName {
			query, _ := def.Ctequery.(*ast.SelectStmt)
			return query, def
		}
	}
	return nil, nil
}

// isFlat reports whether a query puts rows together.
func (f *flattening) isFlat(n *ast.SelectStmt) bool {
	u, err := f.inspect(n.TargetList)
	return err != nil || u.aggregate || u.window || n.GroupClause != nil || n.HavingClause != nil ||
		n.DistinctClause != nil || n.Op != ast.SETOP_NONE
}

// allPlain reports whether neither a query nor one within it puts rows together.
func (f *flattening) allPlain(n ast.Node) bool {
	plain := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			return false
		case *ast.SelectStmt:
			plain = plain && !f.isFlat(n)
		}
		return plain
	}, n)
	return plain && whole
}

// joins looks at the conditions that join items of the FROM clause, somewhere in a span. Of an outer join whose
// optional side is flat a condition may be left out: what stands before it is shown in any case.
func (f *flattening) joins(stmt *ast.SelectStmt, at span) bool {
	ok := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			return false
		case *ast.JoinExpr:
			if pgtree.Missing(n.Quals) {
				return ok
			}
			if hasSubquery(n.Quals) {
				ok = false
				return false
			}
			on, found := f.condition(n.Quals, at)
			kept, dropped, known := f.conditions(n.Quals, on)
			_, join := bare(n.Rarg).(*ast.JoinExpr)
			right := slices.ContainsFunc(f.flats, func(g *flat) bool { return g.node == bare(n.Rarg) })
			inner := n.Jointype == ast.JOIN_INNER && !outerJoins(stmt.FromClause)
			f.apart = f.apart || dropped && f.plain && (inner || f.chosen(stmt, n)) // as by WHERE
			if ok = ok && found && known && (!dropped || inner || !join && right && n.Jointype == ast.JOIN_LEFT); ok && dropped {
				f.cut(on, func(x *excerpt) {
					x.add("true")
					f.put(x, " AND ", kept)
				})
			}
		}
		return ok
	}, stmt.FromClause)
	return ok && whole
}

// condition returns the tokens of a condition behind ON somewhere in a span.
func (f *flattening) condition(n ast.Node, at span) (span, bool) {
	s := seeker{planner: f.planner}
	for i := at.from; i < at.to; i++ {
		if !f.st.is(i, "ON") {
			continue
		}
		for to := i + 2; to <= at.to; to++ {
			if on := (span{i + 1, to}); f.mayEnd(to, at.to) && s.reads(n, on) {
				return on, s.alone(on)
			}
		}
	}
	return span{}, false
}

// mayEnd reports whether a condition of a join may stand before a token.
func (f *flattening) mayEnd(i, to int) bool {
	return i == to || f.st.mark(i, ",") || f.st.mark(i, ")") ||
		f.st.is(i, "JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "NATURAL", "ON")
}

// conditions divides a condition, which is a span, into parts that AND joins: those that choose rows before they are
// put together, and others, which are left out. It reports whether that is known of each.
func (f *flattening) conditions(n ast.Node, at span) (kept []span, dropped, ok bool) {
	s := seeker{planner: f.planner}
	parts := flatten(bare(n), ast.AND_EXPR)
	spans := []span{at}
	if len(parts) > 1 {
		spans = s.split(at, bare(n).(*ast.BoolExpr), "AND", parts)
	}
	if len(spans) != len(parts) {
		return nil, false, false
	}
	for i, part := range parts {
		switch before, known := f.before(part); {
		case !known:
			return nil, false, false
		case before:
			kept, f.equal = append(kept, spans[i]), f.equal || f.equates(part)
		default:
			dropped, f.tied = true, f.tied || f.namesOthers(part)
			if hasSubquery(part) {
				f.left = append(f.left, omitted{part, spans[i]})
			}
		}
	}
	return kept, dropped, true
}
