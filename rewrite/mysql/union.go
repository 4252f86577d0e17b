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

// UNION compares whole rows, so no column may tell of one. A column that is an empty text in all rows leaves the
// duplicates what they are, and can collect the identities of the rows that its query reads in session variables, as
// writes do (ADR 62). Nothing is read a second time, so that this holds at every level. What the server may execute in
// another way with one more column, or end early, is left to a companion (ADR 17).

// maxCollected is how many bytes of identities a read collects, about as many as a companion may show rows: what is
// collected already is copied again and again.
const maxCollected = 512 << 10

// collectRows has a UNION collect the rows that its queries read. It reports whether it does; otherwise the planner is
// as it was.
func (pl *planner) collectRows(n *ast.SetOprStmt, arms []arm, operators []int) bool {
	st := pl.st
	if pl.session.Dialect == TiDB || pl.plan.Session.ReadsDiagnostics || pl.plan.Locking != history.NoLock || pl.rewriter.options.StrictPlans ||
		n.OrderBy != nil || n.Limit != nil || strings.Contains(st.SQL, "/*+") || st.executable() >= 0 ||
		st.find(0, len(st.Tokens), -1, "LIMIT", "FETCH", "OFFSET", "SQL_CALC_FOUND_ROWS") >= 0 ||
		slices.ContainsFunc(operators, func(i int) bool { return !st.is(i, "UNION") }) ||
		slices.ContainsFunc(st.Tokens, func(t mysqltoken.Token) bool { return t.Kind == mysqltoken.Variable }) {
		return false
	}
	c := &planner{rewriter: pl.rewriter, session: pl.session, st: st, plan: &Plan{Statement: pl.plan.Statement}}
	c.plan.Observation, c.plan.Reason = history.Exact, history.Reason{}
	var collecting [][]Piece
	for _, a := range arms {
		pieces, ok := c.collectArm(a)
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
	pl.plan.Result.Sources, pl.plan.Writes.Captured = c.plan.Result.Sources, true
	return true
}

// collectArm returns an expression that collects the rows of the tables of one of a UNION's queries, and is an empty
// text; nil where it has no tables. It reports whether the server surely reads them in the same way then.
func (pl *planner) collectArm(a arm) (pieces []Piece, ok bool) {
	n := a.node
	p := &planner{rewriter: pl.rewriter, session: pl.session, st: pl.st.part(a.from, a.to),
		plan: &Plan{Statement: rewrite.Statement{Observation: history.Exact}}}
	if n.Having != nil || n.OrderBy != nil || n.LockInfo != nil || n.TableHints != nil || n.With != nil {
		return nil, false
	}
	b, use, err := p.block(n)
	switch {
	case err != nil || b.grouped || use.window || len(p.edits) > 0 || pl.collectable(&Table{}) != nil:
		return nil, false
	case n.From == nil:
		return nil, !use.subquery && !use.function
	case b.list == nil || mayHideLocks(n, b.srcs):
		return nil, false
	}
	for _, s := range b.srcs {
		if base, is := s.node.Source.(*ast.TableName); !is || s.table == nil || !plainTable(base) ||
			pl.checkSpelling(s.name) != nil {
			return nil, false
		}
		rowID, list := identityEntry(quoted(s.name)+".", s.table.WListBytes)
		pieces = append(append(pieces, text(", ")), collect(rowID, list, maxCollected,
			", _binary'<="+strconv.Itoa(len(pl.plan.Result.Sources))+"'")...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Table: s.table.Name, Always: !s.outer})
	}
	if p.plan.Observation == history.Inexact {
		pl.downgrade(p.plan.Reason)
	}
	return slices.Concat([]Piece{text("CONCAT(_binary''")}, pieces, []Piece{text(")")}), true
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
