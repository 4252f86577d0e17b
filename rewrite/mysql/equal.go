package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// A row that hangs on `x IN (SELECT y ...)` hangs on the rows with an equal y alone, so a copy asks for these.

// equalTo returns the condition that what a subquery behind IN shows is equal to what stands before that, a column or a
// row of columns: the subquery then means EXISTS, and the server may read no other rows.
func (pl *planner) equalTo(at *link, own, around sources) (string, bool) {
	n := at.query
	outer := []ast.ExprNode{at.equal}
	if row, ok := at.equal.(*ast.RowExpr); ok {
		outer = row.Values
	}
	if !asksForEqual(n) || n.Limit != nil || len(n.Fields.Fields) != len(outer) {
		return "", false
	}
	var tests []string
	for i, e := range outer {
		pair, ok := pl.equals(e, n.Fields.Fields[i].Expr, own, around)
		if !ok || pair.named(own) || at.part && !pair.alike() {
			return "", false
		}
		tests = append(tests, pair.outer+" = "+pair.own)
	}
	return strings.Join(tests, " AND "), true
}

// A matchedPair is an equality of a value of the sources around and of a subquery's.
type matchedPair struct {
	of, inner  *Column  // of which columns; nil where it is computed otherwise
	outer, own string   // how they are spelled
	around     []string // the sources that the first one names
}

// named reports whether one of these tables has the name of a source that is named around.
func (p matchedPair) named(tables sources) bool {
	return slices.ContainsFunc(p.around, func(name string) bool { return tables.named(name) != nil })
}

// alike reports whether the columns are compared as they are in each query of a UNION whose columns are all so: it has
// one type for all of them.
func (p matchedPair) alike() bool {
	return p.of != nil && p.inner != nil && (integerType(p.of.Type) && integerType(p.inner.Type) ||
		p.of.Full != "" && p.of.Full == p.inner.Full && p.of.Collation == p.inner.Collation)
}

// equals returns the equality of a value around and of a subquery's own, if the server compares them without a
// conversion.
func (pl *planner) equals(around, own ast.ExprNode, of, outside sources) (e matchedPair, ok bool) {
	inner, ok1 := own.(*ast.ColumnNameExpr)
	outer, ok2 := around.(*ast.ColumnNameExpr)
	if !ok1 || !ok2 {
		return pl.equalsComputed(around, own, of, outside)
	}
	left, spelled, as, ok1 := pl.columnAround(outer.Name, outside)
	right, name, ok2 := of.owner(inner.Name)
	l := listener{srcs: append(of[:len(of):len(of)], outside...), bodies: pl.nesting.bodies}
	if !ok1 || !ok2 || kindOf(left.Type) == anyKind || kindOf(left.Type) != kindOf(right.Type) ||
		l.kind(inner) == noisy || l.kind(outer) == noisy {
		return e, false
	}
	return matchedPair{left, right, spelled, quoted(name) + "." + quoted(right.Name), []string{as}}, true
}

// equalsComputed is equals of what is computed of columns. What is around the server has computed for each row of the
// result, so that it fails for none; what a subquery computes may fail for no row.
func (pl *planner) equalsComputed(around, own ast.ExprNode, of, outside sources) (e matchedPair, ok bool) {
	left, right := speller{pl: pl, of: outside}, speller{pl: pl, of: of}
	kind := (&listener{srcs: outside}).kind(around)
	var p pure
	own.Accept(&p)
	if pl.renamed != nil || kind == noisy || kind == anyKind || (&listener{srcs: of}).kind(own) != kind || p.other {
		return e, false
	}
	outer, ok1 := left.spell(around)
	inner, ok2 := right.spell(own)
	e = matchedPair{outer: outer, own: inner, around: left.tables}
	if column, ok := own.(*ast.ColumnNameExpr); ok {
		if e.inner, _, _ = of.owner(column.Name); left.integers(around) {
			e.of = &Column{Column: rewrite.Column{Type: "bigint"}}
		}
	}
	return e, ok1 && ok2
}

// besideName is the name of a subquery's table where its own name hides one of the tables around.
const besideName = rewrite.CarriedPrefix + "within"

