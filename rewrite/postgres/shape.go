package postgres

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How much of a statement its shape and arguments keep.
const (
	maxShape = 8 << 10 // bytes
	maxArgs  = 32
	maxArg   = 64 // bytes
)

// params is the number of the highest parameter.
func (st *statement) params() int {
	highest := 0
	for i, t := range st.toks {
		if t.kind == param {
			if n, err := strconv.Atoi(st.tok(i)[1:]); err == nil {
				highest = max(highest, n)
			}
		}
	}
	return highest
}

// shape gives the statement without its literals, and the literals. White space and comments become single
// blanks, lists of literals one literal, equal rows of VALUES one row, so that statements that differ in
// their data only have one shape. A parameter is a ? as well. Of statements that may carry a password only
// the verb and its object are left.
func (st *statement) shape() (string, []string) {
	if st.suspect() {
		return strings.ToUpper(st.tok(0) + " " + st.tok(1)), nil
	}
	s := shaper{st: st, parts: make([]string, 0, len(st.toks))}
	for i := 0; i < len(st.toks); {
		i = s.add(i)
	}
	s.fold()
	return s.join(), s.args
}

// args gives the literals that shape leaves out.
func (st *statement) args() []string {
	if st.suspect() {
		return nil
	}
	s := shaper{st: st, onlyArgs: true}
	for i := 0; i < len(st.toks); {
		i = s.add(i)
	}
	return s.args
}

// suspect says whether a password may stand in the statement.
func (st *statement) suspect() bool {
	if st.is(0, "CREATE", "ALTER") && st.is(1, "ROLE", "USER", "GROUP", "SERVER", "SUBSCRIPTION") {
		return true
	}
	if st.is(0, "DO") {
		return true
	}
	for i := range st.toks {
		if n, ok := st.ident(i); ok && st.mark(i+1, "(") && strings.HasPrefix(n, "dblink") {
			return true // its argument is a connection string
		}
	}
	return false
}

type shaper struct {
	st       *statement
	parts    []string
	adjacent []bool // whether the part followed the one before without a blank
	args     []string
	onlyArgs bool
}

// add takes over the token at i, and those that belong to the same literal, and gives the next one.
func (s *shaper) add(i int) int {
	first, st := i, s.st
	if (st.sign(i, "-") || st.sign(i, "+")) && s.signHere(i) && i+1 < len(st.toks) && st.toks[i+1].kind == number {
		i++
	}
	if !s.literal(i) {
		s.part(first, st.tok(first))
		return first + 1
	}
	for st.toks[i].kind == str && i+1 < len(st.toks) && st.toks[i+1].kind == str {
		i++ // 'a' 'b' on two lines is one string
	}
	s.part(first, "?")
	if len(s.args) < maxArgs {
		s.args = append(s.args, cut(st.text[st.toks[first].start:st.toks[i].end]))
	}
	return i + 1
}

func (s *shaper) part(tok int, text string) {
	if s.onlyArgs {
		return
	}
	s.parts = append(s.parts, text)
	s.adjacent = append(s.adjacent, tok > 0 && s.st.toks[tok-1].end == s.st.toks[tok].start)
}

// literal says whether a token is a literal or a parameter. NULL, TRUE and FALSE are literals where another
// one could stand in their place: not in IS NULL or NOT NULL.
func (s *shaper) literal(i int) bool {
	switch s.st.toks[i].kind {
	case str, number, param:
		return true
	case word:
		return s.st.is(i, "NULL", "TRUE", "FALSE") && i > 0 && s.st.toks[i-1].kind != word && !s.st.mark(i-1, ")")
	}
	return false
}

// signHere says whether a + or - is a sign, not an operator between two operands.
func (s *shaper) signHere(i int) bool {
	if i == 0 {
		return true
	}
	switch s.st.toks[i-1].kind {
	case mark:
		return !s.st.mark(i-1, ")") && !s.st.mark(i-1, "]")
	case operator:
		return true
	case word:
		return s.st.is(i-1, "SELECT", "BETWEEN", "AND", "OR", "NOT", "WHERE", "HAVING", "ON", "THEN", "ELSE", "WHEN", "CASE", "LIKE",
			"BY", "IN", "LIMIT", "OFFSET", "RETURNING", "TO")
	}
	return false
}

// cut shortens an argument at a whole character.
func cut(s string) string {
	if len(s) <= maxArg {
		return s
	}
	n := maxArg
	for i := 0; i < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); i++ {
		n--
	}
	return s[:n]
}

// fold makes repeated elements behind IN and VALUES one.
func (s *shaper) fold() {
	out := 0
	for i := 0; i < len(s.parts); {
		s.move(out, i)
		out++
		in, values := strings.EqualFold(s.parts[i], "IN"), strings.EqualFold(s.parts[i], "VALUES")
		i++
		switch {
		case in && i < len(s.parts) && s.parts[i] == "(":
			s.move(out, i)
			out, i = s.foldList(out+1, i+1, false)
		case values && i < len(s.parts) && s.parts[i] == "(":
			out, i = s.foldList(out, i, true)
		}
	}
	s.parts, s.adjacent = s.parts[:out], s.adjacent[:out]
}

func (s *shaper) move(to, from int) { s.parts[to], s.adjacent[to] = s.parts[from], s.adjacent[from] }

// foldList copies the comma-separated elements that begin at part i to out, leaving out those that equal the
// one before, and gives the places behind both. Elements that are rows end with their parenthesis.
func (s *shaper) foldList(out, i int, rows bool) (int, int) {
	lastFrom, lastTo := -1, -1
	for i < len(s.parts) {
		end := s.element(i, rows)
		if lastFrom >= 0 && slices.Equal(s.parts[lastFrom:lastTo], s.parts[i:end]) {
			out-- // the comma before it
		} else {
			lastFrom = out
			for ; i < end; i++ {
				s.move(out, i)
				out++
			}
			lastTo = out
		}
		i = end
		if i >= len(s.parts) || s.parts[i] != "," {
			return out, i
		}
		s.move(out, i)
		out, i = out+1, i+1
	}
	return out, i
}

// element gives the end of the list element at part i.
func (s *shaper) element(i int, row bool) int {
	depth := 0
	for ; i < len(s.parts); i++ {
		switch s.parts[i] {
		case "(":
			depth++
		case ")":
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 && row {
				return i + 1
			}
		case ",":
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// join sets the parts with the blanks of common SQL style: none around dots and casts, inside parentheses and
// before commas; before a parenthesis or bracket only where the client left one.
func (s *shaper) join() string {
	var b strings.Builder
	for i, p := range s.parts {
		if i > 0 && s.blankBefore(i) {
			b.WriteByte(' ')
		}
		if b.Len()+len(p) > maxShape-len("...") {
			b.WriteString("...")
			break
		}
		b.WriteString(p)
	}
	return b.String()
}

func (s *shaper) blankBefore(i int) bool {
	prev, p := s.parts[i-1], s.parts[i]
	switch {
	case p == ",", p == ")", p == "]", p == ";", p == ".", p == "::", prev == ".", prev == "(", prev == "[", prev == "::":
		return false
	case p == "(", p == "[":
		return !s.adjacent[i] || prev == ","
	}
	return true
}
