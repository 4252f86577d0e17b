package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/isotap/isotap/history"
)

// An array of a group's rows would stand in each row that the group is joined with. So a query in FROM that groups, and
// is joined, stays as it is. What the groups are made of is looked up beside the rows of the result, by what the query
// groups by and shows (ADR 62).

// lookIntoGroups has hidden columns show the rows of the groups that a block's rows are joined with. The reason of each
// source of which it does so is gone.
func (pl *planner) lookIntoGroups(b *block) {
	n := b.n
	if n != pl.alone || b.grouped || n.LockInfo != nil || !pl.readsAgain(n) {
		return
	}
	for _, s := range b.srcs {
		if s.reason != history.ReasonJoinedAggregate || len(s.shows) > 0 || pl.checkSpelling(s.name) != nil {
			continue
		}
		look := pl.rowsOfGroups
		if s.node.Lateral {
			look = pl.rowsOfLateral
		}
		columns, ok := look(s, b)
		if !ok || len(pl.besides)+len(columns) > maxBesideColumns {
			continue
		}
		pl.besides, pl.literal, s.reason = append(pl.besides, columns...), true, history.Reason{}
	}
}

// groupsOf returns the query of a source: one in FROM, or a common table expression.
func (pl *planner) groupsOf(s *source) *ast.SelectStmt {
	switch of := s.node.Source.(type) {
	case *ast.SelectStmt:
		return of
	case *ast.TableName:
		c, uncertain := pl.nesting.with.find(of.Name.O)
		if c == nil || uncertain || of.Schema.L != "" || len(c.def.ColNameList) > 0 {
			return nil
		}
		n, _ := c.def.Query.Query.(*ast.SelectStmt)
		return n
	}
	return nil
}

// rowsOfGroups returns the columns that show the rows of a source's groups.
func (pl *planner) rowsOfGroups(s *source, b *block) ([]*besides, bool) {
	q := pl.groupsOf(s)
	if q == nil || q.Having != nil || q.Distinct || q.GroupBy != nil && q.GroupBy.Rollup {
		return nil, false
	}
	srcs, read, ok := pl.readBy(q)
	if !ok || srcs.named(s.name) != nil {
		return nil, false
	}
	if q.GroupBy == nil && s.outer {
		return nil, false // whether the row has the group, or none, is not seen
	}
	if q.GroupBy != nil {
		test, ok := pl.sameGroup(s, q, srcs, b)
		if !ok {
			return nil, false
		}
		read = joined(read, test)
	}
	var found []*besides
	for _, of := range srcs {
		found = append(found, &besides{of: of, query: read.pieces(), whole: q.GroupBy == nil})
	}
	return found, true
}

// sameGroup returns the condition that a row is one of the group of a source: equal in all columns that it groups by.
func (pl *planner) sameGroup(s *source, q *ast.SelectStmt, srcs sources, b *block) (string, bool) {
	if s.outer && !showsAnyOf(b.n, s) {
		return "", false // the server need not read what is asked for nowhere
	}
	var tests []string
	for _, item := range q.GroupBy.Items {
		c, as, shown := groupColumn(q, item.Expr, srcs)
		if c == nil || shown == "" || !groupsByValue(c) || pl.checkSpelling(as, c.Name, shown) != nil {
			return "", false
		}
		equals := " <=> "
		if s.outer { // NULL is the group's, or there is none
			if equals = " = "; !c.NotNull && !joinedBy(b.n.From.TableRefs, s, shown) {
				return "", false
			}
		}
		tests = append(tests, quoted(as)+"."+quoted(c.Name)+equals+quoted(s.name)+"."+quoted(shown))
	}
	return strings.Join(tests, " AND "), true
}

// groupsByValue reports whether rows are in one group where a column's values are equal. Long texts are sorted by their
// beginnings (max_sort_length), and two moments of the hour that summer time repeats have one text.
func groupsByValue(c *Column) bool {
	return !c.Generated && kindOf(c.Type) != anyKind && c.Type != "timestamp" && !strings.HasSuffix(c.Type, "text") &&
		!strings.HasSuffix(c.Type, "blob")
}

// groupColumn returns the column that a query groups by, its table's name there, and the name under which the query
// shows it. It is nil where the item is no column of a table, or may be another.
func groupColumn(q *ast.SelectStmt, e ast.ExprNode, srcs sources) (c *Column, as, shown string) {
	name, ok := e.(*ast.ColumnNameExpr)
	if !ok {
		return nil, "", ""
	}
	if c, as, ok = srcs.owner(name.Name); !ok {
		return nil, "", ""
	}
	for _, f := range q.Fields.Fields {
		var own *Column
		var of string
		item, isColumn := f.Expr.(*ast.ColumnNameExpr)
		if isColumn {
			own, of, _ = srcs.owner(item.Name)
		}
		switch same := own == c && of == as; {
		case f.WildCard != nil, !same && f.AsName.L == name.Name.Name.L:
			return nil, "", ""
		case same && f.AsName.O != "":
			shown = f.AsName.O
		case same:
			shown = item.Name.Name.O
		}
	}
	return c, as, shown
}

// showsAnyOf reports whether a query's select list surely has a column of a source.
func showsAnyOf(n *ast.SelectStmt, s *source) bool {
	return slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		if f.WildCard != nil {
			return f.WildCard.Table.L == "" || strings.EqualFold(f.WildCard.Table.O, s.name)
		}
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		return ok && strings.EqualFold(c.Name.Table.O, s.name)
	})
}

// joinedBy reports whether a source is the optional side of a join whose condition has a column of it equal to
// something: no row has NULL there but those that have no row of it.
func joinedBy(n ast.ResultSetNode, s *source, column string) bool {
	j, ok := n.(*ast.Join)
	if !ok || j == nil {
		return false
	}
	optional := j.Right
	if j.Tp == ast.RightJoin {
		optional = j.Left
	}
	if optional != ast.ResultSetNode(s.node) {
		return joinedBy(j.Left, s, column) || joinedBy(j.Right, s, column)
	}
	if j.On == nil {
		return false
	}
	is := func(e ast.ExprNode) bool {
		c, ok := e.(*ast.ColumnNameExpr)
		return ok && strings.EqualFold(c.Name.Table.O, s.name) && strings.EqualFold(c.Name.Name.O, column)
	}
	return slices.ContainsFunc(parts(j.On.Expr, nil), func(e ast.ExprNode) bool {
		of, ok := e.(*ast.BinaryOperationExpr)
		return ok && of.Op == opcode.EQ && (is(of.L) || is(of.R))
	})
}
