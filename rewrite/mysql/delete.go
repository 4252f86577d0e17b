package mysql

import (
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// deleteRows makes a single-table DELETE return, or collect, the identities of the rows that it deleted.
func (pl *planner) deleteRows(n *ast.DeleteStmt) error {
	switch {
	case n.With != nil:
		return refusal(history.ReasonWith)
	case n.IsMultiTable:
		return pl.deleteJoined(n)
	}
	t, err := pl.target(n.TableRefs, history.ReasonJoinedDelete)
	if err != nil {
		return err
	}
	use := inspectWrite(n)
	if use.subquery && (pl.readsNone(n, n.Where, pl.tablesOf(n.TableRefs)) ||
		!t.DeleteTrigger && !t.CascadesDelete && pl.lookIntoDelete(n)) {
		use.subquery = false
	}
	if err := pl.identifyDeleted(n, t); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.downgrade(history.ReasonDeleteIgnore)
	}
	pl.downgradeDeleted(t)
	pl.downgradeBy(use)
	pl.downgradeByReturning()
	return nil
}

// identifyDeleted puts the identities into RETURNING, the client's own if there is one. MySQL and TiDB have no such
// clause: there the condition collects the rows for which the client's holds.
func (pl *planner) identifyDeleted(n *ast.DeleteStmt, t *Table) error {
	const identity = rewrite.RowIDColumn + ", " + rewrite.WListColumn
	pos, gap := pl.after(pl.st.last())
	if pl.session.Dialect != MariaDB {
		return pl.collectDeleted(n, t)
	}
	keyword := ", "
	if pl.plan.Result.Reply = rewrite.Trimmed; pl.beyond.returning.empty() {
		keyword, pl.plan.Result.Reply = " RETURNING ", rewrite.Returning
	}
	pl.plan.Result.Sources = []Source{{Table: t.Name, Always: true}}
	items := []Piece{text(keyword + identity)}
	for _, c := range pl.besides {
		items = append(append(items, text(", ")), c.spell(MariaDB)...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, c.source())
	}
	pl.insertAt(pos, append(items, text(gap))...)
	return nil
}

// collectDeleted adds to the condition what collects a row and is always true. The server evaluates it
// last, and only for rows for which the client's condition holds. With LIMIT not all of these are deleted
// if the server sorts them first: their count then differs from the server's.
func (pl *planner) collectDeleted(n *ast.DeleteStmt, t *Table) error {
	if pl.session.Dialect == TiDB && (n.Order != nil || n.Limit != nil) {
		return refusal(history.ReasonOrderByOrLimit)
	}
	if err := pl.collectable(t); err != nil {
		return err
	}
	pl.plan.Writes.Captured, pl.plan.Writes.Retried = true, pl.session.Dialect == TiDB
	return pl.addCondition(n.Where != nil, pl.collecting(t))
}

// collecting returns a condition that is always true, and collects the row of t as one that goes, and what subqueries
// read.
func (pl *planner) collecting(t *Table) []Piece {
	rowID, list := identityEntry("", t.WListBytes)
	pieces := append([]Piece{text("LENGTH(CONCAT(_binary'x', ")}, collect(rowID, list, pl.session.maxPacket()/4,
		", _binary'-'")...)
	if len(pl.besides) > 0 {
		pieces = append(append(pieces, text(", ")), pl.collectingBesides(pl.besides)...)
	}
	return append(pieces, text(")) > 0"))
}

// deleteJoined makes a multi-table DELETE collect the rows that it deletes, in its condition. MySQL
// evaluates that for the joined rows; a row may be collected again and again. MariaDB evaluates it before
// the join, for rows that stay, and MySQL does so where it makes a join of a subquery: these are refused.
func (pl *planner) deleteJoined(n *ast.DeleteStmt) error {
	several := refusal(history.ReasonJoinedDelete)
	use := inspectWrite(n)
	switch {
	case pl.session.Dialect != MySQL || n.TableRefs == nil || n.Tables == nil:
		return several
	case use.subquery:
		return refusal(history.ReasonSubquery)
	case pl.st.mentions(rewrite.RowIDColumn) || pl.st.mentions(rewrite.WListColumn):
		return refusal(history.ReasonOwnColumn)
	}
	srcs := flatten(n.TableRefs.TableRefs)
	if err := pl.resolveBase(srcs); err != nil {
		return err
	}
	condition := []Piece{text("LENGTH(CONCAT(_binary'x'")}
	for i, name := range n.Tables.Tables {
		s := srcs.named(name.Name.O)
		if s == nil || s.table == nil {
			return several
		}
		if err := pl.collectable(s.table); err != nil {
			return err
		}
		if err := pl.checkSpelling(s.name); err != nil {
			return err
		}
		rowID, list := identityEntry(quoted(s.name)+".", s.table.WListBytes)
		condition = append(append(condition, text(", ")),
			collect(rowID, list, pl.session.maxPacket()/4, ", _binary'-="+strconv.Itoa(i)+"'")...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, Source{Table: s.table.Name})
		pl.downgradeDeleted(s.table)
	}
	if len(srcs) > len(n.Tables.Tables) {
		pl.downgrade(history.ReasonJoinedDelete) // what it reads of the others is not observed
	}
	if n.IgnoreErr {
		pl.downgrade(history.ReasonDeleteIgnore)
	}
	pl.downgradeBy(use)
	pl.plan.Writes.Captured = true
	return pl.addCondition(n.Where != nil, append(condition, text(")) > 0")))
}

// downgradeDeleted lowers the plan for what the server does when it deletes rows of t.
func (pl *planner) downgradeDeleted(t *Table) {
	if t.DeleteTrigger {
		pl.downgrade(history.ReasonTrigger)
	}
	if t.CascadesDelete {
		pl.downgradeCascading()
	}
}

// addCondition adds a condition to the statement's WHERE clause, behind which there may be ORDER BY and
// LIMIT; where reports whether it has one.
func (pl *planner) addCondition(where bool, condition []Piece) error {
	if pl.session.Dialect == TiDB {
		condition = asFunctions(condition)
	}
	open, from, end := " WHERE ", 1, pl.st.last()+1
	if where {
		i := pl.st.find(1, end, 0, "WHERE")
		if i < 0 {
			return refusal(history.ReasonUnparsable)
		}
		from = i
		behind, _ := pl.after(i)
		pl.insertAt(behind, text(" ("))
		open = ") AND "
	}
	if clause := pl.st.find(from, end, 0, "ORDER", "LIMIT"); clause >= 0 {
		end = clause
	}
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, append(append([]Piece{text(open)}, condition...), text(gap))...)
	return nil
}
