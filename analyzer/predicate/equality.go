package predicate

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// Most statements choose their rows by a number: WHERE id = 5. Such a predicate is not held against every row by the
// server. Rows are known by the numbers that they hold, and only those with that one are looked at, beside those whose
// number is not known: they match, or are the server's to test where the predicate asks for more.

// numbers are what one column of a table holds in the images.
type numbers struct {
	of []number // by place, without the dropped ones
	// places are those of the images that hold a number, or replaced one that does, and unknown of those of which it is
	// not known. They ascend.
	places  map[int64][]int
	unknown []int
}

// A number is what a column holds in an image.
type number struct {
	value       int64
	null, known bool
	moved       bool  // the image before it of its row held another one
	before      int64 // that one
}

// column returns what a column holds in the images; read says what it does in one.
func (t *tests) column(name string, read func(image, column string) (n int64, null, known bool)) *numbers {
	if x := t.columns[name]; x != nil {
		return x
	}
	x := &numbers{places: make(map[int64][]int)}
	if t.columns == nil {
		t.columns, t.number = make(map[string]*numbers), read
	}
	t.columns[name] = x
	for i := range t.images {
		x.add(t, i, name)
	}
	return x
}

// add takes in the image at a place, the dropped ones not counted. Those before it have been taken in.
func (x *numbers) add(t *tests, at int, column string) {
	i, n := &t.images[at], number{}
	n.value, n.null, n.known = t.number(i.text, column)
	place := t.dropped + at
	if i.over >= t.dropped {
		before := &x.of[i.over-t.dropped]
		n.before, n.moved = before.value, before.known && !before.null && (!n.known || n.null || before.value != n.value)
	}
	switch {
	case !n.known:
		x.unknown = append(x.unknown, place)
	case !n.null:
		x.places[n.value] = append(x.places[n.value], place)
	}
	if n.moved {
		x.places[n.before] = append(x.places[n.before], place)
	}
	x.of = append(x.of, n)
}

// drop lets go of the first images, up to a place.
func (x *numbers) drop(n, upTo int) {
	for _, gone := range x.of[:n] {
		if gone.known && !gone.null {
			x.dropOf(gone.value, upTo)
		}
		if gone.moved {
			x.dropOf(gone.before, upTo)
		}
	}
	x.of, x.unknown = slices.Delete(x.of, 0, n), since(x.unknown, upTo)
}

func (x *numbers) dropOf(value int64, upTo int) {
	if left := since(x.places[value], upTo); len(left) > 0 {
		x.places[value] = left
	} else {
		delete(x.places, value)
	}
}

// since returns those of ascending places that are not before another.
func since(places []int, from int) []int {
	if n := len(places); n == 0 || places[n-1] < from {
		return nil
	}
	n, _ := slices.BinarySearch(places, from)
	return places[n:]
}

// candidates returns the places from one on of the images that may hold a value, or replaced one that may, in order.
func (x *numbers) candidates(value int64, from int) []int {
	holding, unknown := since(x.places[value], from), since(x.unknown, from)
	if len(unknown) == 0 {
		return holding
	}
	all := slices.Concat(holding, unknown)
	slices.Sort(all)
	return slices.Compact(all)
}

// An equality is what a predicate asks of a number, and what the images hold there.
type equality struct {
	sqltoken.Equality
	in *numbers
}

// decide takes from what is to be tested the images that are known not to match, and sets those apart that do.
func (e *equality) decide(u *untested, dropped int) {
	u.before = slices.DeleteFunc(u.before, func(place int) bool {
		n := &e.in.of[place-dropped]
		same := n.known && !n.null && n.value == e.Value
		if same && e.Alone {
			u.matching = append(u.matching, place)
		}
		return n.known && (e.Alone || !same)
	})
}

// readPredicates asks the tester what the predicates ask for that have come in. It may wait: Add need not.
func (m *Matcher) readPredicates() {
	type asked struct {
		table
		history.Predicate
		sqltoken.Equality
		ok bool
	}
	var all []asked
	m.mu.Lock()
	for k, t := range m.tables {
		for _, p := range t.unread {
			all = append(all, asked{table: k, Predicate: p})
		}
		t.unread = nil
	}
	m.mu.Unlock()
	for i := range all {
		all[i].Equality, all[i].ok = m.tester.Equality(all[i].database, all[i].Predicate)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range all {
		t := m.tables[a.table]
		if x := t.predicates[a.Predicate]; a.ok && x != nil { // the table may have been given up
			x.equality = &equality{a.Equality, t.column(a.Column, m.tester.Number)}
		}
	}
}
