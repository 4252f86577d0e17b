package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// intoPrefix begins the names of the variables that hold the identities of a SELECT ... INTO.
const intoPrefix = "@isotap_i"

// intoVariables finds the clause INTO @a, @b of a SELECT, which the parser does not know. TiDB has none.
func (st *statement) intoVariables(s *Session) span {
	if s.Dialect == TiDB || !st.is(0, "SELECT", "WITH") {
		return span{}
	}
	into := st.find(1, st.last()+1, 0, "INTO")
	if into < 0 {
		return span{}
	}
	to := into + 1
	for ; to <= st.last() && st.Tokens[to].Kind == mysqltoken.Variable &&
		!strings.HasPrefix(st.tok(to), "@@"); to += 2 {
		if st.mark(to+1, ",") {
			continue
		}
		if to < st.last() && !st.is(to+1, behindInto...) {
			break // an expression is no variable: the server refuses it
		}
		return span{into, to + 1}
	}
	return span{}
}

// behindInto are the words that may stand behind the variables of INTO.
var behindInto = slices.Concat([]string{"FROM", "UNION", "INTERSECT", "EXCEPT", "MINUS"}, clauseEnds)

// keepInVariables makes a SELECT ... INTO put the identities, which stand behind its select list already,
// into variables behind the client's. They are the session's own until the next such statement.
func (pl *planner) keepInVariables() error {
	p := pl.plan
	if pl.into.empty() || p.Result.Reply != rewrite.Trimmed {
		return nil
	}
	if p.Result.Carried > 0 {
		return refusal(history.ReasonInto)
	}
	p.Result.Variables, p.Result.Reply = p.HiddenColumns(), rewrite.Unchanged
	var names strings.Builder
	for i := range p.Result.Variables {
		names.WriteString(", " + intoPrefix + strconv.Itoa(i+1))
	}
	pos, gap := pl.after(pl.into.to - 1)
	pl.insertAt(pos, text(names.String()+gap))
	return nil
}

// IntoRead is the query for the identities that a SELECT ... INTO left in so many variables. Its result is
// one row, in the form of [rewrite.Trimmed], without columns of the client's.
func IntoRead(variables int) string {
	b := []byte("SELECT ")
	for i := range variables {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, "CAST("+intoPrefix...), int64(i+1), 10)
		b = append(b, " AS BINARY)"...)
	}
	return string(append(b, " LIMIT 1"...))
}
