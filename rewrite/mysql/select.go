package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// selectRows appends the identity columns of every base table to the select list.
func (pl *planner) selectRows(n *ast.SelectStmt) error {
	b, use, err := pl.block(n)
	if err != nil {
		return err
	}
	if n.LockInfo != nil {
		pl.plan.Locking = locking(n.LockInfo.LockType)
	}
	switch {
	case n.From == nil:
		return pl.selectNothing(n, use)
	case b.list == nil:
		return pl.unobservable(b.srcs, use)
	}
	if err := pl.show(b); err != nil {
		return err
	}
	if err := pl.keepInVariables(); err != nil {
		return err
	}
	pl.chooseRead(n)
	pl.plan.Upstream.MayHideLocks = mayHideLocks(n, b.srcs) || b.grouped && skipsRows(n)
	if pl.rewriter.options.StrictPlans && (pl.plan.Upstream.MayHideLocks || n.GroupBy != nil) {
		return refusal(history.ReasonPlan)
	}
	return nil
}

// collapsing returns the reason why more columns would change which rows a SELECT returns.
func collapsing(n *ast.SelectStmt) history.Reason {
	switch {
	case n.Kind != ast.SelectStmtKindSelect:
		return history.ReasonUnparsable
	case n.SelectIntoOpt != nil:
		return history.ReasonInto
	case n.Distinct:
		return history.ReasonDistinct
	}
	return history.Reason{}
}

func locking(t ast.SelectLockType) history.Locking {
	switch t {
	case ast.SelectLockNone:
		return history.NoLock
	case ast.SelectLockForShare, ast.SelectLockForShareNoWait, ast.SelectLockForShareSkipLocked:
		return history.LockShare
	}
	return history.LockUpdate
}

// selectNothing plans a SELECT without a table.
func (pl *planner) selectNothing(n *ast.SelectStmt, u *usage) error {
	switch {
	case u.subquery:
		return refusal(history.ReasonSubquery)
	case u.function:
		return refusal(history.ReasonFunction)
	}
	pl.plan.Observation = history.Nothing
	if !pl.plan.Session.ReadsDiagnostics {
		return nil
	}
	if list, err := pl.selectList(n); err == nil {
		pl.substitute(n, list)
	}
	return nil
}

// unobservable plans a SELECT none of whose tables has isotap's columns.
func (pl *planner) unobservable(srcs sources, u *usage) error {
	if err := srcs.unobservable(); err != nil {
		return err
	}
	switch { // server tables only
	case u.subquery:
		return refusal(history.ReasonSubquery)
	case u.function:
		return refusal(history.ReasonFunction)
	}
	pl.plan.Observation = history.Nothing
	return nil
}

// positionBeyond reports whether ORDER BY or GROUP BY might name the position of a column that only the
// wider list has: the original fails then.
func positionBeyond(n *ast.SelectStmt, srcs sources) bool {
	columns := len(n.Fields.Fields) // a star is at least one
	if f := n.Fields.Fields[0]; f.WildCard != nil && len(srcs) == 1 && columns == 1 && srcs[0].table != nil {
		columns = len(visibleColumns(srcs[0].table))
	}
	beyond := func(item *ast.ByItem) bool {
		p, ok := item.Expr.(*ast.PositionExpr)
		return ok && p.N > columns
	}
	return n.OrderBy != nil && slices.ContainsFunc(n.OrderBy.Items, beyond) ||
		n.GroupBy != nil && slices.ContainsFunc(n.GroupBy.Items, beyond)
}

// show puts the identities behind the statement's select list.
func (pl *planner) show(b *block) error {
	shown := b.shown()
	if len(shown) == 0 {
		return refusal(history.ReasonNestedAggregate)
	}
	if pl.nesting.columns > 0 && pl.st.mentionsPrefix(rewrite.CarriedPrefix) {
		return refusal(history.ReasonOwnColumn)
	}
	var items strings.Builder
	for _, s := range shown {
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, s.source)
		for _, e := range s.expressions {
			if s.source.Array {
				e = binaryArray(e)
			}
			items.WriteString(", " + e)
		}
		if s.from.table == nil {
			pl.plan.Result.Carried += b.stars(s.from) * s.source.Columns()
		}
	}
	pl.appendToList(b, items.String())
	pl.plan.Result.Reply = rewrite.Trimmed
	pl.observed(b.n)
	return pl.changeCommon(b.n)
}

