package interop

import (
	"iter"
	"strconv"
)

// A tree is one value of a file: its nodes in the order in which they stand there, each before what it
// holds. It is filled anew for every value, so that reading allocates next to nothing.
type tree struct {
	nodes []node
	text  []byte // of the nodes, one after the other
}

type node struct {
	kind     kind
	place    position
	num      int64
	from, to int32 // of its text
	end      int32 // the node behind all that it holds
}

// kind is the kind of a value. JSON's objects and arrays are maps and vectors.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	text    // a string
	keyword // its text has no colon
	other   // any other scalar: a symbol, a character, a number that is no 64-bit integer
	vector  // or a list
	mapping // keys and values alternate
	set
)

var kindNames = [...]string{"nil", "a boolean", "an integer", "a string", "a keyword", "a symbol or number", "a vector",
	"a map", "a set"}

func (k kind) String() string { return kindNames[k] }

func (t *tree) reset() { t.nodes, t.text = t.nodes[:0], t.text[:0] }

// add appends a node without text, and returns its index.
func (t *tree) add(k kind, p position) int32 {
	t.nodes = append(t.nodes, node{kind: k, place: p, from: int32(len(t.text)), to: int32(len(t.text)),
		end: int32(len(t.nodes) + 1)})
	return int32(len(t.nodes) - 1)
}

// close ends a node: what was added since is in it.
func (t *tree) close(i int32) { t.nodes[i].end = int32(len(t.nodes)) }

// endText ends the text of a node.
func (t *tree) endText(i int32) { t.nodes[i].to = int32(len(t.text)) }

// root is the whole value.
func (t *tree) root() ref { return ref{t, 0} }

// A ref is a value in a tree. It is good until the tree is filled anew.
type ref struct {
	t *tree
	i int32
}

func (r ref) kind() kind         { return r.t.nodes[r.i].kind }
func (r ref) position() position { return r.t.nodes[r.i].place }
func (r ref) num() int64         { return r.t.nodes[r.i].num }
func (r ref) text() []byte       { n := &r.t.nodes[r.i]; return r.t.text[n.from:n.to] }

// items returns what a vector, map or set holds.
func (r ref) items() iter.Seq[ref] {
	return func(yield func(ref) bool) {
		for i, end := r.i+1, r.t.nodes[r.i].end; i < end; i = r.t.nodes[i].end {
			if !yield(ref{r.t, i}) {
				return
			}
		}
	}
}

// fields returns a map's keys and values.
func (r ref) fields() iter.Seq2[ref, ref] {
	return func(yield func(key, value ref) bool) {
		for i, end := r.i+1, r.t.nodes[r.i].end; i < end; {
			key, value := ref{r.t, i}, ref{r.t, r.t.nodes[i].end}
			if !yield(key, value) {
				return
			}
			i = r.t.nodes[value.i].end
		}
	}
}

// named reports whether the value is a keyword or string with that text.
func (r ref) named(name string) bool {
	return (r.kind() == keyword || r.kind() == text) && string(r.text()) == name
}

// appendText writes the value in EDN, on one line.
func (r ref) appendText(b []byte) []byte {
	switch r.kind() {
	case null:
		return append(b, "nil"...)
	case integer:
		return strconv.AppendInt(b, r.num(), 10)
	case text:
		return strconv.AppendQuote(b, string(r.text()))
	case keyword:
		return append(append(b, ':'), r.text()...)
	case boolean, other:
		return append(b, r.text()...)
	}
	brackets := map[kind][2]string{vector: {"[", "]"}, mapping: {"{", "}"}, set: {"#{", "}"}}[r.kind()]
	b = append(b, brackets[0]...)
	first := true
	for item := range r.items() {
		if !first {
			b = append(b, ' ')
		}
		first = false
		b = item.appendText(b)
	}
	return append(b, brackets[1]...)
}

// String returns the value in EDN, cut where it is long.
func (r ref) String() string {
	const most = 60
	b := r.appendText(nil)
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
