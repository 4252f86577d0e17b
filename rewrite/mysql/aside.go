package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
)

// SELECT COUNT(*) FROM (SELECT DISTINCT ...) has one row of all that the query in its FROM clause reads, which cannot
// pass identities outwards where it removes duplicates, or groups. A second subquery of the same FROM clauses and
// conditions can show them beside that row (ADR 62).

// maxAside is how many identities of a table are shown beside the only row of a result.
const maxAside = 1000

// countsRows reports whether a statement has one row in any case, made of all rows of the only query in its FROM
// clause.
func (pl *planner) countsRows(b *block, use *usage) bool {
	n := b.n
	return n == pl.alone && len(b.srcs) == 1 && b.grouped && n.GroupBy == nil && n.Where == nil && n.Having == nil &&
		n.Limit == nil && n.LockInfo == nil && n.OrderBy == nil && n.With == nil && !use.subquery && !use.window &&
		!use.function && pl.readsAgain(n)
}

// readsAside reports whether what a query in the FROM clause reads is shown beside the statement's row.
func (pl *planner) readsAside(s *source) bool {
	if s != pl.nesting.counted {
		return false
	}
	var all []*besides
	switch n := s.node.Source.(type) {
	case *ast.SelectStmt:
		if !n.Distinct && n.GroupBy == nil {
			return false // it passes its identities outwards
		}
		if !pl.aside(n, &all) {
			return false
		}
	case *ast.SetOprStmt:
		if n.With != nil || n.SelectList == nil || n.SelectList.With != nil || n.Limit != nil {
			return false
		}
		for _, operand := range n.SelectList.Selects {
			query, _ := onlyQuery(operand)
			if query == nil || query.AfterSetOperator != nil && *query.AfterSetOperator != ast.Union &&
				*query.AfterSetOperator != ast.UnionAll || !pl.aside(query, &all) {
				return false
			}
		}
	default:
		return false
	}
	if len(all) == 0 || len(all) > maxBesideColumns {
		return false
	}
	pl.besides, pl.literal, pl.plan.Upstream.FitsOnly = all, true, true
	return true
}

// aside adds the columns that show what a query of tables reads by its FROM clause and condition.
func (pl *planner) aside(n *ast.SelectStmt, all *[]*besides) bool {
	return pl.asideOf(n, all, mayHave{})
}

// A mayHave is what a query whose rows are read again may have: windows, outer joins, and, as all of its FROM clause,
// the name of another query of the WITH clause.
type mayHave struct{ windows, outer, named bool }

// asideOf is aside of a query that may have these.
func (pl *planner) asideOf(n *ast.SelectStmt, all *[]*besides, may mayHave) bool {
	srcs, read, links, ok := pl.readWith(n, may)
	limit, err := pl.session.arrayLimit()
	if !ok || err != nil {
		return false
	}
	if limit == 0 || limit > maxAside {
		limit = maxAside
	}
	found, ok := pl.lookWithin(n, links.within, srcs, read, &block{n: n}, true)
	if !ok {
		return false
	}
	for i := range links.alone {
		columns, ok := pl.look(&links.alone[i], &block{n: n, srcs: srcs, grouped: true})
		if !ok {
			return false
		}
		found = append(found, columns...)
	}
	for _, s := range srcs {
		*all = append(*all, &besides{of: s, query: read.pieces(), whole: true})
	}
	*all = append(*all, found...)
	for _, c := range *all {
		c.limit = limit
	}
	return true
}

// A rowLinks is the subqueries of a query's condition: within are EXISTS and IN, whose rows stand beside those of the
// query, alone are those whose value is compared.
type rowLinks struct{ within, alone []link }

// rowLinks finds the subqueries of the condition of a query of tables, if it can be evaluated once more.
func (pl *planner) rowLinks(n *ast.SelectStmt, srcs sources) (links rowLinks, ok bool) {
	rest := &usage{}
	for _, part := range []ast.Node{n.Fields, n.GroupBy, n.Having, n.OrderBy, n.From} {
		if !missing(part) {
			part.Accept(rest)
		}
	}
	if rest.subquery {
		return links, false
	}
	found, ok := pl.harmlessBut(n, srcs)
	for i := range found {
		if found[i].with == nil {
			links.within = append(links.within, found[i])
			continue
		}
		own := flatten(found[i].query.From.TableRefs)
		if pl.baseSources(own) && refersTo(found[i].query, own, srcs) {
			links.within = append(links.within, found[i])
		} else {
			links.alone = append(links.alone, found[i])
		}
	}
	return links, ok
}

// readBy returns the tables of a query without a LIMIT, and the text by which it reads them, if another copy of that
// may be run.
func (pl *planner) readBy(n *ast.SelectStmt) (srcs sources, read clauses, ok bool) {
	srcs, read, links, ok := pl.readWith(n, mayHave{})
	return srcs, read, ok && len(links.within)+len(links.alone) == 0
}

// readWith is readBy of a query that may have subqueries in its condition, and these.
func (pl *planner) readWith(n *ast.SelectStmt, may mayHave) (srcs sources, read clauses, links rowLinks, ok bool) {
	if n.Kind != ast.SelectStmtKindSelect || n.From == nil || n.With != nil || n.LockInfo != nil || n.TableHints != nil ||
		n.Limit != nil || len(n.WindowSpecs) > 0 && !may.windows || merges(n.From.TableRefs) ||
		!may.outer && !innerJoins(n.From.TableRefs) {
		return nil, read, links, false
	}
	if u := inspectWrite(n); u.function || u.window && !may.windows {
		return nil, read, links, false
	}
	srcs = flatten(n.From.TableRefs)
	var passing []replacement
	if !pl.baseSources(srcs) {
		if passing, ok = pl.readSources(n, srcs); !may.named || !ok || len(srcs) > 1 || srcs[0].behind != nil {
			return nil, read, links, false
		}
	}
	verb := pl.armVerb(n)
	if verb < 0 {
		return nil, read, links, false
	}
	if read, ok = pl.clausesIn(n, verb, pl.endOf(verb), passing); ok {
		links, ok = pl.rowLinks(n, srcs)
	}
	return srcs, read, links, ok
}
