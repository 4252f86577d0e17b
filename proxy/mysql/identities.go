package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// rowIdentities are the identities that came out of the rows of the statement in flight. A session has one
// statement in flight, and uses the memory again for the next.
//
// Each of list begins in the arena where the one before it ends. A reply that has more than are kept sets dropped: the
// statement is then inexact.
type rowIdentities struct {
	arena   []byte // row ids and wLists, one behind the other
	list    []rowIdentity
	dropped history.Reason // why some were not kept; empty: all were
	of      *txnstate.Unrecorded
	key     []byte
	last    [][]byte // literals for what the last row is ordered by
	arrayIdentities
}

// ordered returns what the last row is ordered by.
func (s *rowIdentities) ordered() (last []string) {
	for _, v := range s.last {
		last = append(last, string(v))
	}
	return last
}

// takeRow takes the identities of the sources out of a row, whose last hidden values they are, and returns the rest as
// a row. A binary one is written to room.
func (s *rowIdentities) takeRow(row []byte, of *reply, hidden int, sources []sqlmysql.Source,
	room []byte) ([]byte, error) {
	visible := of.fields - hidden
	r := reader{b: row}
	var trimmed []byte
	var tail binaryTail
	if of.binary {
		var err error
		if trimmed, tail, err = trimBinary(room[:0], &r, of.types, visible); err != nil {
			return nil, err
		}
	} else {
		for range visible {
			r.lenencBytes()
		}
		trimmed = row[:r.pos]
	}
	column := visible
	for i := range sources {
		source := &sources[i]
		switch {
		case source.Order > 0:
			s.last = slices.Grow(s.last[:0], source.Order)[:source.Order]
			for j := range s.last {
				s.last[j] = append(s.last[j][:0], tail.value(&r, column+j)...)
			}
		case source.Array:
			s.addArray(i, source, tail.value(&r, column))
		default:
			rowID, wList := tail.value(&r, column), tail.value(&r, column+1)
			if rowID != nil || wList != nil || source.Always {
				s.add(i, rowID, wList)
			}
		}
		column += source.Columns()
	}
	if r.err != nil {
		return nil, fmt.Errorf("parse row: %w", r.err)
	}
	return trimmed, nil
}

// A rowIdentity is an identity as it came out of a row: where it lies in the arena.
type rowIdentity struct {
	source     int
	rowID      int // where the row id ends; it begins where the identity before it ended
	wList      int // where the wList ends; it begins where the row id ends
	noIdentity bool
}

// add keeps one identity of a row. NULLs come from a row that was written behind isotap's back.
func (s *rowIdentities) add(source int, rowID, wList []byte) {
	if s.tooMany() {
		return
	}
	s.arena = append(s.arena, rowID...)
	mid := len(s.arena)
	s.arena = append(s.arena, wList...)
	s.list = append(s.list, rowIdentity{source: source, rowID: mid, wList: len(s.arena),
		noIdentity: len(rowID) == 0 || len(wList) == 0})
}

// tooMany reports whether no more identities may be kept, and notes why.
func (s *rowIdentities) tooMany() bool {
	switch {
	case len(s.list) == maxIdentities:
		s.dropped = history.ReasonTooManyRows
	// The tags in the arena's texts take about as much as these.
	case !s.of.Admits(txnstate.AccessBytes*(len(s.list)+len(s.known)) + 2*len(s.arena)):
		s.dropped = history.ReasonTxnMemory
	}
	return !s.dropped.IsZero()
}

// maxIdentities bounds the identities that are kept of one statement. Each takes some 250 bytes until it is
// recorded, and an export may read all there is.
const maxIdentities = 1 << 20

// maxIdentityBytes bounds the memory in bytes that a session keeps for the next statement.
const maxIdentityBytes = 1 << 20

// forget makes the memory ready for the next statement.
func (s *rowIdentities) forget() {
	s.arena, s.list, s.dropped, s.last = s.arena[:0], s.list[:0], history.Reason{}, s.last[:0]
	s.arrayIdentities.forget()
	if cap(s.arena) > maxIdentityBytes {
		*s = rowIdentities{of: s.of}
	}
}

// take turns what the statement saw into accesses: reads, or the rows that a DELETE returned.
// All strings of a statement share one allocation, all its tags another.
func (s *rowIdentities) take(o *pendingStatement) {
	if len(s.list) == 0 {
		return
	}
	if !s.dropped.IsZero() {
		o.downgrade(history.Inexact, s.dropped)
	}
	text := string(s.arena)
	tags := make([]history.Tag, 0, len(s.list)+strings.Count(text, ","))
	accesses := slices.Grow(o.stmt.Accesses, len(s.list))
	start := 0
	for _, seen := range s.list {
		op := history.Read
		if o.plan.Kind == history.Delete && !o.plan.Result.Sources[seen.source].Beside {
			op = history.DeleteRow
		}
		rowID, wList := text[start:seen.rowID], text[seen.rowID:seen.wList]
		start = seen.wList
		table := o.plan.Target
		if op == history.Read {
			source := &o.plan.Result.Sources[seen.source]
			if table = source.Table; source.Beside && o.withheld {
				continue
			}
		}
		if seen.noIdentity {
			o.downgrade(history.Inexact, history.ReasonNoIdentity)
			continue
		}
		from := len(tags)
		var err error
		if tags, err = history.AppendWList(tags, wList); err != nil {
			o.downgrade(history.Inexact, history.ReasonUnreadableIdentity)
			tags = tags[:from]
			continue
		}
		last := len(tags) - 1
		accesses = append(accesses, history.Access{Row: history.Row{Table: table, ID: rowID}, Op: op,
			Inexact: o.doubtful, Subquery: op == history.Read && o.plan.Kind == history.Delete,
			Version: tags[last], Prior: tags[from:last:last]})
	}
	o.stmt.Accesses = accesses
}

