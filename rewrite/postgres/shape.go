package postgres

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// params is the number of the highest parameter.
func (st *statement) params() int {
	highest := 0
	for i, t := range st.toks {
		if t.Kind == pgtoken.Param {
			if n, err := strconv.Atoi(st.tok(i)[1:]); err == nil {
				highest = max(highest, n)
			}
		}
	}
	return highest
}

// shape returns the statement without its literals, and the literals. White space and comments become single
// blanks, lists of literals one literal, equal rows of VALUES one row, so that statements that differ in
// their data only have one shape. A parameter is a ? as well. Of statements that may carry a password only
// the verb and its object are left.
func (st *statement) shape() (string, []string) {
	switch {
	case st.is(0, "DO"): // what follows is its body
		return "DO", nil
	case st.suspect():
		return strings.ToUpper(st.tok(0) + " " + st.tok(1)), nil
	}
	s := shaper{st: st}
	s.Grow(len(st.toks))
	for i := 0; i < len(st.toks); {
		i = s.add(i)
	}
	s.Fold("VALUES")
	return s.String(), s.args
}

// args returns the n literals that shape leaves out.
func (st *statement) args(n int) []string {
	if n == 0 || st.suspect() {
		return nil
	}
	s := shaper{st: st, onlyArgs: true, args: make([]string, 0, n)}
	for i := 0; i < len(st.toks); {
		i = s.add(i)
	}
	return s.args
}

// written returns the statement as the client wrote it, without what stands before and behind it; empty where a
// password may stand in it.
func (st *statement) written() string {
	if len(st.toks) == 0 || st.suspect() {
		return ""
	}
	return st.text[st.toks[0].Start:st.toks[len(st.toks)-1].End]
}

// suspect reports whether a password may stand in the statement.
func (st *statement) suspect() bool {
	if st.is(0, "CREATE", "ALTER") && st.is(1, "ROLE", "USER", "GROUP", "SERVER", "SUBSCRIPTION") {
		return true
	}
	if st.is(0, "DO") {
		return true
	}
	for i := range st.toks {
		if !st.mark(i+1, "(") {
			continue
		}
		if n, ok := st.ident(i); ok && strings.HasPrefix(n, "dblink") {
			return true // its argument is a connection string
		}
	}
	return false
}

type shaper struct {
	shape.Shape
	st       *statement
	args     []string
	onlyArgs bool
}

// add takes over the token at i, and those that belong to the same literal, and returns the next one.
func (s *shaper) add(i int) int {
	first, st := i, s.st
	if (st.sign(i, "-") || st.sign(i, "+")) && s.signHere(i) && i+1 < len(st.toks) &&
		st.toks[i+1].Kind == pgtoken.Number {
		i++
	}
	if !s.literal(i) {
		s.part(first, st.tok(first))
		return first + 1
	}
	for st.toks[i].Kind == pgtoken.String && i+1 < len(st.toks) && st.toks[i+1].Kind == pgtoken.String {
		i++ // 'a' 'b' on two lines is one string
	}
	s.part(first, "?")
	if len(s.args) < shape.MaxArgs {
		s.args = append(s.args, shape.Cut(st.text[st.toks[first].Start:st.toks[i].End]))
	}
	return i + 1
}

func (s *shaper) part(tok int, text string) {
	if s.onlyArgs {
		return
	}
	s.Add(text, tok > 0 && s.st.toks[tok-1].End == s.st.toks[tok].Start)
}

// literal reports whether a token is a literal or a parameter. NULL, TRUE and FALSE are literals where another
// one could stand in their place: not in IS NULL or NOT NULL.
func (s *shaper) literal(i int) bool {
	switch s.st.toks[i].Kind {
	case pgtoken.String, pgtoken.Number, pgtoken.Param:
		return true
	case pgtoken.Word:
		return s.st.is(i, "NULL", "TRUE", "FALSE") && i > 0 &&
			s.st.toks[i-1].Kind != pgtoken.Word && !s.st.mark(i-1, ")")
	}
	return false
}

// signHere reports whether a + or - is a sign, not an operator between two operands.
func (s *shaper) signHere(i int) bool {
	if i == 0 {
		return true
	}
	switch s.st.toks[i-1].Kind {
	case pgtoken.Mark:
		return !s.st.mark(i-1, ")") && !s.st.mark(i-1, "]")
	case pgtoken.Operator:
		return true
	case pgtoken.Word:
		return s.st.is(i-1, "SELECT", "BETWEEN", "AND", "OR", "NOT", "WHERE", "HAVING", "ON", "THEN", "ELSE", "WHEN",
			"CASE", "LIKE",
			"BY", "IN", "LIMIT", "OFFSET", "RETURNING", "TO")
	}
	return false
}

// sender returns what comments say of the client's program.
func (st *statement) sender() history.Sender {
	return rewrite.SenderOf(st.text, len(st.toks), func(i int) (start, end int) {
		return st.toks[i].Span()
	})
}