// lookBesideName returns the column that shows what a subquery behind IN reads of its only table, whose name hides the
// row that is compared: within a query in FROM that table has another name outside.
func (pl *planner) lookBesideName(at *link, own sources, query clauses, b *block) ([]*besides, bool) {
	n, outer := at.query, []ast.ExprNode{at.equal}
	if row, ok := at.equal.(*ast.RowExpr); ok {
		outer = row.Values
	}
	if at.part || len(own) != 1 || n.Limit != nil || len(n.Fields.Fields) != len(outer) || pl.renamed != nil || b.n == nil ||
		pl.checkSpelling(own[0].name) != nil {
		return nil, false
	}
	var list, tests []string
	for i, e := range outer {
		pair, ok := pl.equals(e, n.Fields.Fields[i].Expr, own, b.srcs)
		if !ok {
			return nil, false
		}
		column := besideName + strconv.Itoa(i+1)
		list = append(list, pair.own+" AS "+column)
		tests = append(tests, pair.outer+" = "+besideName+"."+column)
	}
	for _, c := range []string{rewrite.RowIDColumn, rewrite.WListColumn} {
		list = append(list, quoted(own[0].name)+"."+c)
	}
	read := clauses{from: slices.Concat([]Piece{text("FROM (SELECT " + strings.Join(list, ", ") + " ")}, query.pieces(),
		[]Piece{text(") AS " + besideName)}), where: []Piece{text(strings.Join(tests, " AND "))}}
	of := *own[0]
	of.name = besideName
	return []*besides{{of: &of, node: n, equal: at.equal, query: read.pieces(), parts: read}}, true
}

// asksForEqual reports whether behind IN a subquery's rows with an equal value are read alone: each has a value of its
// own.
func asksForEqual(n *ast.SelectStmt) bool {
	u := &usage{}
	n.Fields.Accept(u)
	return n.GroupBy == nil && n.Having == nil && !u.outward && !u.window
}

// columnAround returns the column that a name surely means, how a copy spells it, and the name of its source: a table,
// or a query in FROM that shows a table's column.
func (pl *planner) columnAround(n *ast.ColumnName, around sources) (c *Column, spelled, as string, ok bool) {
	if c, as, ok = around.owner(n); ok {
		return c, pl.spelled(as, c, around), as, true
	}
	if n.Schema.L != "" || n.Table.L == "" && len(around) != 1 || pl.renamed != nil {
		return nil, "", "", false
	}
	s := around[0]
	if n.Table.L != "" {
		s = around.named(n.Table.O)
	}
	if s == nil || s.table != nil || s.name == "" {
		return nil, "", "", false
	}
	c = pl.columnBehind(s, n.Name.L)
	return c, quoted(s.name) + "." + quoted(n.Name.O), s.name, c != nil
}

// columnBehind returns the table's column that a query in FROM shows by a name; nil where it may show another value.
func (pl *planner) columnBehind(s *source, name string) *Column {
	if s.table != nil {
		return s.table.ColumnInAnyCase(name)
	}
	b := pl.nesting.bodies[s.query]
	if s.query == nil || b == nil {
		return pl.keyBehind(s, name)
	}
	var found *Column
	for _, f := range s.query.Fields.Fields {
		column, isColumn := f.Expr.(*ast.ColumnNameExpr)
		var c *Column
		switch {
		case f.WildCard != nil:
			c = pl.columnOfStar(b, f.WildCard.Table.O, name)
		case f.AsName.L != "" && f.AsName.L != name, f.AsName.L == "" && (!isColumn || column.Name.Name.L != name):
			continue
		case isColumn:
			c, _, _, _ = pl.columnAround(column.Name, b.srcs)
		}
		if c == nil || found != nil {
			return nil
		}
		found = c
	}
	return found
}

// keyBehind returns a view's column that is one of a table's key, or equal to that.
func (pl *planner) keyBehind(s *source, name string) *Column {
	base, ok := s.node.Source.(*ast.TableName)
	if !ok || s.rows != nil {
		return nil
	}
	schema := base.Schema.O
	if schema == "" {
		schema = pl.session.Schema
	}
	for _, t := range pl.behind(base) {
		if slices.ContainsFunc(t.shown, func(shown string) bool { return strings.EqualFold(shown, name) }) {
			return pl.lookup(schema, base.Name.O).ColumnInAnyCase(name)
		}
	}
	return nil
}

// columnOfStar returns the column of that name among those of a star, of one source or of all.
func (pl *planner) columnOfStar(b *block, of, name string) (c *Column) {
	for _, s := range b.srcs {
		if of != "" && !strings.EqualFold(s.name, of) {
			continue
		}
		if c != nil || len(b.srcs) > 1 && of == "" {
			return nil
		}
		c = pl.columnBehind(s, name)
	}
	return c
}
