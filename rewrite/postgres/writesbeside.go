package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A statement that writes shows, beside each row, what its subqueries read: those of its condition and of the values
// that it assigns, of what joins the tables of its FROM or USING clause, and of its RETURNING clause. RETURNING is
// evaluated in the statement's snapshot, which does not have what it writes.

// A place in a writing statement where a subquery stands.
type written uint8

const (
	inCondition written = iota
	inValues            // that are assigned
	inJoin
	inReturning
)

// A writtenLink is a subquery of a statement that writes.
type writtenLink struct {
	link
	at written
}

// lookInto has a statement show, beside each row that it writes, what its subqueries read. It reports whether that is
// so for all that read tables; others are the rest of the statement. An error is that a query of the WITH clause must
// stay as it is.
func (w *write) lookInto(sc *scope, where ast.Node, assignments, others []ast.Node) (bool, error) {
	again := w.runsSubqueriesAgain()
	if !again && w.part == nil || slices.ContainsFunc(others, func(n ast.Node) bool { return n != w.toldBeside && hasSubquery(n) }) {
		return false, nil
	}
	if sc == nil {
		sc = w.seenByPart()
	}
	b := w.beside()
	links, ok := w.linksOf(b, where, assignments)
	if !ok || w.plan.Kind == history.Update && w.misassigns(b.rels, assignments) {
		return false, nil
	}
	l := looker{reading: w.joined, sc: sc, block: b, with: w.puttingTogether()}
	if w.joined == nil {
		l.reading = newReading(w.planner, nil, nil)
	}
	for _, link := range links {
		if w.aggregatesAround(link.SubLink, b.rels) {
			return false, nil // the server names the clause in which that must not be, and RETURNING is another
		}
		l.behind = w.plan.Kind != history.Update || link.at != inValues // what an UPDATE assigns comes behind RETURNING
		if w.readsNothing(link.link) {
			continue
		}
		if query, is := w.locksItself(link.link, where); is {
			found, ok := w.lookIntoLocking(l, query, assignments)
			if !ok || len(found) > 0 && !again {
				return false, l.bar
			}
			l.found = append(l.found, found...)
			continue
		}
		if !again {
			return false, nil
		}
		around := b.rels
		if link.at == inReturning && w.plan.Kind == history.Insert {
			around = append([]*relation{{ref: w.target.ref, base: &w.target}}, around...)
		}
		all, ok := l.look(link.link, around, 1)
		if !ok {
			return false, l.bar
		}
		for _, q := range all {
			before := len(l.found)
			l.columns(nil, q)
			if link.at != inReturning && !w.seesWritten(link.link, q, b.rels, assignments, l.found[before:]) {
				return false, l.bar
			}
		}
	}
	if len(l.found) > maxBesideColumns {
		return false, nil
	}
	for _, c := range l.found {
		for _, q := range append(c.chain[:len(c.chain):len(c.chain)], c.unless) {
			if q != nil && !w.recall(l.reading, q) {
				return false, l.bar
			}
		}
	}
	for _, c := range l.found {
		c.asText = w.part != nil
		s := c.spell(l.reading, b)
		w.columns = append(w.columns, column{edits: s, text: s.in(w.st), sources: []Source{c.source(b)}})
	}
	return true, nil
}

// puttingTogether returns those queries of the statement's WITH clause that put rows together, and are named once. A
// subquery that takes all of what one gives reads what that reads.
func (w *write) puttingTogether() map[string]*ast.SelectStmt {
	if w.joined == nil || w.part != nil || len(w.parts) > 0 || withOf(w.joined.stmt) == nil || withOf(w.joined.stmt).Recursive {
		return nil
	}
	found, names := make(map[string]*ast.SelectStmt), namesOf(withOf(w.joined.stmt))
	for _, c := range nodes(withOf(w.joined.stmt).Ctes) {
		def, ok := c.(*ast.CommonTableExpr)
		if !ok {
			return nil
		}
		query, ok := def.Ctequery.(*ast.SelectStmt)
		if ok && len(nodes(def.Aliascolnames)) == 0 && mentions(w.joined.stmt, def.Ctename) == 1 &&
			(&flattening{reading: w.joined}).isFlat(query) &&
			!slices.ContainsFunc(names, func(name string) bool { return mentions(query, name) > 0 }) {
			found[def.Ctename] = query
		}
	}
	return found
}

