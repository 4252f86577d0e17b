package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// Where a query groups, what its rows are grouped by is evaluated for each of the rows that a group is made of, and so
// are the arguments of aggregates. What else stands in its select list is evaluated for each group. Subqueries that
// hang on the rows show what they read with these, those that hang on groups with the groups.

// groups collects the subqueries that a query groups by, somewhere in a span, and finds out of those in the select list
// what they are evaluated for. It reports whether it is known of all.
func (s *seeker) groups(b *block, at span) bool {
	n := b.n
	if (b.grouped || b.unique) && hasSubquery(n.SortClause) {
		return false
	}
	if len(s.links) == 0 && !hasSubquery(n.GroupClause) || !b.grouped && !b.unique {
		return !hasSubquery(n.GroupClause)
	}
	keys, ok := b.groupKeys()
	if !ok {
		return false
	}
	for i := range s.links {
		l := &s.links[i]
		l.shown = !b.unique && !l.inside && !slices.Contains(keys, l.item)
	}
	for _, by := range groupings(n.GroupClause) {
		if !s.seek(by, at, anyValue, nil) {
			return false
		}
	}
	return true
}

// groupKeys returns the positions of the items of the select list that a query groups by. It reports whether these are
// known.
func (b *block) groupKeys() (keys []int, ok bool) {
	items := nodes(b.n.TargetList)
	for _, by := range groupings(b.n.GroupClause) {
		switch by := bare(by).(type) {
		case *ast.A_Const:
			position, ok := by.Val.(*ast.Integer)
			if !ok {
				return nil, false
			}
			keys = append(keys, position.IVal)
		case *ast.ColumnRef:
			names := fields(by)
			at := slices.IndexFunc(items, func(item ast.Node) bool {
				t, ok := item.(*ast.ResTarget)
				return ok && t.Name == names[0]
			})
			switch {
			case len(names) > 1 || at < 0:
			case slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.has(names[0]) }):
				if hasSubquery(items[at]) {
					return nil, false // it means the column, if there is one
				}
			default:
				keys = append(keys, at+1)
			}
		}
	}
	return keys, true
}

// groupings returns what a GROUP BY clause groups by, in whichever of its sets. Of each row all of it is evaluated; in
// a group that is not made by it it is NULL, for the copies of subqueries as well.
func groupings(by *ast.NodeList) (all []ast.Node) {
	for _, item := range nodes(by) {
		switch n := item.(type) {
		case *ast.GroupingSet:
			all = append(all, groupings(n.Content)...)
		case *ast.RowExpr:
			all = append(all, groupings(n.Args)...)
		case *ast.NodeList:
			all = append(all, groupings(n)...)
		default:
			all = append(all, item)
		}
	}
	return all
}
