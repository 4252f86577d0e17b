package mysql

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// shape returns the statement without its literals, and the literals. White space and comments become
// single blanks, lists of literals one literal, equal rows of VALUES one row, so that statements that
// differ in their data only have one shape. A placeholder is a ? in both. Of executable comments, which servers run by
// their version, the shape is kept, in its place. Of statements that may carry a password only the verb and its object
// are left.
func (st *statement) shape() (string, []string) {
	opened := st.opened()
	if verbs := opened.secret(); verbs != "" {
		return verbs, nil
	}
	s := shaper{st: st, keepArgs: !opened.hidesPassword() && !st.hidesPassword()}
	s.Grow(len(st.Tokens))
	for i := 0; i <= st.last(); {
		s.addComments(i)
		i = s.add(i)
	}
	s.addComments(len(st.Tokens))
	s.Fold("VALUES", "VALUE")
	return s.String(), s.args
}

// addComments adds the executable comments before a token that are not added yet.
func (s *shaper) addComments(token int) {
	comments := s.st.Comments
	for ; s.commented < len(comments) && comments[s.commented].Token <= token; s.commented++ {
		c := comments[s.commented]
		s.Add(s.st.commentShape(s.st.SQL[c.Start:c.End]), false)
	}
}

// commentShape returns the shape of an executable comment: its mark and version, and the shape of what it holds. A
// comment that holds what is no whole text shows its mark alone.
func (st *statement) commentShape(text string) string {
	content := strings.TrimSuffix(text, "*/")
	mark := commentMark(content)
	inner := scan(content[mark:], st.Mode.ANSIQuotes, st.Mode.NoBackslashEscapes)
	if inner.Broken() || len(inner.Comments) > 0 {
		return content[:mark] + " ... */"
	}
	shape, _ := inner.shape()
	return content[:mark] + " " + shape + " */"
}

// args returns the n literals that shape leaves out.
func (st *statement) args(n int) []string {
	if opened := st.opened(); n == 0 || opened.secret() != "" || opened.hidesPassword() || st.hidesPassword() {
		return nil
	}
	s := shaper{st: st, keepArgs: true, onlyArgs: true, args: make([]string, 0, n)}
	for i := 0; i <= st.last(); {
		i = s.add(i)
	}
	return s.args
}

// written returns the statement as the client wrote it; empty where it may hold a password, and of several statements.
func (st *statement) written() string {
	if opened := st.opened(); opened.secret() != "" || opened.hidesPassword() || st.hidesPassword() || len(st.split()) != 1 {
		return ""
	}
	return st.SQL
}

// opened returns the statement as a server reads it that runs its executable comments.
func (st *statement) opened() *statement {
	if len(st.Comments) == 0 {
		return st
	}
	text := []byte(st.SQL)
	for _, c := range st.Comments {
		for i := c.Start; i < c.Start+commentMark(st.SQL[c.Start:c.End]); i++ {
			text[i] = ' '
		}
		if strings.HasSuffix(st.SQL[c.Start:c.End], "*/") {
			text[c.End-2], text[c.End-1] = ' ', ' '
		}
	}
	return scan(string(text), st.Mode.ANSIQuotes, st.Mode.NoBackslashEscapes)
}

// commentMark is the length of what begins an executable comment, with the version in it.
func commentMark(text string) int {
	n := strings.IndexByte(text, '!') + 1
	for n < len(text) && mysqltoken.IsDigit(text[n]) {
		n++
	}
	return n
}

// secret returns the verb phrase of a statement that may carry a password; empty for others.
func (st *statement) secret() string {
	query := st.mark(0, "(") || st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
	if len(st.Tokens) == 0 || query && len(st.split()) == 1 || !st.suspect() {
		return ""
	}
	verbs := st.tok(0)
	for i := 1; i < len(st.Tokens) && i < 5; i++ {
		if st.is(i, "USER", "SERVER", "TABLE", "MASTER", "PASSWORD", "ROLE") {
			return verbs + " " + st.tok(i)
		}
	}
	return verbs
}

