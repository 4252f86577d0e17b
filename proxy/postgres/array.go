package postgres

import (
	"bytes"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// array takes the identities in an array: texts of the items, separated by semicolons. It is of source i, the first
// of those given.
func (s *rowIdentities) array(v []byte, i int, sources []sqlpostgres.Source, format byte) {
	if v == nil {
		return // the aggregate met no row
	}
	s.arrays |= 1 << i
	elements, ok := readArray(v, format)
	if !ok {
		s.unread = true
		return
	}
	if limit := sources[0].Limit; limit > 0 && len(elements) >= limit {
		s.lacks(&sources[0])
	}
	joint := sources[0].Joint > 1
	if joint && len(elements) > sources[0].Joint {
		s.unread = true
		return
	}
	s.collected += len(elements)
	for n, element := range elements {
		if !joint {
			n = 0
		} else if element != nil {
			s.arrays |= 1 << (i + n)
		}
		switch {
		case element == nil:
		case string(element) == sqlpostgres.Lacking: // ADR 26
			s.lacks(&sources[n])
		case s.first(i+n, element):
			s.identities(element, i+n, &sources[n])
		}
	}
}

// identities takes those out of an element.
func (s *rowIdentities) identities(text []byte, i int, source *sqlpostgres.Source) {
	parts := 0
	for from := 0; from < len(text); {
		if parts++; source.Beside && !source.Marked && parts >= sqlpostgres.MaxBeside {
			s.lacks(source)
		}
		at := unescaped(text[from:], sqlpostgres.ElementSeparator)
		if at < 0 {
			at = len(text) - from
		}
		one := text[from : from+at]
		from += at + len(sqlpostgres.ElementSeparator)
		switch {
		case len(one) == 0: // a subquery within another found nothing for one of its rows
		case string(one) == sqlpostgres.Lacking:
			s.lacks(source)
		case len(one) == len(text) || s.first(i, one):
			s.element(one, i, source)
		}
	}
}

// lacks takes note that identities of a source may be missing.
func (s *rowIdentities) lacks(source *sqlpostgres.Source) {
	s.partial = s.partial || !source.Beside
	s.cut = s.cut || source.Beside
}

// first reports whether an element was not there before: groups overlap, and joins repeat rows.
func (s *rowIdentities) first(source int, element []byte) bool {
	key := collected{source, string(element)}
	if s.elements[key] || s.tooMany() {
		return false
	}
	if s.elements == nil {
		s.elements = make(map[collected]bool)
	}
	s.elements[key] = true
	return true
}

// element takes one identity out of an array.
func (s *rowIdentities) element(text []byte, i int, source *sqlpostgres.Source) {
	seen := rowIdentity{source: i, op: operation(source.Kind, source)}
	start, keys := len(s.arena), 0
	for n, item := range source.Physical.Items {
		part := text
		switch at := unescaped(text, ";"); {
		case at >= 0:
			part, text = text[:at], text[at+1:]
		case n < len(source.Physical.Items)-1:
			s.unread = true
			s.arena = s.arena[:start]
			return
		}
		if item >= sqlpostgres.ItemKeyInt && item <= sqlpostgres.ItemKeyHex {
			if keys++; keys > 1 {
				s.arena = append(s.arena, ',')
			}
			s.arena = append(s.arena, part...)
		} else if len(part) > 0 && !seen.take(item, part, 0) {
			s.unread = true
		}
	}
	s.add(seen, start)
}

// unescaped finds the first mark that no backslash stands before; -1 where there is none.
func unescaped(text []byte, mark string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case bytes.HasPrefix(text[i:], []byte(mark)):
			return i
		}
	}
	return -1
}

// readArray reads an array of one dimension, in text or binary. NULLs are nil.
func readArray(v []byte, format byte) ([][]byte, bool) {
	if format == formatBinary {
		return readBinaryArray(v)
	}
	if len(v) < 2 || v[0] != '{' || v[len(v)-1] != '}' {
		return nil, false
	}
	var elements [][]byte
	for v = v[1 : len(v)-1]; len(v) > 0; {
		element, rest, ok := textElement(v)
		if !ok {
			return nil, false
		}
		elements = append(elements, element)
		v = rest
	}
	return elements, true
}

// textElement reads an element of an array's text, and returns what follows its comma.
func textElement(v []byte) (element, rest []byte, ok bool) {
	if v[0] != '"' {
		element, rest, _ = bytes.Cut(v, []byte{','})
		if string(element) == "NULL" {
			return nil, rest, true
		}
		return element, rest, true
	}
	element = []byte{}
	for i := 1; i < len(v); i++ {
		switch {
		case v[i] == '\\' && i+1 < len(v):
			i++
			element = append(element, v[i])
		case v[i] != '"':
			element = append(element, v[i])
		case i+1 == len(v):
			return element, nil, true
		default:
			return element, v[i+2:], v[i+1] == ','
		}
	}
	return nil, nil, false
}

// readBinaryArray reads the binary form: the number of dimensions, whether there are NULLs, the elements'
// type, the dimension's length and lower bound, then the elements.
func readBinaryArray(v []byte) ([][]byte, bool) {
	r := reader{b: v}
	dimensions := r.uint32()
	r.bytes(8)
	if r.err == nil && dimensions == 0 {
		return nil, true
	}
	n := r.uint32()
	r.bytes(4)
	if r.err != nil || dimensions != 1 || int64(n) > int64(len(v)) {
		return nil, false
	}
	elements := make([][]byte, 0, n)
	for range n {
		elements = append(elements, r.value())
	}
	return elements, r.err == nil
}
