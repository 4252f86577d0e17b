package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// A joinConditions are what finds the rows of the optional side of a join: parts that must all hold, and columns of
// USING.
type joinConditions struct {
	all   []ast.ExprNode
	using []string
}

// conditionsOf returns the conditions of a join and those within its optional side. It reports whether these are all.
func (o *outerJoins) conditionsOf(j *ast.Join, side ast.ResultSetNode) (c joinConditions, ok bool) {
	if j.NaturalJoin || merges(side) {
		return c, false
	}
	if j.On != nil {
		c.all = parts(j.On.Expr, nil)
	}
	for _, name := range j.Using {
		c.using = append(c.using, name.Name.O)
	}
	var within []ast.ExprNode
	ons(side, &within)
	for _, e := range within {
		c.all = parts(e, c.all)
	}
	return c, true
}

// findsOne tells whether conditions find one row of the sources at most, as MariaDB sees it: surely for a table of
// which they equate all columns of a unique index with something else, and surely not where they do not name all of
// any.
func (o *outerJoins) findsOne(of sources, c joinConditions) asksFrom {
	if len(of) == 1 && of[0].table != nil && o.equatesKey(of[0], c) {
		return surelyAsked
	}
	if slices.ContainsFunc(of, func(s *source) bool { return o.surelySeveral(s, c) }) {
		return notAsked
	}
	return maybeAsked
}

// surelySeveral reports whether several rows of a source may be found, as the server sees it.
func (o *outerJoins) surelySeveral(s *source, c joinConditions) bool {
	if s.table == nil {
		if o.tidb() {
			return false
		}
		q, ok := s.node.Source.(*ast.SelectStmt)
		_, united := s.node.Source.(*ast.SetOprStmt)
		return united || ok && q.GroupBy == nil && (q.Limit != nil || q.Distinct || onlyAggregates(q))
	}
	for _, x := range s.table.Indexes {
		if x.Primary || x.Unique {
			if !slices.ContainsFunc(x.Columns, func(name string) bool { return name == "" || !o.names(c, s, name) }) {
				return false
			}
		}
	}
	return true
}

// names reports whether conditions may name a column of a source.
func (o *outerJoins) names(c joinConditions, s *source, column string) bool {
	if slices.ContainsFunc(c.using, func(name string) bool { return strings.EqualFold(name, column) }) {
		return true
	}
	var all namedColumns
	for _, e := range c.all {
		if !ordersApart(e) {
			e.Accept(&all)
		}
	}
	return slices.ContainsFunc(all.names, func(name *ast.ColumnName) bool {
		return strings.EqualFold(name.Name.O, column) && (name.Table.L == "" || strings.EqualFold(name.Table.O, s.name))
	})
}

// ordersApart reports whether a part of a condition compares by another operator than = and <=>.
func ordersApart(e ast.ExprNode) bool {
	of, ok := e.(*ast.BinaryOperationExpr)
	if !ok {
		return false
	}
	switch of.Op {
	case opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NE:
		return true
	}
	return false
}

// equatesKey reports whether conditions surely equate all columns of a unique index of a table.
func (o *outerJoins) equatesKey(s *source, c joinConditions) bool {
	equated := make(map[string]bool)
	for _, name := range c.using {
		if own := s.table.ColumnInAnyCase(name); own != nil && o.joinsAlike(s, own) {
			equated[strings.ToLower(name)] = true
		}
	}
	for _, e := range c.all {
		of, ok := e.(*ast.BinaryOperationExpr)
		if !ok || of.Op != opcode.EQ && of.Op != opcode.NullEQ {
			continue
		}
		for _, sides := range [][2]ast.ExprNode{{of.L, of.R}, {of.R, of.L}} {
			own := o.columnOf(s, sides[0])
			if own != nil && (of.Op == opcode.EQ || s.table.notNull(own)) && o.bindsTo(s, own, sides[1]) {
				equated[strings.ToLower(own.Name)] = true
			}
		}
	}
	return slices.ContainsFunc(s.table.Indexes, func(x rewrite.Index) bool {
		return (x.Primary || x.Unique) && !slices.ContainsFunc(x.Columns, func(name string) bool {
			return name == "" || !equated[strings.ToLower(name)]
		})
	})
}

// columnOf returns the column of a source that an expression surely is, or nil.
func (o *outerJoins) columnOf(s *source, e ast.ExprNode) *Column {
	name, ok := bareExpr(e).(*ast.ColumnNameExpr)
	if !ok || o.asks(name, s) != surelyAsked {
		return nil
	}
	return s.table.ColumnInAnyCase(name.Name.Name.O)
}

// asks tells whether an expression names columns of a source.
func (o *outerJoins) asks(e ast.ExprNode, s *source) asksFrom {
	return (&asksOf{o: o, of: sources{s}}).in(e)
}

// bareExpr returns an expression without the parentheses around it.
func bareExpr(e ast.ExprNode) ast.ExprNode {
	for p, ok := e.(*ast.ParenthesesExpr); ok; p, ok = e.(*ast.ParenthesesExpr) {
		e = p.Expr
	}
	return e
}

