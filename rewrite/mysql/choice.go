package mysql

import (
	"slices"
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A choice is the condition by which a statement chooses the rows of one table.
type choice struct {
	source *chosenSource
	// of are its parts, all of which hold for what is chosen; without any it is every row.
	of    []conjunct
	wide  bool // the statement does not tell every row that matches
	limit rowLimit
	order []rewrite.SortKey
	// instead says that it stands for the choice before it, where the moment that this asks for is not known.
	instead bool
}

// timed reports whether a part of it asks for the time.
func (c *choice) timed() bool {
	return slices.ContainsFunc(c.of, func(part conjunct) bool { return part.timed })
}

// ofAnyRow reports whether it chooses among no rows: any of the table would do, or none.
func (c *choice) ofAnyRow() bool {
	return !slices.ContainsFunc(c.of, func(part conjunct) bool { return !part.rowless })
}

// A conjunct is a part of a condition: tokens of the text, and what stands before them.
type conjunct struct {
	before string
	at     span
	timed  bool // it asks for the time
	// rowless says that it names no column: whether it holds is the same for all rows.
	rowless bool
}

// A rowLimit is the LIMIT that rows are under, by its tokens; 0: there is none.
type rowLimit struct {
	rows, offset int
	oneRow       bool // there is one row without it in any case
}

// predicates returns what the statement chooses rows by, its literals in their places. One that does not tell all that
// it read has wide ones only.
func (pl *planner) predicates() []rewrite.Predicate {
	if len(pl.chosen) == 0 || !pl.session.SameInUTF8(pl.st.SQL) {
		return nil
	}
	var all []rewrite.Predicate
	for _, c := range pl.chosen {
		p := rewrite.Predicate{Table: c.source.table.Name, Of: c.source.of, As: quoted(c.source.name),
			Wide: c.wide || pl.plan.Observation != history.Exact || pl.st.skipsRows(c.limit), Order: c.order,
			Instead: c.instead}
		var known bool
		if p.Limit, known = pl.st.limitOf(c.limit); !known {
			continue
		}
		if p.Where, p.Params = pl.st.conjunction(c.of); p.Wide && len(c.of) == 0 {
			continue // any row of the table would do
		}
		if p.Wide && slices.Contains(p.Params, rewrite.Within) {
			continue // it has to be known where it does not hold, too
		}
		all = append(all, p)
	}
	return all
}

// conjunction returns the text of a condition, cut where placeholders stand or the moment, and their numbers.
func (st *statement) conjunction(of []conjunct) (texts []string, params []int) {
	texts = []string{""}
	for i, c := range of {
		cut, numbers := st.cutAtParams(c.at.from, c.at.to, c.timed)
		cut[0] = c.before + cut[0]
		if len(of) > 1 {
			cut[0] = "(" + cut[0]
			cut[len(cut)-1] += ")"
		}
		if i > 0 {
			cut[0] = " AND " + cut[0]
		}
		texts[len(texts)-1] += cut[0]
		texts, params = append(texts, cut[1:]...), append(params, numbers...)
	}
	return texts, params
}

// skipsRows reports whether a limit may leave out the first rows.
func (st *statement) skipsRows(l rowLimit) bool { return l.offset > 0 && st.tok(l.offset) != "0" }

// limitOf returns a limit; nil where there is none. It reports whether it is known.
func (st *statement) limitOf(l rowLimit) (limit *rewrite.Limit, known bool) {
	if l.rows == 0 {
		return nil, true
	}
	limit = st.limitAt(l.rows)
	if l.oneRow && !st.skipsRows(l) && limit != nil && limit.Param < 0 && limit.Rows > 0 {
		return nil, true
	}
	return limit, limit != nil
}

// limitAt returns the limit that a token is: a number or a placeholder; nil for another.
func (st *statement) limitAt(at int) *rewrite.Limit {
	switch token := st.Tokens[at]; token.Kind {
	case mysqltoken.Placeholder:
		return &rewrite.Limit{Param: st.placeholders(at)}
	case mysqltoken.Number:
		if rows, err := strconv.ParseUint(st.SQL[token.Start:token.End], 10, 64); err == nil {
			return &rewrite.Limit{Rows: rows, Param: -1}
		}
	}
	return nil
}

// placeholders returns how many of them stand before a token.
func (st *statement) placeholders(at int) int {
	n := 0
	for _, token := range st.Tokens[:at] {
		if token.Kind == mysqltoken.Placeholder {
			n++
		}
	}
	return n
}

func skips(t ast.SelectLockType) bool {
	return t == ast.SelectLockForShareSkipLocked || t == ast.SelectLockForUpdateSkipLocked
}

// cutAtParams returns the text of tokens [from, to), cut where placeholders stand, and the numbers of these in the
// statement, from 0. Timed: what asks for the time is cut as well.
func (st *statement) cutAtParams(from, to int, timed bool) (texts []string, params []int) {
	number := st.placeholders(from)
	start, before := st.Tokens[from].Start, ""
	cut := func(at, end, param int, text string) {
		texts, params = append(texts, before+st.SQL[start:st.Tokens[at].Start]+text), append(params, param)
		start, before = st.Tokens[end-1].End, ""
	}
	for i := from; i < to; i++ {
		if st.Tokens[i].Kind == mysqltoken.Placeholder {
			cut(i, i+1, number, "")
			number++
		} else if asks, end := st.asksForTime(i); timed && asks != nil {
			cut(i, end, asks.param, asks.before)
			i, before = end-1, asks.after
		}
	}
	return append(texts, before+st.SQL[start:st.Tokens[to-1].End]), params
}

// A settling looks at a condition for what hangs on more than rows: other statements, the time but for what
// timeFunctions give, variables and settings of the session, functions that may be stored ones.
type settling struct {
	scope *scope
	// sources are those whose columns it names, those of queries around it too.
	sources map[*chosenSource]bool
	// unsettled says that it hangs on something else.
	unsettled bool
	// A time of day takes the current date where it is compared with a moment: with clock there is one in the
	// condition, with temporal what may be a moment.
	clock, temporal bool
	// timed is how often it asks for the time, within how often for a moment while the statement ran.
	timed, within int
}

// settle looks at a condition in a scope. It reports whether its value hangs on the rows of the sources alone, and on
// the time as often as it says.
func (in *scope) settle(condition ast.ExprNode) (s *settling, ok bool) {
	s = &settling{scope: in, sources: make(map[*chosenSource]bool)}
	condition.Accept(s)
	return s, !s.unsettled && !(s.clock && s.temporal) && (s.within == 0 || holdsBetween(condition))
}

// Enter implements ast.Visitor.
func (s *settling) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ColumnNameExpr:
		s.column(n.Name)
		return n, true
	case *ast.FuncCallExpr:
		if asks := timeFunctions[n.FnName.L]; asks != nil && n.Schema.L == "" && len(n.Args) == 0 {
			s.timed++
			s.clock, s.temporal = s.clock || asks.clock, s.temporal || !asks.clock
			return n, true
		}
		if s.temporal = true; momentWithin(n) {
			s.timed, s.within = s.timed+1, s.within+1
			return n, true
		}
		s.unsettled = s.unsettled || n.Schema.L != "" || !settledFunctions[n.FnName.L] && n.FnName.L[0] != '\''
	case *ast.FuncCastExpr:
		s.temporal = true
	case *ast.BinaryOperationExpr: // the digits of a quotient are a setting
		s.unsettled = s.unsettled || n.Op == opcode.Div
	case *ast.BetweenExpr, *ast.CaseExpr, *ast.WhenClause, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.ParenthesesExpr,
		*ast.PatternInExpr,
		*ast.PatternLikeOrIlikeExpr, *ast.PatternRegexpExpr, *ast.RowExpr, *ast.SetCollationExpr, *ast.TimeUnitExpr,
		*ast.TrimDirectionExpr,
		*ast.UnaryOperationExpr, *test_driver.ParamMarkerExpr, *test_driver.ValueExpr:
	default:
		s.unsettled = true
	}
	return n, s.unsettled
}

// Leave implements ast.Visitor.
func (s *settling) Leave(n ast.Node) (ast.Node, bool) { return n, !s.unsettled }

func (s *settling) column(name *ast.ColumnName) {
	source, c := s.scope.column(name)
	if c == nil || c.Generated {
		s.unsettled = true
		return
	}
	s.sources[source] = true
	switch c.Type {
	case "time":
		s.clock = true
	case "date", "datetime", "timestamp":
		s.temporal = true
	}
	if !hasImage(c) {
		s.unsettled = true
	}
}

// settledFunctions are common functions whose value hangs on their arguments alone, whatever these are.
var settledFunctions = set(`
	abs adddate ascii bit_count bit_length ceil ceiling char_length character_length coalesce concat concat_ws crc32 date date_add
	date_sub datediff day dayofmonth dayofweek dayofyear elt field find_in_set floor greatest hex hour if ifnull instr interval
	isnull json_contains json_extract json_length json_unquote json_valid json_value last_day lcase least left length locate lower
	lpad ltrim md5 mid minute mod month nullif octet_length ord position pow power quarter repeat replace reverse right round rpad
	rtrim second sha sha1 sha2 sign sqrt strcmp subdate substr substring substring_index to_days trim truncate ucase unhex upper
	weekday year
`)
