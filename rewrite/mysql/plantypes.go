package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// A server reads the groups of a SELECT from a temporary table, or beside arrays of identities from a sort. What it
// says of a column that a function, MIN or MAX gives depends on that. On MariaDB, out of a temporary table, an ENUM is
// an ENUM and a long text a BLOB, ZEROFILL is kept, and a BIT has its bytes instead of a number's digits
// (docs/adr/0010). What is made of columns of the types below is the same on both ways.
//
// On MySQL, out of a temporary table, an integer of few digits that is computed is an INT, YEAR() is one, and a
// subquery in the select list has its text for its name; of texts and moments it is as on MariaDB.
var samePlannedTypes = set("tinyint smallint mediumint int bigint decimal float double date time datetime " +
	"timestamp varchar varbinary")

// maxPlannedText is how many characters the texts may have together that an expression is made of. MariaDB stores those
// of over 512 as BLOBs in temporary tables; functions may make them longer.
const maxPlannedText = 255

// changesPlannedTypes reports whether the values of a grouped SELECT, or their types, may depend on how the server
// finds the groups.
func (pl *planner) changesPlannedTypes(n *ast.SelectStmt, srcs sources) bool {
	if n.GroupBy == nil || pl.session.Dialect == TiDB {
		return false
	}
	l := &listener{srcs: srcs, fields: n.Fields.Fields, bodies: pl.nesting.bodies}
	return slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		v := plannedTypes{srcs: srcs, bodies: pl.nesting.bodies}
		return f.Expr != nil && (v.changes(f.Expr) || pl.session.Dialect == MySQL && v.mayCount(f.Expr, l) ||
			movesNoMoment(f.Expr, l))
	})
}

// mayCount reports whether MySQL may say INT of an item in a plan, and BIGINT in another: it is computed of a group's
// columns, and surely neither a text nor a moment.
func (v *plannedTypes) mayCount(e ast.ExprNode, l *listener) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return v.mayCount(e.Expr, l)
	case *ast.ColumnNameExpr, *ast.AggregateFuncExpr:
		return false
	}
	if hasSubquery(e) {
		return true
	}
	kind := l.kind(e)
	return namesOutsideAggregates(e) && kind != textual && kind != moment
}

// namesOutsideAggregates reports whether an expression names a column elsewhere than in an aggregate.
func namesOutsideAggregates(e ast.ExprNode) bool {
	named := false
	e.Accept(lookInto(func(n ast.Node) (skip bool) {
		_, column := n.(*ast.ColumnNameExpr)
		_, aggregate := n.(*ast.AggregateFuncExpr)
		named = named || column
		return aggregate
	}))
	return named
}

// movesNoMoment reports whether an expression adds an interval to something other than a moment: the text that comes of
// it is of another type in another plan.
func movesNoMoment(e ast.ExprNode, l *listener) bool {
	moves := false
	e.Accept(lookInto(func(n ast.Node) (skip bool) {
		f, ok := n.(*ast.FuncCallExpr)
		moves = moves || ok && intervalFunctions[f.FnName.L] && len(f.Args) > 0 && l.kind(f.Args[0]) != moment
		return false
	}))
	return moves
}

// A lookInto is called for each node of an expression. It reports whether to leave out what is in it.
type lookInto func(n ast.Node) (skip bool)

// Enter implements ast.Visitor.
func (f lookInto) Enter(n ast.Node) (ast.Node, bool) { return n, f(n) }

// Leave implements ast.Visitor.
func (f lookInto) Leave(n ast.Node) (ast.Node, bool) { return n, true }

var intervalFunctions = set("date_add date_sub adddate subdate")

// A plannedTypes looks for what depends on the plan in an item of a select list.
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
		case named && plain: // its query's name is said in one plan alone
			v.found = true
		case named:
			f.Expr.Accept(&inner)
		}
	}
	v.found = v.found || inner.found
	v.chars += inner.chars
}
