package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// Rows of tables that are joined with flat queries stand beside the client's rows. DISTINCT and HAVING leave some of
// these out, and those behind a view stand in no query of the client's. There they are told aside as well, by a copy of
// the client's FROM and WHERE clauses as they are (ADR 62).

// An asideCopy is a copy, and what it tells.
type asideCopy struct {
	*excerpt
	told *planner
}

// leavesOut reports whether the client's rows do not show all rows of the tables that are joined with flat queries.
func (f *flattening) leavesOut(n *ast.SelectStmt) bool {
	return n.DistinctClause != nil || n.HavingClause != nil || slices.ContainsFunc(f.tables, func(item *ast.RangeVar) bool {
		t, _ := f.lookup(item)
		return t != nil && t.View
	})
}

// tellJoined has such a copy tell these rows. It reports whether it can.
func (f *flattening) tellJoined(n *ast.SelectStmt) bool {
	if f.others || len(f.left) > 0 || hasSubquery(n.TargetList) || hasSubquery(n.WhereClause) || f.endsEarly(n) {
		return false
	}
	at := f.places.queries[n]
	from, to := f.st.rowsOf(at)
	if from < 0 {
		return false
	}
	x := &excerpt{}
	if at.from > 0 {
		x.take(f.st, 0, at.from)
	}
	x.add(" SELECT ")
	x.take(f.st, from, to)
	tree, err := parse(f.readable(x.text))
	if err != nil || !f.readsAlike(tree) {
		return false
	}
	var refs []string
	for _, item := range f.tables {
		refs = append(refs, refOf(item))
	}
	told, ok := f.tellingFlats(n, x.text, refs, false)
	f.joined = &asideCopy{x, told}
	return ok && told.plan.Observation == history.Exact && len(told.plan.Result.Sources) > 0
}

// endsEarly reports whether the server may need one row only, of which DISTINCT asks for what a condition fixes.
func (f *flattening) endsEarly(n *ast.SelectStmt) bool {
	return n.DistinctClause != nil && f.session.Version >= 16 && (len(nodes(n.DistinctClause)) > 0 || f.pinned(&block{n: n}))
}

// refOf is the name that columns of a table are qualified by.
func refOf(item *ast.RangeVar) string {
	if item.Alias != nil {
		return item.Alias.AliasName
	}
	return item.RelName
}
