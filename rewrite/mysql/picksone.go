package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// A subquery with ORDER BY and LIMIT 1 reads one row. Another run reads the same one if its order tells all rows apart,
// as one by the key does (ADR 62).

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

// keyOrder returns the ORDER BY clause of a query of one table if no two of its rows are equal in that order.
func (pl *planner) keyOrder(n *ast.SelectStmt, srcs sources) (clause string, ok bool) {
	used := aggregatesOf(n)
	if len(srcs) != 1 || n.OrderBy == nil || n.GroupBy != nil || n.Having != nil || n.Distinct || used.sums ||
		used.extremes || used.distinct || inspectWrite(n.Fields).window {
		return "", false
	}
	ordered := make(map[string]bool)
	var items []string
	for _, item := range n.OrderBy.Items {
		name, isColumn := item.Expr.(*ast.ColumnNameExpr)
		if !isColumn || name.Name.Table.L == "" && isAlias(n, name.Name.Name.L) {
			return "", false
		}
		c, as, mine := srcs.owner(name.Name)
		if !mine || pl.checkSpelling(as, c.Name) != nil {
			return "", false
		}
		spelled := quoted(as) + "." + quoted(c.Name)
		if item.Desc {
			spelled += " DESC"
		}
		ordered[strings.ToLower(c.Name)], items = true, append(items, spelled)
	}
	return " ORDER BY " + strings.Join(items, ", "), tellsApart(srcs[0].table, ordered)
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
