package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// deleteRows makes a single-table DELETE return the identities of the rows that it deleted.
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
	pos, gap := pl.after(pl.st.last())
	pl.insertAt(pos, text(" RETURNING "+rewrite.RowIDColumn+", "+rewrite.WListColumn+gap))
	pl.plan.Reply = rewrite.Returning
	pl.plan.Sources = []rewrite.Source{{Table: t.Name}}
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
	return nil
}
