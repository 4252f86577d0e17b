package postgres

import (
	"slices"

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
	if told == nil || len(f.left) > 0 || !f.apart && !slices.ContainsFunc(f.flats, inlined(n)) ||
		slices.ContainsFunc(f.flats, func(g *flat) bool { return g.strays(s.stmt) }) {
		return out
	}
	for _, g := range f.flats {
		out.rels = append(out.rels, g.relation())
	}
	column := column{}
	column.add(edit{text: firstRow})
	asideCopy{x.of(outer), told}.spell(&column, true)
	column.add(edit{text: " END"})
	out.columns = append(out.columns, column)
	return out
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
	x.add(" SELECT FROM ")
	x.take(w.st, target, to)
	x.add(", ")
	x.take(w.st, from+1, end)
	return x, true
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
