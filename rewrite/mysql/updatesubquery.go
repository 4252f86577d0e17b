package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// What the subqueries of an UPDATE read is collected by an assignment behind the client's own: what fails of these, or
// is warned of, comes first (ADR 62).

// lookIntoUpdate finds what shows what the subqueries of an UPDATE of one table read, in its condition and in what it
// assigns. It reports whether that is so for all of them.
func (pl *planner) lookIntoUpdate(n *ast.UpdateStmt, t *Table) bool {
	locks := pl.session.WriteReads == ReadLocked
	srcs := flatten(n.TableRefs.TableRefs)
	if pl.session.WriteReads == NotAgain || pl.session.Dialect == TiDB || !pl.copiesInWrites() ||
		n.Order != nil && hasSubquery(n.Order) || !pl.baseSources(srcs) {
		return false
	}
	changed, ok := changedColumns(n.List), !pl.computesBehind(t, false, nil)
	b := &block{srcs: srcs, dialect: pl.session.Dialect}
	found, fine := pl.lookIntoCondition(n.Where, b, locks)
	if ok = ok && fine; ok && slices.ContainsFunc(found, func(c *besides) bool { return c.decided != nil }) {
		ok = !namesAny(n.Where, nil, changed)
	}
	assigned, fine := pl.lookIntoAssignments(n.List, b, changed, locks)
	found = append(found, assigned...)
	for _, c := range found {
		ok = ok && !namesAny(c.node, found, changed) && (c.equal == nil || !namesAny(c.equal, nil, changed))
	}
	l := outsideOf(found, b)
	few := pl.updatesOneRow(n, srcs[0]) || l.allFit(n.List, t) && l.silent(n.Where)
	return pl.keepBesides(found, ok && fine && few, t)
}

// changedColumns returns the names of the columns that an UPDATE changes.
func changedColumns(list []*ast.Assignment) (names []string) {
	for _, a := range list {
		names = append(names, a.Column.Name.L)
	}
	return names
}

// lookIntoAssignments returns what shows what the subqueries of assigned values read.
func (pl *planner) lookIntoAssignments(list []*ast.Assignment, b *block, changed []string, locks bool) (found []*besides,
	ok bool) {
	for _, a := range list {
		var links []link
		if !assignedSubqueries(a.Expr, &links) {
			return nil, false
		}
		for i := range links {
			at := &links[i]
			columns, ok := pl.lookFrom(at, b, locks)
			if !ok || !pl.hangOnOperands(at, columns, b, changed) {
				return nil, false
			}
			found = append(found, columns...)
		}
	}
	return found, true
}

// allFit reports whether the server has surely nothing to say of any value that is assigned.
func (l *outside) allFit(list []*ast.Assignment, t *Table) bool {
	return !slices.ContainsFunc(list, func(a *ast.Assignment) bool {
		c := t.ColumnInAnyCase(a.Column.Name.O)
		return c == nil || !l.storable(a.Expr, c)
	})
}

// updatesOneRow reports whether an UPDATE changes one row at most, since its condition gives the primary key a value of
// its own kind.
func (pl *planner) updatesOneRow(n *ast.UpdateStmt, s *source) bool {
	copies, ok := pl.asksForOneRow(n.Where, s)
	if ok {
		pl.parameters = append(pl.parameters, copies...)
	}
	return ok
}

// asksForOneRow reports whether a condition gives the primary key a value of its own kind, if copies fit: another value
// of a parameter may be that of a few rows, whose numbers are equal as floating-point ones.
func (pl *planner) asksForOneRow(where ast.ExprNode, s *source) (copies []Copy, ok bool) {
	if where == nil {
		return nil, false
	}
	keys := make(map[string]bool)
	pl.keyValues(where, s, keys, &copies)
	return copies, slices.ContainsFunc(s.table.Indexes, func(x rewrite.Index) bool {
		return x.Primary && !slices.ContainsFunc(x.Columns, func(c string) bool { return !keys[c] })
	})
}

// keyValues collects the columns that a condition has equal to values of their own kinds.
func (pl *planner) keyValues(e ast.ExprNode, s *source, keys map[string]bool, copies *[]Copy) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		pl.keyValues(e.Expr, s, keys, copies)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			pl.keyValues(e.L, s, keys, copies)
			pl.keyValues(e.R, s, keys, copies)
		}
		name, ok := e.L.(*ast.ColumnNameExpr)
		if e.Op != opcode.EQ || !ok || !s.owns(name.Name) {
			return
		}
		c := s.table.ColumnInAnyCase(name.Name.Name.O)
		number := integerBits[c.Type] > 0
		switch value := e.R.(type) {
		case *test_driver.ValueExpr:
			keys[c.Name] = keys[c.Name] || number && value.Kind() == test_driver.KindInt64 ||
				(c.Type == "char" || c.Type == "varchar") && value.Kind() == test_driver.KindString && ascii(value.GetString())
		case *test_driver.ParamMarkerExpr:
			if at := pl.st.tokenAt(value.Offset); number && at >= 0 {
				keys[c.Name] = true
				*copies = append(*copies, Copy{Param: pl.param(at), Integer: true})
			}
		}
	}
}

// hangOnOperands has columns show nothing for rows that do not hang on a subquery, since another operand is NULL. It
// reports whether these rows can be told once the columns of some names are changed.
func (pl *planner) hangOnOperands(at *link, columns []*besides, b *block, changed []string) bool {
	var tests []string
	for _, name := range at.operands {
		c, as, ok := b.srcs.owner(name)
		switch {
		case !ok, pl.checkSpelling(as, c.Name) != nil:
			return false
		case c.NotNull:
			continue
		case slices.Contains(changed, name.Name.L):
			return false
		}
		tests = append(tests, quoted(as)+"."+quoted(c.Name)+" IS NULL")
	}
	for _, c := range columns {
		if len(tests) > 0 {
			c.decided, c.whole = []Piece{text(strings.Join(tests, " OR "))}, false
		}
	}
	return true
}

