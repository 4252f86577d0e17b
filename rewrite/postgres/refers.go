package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// Whether a subquery hangs on a row of the query around it is a matter of what its names mean: those of the innermost
// query that has them. A query in FROM does not see what stands beside it.

// A referral looks for names in a query that mean relations around it.
type referral struct {
	inner, around []*relation // those that the query and what is in it has, and those around it
	found, unsure bool
}

// A level is what the FROM clause of a query, and the names of its select list where these count, give to it.
type level struct {
	up      *level
	refs    []string
	results []string
}

// refersTo reports whether a query, where relations stand within, names a column of those around it; sure says that
// this is known.
func refersTo(n *ast.SelectStmt, inner, around []*relation) (refers, sure bool) {
	r := &referral{inner: inner, around: around}
	whole := pgtree.Walk(func(ast.Node) bool {
		r.query(n, nil)
		return false
	}, n)
	return r.found, whole && (r.found || !r.unsure)
}

// mayReferTo reports whether a query may name a column of the relations around it.
func mayReferTo(n *ast.SelectStmt, inner, around []*relation) bool {
	refers, sure := refersTo(n, inner, around)
	return refers || !sure
}

// query looks into a query that stands in others.
func (r *referral) query(n *ast.SelectStmt, up *level) {
	if n == nil {
		return
	}
	own := &level{up: up, refs: refsOf(n.FromClause)}
	r.names(own, up, n.WithClause, n.FromClause, n.TargetList, n.WhereClause, n.HavingClause, n.WindowClause, n.LimitCount,
		n.LimitOffset, n.ValuesLists)
	named := *own
	for _, item := range nodes(n.TargetList) {
		if t, ok := item.(*ast.ResTarget); ok {
			named.results = append(named.results, t.Name)
			if call, ok := t.Val.(*ast.FuncCall); ok && t.Name == "" {
				named.results = append(named.results, lastName(call.Funcname))
			}
		}
	}
	r.names(&named, up, n.GroupClause, n.DistinctClause, n.SortClause)
	r.query(n.Larg, up)
	r.query(n.Rarg, up)
}

// names looks at the names in parts of a query. The queries in its FROM and WITH clauses see what stands around it.
func (r *referral) names(own, up *level, parts ...ast.Node) {
	pgtree.Each(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ColumnRef:
			r.name(n, own)
		case *ast.SelectStmt: // of a subquery
			r.query(n, own)
			return false
		case *ast.RangeSubselect:
			q, ok := n.Subquery.(*ast.SelectStmt)
			sees := up
			if n.Lateral {
				before, known := own.before(n)
				sees, ok = &level{up: up, refs: before}, ok && known
			}
			if r.unsure = r.unsure || !ok; ok {
				r.query(q, sees)
			}
			return false
		case *ast.RangeFunction:
			r.unsure = true // it sees what stands before it
		case *ast.CommonTableExpr:
			q, ok := n.Ctequery.(*ast.SelectStmt)
			if r.unsure = r.unsure || !ok; ok {
				r.query(q, up)
			}
			return false
		}
		return true
	}, parts...)
}

// before returns the names of the items that stand before a LATERAL one. It reports whether they are known.
func (l *level) before(n *ast.RangeSubselect) (refs []string, known bool) {
	if n.Alias == nil {
		return nil, false
	}
	i := slices.Index(l.refs, n.Alias.AliasName)
	return l.refs[:max(i, 0)], i >= 0
}

// name looks for what a name means: a column before a table.
func (r *referral) name(ref *ast.ColumnRef, own *level) {
	names := ofTable(ref)
	for l := own; l != nil; l = l.up {
		switch {
		case len(names) == 1:
			if has, sure := r.has(l, names[0]); has || !sure {
				r.unsure = r.unsure || !sure && r.meansAround(names)
				return
			}
			if l == own && slices.Contains(l.results, names[0]) {
				return
			}
		case slices.Contains(l.refs, names[0]):
			r.unsure = r.unsure || len(fields(ref)) > 2 && r.meansAround(names) // it may be the alias of another table
			return
		}
	}
	if len(names) == 1 && !slices.ContainsFunc(r.around, func(rel *relation) bool { return rel.has(names[0]) }) {
		for l := own; l != nil; l = l.up {
			if slices.Contains(l.refs, names[0]) {
				return // the whole row
			}
		}
	}
	r.found = r.found || r.meansAround(names)
}

// ofTable returns the names of a reference without that of a schema.
func ofTable(ref *ast.ColumnRef) []string {
	names := fields(ref)
	return names[max(0, len(names)-2):]
}

// meansAround reports whether a name is of one of the relations around.
func (r *referral) meansAround(names []string) bool {
	return slices.ContainsFunc(r.around, func(rel *relation) bool {
		return rel.ref == names[0] || len(names) == 1 && rel.has(names[0])
	})
}

// has reports whether what a FROM clause names has a column, if that is sure: of what another query further within has
// by the same name it may be another.
func (r *referral) has(l *level, column string) (has, sure bool) {
	sure = true
	for _, ref := range l.refs {
		with, without, open := 0, 0, false
		for _, rel := range r.inner {
			switch {
			case rel.ref != ref:
			case rel.has(column):
				with++
				open = open || rel.open
			default:
				without++
			}
		}
		if with > 0 && without == 0 && !open {
			return true, true
		}
		sure = sure && with == 0 && without > 0
	}
	return false, sure
}

// refsOf returns the names that the items of a FROM clause have.
func refsOf(from *ast.NodeList) (refs []string) {
	for _, item := range nodes(from) {
		refs = append(refs, refsOfItem(item)...)
	}
	return refs
}

func refsOfItem(item ast.Node) []string {
	var alias *ast.Alias
	switch n := bare(item).(type) {
	case *ast.RangeVar:
		if n.Alias == nil {
			return []string{n.RelName}
		}
		alias = n.Alias
	case *ast.JoinExpr:
		if n.Alias == nil {
			return append(refsOfItem(n.Larg), refsOfItem(n.Rarg)...)
		}
		alias = n.Alias
	case *ast.RangeSubselect:
		alias = n.Alias
	case *ast.RangeFunction:
		alias = n.Alias
	}
	if alias == nil {
		return nil
	}
	return []string{alias.AliasName}
}
