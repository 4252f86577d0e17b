package mysql

import (
	"strings"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// An asking is how a function that gives the time, to the second, is written for a statement that began at a given
// moment: before and after stand around that in seconds since 1970. It is of the function's own type.
type asking struct {
	before, after string
	bare          bool // SQL has it without parentheses, too
	clock         bool // it is a time of day
}

// timeFunctions are those that give when the statement began, which another session can be told. With an argument they
// give fractions of a second; these are none.
var timeFunctions = map[string]*asking{
	"now":               {before: "FROM_UNIXTIME(", after: ")"},
	"current_timestamp": {before: "FROM_UNIXTIME(", after: ")", bare: true},
	"localtime":         {before: "FROM_UNIXTIME(", after: ")", bare: true},
	"localtimestamp":    {before: "FROM_UNIXTIME(", after: ")", bare: true},
	"curdate":           {before: "DATE(FROM_UNIXTIME(", after: "))"},
	"current_date":      {before: "DATE(FROM_UNIXTIME(", after: "))", bare: true},
	"curtime":           {before: "TIME(FROM_UNIXTIME(", after: "))", clock: true},
	"current_time":      {before: "TIME(FROM_UNIXTIME(", after: "))", bare: true, clock: true},
	"utc_timestamp":     {before: "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true},
	"utc_date":          {before: "DATE(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true},
	"utc_time": {before: "TIME(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true,
		clock: true},
	"unix_timestamp": {before: "(", after: ")"},
}

// asksForTime returns what stands at a token if it is a call of one of the timeFunctions, and the token behind it.
func (st *statement) asksForTime(i int) (asks *asking, end int) {
	if st.Tokens[i].Kind != mysqltoken.Word || st.mark(i-1, ".") {
		return nil, 0
	}
	switch asks = timeFunctions[strings.ToLower(st.tok(i))]; {
	case asks == nil, st.mark(i+1, "."):
	case st.mark(i+1, "(") && st.mark(i+2, ")"):
		return asks, i + 3
	case asks.bare && !st.mark(i+1, "("):
		return asks, i + 1
	}
	return nil, 0
}

// countTimes returns how often timeFunctions are called in a stretch of the text.
func (st *statement) countTimes(at span) (n int) {
	for i := at.from; i < at.to; i++ {
		if asks, _ := st.asksForTime(i); asks != nil {
			n++
		}
	}
	return n
}
