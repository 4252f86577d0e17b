package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// insert makes an INSERT return the versions that it stored.
func (pl *planner) insert(n *ast.InsertStmt) error {
	if n.WithClause != nil {
		return refusal("with")
	}
	s, err := pl.written(n.Relation)
	if err != nil {
		return err
	}
	u, err := inspect(n.SelectStmt, n.OnConflictClause, n.ReturningList)
	if err != nil {
		return err
	}
	pl.lowerBy(u)
	if q, ok := n.SelectStmt.(*ast.SelectStmt); ok && len(nodes(q.ValuesLists)) == 0 {
		pl.lower("INSERT SELECT") // what it reads is not observed
	}
	if s.table.InsertTrigger {
		pl.lower("trigger")
	}
	id := identity{}
	left(&id, s)
	if err := id.key(s); err != nil {
		return err
	}
	if n.OnConflictClause != nil {
		if err := pl.conflict(&id, s, n.OnConflictClause); err != nil {
			return err
		}
	}
	return pl.returning(&id, s, nodes(n.ReturningList))
}

// conflict adds what tells inserted rows from updated ones.
func (pl *planner) conflict(id *identity, s *source, n *ast.OnConflictClause) error {
	if n.Action != ast.ONCONFLICT_UPDATE {
		return nil
	}
	if s.table.Partitioned {
		return refusal("ON CONFLICT") // there is no xmax to tell by
	}
	if s.table.UpdateTrigger {
		pl.lower("trigger")
	}
	if s.table.CascadesUpdate {
		pl.lower("cascade")
	}
	if assigns(s, n.TargetList) {
		pl.lower("key")
	}
	// A row that was just inserted is locked by nobody, an updated one by its updater.
	id.add(rewrite.ItemInserted, "("+s.system("xmax")+" OPERATOR(pg_catalog.=) '0')")
	return nil
}

// update makes an UPDATE return the versions that it stored, from PostgreSQL 18 on those it replaced too.
func (pl *planner) update(n *ast.UpdateStmt) error {
	if n.WithClause != nil {
		return refusal("with")
	}
	if len(nodes(n.FromClause)) > 0 {
		return refusal("UPDATE FROM")
	}
	s, err := pl.written(n.Relation)
	if err != nil {
		return err
	}
	u, err := inspect(n.TargetList, n.WhereClause, n.ReturningList)
	if err != nil {
		return err
	}
	pl.lowerBy(u)
	if s.table.UpdateTrigger {
		pl.lower("trigger")
	}
	if s.table.CascadesUpdate {
		pl.lower("cascade")
	}
	if len(s.table.Key) == 0 || assigns(s, n.TargetList) {
		pl.lower("key")
	}
	id := identity{}
	left(&id, s)
	if err := id.key(s); err != nil {
		return err
	}
	return pl.returning(&id, s, nodes(n.ReturningList))
}

// deleteRows makes a DELETE return the versions that it ended.
func (pl *planner) deleteRows(n *ast.DeleteStmt) error {
	if n.WithClause != nil {
		return refusal("with")
	}
	if len(nodes(n.UsingClause)) > 0 {
		return refusal("DELETE USING")
	}
	s, err := pl.written(n.Relation)
	if err != nil {
		return err
	}
	u, err := inspect(n.WhereClause, n.ReturningList)
	if err != nil {
		return err
	}
	pl.lowerBy(u)
	if s.table.DeleteTrigger {
		pl.lower("trigger")
	}
	if s.table.CascadesDelete {
		pl.lower("cascade")
	}
	id := identity{}
	id.place(s)
	id.add(rewrite.ItemPlace, s.system("ctid"))
	if !s.table.Partitioned {
		id.add(rewrite.ItemXID, s.system("xmin"))
	}
	if err := id.key(s); err != nil {
		return err
	}
	return pl.returning(&id, s, nodes(n.ReturningList))
}

// written gives the table that a statement writes, as its RETURNING clause sees it.
func (pl *planner) written(n *ast.RangeVar) (*source, error) {
	t, err := pl.target(n)
	if err != nil {
		return nil, err
	}
	s, err := sourceOf(t, n)
	return &s, err
}

// left adds the place and writer of the version that a write leaves.
func left(id *identity, s *source) {
	id.place(s)
	id.add(rewrite.ItemNewPlace, s.system("ctid"))
	if !s.table.Partitioned { // which gives system columns of its partitions' rows only in part
		id.add(rewrite.ItemNewXID, s.system("xmin"))
	}
}

// assigns says whether one of the assignments is to a column of the table's key.
func assigns(s *source, assignments *ast.NodeList) bool {
	for _, a := range nodes(assignments) {
		target, ok := a.(*ast.ResTarget)
		if !ok {
			return true
		}
		if slices.Contains(s.table.Key, target.Name) {
			return true
		}
	}
	return false
}

// lowerBy lowers the plan for what a statement does beside its own table accesses.
func (pl *planner) lowerBy(u *usage) {
	if u.subquery {
		pl.lower("subquery")
	}
	if u.function {
		pl.lower("function")
	}
}

// logPosition is a function that tells where the write-ahead log ends. It is called for each row after that was
// written and while it is locked, so it orders the writers of a row.
const logPosition = "pg_catalog.pg_current_wal_insert_lsn()"

// returning appends the identity to the client's RETURNING clause, or adds one.
func (pl *planner) returning(id *identity, s *source, client []ast.Node) error {
	id.add(rewrite.ItemLSN, logPosition)
	if len(client)+len(s.table.Columns)+len(id.items) > maxTargets {
		return refusal("columns")
	}
	added := strings.Join(id.exprs, ", ")
	lead := " RETURNING "
	pl.plan.Reply = rewrite.Returning
	if len(client) > 0 {
		lead = ", "
		pl.plan.Reply = rewrite.Trimmed
	}
	pl.insertAfter(len(pl.st.toks)-1, lead+added)
	pl.plan.Sources = append(pl.plan.Sources, id.source(s))
	return pl.proven(client, added, returningList)
}
