package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// A query of the WITH clause that is named once the server makes a part of the statement. Named by a copy, too, it
// would be computed apart, and what is joined with it be planned otherwise. So a copy beside a write has the query
// itself in the place of its name.

// A recalled one is a query of the WITH clause that a subquery names.
type recalled struct {
	*common
	item *ast.RangeVar
}

// recall puts those of a subquery into its copy that the server makes a part of the statement. It reports whether it
// does so with all that are looked into as such.
func (w *write) recall(r *reading, q *subquery) bool {
	if w.joined == nil || withOf(w.joined.stmt) == nil || w.part != nil || len(w.parts) > 0 {
		return true
	}
	for _, c := range q.recalled {
		at := slices.IndexFunc(nodes(withOf(r.stmt).Ctes), func(n ast.Node) bool { return n == ast.Node(c.def) })
		name := w.nameWithin(q, c.item)
		if at < 0 || at >= len(r.places.common) || name < 0 || !r.mayRecall(c) {
			if r.looksWithin(c) {
				return false
			}
			continue
		}
		place := r.places.common[at]
		q.edits = append(q.edits, w.queryAgain(r, span{place.opening, place.closing}, name, c)...)
		slices.SortStableFunc(q.edits, func(a, b edit) int { return a.start - b.start })
	}
	q.recalled = nil
	return true
}

// looksWithin reports whether a copy that has a query of the WITH clause in the place of its name shows what the
// subqueries in there read.
func (r *reading) looksWithin(c recalled) bool {
	query, ok := c.def.Ctequery.(*ast.SelectStmt)
	return ok && hasSubquery(query) && r.alone[query] == recalledBy && c.def.Ctematerialized == ast.CTEMaterializeDefault
}

// namedBeside returns how a query of the WITH clause stands that a subquery names of a statement which writes.
func (w *walker) namedBeside(c *common) standing {
	switch w.stmt.(type) {
	case *ast.UpdateStmt, *ast.DeleteStmt:
	default:
		return notAlone
	}
	switch {
	case len(w.parts) > 0 || w.part != nil:
		return notAlone
	case c.def.Ctematerialized == ast.CTEMaterializeNever, w.mayRecall(recalled{c, w.again}):
		return recalledBy
	case c.once:
		w.byCopies = append(w.byCopies, c)
		return apart
	}
	return notAlone
}

// noteWhole takes note of a column of a query's subquery that hangs on no row of it.
func (r *reading) noteWhole(n *ast.SelectStmt, c *besides) {
	if q := c.chain[0]; q.whole && !slices.Contains(r.ofNoRow[n], q) {
		r.ofNoRow[n] = append(r.ofNoRow[n], q)
	}
}

// addWhole has a subquery, which names a query of the WITH clause, show what those subqueries of that query read that
// hang on no row: without a row of it they need not have run. It reports whether it can.
func (l *looker) addWhole(q *subquery, query *ast.SelectStmt, rel *relation) bool {
	found := slices.Clone(l.ofNoRow[query])
	rel.sights = slices.DeleteFunc(slices.Clone(rel.sights), func(s *sight) bool {
		whole := s.within != nil && s.source.Whole
		if whole && s.within != query {
			found = append(found, l.ofNoRow[s.within]...)
		}
		return whole
	})
	for _, w := range found {
		if len(w.tests) > 0 || slices.ContainsFunc(w.within, func(v *subquery) bool { return v.whole }) {
			return false
		}
		if !slices.Contains(q.within, w) {
			q.within, q.gates = append(q.within, w), append(q.gates, w.gates...)
		}
	}
	return true
}

// mayRecall reports whether the server makes a query of the WITH clause a part of the statement, and gets the same rows
// from it another time. What it names of the clause would be named once more itself.
func (r *reading) mayRecall(c recalled) bool {
	query, ok := c.def.Ctequery.(*ast.SelectStmt)
	if !ok || !c.once || c.recursive || c.def.Ctematerialized != ast.CTEMaterializeDefault ||
		!r.readsAlike(query) || len(nodes(c.def.Aliascolnames)) > 0 && c.item.Alias != nil {
		return false
	}
	u, err := r.inspect(&ast.SubLink{Subselect: query})
	return err == nil && !u.volatile && !u.function && !slices.ContainsFunc(namesOf(withOf(r.stmt)), func(name string) bool {
		return mentions(query, name) > 0
	})
}

// nameWithin returns the token of a name in the FROM clause of a subquery; -1 where it is not known which one it is.
func (w *write) nameWithin(q *subquery, item *ast.RangeVar) int {
	found := -1
	for i := q.from + 1; i < q.where; i++ {
		if name, ok := w.st.ident(i); ok && name == item.RelName && !w.st.mark(i+1, ".") {
			if found >= 0 || w.st.mark(i-1, ".") {
				return -1
			}
			found = i
		}
	}
	return found
}

// queryAgain has a query, between two tokens, with what it passes outwards in the place of its name.
func (w *write) queryAgain(r *reading, at span, name int, c recalled) []edit {
	tok := w.st.toks[name]
	edits := []edit{{text: "("}}
	from, to := w.st.toks[at.from].End, w.st.toks[at.to].Start
	for _, e := range r.sorted() {
		if e.start < from || e.end > to {
			continue
		}
		edits = append(edits, edit{from: from, to: e.start}, edit{text: e.text, from: e.from, to: e.to})
		from = e.end
	}
	edits = append(edits, edit{from: from, to: to}, edit{text: ")"})
	if c.item.Alias == nil {
		var columns []string
		for _, n := range nodes(c.def.Aliascolnames) {
			columns = append(columns, quoted(n.(*ast.String).SVal))
		}
		list := strings.Join(columns, ", ")
		if list != "" {
			list = " (" + list + ")"
		}
		edits = append(edits, edit{text: " AS " + quoted(c.item.RelName) + list})
	}
	edits = slices.DeleteFunc(edits, func(e edit) bool { return e.text == "" && e.from >= e.to })
	for i := range edits {
		edits[i].start, edits[i].end = tok.Start, tok.Start
	}
	edits[len(edits)-1].end = tok.End
	return edits
}
