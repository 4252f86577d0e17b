package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// The query of an INSERT may name those of a WITH clause. Its copy in RETURNING has a copy of that clause in front:
// were a query of the client's own clause named once more, the server would compute all of it, where it made it one
// with what names it before.

// A clause is the WITH clause before the query of an INSERT, the tokens [from, to).
type clause struct {
	of       *ast.WithClause
	from, to int
}

// clauseBefore returns the WITH clause of an INSERT, or that of its query, which is placed; nil where it has none. It
// reports whether the clause may stand a second time: it does nothing but read.
func (w *write) clauseBefore(n *ast.InsertStmt, p *placer) (*clause, bool) {
	q := n.SelectStmt.(*ast.SelectStmt)
	c := &clause{of: n.WithClause}
	switch {
	case n.WithClause == nil && q.WithClause == nil:
		return nil, true
	case n.WithClause != nil && q.WithClause != nil:
		return nil, false // the one within sees the other
	case q.WithClause != nil:
		c.of = q.WithClause
		if c.from, _ = w.st.inserted(0, n.OnConflictClause != nil); !w.st.is(c.from, "WITH") {
			return nil, false // in parentheses
		}
	}
	to, err := p.with(c.of, c.from, len(w.st.toks))
	c.to = to
	return c, err == nil && w.readsOnly(c)
}

// readsOnly reports whether the clause's queries do nothing but read.
func (w *write) readsOnly(c *clause) bool {
	if c.of.Recursive {
		return false // without an end, perhaps
	}
	for _, item := range nodes(c.of.Ctes) {
		def, ok := item.(*ast.CommonTableExpr)
		if !ok || slices.Contains(w.silent, def.Ctename) || slices.Contains(w.around, def.Ctename) {
			return false
		}
		query, ok := def.Ctequery.(*ast.SelectStmt)
		u, err := w.inspect(query)
		if !ok || err != nil || u.function || u.volatile || locks(query) {
			return false
		}
	}
	return true
}

// add adds the clause.
func (c *clause) add(x *excerpt, st *statement) {
	if c != nil {
		x.take(st, c.from, c.to)
		x.add(" ")
	}
}
