package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// Programs ask for trees: a row with an array of those that belong to it, each with arrays of its own. Such arrays are
// subqueries in the select list of one, or LATERAL queries that are joined to what stands before them. For each row of
// the one around it such a query is evaluated, if what shows the row surely asks for its value. So what it reads is
// shown as what a subquery within another reads: beside each row of that (ADR 62).

// A wanting says which columns of a query are surely asked for, by their names; nil: all are.
type wanting func(name string) bool

// asksFor reports whether a column is surely asked for.
func (at *link) asksFor(name string) bool { return at.asked == nil || name != "" && at.asked(name) }

// items returns the items of a query's list that are surely asked for.
func (at *link) items(n *ast.SelectStmt) (items []ast.Node) {
	for _, t := range nodes(n.TargetList) {
		if at.asksFor(resultName(t)) || star(t) != nil {
			items = append(items, t)
		}
	}
	return items
}

// resultName is the name of an item of a select list; empty where the server chooses it.
func resultName(item ast.Node) string {
	t, ok := item.(*ast.ResTarget)
	if !ok {
		return ""
	}
	if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && t.Name == "" {
		return last(ref)
	}
	return t.Name
}

// wrapped returns the query that a query takes all rows of, and what it asks of that; nil where it does not. What its
// list has of subqueries must read no tables.
func (l *looker) wrapped(n *ast.SelectStmt, at *link, around []*relation) (*ast.SelectStmt, wanting) {
	outer, from := *n, nodes(n.FromClause)
	if len(from) != 1 {
		return nil, nil
	}
	if !hasSubquery(n.TargetList) || !l.readsTables(n.TargetList) {
		outer.TargetList = nil
	}
	item, ok := bare(from[0]).(*ast.RangeSubselect)
	if name, isName := bare(from[0]).(*ast.RangeVar); isName && l.with[name.RelName] != nil && name.SchemaName == "" {
		item, ok = l.derived(name, l.with[name.RelName]), true
		outer.FromClause = ast.NewNodeList()
		outer.FromClause.Append(item)
	}
	if n == l.tree && l.with != nil {
		outer.WithClause = nil
	}
	query := allOf(&outer, at.SubLinkType == ast.EXISTS_SUBLINK)
	if !ok || query == nil {
		return nil, nil
	}
	return query, l.asksOf(item, at.items(n), around)
}

// derived is a query of the WITH clause as one in the place of its name.
func (l *looker) derived(name *ast.RangeVar, query *ast.SelectStmt) *ast.RangeSubselect {
	alias := name.Alias
	if alias == nil {
		alias = &ast.Alias{AliasName: name.RelName}
	}
	return &ast.RangeSubselect{Subquery: query, Alias: alias}
}

// asksOf returns what items of a select list surely ask of a query in the FROM clause. By its name alone they ask for
// all of it, unless it has such a column, or what else they may name.
func (l *looker) asksOf(from *ast.RangeSubselect, items []ast.Node, around []*relation) wanting {
	query, ok := from.Subquery.(*ast.SelectStmt)
	if !ok || from.Alias == nil || len(nodes(from.Alias.ColNames)) > 0 {
		return func(string) bool { return false }
	}
	ref, rel := from.Alias.AliasName, l.derivedRelation(from, query)
	named := make(map[string]bool)
	for _, item := range items {
		l.surelyNamed(item, named, around)
	}
	isColumn := slices.ContainsFunc(append([]*relation{rel}, around...), func(o *relation) bool { return o.has(ref) })
	return func(name string) bool {
		return named["*"] || named[ref] && !isColumn || named[ref+".*"] || named[ref+"."+name] || named[name]
	}
}

// derivedRelation is what a query in a FROM clause is there, by the names of its columns.
func (l *looker) derivedRelation(from *ast.RangeSubselect, query *ast.SelectStmt) *relation {
	rel := &relation{ref: aliasOf(from.Alias), node: from}
	query = firstOf(query)
	rel.open = len(nodes(query.ValuesLists)) > 0 || from.Alias != nil && len(nodes(from.Alias.ColNames)) > 0
	for _, item := range nodes(query.TargetList) {
		ref := star(item)
		if ref == nil {
			name := shownName(item)
			rel.names, rel.open = append(rel.names, name), rel.open || name == ""
			continue
		}
		for _, source := range nodes(query.FromClause) {
			l.addNames(rel, source, ref)
		}
	}
	return rel
}

// addNames adds the names that a star has of an item of a FROM clause.
func (l *looker) addNames(rel *relation, item ast.Node, of *ast.ColumnRef) {
	var held *relation
	switch n := bare(item).(type) {
	case *ast.JoinExpr:
		l.addNames(rel, n.Larg, of)
		l.addNames(rel, n.Rarg, of)
		return
	case *ast.RangeSubselect:
		if query, ok := n.Subquery.(*ast.SelectStmt); ok {
			held = l.derivedRelation(n, query)
		}
	case *ast.RangeVar:
		if query := l.with[n.RelName]; query != nil && n.SchemaName == "" {
			held = l.derivedRelation(l.derived(n, query), query)
		} else if t, _ := l.table(n); t != nil && !l.inWith(n) {
			if s, err := l.sourceOf(t, n); err == nil {
				held = &relation{ref: s.ref, names: s.names}
			}
		}
	}
	switch {
	case held == nil:
		rel.open = true
	case held.within(of):
		rel.names, rel.open = append(rel.names, held.names...), rel.open || held.open
	}
}