// selectList finds the select list in the text, and refuses when the parser saw its items begin
// elsewhere.
func (pl *planner) selectList(n *ast.SelectStmt) ([]item, error) {
	st := pl.st
	if len(n.Fields.Fields) == 0 {
		return nil, refusal(history.ReasonUnparsable)
	}
	first := st.tokenAt(n.Fields.Fields[0].Offset)
	verb := first - 1
	for verb >= 0 && st.Tokens[verb].Kind == mysqltoken.Word && !st.is(verb, "SELECT") {
		verb-- // ALL, SQL_NO_CACHE, ...
	}
	if verb < 0 || !st.is(verb, "SELECT") {
		return nil, refusal(history.ReasonUnparsable)
	}
	depth := st.Tokens[verb].Depth
	end := st.find(first, st.last()+1, depth, "FROM")
	if end < 0 && n.From == nil {
		if end = st.find(first, st.last()+1, depth, "WHERE", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK"); end < 0 {
			end = st.last() + 1
		}
	}
	if end < 0 {
		return nil, refusal(history.ReasonUnparsable)
	}
	if into := pl.into.from; !pl.into.empty() && first < into && into < end {
		end = into
	}
	var list []item
	for i := first; i < end; i++ {
		switch {
		case st.Tokens[i].Depth < depth:
			end = i // the parenthesis around the statement
		case st.Tokens[i].Depth == depth && st.mark(i, ","):
			list = append(list, item{first, i - 1})
			first = i + 1
		}
	}
	list = append(list, item{first, end - 1})
	return list, sameItems(st, list, n.Fields.Fields)
}

// sameItems refuses when lexer and parser disagree about where the items of a select list begin.
func sameItems(st *statement, list []item, fields []*ast.SelectField) error {
	if len(list) != len(fields) {
		return refusal(history.ReasonUnparsable)
	}
	for i, it := range list {
		if it.first > it.last || st.Tokens[it.first].Start != fields[i].Offset {
			return refusal(history.ReasonUnparsable)
		}
	}
	return nil
}

// substitute makes pieces in which ROW_COUNT() and FOUND_ROWS() are values, under the same column
// names. It leaves the plan without pieces where the name is not simply the item's text.
func (pl *planner) substitute(n *ast.SelectStmt, list []item) {
	st := pl.st
	for k, it := range list {
		if !pl.countsToHoles(it.first, it.last+1) || n.Fields.Fields[k].AsName.O != "" {
			continue
		}
		spelled := st.SQL[st.Tokens[it.first].Start:st.Tokens[it.last].End]
		if len(spelled) > maxItemName || strings.ContainsAny(spelled, "#\n") || strings.Contains(spelled, "/*") ||
			strings.Contains(spelled, "--") {
			pl.dropEdits()
			return
		}
		pos, gap := pl.after(it.last)
		pl.insertAt(pos, text(" AS "+quoted(spelled)+gap))
	}
	pl.plan.Upstream.Substitutes = slices.ContainsFunc(pl.edits, func(e edit) bool { return !e.plain })
}

// countsToHoles puts holes in the place of ROW_COUNT() and FOUND_ROWS() among the tokens [from, to), and
// reports whether there are any.
func (pl *planner) countsToHoles(from, to int) bool {
	st, found := pl.st, false
	for i := from; i+2 < to; i++ {
		hole := RowCountHole
		if st.is(i, "FOUND_ROWS") {
			hole = FoundRowsHole
		} else if !st.is(i, "ROW_COUNT") {
			continue
		}
		if st.mark(i+1, "(") && st.mark(i+2, ")") {
			pl.edits = append(pl.edits, edit{start: st.Tokens[i].Start, end: st.Tokens[i+2].End,
				pieces: []Piece{{Hole: hole}}})
			found = true
		}
	}
	return found
}

// substituteCounts makes ROW_COUNT() and FOUND_ROWS() values in statements that show no column names:
// assignments, writes and SELECT ... INTO.
func (pl *planner) substituteCounts() {
	st, p := pl.st, pl.plan
	silent := st.is(0, "SET", "DO", "CALL", "INSERT", "REPLACE", "UPDATE", "DELETE") ||
		st.is(0, "SELECT") && st.find(0, len(st.Tokens), 0, "INTO") >= 0
	if !p.Session.ReadsDiagnostics || p.Upstream.Substitutes || !silent {
		return
	}
	alone := len(pl.edits) == 0
	if pl.countsToHoles(0, len(st.Tokens)) && alone {
		p.Upstream.Substitutes = true
	}
}

// maxItemName is how long the server lets the name of a column without an alias be.
const maxItemName = 64

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
		if !st.mark(to+1, ",") {
			return span{into, to + 1}
		}
	}
	return span{}
}

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
