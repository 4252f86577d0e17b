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
// alone is the row that was read. Without an order these are all rows.

// picksOne reports whether a scalar subquery has a LIMIT of 1 row. A parameter in its place must be 1: see copyOne.
func (at *link) picksOne() bool {
	n := at.query
	if n.Limit == nil || at.exists || at.set || at.equal != nil || n.Limit.Offset != nil {
		return false
	}
	if _, given := n.Limit.Count.(*test_driver.ParamMarkerExpr); given {
		return true
	}
	count, ok := n.Limit.Count.(*test_driver.ValueExpr)
	return ok && count.Kind() == test_driver.KindInt64 && count.GetInt64() == 1 ||
		ok && count.Kind() == test_driver.KindUint64 && count.GetUint64() == 1
}

// copyOne takes note of the parameter in a LIMIT, which must be 1 for what is shown to be what was read. It reports
// whether the limit is 1 then.
func (pl *planner) copyOne(n *ast.SelectStmt) bool {
	marker, given := n.Limit.Count.(*test_driver.ParamMarkerExpr)
	if !given {
		return true
	}
	at := pl.st.tokenAt(marker.Offset)
	if at < 0 {
		return false
	}
	pl.parameters = append(pl.parameters, Copy{Param: pl.param(at), One: true})
	return true
}

// copiesLimits reports whether what shows what subqueries read has a copy of such a parameter. Where it does not fit
// that would be NULL, and a LIMIT of NULL is an error.
func (pl *planner) copiesLimits(found []*besides) bool {
	limit := func(p Piece) bool {
		return p.Hole == CopyHole && slices.ContainsFunc(pl.parameters, func(c Copy) bool { return c.One && c.Param == p.Ordinal })
	}
	return slices.ContainsFunc(found, func(c *besides) bool {
		return slices.ContainsFunc(c.query, limit) || slices.ContainsFunc(c.decided, limit)
	})
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
	if len(srcs) != 1 || n.OrderBy == nil || !showsRows(n) {
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

// showsRows reports whether each row of a query is one that it reads: it does not group.
func showsRows(n *ast.SelectStmt) bool {
	used := aggregatesOf(n)
	return n.GroupBy == nil && n.Having == nil && !n.Distinct && !used.sums && !used.extremes && !used.distinct &&
		!inspectWrite(n.Fields).window
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
