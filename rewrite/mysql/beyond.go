package mysql

import (
	"strings"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

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

// beyondRead is what the parser does not know of a SELECT, and the lexer finds: both are MariaDB's, stand
// at its end, and say nothing about columns.
type beyondRead struct {
	lockWait span // NOWAIT, WAIT n or SKIP LOCKED behind LOCK IN SHARE MODE
	fetch    span // OFFSET n ROWS, FETCH FIRST n ROWS ONLY
}

// beyondRead finds the clauses of a SELECT that the parser does not know.
func (st *statement) beyondRead(s *Session) beyondRead {
	if s.Dialect != MariaDB || !st.is(0, "SELECT", "WITH") {
		return beyondRead{}
	}
	return beyondRead{lockWait: st.lockWait(), fetch: st.fetch()}
}

// lockWait finds what stands behind LOCK IN SHARE MODE, if that is the statement's end.
func (st *statement) lockWait() span {
	end := st.last() + 1
	for i := 1; i+3 < end; i++ {
		if st.Tokens[i].Depth != 0 || !st.is(i, "LOCK") || !st.is(i+1, "IN") || !st.is(i+2, "SHARE") ||
			!st.is(i+3, "MODE") {
			continue
		}
		from := i + 4
		if st.is(from, "NOWAIT") && from+1 == end || st.is(from, "SKIP") && st.is(from+1, "LOCKED") && from+2 == end ||
			st.is(from, "WAIT") && from+2 == end {
			return span{from, end}
		}
	}
	return span{}
}

// fetch finds the clauses of standard SQL in the place of LIMIT.
func (st *statement) fetch() span {
	end := st.last() + 1
	for i := 1; i+2 < end; i++ {
		if st.Tokens[i].Depth != 0 || st.Tokens[i].Kind != mysqltoken.Word {
			continue
		}
		to := i
		if st.is(i, "OFFSET") && st.is(i+2, "ROW", "ROWS") {
			to += 3
		}
		if st.is(to, "FETCH") && st.is(to+1, "FIRST", "NEXT") {
			to += 2
			if !st.is(to, "ROW", "ROWS") {
				to++
			}
			if to++; st.is(to, "ONLY") {
				to++
			} else {
				to += 2 // WITH TIES
			}
		}
		if to > i && to <= end {
			return span{i, to}
		}
	}
	return span{}
}

// known returns a text of the statement's length in which the parser knows every clause: FETCH has a LIMIT
// in its place, since that is what it is to the planner.
func (b beyondRead) known(st *statement, text string) string {
	text = st.without(text, b.lockWait, b.fetch)
	if b.fetch.empty() {
		return text
	}
	const limit = "LIMIT 1"
	from := st.Tokens[b.fetch.from].Start
	return text[:from] + limit + text[from+len(limit):]
}

// mayHaveWindows reports whether the statement may hold a window function. Only then is it read with the
// words of window functions as keywords: some of them (rank, groups, ...) are not reserved in MariaDB.
func (st *statement) mayHaveWindows() bool { return st.find(0, len(st.Tokens), -1, "OVER") >= 0 }
