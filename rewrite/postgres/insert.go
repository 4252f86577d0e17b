package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// insert makes an INSERT return the versions that it stored.
func (pl *planner) insert(n *ast.InsertStmt) error {
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	if err := w.settle(n.SelectStmt, n.OnConflictClause); err != nil {
		return err
	}
	w.sources(n)
	w.inserts()
	if c := n.OnConflictClause; c != nil && c.Action == ast.ONCONFLICT_UPDATE {
		err = w.conflict(c)
	} else {
		w.left()
	}
	if err != nil {
		return err
	}
	return w.returning()
}

// readsTables reports whether a query may have rows of tables for its own.
func readsTables(n *ast.SelectStmt) bool {
	return n.WithClause != nil || n.Op != ast.SETOP_NONE || len(nodes(n.FromClause)) > 0
}

// conflict adds what tells inserted rows from updated ones.
func (w *write) conflict(n *ast.OnConflictClause) error {
	w.updates(nodes(n.TargetList))
	switch {
	case w.target.tagged: // the list tells an inserted row, which has one tag
		w.left()
		return w.append("CONFLICT", nodes(n.TargetList))
	case w.session.Version >= 18 && w.target.table.Partitioned && !w.versions.hide(w.target.ref):
		w.left()
		w.id.add(ItemInserted, "("+quoted(w.versions.old)+".ctid IS NULL)")
	case w.target.table.Partitioned:
		return refusal(history.ReasonOnConflict) // there is no xmax to tell by
	case w.both:
		w.replaced()
		w.id.add(ItemInserted, "("+quoted(w.versions.old)+".ctid IS NULL)")
	default:
		w.left()
		// A row that was just inserted is locked by nobody, an updated one by its updater.
		w.id.add(ItemInserted, "("+w.target.system("xmax")+" OPERATOR(pg_catalog.=) '0')")
	}
	w.keyed(w.assigns(nodes(n.TargetList)))
	return nil
}
