package mysql

import (
	"fmt"
	"strconv"

	"github.com/isotap/isotap/history"
)

// Values fill the holes of a plan.
type Values struct {
	Tag       history.Tag // of the statement that the plan is for
	RowCount  int64       // ROW_COUNT() after the client's previous statement
	FoundRows uint64      // FOUND_ROWS(), likewise
	// Whether the server would say something else. Where it would not, it is asked.
	RowCountGone, FoundRowsGone bool
	// Withheld says that a write does not show what its subqueries read.
	Withheld bool
	// Casts says that a cast is described as ROW_COUNT() is, and a number without a sign as FOUND_ROWS(), as on TiDB.
	// On MariaDB and MySQL IF is, and is warned of as they are.
	Casts bool
}

// holeSize is more than any literal of AppendHole takes.
const holeSize = 48

// AppendHole appends the literal that stands for a hole in a text statement. Tags and row ids are
// binary strings; the two counts are expressions of the same type, length and flags as the functions
// that they stand for.
func AppendHole(b []byte, h Hole, ordinal int, v *Values) []byte {
	switch {
	case h == CopyHole:
		return append(b, '?')
	case h == RowCountHole && !v.RowCountGone:
		return append(b, "ROW_COUNT()"...)
	case h == FoundRowsHole && !v.FoundRowsGone:
		return append(b, "FOUND_ROWS()"...)
	case h == RowCountHole && v.Casts:
		return fmt.Appendf(b, "CAST('%021d' AS SIGNED)", v.RowCount)
	case h == FoundRowsHole && v.Casts:
		return fmt.Appendf(b, "(FOUND_ROWS() & 0 | %d)", v.FoundRows) // without a sign, and perhaps NULL
	case h == RowCountHole:
		return fmt.Appendf(b, "IF(1,%d,ROW_COUNT())", v.RowCount)
	case h == FoundRowsHole:
		return fmt.Appendf(b, "IF(1,%d,FOUND_ROWS())", v.FoundRows)
	}
	b = append(b, "_binary'"...)
	b = AppendParam(b, h, ordinal, v)
	return append(b, '\'')
}

// AppendPlaceholder appends what stands for a hole in the text of a prepared statement: a ? for a hidden
// parameter, and the two counts' own names, since the server says which they are only when it runs.
func AppendPlaceholder(b []byte, h Hole, _ int) []byte {
	if h == RowCountHole || h == FoundRowsHole {
		return AppendHole(b, h, 0, &Values{})
	}
	return append(b, '?')
}

// AppendParam appends the bytes of the hidden parameter that a TagHole, a RowIDHole or a ShownHole becomes in a
// prepared statement, where the hole itself is a ?. The parameter's type is a string.
func AppendParam(b []byte, h Hole, ordinal int, v *Values) []byte {
	switch {
	case h == RowIDHole:
		return AppendRowID(b, v.Tag, ordinal)
	case h == ShownHole && v.Withheld:
		return append(b, '0')
	case h == ShownHole:
		return append(b, '1')
	}
	return v.Tag.Append(b)
}

// AppendRowID appends the id of an inserted row: the tag of its INSERT, a colon and the row's ordinal
// in the statement, from 0, in base 36.
func AppendRowID(b []byte, tag history.Tag, ordinal int) []byte {
	b = tag.Append(b)
	b = append(b, ':')
	return strconv.AppendUint(b, uint64(ordinal), 36)
}
