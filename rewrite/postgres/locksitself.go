package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// Job queues take a row by a subquery that locks it, and write it by its key:
//
//	UPDATE jobs SET state = 'taken' WHERE id = (SELECT id FROM jobs WHERE ... FOR UPDATE SKIP LOCKED LIMIT 1)
//
// Such a subquery cannot be run again, for it would lock other rows. It need not be: the version that it locks is the
// last one, and stays so until the statement replaces it. What it read is what the write tells (ADR 62).

// locksItself reports whether the rows that a subquery of the condition where reads are the very ones that the
// statement writes, in the versions that it replaces.
func (w *write) locksItself(at link, where ast.Node) bool {
	key := w.target.table.Key
	if len(key) != 1 {
		return false
	}
	var test ast.Node
	switch {
	case at.matched && at.SubLinkType == ast.ANY_SUBLINK && isEqual(nodes(at.OperName)): // IN: rows that are equal
		test = at.Testexpr
	case at.SubLinkType == ast.EXPR_SUBLINK: // whatever row there is, if nothing else keeps it from being written
		test = equalTo(bare(where), at.SubLink)
	}
	ref, ok := bare(test).(*ast.ColumnRef)
	query, is := at.Subselect.(*ast.SelectStmt)
	return ok && is && w.isKey(ref, w.target.ref) && w.locksByKey(query, true)
}

// equalTo returns what a condition compares with a subquery, if that is all there is to it; nil where it is more.
func equalTo(where ast.Node, link *ast.SubLink) ast.Node {
	e, ok := where.(*ast.A_Expr)
	switch {
	case !ok || e.Kind != ast.AEXPR_OP || len(nodes(e.Name)) == 0 || !isEqual(nodes(e.Name)):
		return nil
	case bare(e.Rexpr) == ast.Node(link):
		return e.Lexpr
	case bare(e.Lexpr) == ast.Node(link):
		return e.Rexpr
	}
	return nil
}

// isEqual reports whether an operator's name is =, or left away as IN does.
func isEqual(name []ast.Node) bool {
	if len(name) == 0 {
		return true
	}
	last, ok := name[0].(*ast.String)
	return ok && len(name) == 1 && last.SVal == "="
}

// isKey reports whether a reference is to the key of the table that the statement writes, under a name of it.
func (w *write) isKey(ref *ast.ColumnRef, table string) bool {
	names := fields(ref)
	return names[len(names)-1] == w.target.table.Key[0] && (len(names) == 1 || len(names) == 2 && names[0] == table)
}

// locksByKey reports whether a query shows the keys of rows of the table that the statement writes, which it locks, and
// reads nothing else. It may be one of the WITH clause's, by its name.
func (w *write) locksByKey(n *ast.SelectStmt, named bool) bool {
	from := nodes(n.FromClause)
	if n.Op != ast.SETOP_NONE || n.WithClause != nil || len(from) != 1 || len(nodes(n.TargetList)) == 0 ||
		hasSubquery(n.WhereClause) || hasSubquery(n.SortClause) || hasSubquery(n.LimitCount) ||
		hasSubquery(n.LimitOffset) {
		return false
	}
	table, ok := from[0].(*ast.RangeVar)
	if !ok {
		return false
	}
	ref := table.RelName
	if table.Alias != nil {
		if ref = table.Alias.AliasName; len(nodes(table.Alias.ColNames)) > 0 {
			return false
		}
	}
	if !slices.ContainsFunc(nodes(n.TargetList), func(item ast.Node) bool {
		t, ok := item.(*ast.ResTarget)
		if !ok || hasSubquery(t.Val) {
			return false
		}
		column, ok := bare(t.Val).(*ast.ColumnRef)
		return ok && (t.Name == "" || t.Name == w.target.table.Key[0]) && w.isKey(column, ref)
	}) {
		return false
	}
	if query := w.commonQuery(table); query != nil {
		return named && n.WhereClause == nil && n.LimitCount == nil && n.LimitOffset == nil && w.locksByKey(query, false)
	}
	t, _ := w.table(table)
	return t != nil && t == w.target.table && table.Inh && !w.target.only && locksAll(n, ref)
}

// commonQuery returns the query of the WITH clause that a name stands for, if it has the column names that its list
// says; nil where it stands for a table.
func (w *write) commonQuery(name *ast.RangeVar) *ast.SelectStmt {
	if name.SchemaName != "" || w.provenAs == nil || withOf(w.provenAs) == nil {
		return nil
	}
	for _, c := range nodes(withOf(w.provenAs).Ctes) {
		def, ok := c.(*ast.CommonTableExpr)
		if ok && def.Ctename == name.RelName && len(nodes(def.Aliascolnames)) == 0 {
			query, _ := def.Ctequery.(*ast.SelectStmt)
			return query
		}
	}
	return nil
}

// locksAll reports whether a query locks the rows of its only table.
func locksAll(n *ast.SelectStmt, ref string) bool {
	return slices.ContainsFunc(nodes(n.LockingClause), func(c ast.Node) bool {
		locking, ok := c.(*ast.LockingClause)
		if !ok {
			return false
		}
		rels := nodes(locking.LockedRels)
		return pgtree.Missing(locking.LockedRels) || len(rels) == 0 || slices.ContainsFunc(rels, func(item ast.Node) bool {
			of, ok := item.(*ast.RangeVar)
			return ok && of.RelName == ref
		})
	})
}
