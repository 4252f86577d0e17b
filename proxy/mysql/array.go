package mysql

import (
	"bytes"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// An arrayed is what the arrays of the statement in flight have shown, beside their identities.
type arrayed struct {
	known      map[string]struct{} // identities that are in the list already, behind their source's number
	elements   int                 // of all arrays
	full       bool                // an array may lack identities
	missing    bool                // a row had no array
	unreadable bool
}

// addArray keeps the identities that an array carries: every row and version once, since groups overlap
// under ROLLUP and a join repeats them.
func (s *sightings) addArray(source, limit int, array []byte) {
	if array == nil {
		s.missing = true
		return
	}
	if s.known == nil {
		s.known = make(map[string]struct{})
	}
	n, ok := eachText(array, func(text []byte) {
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
	})
	s.elements += n
	s.full = s.full || limit > 0 && n >= limit
	s.unreadable = s.unreadable || !ok
}

// eachText calls f with the texts of a JSON array, leaving NULLs out, and gives the number of its
// elements. It says whether the array is whole, and of such elements only: no identity needs an escape.
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
func (s *sightings) judgeArrays(o *observed, warned bool) (tooLarge bool) {
	if !hasArrays(o.plan) {
		return false
	}
	switch a := &s.arrayed; {
	case a.unreadable:
		o.lower(history.Inexact, history.ReasonUnreadableIdentity)
	case a.full, a.missing && warned:
		o.lower(history.Inexact, history.ReasonLargeAggregate)
	case a.elements <= sqlmysql.MaxArray:
		return false
	}
	return true
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
func (a *arrayed) forget() {
	if len(a.known) > maxKnown {
		a.known = nil
	}
	clear(a.known)
	*a = arrayed{known: a.known}
}

// maxKnown is how many identities of arrays a session keeps room for.
const maxKnown = 1000