// readsAll reports whether the server reads all rows of a scalar subquery: of several it reads two, and fails.
func readsAll(n *ast.SelectStmt, s *source) bool {
	used := aggregatesOf(n)
	return used.extremes || used.sums || pinned(n, s)
}

// assignedSubqueries collects the subqueries of a value that are evaluated for each row. It reports whether there are
// no others.
func assignedSubqueries(e ast.ExprNode, links *[]link) bool {
	if n, ok := subqueryOf(e); ok {
		*links = append(*links, link{query: n})
		return true
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return assignedSubqueries(e.Expr, links)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.Plus, opcode.Minus, opcode.Mul, opcode.Div, opcode.Mod:
			if hasSubquery(e.L) {
				return operandSubqueries(e.L, e.R, links)
			}
			return !hasSubquery(e.R) || operandSubqueries(e.R, e.L, links)
		}
	case *ast.PatternInExpr:
		if _, constant := e.Expr.(*test_driver.ValueExpr); e.Sel != nil && constant {
			n, ok := subqueryOf(e.Sel)
			*links = append(*links, link{query: n, equal: e.Expr, set: true})
			return ok
		}
	case *ast.FuncCallExpr:
		if len(e.Args) > 0 && evaluatesFirst[e.FnName.L] &&
			!slices.ContainsFunc(e.Args[1:], func(a ast.ExprNode) bool { return hasSubquery(a) }) {
			return assignedSubqueries(e.Args[0], links)
		}
	}
	return shownSubqueries(e, links)
}

// operandSubqueries collects the subqueries of one operand, if the other is a number or a column. Where that is NULL
// the server need not look at them.
func operandSubqueries(e, other ast.ExprNode, links *[]link) bool {
	for {
		p, ok := other.(*ast.ParenthesesExpr)
		if !ok {
			break
		}
		other = p.Expr
	}
	column, isColumn := other.(*ast.ColumnNameExpr)
	value, isValue := other.(*test_driver.ValueExpr)
	if !isColumn && (!isValue || value.Kind() == test_driver.KindNull) {
		return false
	}
	from := len(*links)
	ok := assignedSubqueries(e, links)
	for i := range (*links)[from:] {
		if of := &(*links)[from+i]; isColumn {
			of.operands = append(of.operands, column.Name)
		}
	}
	return ok
}

// evaluatesFirst are functions that evaluate their first argument whatever the others are, if there are any.
var evaluatesFirst = set(`abs ceil ceiling char_length coalesce concat floor ifnull lower lcase upper ucase`)

// namesAny reports whether an expression, or a query, may name one of these columns of the tables around it.
func namesAny(n ast.Node, own []*besides, columns []string) bool {
	found := namedColumns{}
	n.Accept(&found)
	return slices.ContainsFunc(found.names, func(name *ast.ColumnName) bool {
		return slices.Contains(columns, name.Name.L) && !slices.ContainsFunc(own, func(c *besides) bool {
			if c.node != n {
				return false
			}
			if name.Table.L != "" {
				return strings.EqualFold(name.Table.O, c.of.name)
			}
			return c.of.table.ColumnInAnyCase(name.Name.O) != nil
		})
	})
}

// namedColumns collects the names of columns.
type namedColumns struct{ names []*ast.ColumnName }

// Enter implements ast.Visitor.
func (c *namedColumns) Enter(n ast.Node) (ast.Node, bool) {
	if name, ok := n.(*ast.ColumnNameExpr); ok {
		c.names = append(c.names, name.Name)
	}
	return n, false
}

// Leave implements ast.Visitor.
func (c *namedColumns) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// pinned reports whether a query reads one row of its table at most, by its primary key.
func pinned(n *ast.SelectStmt, s *source) bool {
	if n.Where == nil {
		return false
	}
	columns := make(map[string]bool)
	pins(n.Where, s, columns)
	return slices.ContainsFunc(s.table.Indexes, func(x rewrite.Index) bool {
		return x.Primary && !slices.ContainsFunc(x.Columns, func(c string) bool { return !columns[strings.ToLower(c)] })
	})
}

// pins collects the columns of a table that a condition has equal to a value, or to a column of another table.
func pins(e ast.ExprNode, s *source, columns map[string]bool) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		pins(e.Expr, s, columns)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			pins(e.L, s, columns)
			pins(e.R, s, columns)
		}
		if e.Op != opcode.EQ {
			return
		}
		for _, of := range [][2]ast.ExprNode{{e.L, e.R}, {e.R, e.L}} {
			if column, ok := of[0].(*ast.ColumnNameExpr); ok && s.owns(column.Name) && isValueBeside(of[1], s) {
				columns[column.Name.Name.L] = true
			}
		}
	}
}

// owns reports whether a name of a query of that table alone means its column.
func (s *source) owns(name *ast.ColumnName) bool {
	return (name.Table.L == "" || strings.EqualFold(name.Table.O, s.name)) && s.table.ColumnInAnyCase(name.Name.O) != nil
}

// isValueBeside reports whether an expression is a value, or a column, of no row of that table.
func isValueBeside(e ast.ExprNode, s *source) bool {
	switch e := e.(type) {
	case *test_driver.ValueExpr, *test_driver.ParamMarkerExpr:
		return true
	case *ast.ColumnNameExpr:
		return !s.owns(e.Name)
	}
	return false
}
