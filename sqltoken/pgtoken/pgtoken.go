// Package pgtoken cuts PostgreSQL's SQL into tokens. Its rules are those of the server's scanner,
// src/backend/parser/scan.l (in its documentation, the chapter "Lexical Structure"):
//
//   - 'x' is a string in which a doubled quote stands for itself; backslashes escape in E'x', and in others where
//     standard_conforming_strings is off. What follows on another line goes on with the string: here it is a token of
//     its own.
//   - $$x$$ and $tag$x$tag$ are strings, $1 is a parameter.
//   - Comments nest. One that begins within an operator ends it.
//   - An operator is as long as its characters go, but for a + or - at the end of one that could be SQL's own.
//   - Letters that run into a number are part of it: scan.l refuses them since version 15.
//
// [Scan] holds these promises for every text:
//
//   - Tokens are in the order of the text, none is empty, and none overlaps another.
//   - What stands between two tokens is white space and comments. A byte that begins no token of PostgreSQL's is an
//     operator, which the server refuses.
//   - It allocates no more than the tokens, and nothing where there is room for them.
//
// The package knows no statements. It imports none of isotap's.
package pgtoken

import (
	"slices"
	"strings"
)

// A Kind is what a token is.
type Kind uint8

// The kinds.
const (
	Word     Kind = iota // a keyword or a name without quotes
	Name                 // a name in double quotes, U&"..." too
	String               // a string constant of any form: '...', E'...', B'...', $$...$$
	Number               // without a sign
	Param                // $1
	Operator             // one or several of + - * / < > = ~ ! @ # % ^ & | ` ?, or :=
	Mark                 // one of ( ) [ ] , ; . : or ::
)

// A Token is the part text[Start:End] of a text.
type Token struct {
	Start, End int
	Kind       Kind
}

// Span returns where the token begins in the text, and where it ends.
func (t Token) Span() (start, end int) { return t.Start, t.End }

// Scan appends the tokens of a text to room. With backslashes, these escape in plain strings too
// (standard_conforming_strings is off). It never fails: open is where a string, a quoted name or a comment begins that
// does not end, -1 if there is none.
func Scan(room []Token, text string, backslashes bool) (tokens []Token, open int) {
	x := lexer{text: text, backslashes: backslashes, tokens: slices.Grow(room, len(text)/4+4), open: -1}
	for x.pos < len(text) {
		x.next()
	}
	return x.tokens, x.open
}

// A lexer cuts one text.
type lexer struct {
	text        string
	pos         int  // of the text: what comes next
	backslashes bool // escape in '...' too
	tokens      []Token
	open        int
}

// at returns the byte n places from here; 0 behind the end.
func (x *lexer) at(n int) byte {
	if x.pos+n < len(x.text) {
		return x.text[x.pos+n]
	}
	return 0
}

// add makes a token of the next n bytes.
func (x *lexer) add(k Kind, n int) {
	x.tokens = append(x.tokens, Token{x.pos, x.pos + n, k})
	x.pos += n
}

// next passes white space or a comment, or adds a token.
func (x *lexer) next() {
	switch c := x.at(0); {
	case IsSpace(c):
		x.pos++
	case c == '-' && x.at(1) == '-':
		x.lineComment()
	case c == '/' && x.at(1) == '*':
		x.comment()
	case c == '\'':
		x.quoted(String, 1, x.backslashes)
	case c == '"':
		x.quoted(Name, 1, false)
	case c == '$':
		x.dollar()
	case isDigit(c), c == '.' && isDigit(x.at(1)):
		x.number()
	case isWordStart(c):
		x.word()
	case strings.IndexByte("()[],;.", c) >= 0:
		x.add(Mark, 1)
	case c == ':':
		x.colon()
	case isOperator(c):
		x.operator()
	default:
		x.add(Operator, 1) // no token of PostgreSQL's: the server will say so
	}
}

// colon adds what begins with one.
func (x *lexer) colon() {
	switch x.at(1) {
	case ':':
		x.add(Mark, 2)
	case '=':
		x.add(Operator, 2)
	default:
		x.add(Mark, 1)
	}
}

