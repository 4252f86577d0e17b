// Package shape writes a statement without its literals, so that statements that differ in their data only
// look alike. The rewriters cut statements into tokens, each by its own dialect; what becomes of the tokens is
// the same for all.
package shape

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How much of a statement its shape and arguments keep.
const (
	MaxBytes = 8 << 10 // of the shape, without the mark that it is cut
	MaxArgs  = 32
	MaxArg   = 64 // bytes
)

// A Shape is a statement in the making. The zero Shape is empty.
type Shape struct {
	parts    []string
	adjacent []bool // whether the part followed the one before without a blank
}

// Grow makes room for n parts.
func (s *Shape) Grow(n int) {
	s.parts, s.adjacent = slices.Grow(s.parts, n), slices.Grow(s.adjacent, n)
}

// Add adds a token, or a ? in the place of a literal. adjacent says that no blank stands before it.
func (s *Shape) Add(text string, adjacent bool) {
	s.parts, s.adjacent = append(s.parts, text), append(s.adjacent, adjacent)
}

// Fold makes repeated elements behind IN one, and repeated rows behind VALUES and its kind.
func (s *Shape) Fold(values ...string) {
	out := 0
	for i := 0; i < len(s.parts); {
		s.move(out, i)
		out++
		in, rows := strings.EqualFold(s.parts[i], "IN"),
			slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, s.parts[i]) })
		i++
		switch {
		case in && i < len(s.parts) && s.parts[i] == "(":
			s.move(out, i)
			out, i = s.foldList(out+1, i+1, false)
		case rows && i < len(s.parts) && s.parts[i] == "(":
			out, i = s.foldList(out, i, true)
		}
	}
	s.parts, s.adjacent = s.parts[:out], s.adjacent[:out]
}

func (s *Shape) move(to, from int) { s.parts[to], s.adjacent[to] = s.parts[from], s.adjacent[from] }

// foldList copies the comma-separated elements that begin at part i to out, leaving out those that
// equal the one before, and returns the places behind both. Elements that are rows end with their
// parenthesis.
func (s *Shape) foldList(out, i int, rows bool) (int, int) {
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

// element returns the end of the list element at part i.
func (s *Shape) element(i int, row bool) int {
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

// String sets the parts with the blanks of common SQL style: none around dots and casts, inside parentheses
// and before commas; before a parenthesis or bracket only where the client left one.
func (s *Shape) String() string {
	var b strings.Builder
	for i, p := range s.parts {
		if i > 0 && s.blankBefore(i) {
			b.WriteByte(' ')
		}
		if b.Len()+len(p) > MaxBytes-len("...") {
			b.WriteString("...")
			break
		}
		b.WriteString(p)
	}
	return b.String()
}

func (s *Shape) blankBefore(i int) bool {
	prev, p := s.parts[i-1], s.parts[i]
	switch {
	case p == ",", p == ")", p == "]", p == ";", p == ".", p == "::", prev == ".", prev == "(", prev == "[",
		prev == "::":
		return false
	case p == "(", p == "[":
		return !s.adjacent[i] || prev == ","
	}
	return true
}

// Cut shortens an argument at a whole character.
func Cut(arg string) string {
	if len(arg) <= MaxArg {
		return arg
	}
	n := MaxArg
	for i := 0; i < utf8.UTFMax && n > 0 && !utf8.RuneStart(arg[n]); i++ {
		n--
	}
	return arg[:n]
}
