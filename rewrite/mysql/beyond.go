package mysql

import (
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A span is a run of tokens [from, to); it is empty where a statement has no such part.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// beyond is what the parser does not know of a write, and the lexer finds.
type beyond struct {
	rowAlias  span // MySQL: AS new or AS new(a, b), behind the rows of an INSERT
	returning span // MariaDB: RETURNING and its list
}

// beyondParser finds the clauses of the session's dialect that the parser does not know.
func (st *statement) beyondParser(s *Session) beyond {
	var b beyond
	switch s.Dialect {
	case MariaDB:
		if st.is(0, "INSERT", "REPLACE", "DELETE") {
			if i := st.find(1, st.last()+1, 0, "RETURNING"); i >= 0 {
				b.returning = span{i, st.last() + 1}
			}
		}
	case MySQL:
		b.rowAlias = st.rowAlias()
	}
	return b
}

// rowAlias finds AS new(a, b) in an INSERT of rows.
func (st *statement) rowAlias() span {
	end := st.last() + 1
	if !st.is(0, "INSERT") || st.find(1, end, 0, "SELECT", "TABLE", "WITH") >= 0 {
		return span{}
	}
	if on := st.onDuplicate(); on >= 0 {
		end = on
	}
	as := st.find(1, end, 0, "AS")
	if as < 0 || as+1 >= end || st.Tokens[as+1].Kind != mysqltoken.Word && st.Tokens[as+1].Kind != mysqltoken.Name {
		return span{}
	}
	if as+2 != end && st.group(as+2) != end-1 {
		return span{}
	}
	return span{as, end}
}

// onDuplicate returns the token ON of ON DUPLICATE KEY UPDATE; -1 if there is none.
func (st *statement) onDuplicate() int {
	for i := 1; i <= st.last(); i++ {
		if st.Tokens[i].Depth == 0 && st.is(i, "ON") && st.is(i+1, "DUPLICATE") && st.is(i+2, "KEY") &&
			st.is(i+3, "UPDATE") {
			return i
		}
	}
	return -1
}

// without returns a text, of this statement or of its length, with blanks in the place of spans.
func (st *statement) without(text string, spans ...span) string {
	for _, s := range spans {
		if !s.empty() {
			from, to := st.Tokens[s.from].Start, st.Tokens[s.to-1].End
			text = text[:from] + strings.Repeat(" ", to-from) + text[to:]
		}
	}
	return text
}

// lowerByReturning lowers the plan for what the client's RETURNING does beside returning columns.
func (pl *planner) lowerByReturning() {
	list, v := pl.beyond.returning, verb{st: pl.st, session: pl.session}
	if list.empty() {
		return
	}
	if pl.st.find(list.from, list.to, -1, "SELECT") >= 0 {
		pl.lower(history.ReasonSubquery)
	}
	for i := list.from + 1; i+1 < list.to; i++ {
		if pl.st.mark(i+1, "(") && !v.nativeCall(i) {
			pl.lower(history.ReasonFunction)
		}
	}
}
