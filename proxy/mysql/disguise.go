package mysql

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// disguised gives a row of a statement that describes tables as the client is to see it, without
// isotap's columns; nil for a row that the client does not see.
func (x *exchange) disguised(row []byte) ([]byte, error) {
	column := 0
	if x.disguise == rewrite.Definition {
		column = 1
	}
	if column >= x.fields {
		return row, nil
	}
	value, from, to, err := textValue(row, x.binary, x.fields, column)
	if err != nil {
		return nil, err
	}
	text := string(value)
	if x.disguise == rewrite.Listing {
		if text == rewrite.RowIDColumn || text == rewrite.WListColumn {
			return nil, nil
		}
		return row, nil
	}
	cut := withoutColumns(text)
	if cut == text {
		return row, nil
	}
	b := append([]byte(nil), row[:from]...)
	b = append(appendLenenc(b, uint64(len(cut))), cut...)
	return append(b, row[to:]...), nil
}

// textValue reads the value at the column of a row in which all values up to it are strings, and says
// where it lies. A binary row begins with a zero and the NULL bitmap of all fields.
func textValue(row []byte, binary bool, fields, column int) (value []byte, from, to int, err error) {
	r := reader{b: row}
	var nulls []byte
	if binary {
		r.uint8()
		nulls = r.bytes((fields + 9) / 8)
	}
	for i := 0; i <= column && r.err == nil; i++ {
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
		if strings.HasPrefix(line, "  `"+rewrite.RowIDColumn+"` ") || strings.HasPrefix(line, "  `"+rewrite.WListColumn+"` ") {
			continue
		}
		if n := len(kept); strings.HasPrefix(line, ")") && n > 1 {
			kept[n-1] = strings.TrimSuffix(kept[n-1], ",")
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
