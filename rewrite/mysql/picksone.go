package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/rewrite"
)

// A subquery with ORDER BY and LIMIT 1 reads one row. Another run reads the same one if its order tells all rows apart,
// as one by the key does (ADR 62). Of another order the copy shows all rows that are equal to the first, up to two: one
// alone is the row that was read. Without an order these are all rows.

// Of several, as a tree has them, the copy shows as many in an order that tells all rows apart.

// picks reports whether a scalar subquery has a LIMIT of some rows.
func (at *link) picks() bool {
	n := at.query
	if n.Limit == nil || at.exists || at.set || at.equal != nil || n.Limit.Offset != nil {
		return false
	}
	_, given := n.Limit.Count.(*test_driver.ParamMarkerExpr)
	return given || literalLimit(n.Limit) > 0
}

// picksOne reports whether that is a LIMIT of 1 row. A parameter in its place must be 1: see copyOne.
func (at *link) picksOne() bool {
	if !at.picks() {
		return false
	}
	_, given := at.query.Limit.Count.(*test_driver.ParamMarkerExpr)
	return given || literalLimit(at.query.Limit) == 1
}

// literalLimit returns how many rows a LIMIT is of; 0 where that is not known.
func literalLimit(l *ast.Limit) int {
	count, ok := l.Count.(*test_driver.ValueExpr)
	if !ok || count.Kind() != test_driver.KindInt64 && count.Kind() != test_driver.KindUint64 {
		return 0
	}
	return int(min(max(count.GetInt64(), 0), 1<<30))
}

// A leading is how many rows of a subquery are shown, in an order: as many as its LIMIT has, or, where that is a
// parameter, up to its value.
type leading struct {
	by    string // ORDER BY
	rows  int
	param int // from 0; -1: there is none
}

// spell returns the head of what shows these rows, each by an element, and what stands behind it, up to the end.
func (l *leading) spell(element string, query []Piece) (head string, behind []Piece) {
	head = "(SELECT JSON_ARRAYAGG(isotap_row) FROM (SELECT " + element + " AS isotap_row"
	if l.param < 0 {
		return head + " ", append(slices.Clone(query), text(l.by+" LIMIT "+strconv.Itoa(min(l.rows, MaxBeside))+") AS isotap_rows)"))
	}
	return head + ", ROW_NUMBER() OVER (" + l.by[1:] + ") AS isotap_number ", slices.Concat(query, []Piece{
		text(l.by + " LIMIT " + strconv.Itoa(MaxBeside) + ") AS isotap_rows WHERE isotap_number <= "),
		{Hole: CopyHole, Ordinal: l.param}, text(")")})
}

// A pickedRows says what a copy shows of a subquery with a LIMIT.
type pickedRows struct {
	first   bool // the first row
	limit   int  // so many at most, of which one alone was surely read
	leading *leading
}

// picked returns what a copy of a subquery of these tables and conditions reads, and what it shows of that. Several
// says that it may show several rows in an order.
func (pl *planner) picked(at *link, srcs sources, query clauses, several bool) (read []Piece, rows pickedRows, ok bool) {
	if read = query.pieces(); !at.picks() {
		return read, rows, true
	}
	n := at.query
	order, total, ordered := pl.ordering(n, srcs)
	marker, given := n.Limit.Count.(*test_driver.ParamMarkerExpr)
	switch {
	case total && several && given:
		at := pl.st.tokenAt(marker.Offset)
		if at < 0 {
			return nil, rows, false
		}
		rows.leading = &leading{by: order.clause, param: pl.param(at)}
		pl.parameters = append(pl.parameters, Copy{Param: rows.leading.param, Rows: true})
		return read, rows, true
	case total && several && literalLimit(n.Limit) > 1:
		rows.leading = &leading{by: order.clause, rows: literalLimit(n.Limit), param: -1}
		return read, rows, true
	case !at.picksOne() || !pl.copyOne(n):
		return nil, rows, false
	case n.OrderBy == nil && showsRows(n):
		rows.limit = 2 // of several nobody knows which it picked
	case !ordered:
		return nil, rows, false
	case total:
		read, rows.first = append(read, text(order.clause)), true
	default:
		read, rows.limit = order.tied(query), 2 // of equal rows nobody knows which it picked
	}
	return read, rows, true
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
