package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"
)

// update makes an UPDATE return the versions that it stored, and from PostgreSQL 18 on those that it replaced.
func (pl *planner) update(n *ast.UpdateStmt) error {
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.beside(nodes(n.FromClause))
	if err := w.settle(n.TargetList, n.WhereClause, n.FromClause); err != nil {
		return err
	}
	w.updates(nodes(n.TargetList))
	if w.target.table.UpdateTrigger {
		// Where a BEFORE trigger had to wait for the row, old is what the statement's snapshot has, not what was
		// replaced.
		w.left()
	} else {
		w.replaced()
	}
	w.keyed(w.assigns(nodes(n.TargetList)))
	if err := w.append("UPDATE", assignmentsOf(n)...); err != nil {
		return err
	}
	w.chooses(n.WhereClause, len(w.read) == 0 && n.FromClause == nil)
	return w.returning()
}

// deleteRows makes a DELETE return the versions that it ended.
func (pl *planner) deleteRows(n *ast.DeleteStmt) error {
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.beside(nodes(n.UsingClause))
	if err := w.settle(n.WhereClause, n.UsingClause); err != nil {
		return err
	}
	w.deletes()
	if w.target.tagged {
		id := tagIdentity(&w.target)
		w.id = identity{exprs: id.exprs[:len(id.exprs)-1], items: id.items[:len(id.items)-1]} // the row's id follows
		return w.returning()
	}
	w.id.table(&w.target)
	w.id.add(ItemTID, w.target.system("ctid"))
	w.id.add(ItemXID, w.target.system("xmin"))
	w.chooses(n.WhereClause, len(w.read) == 0 && n.UsingClause == nil)
	return w.returning()
}
