package analyzer

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// mayHaveWritten reports whether a statement may have written rows without leaving its tag: a procedure, a trigger,
// a cascade, or whatever else was not observed. Of a SELECT that was not, it must be known why.
func mayHaveWritten(s *history.Stmt, sh shape) bool {
	switch s.Observation {
	case history.Nothing, history.Exact:
		return false
	}
	switch s.Kind {
	case history.Insert, history.Update, history.Delete, history.Replace, history.Merge, history.Copy:
		return !s.Void
	case history.Select:
		known := s.Observation == history.Inexact || s.Reason.TablesKnown()
		return sh.calls || !known
	}
	return true
}

// calls reports whether a statement has a call of what is not surely the server's own function.
func calls(words []word) bool {
	for i := range words[:max(0, len(words)-1)] {
		if next := &words[i+1]; next.text == "(" && words[i].name &&
			!slices.Contains(beforeParenthesis, strings.ToUpper(words[i].text)) {
			return true
		}
	}
	return false
}

// beforeParenthesis are the words and the most usual functions that may stand before a parenthesis.
var beforeParenthesis = []string{"ALL", "AND", "ANY", "AS", "AVG", "BETWEEN", "BY", "CAST", "COALESCE", "CONCAT",
	"COUNT", "DATE",
	"DISTINCT", "ELSE", "EXCEPT", "EXISTS", "FROM", "GREATEST", "GROUP_CONCAT", "HAVING", "IF", "IFNULL", "IN",
	"INTERSECT", "JOIN",
	"JSON_ARRAYAGG", "LEAST", "LENGTH", "LIKE", "LOWER", "MAX", "MIN", "MOD", "NOT", "NOW", "NULLIF", "ON", "OR",
	"OVER", "RANK", "ROUND",
	"ROW_NUMBER", "SELECT", "SUM", "THEN", "UNION", "UPPER", "USING", "VALUES", "WHEN", "WHERE", "YEAR"}

// locksSome reports whether a locking clause names the tables that it is for, or lets others write the rows
// all the same (FOR KEY SHARE).
func locksSome(words []word) bool {
	for i := range words {
		if !words[i].keyword("FOR") {
			continue
		}
		rest := words[i+1:]
		switch {
		case startWith(rest, "KEY", "SHARE"), startWith(rest, "UPDATE", "OF"), startWith(rest, "SHARE", "OF"),
			startWith(rest, "NO", "KEY", "UPDATE", "OF"):
			return true
		}
	}
	return false
}

func startWith(words []word, first ...string) bool {
	return len(words) >= len(first) && slices.EqualFunc(words[:len(first)], first,
		func(w word, upper string) bool { return w.keyword(upper) })
}
