package postgres

import (
	"slices"
	"strings"
)

// A kind of token.
type kind uint8

const (
	word     kind = iota // a keyword or a name without quotes
	name                 // a name in double quotes, U&"..." too
	str                  // a string constant of any form: '...', E'...', B'...', $$...$$
	number               // without a sign
	param                // $1
	operator             // one or several of + - * / < > = ~ ! @ # % ^ & | ` ?, or := and =>
	mark                 // one of ( ) [ ] , ; . : or ::
)

// A token is a part of a text that has a meaning: text[start:end].
type token struct {
	start, end int
	kind       kind
}

// scan appends the tokens of a text, cut by the rules of PostgreSQL's scanner (chapter "Lexical Structure" of its
// documentation). It tells whether the text ends where it may: not inside a string or a comment.
func scan(room []token, text string, backslashes bool) (toks []token, whole bool) {
	x := lexer{text: text, backslashes: backslashes, toks: slices.Grow(room, len(text)/4+4), whole: true}
	for x.pos < len(text) {
		x.next()
	}
	return x.toks, x.whole
}

type lexer struct {
	text        string
	pos         int
	backslashes bool // escape in '...' too
	toks        []token
	whole       bool
}

// at returns the byte n places from here; 0 behind the end.
func (x *lexer) at(n int) byte {
	if x.pos+n < len(x.text) {
		return x.text[x.pos+n]
	}
	return 0
}

// add makes a token of the next n bytes.
func (x *lexer) add(k kind, n int) {
	x.toks = append(x.toks, token{x.pos, x.pos + n, k})
	x.pos += n
}

// next passes white space or a comment, or adds a token.
func (x *lexer) next() {
	switch c := x.at(0); {
	case isSpace(c):
		x.pos++
	case c == '-' && x.at(1) == '-':
		x.lineComment()
	case c == '/' && x.at(1) == '*':
		x.comment()
	case c == '\'':
		x.quoted(str, 1, x.backslashes)
	case c == '"':
		x.quoted(name, 1, false)
	case c == '$':
		x.dollar()
	case isDigit(c), c == '.' && isDigit(x.at(1)):
		x.number()
	case isWordStart(c):
		x.word()
	case strings.IndexByte("()[],;.", c) >= 0:
		x.add(mark, 1)
	case c == ':':
		x.colon()
	case isOperator(c):
		x.operator()
	default:
		x.add(operator, 1) // no token of PostgreSQL's: the server will say so
	}
}

func (x *lexer) colon() {
	switch x.at(1) {
	case ':':
		x.add(mark, 2)
	case '=':
		x.add(operator, 2)
	default:
		x.add(mark, 1)
	}
}

func (x *lexer) lineComment() {
	n := strings.IndexAny(x.text[x.pos:], "\n\r")
	if n < 0 {
		n = len(x.text) - x.pos
	}
	x.pos += n
}

// comment passes a comment, which may hold others.
func (x *lexer) comment() {
	depth := 0
	for x.pos < len(x.text) {
		switch {
		case x.at(0) == '/' && x.at(1) == '*':
			depth++
			x.pos += 2
		case x.at(0) == '*' && x.at(1) == '/':
			depth--
			x.pos += 2
			if depth == 0 {
				return
			}
		default:
			x.pos++
		}
	}
	x.whole = false
}

// quoted adds what ends with the quote before place from; two of them stand for one.
func (x *lexer) quoted(k kind, from int, escapes bool) {
	q := x.at(from - 1)
	for n := from; x.pos+n < len(x.text); n++ {
		switch c := x.at(n); {
		case c == '\\' && escapes:
			n++
		case c == q && x.at(n+1) == q:
			n++
		case c == q:
			x.add(k, n+1)
			return
		}
	}
	x.whole = false
	x.add(k, len(x.text)-x.pos)
}

// dollar adds a parameter or a string between two tags.
func (x *lexer) dollar() {
	n := 1
	for isDigit(x.at(n)) {
		n++
	}
	if n > 1 {
		x.add(param, n)
		return
	}
	if isWordStart(x.at(n)) {
		for n++; isWordStart(x.at(n)) || isDigit(x.at(n)); {
			n++
		}
	}
	if x.at(n) != '$' {
		x.add(operator, 1)
		return
	}
	tag := x.text[x.pos : x.pos+n+1]
	end := strings.Index(x.text[x.pos+len(tag):], tag)
	if end < 0 {
		x.whole = false
		x.add(str, len(x.text)-x.pos)
		return
	}
	x.add(str, end+2*len(tag))
}

// number adds an integer or a decimal. What runs into it (1a) becomes part of it.
func (x *lexer) number() {
	n := 0
	for isDigit(x.at(n)) || x.at(n) == '_' {
		n++
	}
	if x.at(n) == '.' && x.at(n+1) != '.' {
		for n++; isDigit(x.at(n)) || x.at(n) == '_'; {
			n++
		}
	}
	for isWordStart(x.at(n)) || isDigit(x.at(n)) {
		exponent := x.at(n)|0x20 == 'e'
		n++
		if exponent && (x.at(n) == '+' || x.at(n) == '-') && isDigit(x.at(n+1)) {
			n++
		}
	}
	x.add(number, n)
}

// word adds a word, or a string or name that a letter introduces.
func (x *lexer) word() {
	switch c := x.at(0) | 0x20; {
	case x.at(1) == '\'' && c == 'e':
		x.quoted(str, 2, true)
		return
	case x.at(1) == '\'' && (c == 'b' || c == 'x'):
		x.quoted(str, 2, false)
		return
	case x.at(1) == '\'' && c == 'n':
		x.quoted(str, 2, x.backslashes)
		return
	case c == 'u' && x.at(1) == '&' && x.at(2) == '\'':
		x.quoted(str, 3, false)
		return
	case c == 'u' && x.at(1) == '&' && x.at(2) == '"':
		x.quoted(name, 3, false)
		return
	}
	n := 1
	for isWord(x.at(n)) {
		n++
	}
	x.add(word, n)
}

// operator adds the longest operator that stands here: a comment ends it, and of several bytes it ends with
// + or - only if it also holds one that SQL has no operators of.
func (x *lexer) operator() {
	n := 1
	for isOperator(x.at(n)) && !(x.at(n) == '-' && x.at(n+1) == '-') && !(x.at(n) == '/' && x.at(n+1) == '*') {
		n++
	}
	for n > 1 && (x.at(n-1) == '+' || x.at(n-1) == '-') && !strings.ContainsAny(x.text[x.pos:x.pos+n-1], "~!@#%^&|`?") {
		n--
	}
	x.add(operator, n)
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWordStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}
func isWord(c byte) bool { return isWordStart(c) || isDigit(c) || c == '$' }
func isOperator(c byte) bool {
	return strings.IndexByte("+-*/<>=~!@#%^&|`?", c) >= 0 && c != 0
}
