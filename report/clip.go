package report

import "strings"

// minList is how many characters of a list of columns stay at least.
const minList = 12

// clipStatement returns a statement on one line of at most n characters. What is too long is cut in the list of columns
// first, for FROM and WHERE say more than the columns do: all of these go where there is no room. What is still too
// long is cut at its end.
func clipStatement(s string, n int) string {
	s = oneLine(s)
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	from := listEnd(runes)
	rest := len(runes) - from
	begins := listBegin(runes)
	switch {
	case from < 0, begins == 0, from <= begins+1 && rest+minList+len("SELECT …") > n, n < 2*minList+begins:
		return clip(s, n)
	case rest+minList+len("SELECT …") > n:
		head := string(runes[:begins]) + "…"
		return head + clip(string(runes[from:]), n-begins-1)
	}
	return strings.TrimRight(string(runes[:n-rest-1]), " ,") + "…" + string(runes[from:])
}

// listBegin returns where the list of columns of a SELECT begins, or of what an UPDATE sets.
func listBegin(s []rune) int {
	for i, r := range s {
		if r == ' ' && (keywordAt(s, 0, "SELECT") || keywordAt(s, max(0, i-len("SET")), "SET")) {
			return i + 1
		}
	}
	return 0
}

// listEnd returns where the list of columns of a SELECT ends, or of what an UPDATE sets: at the blank before its own
// FROM or WHERE. -1: it has none.
func listEnd(s []rune) int {
	depth, quote := 0, rune(0)
	for i, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ' ' && depth == 0 && i > 0 && (keywordAt(s, i+1, "FROM") || keywordAt(s, i+1, "WHERE")):
			return i
		}
	}
	return -1
}

// keywordAt reports whether a keyword, and nothing longer, stands at a place.
func keywordAt(s []rune, at int, keyword string) bool {
	end := at + len(keyword)
	return end < len(s) && s[end] == ' ' && strings.EqualFold(string(s[at:end]), keyword)
}
