package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// placed places the query of an INSERT.
func (w *write) placed(n *ast.InsertStmt) (*placer, error) {
	p := &placer{statement: w.st, queries: make(map[*ast.SelectStmt]querySpan)}
	after := 0
	if n.WithClause != nil {
		var err error
		if after, err = p.with(n.WithClause, 0, len(w.st.toks)); err != nil {
			return nil, err
		}
	}
	from, to := w.st.inserted(after, n.OnConflictClause != nil)
	if from < 0 {
		return nil, errUnplaced
	}
	return p, p.place(n.SelectStmt.(*ast.SelectStmt), from, to)
}

// leavesOut reports whether a query may read rows and show none.
func leavesOut(q *ast.SelectStmt) bool {
	if q.Op == ast.SETOP_NONE {
		return q.HavingClause != nil
	}
	return q.Op != ast.SETOP_UNION || leavesOut(q.Larg) || leavesOut(q.Rarg)
}

// inserted returns the tokens of the query of an INSERT, which begins at token from; -1 where they are not found.
func (st *statement) inserted(from int, conflict bool) (_, to int) {
	for ; from < len(st.toks); from++ {
		if st.is(from, "SELECT", "WITH") {
			break
		}
	}
	for st.mark(from-1, "(") {
		from--
	}
	if to = st.find(from, "RETURNING"); to < 0 {
		to = len(st.toks)
	}
	if !conflict {
		return from, to
	}
	for i := to - 1; i > from; i-- {
		if st.is(i, "ON") && st.is(i+1, "CONFLICT") {
			return from, i
		}
	}
	return -1, -1
}

// A query that locks rows inserts of the versions that it locks. Where the transaction goes by one snapshot these are
// the snapshot's, which the copy reads: were one of them replaced, that would be an error. At READ COMMITTED it is not
// known.

// passesOver reports whether a query may leave out rows that others have locked.
func passesOver(q *ast.SelectStmt) bool {
	return slices.ContainsFunc(nodes(q.LockingClause), func(c ast.Node) bool {
		locking, ok := c.(*ast.LockingClause)
		return !ok || locking.WaitPolicy == ast.LockWaitSkip
	})
}

// tellingAs has the copy of a query tell what it reads, by one array, and by a planner that knows more of the copy. It
// reports whether it can.
func (pl *planner) tellingAs(q *ast.SelectStmt, text string, knows func(*planner)) (*planner, bool) {
	c := pl.reader(q, text)
	knows(c)
	tree, err := parse(c.readable(text))
	if err != nil {
		return nil, false
	}
	n, ok := tree.(*ast.SelectStmt)
	return c, ok && c.selectRows(n) == nil
}

// reader returns a planner of the copy of a query.
func (pl *planner) reader(q *ast.SelectStmt, text string) *planner {
	toks, _ := pgtoken.Scan(nil, text, pl.session.Backslashes)
	return &planner{rewriter: pl.rewriter, session: pl.session, st: &statement{text: text, toks: toks},
		plan: &Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact}}, of: q,
		ctes: pl.ctes, silent: pl.silent}
}

// firstRow begins what is shown with the first row that is inserted: the second position is computed once, with that
// row, and every further row moves the first one.
const firstRow = "CASE WHEN " + logPosition + " OPERATOR(pg_catalog.<=) (SELECT " + logPosition + ") THEN "

// limitAt returns the token of the number behind a query's LIMIT, which stands at its end; 0 where it has none. It
// reports whether that is all there is.
func (st *statement) limitAt(q *ast.SelectStmt, from, to int) (limit int, ok bool) {
	if q.LimitCount == nil {
		return 0, q.LimitOffset == nil
	}
	p := placer{statement: st}
	limit = p.findIn(from, to, "LIMIT") + 1
	return limit, limit > 0 && limit+1 == to && st.toks[limit].Kind == pgtoken.Number
}

// rowsOf returns the tokens of a query's FROM and WHERE clauses; -1 where it has none.
func (st *statement) rowsOf(at querySpan) (from, to int) {
	p := placer{statement: st}
	from = p.clause(at.from+1, at.to)
	if !st.is(from, "FROM") || from >= at.to {
		return -1, -1
	}
	if to = p.clause(from+1, at.to); st.is(to, "WHERE") && to < at.to {
		to = p.clause(to+1, at.to)
	}
	return from, to
}

// scalars reports whether all functions in a select list surely give one value for each row.
func scalars(list *ast.NodeList) (so bool) {
	so = true
	whole := pgtree.Walk(func(n ast.Node) bool {
		if call, ok := n.(*ast.FuncCall); ok {
			names := nodes(call.Funcname)
			last, ok := names[len(names)-1].(*ast.String)
			so = so && ok && (immutable[last.SVal] || functions[last.SVal])
		}
		return so
	}, list)
	return so && whole
}

// holdsUnlogged reports whether rows may be inserted that the write-ahead log does not tell of.
func (w *write) holdsUnlogged() bool {
	if w.target.table.Unlogged {
		return true
	}
	for _, leaf := range w.target.table.Leaves {
		schema, name, _ := strings.Cut(leaf, ".")
		if t := w.rewriter.schema.Table(schema, name); t != nil && t.Unlogged {
			return true
		}
	}
	return false
}
