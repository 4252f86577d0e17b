// Package sqltoken cuts texts that hold SQL of either family into tokens, as far as one must know where strings,
// comments, parameters (:name) and statements begin and end. What a statement means is left to its family's grammar.
package sqltoken

import (
	"errors"
	"fmt"
	"strings"
)

// A Kind of token.
type Kind uint8

// The kinds. A Word is a keyword, a name without quotes or a number; a Param is a colon and a name; a Mark is one
// byte of anything else, but for "::" and ":=".
const (
	Word Kind = iota
	Quoted
	Param
	Mark
)

// A Token is a part of a text that has a meaning.
type Token struct {
	Kind       Kind
	Start, End int    // in bytes
	Line       int    // from 1
	Text       string // text[Start:End]
}

// Is reports whether the token is a word, in any case, or a mark.
func (t Token) Is(text string) bool {
	return (t.Kind == Word || t.Kind == Mark) && strings.EqualFold(t.Text, text)
}

// ErrOpen is the error of a text that ends inside a string or comment.
var ErrOpen = errors.New("is not closed")

// Scan cuts a text. Comments and white space are left out. With backslashes, these escape in strings as MySQL has it;
// and # begins a comment.
func Scan(text string, backslashes bool) ([]Token, error) {
	x := scanner{text: text, backslashes: backslashes, line: 1}
	for x.pos < len(text) {
		if err := x.next(); err != nil {
			return nil, err
		}
	}
	return x.tokens, nil
}

type scanner struct {
	text        string
	pos, line   int
	backslashes bool
	tokens      []Token
}

func (x *scanner) next() error {
	rest := x.text[x.pos:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f':
		x.pass(1)
	case strings.HasPrefix(rest, "--"), c == '#' && x.backslashes:
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		x.pass(end)
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return x.open("a comment")
		}
		x.pass(end + 4)
	case c == '\'' || c == '"' || c == '`':
		return x.quoted(c)
	case c == '$':
		return x.dollar()
	case c == ':' && len(rest) > 1 && isWord(rest[1]) && !isDigit(rest[1]):
		x.add(Param, 1+wordLength(rest[1:]))
	case isWord(c):
		x.add(Word, wordLength(rest))
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, ":="):
		x.add(Mark, 2)
	default:
		x.add(Mark, 1)
	}
	return nil
}

// quoted takes a string or a quoted name. The quote doubled stands for itself.
func (x *scanner) quoted(quote byte) error {
	rest := x.text[x.pos:]
	escapes := quote != '`' && (x.backslashes || x.afterE())
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && escapes:
			i++
		case rest[i] == quote && i+1 < len(rest) && rest[i+1] == quote:
			i++
		case rest[i] == quote:
			x.add(Quoted, i+1)
			return nil
		}
	}
	return x.open("a string")
}

// afterE reports whether the string that begins here is PostgreSQL's E'...'.
func (x *scanner) afterE() bool {
	n := len(x.tokens)
	return n > 0 && x.tokens[n-1].End == x.pos && x.tokens[n-1].Is("E")
}

// dollar takes a string in PostgreSQL's dollar quotes; a dollar alone is a mark.
func (x *scanner) dollar() error {
	rest := x.text[x.pos:]
	n := 1 + wordLength(rest[1:])
	if n >= len(rest) || rest[n] != '$' || n > 1 && isDigit(rest[1]) {
		x.add(Mark, 1)
		return nil
	}
	quote := rest[:n+1]
	end := strings.Index(rest[len(quote):], quote)
	if end < 0 {
		return x.open("a string")
	}
	x.add(Quoted, end+2*len(quote))
	return nil
}

func (x *scanner) add(k Kind, n int) {
	x.tokens = append(x.tokens, Token{k, x.pos, x.pos + n, x.line, x.text[x.pos : x.pos+n]})
	x.pass(n)
}

func (x *scanner) pass(n int) {
	x.line += strings.Count(x.text[x.pos:x.pos+n], "\n")
	x.pos += n
}

func (x *scanner) open(what string) error { return &Error{x.line, fmt.Errorf("%s %w", what, ErrOpen)} }

// An Error is about a line of a text.
type Error struct {
	Line int
	Err  error
}

// Error returns the line and what is wrong there.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80 || isDigit(c)
}

func wordLength(s string) int {
	n := 0
	for n < len(s) && isWord(s[n]) {
		n++
	}
	return n
}

// Statements cuts tokens at the semicolons, which are left out, and so are empty statements.
func Statements(tokens []Token) [][]Token {
	var all [][]Token
	from := 0
	for i, t := range tokens {
		if t.Is(";") {
			if i > from {
				all = append(all, tokens[from:i])
			}
			from = i + 1
		}
	}
	if from < len(tokens) {
		all = append(all, tokens[from:])
	}
	return all
}
