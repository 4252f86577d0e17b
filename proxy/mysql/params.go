package mysql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// unsignedType is the flag in the second byte of a bound parameter's type (COM_STMT_EXECUTE).
const unsignedType = 0x80

// named returns COM_STMT_EXECUTE under the statement's own id, where the client meant the one prepared
// last: for the server that may be a variant of it. (It refuses such a command without types.)
func (p *prepared) named(payload []byte) []byte {
	if binary.LittleEndian.Uint32(payload[1:]) == directExecute {
		payload = slices.Clone(payload)
		binary.LittleEndian.PutUint32(payload[1:], p.id)
	}
	return payload
}

// values cuts the parameter values apart. Those that are NULL or came by SEND_LONG_DATA are empty.
func (p *prepared) values(r *reader, nulls []byte) ([][]byte, error) {
	values := make([][]byte, p.params)
	for i := range values {
		if nulls[i/8]&(1<<(i%8)) != 0 || p.long[i] {
			continue
		}
		start := r.pos
		skipBinary(r, p.types[2*i])
		if r.err != nil {
			return nil, fmt.Errorf("parse parameter %d: %w", i+1, r.err)
		}
		values[i] = r.b[start:r.pos]
	}
	return values, nil
}

// args prints the parameters for the history.
func (p *prepared) args(values [][]byte, nulls []byte) []string {
	args := make([]string, len(values))
	for i, v := range values {
		switch {
		case p.long[i]:
			args[i] = "<long data>"
		case nulls[i/8]&(1<<(i%8)) != 0:
			args[i] = "NULL"
		default:
			args[i] = formatBinary(&reader{b: v}, p.types[2*i], p.types[2*i+1]&unsignedType != 0)
		}
	}
	return args
}

// inPlaces returns the literals of a prepared text with the parameters where it has a ? among them. It returns the
// parameters alone where the text's literals are not all known.
func inPlaces(literals, params []string) []string {
	if len(literals) <= len(params) {
		return params // the text has no literals of its own, as most have none
	}
	all, next := make([]string, len(literals)), 0
	for i, text := range literals {
		if text == "?" && next < len(params) {
			text = params[next]
			next++
		}
		all[i] = text
	}
	if next < len(params) {
		return params
	}
	return all
}

// literals returns the parameters of an execution as literals of SQL; empty for those that cannot be written as one.
func (p *prepared) literals(values [][]byte, nulls []byte, noBackslash bool) []string {
	out := make([]string, len(values))
	for i, v := range values {
		switch {
		case p.long[i]:
		case nulls[i/8]&(1<<(i%8)) != 0:
			out[i] = "NULL"
		default:
			out[i] = literal(v, p.types[2*i], p.types[2*i+1]&unsignedType != 0, noBackslash)
		}
	}
	return out
}

// appendParams writes NULL bitmap, types and values of the client's parameters with the hidden ones
// among them. Copies of the client's are NULL where they are withheld.
func (p *prepared) appendParams(b, nulls []byte, values [][]byte, hidden []sqlmysql.Hidden,
	fill sqlmysql.Values, withheld bool) []byte {
	total := p.params + len(hidden)
	if total == 0 {
		return b
	}
	bitmap := len(b)
	b = append(b, make([]byte, (total+7)/8)...)
	b = append(b, 1)
	rest := hidden
	for i, client := 0, 0; i < total; i++ {
		from, own := client, len(rest) > 0 && rest[0].Index == i
		null := own && withheld && rest[0].Hole == sqlmysql.CopyHole
		switch {
		case own && rest[0].Hole == sqlmysql.CopyHole:
			from, rest = rest[0].Ordinal, rest[1:]
		case own:
			b = append(b, gomysql.MYSQL_TYPE_BLOB, 0)
			rest = rest[1:]
			continue
		default:
			client++
		}
		if null || nulls[from/8]&(1<<(from%8)) != 0 {
			b[bitmap+i/8] |= 1 << (i % 8)
		}
		b = append(b, p.types[2*from:2*from+2]...)
	}
	rest = hidden
	var room [48]byte
	for i, client := 0, 0; i < total; i++ {
		if len(rest) > 0 && rest[0].Index == i {
			if rest[0].Hole == sqlmysql.CopyHole {
				if !withheld {
					b = append(b, values[rest[0].Ordinal]...)
				}
				rest = rest[1:]
				continue
			}
			value := sqlmysql.AppendParam(room[:0], rest[0].Hole, rest[0].Ordinal, &fill)
			b = append(appendLenenc(b, uint64(len(value))), value...)
			rest = rest[1:]
			continue
		}
		b = append(b, values[client]...)
		client++
	}
	return b
}

