package mysql

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// What a subquery reads beside each row of a group is an array in the elements of another. MariaDB cuts an array, and
// warns the client, where it has more bytes than group_concat_max_len. So each of those within is a text of a bounded
// length, and so many of them are in the other one as surely fit (ADR 62).

const (
	// maxNested is how many bytes such a text may have. A longer one is cut, and so has no end.
	maxNested = 800
	// nestedQuotes is what the array takes beside the text for each.
	nestedQuotes = len("'', ")
	// minNestedPacket is what MySQL must let an array be made of, of which it bounds nothing else.
	minNestedPacket = 16 << 20
)

// nestsArrays reports whether what subqueries read beside each row of a query's groups can be shown.
func (pl *planner) nestsArrays(n *ast.SelectStmt) bool {
	if n.GroupBy != nil && n.GroupBy.Rollup {
		return false
	}
	if pl.session.Dialect == MySQL {
		return pl.session.maxPacket() >= minNestedPacket
	}
	return pl.session.nestedLimit() >= minArray
}

// hangOnGroups reports whether subqueries of a block's select list name nothing of its tables but what it groups by.
func (pl *planner) hangOnGroups(links []link, b *block) bool {
	return !slices.ContainsFunc(links, func(at link) bool {
		names, ok := pl.outerNames(at.query)
		return !ok || slices.ContainsFunc(names, func(name *ast.ColumnName) bool { return !b.groupsBy(name) })
	})
}

// outerNames returns the names in a subquery that are of no column of its own tables. It reports whether these are all
// tables of the schema.
func (pl *planner) outerNames(query *ast.SelectStmt) (names []*ast.ColumnName, ok bool) {
	if query == nil || query.From == nil {
		return nil, false
	}
	own := flatten(query.From.TableRefs)
	if !pl.baseSources(own) {
		return nil, false
	}
	var all namedColumns
	query.Accept(&all)
	return slices.DeleteFunc(all.names, own.mayMean), true
}

// mayMean reports whether a name may be one of a column of these tables.
func (ss sources) mayMean(name *ast.ColumnName) bool {
	if name.Table.L != "" {
		return ss.named(name.Table.O) != nil
	}
	return slices.ContainsFunc(ss, func(s *source) bool { return s.table.ColumnInAnyCase(name.Name.O) != nil })
}

// groupsBy reports whether a name surely means a column that a block groups by.
func (b *block) groupsBy(name *ast.ColumnName) bool {
	column, as, ok := b.srcs.owner(name)
	if !ok || b.n.GroupBy == nil {
		return false
	}
	return slices.ContainsFunc(b.n.GroupBy.Items, func(item *ast.ByItem) bool {
		of, is := item.Expr.(*ast.ColumnNameExpr)
		if !is || of.Name.Table.L == "" && slices.ContainsFunc(b.n.Fields.Fields, func(f *ast.SelectField) bool {
			return f.AsName.L == of.Name.Name.L
		}) {
			return false
		}
		its, table, known := b.srcs.owner(of.Name)
		return known && its == column && table == as
	})
}

// nest has a column stand beside the groups of a block, if it hangs on the block's rows.
func (pl *planner) nest(c *besides, b *block) {
	if c.grouped = b.grouped && !c.whole; c.grouped && pl.session.Dialect == MariaDB {
		c.groupRows = pl.session.nestedLimit()
	}
}

// nestedLimit returns of how many rows an array of a group's tells what subqueries read beside them.
func (s *Session) nestedLimit() int {
	limit, err := s.arrayLimit()
	if err != nil {
		return 0
	}
	return limit * maxIdentity / (maxNested + nestedQuotes)
}

// spellGrouped returns the expression of a column beside a group.
func (c *besides) spellGrouped(d Dialect) []Piece {
	each := *c
	each.grouped = false
	tail := ""
	if d == MariaDB {
		tail = " LIMIT " + strconv.Itoa(c.groupRows)
	}
	return slices.Concat([]Piece{text("CAST(JSON_ARRAYAGG(CONVERT(LEFT(REPLACE(")}, each.spell(d),
		[]Piece{text(", _binary'\"', _binary' '), " + strconv.Itoa(maxNested) + ") USING latin1)" + tail + ") AS BINARY)")})
}

// EachOfGroup calls f with the identities that a text in the array of a source that is Grouped has. It returns their
// number, and reports whether the text is whole.
func EachOfGroup(text []byte, f func(identity []byte)) (n int, ok bool) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return 0, false
	}
	for one := range bytes.FieldsSeq(text[1 : len(text)-1]) {
		if string(one) != "," {
			f(one)
			n++
		}
	}
	return n, true
}
