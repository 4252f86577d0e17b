package mysql

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// skipBinary moves r past one value of the binary protocol, of the given type
// (https://mariadb.com/kb/en/resultset-row/#binary-resultset-row).
func skipBinary(r *reader, typ byte) {
	switch typ {
	case gomysql.MYSQL_TYPE_NULL:
	case gomysql.MYSQL_TYPE_TINY:
		r.bytes(1)
	case gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_YEAR:
		r.bytes(2)
	case gomysql.MYSQL_TYPE_LONG, gomysql.MYSQL_TYPE_INT24, gomysql.MYSQL_TYPE_FLOAT:
		r.bytes(4)
	case gomysql.MYSQL_TYPE_LONGLONG, gomysql.MYSQL_TYPE_DOUBLE:
		r.bytes(8)
	case gomysql.MYSQL_TYPE_DATE, gomysql.MYSQL_TYPE_NEWDATE, gomysql.MYSQL_TYPE_DATETIME, gomysql.MYSQL_TYPE_DATETIME2,
		gomysql.MYSQL_TYPE_TIMESTAMP, gomysql.MYSQL_TYPE_TIMESTAMP2, gomysql.MYSQL_TYPE_TIME, gomysql.MYSQL_TYPE_TIME2:
		r.bytes(int(r.uint8()))
	default:
		r.lenencBytes()
	}
}

// maxArgBytes bounds what is kept of one parameter.
const maxArgBytes = 64

// formatBinary reads one parameter value and returns it as SQL would print it.
func formatBinary(r *reader, typ byte, unsigned bool) string {
	start := r.pos
	skipBinary(r, typ)
	if r.err != nil {
		return ""
	}
	v := r.b[start:r.pos]
	switch typ {
	case gomysql.MYSQL_TYPE_NULL:
		return "NULL"
	case gomysql.MYSQL_TYPE_TINY:
		return formatInt(uint64(v[0]), 8, unsigned)
	case gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_YEAR:
		return formatInt(uint64(binary.LittleEndian.Uint16(v)), 16, unsigned)
	case gomysql.MYSQL_TYPE_LONG, gomysql.MYSQL_TYPE_INT24:
		return formatInt(uint64(binary.LittleEndian.Uint32(v)), 32, unsigned)
	case gomysql.MYSQL_TYPE_LONGLONG:
		return formatInt(binary.LittleEndian.Uint64(v), 64, unsigned)
	case gomysql.MYSQL_TYPE_FLOAT:
		return strconv.FormatFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))), 'g', -1, 32)
	case gomysql.MYSQL_TYPE_DOUBLE:
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)), 'g', -1, 64)
	case gomysql.MYSQL_TYPE_DATE, gomysql.MYSQL_TYPE_DATETIME, gomysql.MYSQL_TYPE_TIMESTAMP:
		return formatDateTime(v[1:])
	case gomysql.MYSQL_TYPE_TIME:
		return formatTime(v[1:])
	}
	s := reader{b: v}
	return quote(s.lenencBytes())
}

func formatInt(v uint64, bits int, unsigned bool) string {
	if unsigned {
		return strconv.FormatUint(v, 10)
	}
	shift := 64 - bits
	return strconv.FormatInt(int64(v<<shift)>>shift, 10)
}

// formatDateTime prints a date of 4 bytes, with a time from 7 on and microseconds from 11 on.
func formatDateTime(v []byte) string {
	if len(v) < 4 {
		return "'0000-00-00'"
	}
	s := fmt.Sprintf("'%04d-%02d-%02d", binary.LittleEndian.Uint16(v), v[2], v[3])
	if len(v) >= 7 {
		s += fmt.Sprintf(" %02d:%02d:%02d", v[4], v[5], v[6])
	}
	if len(v) >= 11 {
		s += fmt.Sprintf(".%06d", binary.LittleEndian.Uint32(v[7:]))
	}
	return s + "'"
}

// formatTime prints a time: sign, days, hours, minutes, seconds, and microseconds from 12 bytes on.
func formatTime(v []byte) string {
	if len(v) < 8 {
		return "'00:00:00'"
	}
	sign := ""
	if v[0] != 0 {
		sign = "-"
	}
	s := fmt.Sprintf("'%s%02d:%02d:%02d", sign, binary.LittleEndian.Uint32(v[1:])*24+uint32(v[5]), v[6], v[7])
	if len(v) >= 12 {
		s += fmt.Sprintf(".%06d", binary.LittleEndian.Uint32(v[8:]))
	}
	return s + "'"
}

// quote prints a string parameter as a literal, cut to maxArgBytes.
func quote(v []byte) string {
	cut := len(v) > maxArgBytes
	if cut {
		v = v[:maxArgBytes]
	}
	b := make([]byte, 0, len(v)+8)
	b = append(b, '\'')
	for _, c := range v {
		switch {
		case c == '\'' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'x', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, c)
		}
	}
	if cut {
		b = append(b, "..."...)
	}
	return string(append(b, '\''))
}

// literal returns a parameter's value as a literal of the same type.
func literal(v []byte, typ byte, unsigned, noBackslash bool) string {
	r := reader{b: v}
	switch typ {
	case gomysql.MYSQL_TYPE_NULL, gomysql.MYSQL_TYPE_TINY, gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_INT24,
		gomysql.MYSQL_TYPE_LONG, gomysql.MYSQL_TYPE_LONGLONG:
		return formatBinary(&r, typ, unsigned)
	case gomysql.MYSQL_TYPE_FLOAT:
		return double(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))))
	case gomysql.MYSQL_TYPE_DOUBLE:
		return double(math.Float64frombits(binary.LittleEndian.Uint64(v)))
	case gomysql.MYSQL_TYPE_DATE:
		return "DATE" + formatBinary(&r, typ, false)
	case gomysql.MYSQL_TYPE_DATETIME, gomysql.MYSQL_TYPE_TIMESTAMP:
		return "TIMESTAMP" + formatBinary(&r, typ, false)
	case gomysql.MYSQL_TYPE_STRING, gomysql.MYSQL_TYPE_VAR_STRING, gomysql.MYSQL_TYPE_VARCHAR:
		return textLiteral(r.lenencBytes(), noBackslash)
	case gomysql.MYSQL_TYPE_TINY_BLOB, gomysql.MYSQL_TYPE_BLOB, gomysql.MYSQL_TYPE_MEDIUM_BLOB,
		gomysql.MYSQL_TYPE_LONG_BLOB:
		return "X'" + hex.EncodeToString(r.lenencBytes()) + "'"
	}
	return ""
}

// double returns a number that SQL reads as one of type DOUBLE.
func double(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }

func textLiteral(v []byte, noBackslash bool) string {
	s := strings.ReplaceAll(string(v), "'", "''")
	if !noBackslash {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return "'" + s + "'"
}
