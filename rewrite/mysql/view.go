package mysql

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/isotap/isotap/history"
)

// A view has no columns of isotap's. It stays where it stands, and the rows behind it are looked up beside it, by the
// keys that it shows: in the same statement, and so in the same snapshot (ADR 62). What the client sees does not hang
// on what isotap knows of the view.

// viewPrefix begins the names of the tables that are looked into beside a view.
const viewPrefix = "isotap_behind_"

// A viewed is a table behind a view: where each column of its primary key is among the view's.
type viewed struct {
	table  *Table
	of     *ast.TableName
	key    []string // columns of the primary key
	shown  []string // the view's columns that are equal to them
	schema string
}

// lookBehind has hidden columns show the rows behind the views that a block reads. It reports whether it does so for
// any; the reason of each that it can see through is gone.
func (pl *planner) lookBehind(b *block) bool {
	n := b.n
	if n != pl.alone || b.grouped || n.LockInfo != nil || n.From == nil || !pl.readsAgain(n) {
		return false
	}
	seen := false
	for _, s := range b.srcs {
		if s.reason != history.ReasonView {
			continue
		}
		base := s.node.Source.(*ast.TableName)
		tables := pl.behind(base)
		if len(tables) == 0 || len(pl.besides)+len(tables) > maxBesideColumns || !plainTable(base) ||
			pl.st.mentionsPrefix(viewPrefix) || pl.checkSpelling(s.name) != nil {
			continue
		}
		for _, t := range tables {
			pl.besides = append(pl.besides, pl.lookUp(s, t))
		}
		s.reason, seen = history.Reason{}, true
	}
	return seen
}

// lookUp returns the column that looks up the row of a table behind a view.
func (pl *planner) lookUp(view *source, t viewed) *besides {
	name := fmt.Sprintf("%s%d", viewPrefix, len(pl.besides)+1)
	var tests []string
	for i, c := range t.key {
		tests = append(tests, name+"."+quoted(c)+" = "+quoted(view.name)+"."+quoted(t.shown[i]))
	}
	return &besides{of: &source{name: name, table: t.table},
		query: []Piece{text("FROM " + quoted(t.schema) + "." + quoted(t.of.Name.O) + " AS " + name + " WHERE " +
			strings.Join(tests, " AND "))}}
}

// behind returns the tables behind a view if it shows the keys of all, and its rows are rows of theirs.
func (pl *planner) behind(name *ast.TableName) []viewed {
	view, n := pl.viewNamed(name)
	if n == nil {
		return nil
	}
	return pl.keysShown(n, view)
}

// viewNamed returns a view and its query, if its rows are rows of tables; nil otherwise.
func (pl *planner) viewNamed(name *ast.TableName) (*Table, *ast.SelectStmt) {
	schema := name.Schema.O
	if schema == "" {
		schema = pl.session.Schema
	}
	view := pl.lookup(schema, name.Name.O)
	if view == nil || !view.View || view.Query == "" || !ascii(view.Query) && !pl.session.utf8() {
		return nil, nil
	}
	trees, err := pl.rewriter.trees(view.Query, &Session{Dialect: pl.session.Dialect}, false)
	if err != nil || len(trees) != 1 {
		return nil, nil
	}
	n, ok := trees[0].(*ast.SelectStmt)
	if !ok || n.Kind != ast.SelectStmtKindSelect || n.Distinct || n.GroupBy != nil || n.Having != nil || n.Limit != nil ||
		n.With != nil || n.LockInfo != nil || n.From == nil || len(n.WindowSpecs) > 0 || merges(n.From.TableRefs) {
		return nil, nil
	}
	if u := inspectWrite(n); u.subquery || u.function || u.outward || u.window || u.aggregate {
		return nil, nil
	}
	var all aggregates
	n.Fields.Accept(&all)
	if all.sums || all.extremes || all.distinct {
		return nil, nil
	}
	return view, n
}

// keysShown returns the tables of a view's query with the view's columns that are their keys; none if one of them does
// not show its own.
func (pl *planner) keysShown(n *ast.SelectStmt, view *Table) []viewed {
	srcs := flatten(n.From.TableRefs)
	for i, s := range srcs {
		base, ok := s.node.Source.(*ast.TableName)
		if !ok || base.Schema.O == "" || !plainTable(base) {
			return nil
		}
		if s.name = base.Name.O; s.node.AsName.O != "" {
			s.name = s.node.AsName.O
		}
		if s.table, _ = pl.table(base); s.table == nil || srcs[:i].named(s.name) != nil {
			return nil
		}
	}
	equal := equalColumns(n, srcs)
	var all []viewed
	for _, s := range srcs {
		base := s.node.Source.(*ast.TableName)
		t := viewed{table: s.table, of: base, schema: base.Schema.O}
		for _, x := range s.table.Indexes {
			if x.Primary {
				t.key = x.Columns
			}
		}
		for _, c := range t.key {
			shown := shownAs(n, view, s, c, equal)
			if c == "" || shown == "" {
				return nil
			}
			t.shown = append(t.shown, shown)
		}
		if len(t.key) == 0 {
			return nil
		}
		all = append(all, t)
	}
	return all
}

// shownAs returns the column of a view that is that of a table, or equal to it; empty where there is none.
func shownAs(n *ast.SelectStmt, view *Table, s *source, column string, equal map[string]string) string {
	for _, wanted := range []string{columnKey(s.name, column), equal[columnKey(s.name, column)]} {
		for _, f := range n.Fields.Fields {
			c, ok := f.Expr.(*ast.ColumnNameExpr)
			if !ok || wanted == "" || columnKey(c.Name.Table.O, c.Name.Name.O) != wanted {
				continue
			}
			as := f.AsName.O
			if as == "" {
				as = c.Name.Name.O
			}
			if view.Column(as) != nil {
				return as
			}
		}
	}
	return ""
}

// columnKey tells a column of a query apart from its others.
func columnKey(table, column string) string {
	return strings.ToLower(table) + "." + strings.ToLower(column)
}

// equalColumns returns pairs of integer columns that the conditions of a query of inner joins make equal, both ways.
func equalColumns(n *ast.SelectStmt, srcs sources) map[string]string {
	equal := make(map[string]string)
	if !innerJoins(n.From.TableRefs) {
		return equal
	}
	var conditions []ast.ExprNode
	ons(n.From.TableRefs, &conditions)
	if n.Where != nil {
		conditions = append(conditions, n.Where)
	}
	for len(conditions) > 0 {
		e := conditions[0]
		conditions = conditions[1:]
		switch e := e.(type) {
		case *ast.ParenthesesExpr:
			conditions = append(conditions, e.Expr)
		case *ast.BinaryOperationExpr:
			left, ok1 := e.L.(*ast.ColumnNameExpr)
			right, ok2 := e.R.(*ast.ColumnNameExpr)
			switch {
			case e.Op == opcode.LogicAnd:
				conditions = append(conditions, e.L, e.R)
			case e.Op == opcode.EQ && ok1 && ok2 && srcs.isInteger(left.Name) && srcs.isInteger(right.Name):
				l := columnKey(left.Name.Table.O, left.Name.Name.O)
				r := columnKey(right.Name.Table.O, right.Name.Name.O)
				equal[l], equal[r] = r, l
			}
		}
	}
	return equal
}

// isInteger reports whether a name with its table is that of an integer column.
func (ss sources) isInteger(n *ast.ColumnName) bool {
	s := ss.named(n.Table.O)
	if s == nil || s.table == nil {
		return false
	}
	c := s.table.ColumnInAnyCase(n.Name.O)
	return c != nil && integerType(c.Type)
}
