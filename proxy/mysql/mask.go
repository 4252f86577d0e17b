package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
)

// A server without invisible columns (TiDB) would show isotap's to the client. The rewriter takes the
// stars out of statements (sqlmysql.Upstream.Plain); what it cannot read, the text that EXECUTE runs for one,
// may show the columns all the same, and then they are cut out of the result by their names. So are, on
// every server, the identities that a star of a rewritten statement carries (sqlmysql.Result.Carried), and whatever a
// plan that is wrong would show (see isOwn).

// A columnMask is which columns of a result are isotap's, beyond those at its end that the plan hides. The head of the
// result, the number of columns and their definitions, is held back until that is known: rows may be masked only then.
type columnMask struct {
	from    int    // where the head begins in the session's output
	columns []int  // that the client does not see, in ascending order
	types   []byte // of all columns, for binary rows
	// wrong says that the plan does not know of some of them, shifted that those at the end are not where it has them.
	wrong, shifted bool
}

func (c *columnMask) hides(column int) bool { return slices.Contains(c.columns, column) }

// maskRow returns a row without the columns that the client does not see.
func (c *columnMask) maskRow(row []byte, of *reply) ([]byte, error) {
	if len(c.columns) == 0 {
		return row, nil
	}
	cut := c.maskTextRow
	if of.binary {
		cut = c.maskBinaryRow
	}
	r := reader{b: row}
	out := cut(&r, of.fields+len(c.columns))
	if r.err != nil {
		return nil, fmt.Errorf("parse row: %w", r.err)
	}
	return out, nil
}

func (c *columnMask) maskTextRow(r *reader, fields int) []byte {
	var out []byte
	for i := range fields {
		from := r.pos
		r.lenencBytes()
		if !c.hides(i) && r.err == nil {
			out = append(out, r.b[from:r.pos]...)
		}
	}
	return out
}

func (c *columnMask) maskBinaryRow(r *reader, fields int) []byte {
	r.uint8()
	nulls := r.bytes((fields + 9) / 8)
	if r.err != nil {
		return nil
	}
	out := append([]byte{gomysql.OK_HEADER}, make([]byte, (fields-len(c.columns)+9)/8)...)
	kept := 0
	for i := range fields {
		from := r.pos
		null := isNull(nulls, i)
		if !null {
			skipBinary(r, c.types[i])
		}
		switch {
		case c.hides(i) || r.err != nil:
			continue
		case null:
			out[1+(kept+2)/8] |= 1 << ((kept + 2) % 8)
		default:
			out = append(out, r.b[from:r.pos]...)
		}
		kept++
	}
	return out
}

var carriedPrefix = []byte(rewrite.CarriedPrefix)

// holdsColumn reports whether the name of one of isotap's columns stands in a text.
func holdsColumn(text []byte) bool {
	return bytes.Contains(text, rowIDColumn) || bytes.Contains(text, wListColumn)
}

var rowIDColumn, wListColumn = []byte(rewrite.RowIDColumn), []byte(rewrite.WListColumn)

// isotapColumn reports whether a column definition is that of an auxiliary column.
func isotapColumn(definition []byte) bool {
	r := reader{b: definition}
	for range 5 { // catalog, schema, table, original table, name
		r.lenencBytes()
	}
	name := string(r.lenencBytes())
	return name == rewrite.RowIDColumn || name == rewrite.WListColumn
}

// binaryTail reads the hidden values of a row whose visible part is behind the reader.
type binaryTail struct {
	nulls []byte // the NULL bitmap; nil in a text row
}

func (t binaryTail) value(r *reader, column int) []byte {
	if t.nulls != nil && isNull(t.nulls, column) {
		return nil
	}
	return r.lenencBytes()
}

// isNull reads the NULL bitmap of a binary row, whose first two bits mean nothing.
func isNull(nulls []byte, column int) bool {
	return nulls[(column+2)/8]&(1<<((column+2)%8)) != 0
}

