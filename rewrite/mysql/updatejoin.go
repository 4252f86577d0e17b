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

// The first servers that make a join of an UPDATE of one table with a subquery in its condition.
const (
	mySQLJoinsUpdate   = 80021
	mariaDBJoinsUpdate = 110100
)

// makesJoin reports whether the server may make a join of an UPDATE of one table, which it then evaluates as
// it does those of several. MariaDB does so wherever a subquery reads that table (MDEV-12137), and otherwise, as MySQL
// does, to make a semi-join of a subquery in its condition; MySQL leaves those with ORDER BY or LIMIT alone.
func (pl *planner) makesJoin(n *ast.UpdateStmt) bool {
	since := uint32(mySQLJoinsUpdate)
	if pl.session.Dialect == MariaDB {
		if pl.readsTarget(n) {
			return true
		}
		since = mariaDBJoinsUpdate
	} else if n.Order != nil || n.Limit != nil {
		return false
	}
	if n.Where == nil || pl.session.Version != 0 && pl.session.Version < since {
		return false
	}
	var v semiJoins
	n.Where.Accept(&v)
	return v.found
}

// readsTarget reports whether a subquery of an UPDATE of one table may read that table.
func (pl *planner) readsTarget(n *ast.UpdateStmt) bool {
	target, err := onlyTable(n.TableRefs, history.ReasonUnparsable)
	if err != nil {
		return true
	}
	t, _ := pl.table(target)
	v := targetReads{planner: pl, target: t}
	n.Accept(&v)
	return v.found
}

// targetReads looks for a table in subqueries. One that is not known, such as a view, may be or read that table.
type targetReads struct {
	*planner
	target *Table
	depth  int // of subqueries
	found  bool
}

// Enter implements ast.Visitor.
func (v *targetReads) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		v.depth++
	case *ast.TableName:
		if v.depth > 0 {
			t, why := v.table(n)
			v.found = v.found || t == v.target || why == history.ReasonUnknownTable || why == history.ReasonView
		}
	}
	return n, v.found
}

// Leave implements ast.Visitor.
func (v *targetReads) Leave(n ast.Node) (ast.Node, bool) {
	if _, ok := n.(*ast.SubqueryExpr); ok {
		v.depth--
	}
	return n, true
}

// semiJoins looks for subqueries of which a server may make a join.
type semiJoins struct{ found bool }

