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

// UNION compares whole rows, as INTERSECT and EXCEPT do, so no column may tell of one. A column that is an empty text
// in all rows leaves the duplicates what they are. It can collect the identities of the rows that its query reads in
// session variables, as writes do (ADR 62). Nothing is read a second time, so that this holds at every level. What the
// server may execute in another way with one more column, or end early, is left to a companion (ADR 17).

// maxCollected is how many bytes of identities a read collects, about as many as a companion may show rows: what is
// collected already is copied again and again.
const maxCollected = 512 << 10

// collectRows has a set operation collect the rows that its queries read. It reports whether it does; otherwise the
// planner is as it was.
func (pl *planner) collectRows(n *ast.SetOprStmt, arms []arm, operators []int) bool {
	st := pl.st
	if pl.session.Dialect == TiDB || pl.plan.Session.ReadsDiagnostics || pl.plan.Locking != history.NoLock || pl.rewriter.options.StrictPlans ||
		strings.Contains(st.SQL, "/*+") || st.executable() >= 0 || st.find(0, len(st.Tokens), -1, "SQL_CALC_FOUND_ROWS") >= 0 ||
		slices.ContainsFunc(st.Tokens, func(t mysqltoken.Token) bool { return t.Kind == mysqltoken.Variable }) {
		return false
	}
	ordered := n.OrderBy != nil && ordersAll(n.OrderBy, arms)
	limit, ok := pl.limitOfAll(n)
	other := slices.ContainsFunc(operators, func(i int) bool { return !st.is(i, "UNION") })
	switch {
	case !ok, n.OrderBy != nil && !ordered:
		return false
	case other && (!ordered || pl.session.Dialect == MySQL):
		return false // what cannot be in the result is dropped there before the column is computed
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: st, plan: &Plan{Statement: pl.plan.Statement}}
	c.plan.Observation, c.plan.Reason = history.Exact, history.Reason{}
	var collecting [][]Piece
	for _, a := range arms {
		pieces, ok := c.collectArm(a, ordered)
		if !ok {
			return false
		}
		collecting = append(collecting, pieces)
	}
	if len(c.plan.Result.Sources) == 0 {
		return false
	}
	none := strconv.Itoa(len(c.plan.Result.Sources))
	for i, a := range arms {
		pieces := collecting[i]
		if pieces == nil {
			pieces = collect("_binary''", "_binary''", maxCollected, ", _binary'<="+none+"'")
		}
		if !c.appendColumn(a, pieces) {
			return false
		}
	}
	pl.edits = append(pl.edits, c.edits...)
	pl.plan.Observation, pl.plan.Reason = c.plan.Observation, c.plan.Reason
	pl.plan.Result.Reply, pl.plan.Result.Collects = rewrite.Trimmed, true
	pl.plan.Result.Sources, pl.plan.Writes.Captured, pl.plan.Writes.Beside = c.plan.Result.Sources, true, c.plan.Writes.Beside
	pl.plan.Upstream.Copies, pl.plan.Upstream.Repeats = c.plan.Upstream.Copies, len(c.plan.Writes.Beside) > 0
	pl.plan.Result.Limit, pl.plan.Upstream.MayHideLocks = limit, c.plan.Upstream.MayHideLocks
	pl.literal = pl.literal || limit != nil || pl.plan.Upstream.Repeats // copies hold literals
	return true
}

// ordersAll reports whether ORDER BY tells all rows of a UNION apart, which has no two that are equal: it names every
// column. Then they come in one order, however they were read.
func ordersAll(by *ast.OrderByClause, arms []arm) bool {
	if slices.ContainsFunc(arms[1:], func(a arm) bool { return a.all }) {
		return false
	}
	fields := arms[0].node.Fields.Fields
	named := make([]bool, len(fields))
	for _, item := range by.Items {
		at := -1
		switch e := item.Expr.(type) {
		case *ast.PositionExpr:
			if e.P == nil {
				at = e.N - 1
			}
		case *ast.ColumnNameExpr:
			if e.Name.Table.O == "" {
				at = fieldNamed(fields, e.Name.Name.L)
			}
		}
		if at < 0 || at >= len(fields) {
			return false
		}
		named[at] = true
	}
	return !slices.Contains(named, false) && !slices.ContainsFunc(fields, func(f *ast.SelectField) bool { return f.WildCard != nil })
}

