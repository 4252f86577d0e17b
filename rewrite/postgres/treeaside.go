package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A statement that makes one row of a tree, or joins arrays to its rows by LATERAL, is told aside: as if all of it were
// a subquery, by arrays that are computed once. The client's query stays as it is.

// tellTree puts the statement into a SELECT that shows what it reads.
func (pl *planner) tellTree(n *ast.SelectStmt) error {
	missed := refusal(history.ReasonSubquery)
	u, err := pl.inspect(&ast.SubLink{Subselect: n})
	if err != nil || u.function || u.volatile || u.unsure || locks(n) || n.IntoClause != nil || n.Op != ast.SETOP_NONE || !makesJSON(n) {
		return missed
	}
	r := newReading(pl, n, nil)
	if err := r.places.place(n, 0, len(pl.st.toks)); err != nil {
		return err
	}
	l := &looker{reading: r, behind: true, block: &block{n: n}, with: make(map[string]*ast.SelectStmt)}
	if !l.namesWith(n) {
		return missed
	}
	at := link{SubLink: &ast.SubLink{SubLinkType: ast.EXPR_SUBLINK, Subselect: n}, lists: true}
	found, ok := l.look(at, nil, 0)
	if !ok {
		return missed
	}
	for _, q := range found {
		if q.most = MaxAside; !q.whole || len(q.tests) > 0 || q.query.WhereClause == nil && q.isLarge() || q.mayLeaveOut() {
			return missed
		}
		l.columns(nil, q)
	}
	if len(l.found) == 0 || len(l.found) > maxAsideColumns {
		return missed
	}
	return l.wrap(n, " OFFSET 0")
}

// namesWith takes note of the queries of the statement's WITH clause. It reports whether each is a SELECT that is named
// once, and hides no table.
func (l *looker) namesWith(n *ast.SelectStmt) bool {
	if n.WithClause == nil {
		return true
	}
	for _, item := range nodes(n.WithClause.Ctes) {
		def, ok := item.(*ast.CommonTableExpr)
		if !ok {
			return false
		}
		query, ok := def.Ctequery.(*ast.SelectStmt)
		if !ok || n.WithClause.Recursive || len(nodes(def.Aliascolnames)) > 0 || mentions(n, def.Ctename) != 1 ||
			l.with[def.Ctename] != nil {
			return false
		}
		l.with[def.Ctename] = query
	}
	return true
}

// inWith reports whether a name is that of a query of a WITH clause.
func (l *looker) inWith(n *ast.RangeVar) bool {
	return n.SchemaName == "" && (l.with[n.RelName] != nil || l.sc.find(n.RelName) != nil)
}

// isLarge reports whether a table has more rows than are shown.
func (q *subquery) isLarge() bool {
	for _, s := range q.tables {
		if s.table.Rows > MaxAside {
			return true
		}
	}
	return false
}

// mayLeaveOut reports whether the server may read less than the rows that a query finds: of a table on the optional
// side of a join.
func (q *subquery) mayLeaveOut() bool {
	return len(q.optional) > 0 || slices.ContainsFunc(q.instead, func(p placeholder) bool { return p.optional })
}

// takesAllRows reports whether a query's rows are made of all rows that it finds, whatever these are.
func (l *looker) takesAllRows(n *ast.SelectStmt) bool {
	u, err := l.inspect(n.TargetList)
	return err == nil && !u.window && n.GroupClause == nil && n.HavingClause == nil && n.DistinctClause == nil && n.WindowClause == nil &&
		!(u.aggregate && extremes(u))
}

// makesJSON reports whether a statement calls a function that makes JSON.
func makesJSON(n *ast.SelectStmt) (makes bool) {
	pgtree.Walk(func(n ast.Node) bool {
		call, ok := n.(*ast.FuncCall)
		makes = makes || ok && strings.Contains(lastName(call.Funcname), "json")
		return !makes
	}, n)
	return makes
}