// surelyNamed collects the columns whose values an expression surely asks for.
func (l *looker) surelyNamed(n ast.Node, named map[string]bool, around []*relation) {
	all := func(parts []ast.Node) {
		for _, part := range parts {
			l.surelyNamed(part, named, around)
		}
	}
	if pgtree.Missing(n) {
		return
	}
	switch n := bare(n).(type) {
	case *ast.ResTarget:
		l.surelyNamed(n.Val, named, around)
	case *ast.ColumnRef:
		named[strings.Join(fields(n), ".")] = true
	case *ast.FuncCall:
		if n.Over == nil && n.AggFilter == nil && !n.AggWithinGroup {
			all(nodes(n.Args))
		}
	case *ast.CoalesceExpr:
		all(nodes(n.Args)[:1])
	case *ast.TypeCast:
		l.surelyNamed(n.Arg, named, around)
	case *ast.NullTest:
		l.surelyNamed(n.Arg, named, around)
	case *ast.A_Expr:
		if n.Kind == ast.AEXPR_OP {
			all([]ast.Node{n.Lexpr, n.Rexpr})
		}
	case *ast.SubLink:
		if q, ok := n.Subselect.(*ast.SelectStmt); ok && n.SubLinkType == ast.EXPR_SUBLINK {
			for _, item := range l.rowItems(q, nil, around) {
				l.surelyNamed(item, named, around)
			}
		}
	}
}

// rowItems returns the items of what gives one row without reading a table, perhaps by a query of the same kind in its
// FROM clause: those that are asked for.
func (l *looker) rowItems(q *ast.SelectStmt, asked wanting, around []*relation) (items []ast.Node) {
	from, at := nodes(q.FromClause), &link{asked: asked}
	switch {
	case q.Op != ast.SETOP_NONE || q.WhereClause != nil || q.GroupClause != nil || q.HavingClause != nil ||
		q.LimitCount != nil || q.LimitOffset != nil || q.WithClause != nil || len(nodes(q.ValuesLists)) > 0 || len(from) > 1:
		return nil
	case len(from) == 0:
		return at.items(q)
	}
	item, ok := bare(from[0]).(*ast.RangeSubselect)
	if !ok {
		return nil
	}
	inner, ok := item.Subquery.(*ast.SelectStmt)
	if !ok {
		return nil
	}
	return l.rowItems(inner, l.asksOf(item, at.items(q), around), around)
}

// readsTables reports whether subqueries of an expression may read tables, or call what may.
func (pl *planner) readsTables(n ast.Node) bool {
	u, err := pl.inspect(n)
	return err != nil || pl.readsBeside(u) || u.function
}

// evaluatesItems reports whether the subqueries in the list of a query that is one are evaluated for each of its rows.
func (l *looker) evaluatesItems(at *link, n *ast.SelectStmt) bool {
	u, err := l.inspect(n.TargetList)
	return err == nil && !u.unsure && !u.function && !u.volatile && !u.window && n.GroupClause == nil && n.HavingClause == nil &&
		n.DistinctClause == nil && (at.SubLinkType == ast.EXPR_SUBLINK || at.SubLinkType == ast.ARRAY_SUBLINK)
}

// listed looks into the subqueries in the list of one, which are evaluated for each of its rows.
func (l *looker) listed(q *subquery, at *link, around []*relation, depth int) bool {
	n := q.query
	if !hasSubquery(n.TargetList) {
		return true
	}
	u, err := l.inspect(n.TargetList)
	s := seeker{planner: l.planner}
	if err != nil || u.reachesOut(q.relations()) || !s.list(n.TargetList, q.list) {
		return false
	}
	items := nodes(n.TargetList)
	for _, link := range s.links {
		if l.readsNothing(link) {
			continue
		}
		link.lists = true
		if u.aggregate && !link.inside || !at.asksFor(resultName(items[link.item-1])) ||
			!l.addWithin(q, link, append(q.relations(), around...), depth) {
			return false
		}
	}
	return true
}

// addWithin looks into a subquery that is evaluated for the rows of another one.
func (l *looker) addWithin(q *subquery, at link, around []*relation, depth int) bool {
	all, ok := l.look(at, around, depth+1)
	if !ok || slices.ContainsFunc(all, func(w *subquery) bool {
		return w.whole && len(w.tests) > 0 || slices.ContainsFunc(w.within, func(v *subquery) bool { return v.whole })
	}) {
		return false
	}
	q.within = append(q.within, all...)
	for _, w := range all {
		q.gates = append(q.gates, w.gates...) // it is copied with this one
	}
	return true
}

// inItems looks into the subqueries in the list of a query without a FROM clause.
func (l *looker) inItems(at *link, n *ast.SelectStmt, around []*relation, depth int) (found []*subquery, ok bool) {
	if !hasSubquery(n.TargetList) {
		return nil, true
	}
	_, here, placed := l.placed(*at, n)
	if !l.evaluatesItems(at, n) || n.LimitCount != nil || n.LimitOffset != nil {
		return nil, false
	}
	s := seeker{planner: l.planner}
	u, err := l.inspect(n.TargetList)
	if !placed || err != nil || u.aggregate || !s.list(n.TargetList, span{here.from + 1, here.listEnd + 1}) {
		return nil, false
	}
	items := nodes(n.TargetList)
	for _, link := range s.links {
		if l.readsNothing(link) {
			continue
		}
		link.lists, link.tests = true, inOrder(append(slices.Clone(at.tests), link.tests...))
		all, ok := l.look(link, around, depth)
		if !ok || !at.asksFor(resultName(items[link.item-1])) {
			return nil, false
		}
		found = append(found, all...)
	}
	return found, true
}