// Enter implements ast.Visitor.
func (v *semiJoins) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.PatternInExpr:
		v.found = v.found || n.Sel != nil
	case *ast.ExistsSubqueryExpr, *ast.CompareSubqueryExpr:
		v.found = true
	case *ast.SubqueryExpr:
		return n, true
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *semiJoins) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// updateJoined makes an UPDATE of joined tables collect and tag the rows that it changes. A server writes
// the rows of one table while it joins, each once, and collects what to write into the others in a
// temporary table, of which the first value for a row counts. Assignments of isotap's that come before
// the client's see the row as it was in either case, so that it stays as it is must follow from the
// client's assignments. what is the reason for which it is refused otherwise.
func (pl *planner) updateJoined(n *ast.UpdateStmt, what history.Reason) error {
	switch {
	case n.IgnoreErr:
		return refusal(history.ReasonUpdateIgnore)
	case !pl.session.Strict:
		return refusal(history.ReasonNotStrict) // a value that does not fit becomes another
	case n.Order != nil || n.Limit != nil:
		return refusal(history.ReasonOrderByOrLimit)
	case pl.st.mentions(rewrite.RowIDColumn) || pl.st.mentions(rewrite.WListColumn):
		return refusal(history.ReasonOwnColumn)
	case pl.session.SimultaneousAssignment:
		return refusal(history.ReasonModeSimultaneous)
	}
	srcs := flatten(n.TableRefs.TableRefs)
	if err := pl.resolveBase(srcs); err != nil {
		return err
	}
	set, end, err := pl.assignments()
	if err != nil {
		return err
	}
	j := judge{planner: pl, sources: srcs}
	same, err := j.staysSame(n.List, set+1, end)
	if err == refusal(history.ReasonAssignment) {
		return refusal(what)
	}
	if err != nil {
		return err
	}
	var targets sources
	for i, s := range srcs {
		if same[i] != nil {
			targets = append(targets, s)
		}
	}
	if err := pl.separate(targets, j.assigned, set, end); err != nil {
		return err
	}
	var pieces []Piece
	for i, s := range srcs {
		if same[i] == nil {
			continue
		}
		c := rowCapture{of: srcs.qualifier(s), same: same[i], wlistBytes: s.table.WListBytes,
			limit: pl.session.maxPacket() / 4}
		if len(targets) == 1 {
			pl.imageJoined(&c, s, j.assigned, j.gets)
		}
		c.part = "_binary'" + strconv.Itoa(len(pl.plan.Result.Sources)) + "'"
		pieces = slices.Concat(pieces, []Piece{text(" ")}, c.tag(), []Piece{text(",")})
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Table: s.table.Name})
	}
	pos, gap := pl.after(set)
	pl.insertAt(pos, append(pieces, text(gap))...)
	pl.plan.Writes.Captured = true
	if len(srcs) == 1 {
		pl.plan.Target = srcs[0].table.Name
	} else if len(targets) < len(srcs) {
		pl.downgrade(history.ReasonJoinedUpdate) // what it reads of the others is not observed
	}
	use := inspectWrite(n)
	use.subquery = use.subquery && !pl.readsNone(n, n.Where, srcs) && !pl.showsBehind(n, srcs, end)
	pl.downgradeBy(use)
	return nil
}

// showsBehind has an UPDATE of one table, of which the server makes a join, show what its subqueries read, at READ
// COMMITTED, where they read a snapshot. At other levels a copy would lock what the join, whatever way it takes, does
// not. It is collected by an assignment behind the client's own, which end at that token: the row's id stays what it
// is. It reports whether that is so for all of them.
func (pl *planner) showsBehind(n *ast.UpdateStmt, srcs sources, end int) bool {
	if len(srcs) != 1 || pl.session.WriteReads != ReadSnapshot || cascadesFrom(n.List, srcs[0].table) ||
		!pl.lookIntoUpdate(n, srcs[0].table) {
		return false
	}
	rowID := srcs.qualifier(srcs[0]) + rewrite.RowIDColumn
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, slices.Concat([]Piece{text(", " + rowID + " = CONCAT(")}, pl.collectingBesides(pl.besides),
		[]Piece{text(", " + rowID + ")" + gap)})...)
	return true
}

// separate refuses targets whose rows the server may write one after the other in ways that the
// assignments do not tell. With several of them, it may have put new values into the row of one while it
// looks for the rows of another.
func (pl *planner) separate(targets sources, assigned []columnRef, set, end int) error {
	for i, s := range targets {
		if err := pl.collectable(s.table); err != nil {
			return err
		}
		switch {
		case s.table.UpdateTrigger:
			return refusal(history.ReasonTrigger)
		case slices.ContainsFunc(assigned, func(p columnRef) bool {
			return p.source == s &&
				s.table.CascadesFrom(p.column.Name)
		}):
			return refusal(history.ReasonCascade)
		case slices.ContainsFunc(targets[:i], func(other *source) bool { return other.table.Name == s.table.Name }):
			return refusal(history.ReasonTableTwice)
		}
	}
	if len(targets) == 1 {
		return nil
	}
	st := pl.st
	for i := range st.Tokens {
		if i > set && i < end || st.Tokens[i].Kind != mysqltoken.Word && st.Tokens[i].Kind != mysqltoken.Name {
			continue
		}
		named := unquoted(st.tok(i))
		if st.is(i, "NATURAL") || slices.ContainsFunc(assigned,
			func(p columnRef) bool { return strings.EqualFold(p.column.Name, named) }) {
			return refusal(history.ReasonJoinedUpdate)
		}
	}
	return nil
}
