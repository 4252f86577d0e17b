package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// usage is what a statement holds beside its own table accesses.
type usage struct {
	subquery  bool
	function  bool // a call of what may be a stored function
	aggregate bool // an aggregate function of the statement itself in its select list
	// outward is an aggregate function elsewhere: in a subquery from which it may reach out to the
	// statement itself, or where servers differ about what it makes of the statement.
	outward bool
	window  bool

	depth  int      // of subqueries around the node being visited
	inner  []string // names of the tables of these subqueries, in lower case
	scopes []int    // for each query in them, where its names begin
	// known are the tables behind these names, nil where the schema does not tell their columns; table
	// finds them.
	known  []*Table
	table  func(*ast.TableName) *Table
	list   bool // in the select list
	filter bool // in WHERE or ON, where no aggregate can belong to the statement itself
}

// inspectSelect looks through a SELECT, but not into derived tables, which are not observed anyway.
func (pl *planner) inspectSelect(n *ast.SelectStmt) *usage {
	u := &usage{list: true, table: pl.baseTable}
	n.Fields.Accept(u)
	u.list = false
	for i := range n.WindowSpecs {
		n.WindowSpecs[i].Accept(u)
	}
	if n.Having != nil {
		n.Having.Accept(u)
	}
	if n.OrderBy != nil {
		n.OrderBy.Accept(u)
	}
	u.filter = true
	if n.GroupBy != nil {
		n.GroupBy.Accept(u)
	}
	if n.Where != nil {
		n.Where.Accept(u)
	}
	if n.From != nil {
		n.From.Accept(u)
	}
	return u
}

// inspectWrite looks through an INSERT, UPDATE or DELETE.
func inspectWrite(n ast.Node) *usage {
	u := &usage{filter: true}
	n.Accept(u)
	return u
}

// Enter implements ast.Visitor.
func (u *usage) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.TableSource:
		_, base := n.Source.(*ast.TableName)
		_, join := n.Source.(*ast.Join)
		return n, u.depth == 0 && !base && !join
	case *ast.SelectStmt:
		u.enterQuery(n)
	case *ast.SubqueryExpr:
		u.subquery = true
		u.depth++
	case *ast.AggregateFuncExpr:
		switch {
		case u.depth == 0 && u.list:
			u.aggregate = true
		case u.depth == 0, !u.filter && u.reachesOut(n):
			u.outward = true
		}
	case *ast.WindowFuncExpr:
		u.window = u.window || u.depth == 0
	case *ast.FuncCallExpr:
		// The parser's own names, such as that of DATE '2020-01-01', begin with a quote.
		u.function = u.function || n.Schema.L != "" || !nativeFunctions[n.FnName.L] && n.FnName.L[0] != '\''
	}
	return n, false
}

// Leave implements ast.Visitor.
func (u *usage) Leave(n ast.Node) (ast.Node, bool) {
	switch n.(type) {
	case *ast.SubqueryExpr:
		u.depth--
	case *ast.SelectStmt:
		u.inner, u.known = u.inner[:u.scopes[len(u.scopes)-1]], u.known[:u.scopes[len(u.scopes)-1]]
		u.scopes = u.scopes[:len(u.scopes)-1]
	}
	return n, true
}

// enterQuery takes note of the names of a query's tables: its select list is visited before its FROM.
func (u *usage) enterQuery(n *ast.SelectStmt) {
	u.scopes = append(u.scopes, len(u.inner))
	if n.From == nil {
		return
	}
	for _, s := range flatten(n.From.TableRefs) {
		base, ok := s.node.Source.(*ast.TableName)
		switch {
		case s.node.AsName.L != "":
			u.inner = append(u.inner, s.node.AsName.L)
		case ok:
			u.inner = append(u.inner, base.Name.L)
		default:
			continue
		}
		u.known = append(u.known, nil)
		if ok && n.With == nil && u.table != nil {
			u.known[len(u.known)-1] = u.table(base)
		}
	}
}

// holds reports whether an unqualified column is surely one of the innermost query's own tables.
func (u *usage) holds(name string) bool {
	return len(u.scopes) > 0 && slices.ContainsFunc(u.known[u.scopes[len(u.scopes)-1]:], func(t *Table) bool {
		return t != nil && column(t, name) != nil
	})
}

// baseTable returns the table that a name means, where that is certain.
func (pl *planner) baseTable(name *ast.TableName) *Table {
	if c, uncertain := pl.nesting.with.find(name.Name.O); name.Schema.L == "" && (c != nil || uncertain) {
		return nil
	}
	t, _ := pl.table(name)
	return t
}

// reachesOut reports whether an aggregate in a subquery may take its argument from outside: it then
// belongs to the outer query, as SUM(t.a) does in SELECT (SELECT SUM(t.a)) FROM t.
func (u *usage) reachesOut(n *ast.AggregateFuncExpr) bool {
	var args argumentTables
	for _, a := range n.Args {
		a.Accept(&args)
	}
	return slices.ContainsFunc(args.unqualified, func(c string) bool { return !u.holds(c) }) ||
		slices.ContainsFunc(args.tables, func(t string) bool { return !slices.Contains(u.inner, t) })
}

// argumentTables collects the qualifiers of the columns in an expression, and the columns without one.
type argumentTables struct {
	tables      []string
	unqualified []string
}

// Enter implements ast.Visitor.
func (a *argumentTables) Enter(n ast.Node) (ast.Node, bool) {
	if c, ok := n.(*ast.ColumnNameExpr); ok {
		if c.Name.Table.L == "" {
			a.unqualified = append(a.unqualified, c.Name.Name.O)
		} else {
			a.tables = append(a.tables, c.Name.Table.L)
		}
	}
	return n, false
}

// Leave implements ast.Visitor.
func (a *argumentTables) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// downgradeBy downgrades the plan for what a statement does beside its own table accesses.
func (pl *planner) downgradeBy(u *usage) {
	if u.subquery {
		pl.downgrade(history.ReasonSubquery)
	}
	if u.function {
		pl.downgrade(history.ReasonFunction)
	}
}
