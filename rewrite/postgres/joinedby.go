package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// What joins tables holds for each row of an inner join, as a condition of the WHERE clause does. Of an outer join it
// holds for the rows that have one of the optional side, of a full join for those that have one of both. Those that
// have none hang on no row that a subquery found: it is a matter of the condition, as a row is that WHERE leaves out.

// joins collects the subqueries in the conditions of a block's joins, somewhere in a span.
func (s *seeker) joins(b *block, at span) bool {
	return !slices.ContainsFunc(nodes(b.n.FromClause), func(item ast.Node) bool { return !s.join(b, item, at, false) })
}

// join collects those of an item of the FROM clause. Of what is optional there may be no row.
func (s *seeker) join(b *block, item ast.Node, at span, optional bool) bool {
	n, ok := bare(item).(*ast.JoinExpr)
	if !ok {
		_, query := bare(item).(*ast.RangeSubselect) // which says itself what it reads
		return query || !hasSubquery(item)
	}
	if n.Alias != nil {
		return !hasSubquery(n) // it hides the tables' names
	}
	left, right := n.Jointype == ast.JOIN_RIGHT || n.Jointype == ast.JOIN_FULL,
		n.Jointype == ast.JOIN_LEFT || n.Jointype == ast.JOIN_FULL
	if !s.join(b, n.Larg, at, optional || left) || !s.join(b, n.Rarg, at, optional || right) {
		return false
	}
	if pgtree.Missing(n.Quals) || !hasSubquery(n.Quals) {
		return true
	}
	var tests []test
	var sides []ast.Node // that surely have a row where the condition held
	switch {
	case n.Jointype == ast.JOIN_INNER && !optional:
	case n.Jointype == ast.JOIN_INNER:
		sides = []ast.Node{n}
	case n.Jointype == ast.JOIN_LEFT:
		sides = []ast.Node{n.Rarg}
	case n.Jointype == ast.JOIN_RIGHT:
		sides = []ast.Node{n.Larg}
	default:
		sides = []ast.Node{n.Larg, n.Rarg}
	}
	for _, side := range sides {
		there, ok := b.there(side)
		if !ok {
			return false
		}
		tests = append(tests, test{must: must{before: there}})
	}
	before := len(s.links)
	if !s.seek(n.Quals, at, ofAll, tests) {
		return false
	}
	return !slices.ContainsFunc(s.links[before:], func(l link) bool { return !b.meansTheSame(l.SubLink) })
}

// there returns a condition that holds where a side of a join has a row, if it has a table that has one then.
func (b *block) there(side ast.Node) (condition string, ok bool) {
	side = bare(side)
	if n, is := side.(*ast.JoinExpr); is {
		if n.Alias == nil && (n.Jointype == ast.JOIN_INNER || n.Jointype == ast.JOIN_LEFT) {
			condition, ok = b.there(n.Larg)
		}
		if !ok && n.Alias == nil && (n.Jointype == ast.JOIN_INNER || n.Jointype == ast.JOIN_RIGHT) {
			condition, ok = b.there(n.Rarg)
		}
		return condition, ok
	}
	for _, rel := range b.rels {
		switch {
		case rel.base != nil && len(rel.sights) > 0 && !rel.looksUp() && rel.node == side:
			return rel.base.system("ctid") + " IS NOT NULL", true
		case rel.base == nil && rel.ref != "" && slices.Equal(refsOfItem(side), []string{rel.ref}):
			return rel.there()
		}
	}
	return "", false
}

// there returns a condition that holds where a query has a row: it passes the identity of a row outwards that it always
// has.
func (rel *relation) there() (condition string, ok bool) {
	for _, s := range rel.sights {
		if s.certain {
			return s.exprs[0] + " IS NOT NULL", true
		}
	}
	return "", false
}

// meansTheSame reports whether the names in something of a join's condition mean in the select list what they mean
// there: the list sees all tables, and a name without one may be that of several.
func (b *block) meansTheSame(n ast.Node) (same bool) {
	same = true
	whole := pgtree.Walk(func(n ast.Node) bool {
		ref, ok := n.(*ast.ColumnRef)
		if !ok {
			return same
		}
		owners, names := 0, fields(ref)
		for _, rel := range b.rels {
			if rel.has(names[0]) { // one that may have others has any
				owners++
			}
		}
		same = same && (len(names) > 1 || owners < 2)
		return same
	}, n)
	return same && whole
}
