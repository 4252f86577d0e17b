package postgres

import (
	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// Queues that lock by advisory locks look a job up by its key, as a query finds it that takes such a lock:
//
//	SELECT * FROM jobs WHERE id IN (WITH rows AS (SELECT id FROM jobs ...) SELECT id FROM rows WHERE <a lock> LIMIT 1)
//
// That query cannot be run again. It need not be: the rows that it gives are those of the statement, in one snapshot.

// readsItself reports whether a subquery gives the keys of the rows that the statement gives, and no others, and reads
// but these.
func (l *looker) readsItself(at link) bool {
	n, from := l.block.n, nodes(l.block.n.FromClause)
	query, ok := at.Subselect.(*ast.SelectStmt)
	if !ok || n != l.tree || l.stmt != ast.Stmt(l.tree) || at.SubLinkType != ast.ANY_SUBLINK || !isEqual(nodes(at.OperName)) ||
		bare(n.WhereClause) != ast.Node(at.SubLink) || len(from) != 1 || len(l.block.rels) != 1 || l.block.rels[0].base == nil ||
		n.LockingClause != nil || n.LimitCount != nil || n.LimitOffset != nil || n.WithClause != nil || locks(query) {
		return false
	}
	s := l.block.rels[0].base
	item, ok := bare(from[0]).(*ast.RangeVar)
	key, is := bare(at.Testexpr).(*ast.ColumnRef)
	return ok && is && len(nodes(query.TargetList)) == 1 && len(s.table.Key) == 1 && !s.repeatsKeys() &&
		namesColumn(key, s.ref, s.table.Key[0]) && l.givesKeys(query, item, s.table)
}

// givesKeys reports whether a query shows the keys of rows of a table, one for each that it finds, and reads nothing
// else. It may find them in a query of its own WITH clause, or of its FROM clause, that does.
func (l *looker) givesKeys(n *ast.SelectStmt, as *ast.RangeVar, of *Table) bool {
	from := nodes(n.FromClause)
	if n.Op != ast.SETOP_NONE || n.GroupClause != nil || n.HavingClause != nil || n.WindowClause != nil || len(from) != 1 ||
		n.WithClause != nil && n.WithClause.Recursive {
		return false
	}
	var query *ast.SelectStmt
	ref := ""
	switch item := bare(from[0]).(type) {
	case *ast.RangeSubselect:
		query, _ = item.Subquery.(*ast.SelectStmt)
		ref = aliasOf(item.Alias)
		if query == nil || item.Alias != nil && len(nodes(item.Alias.ColNames)) > 0 {
			return false
		}
	case *ast.RangeVar:
		ref = refOf(item)
		def := commonIn(n.WithClause, item)
		switch {
		case item.Alias != nil && len(nodes(item.Alias.ColNames)) > 0:
			return false
		case def != nil:
			if query, _ = def.Ctequery.(*ast.SelectStmt); query == nil || len(nodes(def.Aliascolnames)) > 0 {
				return false
			}
		default:
			if t, _ := l.table(item); t != of || item.Inh != as.Inh || n.WithClause != nil || l.inWith(item) {
				return false
			}
		}
	default:
		return false
	}
	u, err := l.inspect(n.TargetList, n.WhereClause, n.SortClause, n.LimitCount, n.LimitOffset, n.DistinctClause)
	if err != nil || u.subquery || u.aggregate || u.window || u.unsure || query != nil && !l.givesKeys(query, as, of) {
		return false
	}
	shown := 0
	for _, item := range nodes(n.TargetList) {
		if t, ok := item.(*ast.ResTarget); ok && (t.Name == "" || t.Name == of.Key[0]) {
			if key, ok := bare(t.Val).(*ast.ColumnRef); ok && namesColumn(key, ref, of.Key[0]) {
				shown++
			} else if t.Name == of.Key[0] {
				return false
			}
		}
	}
	return shown == 1
}

// commonIn returns the query of a WITH clause that a name means; nil where it means none.
func commonIn(with *ast.WithClause, name *ast.RangeVar) *ast.CommonTableExpr {
	if pgtree.Missing(with) || name.SchemaName != "" {
		return nil
	}
	for _, c := range nodes(with.Ctes) {
		if def, ok := c.(*ast.CommonTableExpr); ok && def.Ctename == name.RelName {
			return def
		}
	}
	return nil
}

// namesColumn reports whether a reference is to a column of what is called ref, perhaps without that name.
func namesColumn(n *ast.ColumnRef, ref, column string) bool {
	names := fields(n)
	return names[len(names)-1] == column && (len(names) == 1 || len(names) == 2 && names[0] == ref)
}
