package mysql

import (
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// MariaDB reads the groups of a SELECT from a temporary table, or beside arrays of identities from a sort. What it says
// of a column that a function, MIN or MAX gives depends on that: out of a temporary table, an ENUM is an ENUM and a
// long text a BLOB, ZEROFILL is kept, and a BIT has its bytes instead of a number's digits (docs/adr/0010). What is
// made of columns of the types below is the same on both ways.
var samePlannedTypes = set("tinyint smallint mediumint int bigint decimal float double date time datetime " +
	"timestamp varchar varbinary")

// maxPlannedText is how many characters the texts may have together that an expression is made of. MariaDB stores those
// of over 512 as BLOBs in temporary tables; functions may make them longer.
const maxPlannedText = 255

// changesPlannedTypes reports whether the values of a grouped SELECT, or their types, may depend on how MariaDB finds
// the groups.
func (pl *planner) changesPlannedTypes(n *ast.SelectStmt, srcs sources) bool {
	if n.GroupBy == nil {
		return false
	}
	for _, f := range n.Fields.Fields {
		v := plannedTypes{srcs: srcs, bodies: pl.nesting.bodies}
		if f.Expr != nil && v.changes(f.Expr) {
			return true
		}
	}
	return false
}

// A plannedTypes looks for what depends on MariaDB's plan in an item of a select list.
type plannedTypes struct {
	srcs   sources
	bodies map[*ast.SelectStmt]*block // of the queries in FROM clauses
	found  bool
	chars  int // of the texts that the item is made of
}

// changes reports whether an expression may be of another type, or have other values, in another plan.
func (v *plannedTypes) changes(e ast.ExprNode) bool {
	if c, ok := e.(*ast.ColumnNameExpr); ok {
		v.column(c.Name, true)
	} else {
		e.Accept(v)
	}
	return v.found || v.chars > maxPlannedText
}

// Enter implements ast.Visitor. Subqueries and aggregates but MIN and MAX give the same on both ways.
func (v *plannedTypes) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		return n, true
	case *ast.AggregateFuncExpr:
		f := strings.ToLower(n.F)
		return n, f != ast.AggFuncMin && f != ast.AggFuncMax
	case *ast.ColumnNameExpr:
		v.column(n.Name, false)
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *plannedTypes) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// column looks at the column of a name, of which plain says that it is the item itself. A name that no table has is one
// of a query in the FROM clause.
func (v *plannedTypes) column(n *ast.ColumnName, plain bool) {
	for _, s := range v.srcs {
		if s.table == nil || n.Table.O != "" && !strings.EqualFold(s.name, n.Table.O) {
			continue
		}
		if c := s.table.ColumnInAnyCase(n.Name.O); c != nil {
			if !plain {
				v.stored(c)
			}
			return
		}
	}
	for _, s := range v.srcs {
		if s.table == nil && (n.Table.O == "" || strings.EqualFold(s.name, n.Table.O)) {
			v.derived(s, n.Name.L, plain)
		}
	}
}

// stored looks at a table's column that is part of an expression.
func (v *plannedTypes) stored(c *Column) {
	v.found = v.found || !samePlannedTypes[c.Type] || strings.Contains(c.Full, "zerofill")
	if length, ok := parenthesized(c.Full); ok && strings.HasPrefix(c.Type, "var") {
		size, err := strconv.Atoi(length)
		v.found = v.found || err != nil
		v.chars += size
	}
}

// derived looks at the column of a query in the FROM clause. One that is not known may be of any type.
func (v *plannedTypes) derived(s *source, name string, plain bool) {
	query, ok := s.node.Source.(*ast.SelectStmt)
	if !ok || v.bodies[query] == nil {
		v.found = true
		return
	}
	inner := plannedTypes{srcs: v.bodies[query].srcs, bodies: v.bodies}
	for _, f := range query.Fields.Fields {
		own, isColumn := f.Expr.(*ast.ColumnNameExpr)
		named := f.AsName.L == name || isColumn && f.AsName.L == "" && own.Name.Name.L == name
		switch {
		case f.WildCard != nil:
			inner.column(&ast.ColumnName{Table: f.WildCard.Table, Name: ast.NewCIStr(name)}, plain)
		case named && isColumn:
			inner.column(own.Name, plain)
		case named:
			f.Expr.Accept(&inner)
		}
	}
	v.found = v.found || inner.found
	v.chars += inner.chars
}
