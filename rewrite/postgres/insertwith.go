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
// reports whether the clause may stand a second time: it reads and cannot fail, as all of it reads each time.
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

// readsOnly reports whether the clause's queries do nothing but read, and the same each time.
func (w *write) readsOnly(c *clause) bool {
	if c.of.Recursive || w.st.chooses(c.from, c.to) {
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

// mayFail reports whether the clause may fail for a row that the server need not have come to.
func (c *clause) mayFail() bool { return c != nil && mayFail(c.of) }

// add adds the clause.
func (c *clause) add(x *excerpt, st *statement) {
	if c != nil {
		x.take(st, c.from, c.to)
		x.add(" ")
	}
}

// An excerpt is a text that holds parts of the client's.
type excerpt struct {
	text  string
	parts []taken
}

// A taken part of the client's text, the bytes [from, to), stands in an excerpt from byte at on.
type taken struct{ at, from, to int }

func (x *excerpt) add(s string) { x.text += s }

// take adds the client's tokens [from, to).
func (x *excerpt) take(st *statement, from, to int) {
	t := taken{len(x.text), st.toks[from].Start, st.toks[to-1].End}
	x.parts = append(x.parts, t)
	x.text += st.text[t.from:t.to]
}

// excerpt appends a text with its edits.
func (c *column) excerpt(x *excerpt, edits []edit) {
	at := 0
	for _, e := range edits {
		at = c.between(x, at, e.start)
		if e.from < e.to {
			c.between(x, e.from, e.to)
		} else {
			c.add(edit{text: e.text})
		}
		at = max(at, e.end)
	}
	c.between(x, at, len(x.text))
}

// between appends the bytes [at, to) of an excerpt, and returns the place behind them.
func (c *column) between(x *excerpt, at, to int) int {
	own := func(until int) {
		if until = min(until, to); at < until {
			c.add(edit{text: x.text[at:until]})
			at = until
		}
	}
	for _, t := range x.parts {
		own(t.at)
		if end := min(t.at+t.to-t.from, to); at >= t.at && at < end {
			c.take(x.text[at:end], edit{from: t.from + at - t.at, to: t.from + end - t.at})
			at = end
		}
	}
	own(to)
	return at
}

// take appends bytes of the client's, which an edit copies.
func (c *column) take(text string, e edit) {
	c.edits = append(c.edits, e)
	c.text += text
}
