package sqltoken

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// An Equality is what a condition asks of a row at least: that a column holds a whole number.
type Equality struct {
	Of, Column string // as the condition spells them; Of is what stands before the dot, and empty where none does
	Value      int64
	Alone      bool // nothing else is asked
}

// doubtful is what equalities are not looked for beside: what is read otherwise under other settings, and comments.
var doubtful = map[dbms.Family][]string{
	dbms.MySQLFamily:      {`\`, `"`, "--", "/*", "#"},
	dbms.PostgreSQLFamily: {`\`, "--", "/*"},
}

// Equalities returns what a condition asks of whole numbers: each row that it holds for has them all. What stands
// within OR, CASE and BETWEEN is left out, and so is all else that may be meant otherwise.
func Equalities(family dbms.Family, condition string) []Equality {
	if slices.ContainsFunc(doubtful[family], func(s string) bool { return strings.Contains(condition, s) }) {
		return nil
	}
	tokens, err := Statement(family, condition)
	if err != nil {
		return nil
	}
	all := conjoined(nil, tokens)
	if len(all) == 1 {
		all[0].Alone = isEquality(unwrapped(tokens))
	}
	return all
}

func isEquality(tokens []Token) bool {
	_, ok := equality(tokens)
	return ok
}

// conjoined appends the equalities that all hold where a condition does.
func conjoined(all []Equality, tokens []Token) []Equality {
	tokens = unwrapped(tokens)
	if e, ok := equality(tokens); ok {
		return append(all, e)
	}
	parts, ok := conjuncts(tokens)
	if !ok || len(parts) == 1 {
		return all
	}
	for _, part := range parts {
		all = conjoined(all, part)
	}
	return all
}

// conjuncts cuts a condition at its ANDs; false where these may not be its outermost operators.
func conjuncts(tokens []Token) (parts [][]Token, ok bool) {
	depth, from := 0, 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth > 0:
		case t.Is("AND"):
			parts, from = append(parts, tokens[from:i]), i+1
		case t.Is("OR"), t.Is("XOR"), t.Is("BETWEEN"), t.Is("CASE"), strings.Contains(t.Text, "||") && t.Kind == Mark:
			return nil, false
		}
	}
	return append(parts, tokens[from:]), depth == 0
}

// unwrapped returns a condition without the parentheses around it.
func unwrapped(tokens []Token) []Token {
	for len(tokens) > 2 && tokens[0].Is("(") && closing(tokens) == len(tokens)-1 {
		tokens = tokens[1 : len(tokens)-1]
	}
	return tokens
}

// closing returns where the parenthesis closes that the first token opens; -1 where it does not.
func closing(tokens []Token) int {
	depth := 0
	for i, t := range tokens {
		if t.Is("(") {
			depth++
		} else if t.Is(")") {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// equality reads column = number, whichever comes first.
func equality(tokens []Token) (e Equality, ok bool) {
	at := slices.IndexFunc(tokens, func(t Token) bool { return t.Is("=") })
	if at < 0 {
		return e, false
	}
	column, number := tokens[:at], tokens[at+1:]
	if len(column) == 1 && isNumber(column[0]) {
		column, number = number, column
	}
	switch {
	case len(number) != 1:
		return e, false
	case len(column) == 1 && isName(column[0]):
		e.Column = column[0].Text
	case len(column) == 3 && isName(column[0]) && column[1].Is(".") && isName(column[2]):
		e.Of, e.Column = column[0].Text, column[2].Text
	default:
		return e, false
	}
	e.Value, ok = wholeNumber(number[0])
	return e, ok
}

func isName(t Token) bool {
	_, _, ok := t.Name()
	return ok && !isNumber(t)
}

func isNumber(t Token) bool {
	_, ok := wholeNumber(t)
	return ok
}

// maxDigits is how many digits a number has at most that every comparison is exact for.
const maxDigits = 15

// wholeNumber reads digits, in quotes or without.
func wholeNumber(t Token) (n int64, ok bool) {
	digits := t.Text
	if t.Kind == Quoted {
		digits, ok = strings.CutPrefix(strings.TrimPrefix(digits, "E"), "'")
		if !ok {
			return 0, false
		}
		digits = strings.TrimSuffix(digits, "'")
	}
	if len(digits) == 0 || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}
