package random

import (
	"slices"
	"strconv"
)

// A focus is what the sessions' transactions of about one time have in common, so that some read what others write: two
// rows, each with a column of its table.
type focus []place

// A place is a row to begin with, by its key, and a column of it.
type place struct {
	table *table
	key   int
	// column is what is read and set there; nil where the table has nothing but its key.
	column *column
}

// focusStream is where the sources of focuses begin: behind those of all transactions.
const focusStream = 1 << 32

// perFocus is how many transactions of each session have one focus: sessions do not keep step.
const perFocus = 2

// focusOf returns the focus of transaction n; none where the profile wants none.
func (g *Generator) focusOf(n int) focus {
	if g.profile.Guided <= 0 {
		return nil
	}
	s := g.source(focusStream + uint64((n-1)/(g.sessions*perFocus)))
	f := make(focus, 2)
	for i := range f {
		t := oneOf(s, g.tables...)
		f[i] = place{table: t, key: 2 + s.n(max(g.profile.Rows-1, 1))} // the first row is there for foreign keys
		if columns := t.writable(false); len(columns) > 0 {
			f[i].column = oneOf(s, columns...)
		}
	}
	return f
}

// aimed reports whether the next choice is to fall on the focus.
func (s *source) aimed() bool { return len(s.focus) > 0 && s.chance(s.g.profile.Guided) }

// oneTable draws one of the tables.
func (s *source) oneTable(from []*table) *table {
	if s.aimed() {
		var near []*table
		for _, p := range s.focus {
			if slices.Contains(from, p.table) {
				near = append(near, p.table)
			}
		}
		if len(near) > 0 {
			return oneOf(s, near...)
		}
	}
	return oneOf(s, from...)
}

// keyIn draws the key of a row of the table; where nothing leads it, by otherwise.
func (s *source) keyIn(t *table, otherwise func() int) string {
	if s.aimed() {
		var near []int
		for _, p := range s.focus {
			if p.table == t {
				near = append(near, p.key)
			}
		}
		if len(near) > 0 {
			return strconv.Itoa(oneOf(s, near...))
		}
	}
	return strconv.Itoa(otherwise())
}

// columnsIn draws n of the table's columns, in their order.
func (s *source) columnsIn(n int, columns []*column) []*column {
	chosen := some(s, n, columns)
	if !s.aimed() {
		return chosen
	}
	for _, p := range s.focus {
		if slices.Contains(columns, p.column) && !slices.Contains(chosen, p.column) {
			chosen[s.n(len(chosen))] = p.column
			break
		}
	}
	return chosen
}

// aimedReference returns a column of the focus, of that type, that the scope has; empty: there is none.
func (s *source) aimedReference(sc scope, of valueType) string {
	for _, i := range sc {
		for _, p := range s.focus {
			if p.column != nil && p.column.of == of && slices.Contains(i.columns, p.column) {
				return i.name(p.column)
			}
		}
	}
	return ""
}
