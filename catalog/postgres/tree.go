package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// A term is a part of a query as pg_rewrite.ev_action stores it, in the form that nodes/outfuncs.c of the server's
// source prints: a node with fields, a list, or a word.
type term struct {
	word   string
	kind   string           // of a node: QUERY, VAR, ...
	fields map[string]*term // of a node, each with its first value
	items  []*term          // of a list; all values of a node
}

// maxNesting bounds how deep the terms of a query that is looked at stand in each other.
const maxNesting = 1000

// readTerm reads a stored query. It returns nil where it is not of the form.
func readTerm(text string) *term {
	r := &termReader{rest: text}
	t := r.term(r.next(), 0)
	if r.failed || r.next() != "" {
		return nil
	}
	return t
}

type termReader struct {
	rest   string
	failed bool
}

// next returns the next word, or the mark that opens or closes a node or a list; empty at the end. A word may have
// such marks and spaces in it behind backslashes.
func (r *termReader) next() string {
	r.rest = strings.TrimLeft(r.rest, " \n\t")
	n := 0
	for n < len(r.rest) && !strings.ContainsRune(" \n\t(){}", rune(r.rest[n])) {
		if r.rest[n] == '\\' {
			n++
		}
		n++
	}
	if n == 0 && r.rest != "" {
		n = 1
	}
	n = min(n, len(r.rest))
	word := r.rest[:n]
	r.rest = r.rest[n:]
	return word
}

// term reads the term that begins with a word or mark, within so many others.
func (r *termReader) term(first string, depth int) *term {
	if depth > maxNesting {
		r.failed = true
	}
	t := &term{}
	switch {
	case r.failed:
	case first == "(":
		for word := r.inside(")"); word != ""; word = r.inside(")") {
			t.items = append(t.items, r.term(word, depth+1))
		}
	case first == "{":
		r.node(t, depth)
	case first == "", first == ")", first == "}":
		r.failed = true
	default:
		t.word = first
	}
	return t
}

// inside returns what comes next; empty where it is the mark that closes.
func (r *termReader) inside(closing string) string {
	word := r.next()
	switch {
	case r.failed:
		return ""
	case word == closing:
		return ""
	}
	r.failed = word == ""
	return word
}

// node reads the fields of a node. What follows a field's name is its value, whatever it looks like; more words may
// follow, as the bytes of a constant do.
func (r *termReader) node(t *term, depth int) {
	t.kind, t.fields = r.next(), make(map[string]*term)
	for word := r.inside("}"); word != ""; word = r.inside("}") {
		name, field := strings.CutPrefix(word, ":")
		if field {
			word = r.next()
		}
		value := r.term(word, depth+1)
		t.items = append(t.items, value)
		if field {
			t.fields[name] = value
		}
	}
}

// of returns a field; a term without anything in it where there is none, and for what is stored as missing.
func (t *term) of(field string) *term {
	if v := t.fields[field]; v != nil && v.word != "<>" {
		return v
	}
	return &term{}
}

// empty reports whether nothing is stored.
func (t *term) empty() bool { return t.kind == "" && t.word == "" && len(t.items) == 0 }

// number returns the number that a field holds; 0 where it holds none.
func (t *term) number(field string) int {
	n, err := strconv.Atoi(t.of(field).word)
	if err != nil {
		return 0
	}
	return n
}

// is reports whether a field holds true.
func (t *term) is(field string) bool { return t.of(field).word == "true" }

// relations returns the oids of the relations that stand in the range tables of a stored query, wherever in it. A nil
// term has none.
func (t *term) relations() (oids []uint32) {
	if t == nil {
		return nil
	}
	t.each(func(t *term) {
		if oid := t.number("relid"); oid != 0 {
			oids = append(oids, uint32(oid))
		}
	})
	slices.Sort(oids)
	return slices.Compact(oids)
}

// each calls look with the term and all within it.
func (t *term) each(look func(*term)) {
	look(t)
	for _, item := range t.items {
		item.each(look)
	}
}
