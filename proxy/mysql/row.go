package mysql

import (
	"fmt"
)

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
