package mysql

import (
	"fmt"
	"strings"

	"github.com/isotap/isotap/rewrite"
)

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