// lineComment passes a comment that ends with its line.
func (x *lexer) lineComment() {
	n := strings.IndexAny(x.text[x.pos:], "\n\r")
	if n < 0 {
		n = len(x.text) - x.pos
	}
	x.pos += n
}

// comment passes a comment, which may hold others.
func (x *lexer) comment() {
	start, depth := x.pos, 0
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
	x.open = start
}

// quoted adds what ends with the quote before place from; two of them stand for one.
func (x *lexer) quoted(k Kind, from int, escapes bool) {
	x.addTo(k, x.closed(from, escapes))
}

// introduced adds a string with a letter before its quote, which stands before place from. It goes on behind the end of
// a line, where what escaped in its beginning still does (section 4.1.2.1 of PostgreSQL's manual, String Constants). A
// string without such a letter does, too; there each part means what it would mean alone, and is a token.
func (x *lexer) introduced(from int, escapes bool) {
	end := x.closed(from, escapes)
	for more := end; end >= 0; end = x.closed(more+1, escapes) {
		if more = x.continued(end); more < 0 {
			break
		}
	}
	x.addTo(String, end)
}

// addTo makes a token of the bytes up to place end; below 0, of all that is left, which does not end.
func (x *lexer) addTo(k Kind, end int) {
	if end < 0 {
		x.open, end = x.pos, len(x.text)-x.pos
	}
	x.add(k, end)
}

// closed returns the place behind the next quote like the one before place from; -1: there is none. Two of them stand
// for one.
func (x *lexer) closed(from int, escapes bool) int {
	q := x.at(from - 1)
	for n := from; x.pos+n < len(x.text); n++ {
		switch c := x.at(n); {
		case c == '\\' && escapes:
			n++
		case c == q && x.at(n+1) == q:
			n++
		case c == q:
			return n + 1
		}
	}
	return -1
}

// continued returns the place of the quote by which a string that ended before place n goes on; -1: it does not. White
// space that holds the end of a line, and comments that end with theirs, part the two.
func (x *lexer) continued(n int) int {
	for line := false; ; {
		switch c := x.at(n); {
		case IsSpace(c):
			line = line || c == '\n' || c == '\r'
			n++
		case c == '-' && x.at(n+1) == '-':
			end := strings.IndexAny(x.text[x.pos+n:], "\n\r")
			if end < 0 {
				return -1
			}
			n += end
		case c == '\'' && line:
			return n
		default:
			return -1
		}
	}
}

// dollar adds a parameter or a string between two tags.
func (x *lexer) dollar() {
	n := 1
	for isDigit(x.at(n)) {
		n++
	}
	if n > 1 {
		x.add(Param, n)
		return
	}
	if isWordStart(x.at(n)) {
		for n++; isWordStart(x.at(n)) || isDigit(x.at(n)); {
			n++
		}
	}
	if x.at(n) != '$' {
		x.add(Operator, 1)
		return
	}
	tag := x.text[x.pos : x.pos+n+1]
	end := strings.Index(x.text[x.pos+len(tag):], tag)
	if end < 0 {
		x.open = x.pos
		x.add(String, len(x.text)-x.pos)
		return
	}
	x.add(String, end+2*len(tag))
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
	x.add(Number, n)
}

// word adds a word, or a string or name that a letter introduces.
func (x *lexer) word() {
	switch c := x.at(0) | 0x20; {
	case x.at(1) == '\'' && c == 'e':
		x.introduced(2, true)
		return
	case x.at(1) == '\'' && (c == 'b' || c == 'x'):
		x.introduced(2, false)
		return
	case x.at(1) == '\'' && c == 'n':
		x.quoted(String, 2, x.backslashes)
		return
	case c == 'u' && x.at(1) == '&' && x.at(2) == '\'':
		x.introduced(3, false)
		return
	case c == 'u' && x.at(1) == '&' && x.at(2) == '"':
		x.quoted(Name, 3, false)
		return
	}
	n := 1
	for isWord(x.at(n)) {
		n++
	}
	x.add(Word, n)
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
	x.add(Operator, n)
}

// IsSpace reports whether a byte is white space, which separates tokens.
func IsSpace(c byte) bool {
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
