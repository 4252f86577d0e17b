package rewrite

import (
	"encoding/binary"
	"iter"
	"slices"
)

// A List is a list of texts in one comparable value, so that it can be part of a key. Each text stands behind its
// length: whatever bytes it holds, none looks like two, and no two like one. The zero List is empty.
type List string

// ListOf returns the list of some texts.
func ListOf(texts ...string) List { return List("").Append(texts...) }

// Append returns the list with texts behind it.
func (l List) Append(texts ...string) List {
	b := []byte(l)
	for _, s := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return List(b)
}

// All returns the texts of the list, in order.
func (l List) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := string(l); rest != ""; {
			n, head := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
			end := head + int(n)
			if !yield(rest[head:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// Texts returns the texts of the list as a slice.
func (l List) Texts() []string { return slices.Collect(l.All()) }

// Has reports whether the list holds a text.
func (l List) Has(text string) bool {
	for s := range l.All() {
		if s == text {
			return true
		}
	}
	return false
}

// Add returns the list with a text behind it, if the list does not hold it already.
func (l List) Add(text string) List {
	if l.Has(text) {
		return l
	}
	return l.Append(text)
}

// Without returns the list without a text.
func (l List) Without(text string) List {
	if !l.Has(text) {
		return l
	}
	return ListOf(slices.DeleteFunc(l.Texts(), func(s string) bool { return s == text })...)
}
