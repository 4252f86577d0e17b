package mysql

import (
	"slices"
	"strconv"

	"github.com/isotap/isotap/rewrite"
)

// At REPEATABLE READ a copy of an aggregate must take the same way as the client's, lest it lock more. MySQL's
// JSON_ARRAYAGG would do so but has no LIMIT, and bounded by a query in FROM it does not. So there COUNT reads the
// rows, and what it counts collects the first of them. A copy of EXISTS is EXISTS, whose condition collects the row
// that meets all others: LIMIT is warned of where the binary log has statements (ADR 62). So is a clock, and so the
// number of the runs is what bounds those that each row has.

// A statement runs copies that hang on its rows maxRuns times. The next time it says that some are lacking, and
// afterwards nothing.
const (
	maxRuns   = "64"
	afterRuns = "65"
)

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
	lacking := entry("_binary'" + Lacking + "'")
	read := slices.Concat([]Piece{text("LEFT(")}, of.exists(row), []Piece{text(", 0)")})
	if !of.first {
		most := strconv.Itoa(of.most())
		last := lacking
		if !of.whole {
			last = slices.Concat([]Piece{text("CONCAT(")}, lacking, []Piece{text(", LEFT((@isotap_t := CONCAT("), tagPiece,
				text(", _binary'=" + afterRuns + "')), 0))")})
		}
		read = slices.Concat(of.counting(row, most), []Piece{text(", IF(@isotap_g + 0 > " + most + ", ")}, last,
			[]Piece{text(", _binary'')")})
	}
	if of.until != "" {
		read = of.untilEqual(row, read)
	}
	pieces := slices.Concat([]Piece{text("IF("), {Hole: ShownHole}, text(", CONCAT(")}, entry("_binary'[]'"),
		[]Piece{text(", ")}, read, []Piece{text("), ")}, lacking, []Piece{text(")")})
	if !of.whole {
		pieces = boundedRuns(pieces, lacking)
	}
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

// untilEqual returns an expression that reads up to the row with which the reading ends, and runs row for that one, or
// reads all rows if there is none.
func (c *besides) untilEqual(row []Piece, all []Piece) []Piece {
	ends := *c
	ends.parts = joined(c.parts, c.until)
	return slices.Concat([]Piece{text("IF(")}, ends.exists(row), []Piece{text(", _binary'', CONCAT(")}, all, []Piece{text("))")})
}

// exists returns a condition that reads up to the first row that the subquery finds, and runs row for that one.
func (c *besides) exists(row []Piece) []Piece {
	met := []Piece{text(" WHERE ")}
	if c.parts.where != nil {
		met = slices.Concat([]Piece{text(" WHERE (")}, c.parts.where, []Piece{text(") AND ")})
	}
	return slices.Concat([]Piece{text("EXISTS (SELECT 1 ")}, c.parts.from, met, []Piece{text("LENGTH(CONCAT(_binary'x', ")},
		row, []Piece{text(")) > 0)")})
}

// boundedRuns returns an expression that is run, or says that one is lacking, by how often the statement came to it:
// @isotap_t is its tag and that number.
func boundedRuns(run, lacking []Piece) []Piece {
	const number = "SUBSTRING_INDEX(@isotap_t, _binary'=', -1) + 0"
	count := slices.Concat([]Piece{text("(@isotap_t := CONCAT("), tagPiece, text(", _binary'=', CAST(IF(SUBSTRING_INDEX(" +
		"IFNULL(@isotap_t, _binary''), _binary'=', 1) = "), tagPiece, text(", " + number + ", 0) + 1 AS BINARY)))")})
	return slices.Concat([]Piece{text("IF(IFNULL(@isotap_t, _binary'') = CONCAT("), tagPiece, text(", _binary'=" + afterRuns +
		"'), _binary'', IF(SUBSTRING_INDEX(")}, count, []Piece{text(", _binary'=', -1) + 0 > " + maxRuns + ", ")}, lacking,
		[]Piece{text(", ")}, run, []Piece{text("))")})
}
