package mysql

import (
	"slices"
	"strconv"

	"github.com/isotap/isotap/rewrite"
)

// At REPEATABLE READ a copy of an aggregate must take the same way as the client's, lest it lock more. MySQL's
// JSON_ARRAYAGG would do so but has no LIMIT, and bounded by a query in FROM it does not. So there COUNT reads the
// rows, and what it counts collects the first of them. A copy of EXISTS is EXISTS, whose condition collects the row
// that meets all others: LIMIT is warned of where the binary log has statements (ADR 62).

// gathering returns an expression that collects what a subquery read, row by row, and is an empty string. i is its
// number among those of the statement.
func (pl *planner) gathering(i int, of *besides) []Piece {
	entry := func(array string) []Piece {
		return entryBuffer.collect(pl.session.maxPacket()/4, text("_binary'"+arrayMark+"', "+array+", _binary'=', "), tagPiece,
			text(", _binary'="+strconv.Itoa(i)+"'"))
	}
	name := quoted(of.of.name) + "."
	identity := pl.session.Dialect.element(name+rewrite.RowIDColumn, name+rewrite.WListColumn, false)
	row := entry("_binary'[\"', " + identity + ", _binary'\"]'")
	read := of.untilFirst(row)
	if !of.first {
		most := strconv.Itoa(of.most())
		read = slices.Concat(of.counting(row, most), []Piece{text(", IF(@isotap_g + 0 > " + most + ", ")},
			entry("_binary'"+Lacking+"'"), []Piece{text(", _binary'')")})
	}
	pieces := slices.Concat([]Piece{text("IF("), {Hole: ShownHole}, text(", CONCAT(")}, entry("_binary'[]'"),
		[]Piece{text(", ")}, read, []Piece{text("), ")}, entry("_binary'"+Lacking+"'"), []Piece{text(")")})
	if of.decided != nil {
		pieces = slices.Concat([]Piece{text("IF((")}, of.decided, []Piece{text(") IS TRUE, _binary'', ")}, pieces,
			[]Piece{text(")")})
	}
	return pieces
}

// counting returns expressions that read all rows, run row for the first of them, and are empty strings. @isotap_g is
// then their number.
func (c *besides) counting(row []Piece, most string) []Piece {
	return slices.Concat([]Piece{text("LEFT((@isotap_g := _binary'0'), 0), IFNULL(LEFT((SELECT COUNT(" +
		"IF((@isotap_g := CAST(@isotap_g + 1 AS BINARY)) + 0 > " + most + ", NULL, ")}, row, []Piece{text(")) ")}, c.query,
		[]Piece{text("), 0), _binary'')")})
}

// untilFirst returns an expression that reads up to the first row that the subquery finds, runs row for that one, and
// is an empty string.
func (c *besides) untilFirst(row []Piece) []Piece {
	met := []Piece{text(" WHERE ")}
	if c.parts.where != nil {
		met = slices.Concat([]Piece{text(" WHERE (")}, c.parts.where, []Piece{text(") AND ")})
	}
	return slices.Concat([]Piece{text("LEFT(EXISTS (SELECT 1 ")}, c.parts.from, met, []Piece{text("LENGTH(CONCAT(_binary'x', ")},
		row, []Piece{text(")) > 0), 0)")})
}
