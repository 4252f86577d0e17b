package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
)

// trimRow passes a row on without its last x.hidden values, which are the identities of the statement's
// sources.
func (s *Session) trimRow(x *exchange, payload []byte) error {
	visible := x.fields - x.hidden
	r := reader{b: payload}
	var trimmed []byte
	var tail binaryTail
	if x.binary {
		var err error
		if trimmed, tail, err = trimBinary(s.scratch[:0], &r, x.types, visible); err != nil {
			return err
		}
		s.scratch = trimmed
	} else {
		for range visible {
			r.lenencBytes()
		}
		trimmed = payload[:r.pos]
	}
	column := visible
	for i := range x.stmt.plan.Result.Sources {
		source := &x.stmt.plan.Result.Sources[i]
		if source.Array {
			s.seen.addArray(i, source.Limit, tail.value(&r, column))
		} else {
			s.seen.add(i, tail.value(&r, column), tail.value(&r, column+1))
		}
		column += source.Columns()
	}
	if r.err != nil {
		return fmt.Errorf("parse row: %w", r.err)
	}
	if !x.swallow {
		s.forward(x, 0, trimmed)
	}
	return nil
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

// sightings are the identities that came out of the rows of the statement in flight. A session has one
// statement in flight, and uses the memory again for the next.
type sightings struct {
	arena []byte // row ids and wLists, one behind the other
	list  []sighting
	more  history.Reason // why there were more than are kept: as a reason; empty: there were none
	of    *txnstate.Unrecorded
	key   []byte
	arrayed
}

// A sighting is an identity as it came out of a row: places in the arena.
type sighting struct {
	source     int
	rowID      int // where the row id ends; it begins where the sighting before it ended
	wList      int // where the wList ends; it begins where the row id ends
	noIdentity bool
}

// add keeps one identity of a row. NULLs come from the missing side of an outer join, when both are
// NULL, or from a row that was written behind isotap's back.
func (s *sightings) add(source int, rowID, wList []byte) {
	if rowID == nil && wList == nil {
		return
	}
	if s.tooMany() {
		return
	}
	s.arena = append(s.arena, rowID...)
	mid := len(s.arena)
	s.arena = append(s.arena, wList...)
	s.list = append(s.list, sighting{source: source, rowID: mid, wList: len(s.arena),
		noIdentity: len(rowID) == 0 || len(wList) == 0})
}

// tooMany reports whether no more identities may be kept, and notes why.
func (s *sightings) tooMany() bool {
	switch {
	case len(s.list) == maxSeen:
		s.more = history.ReasonTooManyRows
	case !s.of.Admits(txnstate.AccessBytes*(len(s.list)+len(s.known)) + 2*len(s.arena)): // the tags in its texts take about as much as these
		s.more = history.ReasonTxnMemory
	}
	return !s.more.IsZero()
}

// maxSeen bounds the identities that are kept of one statement. Each takes some 250 bytes until it is
// recorded, and an export may read all there is.
const maxSeen = 1 << 20

// maxSightings bounds the memory in bytes that a session keeps for the next statement.
const maxSightings = 1 << 20

// forget makes the memory ready for the next statement.
func (s *sightings) forget() {
	s.arena, s.list, s.more = s.arena[:0], s.list[:0], history.Reason{}
	s.arrayed.forget()
	if cap(s.arena) > maxSightings {
		*s = sightings{of: s.of}
	}
}

// takeSightings turns what the statement saw into accesses: reads, or the rows that a DELETE returned.
// All strings of a statement share one allocation, all its tags another.
func (s *sightings) take(o *observed) {
	if len(s.list) == 0 {
		return
	}
	if !s.more.IsZero() {
		o.lower(history.Inexact, s.more)
	}
	text := string(s.arena)
	tags := make([]history.Tag, 0, len(s.list)+strings.Count(text, ","))
	accesses := slices.Grow(o.stmt.Accesses, len(s.list))
	op, start := history.Read, 0
	if o.plan.Kind == history.Delete {
		op = history.DeleteRow
	}
	for _, seen := range s.list {
		rowID, wList := text[start:seen.rowID], text[seen.rowID:seen.wList]
		start = seen.wList
		table := o.plan.Target
		if op == history.Read {
			table = o.plan.Result.Sources[seen.source].Table
		}
		if seen.noIdentity {
			o.lower(history.Inexact, history.ReasonNoIdentity)
			continue
		}
		from := len(tags)
		var err error
		if tags, err = history.AppendWList(tags, wList); err != nil {
			o.lower(history.Inexact, history.ReasonUnreadableIdentity)
			tags = tags[:from]
			continue
		}
		last := len(tags) - 1
		accesses = append(accesses, history.Access{Row: history.Row{Table: table, ID: rowID}, Op: op,
			Inexact: o.doubtful,
			Version: tags[last], Prior: tags[from:last:last]})
	}
	o.stmt.Accesses = accesses
}
