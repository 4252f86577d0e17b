package sqltoken

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// Shape cuts the shape of a recorded statement: SQL of the family in which a ? stands for each value, and nothing else
// is left out. That is no SQL of PostgreSQL's, where ? is a part of operators, so a shape is cut by these rules of its
// own:
//
//   - A value's ? is a Placeholder; no other token is. In PostgreSQL it is told from an operator's by its place: a
//     value stands where an operand is due, an operator between two operands. a=? ends with a value, in a ? ? the
//     first is an operator (jsonb's), and so it is in a ?| ?. Operators that are neither PostgreSQL's own nor of the
//     extensions that come with it are not known, and a ? between two words alone is taken for a value.
//   - What stands in double quotes is a name in the MySQL family too: a string would have become a ?.
//   - Two dashes begin a comment as the family's servers have it; ?--? of MySQL's has two values.
//   - A colon is a token by itself, whatever stands behind it.
//
// A shape that was cut off within a name or string ends before it.
func Shape(family dbms.Family, text string) []Token {
	r := reader{text: text, line: 1}
	if family == dbms.MySQLFamily {
		cut := mysqltoken.Scan(text, mysqltoken.Mode{ANSIQuotes: true})
		for _, t := range cut.Tokens {
			if cut.Open >= 0 && t.End > cut.Open {
				break
			}
			r.put(mysqlKind(text, t), t.Start, t.End)
		}
		return r.tokens
	}
	tokens, open := pgtoken.Scan(nil, text, false)
	if open >= 0 {
		tokens = slices.DeleteFunc(tokens, func(t pgtoken.Token) bool { return t.End > open })
	}
	for i, t := range tokens {
		switch {
		case t.Kind == pgtoken.Operator && strings.IndexByte(text[t.Start:t.End], '?') >= 0:
			r.addOperators(t, beginsOperand(text, tokens[:i], tokens[i+1:]))
		case t.Kind == pgtoken.Param:
			r.put(Mark, t.Start, t.End)
		default:
			r.put(pgKinds[t.Kind], t.Start, t.End)
		}
	}
	return r.tokens
}

// Values returns where the values of a shape stand: the offsets of their question marks.
func Values(family dbms.Family, shape string) []int {
	var all []int
	for _, t := range Shape(family, shape) {
		if t.Kind == Placeholder {
			all = append(all, t.Start)
		}
	}
	return all
}

// Fill returns a shape with texts in place of its values, which stand at these places. There is one for each.
func Fill(shape string, values []int, texts []string) string {
	var b strings.Builder
	from := 0
	for i, at := range values {
		b.WriteString(shape[from:at] + texts[i])
		from = at + 1
	}
	b.WriteString(shape[from:])
	return b.String()
}

// FillText returns the text of a statement with values in the places of its placeholders: PostgreSQL's name them, those
// of the MySQL family take them in their order. It reports whether there is a value, which is not empty, for each.
func FillText(family dbms.Family, text string, values []string) (string, bool) {
	if len(values) == 0 {
		return text, true
	}
	tokens, err := Statement(family, text)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	from, next := 0, 0
	for _, t := range tokens {
		if t.Kind != Placeholder {
			continue
		}
		at := next
		if next++; family == dbms.PostgreSQLFamily {
			n, err := strconv.Atoi(t.Text[1:])
			if err != nil {
				return "", false
			}
			at = n - 1
		}
		if at < 0 || at >= len(values) || values[at] == "" {
			return "", false
		}
		b.WriteString(text[from:t.Start] + values[at])
		from = t.End
	}
	b.WriteString(text[from:])
	return b.String(), true
}

// Name returns the name that a token of a shape or statement is, as it is written between its quotes if it has any, and
// where that begins. A keyword is one, too; a string, an operator and a value are none.
func (t Token) Name() (name string, start int, ok bool) {
	switch {
	case t.Kind == Word:
		return t.Text, t.Start, true
	case t.Kind != Quoted:
		return "", 0, false
	}
	from := strings.IndexAny(t.Text, "`\"'$")
	if quote := t.Text[from]; quote != '`' && quote != '"' {
		return "", 0, false
	}
	return t.Text[from+1 : len(t.Text)-1], t.Start + from + 1, true
}

// addOperators adds a run of characters that operators of PostgreSQL's are made of, with the values among them. Operand
// says that an operand follows.
func (r *reader) addOperators(run pgtoken.Token, operand bool) {
	behind := endsOperand(r.tokens)
	at := run.Start
	for _, n := range divide(r.text[run.Start:run.End], behind, operand) {
		kind, end := Mark, at+n
		if n == value {
			kind, end = Placeholder, at+1
		}
		r.put(kind, at, end)
		at = end
	}
}

