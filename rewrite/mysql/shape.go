package mysql

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How much of a statement its shape and arguments keep.
const (
	maxShape = 8 << 10 // bytes
	maxArgs  = 32
	maxArg   = 64 // bytes
)

// shape gives the statement without its literals, and the literals. White space and comments become
// single blanks, lists of literals one literal, equal rows of VALUES one row, so that statements that
// differ in their data only have one shape. A placeholder is a ? in both. Of statements that may
// carry a password only the verb and its object are left.
func (st *statement) shape() (string, []string) {
	if verbs := st.secret(); verbs != "" {
		return verbs, nil
	}
	s := shaper{st: st, parts: make([]string, 0, len(st.toks)), keepArgs: !st.hidesPassword()}
	for i := 0; i <= st.last(); {
		i = s.add(i)
	}
	s.fold()
	return s.join(), s.args
}

// secret gives the verb phrase of a statement that may carry a password; empty for others.
func (st *statement) secret() string {
	query := st.mark(0, "(") || st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
	if len(st.toks) == 0 || query && len(st.split()) == 1 || !st.suspect() {
		return ""
	}
	verbs := st.tok(0)
	for i := 1; i < len(st.toks) && i < 5; i++ {
		if st.is(i, "USER", "SERVER", "TABLE", "MASTER", "PASSWORD", "ROLE") {
			return verbs + " " + st.tok(i)
		}
	}
	return verbs
}

// suspect looks for the places where passwords stand: IDENTIFIED BY, PASSWORD with a value, the
// connection string of a remote table.
func (st *statement) suspect() bool {
	for i := range st.toks {
		switch {
		case st.is(i, "IDENTIFIED", "MASTER_PASSWORD", "SOURCE_PASSWORD", "OLD_PASSWORD", "CONNECTION"),
			st.is(i, "SET") && st.is(i+1, "PASSWORD"), st.is(i, "CREATE", "ALTER") && st.is(i+1, "USER"),
			st.is(i, "CHANGE") && st.is(i+1, "MASTER"):
			return true
		case st.is(i, "PASSWORD") && i+1 < len(st.toks) && (st.toks[i+1].kind == str || st.mark(i+1, "=") || st.mark(i+1, "(")):
			return true
		}
	}
	return false
}

// hidesPassword says whether a literal may be a password on its way into PASSWORD(), or a statement
// that holds one.
func (st *statement) hidesPassword() bool {
	for i := range st.toks {
		if st.is(i, "PASSWORD", "OLD_PASSWORD") && st.mark(i+1, "(") {
			return true
		}
	}
	return st.is(0, "PREPARE", "EXECUTE")
}

type shaper struct {
	st       *statement
	parts    []string
	adjacent []bool // whether the part followed the one before without a blank
	args     []string
	keepArgs bool
}

// add takes over the token at i, and those that belong to the same literal, and gives the next one.
func (s *shaper) add(i int) int {
	first, st := i, s.st
	if (st.mark(i, "-") || st.mark(i, "+")) && s.signHere(i) && i+1 < len(st.toks) && st.toks[i+1].kind == number {
		i++
	}
	if st.toks[i].kind == word && st.tok(i)[0] == '_' && i+1 < len(st.toks) && st.toks[i+1].kind == str {
		i++ // a character set introducer
	}
	if !s.literal(i) {
		s.part(first, st.tok(first))
		return first + 1
	}
	for st.toks[i].kind == str && i+1 < len(st.toks) && st.toks[i+1].kind == str {
		i++ // 'a' 'b' is one string
	}
	s.part(first, "?")
	if s.keepArgs && len(s.args) < maxArgs {
		s.args = append(s.args, cut(st.text[st.toks[first].start:st.toks[i].end]))
	}
	return i + 1
}

func (s *shaper) part(tok int, text string) {
	s.parts = append(s.parts, text)
	s.adjacent = append(s.adjacent, tok > 0 && s.st.toks[tok-1].end == s.st.toks[tok].start)
}

// literal says whether a token is a literal or a placeholder. NULL, TRUE and FALSE are literals where
// another one could stand in their place: not in IS NULL or NOT NULL.
func (s *shaper) literal(i int) bool {
	switch s.st.toks[i].kind {
	case str, number, placeholder:
		return true
	case word:
		return s.st.is(i, "NULL", "TRUE", "FALSE") && i > 0 && s.st.toks[i-1].kind == punct && !s.st.mark(i-1, ")")
	}
	return false
}

// signHere says whether a + or - is a sign, not an operator between two operands.
func (s *shaper) signHere(i int) bool {
	if i == 0 {
		return true
	}
	if s.st.toks[i-1].kind == punct {
		return !s.st.mark(i-1, ")") && !s.st.mark(i-1, "-") && !s.st.mark(i-1, "+")
	}
	return s.st.is(i-1, "SELECT", "BETWEEN", "AND", "OR", "XOR", "NOT", "WHERE", "HAVING", "ON", "THEN", "ELSE", "WHEN",
		"CASE", "LIKE", "BY", "IN", "INTERVAL", "DIV", "MOD", "RETURN", "LIMIT", "OFFSET")
}

func cut(s string) string {
	if len(s) <= maxArg {
		return s
	}
	s = s[:maxArg]
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if c >= 0x80 && !utf8.FullRuneInString(s[len(s)-i:]) {
				s = s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// fold makes repeated elements behind IN and VALUES one.
func (s *shaper) fold() {
	out := 0
	for i := 0; i < len(s.parts); {
		s.move(out, i)
		out++
		in, values := strings.EqualFold(s.parts[i], "IN"), strings.EqualFold(s.parts[i], "VALUES") || strings.EqualFold(s.parts[i], "VALUE")
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

// foldList copies the comma-separated elements that begin at part i to out, leaving out those that
// equal the one before, and gives the places behind both. Elements that are rows end with their
// parenthesis.
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

// join sets the parts with the blanks of common SQL style: none around dots, inside parentheses and
// before commas; before a parenthesis only where the client left one.
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
	case p == "," || p == ")" || p == ";" || p == "." || prev == "." || prev == "(":
		return false
	case p == "(":
		return !s.adjacent[i] || prev == ","
	}
	return true
}