// fieldNamed returns the only column of a select list that has a name; -1 where there is none, or several.
func fieldNamed(fields []*ast.SelectField, name string) int {
	at := -1
	for i, f := range fields {
		own := f.AsName.L
		if c, ok := f.Expr.(*ast.ColumnNameExpr); ok && own == "" {
			own = c.Name.Name.L
		}
		if own != name {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = i
	}
	return at
}

// limitOfAll returns the LIMIT of a set operation, nil where there is none. Of rows that it leaves out nobody knows
// whether they were read: where it does, the statement is inexact. It reports whether the limit is known and the only
// one, and skips no rows.
func (pl *planner) limitOfAll(n *ast.SetOprStmt) (limit *rewrite.Limit, ok bool) {
	st := pl.st
	at := st.find(0, len(st.Tokens), -1, "LIMIT", "FETCH", "OFFSET")
	if at < 0 {
		return nil, n.Limit == nil
	}
	if n.Limit == nil || n.Limit.Offset != nil || st.Tokens[at].Depth != 0 || !st.is(at, "LIMIT") || at+1 != st.last() {
		return nil, false
	}
	limit = st.limitAt(at + 1)
	return limit, limit != nil
}

// collectArm returns an expression that collects the rows of the tables of one of a UNION's queries, and is an empty
// text; nil where it has no tables. It reports whether the server surely reads them in the same way then, or at least
// shows the same where their order does not matter, since the rows are ordered.
func (pl *planner) collectArm(a arm, ordered bool) (pieces []Piece, ok bool) {
	n := a.node
	p := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st.part(a.from, a.to),
		plan: &Plan{Statement: rewrite.Statement{Observation: history.Exact}}}
	if n.From != nil && hasSubquery(n) {
		p.alone, p.oneOf = n, true
	}
	if n.Having != nil || n.OrderBy != nil || n.Limit != nil || n.LockInfo != nil || n.TableHints != nil || n.With != nil {
		return nil, false
	}
	b, use, err := p.block(n)
	switch {
	case err != nil || b.grouped || use.window || len(p.edits) > 0 || pl.collectable(&Table{}) != nil:
		return nil, false
	case n.From == nil:
		return nil, !use.subquery && !use.function
	case b.list == nil:
		return nil, false
	case mayHideLocks(n, b.srcs):
		if !ordered || slices.ContainsFunc(b.srcs, func(s *source) bool { return s.outer }) {
			return nil, false
		}
		pl.plan.Upstream.MayHideLocks = true
	}
	for _, s := range b.srcs {
		if base, is := s.node.Source.(*ast.TableName); !is || s.table == nil || !plainTable(base) ||
			pl.checkSpelling(s.name) != nil {
			return nil, false
		}
		if s.leftOut {
			continue
		}
		rowID, list := identityEntry(quoted(s.name)+".", s.table.WListBytes)
		pieces = append(append(pieces, text(", ")), collect(rowID, list, maxCollected,
			", _binary'<="+strconv.Itoa(len(pl.plan.Result.Sources))+"'")...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Table: s.table.Name, Always: !s.outer})
	}
	if p.plan.Observation == history.Inexact {
		pl.downgrade(p.plan.Reason)
	}
	beside, ok := pl.collectBeside(p)
	return slices.Concat([]Piece{text("CONCAT(_binary''")}, pieces, beside, []Piece{text(")")}), ok
}

// collectBeside returns what collects, as further arguments of CONCAT, what the subqueries of one of a UNION's queries
// read, which has that planner. What is the same for all its rows it collects once.
func (pl *planner) collectBeside(of *planner) (pieces []Piece, ok bool) {
	if len(of.besides) == 0 {
		return nil, true
	}
	for _, c := range of.besides {
		if pl.checkSpelling(c.of.name) != nil {
			return nil, false
		}
	}
	pl.plan.Upstream.Copies = append(pl.plan.Upstream.Copies, of.parameters...)
	query := []Piece{text("CONCAT("), tagPiece, text(", _binary'/" + strconv.Itoa(len(pl.plan.Writes.Beside)) + "')")}
	pieces = append([]Piece{text(", ")}, pl.collectingOnce(of.besides, query, maxCollected)...)
	return pieces, len(pl.plan.Writes.Beside) <= maxBesideColumns
}

// appendColumn puts a column behind those of one of a UNION's queries.
func (pl *planner) appendColumn(a arm, pieces []Piece) bool {
	p := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st.part(a.from, a.to), plan: &Plan{}}
	list, err := p.selectList(a.node)
	if err != nil {
		return false
	}
	pos, gap := p.after(list[len(list)-1].last)
	pl.insertAt(pos, slices.Concat([]Piece{text(", ")}, pieces, []Piece{text(gap)})...)
	return true
}
