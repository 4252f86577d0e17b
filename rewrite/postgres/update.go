package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// update makes an UPDATE return the versions that it stored, and from PostgreSQL 18 on those that it replaced.
func (pl *planner) update(n *ast.UpdateStmt) error {
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.readsFrom(writing{stmt: n, query: &ast.SelectStmt{WithClause: n.WithClause, TargetList: n.ReturningList,
		FromClause: n.FromClause, WhereClause: n.WhereClause}, from: "FROM"})
	if err := w.settleBy(n.WhereClause, n.TargetList, n.FromClause); err != nil {
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
	where := n.WhereClause
	if n.FromClause != nil || w.part != nil {
		where = nil // a column's name may be another table's
	}
	w.keyed(w.assigns(nodes(n.TargetList)), where)
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
	w.readsFrom(writing{stmt: n, query: &ast.SelectStmt{WithClause: n.WithClause, TargetList: n.ReturningList,
		FromClause: n.UsingClause, WhereClause: n.WhereClause}, from: "USING"})
	if err := w.settleBy(n.WhereClause, nil, n.UsingClause); err != nil {
		return err
	}
	w.deletes()
	w.chooses(n.WhereClause, len(w.read) == 0 && n.UsingClause == nil)
	if w.target.tagged {
		id := tagIdentity(&w.target)
		w.id = identity{exprs: id.exprs[:len(id.exprs)-1], items: id.items[:len(id.items)-1]} // the row's id follows
		return w.returning()
	}
	w.id.table(&w.target)
	w.id.add(ItemTID, w.target.system("ctid"))
	w.id.add(ItemXID, w.target.system("xmin"))
	w.told()
	return w.returning()
}

// merge makes a MERGE return the versions that it stored and ended. It can from PostgreSQL 17 on.
func (pl *planner) merge(n *ast.MergeStmt) error {
	if pl.session.Version < 17 {
		return refusal(history.ReasonMerge)
	}
	w, err := pl.newWrite(n.Relation, n.WithClause, n.ReturningList)
	if err != nil {
		return err
	}
	w.merges = true
	from := &ast.SelectStmt{WithClause: n.WithClause, TargetList: n.ReturningList,
		FromClause: ast.NewNodeList(n.SourceRelation), WhereClause: chosenBy(n)}
	s := writing{stmt: n, query: from, from: "USING"}
	parts := []ast.Node{n.SourceRelation, n.JoinCondition}
	assigned := false
	for _, c := range nodes(n.MergeWhenClauses) {
		clause, ok := c.(*ast.MergeWhenClause)
		if !ok {
			return refusal(history.ReasonUnparsable)
		}
		parts = append(parts, clause.Condition, clause.Values)
		assigned = w.clause(clause) || assigned
		for _, t := range clause.TargetList {
			parts = append(parts, t)
		}
		s.optional = s.optional || clause.MatchKind == ast.MERGE_WHEN_NOT_MATCHED_BY_SOURCE
	}
	w.readsFrom(s)
	if w.joined == nil {
		w.looked, _ = w.lookIntoMerge(nil, n)
	}
	if err := w.settle(parts...); err != nil {
		return err
	}
	w.id.add(ItemAction, "merge_action()")
	if w.target.tagged {
		if err := w.mergedTags(n); err != nil {
			return err
		}
		return w.returning()
	}
	w.mergedVersions()
	w.told()
	if assigned {
		w.keyed(true, nil)
	}
	return w.returning()
}

// chosenBy is the condition of all by which a MERGE chooses rows.
func chosenBy(n *ast.MergeStmt) ast.Node {
	conditions := []ast.Node{n.JoinCondition}
	for _, c := range nodes(n.MergeWhenClauses) {
		if clause, ok := c.(*ast.MergeWhenClause); ok && clause.Condition != nil {
			conditions = append(conditions, clause.Condition)
		}
	}
	return ast.NewBoolExpr(ast.AND_EXPR, ast.NewNodeList(conditions...))
}

// clause takes note of what one WHEN clause does, and reports whether it may change keys.
func (w *write) clause(c *ast.MergeWhenClause) bool {
	switch c.CommandType {
	case ast.CMD_INSERT:
		w.inserts()
	case ast.CMD_DELETE:
		w.deletes()
	case ast.CMD_UPDATE:
		var assignments []ast.Node
		for _, t := range c.TargetList {
			assignments = append(assignments, t)
		}
		w.updates(assignments)
		return len(w.target.table.Key) == 0 || w.assigns(assignments)
	}
	return false
}

// mergedVersions adds the versions that a MERGE ended and left. Where the server does not tell old from new, the
// table's columns are those of the version that was ended in a row that was deleted, and otherwise those of
// the one that was left.
func (w *write) mergedVersions() {
	if w.both {
		w.replaced()
		return
	}
	w.id.table(&w.target)
	ref := quoted(w.target.ref)
	w.id.add(ItemTID, whenMerged("=", ref+".ctid"))
	w.id.add(ItemNewTID, whenMerged("<>", ref+".ctid"))
	if !w.target.table.Partitioned {
		w.id.add(ItemXID, whenMerged("=", ref+".xmin"))
		w.id.add(ItemNewXID, whenMerged("<>", ref+".xmin"))
	} else if !w.session.Nested {
		w.id.add(ItemNewXID, whenMerged("<>", w.session.transactionID()))
	}
}
