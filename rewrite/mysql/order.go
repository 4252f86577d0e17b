package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// A LIMIT that was filled hangs on its rows and, where they are ordered, on what would stand before the last of them.
// So each row shows the values that it is ordered by, as far as they are columns of one table.

// An ordering is what the statement's rows are ordered by before all else.
type ordering struct {
	of     *chosenSource
	keys   []rewrite.SortKey
	values []string // expressions for the values, as literals
}

// orderingOf returns what the rows of a query are ordered by, up to the first that is no column of the first one's
// table.
func (b *chosenFrom) orderingOf(n *ast.SelectStmt, d Dialect) (o ordering) {
	if n.OrderBy == nil {
		return o
	}
	for _, by := range n.OrderBy.Items {
		name := sortedBy(n, by.Expr)
		if name == nil {
			break
		}
		source, c := b.column(name)
		if c == nil || c.Generated || o.of != nil && o.of != source || !slices.Contains(b.sources, source) {
			break
		}
		expr, value := d.sortValue(c, quoted(source.name)+"."+quoted(c.Name))
		if expr == "" {
			break
		}
		o.of, o.values = source, append(o.values, "CAST(IFNULL("+value+", _binary'"+rewrite.Null+"') AS BINARY)")
		o.keys = append(o.keys, rewrite.SortKey{Expr: expr, Descending: by.Desc, NullsLast: by.Desc})
	}
	return o
}

// sortedBy returns the column that an item of ORDER BY means: a position, the name of an item of the select list, or a
// column of the FROM clause; nil where it is something else.
func sortedBy(n *ast.SelectStmt, by ast.ExprNode) *ast.ColumnName {
	list := n.Fields.Fields
	switch by := by.(type) {
	case *ast.PositionExpr:
		if by.N < 1 || by.N > len(list) ||
			slices.ContainsFunc(list[:by.N], func(f *ast.SelectField) bool { return f.WildCard != nil }) {
			return nil
		}
		return columnName(list[by.N-1].Expr)
	case *ast.ColumnNameExpr:
		if by.Name.Table.O != "" {
			return by.Name
		}
		for _, f := range list {
			column := columnName(f.Expr)
			switch {
			case strings.EqualFold(f.AsName.O, by.Name.Name.O):
				return column
			case f.AsName.O == "" && column != nil && strings.EqualFold(column.Name.O, by.Name.Name.O):
				return column
			}
		}
		return by.Name
	}
	return nil
}

func columnName(n ast.ExprNode) *ast.ColumnName {
	if c, ok := n.(*ast.ColumnNameExpr); ok {
		return c.Name
	}
	return nil
}

// maxSortText is how many characters of a text the server surely compares where it sorts (max_sort_length).
const maxSortText = "16"

// sortValue returns an expression over a column that is ordered as the server orders its values, and one for the
// literal that it is compared with: an empty text where that cannot be said. Both are empty for types of which there is
// none.
func (d Dialect) sortValue(c *Column, name string) (expr, value string) {
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year":
		return name, "CAST(" + name + " AS BINARY)"
	case "double":
		return name, d.doubleLiteral(name)
	case "enum": // by the member's index
		expr = "(" + name + "+0)"
		return expr, "CAST(" + name + "+0 AS BINARY)"
	case "date", "datetime":
		return name, "CONCAT(_binary'''', CAST(" + name + " AS CHAR), _binary'''')"
	case "timestamp": // the local hour repeats when summer time ends
		expr = "UNIX_TIMESTAMP(" + name + ")"
		return expr, "CAST(" + expr + " AS BINARY)"
	case "char", "varchar", "tinytext", "text":
		charset, _, _ := strings.Cut(c.Collation, "_")
		if charset == "" || charset == "binary" {
			return "", ""
		}
		return name, "IF(CHAR_LENGTH(" + name + ") > " + maxSortText + ", _binary'', CONCAT(_binary'_" + charset +
			" X''', HEX(" + name + "), _binary''' COLLATE " + c.Collation + "'))"
	}
	return "", ""
}

// showOrder puts the values that the statement's rows are ordered by behind all other columns, if there is a LIMIT that
// may be filled.
func (pl *planner) showOrder(b *block) {
	o := pl.order
	if len(o.values) == 0 || b.grouped || b.n != pl.alone || !pl.into.empty() ||
		slices.ContainsFunc(pl.plan.Result.Sources, func(s Source) bool { return s.Array && !s.Beside }) {
		return
	}
	pl.appendToList(b, ", "+strings.Join(o.values, ", "))
	pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Order: len(o.values)})
}
