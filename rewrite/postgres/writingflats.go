package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// What an UPDATE or DELETE is joined with may group, and be named by the WITH clause: a column with a clock would have
// the server compute all of such a query. Or a condition leaves groups out. Then a copy tells the rows of the groups,
// as for a SELECT that has the same clauses and the table that is written in FROM (flattened.go). RETURNING shows it
// with the first row.

// toldAside are queries of the FROM or USING clause that such a copy tells.
type toldAside struct {
	rels    []*relation
	columns []column
}

// flatsAside returns those of a statement; none where RETURNING can have what they are made of from themselves.
func (w *write) flatsAside(s writing) (out toldAside) {
	if w.part != nil || len(w.parts) > 0 || w.session.Serializable || !w.runsSubqueriesAgain() || w.holdsUnlogged() {
		return out
	}
	outer, ok := w.asSelect(s)
	if !ok {
		return out
	}
	c := w.reader(s.query, outer.text)
	c.ctes, c.silent = nil, nil
	tree, err := parse(c.readable(outer.text))
	n, isSelect := tree.(*ast.SelectStmt)
	if err != nil || !isSelect {
		return out
	}
	f, x, told := c.flatCopyOf(n, true)
	queries := func(g *flat) bool { return hasSubquery(g.query) }
	if told == nil || len(f.left) > 0 ||
		!f.apart && !slices.ContainsFunc(f.flats, inlined(n)) && !slices.ContainsFunc(f.flats, queries) ||
		slices.ContainsFunc(f.flats, func(g *flat) bool { return g.strays(s.stmt) }) {
		return out
	}
	for _, g := range f.flats {
		out.rels = append(out.rels, g.relation())
	}
	first := column{}
	first.add(edit{text: firstRow})
	asideCopy{x.of(outer), told}.spell(&first, true)
	first.add(edit{text: " END"})
	computed, ok := f.computedBeside(outer)
	if !ok {
		return toldAside{}
	}
	out.columns = append(computed, first)
	return out
}

// computedBeside returns what shows beside the rows that are written, in a text that the statement's clauses are put
// into, what is computed of groups otherwise than by aggregates. It reports whether that is known.
func (f *flattening) computedBeside(outer *excerpt) (columns []column, ok bool) {
	for _, g := range f.flats {
		found, ok := f.lookComputed(g, false)
		if !ok || len(columns)+len(found) > maxBesideColumns {
			return nil, false
		}
		for _, c := range found {
			b := &block{n: g.query}
			shown := column{sources: []Source{c.source(b)}}
			shown.excerpt(c.spell(f.reading, b).excerpt(f.st).of(outer), nil)
			columns = append(columns, shown)
		}
	}
	return columns, true
}

// asSelect returns the SELECT that has the clauses of an UPDATE or DELETE, and its table in FROM.
func (w *write) asSelect(s writing) (*excerpt, bool) {
	target, p, x := 1, &placer{statement: w.st, queries: make(map[*ast.SelectStmt]querySpan)}, &excerpt{}
	if w.st.is(0, "WITH") {
		after, err := p.with(s.query.WithClause, 0, len(w.st.toks))
		if err != nil {
			return nil, false
		}
		x.take(w.st, 0, after)
		target += after
	}
	to := p.find(target, "SET")
	if _, deletes := s.stmt.(*ast.DeleteStmt); deletes {
		target++
		to = p.find(target, s.from)
	} else if _, updates := s.stmt.(*ast.UpdateStmt); !updates {
		return nil, false
	}
	from := p.find(to, s.from)
	for from > 0 && p.is(from-1, "DISTINCT") {
		from = p.find(from+1, s.from)
	}
	if to <= target || from < to {
		return nil, false
	}
	end := p.find(from, "RETURNING")
	if end < 0 {
		end = len(w.st.toks)
	}
	x.add(" SELECT " + shownBy(s) + " FROM ")
	x.take(w.st, target, to)
	x.add(", ")
	x.take(w.st, from+1, end)
	return x, true
}

// shownBy spells the columns that an UPDATE assigns as they are, which it shows with each row.
func shownBy(s writing) string {
	var shown []string
	for _, item := range assigned(s.stmt) {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			continue
		}
		if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && star(&ast.ResTarget{Val: ref}) == nil && len(fields(ref)) <= 2 {
			shown = append(shown, spelledColumn(ref))
		}
	}
	return strings.Join(shown, ", ")
}

// inlined returns what reports whether a flat query is one of the WITH clause that the server puts in the place of its
// name.
func inlined(n *ast.SelectStmt) func(*flat) bool {
	return func(g *flat) bool {
		return n.WithClause != nil && slices.ContainsFunc(nodes(n.WithClause.Ctes), func(c ast.Node) bool {
			def, ok := c.(*ast.CommonTableExpr)
			return ok && def.Ctequery == ast.Node(g.query) && def.Ctematerialized != ast.CTEMaterializeAlways
		})
	}
}

// strays reports whether a flat query may see more in a SELECT than in a statement that writes, or is named elsewhere.
func (g *flat) strays(stmt ast.Stmt) bool {
	switch item := g.node.(type) {
	case *ast.RangeSubselect:
		return item.Lateral
	case *ast.RangeVar:
		return mentions(stmt, item.RelName) > 1
	}
	return true
}
