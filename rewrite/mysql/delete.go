package mysql

import (
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
	if err := pl.identifyDeleted(n, t); err != nil {
		return err
	}
	if n.Limit == nil {
		pl.choose(n.TableRefs, n.Where)
	}
	if n.IgnoreErr {
		pl.downgrade(history.ReasonDeleteIgnore)
	}
	pl.lowerDeleted(t)
	pl.downgradeBy(inspectWrite(n))
	pl.downgradeByReturning()
	return nil
}

// identifyDeleted puts the identities into RETURNING, the client's own if there is one. MySQL and TiDB have no such
// clause: there the condition collects the rows for which the client's holds.
func (pl *planner) identifyDeleted(n *ast.DeleteStmt, t *Table) error {
	const identity = rewrite.RowIDColumn + ", " + rewrite.WListColumn
	pos, gap := pl.after(pl.st.last())
	switch {
	case pl.session.Dialect != MariaDB:
		return pl.collectDeleted(n, t)
	case pl.beyond.returning.empty():
		pl.insertAt(pos, text(" RETURNING "+identity+gap))
		pl.plan.Result.Reply = rewrite.Returning
	default:
		pl.insertAt(pos, text(", "+identity+gap))
		pl.plan.Result.Reply = rewrite.Trimmed
	}
	pl.plan.Result.Sources = []Source{{Table: t.Name}}
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
	pl.plan.Writes.Captured = true
	return pl.addCondition(n.Where != nil, pl.collecting(t))
}

// collecting returns a condition that is always true, and collects the row of t as one that goes.
func (pl *planner) collecting(t *Table) []Piece {
	rowID, list := identityEntry("", t.WListBytes)
	pieces := append([]Piece{text("LENGTH(CONCAT(_binary'x', ")}, collect(rowID, list, pl.session.maxPacket()/4,
		", _binary'-'")...)
	return append(pieces, text(")) > 0"))
}