// tellNumbers gives an INSERT the numbers that it returned of its rows.
func (s *rowIdentities) tellNumbers(o *pendingStatement) {
	text, start := string(s.arena), 0
	o.numbersTold = make(map[string]string, len(s.list))
	for _, told := range s.list {
		o.numbersTold[text[start:told.rowID]] = text[told.rowID:told.wList]
		start = told.wList
	}
}

// arrayIdentities is what the arrays of the statement in flight have shown, beside their identities.
type arrayIdentities struct {
	known      map[string]struct{} // identities that are in the list already, behind their source's number
	elements   int                 // of all arrays
	full       bool                // an array may lack identities
	missing    bool                // a row had no array
	unreadable bool
	cut        bool   // an array of what a subquery read may lack identities
	beside     uint64 // has a bit for each of the first sources of which a row told what a subquery read
}

// addArray keeps the identities that an array carries: every row and version once, since groups overlap
// under ROLLUP and a join repeats them.
func (s *rowIdentities) addArray(source int, of *sqlmysql.Source, array []byte) {
	if of.Beside {
		if array != nil || !of.Apart {
			s.beside |= 1 << source
		}
		if s.cut = s.cut || string(array) == sqlmysql.Lacking; array == nil || string(array) == sqlmysql.Lacking {
			return
		}
	}
	if array == nil {
		s.missing = true
		return
	}
	if s.known == nil {
		s.known = make(map[string]struct{})
	}
	add := func(text []byte) {
		s.key = append(append(s.key[:0], byte(source), byte(source>>8)), text...)
		if _, there := s.known[string(s.key)]; there {
			return
		}
		if !s.tooMany() {
			s.known[string(s.key)] = struct{}{}
		}
		rowID, wList, _ := bytes.Cut(text, []byte{'='})
		if len(rowID) == 0 {
			rowID = []byte{} // NULL is the missing side of an outer join, and not in the array
		}
		s.add(source, rowID, wList)
	}
	if of.Grouped {
		s.addGroup(of, array, add)
		return
	}
	n, ok := eachText(array, add)
	s.elements += n
	if full := of.Limit > 0 && n >= of.Limit; of.Beside {
		s.cut = s.cut || full || !ok
	} else {
		s.full = s.full || full
	}
	s.unreadable = s.unreadable || !ok && !of.Beside
}

// addGroup calls add with the identities that an array has of what a subquery read beside each row of a group.
func (s *rowIdentities) addGroup(of *sqlmysql.Source, array []byte, add func(text []byte)) {
	rows, ok := eachText(array, func(text []byte) {
		n, whole := sqlmysql.EachOfGroup(text, add)
		s.cut = s.cut || !whole || n >= of.Limit
	})
	s.cut = s.cut || !ok || of.Rows > 0 && rows >= of.Rows
}

// eachText calls f with the texts of a JSON array, leaving NULLs out, and returns the number of its
// elements. It reports whether the array is whole, and of such elements only: no identity needs an escape.
func eachText(array []byte, f func(text []byte)) (n int, ok bool) {
	b, ok := bytes.CutPrefix(array, []byte{'['})
	if !ok {
		return 0, false
	}
	for {
		b = bytes.TrimLeft(b, " ")
		switch {
		case bytes.HasPrefix(b, []byte("null")):
			b = b[len("null"):]
		case len(b) > 0 && b[0] == '"':
			end := bytes.IndexByte(b[1:], '"')
			if end < 0 || bytes.IndexByte(b[1:1+end], '\\') >= 0 {
				return n, false
			}
			f(b[1 : 1+end])
			b = b[end+2:]
		default:
			return n, n == 0 && string(b) == "]"
		}
		n++
		b = bytes.TrimLeft(b, " ")
		switch {
		case string(b) == "]":
			return n, true
		case len(b) == 0 || b[0] != ',':
			return n, false
		}
		b = b[1:]
	}
}

// judgeArrays lowers a statement some of whose arrays did not tell everything, and reports whether those of its kind
// read too much for an array. warned says that the server warned of something: it does so when it gives up on an array,
// whose value then is NULL.
func (s *rowIdentities) judgeArrays(o *pendingStatement, warned bool) (tooLarge bool) {
	if !hasArrays(o.plan) {
		return false
	}
	switch a := &s.arrayIdentities; {
	case a.cut, a.lackSubquery(o.plan.Result.Sources):
		o.downgrade(history.Inexact, history.ReasonSubquery)
		return false
	case a.unreadable:
		o.downgrade(history.Inexact, history.ReasonUnreadableIdentity)
	case a.full, a.missing && warned:
		o.downgrade(history.Inexact, history.ReasonLargeAggregate)
	case a.elements <= sqlmysql.MaxArray:
		return false
	}
	return true
}

// lackSubquery reports whether there was no row to show beside it what a subquery read.
func (a *arrayIdentities) lackSubquery(sources []sqlmysql.Source) bool {
	for i := range sources {
		if sources[i].Whole && a.beside&(1<<i) == 0 {
			return true
		}
	}
	return false
}

func hasArrays(p *sqlmysql.Plan) bool {
	for i := range p.Result.Sources {
		if p.Result.Sources[i].Array {
			return true
		}
	}
	return false
}

// forget makes the memory ready for the next statement.
func (a *arrayIdentities) forget() {
	if len(a.known) > maxKnown {
		a.known = nil
	}
	clear(a.known)
	*a = arrayIdentities{known: a.known}
}

// maxKnown is how many identities of arrays a session keeps room for.
const maxKnown = 1000
