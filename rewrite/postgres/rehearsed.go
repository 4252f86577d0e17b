package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// The server looks at the select list before it looks at the condition, and at ORDER BY last. What a copy in the list
// has wrong it would tell before what is wrong in front of the client's own, and it would take a parameter's type from
// where the copy has it. So what the client has up to there stands before the copies once more, where it is never
// evaluated, and no plan has it.

// rehearses reports whether copies of a block's subqueries can stand behind what the server looks at before these.
func (r *reading) rehearses(b *block) bool {
	n := b.n
	if hasSubquery(n.GroupClause) && (n.HavingClause != nil || n.SortClause != nil) {
		return false // it looks at GROUP BY behind these, and a column of the group is none of its rows
	}
	if hasSubquery(n.SortClause) && slices.ContainsFunc(nodes(n.SortClause), func(item ast.Node) bool {
		by, ok := item.(*ast.SortBy)
		return !ok || namesResult(by.Node) && !b.mayResult(by.Node)
	}) {
		return false
	}
	if !hasSubquery(n.WhereClause) && !hasSubquery(n.SortClause) {
		return true
	}
	u, err := r.inspect(n.WhereClause)
	return err == nil && !u.aggregate && !u.window && !u.reachesOut(b.rels)
}

// namesResult reports whether an item of ORDER BY may mean one of the select list: it is a name, or a position.
func namesResult(by ast.Node) bool {
	switch by := by.(type) {
	case *ast.ColumnRef:
		return len(fields(by)) == 1
	case *ast.A_Const:
		return true
	}
	return false
}

// mayResult reports whether such an item may have a meaning.
func (b *block) mayResult(by ast.Node) bool {
	ref, ok := by.(*ast.ColumnRef)
	if !ok {
		return true
	}
	names, open := b.outputs()
	return open || slices.Contains(names, fields(ref)[0]) ||
		slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.has(fields(ref)[0]) })
}

// namedAgain reports whether copies name all queries of WITH clauses that the block's condition names: of one that is
// named a second time the server makes no part of the statement.
func (l *looker) namedAgain() bool {
	n := l.block.n
	if !hasSubquery(n.WhereClause) && !hasSubquery(n.SortClause) {
		return true
	}
	for sc := l.sc; sc != nil; sc = sc.up {
		for _, c := range sc.common {
			name := c.def.Ctename
			_, reads := c.def.Ctequery.(*ast.SelectStmt)
			if reads && c.def.Ctematerialized == ast.CTEMaterializeDefault &&
				mentions(&ast.SelectStmt{WhereClause: n.WhereClause, SortClause: n.SortClause}, name) > 0 &&
				!slices.ContainsFunc(l.found, func(b *besides) bool { return mentions(b.chain[0].query, name) > 0 }) {
				return false
			}
		}
	}
	return true
}

// rehearsed puts the block's condition before a column that shows what its subqueries read, and its order if that has
// some.
func (r *reading) rehearsed(b *block, column spelling) spelling {
	if !hasSubquery(b.n.WhereClause) && !hasSubquery(b.n.SortClause) {
		return column
	}
	var s spelling
	if b.grouped || b.unique {
		s.text("CASE WHEN false THEN pg_catalog.array_agg((SELECT NULL::pg_catalog.text")
	} else {
		s.text("CASE WHEN false THEN (SELECT NULL::pg_catalog.text[]")
	}
	here := r.places.queries[b.n]
	if where := r.places.whereClause(here.listEnd+1, here.to); where.from < where.to {
		s.text(" WHERE ")
		s.copy(r.st, where.from, where.to)
	}
	r.rehearseOrder(b, &s)
	if b.grouped || b.unique {
		s.text(")")
	}
	s.text(") ELSE ")
	s = append(slices.Clip(s), column...)
	s.text(" END")
	return s
}

// rehearseOrder copies those items of ORDER BY that are no names of the select list, if it has subqueries.
func (r *reading) rehearseOrder(b *block, s *spelling) {
	if !hasSubquery(b.n.SortClause) {
		return
	}
	here, by := r.places.queries[b.n], nodes(b.n.SortClause)
	at := here.listEnd + 1
	for at < here.to && !r.st.is(at, "ORDER") {
		at = r.places.clause(at+1, here.to)
	}
	spans := r.st.cut(span{min(at+2, here.to), r.places.clause(at+1, here.to)}, ",")
	lead := " ORDER BY "
	for i, item := range spans {
		if len(spans) != len(by) || namesResult(by[i].(*ast.SortBy).Node) {
			continue
		}
		s.text(lead)
		s.copy(r.st, item.from, item.to)
		lead = ", "
	}
}
