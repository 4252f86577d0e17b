package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A flat is a query of a FROM clause that puts rows together, of which a copy shows each row.
type flat struct {
	query   *ast.SelectStmt
	ref     string
	node    ast.Node
	columns []flatColumn
	// unnamed says that a column has a name of the server's choice. A star shows columns of their own names: those that
	// are in parts choose rows before they are put together.
	unnamed, star bool
	parts         []*ast.ColumnRef
	one           bool // it gives one row, whatever there is
	left          bool // a LEFT JOIN shows what stands before it in any case
	used          map[string]bool
	values        []span // what aggregates are given that has subqueries
	computed      []int  // items of its list that have subqueries elsewhere
}

// A choice says when a condition on a column chooses among the rows of a query.
type choice uint8

const (
	unsure     choice = iota
	another           // it is no column of the query
	afterwards        // when they are put together
	beforehand
)

// A flatColumn is an item of the query's list.
type flatColumn struct {
	name    string
	chooses choice
}

// add adds a flat query, if it is known what a copy of it reads.
func (f *flattening) add(n *ast.SelectStmt, ref string, node ast.Node, join *ast.JoinExpr) bool {
	g := &flat{query: n, ref: ref, node: node, used: make(map[string]bool)}
	u, err := f.inspect(n.TargetList)
	if err != nil || n.WithClause != nil || n.SortClause != nil || n.LimitCount != nil || n.LimitOffset != nil ||
		n.WindowClause != nil || len(nodes(n.DistinctClause)) > 0 || hasSubquery(n.TargetList) && !g.valued(f) || hasSubquery(n.GroupClause) ||
		hasSubquery(n.HavingClause) || n.HavingClause != nil && !f.ofGroups(n.HavingClause) ||
		slices.ContainsFunc(f.flats, func(o *flat) bool { return o.ref == ref }) ||
		slices.ContainsFunc(nodes(n.GroupClause), func(n ast.Node) bool { _, set := n.(*ast.GroupingSet); return set }) {
		return false
	}
	f.flats = append(f.flats, g)
	grouped := u.aggregate || n.GroupClause != nil || n.HavingClause != nil
	g.one = grouped && n.GroupClause == nil
	g.left = join != nil && join.Jointype == ast.JOIN_LEFT && bare(join.Rarg) == node
	switch {
	case n.Op != ast.SETOP_NONE:
		return f.unites(n) && g.all(firstOf(n), func(*ast.ResTarget) choice { return beforehand })
	case grouped && (u.window || n.DistinctClause != nil), u.window && n.DistinctClause != nil,
		g.one && (n.HavingClause != nil || extremes(u) && n.WhereClause == nil), !f.allPlain(&ast.SelectStmt{FromClause: n.FromClause}):
		return false // of these extremes an end of an index may tell
	case grouped: // what is no aggregate is the same in all rows of a group, and the server asks it of each row
		return g.all(n, func(t *ast.ResTarget) choice {
			if of, err := f.inspect(t.Val); err != nil || of.aggregate || of.subquery {
				return afterwards
			}
			return beforehand
		})
	case u.window:
		return g.partitioned() && (g.all(n, g.ofParts) || g.star)
	}
	return g.all(n, func(*ast.ResTarget) choice { return beforehand })
}

// all takes over the columns of a query without a star, and says when they choose rows.
func (g *flat) all(n *ast.SelectStmt, chooses func(*ast.ResTarget) choice) bool {
	for _, item := range nodes(n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return false
		}
		if star(item) != nil {
			g.star = true
			continue
		}
		c := flatColumn{name: t.Name, chooses: chooses(t)}
		switch n := bare(t.Val).(type) {
		case *ast.ColumnRef:
			if all := fields(n); c.name == "" {
				c.name = all[len(all)-1]
			}
		case *ast.FuncCall:
			if c.name == "" {
				c.name = lastName(n.Funcname)
			}
		}
		g.unnamed = g.unnamed || c.name == ""
		g.columns = append(g.columns, c)
	}
	return !g.star
}

// unites reports whether a set operation is a UNION of plain queries.
func (f *flattening) unites(n *ast.SelectStmt) bool {
	if n.WithClause != nil || n.SortClause != nil || n.LimitCount != nil || n.LimitOffset != nil {
		return false
	}
	if n.Op == ast.SETOP_NONE {
		return f.allPlain(n) && len(nodes(n.ValuesLists)) == 0 && len(nodes(n.TargetList)) > 0
	}
	return n.Op == ast.SETOP_UNION && f.unites(n.Larg) && f.unites(n.Rarg)
}

