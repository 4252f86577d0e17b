package mysql

import (
	"math"
	"strconv"
)

// A ConditionList is what SHOW WARNINGS or SHOW ERRORS asks for.
type ConditionList struct {
	Errors     bool // errors alone
	Skip, Take uint64
}

// ReadConditionList reads a text whose plan says [ListsConditions].
func ReadConditionList(text string, s *Session) ConditionList {
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	list := ConditionList{Errors: st.is(1, "ERRORS"), Take: math.MaxUint64}
	if !st.is(2, "LIMIT") {
		return list
	}
	list.Take = numberAt(st, 3)
	switch {
	case st.mark(4, ","):
		list.Skip, list.Take = list.Take, numberAt(st, 5)
	case st.is(4, "OFFSET"):
		list.Skip = numberAt(st, 5)
	}
	return list
}

// numberAt reads the token at i; none, where the server would not take it either.
func numberAt(st *statement, i int) uint64 {
	if i >= len(st.Tokens) {
		return 0
	}
	n, _ := strconv.ParseUint(st.tok(i), 10, 64)
	return n
}
