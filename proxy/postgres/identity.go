package postgres

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// rowIdentities are the identities that came out of the rows of a statement. Their memory is used again for the
// next.
type rowIdentities struct {
	arena   []byte // the rows' ids, one behind the other
	list    []rowIdentity
	of      *txnstate.Unrecorded
	more    history.Reason // why some were not kept; empty: all were
	images  int            // bytes
	partial bool           // an array was as long as it can be, or says that it may lack some
	cut     bool           // likewise, of what a subquery read
	unread  bool           // a value could not be read
	// arrays has a bit for each of the first sources that an array came of.
	arrays uint64
	// collected is how many there were in arrays.
	collected int
	elements  map[collected]bool
	rows      uint64
	// last are the values that the last row is ordered by, as literals.
	last []textValue
	// absent says that the last row is none of the client's: its result is empty.
	absent bool
}

// A rowIdentity is an identity as it came out of a row.
type rowIdentity struct {
	source int
	end    int // of the row's id in the arena; it begins where the one before it ended
	op     history.Op
	moved  bool // an UPDATE gave the row another key
	tuple  history.TupleID
	txn    uint32 // the id of the transaction; 0: not told
	image  string
}

// A collected identity is an array's element, of a source.
type collected struct {
	source  int
	element string
}

// A textValue is a text that the server made of a value. Its memory is used again for the next row's.
type textValue struct {
	text []byte
	null bool
}

func (v *textValue) put(text []byte) { v.text, v.null = append(v.text[:0], text...), text == nil }