// trimBinary appends the first columns of a binary row to row as a row of their own, with the NULL
// bitmap that belongs to their number, and leaves r at the value behind them.
func trimBinary(row []byte, r *reader, types []byte, columns int) ([]byte, binaryTail, error) {
	r.uint8()
	nulls := r.bytes((len(types) + 9) / 8)
	if r.err != nil {
		return nil, binaryTail{}, fmt.Errorf("parse binary row: %w", r.err)
	}
	start := r.pos
	for i := range columns {
		if !isNull(nulls, i) {
			skipBinary(r, types[i])
		}
	}
	if r.err != nil {
		return nil, binaryTail{}, fmt.Errorf("parse binary row: %w", r.err)
	}
	size := (columns + 9) / 8
	row = append(row, markOK)
	row = append(row, nulls[:size]...)
	// Bits of hidden columns can stand in the bitmap's last byte.
	if used := uint(columns+2) % 8; used != 0 {
		row[len(row)-1] &= 1<<used - 1
	}
	return append(row, r.b[start:r.pos]...), binaryTail{nulls: nulls}, nil
}

// maskDescription returns a row of a statement that describes tables as the client is to see it, without
// isotap's columns; nil for a row that the client does not see. kind is what the statement describes.
func maskDescription(row []byte, kind rewrite.Reply, of *reply) ([]byte, error) {
	if kind == rewrite.Listing {
		named, err := namesColumn(row, of)
		if named {
			row = nil
		}
		return row, err
	}
	if of.fields < 2 {
		return row, nil
	}
	value, from, to, err := secondText(row, of.binary, of.fields)
	if err != nil {
		return nil, err
	}
	text := string(value)
	cut := withoutColumns(text)
	if cut == text {
		return row, nil
	}
	b := append([]byte(nil), row[:from]...)
	b = append(appendLenenc(b, uint64(len(cut))), cut...)
	return append(b, row[to:]...), nil
}

// namesColumn reports whether a value of the row is the name of an auxiliary column.
func namesColumn(row []byte, of *reply) (bool, error) {
	r := reader{b: row}
	var nulls []byte
	if of.binary {
		r.uint8()
		nulls = r.bytes((of.fields + 9) / 8)
	}
	named := false
	for i := 0; i < of.fields && r.err == nil; i++ {
		if nulls != nil && isNull(nulls, i) {
			continue
		}
		start := r.pos
		if nulls == nil {
			r.lenencBytes()
		} else {
			skipBinary(&r, of.types[i])
		}
		if r.pos-start == 1+len(rewrite.RowIDColumn) { // both names are equally long
			value := string(row[start+1 : r.pos])
			named = named || value == rewrite.RowIDColumn || value == rewrite.WListColumn
		}
	}
	if r.err != nil {
		return false, fmt.Errorf("parse row: %w", r.err)
	}
	return named, nil
}

// secondText reads the second value of a row whose first two are strings, and returns where it lies. A
// binary row begins with a zero and the NULL bitmap of all fields.
func secondText(row []byte, binary bool, fields int) (value []byte, from, to int, err error) {
	r := reader{b: row}
	var nulls []byte
	if binary {
		r.uint8()
		nulls = r.bytes((fields + 9) / 8)
	}
	for i := range 2 {
		from, value = r.pos, nil
		if nulls == nil || !isNull(nulls, i) {
			value = r.lenencBytes()
		}
	}
	if r.err != nil {
		return nil, 0, 0, fmt.Errorf("parse row: %w", r.err)
	}
	return value, from, r.pos, nil
}

// withoutColumns cuts the lines of isotap's columns out of a CREATE TABLE statement as SHOW CREATE TABLE
// prints it: one definition a line, with a comma behind all but the last.
func withoutColumns(definition string) string {
	lines := strings.Split(definition, "\n")
	kept := lines[:0]
	for _, line := range lines {
		if strings.HasPrefix(line, "  `"+rewrite.RowIDColumn+"` ") ||
			strings.HasPrefix(line, "  `"+rewrite.WListColumn+"` ") {
			continue
		}
		if n := len(kept); strings.HasPrefix(line, ")") && n > 1 {
			kept[n-1] = strings.TrimSuffix(kept[n-1], ",")
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