// endsOperand reports whether an operand of an expression can end with the last of PostgreSQL's tokens.
func endsOperand(tokens []Token) bool {
	n := len(tokens) - 1
	if n < 0 {
		return false
	}
	switch t := tokens[n]; t.Kind {
	case Word:
		return !besideOperands[strings.ToUpper(t.Text)] || n > 0 && tokens[n-1].Text == "::"
	case Mark:
		return t.Text == ")" || t.Text == "]" || t.Text[0] == '$'
	}
	return true
}

// beginsOperand reports whether an operand of an expression begins behind a run of operator characters. Of a word alone
// behind a value that a word stands before, it is not likely: INCREMENT ? START ?.
func beginsOperand(text string, before, behind []pgtoken.Token) bool {
	if len(behind) == 0 {
		return false
	}
	next := text[behind[0].Start:behind[0].End]
	switch behind[0].Kind {
	case pgtoken.Word:
		between := len(before) > 0 && before[len(before)-1].Kind == pgtoken.Word
		call := len(behind) > 1 && strings.IndexByte("(.", text[behind[1].Start]) >= 0
		return !besideOperands[strings.ToUpper(next)] && (call || !between)
	case pgtoken.Mark:
		return next == "("
	case pgtoken.Operator:
		return next[0] == '?'
	}
	return true
}

// besideOperands are words of PostgreSQL's that are no operand where a value stands beside them: what begins and ends
// clauses, operators, and types that literals are written behind.
var besideOperands = words(`SELECT ALL DISTINCT FROM WHERE HAVING ON USING AND OR NOT WHEN THEN ELSE END IN LIKE ILIKE
	SIMILAR TO BETWEEN SYMMETRIC LIMIT OFFSET FETCH FOR BY SET RETURNING VALUES AS IS ISNULL NOTNULL UNION INTERSECT
	EXCEPT JOIN LEFT RIGHT FULL INNER CROSS NATURAL ORDER GROUP WINDOW OVER PARTITION ROWS RANGE GROUPS PRECEDING
	FOLLOWING ASC DESC NULLS COLLATE ESCAPE AT ZONE UESCAPE DEFAULT WITH INTO OVERLAPS OPERATOR
	DATE TIME TIMESTAMP TIMESTAMPTZ INTERVAL YEAR MONTH DAY HOUR MINUTE SECOND JSON JSONB UUID`)

func words(list string) map[string]bool {
	all := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		all[w] = true
	}
	return all
}

// operators are those of PostgreSQL and its hstore and ltree that hold a question mark, the longer ones first.
var operators = []string{"?||", "?-|", "?@>", "?<@", "?|", "?&", "?#", "?-", "?~", "?@", "@?", "?"}

// value is the piece of a run that is a value's question mark. Other pieces are operators, by their lengths.
const value = -1

// divide takes a run of operator characters apart into operators and values. Behind says that an operand stands before
// it, before that it stands before one. Where no division fits both, one of the two was no operand; what cannot be
// divided at all is one operator.
func divide(run string, behind, before bool) []int {
	for _, beside := range [][2]bool{{behind, before}, {false, before}, {behind, !before}, {false, !before}} {
		if pieces := division(run, beside[0], beside[1]); pieces != nil {
			return pieces
		}
	}
	return []int{len(run)}
}

// division takes a run apart so that operators stand between operands or before one; nil if it cannot.
func division(run string, behind, before bool) []int {
	// By what stands before a place in the run, whether that is an operand: the piece that is next on a way to the end,
	// 0 for none.
	var next [2][]int
	for b := range next {
		next[b] = make([]int, len(run)+1)
	}
	if next[no][len(run)] = 1; !before {
		next[no][len(run)], next[yes][len(run)] = 0, 1
	}
	for at := len(run) - 1; at >= 0; at-- {
		rest := run[at:]
		if rest[0] == '?' {
			if next[yes][at+1] != 0 {
				next[no][at] = value
			}
		} else if n := strings.IndexByte(rest+"?", '?'); next[no][at+n] != 0 {
			next[no][at], next[yes][at] = n, n
		}
		for _, op := range operators {
			if next[yes][at] == 0 && strings.HasPrefix(rest, op) && next[no][at+len(op)] != 0 {
				next[yes][at] = len(op)
			}
		}
	}
	var pieces []int
	operand := no
	if behind {
		operand = yes
	}
	for at := 0; at < len(run); {
		n := next[operand][at]
		switch n {
		case 0:
			return nil
		case value:
			at, operand = at+1, yes
		default:
			at, operand = at+n, no
		}
		pieces = append(pieces, n)
	}
	return pieces
}

const (
	no = iota
	yes
)
