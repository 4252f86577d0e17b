package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// Job queues take a row by a subquery that locks it, and write it by its key:
//
//	UPDATE jobs SET state = 'taken' WHERE id = (SELECT id FROM jobs WHERE ... FOR UPDATE SKIP LOCKED LIMIT 1)
//
// Such a subquery cannot be run again, for it would lock other rows. It need not be: the version that it locks is the
// last one, and stays so until the statement replaces it. What it read is what the write tells (ADR 62). What the
// subqueries of its own condition read is shown beside each row that is written: there that row stands as the subquery
// calls it, in the version that was replaced.

// locksItself reports whether the rows that a subquery of the condition where reads are the very ones that the
// statement writes, in the versions that it replaces. It returns the query that locks these.
func (w *write) locksItself(at link, where ast.Node) (*ast.SelectStmt, bool) {
	key := w.target.table.Key
	if len(key) != 1 {
		return nil, false
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
	if !ok || !is || !w.isKey(ref, w.target.ref) {
		return nil, false
	}
	locking := w.locksByKey(query, true)
	return locking, locking != nil
}

// A lockedRow is the row that a statement writes under the name that it has in a query which locks it.
type lockedRow struct {
	*source
	condition span // that of the query
}

// lockedAs returns what a query that locks the rows which the statement writes calls them; nil where that is not known.
// What is in there must not name the statement's own row.
func (w *write) lockedAs(n *ast.SelectStmt) *lockedRow {
	at, placed := span{}, false
	if w.joined != nil {
		var here querySpan
		if here, placed = w.joined.places.queries[n]; placed {
			at = w.joined.places.whereClause(here.listEnd+1, here.to)
		}
	}
	if l := (&looker{reading: &reading{planner: w.planner}}); !placed {
		p := l.located(n)
		if p == nil {
			return nil
		}
		here := p.queries[n]
		at = p.whereClause(here.listEnd+1, here.to)
	}
	item := nodes(n.FromClause)[0].(*ast.RangeVar)
	s, err := w.sourceOf(w.target.table, item)
	if err != nil {
		return nil
	}
	if s.ref != w.target.ref && w.names(n.WhereClause, w.target.ref) {
		return nil
	}
	return &lockedRow{&s, at}
}

// names reports whether something may name a table's column with that name before it, outside of queries that have a
// table of that name themselves.
func (w *write) names(n ast.Node, ref string) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			return !slices.Contains(refsOf(n.FromClause), ref)
		case *ast.ColumnRef:
			names := fields(n)
			may = may || len(names) > 1 && names[0] == ref || len(names) == 1 && names[0] == ref && !w.target.has(ref)
		}
		return !may
	}, n)
	return may || !whole
}

// lookIntoLocking looks into the subqueries of a query that locks the rows which the statement writes. It reports
// whether all that they read can be shown beside these.
func (w *write) lookIntoLocking(l looker, n *ast.SelectStmt, assignments []ast.Node) (found []*besides, ok bool) {
	if !hasSubquery(n.WhereClause) {
		return nil, true
	}
	row := w.lockedAs(n)
	if row == nil || w.plan.Kind != history.Update && w.plan.Kind != history.Delete {
		return nil, false
	}
	s := seeker{planner: w.planner, fails: true, behind: true}
	if !s.seek(n.WhereClause, row.condition, ofAll, nil) {
		return nil, false
	}
	rels := []*relation{{ref: row.ref, base: row.source}}
	around := slices.Concat(rels, w.beside().rels[1:])
	l.block, l.behind, l.found = &block{n: n, rels: rels}, true, nil
	for _, link := range s.links {
		if w.aggregatesAround(link.SubLink, around) {
			return nil, false
		}
		if l.readsNothing(link) {
			continue
		}
		all, ok := l.look(link, around, 1)
		if !ok {
			return nil, false
		}
		for _, q := range all {
			before := len(l.found)
			l.columns(nil, q)
			if !w.seesLocked(link, q, row, assignments, l.found[before:]) {
				return nil, false
			}
		}
	}
	return l.found, true
}

// seesLocked has the columns of a subquery see the row in the version that was locked. It reports whether they can.
func (w *write) seesLocked(at link, q *subquery, row *lockedRow, assignments []ast.Node, found []*besides) bool {
	var as *replaced
	switch w.renewsAs(row.ref, at, q, assignments) {
	case lost:
		return false
	case same:
		as = w.rowOf(w.target.ref, row.ref, at)
	default:
		as = w.replacedRow(at, row.ref, []*relation{{ref: row.ref}}, assignments)
	}
	if as == nil || as.checked && slices.ContainsFunc(found, func(c *besides) bool { return c.chain[0].whole }) {
		return false
	}
	seesReplaced(found, as)
	return true
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

// locksByKey returns the query that shows the keys of rows of the table which the statement writes, which it locks,
// and reads nothing else but by subqueries of its condition; nil where one does not. It may be one of the WITH
// clause's, by its name.
func (w *write) locksByKey(n *ast.SelectStmt, named bool) *ast.SelectStmt {
	from := nodes(n.FromClause)
	if n.Op != ast.SETOP_NONE || n.WithClause != nil || len(from) != 1 || len(nodes(n.TargetList)) == 0 ||
		hasSubquery(n.SortClause) || hasSubquery(n.LimitCount) || hasSubquery(n.LimitOffset) {
		return nil
	}
	table, ok := from[0].(*ast.RangeVar)
	if !ok {
		return nil
	}
	ref := table.RelName
	if table.Alias != nil {
		if ref = table.Alias.AliasName; len(nodes(table.Alias.ColNames)) > 0 {
			return nil
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
		return nil
	}
	if query := w.commonQuery(table); query != nil {
		if !named || n.WhereClause != nil || n.LimitCount != nil || n.LimitOffset != nil {
			return nil
		}
		return w.locksByKey(query, false)
	}
	if t, _ := w.table(table); t == nil || t != w.target.table || !table.Inh || w.target.only || !locksAll(n, ref) {
		return nil
	}
	return n
}

// commonQuery returns the query of the WITH clause that a name stands for, if it has the column names that its list
// says; nil where it stands for a table. A part sees those of the statement's.
func (w *write) commonQuery(name *ast.RangeVar) *ast.SelectStmt {
	if name.SchemaName != "" {
		return nil
	}
	if w.provenAs == nil || withOf(w.provenAs) == nil {
		c := w.seenByPart().find(name.RelName)
		if c == nil || len(nodes(c.def.Aliascolnames)) > 0 {
			return nil
		}
		query, _ := c.def.Ctequery.(*ast.SelectStmt)
		return query
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
