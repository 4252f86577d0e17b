package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// appendKey adds a value of a key to b, as a row's id has it (history.Row).
func appendKey(b []byte, item sqlpostgres.Item, v []byte, format byte) []byte {
	switch {
	case item == sqlpostgres.ItemKeyInt && format == formatBinary:
		return appendInt(b, v)
	case item == sqlpostgres.ItemKeyUUID && format == formatBinary:
		return appendUUID(b, v)
	}
	for _, c := range v {
		if c == ',' || c == '\\' || c == ';' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return b
}

// appendInt adds an integer of two, four or eight bytes in decimal.
func appendInt(b, v []byte) []byte {
	switch len(v) {
	case 2:
		return strconv.AppendInt(b, int64(int16(binary.BigEndian.Uint16(v))), 10)
	case 4:
		return strconv.AppendInt(b, int64(int32(binary.BigEndian.Uint32(v))), 10)
	case 8:
		return strconv.AppendInt(b, int64(binary.BigEndian.Uint64(v)), 10)
	}
	return hex.AppendEncode(b, v)
}

// appendUUID adds a uuid of 16 bytes in its canonical form.
func appendUUID(b, v []byte) []byte {
	if len(v) != 16 {
		return hex.AppendEncode(b, v)
	}
	for i, part := range [...][]byte{v[:4], v[4:6], v[6:8], v[8:10], v[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// readTID reads a value of type tid: "(block,offset)", or four bytes and two.
func readTID(v []byte, format byte) (uint64, bool) {
	if format == formatBinary {
		if len(v) != 6 {
			return 0, false
		}
		return uint64(binary.BigEndian.Uint32(v))<<16 | uint64(binary.BigEndian.Uint16(v[4:])), true
	}
	if len(v) < 5 || v[0] != '(' || v[len(v)-1] != ')' {
		return 0, false
	}
	block, offset, _ := bytes.Cut(v[1:len(v)-1], []byte{','})
	high, ok1 := readNumber(block, 0, 4)
	low, ok2 := readNumber(offset, 0, 4)
	return high<<16 | low, ok1 && ok2 && low < 1<<16
}

// readNumber reads a number without a sign of at most that many bytes: decimal, or binary.
func readNumber(v []byte, format byte, size int) (n uint64, ok bool) {
	if format == formatBinary {
		if len(v) != size {
			return 0, false
		}
		for _, c := range v {
			n = n<<8 | uint64(c)
		}
		return n, true
	}
	if len(v) == 0 || len(v) > 10 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n < 1<<(8*size)
}

// readLSN reads a value of type pg_lsn: two hexadecimal numbers with a slash between them, or eight bytes.
func readLSN(v []byte, format byte) (uint64, bool) {
	if format == formatBinary {
		return readNumber(v, formatBinary, 8)
	}
	high, low, ok := bytes.Cut(v, []byte{'/'})
	h, err1 := strconv.ParseUint(string(high), 16, 32)
	l, err2 := strconv.ParseUint(string(low), 16, 32)
	return h<<32 | l, ok && err1 == nil && err2 == nil
}

// The text form of booleans.
const (
	textTrue  = 't'
	textFalse = 'f'
)

// readBool reads a boolean: t or f, or a byte.
func readBool(v []byte, format byte) (value, ok bool) {
	if len(v) != 1 {
		return false, false
	}
	if format == formatBinary {
		return v[0] != 0, v[0] <= 1
	}
	return v[0] == textTrue, v[0] == textTrue || v[0] == textFalse
}