// firstOf returns the query of a set operation that names its columns.
func firstOf(n *ast.SelectStmt) *ast.SelectStmt {
	for n.Op != ast.SETOP_NONE {
		n = n.Larg
	}
	return n
}

// partitioned finds the columns that all windows of the query are partitioned by. It reports whether these are known:
// each window is spelled where it is used, and partitioned by columns.
func (g *flat) partitioned() bool {
	first, known := true, true
	whole := pgtree.Walk(func(n ast.Node) bool {
		call, ok := n.(*ast.FuncCall)
		if !ok || call.Over == nil {
			return known
		}
		known = known && call.Over.Name == "" && call.Over.Refname == ""
		var by []*ast.ColumnRef
		for _, item := range nodes(call.Over.PartitionClause) {
			ref, ok := bare(item).(*ast.ColumnRef)
			if known = known && ok; ok && (first || slices.ContainsFunc(g.parts, isColumn(ref))) {
				by = append(by, ref)
			}
		}
		g.parts, first = by, false
		return known
	}, g.query.TargetList)
	return known && whole
}

func isColumn(ref *ast.ColumnRef) func(*ast.ColumnRef) bool {
	return func(o *ast.ColumnRef) bool { return slices.Equal(fields(o), fields(ref)) }
}

// ofParts says when an item of the list of a query with windows chooses rows.
func (g *flat) ofParts(t *ast.ResTarget) choice {
	ref, ok := bare(t.Val).(*ast.ColumnRef)
	switch {
	case !ok:
		return afterwards // the partitions are of columns
	case slices.ContainsFunc(g.parts, isColumn(ref)):
		return beforehand
	case g.inParts(last(ref)):
		return unsure // it may be the same column by another name
	}
	return afterwards
}

// last is the name of a column without that of its table.
func last(ref *ast.ColumnRef) string {
	names := fields(ref)
	return names[len(names)-1]
}

// inParts reports whether the windows are partitioned by a column of a name.
func (g *flat) inParts(name string) bool {
	return slices.ContainsFunc(g.parts, func(o *ast.ColumnRef) bool { return last(o) == name })
}

// chooses says when a condition on a column chooses among the query's rows.
func (g *flat) chooses(name string) choice {
	found := another
	for _, c := range g.columns {
		switch {
		case c.name != name:
		case found != another || g.star && g.inParts(name):
			return unsure
		default:
			found = c.chooses
		}
	}
	switch {
	case found != another:
		return found
	case g.star && g.inParts(name):
		return beforehand
	case g.star:
		return afterwards
	case g.unnamed:
		return unsure
	}
	return another
}

// before reports whether a condition chooses rows before a flat query puts them together. known says that it is clear
// which columns it names.
func (f *flattening) before(n ast.Node) (before, known bool) {
	before, known = true, true
	inner := f.innerNames(n)
	ofGroups := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		ref, ok := n.(*ast.ColumnRef)
		if !ok {
			return known
		}
		names := fields(ref)
		for _, g := range f.flats {
			switch at := g.chooses(last(ref)); {
			case len(names) == 2 && names[0] != g.ref:
				continue
			case inner[ref] && len(names) == 1:
				known = known && at == another && names[0] != g.ref // of whose query it is the column is not known
				continue
			case len(inner) > 0 && at == beforehand && g.query.Op == ast.SETOP_NONE:
				ofGroups = true
			}
			switch g.chooses(last(ref)) {
			case beforehand:
				g.used[last(ref)] = true
			case afterwards:
				before = false
			case unsure:
				known = false
			}
			known = known && len(names) <= 2 && last(ref) != "*" && names[0] != "*" &&
				(len(names) == 2 || names[0] != g.ref && !(g.star && (f.plain || len(f.flats) > 1)))
		}
		return known
	}, n)
	if hasSubquery(n) && (ofGroups || !before) {
		before, known = false, known && !(ofGroups && f.mayBePushed(n))
	}
	return before, known && whole && !f.hidden(n)
}

// innerNames are the references to columns in the subqueries of a condition; nil where it has none.
func (f *flattening) innerNames(n ast.Node) map[*ast.ColumnRef]bool {
	inner := make(map[*ast.ColumnRef]bool)
	pgtree.Each(func(n ast.Node) bool {
		if sub, ok := n.(*ast.SubLink); ok {
			pgtree.Each(func(n ast.Node) bool {
				if ref, ok := n.(*ast.ColumnRef); ok {
					inner[ref] = true
				}
				return true
			}, sub.Subselect)
		}
		return true
	}, n)
	return inner
}

