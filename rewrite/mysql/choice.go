package mysql

import (
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// predicates returns what the statement chooses rows by, its literals in their places.
func (pl *planner) predicates() []rewrite.Predicate {
	c := pl.chosen
	if c == nil || pl.plan.Observation != history.Exact || !pl.session.SameInUTF8(pl.st.SQL) {
		return nil
	}
	p := rewrite.Predicate{Table: c.table, Of: c.of, As: c.as, Where: []string{""}}
	if c.limit > 0 {
		if p.Limit = pl.st.limitAt(c.limit); p.Limit == nil {
			return nil
		}
	}
	if c.from < c.to {
		p.Where, p.Params = pl.st.cutAtPlaceholders(c.from, c.to)
	}
	return []rewrite.Predicate{p}
}

// chooseRead takes note of the condition by which a SELECT chooses its rows, if it is of one table and shows every
// row that matches, as long as these are fewer than its limit.
func (pl *planner) chooseRead(n *ast.SelectStmt) {
	if n.Limit != nil && n.Limit.Offset != nil || n.With != nil || n.TableHints != nil || !pl.into.empty() || n.LockInfo != nil &&
		skips(n.LockInfo.LockType) {
		return
	}
	pl.choose(n.From, n.Where)
	if n.Limit == nil || pl.chosen == nil {
		return
	}
	if at := pl.st.find(1, pl.st.last()+1, 0, "LIMIT"); at >= 0 {
		pl.chosen.limit = at + 1
	} else {
		pl.chosen = nil // FETCH FIRST
	}
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

// choose takes note of a WHERE clause over one table, if its value hangs on the row alone.
func (pl *planner) choose(refs *ast.TableRefsClause, where ast.ExprNode) {
	name, err := onlyTable(refs, history.ReasonUnparsable)
	if err != nil || !pl.rewriter.options.Predicates || pl.session.Dialect == TiDB || pl.st.executable() >= 0 ||
		len(name.PartitionNames) > 0 || name.TableSample != nil || name.AsOf != nil {
		return
	}
	t, _ := pl.table(name)
	if t == nil {
		return
	}
	schema, as := name.Schema.O, name.Name.O
	if schema == "" {
		schema = pl.session.Schema
	}
	if source, ok := refs.TableRefs.Left.(*ast.TableSource); ok && source.AsName.O != "" {
		as = source.AsName.O
	}
	c := &choice{table: t.Name, of: quoted(schema) + "." + quoted(name.Name.O), as: quoted(as)}
	if where != nil {
		s := settling{table: t}
		where.Accept(&s)
		if s.unsettled || s.clock && s.temporal {
			return
		}
		if c.from, c.to = pl.st.whereClause(); c.from < 0 {
			return
		}
	}
	pl.chosen = c
}

// whereClause returns the tokens of a statement's own condition; from is -1 where there are none to be found.
func (st *statement) whereClause() (from, to int) {
	end := st.last() + 1
	if from = st.find(1, end, 0, "WHERE"); from < 0 {
		return -1, -1
	}
	from++
	if to = st.find(from, end, 0, "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK", "PROCEDURE", "INTO",
		"RETURNING"); to < 0 {
		to = end
	}
	if from == to {
		return -1, -1
	}
	return from, to
}

// cutAtPlaceholders returns the text of tokens [from, to), cut where placeholders stand, and the numbers of these in
// the statement, from 0.
func (st *statement) cutAtPlaceholders(from, to int) (texts []string, params []int) {
	before := st.placeholders(from)
	start := st.Tokens[from].Start
	for i := from; i < to; i++ {
		if st.Tokens[i].Kind == mysqltoken.Placeholder {
			texts, params = append(texts, st.SQL[start:st.Tokens[i].Start]), append(params, before+len(params))
			start = st.Tokens[i].End
		}
	}
	return append(texts, st.SQL[start:st.Tokens[to-1].End]), params
}

// A settling looks at a condition for what hangs on more than the row: other rows, the time, variables and settings of
// the session, functions that may be stored ones.
type settling struct {
	table     *Table
	unsettled bool
	// A time of day takes the current date where it is compared with a moment: with clock there is one in the
	// condition, with temporal what may be a moment.
	clock, temporal bool
}

// Enter implements ast.Visitor.
func (s *settling) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ColumnNameExpr:
		s.column(n.Name)
		return n, true
	case *ast.FuncCallExpr:
		s.temporal = true
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
	c := column(s.table, name.Name.O)
	if c == nil || c.Generated || name.Schema.O != "" {
		s.unsettled = true
		return
	}
	switch c.Type {
	case "time":
		s.clock = true
	case "date", "datetime", "timestamp":
		s.temporal = true
	}
	if value, _ := imageValue(c, ""); value == "" {
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