// bindsTo reports whether the server surely takes a column that is equal to a value of other tables for fixed by it.
// It goes by the types of both; where NULLs of a key's column may be several, the value must not be one.
func (o *outerJoins) bindsTo(s *source, own *Column, value ast.ExprNode) bool {
	if hasSubquery(value) || o.asks(value, s) != notAsked {
		return false
	}
	given := valueOf{notNull: true}
	switch e := bareExpr(value).(type) {
	case *ast.ColumnNameExpr:
		if o.tidb() && !s.table.notNull(own) {
			return false
		}
		of, c := o.columnNamed(e.Name)
		if c == nil {
			return false
		}
		given = valueOf{column: c, notNull: of.table.notNull(c) && !of.outer}
	case *test_driver.ValueExpr:
		if o.tidb() || e.Kind() == test_driver.KindNull {
			return false
		}
		given.text = e.Kind() == test_driver.KindString
	case *ast.BinaryOperationExpr:
		var p arithmetic
		if e.Accept(&p); p.other || o.tidb() {
			return false
		}
		given.notNull = false
	default:
		return false
	}
	if o.tidb() && given.column != nil && (given.column.Full != own.Full || given.column.Collation != own.Collation) {
		return false
	}
	return given.binds(own, s.table.notNull(own))
}

// joinsAlike reports whether the tables before a table in a join by USING have a column of its name and type.
func (o *outerJoins) joinsAlike(s *source, own *Column) bool {
	alike := 0
	for _, other := range o.srcs {
		if other == s {
			continue
		}
		if other.table == nil {
			return false
		}
		if c := other.table.ColumnInAnyCase(own.Name); c != nil {
			if v := (valueOf{column: c}); o.tidb() || !v.binds(own, s.table.notNull(own)) {
				return false
			}
			alike++
		}
	}
	return alike > 0
}

// columnNamed returns the column that a name surely means.
func (o *outerJoins) columnNamed(name *ast.ColumnName) (*source, *Column) {
	for _, s := range o.srcs {
		if s.table != nil && o.asks(&ast.ColumnNameExpr{Name: name}, s) == surelyAsked {
			return s, s.table.ColumnInAnyCase(name.Name.O)
		}
	}
	return nil, nil
}

// notNull reports whether a column of the table is never NULL.
func (t *Table) notNull(c *Column) bool {
	return c.NotNull || slices.ContainsFunc(t.Indexes, func(x rewrite.Index) bool {
		return x.Primary && slices.ContainsFunc(x.Columns, func(name string) bool { return strings.EqualFold(name, c.Name) })
	})
}

// A valueOf is what a column is equated with: another column, a literal, or what is computed of integers.
type valueOf struct {
	column  *Column
	text    bool // it is a literal text
	notNull bool
}

var wholeTypes = set("tinyint smallint mediumint int bigint")

// binds reports whether a column is fixed by the value.
func (v valueOf) binds(own *Column, notNull bool) bool {
	if v.column != nil && v.column.Full == own.Full && v.column.Type == own.Type && v.column.Collation == own.Collation {
		return kindOf(own.Type) != anyKind && !strings.HasSuffix(own.Type, "text") && !strings.HasSuffix(own.Type, "blob")
	}
	if !notNull && !v.notNull {
		return false
	}
	switch {
	case wholeTypes[own.Type]:
		return v.column == nil || wholeTypes[v.column.Type] || v.column.Type == "decimal"
	case own.Type == "decimal":
		return v.column == nil || wholeTypes[v.column.Type] || v.column.Type == "decimal"
	case own.Type == "varchar" || own.Type == "char":
		return v.text || v.column != nil && v.column.Collation == own.Collation &&
			(v.column.Type == "varchar" || v.column.Type == "char")
	}
	return false
}

// An arithmetic looks for what is not computed of columns and integers.
type arithmetic struct{ other bool }

// Enter implements ast.Visitor.
func (p *arithmetic) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.BinaryOperationExpr:
		p.other = p.other || n.Op != opcode.Plus && n.Op != opcode.Minus && n.Op != opcode.Mul
	case *test_driver.ValueExpr:
		p.other = p.other || n.Kind() != test_driver.KindInt64
	case *ast.ColumnNameExpr, *ast.ColumnName, *ast.ParenthesesExpr:
	default:
		p.other = true
	}
	return n, p.other
}

// Leave implements ast.Visitor.
func (p *arithmetic) Leave(n ast.Node) (ast.Node, bool) { return n, !p.other }

// A folds looks for parts of a condition that the server may fold to a constant, and others with them.
type folds struct{ found bool }

// Enter implements ast.Visitor.
func (f *folds) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.LogicOr, opcode.LogicAnd, opcode.LogicXor:
			f.found = f.found || rowless(n.L) || rowless(n.R)
		case opcode.NullEQ:
			f.found = f.found || sameColumn(n.L, n.R)
		}
	case *ast.CaseExpr:
		f.found = true
	case *ast.FuncCallExpr:
		f.found = f.found || !failsForNone[n.FnName.L] && n.FnName.L != "coalesce" && n.FnName.L != "ifnull"
	}
	return n, f.found
}

// Leave implements ast.Visitor.
func (f *folds) Leave(n ast.Node) (ast.Node, bool) { return n, !f.found }

// rowless reports whether an expression names no column.
func rowless(e ast.ExprNode) bool {
	var all namedColumns
	e.Accept(&all)
	return len(all.names) == 0
}

// sameColumn reports whether two expressions are one column.
func sameColumn(a, b ast.ExprNode) bool {
	left, ok := bareExpr(a).(*ast.ColumnNameExpr)
	right, also := bareExpr(b).(*ast.ColumnNameExpr)
	return ok && also && left.Name.Name.L == right.Name.Name.L
}
