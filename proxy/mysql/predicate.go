package mysql

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// literalSettings is what the session's literals are read under, in mode predicates.
type literalSettings struct {
	history.LiteralSettings
	increment uint64 // of AUTO_INCREMENT; 0: not known
}

// predicates returns those of a statement, with literals in the places of its parameters. Where they cannot hold there
// are none: a session's own limit leaves rows out, and at READ UNCOMMITTED a version may be seen that is none, but by
// what locks the rows.
func (in *settings) predicates(o *observed, literals []string) []history.Predicate {
	if len(o.plan.Predicates) == 0 || !o.rewritten || in.selectLimit || o.txn == nil ||
		o.txn.Level == history.LevelUnknown {
		return nil
	}
	if o.txn.Level == history.ReadUncommitted && o.plan.Kind == history.Select && o.plan.Locking == history.NoLock {
		return nil
	}
	var out []history.Predicate
	for i := range o.plan.Predicates {
		open := &o.plan.Predicates[i]
		if where, ok := open.Close(literals); ok && in.env.SameInUTF8(where) {
			out = append(out, history.Predicate{Table: open.Table, Of: open.Of, As: open.As, Where: where,
				Settings: in.literals.LiteralSettings})
		}
	}
	return out
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

// pictures reports whether images of what the statement wrote may have been collected.
func (o *observed) pictures() bool {
	return o.rewritten && !o.plan.Writes.Images.Empty() && (o.returned || max(o.affected, o.changed) > 0)
}

// takeImages gives the images that a read found to the statements of its batch. With an error it gives those before the
// bad one.
func takeImages(batch []*observed, collected []byte) error {
	entries, err := sqlmysql.ParseImages(collected)
	byTag := make(map[history.Tag][]sqlmysql.ImageEntry, len(batch))
	for _, e := range entries {
		byTag[e.Tag] = append(byTag[e.Tag], e)
	}
	for _, o := range batch {
		if found := byTag[o.tag()]; len(found) > 0 {
			o.picture(found)
		}
	}
	return err
}

// picture gives a recorded statement its images. Of several of a row the last one is what the statement left.
func (o *observed) picture(entries []sqlmysql.ImageEntry) {
	last := make(map[string]*sqlmysql.ImageEntry, len(entries))
	unnumbered := 0
	for i := range entries {
		e := &entries[i]
		last[e.RowID] = e
		if e.Inserted && strings.HasPrefix(e.Values, zeroFirst) {
			unnumbered++
		}
	}
	numbers := o.insertID > 0 && o.plan.Writes.Images.Consecutive && unnumbered == o.made
	st := o.recorded()
	images := make([]string, len(st.Accesses))
	for i := range st.Accesses {
		a := &st.Accesses[i]
		if e := last[a.Row.ID]; e != nil && (a.Op == history.InsertRow || a.Op == history.UpdateRow) {
			images[i] = o.image(e, numbers)
		}
	}
	st.Images = images
}

// zeroFirst begins the values of a row that the server has not numbered yet.
const zeroFirst = "0,"

// image returns an image in the form that the server reads again. numbers says that the server numbered every row of
// the statement.
func (o *observed) image(e *sqlmysql.ImageEntry, numbers bool) string {
	picture := &o.plan.Writes.Images
	if !e.Inserted {
		return picture.Updated + sqlmysql.ImageValues + e.Values + ")"
	}
	columns, values := picture.Inserted, e.Values
	if rest, zero := strings.CutPrefix(values, zeroFirst); picture.Counted && zero {
		if n := o.numbered(e.RowID); numbers && n > 0 {
			values = strconv.FormatUint(n, 10) + "," + rest
		} else { // what the server gave the row is not known
			_, others, _ := strings.Cut(columns, "`, ")
			columns, values = "("+others, rest
		}
	}
	return columns + sqlmysql.ImageValues + values + ")"
}

// numbered returns the number that the server gave an inserted row, where it numbered all of the statement; 0 where
// that is not known.
func (o *observed) numbered(rowID string) uint64 {
	_, text, _ := strings.Cut(rowID, ":")
	ordinal, err := strconv.ParseUint(text, 36, 32)
	if err != nil || ordinal > 0 && o.increment == 0 {
		return 0
	}
	return o.insertID + ordinal*o.increment
}
