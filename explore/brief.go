package explore

import (
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// What is shown of a statement.
const (
	maxList  = 60  // bytes of what stands between SELECT and FROM
	maxJoins = 300 // of a statement, before its joins are left out
	maxValue = 80  // of a string
)

// brief returns a statement as people want to read it: without long lists of what a query shows, and without joins
// where there are many. What it chooses rows from, and by, stays.
func brief(family dbms.Family, text string) string {
	text = withoutLists(family, text)
	if len(text) > maxJoins {
		text = withoutJoins(family, text)
	}
	return text
}

// withoutLists leaves out what stands between a SELECT and its FROM, where that is long, and the rest of long strings.
func withoutLists(family dbms.Family, text string) string {
	tokens, err := sqltoken.Statement(family, text)
	if err != nil {
		return text
	}
	var b strings.Builder
	from := 0
	leave := func(start, end int, instead string) {
		b.WriteString(text[from:start] + instead)
		from = end
	}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if t.Kind == sqltoken.Quoted && t.Text[0] == '\'' && len(t.Text) > maxValue {
			leave(t.Start+maxValue, t.End, "...'")
		}
		if !t.Is("SELECT") {
			continue
		}
		begin := i + 1
		for begin < len(tokens) && (tokens[begin].Is("DISTINCT") || tokens[begin].Is("ALL")) {
			begin++
		}
		if end := endOfList(tokens, begin); end > begin && tokens[end-1].End-tokens[begin].Start > maxList {
			leave(tokens[begin].Start, tokens[end-1].End, "...")
			i = end - 1
		}
	}
	return b.String() + text[from:]
}

// endOfList returns the place of the FROM that ends what a SELECT shows; begin where there is none.
func endOfList(tokens []sqltoken.Token, begin int) int {
	depth := 0
	for i := begin; i < len(tokens); i++ {
		switch {
		case tokens[i].Is("("):
			depth++
		case tokens[i].Is(")"):
			if depth--; depth < 0 {
				return begin
			}
		case depth == 0 && tokens[i].Is("FROM"):
			return i
		}
	}
	return begin
}

// withoutJoins leaves out the joins of each query, from the first one to what follows them.
func withoutJoins(family dbms.Family, text string) string {
	tokens, err := sqltoken.Statement(family, text)
	if err != nil {
		return text
	}
	var b strings.Builder
	from, depth := 0, 0
	begun, at := -1, 0 // where the joins begin that are left out, and at which depth
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		}
		switch {
		case begun < 0 && t.Is("JOIN"):
			begun, at = i, depth
			for begun > 0 && isJoinWord(tokens[begun-1]) {
				begun--
			}
		case begun >= 0 && (depth < at || depth == at && endsJoins(t)):
			b.WriteString(text[from:tokens[begun].Start] + "JOIN ...")
			from, begun = tokens[i-1].End, -1
		}
	}
	if begun >= 0 {
		return b.String() + text[from:tokens[begun].Start] + "JOIN ..."
	}
	return b.String() + text[from:]
}

func isJoinWord(t sqltoken.Token) bool {
	for _, word := range []string{"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL"} {
		if t.Is(word) {
			return true
		}
	}
	return false
}

func endsJoins(t sqltoken.Token) bool {
	for _, word := range []string{"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "UNION"} {
		if t.Is(word) {
			return true
		}
	}
	return false
}