// aggregatesAround reports whether an aggregate in a subquery is surely one of the statement's own rows.
func (w *write) aggregatesAround(n *ast.SubLink, around []*relation) bool {
	u, err := w.inspect(n)
	if err != nil {
		return true
	}
	var refs []string
	pgtree.Walk(func(n ast.Node) bool {
		if from, ok := n.(*ast.SelectStmt); ok {
			refs = append(refs, refsOf(from.FromClause)...)
		}
		return true
	}, n)
	return slices.ContainsFunc(u.inner, func(of []string) bool {
		return len(of) > 0 && !slices.ContainsFunc(of, func(name string) bool {
			return slices.Contains(refs, name) || !slices.ContainsFunc(around, func(rel *relation) bool { return rel.ref == name })
		})
	})
}

// misassigns reports whether values that an UPDATE assigns may have a name that means nothing. The server looks at them
// behind RETURNING, so that of two mistakes it would tell one that is copied there.
func (w *write) misassigns(around []*relation, assignments []ast.Node) (may bool) {
	if !slices.ContainsFunc(assignments, hasSubquery) {
		return false
	}
	var refs []string
	whole := pgtree.Walk(func(n ast.Node) bool {
		if from, ok := n.(*ast.SelectStmt); ok {
			refs = append(refs, refsOf(from.FromClause)...)
		}
		return true
	}, assignments...)
	return !pgtree.Walk(func(n ast.Node) bool {
		ref, ok := n.(*ast.ColumnRef)
		if names := []string(nil); ok {
			names = fields(ref)
			last := names[len(names)-1]
			at := slices.IndexFunc(around, func(rel *relation) bool { return rel.ref == names[0] })
			switch {
			case len(names) != 2, slices.Contains(refs, names[0]):
			case at >= 0:
				may = may || !around[at].has(last) && last != "*" && !isSystemColumn(last)
			default:
				may = may || !slices.Contains(refsOf(w.from), names[0])
			}
		}
		return !may
	}, assignments...) || may || !whole
}

// beside is what the subqueries of the statement stand among.
func (w *write) beside() *block {
	b := &block{n: &ast.SelectStmt{FromClause: w.from}, rels: w.rels}
	if w.plan.Kind != history.Insert { // what it inserts is made before there is a row
		b.rels = append([]*relation{{ref: w.target.ref, base: &w.target}}, w.rels...)
	}
	if w.joined == nil {
		for _, s := range w.read {
			b.rels = append(b.rels, &relation{ref: s.ref, base: &s})
		}
	}
	return b
}

// linksOf collects the subqueries of the statement. It reports whether it is known of all when they are evaluated.
func (w *write) linksOf(b *block, where ast.Node, assignments []ast.Node) (links []writtenLink, ok bool) {
	s := seeker{planner: w.planner, fails: true}
	add := func(at written) {
		for _, link := range s.links {
			links = append(links, writtenLink{link, at})
		}
		s.links = nil
	}
	all := span{0, len(w.st.toks)}
	for _, a := range assignments {
		s.behind = w.plan.Kind != history.Update
		t, ok := a.(*ast.ResTarget)
		if !ok || !s.seek(t.Val, all, anyValue, nil) {
			return nil, false
		}
	}
	add(inValues)
	s.behind = true
	if !s.seek(where, w.st.condition(), ofAll, nil) {
		return nil, false
	}
	add(inCondition)
	if !s.joins(b, all) {
		return nil, false
	}
	add(inJoin)
	for _, item := range w.client {
		t, ok := item.(*ast.ResTarget)
		if !ok || hasSubquery(item) && (w.merges || w.namesVersions(item)) || !s.seek(t.Val, all, anyValue, nil) {
			return nil, false
		}
	}
	add(inReturning)
	return links, true
}

// namesVersions reports whether something may name the row as it was, or as it is, by the names for these.
func (w *write) namesVersions(n ast.Node) (names bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			first := fields(ref)[0]
			names = names || first == w.versions.old || first == w.versions.new
		}
		return !names
	}, n)
	return names || !whole
}

// condition returns the tokens of the statement's condition, or all tokens where it has none.
func (st *statement) condition() span {
	from := st.find(0, "WHERE")
	if from < 0 {
		return span{0, len(st.toks)}
	}
	to := st.find(from, "RETURNING", "ON")
	if to < 0 {
		to = len(st.toks)
	}
	return span{from + 1, to}
}

// seesWritten has the columns of a subquery see the row as the subquery saw it. It reports whether they can.
func (w *write) seesWritten(at link, q *subquery, around []*relation, assignments []ast.Node, found []*besides) bool {
	r := w.renews(at, q, assignments)
	if r == same {
		return true
	}
	row := w.replacedRow(at, w.target.ref, around, assignments)
	sometimes := func(c *besides) bool { return c.chain[0].whole }
	if r == lost || row == nil || row.checked && slices.ContainsFunc(found, sometimes) {
		return false
	}
	seesReplaced(found, row)
	return true
}
