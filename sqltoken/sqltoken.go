// Package sqltoken reads texts that hold SQL of either family: statements, the definitions of tables, and programs with
// variables (:name), which [Scan] cuts; statements of servers, which are [Statement]'s; and the shapes of recorded
// statements, which are [Shape]'s. The tokens are those of the family's own tokenizer, mysqltoken or pgtoken, of as few
// kinds as such a reader needs. What a statement means is left to its family's grammar.
package sqltoken

import (
	"errors"
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A Kind of token.
type Kind uint8

// The kinds.
const (
	Word        Kind = iota // a keyword, a name without quotes or a number
	Quoted                  // a string, or a name in quotes
	Param                   // a colon and a name
	Placeholder             // ? in the MySQL family, $1 in PostgreSQL
	Mark                    // an operator or another mark
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
	return t.Kind != Quoted && t.Kind != Param && strings.EqualFold(t.Text, text)
}

// ErrOpen is the error of a text that ends inside a string or comment.
var ErrOpen = errors.New("is not closed")

// Scan cuts a text by the rules of a family's servers, as they are without settings, but that two dashes begin a
// comment in either: programs are written for both. Comments and white space are left out.
func Scan(family dbms.Family, text string) ([]Token, error) {
	r := reader{text: text, line: 1}
	return r.all(family, mysqltoken.Mode{DashComments: true}, r.add)
}

// Statement cuts a text as a server of the family reads it, without settings: unlike for [Scan], two dashes are two
// operators in the MySQL family where no white space follows them, and a colon is a token by itself.
func Statement(family dbms.Family, text string) ([]Token, error) {
	r := reader{text: text, line: 1}
	return r.all(family, mysqltoken.Mode{}, r.put)
}

// all adds all tokens of the text and returns them.
func (r *reader) all(family dbms.Family, mode mysqltoken.Mode, add func(k Kind, start, end int)) ([]Token, error) {
	open := -1
	if family == dbms.MySQLFamily {
		cut := mysqltoken.Scan(r.text, mode)
		open = cut.Open
		r.tokens = make([]Token, 0, len(cut.Tokens))
		for _, t := range cut.Tokens {
			add(mysqlKind(r.text, t), t.Start, t.End)
		}
	} else {
		var tokens []pgtoken.Token
		tokens, open = pgtoken.Scan(nil, r.text, false)
		r.tokens = make([]Token, 0, len(tokens))
		for _, t := range tokens {
			add(pgKinds[t.Kind], t.Start, t.End)
		}
	}
	if open >= 0 {
		return nil, notClosed(r.text, open)
	}
	return r.tokens, nil
}

// mysqlKind returns the kind of a token. A name behind a dot has no quotes.
func mysqlKind(text string, t mysqltoken.Token) Kind {
	switch t.Kind {
	case mysqltoken.Word, mysqltoken.Number:
		return Word
	case mysqltoken.Name:
		if c := text[t.Start]; c != '`' && c != '"' {
			return Word
		}
		return Quoted
	case mysqltoken.String:
		return Quoted
	case mysqltoken.Placeholder:
		return Placeholder
	}
	return Mark
}

// pgKinds are the kinds of PostgreSQL's tokens.
var pgKinds = [...]Kind{pgtoken.Word: Word, pgtoken.Name: Quoted, pgtoken.String: Quoted, pgtoken.Number: Word,
	pgtoken.Param: Placeholder, pgtoken.Operator: Mark, pgtoken.Mark: Mark}

// A reader collects the tokens of a text.
type reader struct {
	text   string
	tokens []Token
	at     int // where the line is counted
	line   int
}

// add adds a token. A name right behind a colon becomes one with it.
func (r *reader) add(k Kind, start, end int) {
	if n := len(r.tokens) - 1; k == Word && n >= 0 && r.tokens[n].End == start && r.tokens[n].Text == ":" &&
		!mysqltoken.IsDigit(r.text[start]) {
		r.tokens = r.tokens[:n]
		k, start = Param, start-1
	}
	r.put(k, start, end)
}

// put adds a token as it is.
func (r *reader) put(k Kind, start, end int) {
	r.line += strings.Count(r.text[r.at:start], "\n")
	r.at = start
	r.tokens = append(r.tokens, Token{k, start, end, r.line, r.text[start:end]})
}

// notClosed returns the error of a text in which what begins there does not end.
func notClosed(text string, open int) error {
	what := "a string"
	if strings.HasPrefix(text[open:], "/*") {
		what = "a comment"
	}
	return &Error{1 + strings.Count(text[:open], "\n"), fmt.Errorf("%s %w", what, ErrOpen)}
}

// An Error is about a line of a text.
type Error struct {
	Line int
	Err  error
}

// Error returns the line and what is wrong there.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

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