// suspect looks for the places where passwords stand: IDENTIFIED BY, PASSWORD with a value, the
// connection string of a remote table.
func (st *statement) suspect() bool {
	for i := range st.Tokens {
		switch {
		case st.is(i, "IDENTIFIED", "MASTER_PASSWORD", "SOURCE_PASSWORD", "OLD_PASSWORD", "CONNECTION"),
			st.is(i, "SET") && st.is(i+1, "PASSWORD"), st.is(i, "CREATE", "ALTER") && st.is(i+1, "USER"),
			st.is(i, "CHANGE") && st.is(i+1, "MASTER"):
			return true
		case st.is(i, "PASSWORD") && i+1 < len(st.Tokens) && (st.Tokens[i+1].Kind == mysqltoken.String ||
			st.mark(i+1, "=") ||
			st.mark(i+1, "(")):
			return true
		}
	}
	return false
}

// hidesPassword reports whether a literal may be a password on its way into PASSWORD(), or a statement
// that holds one.
func (st *statement) hidesPassword() bool {
	for i := range st.Tokens {
		if st.is(i, "PASSWORD", "OLD_PASSWORD") && st.mark(i+1, "(") {
			return true
		}
	}
	return st.is(0, "PREPARE", "EXECUTE") || len(st.Comments) == maxComments // of which there may be more
}

type shaper struct {
	shape.Shape
	st       *statement
	args     []string
	keepArgs bool
	onlyArgs bool
	// commented is how many executable comments are added.
	commented int
}

// add takes over the token at i, and those that belong to the same literal, and returns the next one.
func (s *shaper) add(i int) int {
	first, st := i, s.st
	if (st.mark(i, "-") || st.mark(i, "+")) && s.signHere(i) && i+1 < len(st.Tokens) &&
		st.Tokens[i+1].Kind == mysqltoken.Number {
		i++
	}
	if st.Tokens[i].Kind == mysqltoken.Word && st.tok(i)[0] == '_' && i+1 < len(st.Tokens) &&
		st.Tokens[i+1].Kind == mysqltoken.String {
		i++ // a character set introducer
	}
	if !s.literal(i) {
		s.part(first, st.tok(first))
		return first + 1
	}
	for st.Tokens[i].Kind == mysqltoken.String && i+1 < len(st.Tokens) && st.Tokens[i+1].Kind == mysqltoken.String {
		i++ // 'a' 'b' is one string
	}
	s.part(first, "?")
	if s.keepArgs && len(s.args) < shape.MaxArgs {
		s.args = append(s.args, shape.Cut(st.SQL[st.Tokens[first].Start:st.Tokens[i].End]))
	}
	return i + 1
}

func (s *shaper) part(tok int, text string) {
	if s.onlyArgs {
		return
	}
	s.Add(text, tok > 0 && s.st.Tokens[tok-1].End == s.st.Tokens[tok].Start)
}

// literal reports whether a token is a literal or a placeholder. NULL, TRUE and FALSE are literals where
// another one could stand in their place: not in IS NULL or NOT NULL.
func (s *shaper) literal(i int) bool {
	switch s.st.Tokens[i].Kind {
	case mysqltoken.String, mysqltoken.Number, mysqltoken.Placeholder:
		return true
	case mysqltoken.Word:
		return s.st.is(i, "NULL", "TRUE", "FALSE") && i > 0 &&
			s.st.Tokens[i-1].Kind == mysqltoken.Mark && !s.st.mark(i-1, ")")
	}
	return false
}

// signHere reports whether a + or - is a sign, not an operator between two operands.
func (s *shaper) signHere(i int) bool {
	if i == 0 {
		return true
	}
	if s.st.Tokens[i-1].Kind == mysqltoken.Mark {
		return !s.st.mark(i-1, ")") && !s.st.mark(i-1, "-") && !s.st.mark(i-1, "+")
	}
	return s.st.is(i-1, "SELECT", "BETWEEN", "AND", "OR", "XOR", "NOT", "WHERE", "HAVING", "ON", "THEN", "ELSE", "WHEN",
		"CASE", "LIKE", "BY", "IN", "INTERVAL", "DIV", "MOD", "RETURN", "LIMIT", "OFFSET")
}

// sender returns what comments say of the client's program.
func (st *statement) sender() history.Sender {
	return rewrite.SenderOf(st.SQL, len(st.Tokens), func(i int) (start, end int) {
		return st.Tokens[i].Span()
	})
}