// fits reports whether the parameters are of the types for which the rewritten statement does what the
// client's would. What cannot be read does not fit either, but is told elsewhere. One that reads again goes upstream
// whatever they are: see readsFit.
func (p *prepared) fits(payload []byte) bool {
	up := &p.plan.Upstream
	if !p.mustFit() {
		return true
	}
	r := reader{b: payload}
	r.bytes(executeHead)
	nulls := r.bytes((p.params + 7) / 8)
	types := p.types
	if r.uint8() != 0 {
		types = r.bytes(2 * p.params)
	}
	if r.err != nil || len(types) != 2*p.params {
		return true
	}
	if up.Repeats {
		bound := *p
		bound.types = types
		values, err := bound.values(&r, nulls)
		return err != nil || bound.readsFit(values, nulls)
	}
	return !slices.ContainsFunc(up.Copies, func(c sqlmysql.Copy) bool {
		return nulls[c.Param/8]&(1<<(c.Param%8)) == 0 && !copies(types[2*c.Param], c.Integer)
	})
}

// mustFit reports whether the statement goes as the client wrote it where parameters are not of the types of the
// copies. One that reads again goes with NULLs in these.
func (p *prepared) mustFit() bool {
	up := &p.plan.Upstream
	return len(up.Copies) > 0 && !up.Shows && (!up.Repeats || up.FitsOnly)
}

// readsFit reports whether a statement that reads rows again may do so by the parameters' values: the server warns of
// none of them where it compares it.
func (p *prepared) readsFit(values [][]byte, nulls []byte) bool {
	return !slices.ContainsFunc(p.plan.Upstream.Copies, func(c sqlmysql.Copy) bool {
		switch typ := p.types[2*c.Param]; {
		case p.long[c.Param]:
			return true
		case nulls[c.Param/8]&(1<<(c.Param%8)) != 0:
			return c.One || c.Rows
		case c.One:
			return !isOne(typ, values[c.Param])
		case c.Rows:
			return !isRows(typ, values[c.Param])
		case c.Integer:
			return !copies(typ, true)
		case c.Moment && (typ == gomysql.MYSQL_TYPE_DATE || typ == gomysql.MYSQL_TYPE_DATETIME ||
			typ == gomysql.MYSQL_TYPE_TIMESTAMP):
			return false
		case !copies(typ, false):
			return true
		}
		r := reader{b: values[c.Param]}
		value := r.lenencBytes()
		return c.Moment && !isMoment(string(value)) || !utf8.Valid(value)
	})
}

// isOne reports whether a parameter of that type is the number 1, or its text.
func isOne(typ byte, value []byte) bool {
	if copies(typ, true) {
		return len(value) > 0 && value[0] == 1 && len(bytes.Trim(value[1:], "\x00")) == 0
	}
	r := reader{b: value}
	return copies(typ, false) && string(r.lenencBytes()) == "1" && r.err == nil
}

// isRows reports whether a parameter of that type is a number that is not negative, or its text.
func isRows(typ byte, value []byte) bool {
	if copies(typ, true) {
		return len(value) > 0 && value[len(value)-1] < 0x80
	}
	r := reader{b: value}
	text := string(r.lenencBytes())
	digits := strings.Trim(text, "0123456789") == ""
	return copies(typ, false) && r.err == nil && digits && text != "" && len(text) < 19
}

// isMoment reports whether a text is a date, with or without a time, as the server prints one.
func isMoment(text string) bool {
	_, err := time.Parse(time.DateTime, text) // fractions of seconds may follow
	if err != nil {
		_, err = time.Parse(time.DateOnly, text)
	}
	return err == nil && len(text) <= len("2006-01-02 15:04:05.000000")
}

// copies reports whether a parameter of that type may be copied as an integer, or as a string.
func copies(typ byte, integer bool) bool {
	switch typ {
	case gomysql.MYSQL_TYPE_NULL:
		return true
	case gomysql.MYSQL_TYPE_TINY, gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_INT24, gomysql.MYSQL_TYPE_LONG,
		gomysql.MYSQL_TYPE_LONGLONG:
		return integer
	case gomysql.MYSQL_TYPE_STRING, gomysql.MYSQL_TYPE_VAR_STRING, gomysql.MYSQL_TYPE_VARCHAR:
		return !integer
	}
	return false
}
