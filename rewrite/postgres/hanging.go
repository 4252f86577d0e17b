package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A LATERAL query that is joined to all that stands before it in a FROM clause, ON true, is computed for each row of
// that. If nothing but the select list asks for its columns, its rows are those of a subquery in the list.

// hanging divides a FROM clause: into what stands before LATERAL queries that LEFT JOIN adds at its end, and these.
func hanging(from *ast.NodeList) (before *ast.NodeList, queries []*ast.RangeSubselect) {
	items := nodes(from)
	if len(items) == 0 {
		return from, nil
	}
	item := items[len(items)-1]
	for {
		join, ok := bare(item).(*ast.JoinExpr)
		if !ok || join.Jointype != ast.JOIN_LEFT || join.Alias != nil || join.IsNatural || join.UsingClause != nil ||
			!isTrueConstant(join.Quals) {
			break
		}
		query, ok := bare(join.Rarg).(*ast.RangeSubselect)
		if !ok || !query.Lateral {
			break
		}
		queries = append([]*ast.RangeSubselect{query}, queries...)
		item = join.Larg
	}
	if len(queries) == 0 {
		return from, nil
	}
	before = ast.NewNodeList()
	before.Items = append(slices.Clone(items[:len(items)-1]), item)
	return before, queries
}

// isTrueConstant reports whether a condition is TRUE, or a text that means it.
func isTrueConstant(n ast.Node) bool {
	c, ok := bare(n).(*ast.A_Const)
	if !ok {
		return false
	}
	switch v := c.Val.(type) {
	case *ast.Boolean:
		return v.BoolVal
	case *ast.String:
		return v.SVal == "true" || v.SVal == "t"
	}
	return false
}

// beforeHanging finds where the LATERAL queries begin that hang on the rows of a subquery. The copy of its FROM clause
// ends there.
func (q *subquery) beforeHanging(p *placer) bool {
	if len(q.hanging) == 0 {
		return true
	}
	query, _ := q.hanging[0].Subquery.(*ast.SelectStmt)
	at, placed := p.queries[query]
	if !placed {
		return false
	}
	i := at.from - 1
	for p.mark(i, "(") {
		i--
	}
	if !p.is(i, "LATERAL") || !p.is(i-1, "JOIN") {
		return false
	}
	if i -= 2; p.is(i, "OUTER") {
		i--
	}
	q.fromEnd = i
	return p.is(i, "LEFT") && i > q.from+1
}

// hung looks into the LATERAL queries that hang on the rows of a subquery.
func (l *looker) hung(q *subquery, at *link, around []*relation, depth int) bool {
	switch {
	case len(q.hanging) == 0:
		return true
	case at.SubLinkType != ast.EXPR_SUBLINK && at.SubLinkType != ast.ARRAY_SUBLINK:
		return false // nobody asks for its list
	}
	links, rels, ok := l.hangingLinks(q.hanging, at.items(q.query), append(q.relations(), around...))
	if !ok {
		return false
	}
	u, err := l.inspect(q.query.TargetList)
	if err != nil || q.query.GroupClause != nil || q.query.HavingClause != nil || u.unsure ||
		namesAny(rels, q.query.WhereClause, q.query.DistinctClause, q.query.LimitCount, q.query.LimitOffset) ||
		(q.query.LimitCount != nil || q.query.LimitOffset != nil) && namesAny(rels, q.query.SortClause) {
		return false
	}
	for _, link := range links {
		if !l.addWithin(q, link, append(q.relations(), around...), depth) {
			return false
		}
	}
	return true
}

// hangingLinks returns LATERAL queries as subqueries, of which items of a list ask, and what they are in the FROM
// clause beside others. It reports whether the server surely computes each of them, and none hangs on another one.
func (l *looker) hangingLinks(queries []*ast.RangeSubselect, items []ast.Node, beside []*relation) (links []link, rels []*relation, ok bool) {
	for _, from := range queries {
		query, ok := from.Subquery.(*ast.SelectStmt)
		if !ok || from.Alias == nil || len(nodes(from.Alias.ColNames)) > 0 {
			return nil, nil, false
		}
		rels = append(rels, l.derivedRelation(from, query))
	}
	for i, from := range queries {
		query, asked := from.Subquery.(*ast.SelectStmt), l.asksOf(from, items, append(slices.Clone(rels), beside...))
		rel := rels[i]
		if !slices.ContainsFunc(rel.names, func(name string) bool { return name != "" && asked(name) }) {
			return nil, nil, false // the server may leave it out
		}
		others := append(slices.Clone(rels[:i]), rels[i+1:]...)
		if mayReferTo(query, l.relationsIn(query), others) {
			return nil, nil, false
		}
		links = append(links, link{SubLink: &ast.SubLink{SubLinkType: ast.EXPR_SUBLINK, Subselect: query}, lists: true, asked: asked})
	}
	return links, rels, true
}

// relationsIn returns what stands in FROM clauses within a query.
func (l *looker) relationsIn(n *ast.SelectStmt) (rels []*relation) {
	pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeVar:
			rel := &relation{ref: refsOfItem(n)[0], open: true}
			if t, _ := l.table(n); t != nil && !l.inWith(n) {
				if s, err := l.sourceOf(t, n); err == nil {
					rel.names, rel.open = s.names, false
				}
			}
			rels = append(rels, rel)
		case *ast.RangeSubselect:
			if query, ok := n.Subquery.(*ast.SelectStmt); ok {
				rels = append(rels, l.derivedRelation(n, query))
			}
		}
		return true
	}, n)
	return rels
}

// namesAny reports whether expressions may name one of the relations, or a column of theirs.
func namesAny(rels []*relation, parts ...ast.Node) (found bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok {
			names := ofTable(ref)
			found = found || slices.ContainsFunc(rels, func(rel *relation) bool {
				return names[0] == rel.ref || len(names) == 1 && (names[0] == "*" || rel.has(names[0]))
			})
		}
		return !found
	}, parts...)
	return found || !whole
}
