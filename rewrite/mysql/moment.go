package mysql

import (
	"strings"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// An asking is how a function that gives the time, to the second, is written for a statement that began at a given
// moment: before and after stand around that in seconds since 1970. It is of the function's own type.
type asking struct {
	before, after string
	bare          bool // SQL has it without parentheses, too
	clock         bool // it is a time of day
	param         int  // [rewrite.Moment]; or [rewrite.Within], with fractions of a second
}

// timeFunctions are those that give when the statement began, which another session can be told. With an argument they
// give fractions of a second; these are none.
var timeFunctions = map[string]*asking{
	"now":               {before: "FROM_UNIXTIME(", after: ")", param: rewrite.Moment},
	"current_timestamp": {before: "FROM_UNIXTIME(", after: ")", bare: true, param: rewrite.Moment},
	"localtime":         {before: "FROM_UNIXTIME(", after: ")", bare: true, param: rewrite.Moment},
	"localtimestamp":    {before: "FROM_UNIXTIME(", after: ")", bare: true, param: rewrite.Moment},
	"curdate":           {before: "DATE(FROM_UNIXTIME(", after: "))", param: rewrite.Moment},
	"current_date":      {before: "DATE(FROM_UNIXTIME(", after: "))", bare: true, param: rewrite.Moment},
	"curtime":           {before: "TIME(FROM_UNIXTIME(", after: "))", clock: true, param: rewrite.Moment},
	"current_time":      {before: "TIME(FROM_UNIXTIME(", after: "))", bare: true, clock: true, param: rewrite.Moment},
	"utc_timestamp": {before: "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true,
		param: rewrite.Moment},
	"utc_date": {before: "DATE(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true,
		param: rewrite.Moment},
	"utc_time": {before: "TIME(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)", bare: true,
		clock: true, param: rewrite.Moment},
	"unix_timestamp": {before: "(", after: ")", param: rewrite.Moment},
}

// fractionFunctions are those that give a moment while the statement ran, cut to so many digits of a second. Two
// moments that it lies between are known (within.go).
var fractionFunctions = map[string]*asking{
	"now":               {before: "FROM_UNIXTIME(", after: ")"},
	"current_timestamp": {before: "FROM_UNIXTIME(", after: ")"},
	"localtime":         {before: "FROM_UNIXTIME(", after: ")"},
	"localtimestamp":    {before: "FROM_UNIXTIME(", after: ")"},
	"sysdate":           {before: "FROM_UNIXTIME(", after: ")"},
	"utc_timestamp":     {before: "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ", after: " SECOND)"},
}

// asksForTime returns what stands at a token if it is a call of one of the timeFunctions or fractionFunctions, and the
// token behind it.
func (st *statement) asksForTime(i int) (asks *asking, end int) {
	if st.Tokens[i].Kind != mysqltoken.Word || st.mark(i-1, ".") {
		return nil, 0
	}
	name := strings.ToLower(st.tok(i))
	fraction := fractionFunctions[name]
	switch asks = timeFunctions[name]; {
	case st.mark(i+1, "."):
	case fraction != nil && st.mark(i+1, "(") && st.mark(i+3, ")") && st.Tokens[i+2].Kind == mysqltoken.Number:
		return fraction.cutTo(st.tok(i + 2)), i + 4
	case fraction != nil && asks == nil && st.mark(i+1, "(") && st.mark(i+2, ")"):
		return fraction.cutTo("0"), i + 3
	case asks == nil:
	case st.mark(i+1, "(") && st.mark(i+2, ")"):
		return asks, i + 3
	case asks.bare && !st.mark(i+1, "("):
		return asks, i + 1
	}
	return nil, 0
}

// cutTo returns what has so many digits of a second, and no more. The server refuses a number that is none.
func (a *asking) cutTo(digits string) *asking {
	return &asking{before: a.before + "TRUNCATE(", after: ", " + digits + ")" + a.after, param: rewrite.Within}
}

// countTimes returns how often these functions are called in a stretch of the text.
func (st *statement) countTimes(at span) (n int) {
	for i := at.from; i < at.to; i++ {
		if asks, _ := st.asksForTime(i); asks != nil {
			n++
		}
	}
	return n
}