// hidden reports whether a subquery gives another table the name of a flat query, or names a query of the WITH clause.
func (f *flattening) hidden(n ast.Node) (hidden bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeVar:
			hidden = hidden || f.isRef(n.RelName) || f.defines(n.RelName)
		case *ast.Alias:
			hidden = hidden || f.isRef(n.AliasName)
		}
		return !hidden
	}, n)
	return hidden || !whole
}

// defines reports whether the statement's WITH clause, or one within, defines a name.
func (f *flattening) defines(name string) (defined bool) {
	pgtree.Each(func(n ast.Node) bool {
		def, ok := n.(*ast.CommonTableExpr)
		defined = defined || ok && def.Ctename == name
		return !defined
	}, f.stmt)
	return defined
}

func (f *flattening) isRef(name string) bool {
	return slices.ContainsFunc(f.flats, func(g *flat) bool { return g.ref == name })
}

// mayBePushed reports whether the server may join the subquery that a condition is, and learn from its own condition
// which groups are asked for before it makes them.
func (f *flattening) mayBePushed(n ast.Node) (may bool) {
	sub, ok := bare(n).(*ast.SubLink)
	if !ok || sub.SubLinkType != ast.ANY_SUBLINK && sub.SubLinkType != ast.EXISTS_SUBLINK {
		return false
	}
	q, ok := sub.Subselect.(*ast.SelectStmt)
	if !ok || q.Op != ast.SETOP_NONE {
		return true
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n.(type) {
		case *ast.A_Const, *ast.ParamRef:
			may = true
		}
		return !may
	}, q.WhereClause, q.FromClause)
	return may || !whole
}

// flatten cuts what puts rows together out of a query.
func (f *flattening) flatten(g *flat) bool {
	if g.query.Op != ast.SETOP_NONE {
		return f.keepAll(g.query)
	}
	at := f.places.queries[g.query]
	from, end := f.st.rowsOf(at)
	list := span{at.from + 1, at.listEnd + 1}
	if from < 0 || !f.st.is(at.from, "SELECT") {
		return false
	}
	for f.st.is(list.from, "ALL", "DISTINCT") {
		list.from++
	}
	var items []func(*excerpt)
	spans := f.st.cut(list, ",")
	for i, c := range g.columns {
		switch {
		case !g.used[c.name]:
		case g.star || len(spans) != len(g.columns):
			return false
		default:
			items = append(items, func(x *excerpt) { x.take(f.st, spans[i].from, spans[i].to) })
		}
	}
	for _, ref := range g.parts {
		if g.star && g.used[last(ref)] {
			items = append(items, func(x *excerpt) { x.add(spelledColumn(ref)) })
		}
	}
	used := len(items)
	items = append(items, g.valueItems(f)...)
	f.cut(span{at.from, from}, func(x *excerpt) {
		x.add("SELECT ")
		if g.one {
			x.add("FROM (SELECT 1) AS flat_one LEFT JOIN (SELECT ")
		}
		for i, item := range items {
			if i > 0 {
				x.add(", ")
			}
			item(x)
		}
	})
	f.cut(span{end, at.to}, func(x *excerpt) {
		if g.one {
			x.add(") AS flat_group ON true")
		}
	})
	return !g.one || used == 0
}

// spelledColumn spells the name of a column.
func spelledColumn(ref *ast.ColumnRef) (text string) {
	for i, name := range fields(ref) {
		if i > 0 {
			text += "."
		}
		text += quoted(name)
	}
	return text
}

// keepAll has the UNIONs of a tree keep equal rows.
func (f *flattening) keepAll(n *ast.SelectStmt) bool {
	if n.Op == ast.SETOP_NONE {
		return true
	}
	at := f.places.queries[n].operator
	switch {
	case f.st.is(at+1, "ALL"):
	case f.st.is(at+1, "DISTINCT"):
		f.cut(span{at + 1, at + 2}, func(x *excerpt) { x.add("ALL") })
	default:
		f.cut(span{at + 1, at + 1}, func(x *excerpt) { x.add("ALL") })
	}
	return f.keepAll(n.Larg) && f.keepAll(n.Rarg)
}
