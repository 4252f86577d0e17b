package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
)

// SELECT COUNT(*) FROM (SELECT DISTINCT ...) has one row of all that the query in its FROM clause reads, which cannot
// pass identities outwards where it removes duplicates, or groups. A second subquery of the same FROM clauses and
// conditions can show them beside that row (ADR 62).

// maxAside is how many identities of a table are shown beside the only row of a result.
const maxAside = 1000

// countsRows reports whether a statement has one row in any case, made of all rows of the only query in its FROM
// clause.
func (pl *planner) countsRows(b *block, use *usage) bool {
	n := b.n
	return n == pl.alone && len(b.srcs) == 1 && b.grouped && n.GroupBy == nil && n.Where == nil && n.Having == nil &&
		n.Limit == nil && n.LockInfo == nil && n.OrderBy == nil && n.With == nil && !use.subquery && !use.window &&
		!use.function && pl.readsAgain(n)
}

// readsAside reports whether what a query in the FROM clause reads is shown beside the statement's row.
func (pl *planner) readsAside(s *source) bool {
	if s != pl.nesting.counted {
		return false
	}
	var all []*besides
	switch n := s.node.Source.(type) {
	case *ast.SelectStmt:
		if !n.Distinct && n.GroupBy == nil {
			return false // it passes its identities outwards
		}
		if !pl.aside(n, &all) {
			return false
		}
	case *ast.SetOprStmt:
		if n.With != nil || n.SelectList == nil || n.SelectList.With != nil || n.Limit != nil {
			return false
		}
		for _, operand := range n.SelectList.Selects {
			query, _ := onlyQuery(operand)
			if query == nil || query.AfterSetOperator != nil && *query.AfterSetOperator != ast.Union &&
				*query.AfterSetOperator != ast.UnionAll || !pl.aside(query, &all) {
				return false
			}
		}
	default:
		return false
	}
	if len(all) == 0 || len(all) > maxBesideColumns {
		return false
	}
	pl.besides, pl.literal, pl.plan.Upstream.FitsOnly = all, true, true
	return true
}

// aside adds the columns that show what a query of tables reads by its FROM clause and condition.
func (pl *planner) aside(n *ast.SelectStmt, all *[]*besides) bool {
	srcs, read, ok := pl.readBy(n)
	limit, err := pl.session.arrayLimit()
	if !ok || err != nil {
		return false
	}
	if limit == 0 || limit > maxAside {
		limit = maxAside
	}
	for _, s := range srcs {
		*all = append(*all, &besides{of: s, query: read.pieces(), whole: true, limit: limit})
	}
	return true
}

// readBy returns the tables of a query without a LIMIT, and the text by which it reads them, if another copy of that
// may be run.
func (pl *planner) readBy(n *ast.SelectStmt) (srcs sources, read clauses, ok bool) {
	if n.Kind != ast.SelectStmtKindSelect || n.From == nil || n.With != nil || n.LockInfo != nil || n.TableHints != nil ||
		n.Limit != nil || len(n.WindowSpecs) > 0 || merges(n.From.TableRefs) || !innerJoins(n.From.TableRefs) {
		return nil, read, false
	}
	if u := inspectWrite(n); u.subquery || u.function || u.window {
		return nil, read, false
	}
	srcs = flatten(n.From.TableRefs)
	if !pl.baseSources(srcs) {
		return nil, read, false
	}
	verb := pl.armVerb(n)
	if verb < 0 {
		return nil, read, false
	}
	end := verb
	for end <= pl.st.last() && pl.st.Tokens[end].Depth >= pl.st.Tokens[verb].Depth {
		end++
	}
	read, ok = pl.clausesIn(n, verb, end)
	return srcs, read, ok && pl.harmless(n, srcs)
}
