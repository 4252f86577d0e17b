package scenario

import (
	"fmt"
	"strings"
)

// A specKind is what a token of a specification is.
type specKind int

const (
	specEnd    specKind = iota
	specSign            // a keyword or one of ( ) , *
	specName            // of a session or step
	specNumber          // decimal
	specSQL             // what stands between braces
)

// A specToken is one word of a specification.
type specToken struct {
	kind specKind
	text string // a name without its quotes, SQL without the spaces at its ends
	line int    // where it begins, from 1
}

func (t specToken) is(sign string) bool { return t.kind == specSign && t.text == sign }

// A specScanner cuts a specification into tokens.
type specScanner struct {
	text string // what is left
	line int
}

// specSpace is what separates tokens, and what SQL is trimmed of, beside ends of lines.
const specSpace = " \t\r\f"

// specKeywords are names only in quotes.
const specKeywords = " notices permutation session setup step teardown "

// next returns the next token; at the end specEnd.
func (s *specScanner) next() (specToken, error) {
	s.skip()
	if s.text == "" {
		return specToken{kind: specEnd, line: s.line}, nil
	}
	switch c := s.text[0]; {
	case strings.IndexByte("(),*", c) >= 0:
		return s.cut(specSign, 1), nil
	case c == '{':
		return s.sql()
	case c == '"':
		return s.quoted()
	case isDigit(c):
		return s.cut(specNumber, s.span(isDigit)), nil
	case isNameByte(c) && c != '$':
		t := s.cut(specName, s.span(isNameByte))
		if strings.Contains(specKeywords, " "+t.text+" ") {
			t.kind = specSign
		}
		return t, nil
	}
	return specToken{}, fmt.Errorf("line %d: unexpected character %q", s.line, []rune(s.text)[0])
}

// skip passes spaces, ends of lines and comments.
func (s *specScanner) skip() {
	for {
		rest := strings.TrimLeft(s.text, specSpace)
		if strings.HasPrefix(rest, "#") {
			end := strings.IndexAny(rest, "\n\r")
			if end < 0 {
				end = len(rest)
			}
			rest = rest[end:]
		}
		if strings.HasPrefix(rest, "\n") {
			rest = rest[1:]
			s.line++
		}
		if rest == s.text {
			return
		}
		s.text = rest
	}
}

// cut takes the first n bytes as a token.
func (s *specScanner) cut(kind specKind, n int) specToken {
	t := specToken{kind: kind, text: s.text[:n], line: s.line}
	s.text = s.text[n:]
	return t
}

// span counts the bytes of a kind that the text begins with.
func (s *specScanner) span(of func(byte) bool) int {
	n := 0
	for n < len(s.text) && of(s.text[n]) {
		n++
	}
	return n
}

// sql reads what stands between braces. It has no way to hold a closing brace.
func (s *specScanner) sql() (specToken, error) {
	end := strings.IndexByte(s.text, '}')
	if end < 0 {
		return specToken{}, fmt.Errorf("line %d: SQL without }", s.line)
	}
	t := s.cut(specSQL, end+1)
	s.line += strings.Count(t.text, "\n")
	t.text = strings.Trim(t.text[1:end], specSpace)
	return t, nil
}

// quoted reads a name in double quotes, in which two stand for one.
func (s *specScanner) quoted() (specToken, error) {
	var name strings.Builder
	for i := 1; i < len(s.text) && s.text[i] != '\n'; i++ {
		if s.text[i] != '"' {
			name.WriteByte(s.text[i])
			continue
		}
		if !strings.HasPrefix(s.text[i+1:], `"`) {
			s.text = s.text[i+1:]
			return specToken{kind: specName, text: name.String(), line: s.line}, nil
		}
		name.WriteByte('"')
		i++
	}
	return specToken{}, fmt.Errorf("line %d: a name without its second quote", s.line)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
