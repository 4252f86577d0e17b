package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// A subquery with ORDER BY and LIMIT 1 reads one row. Another run reads the same one if its order tells all rows apart,
// as one by the key does (ADR 62). Of another order the copy shows all rows that are equal to the first, up to two: one
// alone is the row that was read.

// picksOne reports whether a scalar subquery has a LIMIT of 1 row.
func (at *link) picksOne() bool {
	n := at.query
	if n.Limit == nil || at.exists || at.set || at.equal != nil || n.Limit.Offset != nil {
		return false
	}
	count, ok := n.Limit.Count.(*test_driver.ValueExpr)
	return ok && count.Kind() == test_driver.KindInt64 && count.GetInt64() == 1 ||
		ok && count.Kind() == test_driver.KindUint64 && count.GetUint64() == 1
}

// A rowOrder is the ORDER BY clause of a query, and its columns as the clause spells them.
type rowOrder struct {
	clause  string
	columns []string
}

// tied returns what reads the rows that are equal to the first one in the order of a query.
func (o rowOrder) tied(query clauses) []Piece {
	first := slices.Concat(query.pieces(), []Piece{text(o.clause + " LIMIT 1)")})
	equal := query
	for i, c := range o.columns {
		if i == 0 {
			equal = joined(query, c+" <=> (SELECT "+c+" ")
		} else {
			equal.where = append(equal.where, text(" AND "+c+" <=> (SELECT "+c+" "))
		}
		equal.where = append(equal.where, first...)
	}
	return equal.pieces()
}

// ordering returns the ORDER BY clause of a query of one table, and whether no two of its rows are equal in that order.
// It reports whether the server orders them by columns alone, which it compares as a whole.
func (pl *planner) ordering(n *ast.SelectStmt, srcs sources) (order rowOrder, total, ok bool) {
	used := aggregatesOf(n)
	if len(srcs) != 1 || n.OrderBy == nil || n.GroupBy != nil || n.Having != nil || n.Distinct || used.sums ||
		used.extremes || used.distinct || inspectWrite(n.Fields).window {
		return order, false, false
	}
	ordered, whole := make(map[string]bool), true
	for i, item := range n.OrderBy.Items {
		name, isColumn := item.Expr.(*ast.ColumnNameExpr)
		if !isColumn || name.Name.Table.L == "" && isAlias(n, name.Name.Name.L) {
			return order, false, false
		}
		c, as, mine := srcs.owner(name.Name)
		if !mine || pl.checkSpelling(as, c.Name) != nil {
			return order, false, false
		}
		spelled := quoted(as) + "." + quoted(c.Name)
		order.columns = append(order.columns, spelled)
		if item.Desc {
			spelled += " DESC"
		}
		order.clause += []string{" ORDER BY ", ", "}[min(i, 1)] + spelled
		ordered[strings.ToLower(c.Name)] = true
		kind := kindOf(c.Type)
		whole = whole && !c.Generated && (kind == numeric || kind == moment) // of a text it compares its beginning
	}
	total = tellsApart(srcs[0].table, ordered)
	return order, total, total || whole
}

// isAlias reports whether a name without a table may mean an item of the select list.
func isAlias(n *ast.SelectStmt, name string) bool {
	return slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool { return f.AsName.L == name })
}

// tellsApart reports whether no two rows of a table are equal in all of these columns.
func tellsApart(t *Table, columns map[string]bool) bool {
	return slices.ContainsFunc(t.Indexes, func(x rewrite.Index) bool {
		return (x.Primary || x.Unique) && !slices.ContainsFunc(x.Columns, func(name string) bool {
			c := t.ColumnInAnyCase(name)
			return c == nil || !columns[strings.ToLower(name)] || !x.Primary && !c.NotNull
		})
	})
}
