package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// deleteRows makes a single-table DELETE return, or collect, the identities of the rows that it deleted.
func (pl *planner) deleteRows(n *ast.DeleteStmt) error {
	switch {
	case n.With != nil:
		return refusal("with")
	case n.IsMultiTable:
		return refusal("multi-table DELETE")
	}
	t, err := pl.target(n.TableRefs, "multi-table DELETE")
	if err != nil {
		return err
	}
	if err := pl.identifyDeleted(n, t); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.lower("DELETE IGNORE")
	}
	if t.DeleteTrigger {
		pl.lower("trigger")
	}
	if t.CascadesDelete {
		pl.lower("cascade")
	}
	pl.lowerBy(inspectWrite(n))
	pl.lowerByReturning()
	return nil
}

// identifyDeleted puts the identities into RETURNING, the client's own if there is one. MySQL and TiDB have no such
// clause: there the condition collects the rows for which the client's holds.
func (pl *planner) identifyDeleted(n *ast.DeleteStmt, t *rewrite.Table) error {
	const identity = rewrite.RowIDColumn + ", " + rewrite.WListColumn
	pos, gap := pl.after(pl.st.last())
	switch {
	case pl.session.Dialect != MariaDB:
		return pl.collectDeleted(n, t)
	case pl.beyond.returning.empty():
		pl.insertAt(pos, text(" RETURNING "+identity+gap))
		pl.plan.Reply = rewrite.Returning
	default:
		pl.insertAt(pos, text(", "+identity+gap))
		pl.plan.Reply = rewrite.Trimmed
	}
	pl.plan.Sources = []rewrite.Source{{Table: t.Name}}
	return nil
}

// collectDeleted adds to the condition what collects a row and is always true. The server evaluates it
// last, and only for rows for which the client's condition holds; with ORDER BY or LIMIT not all of these
// are deleted.
func (pl *planner) collectDeleted(n *ast.DeleteStmt, t *rewrite.Table) error {
	if n.Order != nil || n.Limit != nil {
		return refusal("ORDER BY or LIMIT")
	}
	if err := pl.collectable(t); err != nil {
		return err
	}
	st := pl.st
	pos, gap := pl.after(st.last())
	open := " WHERE "
	if n.Where != nil {
		where := st.find(1, st.last(), 0, "WHERE")
		if where < 0 {
			return refusal("unparsable")
		}
		behind, _ := pl.after(where)
		pl.insertAt(behind, text(" ("))
		open = ") AND "
	}
	collecting := pl.collecting("", t, "")
	if pl.session.Dialect == TiDB {
		collecting = asFunctions(collecting)
	}
	pl.insertAt(pos, append(append([]rewrite.Piece{text(open)}, collecting...), text(gap))...)
	pl.plan.Capture = true
	return nil
}

// collecting gives a condition that is always true, and collects the row as one that goes. part is the
// entry's fourth part; empty: there is none.
func (pl *planner) collecting(of string, t *rewrite.Table, part string) []rewrite.Piece {
	rest := ", _binary'-'"
	if part != "" {
		rest = ", _binary'-=" + part + "'"
	}
	rowID, list := identityEntry(of, t.WListBytes)
	pieces := append([]rewrite.Piece{text("LENGTH(CONCAT(_binary'x', ")}, collect(rowID, list, pl.session.maxPacket()/4, rest)...)
	return append(pieces, text(")) > 0"))
}
