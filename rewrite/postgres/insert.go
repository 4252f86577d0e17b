package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// insert makes an INSERT return the versions that it stored.
func (pl *planner) insert(n *ast.InsertStmt) error {
	around := pl.ctes
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.around = around
	inConflict := w.readsInConflict(n)
	if q, ok := n.SelectStmt.(*ast.SelectStmt); ok && (len(nodes(q.ValuesLists)) > 0 || isRow(q)) {
		w.readsInValues(n)
	}
	missed := w.sources(n)
	if err := w.settle(n.SelectStmt, n.OnConflictClause); err != nil {
		return err
	}
	if !missed.IsZero() {
		w.downgrade(missed)
	}
	w.inserts()
	w.values = endsWithValues(n)
	if c := n.OnConflictClause; c != nil && c.Action == ast.ONCONFLICT_UPDATE {
		if err = w.conflict(c); err == nil {
			w.tellConflicting(n, inConflict)
		}
	} else {
		w.left()
	}
	if err != nil {
		return err
	}
	return w.returning()
}

// isRow reports whether a query makes one row at most, of no table's: SELECT 1, 'x' WHERE NOT EXISTS (...).
func isRow(q *ast.SelectStmt) bool {
	return q.Op == ast.SETOP_NONE && len(nodes(q.FromClause)) == 0 && q.WithClause == nil && q.GroupClause == nil &&
		q.HavingClause == nil && q.DistinctClause == nil && q.WindowClause == nil && q.LockingClause == nil
}

// readsInValues looks into the subqueries among the values of an INSERT, and in the condition of its only row.
func (w *write) readsInValues(n *ast.InsertStmt) {
	where := n.SelectStmt.(*ast.SelectStmt).WhereClause
	s := writing{stmt: n, query: &ast.SelectStmt{WithClause: n.WithClause, TargetList: n.ReturningList,
		WhereClause: where}}
	if n.WithClause != nil {
		w.readsFrom(s)
	} else if hasSubquery(where) || slices.ContainsFunc(append(assigned(n), w.client...), hasSubquery) {
		w.looked, _ = w.lookInto(nil, where, assigned(n), s.others())
	}
}

// endsWithValues reports whether nothing stands behind VALUES and its rows.
func endsWithValues(n *ast.InsertStmt) bool {
	q, ok := n.SelectStmt.(*ast.SelectStmt)
	return ok && len(nodes(q.ValuesLists)) > 0 && q.WithClause == nil && q.Op == ast.SETOP_NONE &&
		len(nodes(q.SortClause)) == 0 && q.LimitCount == nil && q.LimitOffset == nil && q.LockingClause == nil &&
		n.OnConflictClause == nil && len(nodes(n.ReturningList)) == 0
}

// readsTables reports whether a query may have rows of tables for its own.
func readsTables(n *ast.SelectStmt) bool {
	return n.WithClause != nil || n.Op != ast.SETOP_NONE || len(nodes(n.FromClause)) > 0
}