// literal returns the literal that is the value.
func (v *textValue) literal() string {
	if v.null {
		return rewrite.Null
	}
	text := "'" + strings.ReplaceAll(string(v.text), "'", "''") + "'"
	if strings.Contains(text, `\`) {
		text = "E" + strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

// maxSeen bounds the identities that are kept of one statement. Each takes some 250 bytes until it is
// recorded, and an export may read all there is.
const maxSeen = 1 << 20

// maxIdentityMemory bounds the memory in bytes that a session keeps for the next statement.
const maxIdentityMemory = 1 << 20

// forget makes the memory ready for the next statement.
func (s *rowIdentities) forget() {
	arena, list := s.arena[:0], s.list[:0]
	if cap(arena) > maxIdentityMemory || cap(list) > maxIdentityMemory/64 {
		arena, list = nil, nil
	}
	*s = rowIdentities{of: s.of, arena: arena, list: list}
}

// row takes the identities that a row carries, behind the reader, in text (format 0) or binary.
func (s *rowIdentities) row(r *reader, plan *sqlpostgres.Plan, format byte) {
	s.rows++
	if plan == nil {
		return
	}
	for i := range plan.Result.Sources {
		source := &plan.Result.Sources[i]
		switch {
		case source.Present:
			if s.absent = r.value() == nil; s.absent {
				s.rows--
			}
		case source.Order > 0:
			s.last = slices.Grow(s.last[:0], source.Order)[:source.Order]
			for j := range s.last {
				s.last[j].put(r.value())
			}
		case source.Physical == nil:
			for range source.Columns() {
				r.value()
			}
		case source.Joint < 0:
		case source.Array:
			s.array(r.value(), i, plan.Result.Sources[i:], format)
		default:
			s.identity(r, i, source, plan.Kind, format)
		}
	}
}

// identity takes one identity, in several columns. All of them are NULL on the missing side of an outer join.
func (s *rowIdentities) identity(r *reader, i int, source *sqlpostgres.Source, kind history.Kind, format byte) {
	seen := rowIdentity{source: i, op: operation(kind, source)}
	start, null := len(s.arena), true
	keys := 0
	for _, item := range source.Physical.Items {
		v := r.value()
		if v == nil {
			continue
		}
		null = false
		if item >= sqlpostgres.ItemKeyInt && item <= sqlpostgres.ItemKeyHex {
			if keys++; keys > 1 {
				s.arena = append(s.arena, ',')
			}
			s.arena = appendKey(s.arena, item, v, format)
		} else if !seen.take(item, v, format) {
			s.unread = true
		}
	}
	if null {
		s.arena = s.arena[:start]
		return
	}
	s.add(seen, start)
}

// add keeps an identity whose key begins at start in the arena.
func (s *rowIdentities) add(seen rowIdentity, start int) {
	if s.tooMany() {
		s.arena = s.arena[:start]
		return
	}
	seen.end = len(s.arena)
	s.images += len(seen.image)
	s.list = append(s.list, seen)
}

// tooMany reports whether no more identities may be kept, and notes why.
func (s *rowIdentities) tooMany() bool {
	switch {
	case len(s.list) == maxSeen:
		s.more = history.ReasonTooManyRows
	case !s.of.Admits(txnstate.AccessBytes*(len(s.list)+len(s.elements)) + len(s.arena) + s.images):
		s.more = history.ReasonTxnMemory
	}
	return !s.more.IsZero()
}

// operation is what a statement of that kind, or its part, did to the rows of a source.
func operation(kind history.Kind, source *sqlpostgres.Source) history.Op {
	if !writes(source) {
		return history.Read
	}
	if source.Kind != history.Other {
		kind = source.Kind
	}
	switch kind {
	case history.Insert:
		return history.InsertRow
	case history.Delete:
		return history.DeleteRow
	}
	return history.UpdateRow
}

// take reads the value of an item that is no part of the key, and reports whether it can be read.
func (seen *rowIdentity) take(item sqlpostgres.Item, v []byte, format byte) (ok bool) {
	tuple := &seen.tuple
	var n uint64
	switch item {
	case sqlpostgres.ItemTable:
		n, ok = readNumber(v, format, 4)
		tuple.Leaf = uint32(n)
	case sqlpostgres.ItemTID:
		tuple.CTID, ok = readTID(v, format)
	case sqlpostgres.ItemXID:
		n, ok = readNumber(v, format, 4)
		tuple.XID = uint32(n)
	case sqlpostgres.ItemNewTID:
		tuple.NewID, ok = readTID(v, format)
	case sqlpostgres.ItemNewXID:
		n, ok = readNumber(v, format, 4)
		tuple.NewXID = uint32(n)
	case sqlpostgres.ItemTxnXID:
		n, ok = readNumber(v, format, 4)
		seen.txn = uint32(n)
	case sqlpostgres.ItemLSN:
		tuple.LSN, ok = readLSN(v, format)
	case sqlpostgres.ItemOldKeyChanged:
		seen.moved, ok = readBool(v, format)
	case sqlpostgres.ItemInserted:
		var inserted bool
		if inserted, ok = readBool(v, format); ok && !inserted {
			seen.op = history.UpdateRow
		}
	case sqlpostgres.ItemImage:
		seen.image, ok = string(v), true
	case sqlpostgres.ItemImageHex:
		image, err := hex.DecodeString(string(v))
		seen.image, ok = string(image), err == nil
	case sqlpostgres.ItemAction:
		ok = seen.act(string(v))
	case sqlpostgres.ItemTag:
		tuple.Tagged = true
		tuple.XID, tuple.CTID, ok = readTag(v)
	case sqlpostgres.ItemNewTags:
		ok = seen.tags(v)
	}
	return ok
}

// hexTag is the length of a tag in hexadecimal digits: of the transaction's id and of the log position.
const hexTag = 16 + 16

// tags takes what a row's list says of a write: a row that was inserted has one tag.
func (seen *rowIdentity) tags(v []byte) (ok bool) {
	tuple := &seen.tuple
	tuple.Tagged = true
	last := len(v) - hexTag
	if last < 0 {
		return false
	}
	if tuple.NewXID, tuple.NewID, ok = readTag(v[last:]); last == 0 || !ok {
		return ok
	}
	if seen.op == history.InsertRow {
		seen.op = history.UpdateRow
	}
	tuple.XID, tuple.CTID, ok = readTag(v[:last])
	return ok
}

// readTag reads a tag. Of the transaction's id its last 32 bits count, as in xmin.
func readTag(v []byte) (xid uint32, position uint64, ok bool) {
	if len(v) != hexTag {
		return 0, 0, false
	}
	txn, err1 := strconv.ParseUint(string(v[:16]), 16, 64)
	position, err2 := strconv.ParseUint(string(v[16:]), 16, 64)
	return uint32(txn), position, err1 == nil && err2 == nil
}

// act takes what MERGE did to a row.
func (seen *rowIdentity) act(action string) bool {
	switch action {
	case "INSERT":
		seen.op = history.InsertRow
	case "UPDATE":
		seen.op = history.UpdateRow
	case "DELETE":
		seen.op = history.DeleteRow
	default:
		return false
	}
	return true
}

// put turns what a statement's rows showed into accesses and tuple ids. All ids of a statement share
// one allocation. A write that failed wrote nothing, whatever it had returned by then. tooLarge says
// that these were more identities than a reply should have.
func (s *rowIdentities) put(c *resultInProgress, st *history.Stmt, failed bool,
	literals history.LiteralSettings) (tooLarge bool) {
	defer s.forget()
	if c.plan == nil || c.hidden == 0 {
		return false
	}
	tooLarge = s.judge(c.plan, st, failed)
	if len(s.list) == 0 || st.Observation == history.Opaque {
		return tooLarge
	}
	text, start := string(s.arena), 0
	accesses, tupleIDs := slices.Grow(st.Accesses, len(s.list)), make([]history.TupleID, 0, len(s.list))
	for i := range s.list {
		seen := &s.list[i]
		id := text[start:seen.end]
		start = seen.end
		source := &c.plan.Result.Sources[seen.source]
		if failed && seen.op != history.Read {
			continue
		}
		tuple := seen.tuple
		st.XID = max(st.XID, seen.txn)
		row := history.Row{Table: source.Table, ID: id}
		if leaves := source.Physical.Leaves; leaves != nil {
			row.Table = leaves[tuple.Leaf]
		}
		if tuple.Leaf == 0 {
			tuple.Leaf = source.Physical.OID
		}
		if row.Table == "" {
			downgrade(st, history.Inexact, history.ReasonUnknownRow)
			continue
		}
		if seen.moved {
			downgrade(st, history.Inexact, history.ReasonKeyChanged)
		}
		accesses = append(accesses, history.Access{Row: row, Op: seen.op, Inexact: seen.moved})
		tupleIDs = append(tupleIDs, tuple)
		if seen.image != "" && unambiguous(literals) {
			if st.Images == nil {
				st.Images = make([]string, len(st.Accesses)+len(s.list))
			}
			st.Images[len(accesses)-1] = seen.image
		}
	}
	st.Accesses, st.TupleIDs = accesses, tupleIDs
	if st.Images != nil {
		st.Images = st.Images[:len(accesses)]
	}
	return tooLarge
}

// lack reports whether the only array of a source did not come.
func (s *rowIdentities) lack(sources []sqlpostgres.Source) bool {
	for i := range sources {
		if sources[i].Whole && s.arrays&(1<<i) == 0 && !sources[i].Beside {
			return true
		}
	}
	return false
}

// lackSubquery reports whether what a subquery read did not come, since there was no row to show it beside.
func (s *rowIdentities) lackSubquery(sources []sqlpostgres.Source) bool {
	for i := range sources {
		if sources[i].Whole && s.arrays&(1<<i) == 0 && sources[i].Beside {
			return true
		}
	}
	return false
}

// leftOut is the reason why a statement that shows no row does not tell what it read.
func leftOut(p *sqlpostgres.Plan) history.Reason {
	switch {
	case p.Result.Tag != "":
		return history.ReasonWith
	case p.Kind == history.Insert:
		return history.ReasonInsertSelect
	}
	return history.ReasonGroupsLeftOut
}

// judge downgrades a statement whose rows did not show all that the plan promised. It reports whether these were more
// identities than a reply should have.
func (s *rowIdentities) judge(p *sqlpostgres.Plan, st *history.Stmt, failed bool) (tooLarge bool) {
	switch {
	case s.unread:
		downgrade(st, history.Inexact, history.ReasonUnreadableIdentity)
	case !s.more.IsZero():
		downgrade(st, history.Inexact, s.more)
	case s.partial && p.Kind == history.Insert:
		downgrade(st, history.Inexact, history.ReasonInsertSelect)
	case s.partial:
		downgrade(st, history.Inexact, history.ReasonLargeAggregate)
	case s.lack(p.Result.Sources):
		downgrade(st, history.Inexact, leftOut(p))
	case s.cut, s.lackSubquery(p.Result.Sources):
		downgrade(st, history.Inexact, history.ReasonSubquery)
	case !failed && counts(p) && st.Affected != s.rows:
		downgrade(st, history.Inexact, history.ReasonCount)
	}
	return p.Kind == history.Select && (s.partial || s.collected > sqlpostgres.MaxArray)
}

// unambiguous reports whether what the session shows of dates, times and intervals means the same to every other
// session.
func unambiguous(s history.LiteralSettings) bool {
	return strings.HasPrefix(s.DateStyle, "ISO") && s.IntervalStyle != "sql_standard"
}

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
