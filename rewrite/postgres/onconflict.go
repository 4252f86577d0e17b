package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

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
