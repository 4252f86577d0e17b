package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
)

// A column that is computed in a query on the optional side of an outer join is computed below that join: above it may
// be NULL in its place. The server joins in another way then. So such a query passes the columns outwards that its
// subqueries name, as they are, and the statement's own list has what these read. There it is NULL where the identity
// of the query's row is.

// A lifted is what a subquery of such a query reads.
type lifted struct {
	*besides
	row     *sight // it has no row where this one's first column is NULL
	columns []liftedColumn
}

// A liftedColumn is a column of what the query's FROM clause calls ref.
type liftedColumn struct{ ref, name string }

// expr spells the column within the query.
func (c liftedColumn) expr() string { return quoted(c.ref) + "." + quoted(c.name) }

// lift has a block pass outwards what subqueries in it name. It reports whether that is so for all of them.
func (r *reading) lift(b *block, found []*besides, links []link) bool {
	at := slices.IndexFunc(b.sights, func(s *sight) bool {
		return !s.nullable && !s.source.Array && s.within == nil && len(s.exprs) > 0
	})
	if at < 0 {
		return false
	}
	row := b.sights[at]
	for _, c := range found {
		columns, ok := c.named(b.rels, links)
		if !ok {
			return false
		}
		var exprs, types []string
		for _, column := range columns {
			exprs, types = append(exprs, column.expr()), append(types, "")
		}
		b.sights = append(b.sights, &sight{source: c.source(b), exprs: exprs, types: types, within: b.n, unbounded: true,
			lifted: &lifted{c, row, columns}})
	}
	return true
}

// named returns the columns of relations around that a chain of subqueries names, perhaps among others. It reports
// whether each name surely means a column of one relation.
func (c *besides) named(around []*relation, links []link) (columns []liftedColumn, ok bool) {
	var parts []ast.Node
	for _, l := range links {
		if !c.chain[0].whole {
			parts = append(parts, l.Testexpr)
		}
	}
	for _, q := range c.chain {
		if !c.chain[0].whole {
			parts = append(parts, q.query)
		}
		for _, t := range q.tests {
			parts = append(parts, t.node, t.ofNode)
		}
	}
	ok = true
	parts = slices.DeleteFunc(parts, pgtree.Missing)
	whole := pgtree.Walk(func(n ast.Node) bool {
		ref, is := n.(*ast.ColumnRef)
		if !is || !ok {
			return ok
		}
		var column liftedColumn
		var found bool
		if column, found, ok = columnAround(fields(ref), around); found && !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		return ok
	}, parts...)
	return columns, ok && whole
}

// columnAround returns the column of one of the relations that a name may mean. It reports whether there is one, and
// whether it can be passed on under that name.
func columnAround(names []string, around []*relation) (column liftedColumn, found, ok bool) {
	last := names[len(names)-1]
	switch {
	case len(names) == 1 && last == "*":
		return column, false, true
	case len(names) > 2, isSystemColumn(last):
		return column, false, false
	}
	for _, rel := range around {
		switch {
		case len(names) == 2 && rel.ref != names[0]:
			continue
		case len(names) == 1 && rel.ref == last && !rel.has(last): // the whole row
			return column, false, false
		case rel.open || len(names) == 2 && !rel.has(last):
			return column, false, false
		case !rel.has(last):
			continue
		case found || rel.ref == "":
			return column, false, false
		}
		column, found = liftedColumn{rel.ref, last}, true
	}
	return column, found, true
}

// above is the sight in the statement's own list, where the columns that the query passes have the names there.
func (s *sight) above(ref string, st *statement) *sight {
	l, here := s.lifted, *s
	name := func(column string) string {
		if ref == "" {
			return column
		}
		return quoted(ref) + "." + column
	}
	c := *l.besides
	if len(l.columns) > 0 {
		c.row = &replaced{begin: "(SELECT ", from: " FROM " + l.rows(s.names, name)}
	}
	here.spelled = spelling{{text: "CASE WHEN " + name(l.row.names[0]) + " IS NOT NULL THEN "}}
	if c.chain[0].whole {
		here.spelled = append(here.spelled, c.array(st)...)
	} else {
		here.spelled.text(boundedFrom)
		here.spelled = append(here.spelled, c.array(st)...)
		here.spelled.text(boundedTo)
	}
	here.spelled.text(" END")
	here.exprs, here.types, here.lifted, here.nullable = []string{""}, []string{"pg_catalog.text[]"}, nil, true
	return &here
}

// lifts reports whether subqueries are run again beside the relation's rows.
func (rel *relation) lifts() bool {
	return slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.spelled != nil })
}

// rows spells what a FROM clause has in the place of the query's own relations.
func (l *lifted) rows(names []string, name func(string) string) string {
	var refs, rows []string
	for _, c := range l.columns {
		if !slices.Contains(refs, c.ref) {
			refs = append(refs, c.ref)
		}
	}
	for _, ref := range refs {
		var items []string
		for i, c := range l.columns {
			if c.ref == ref {
				items = append(items, name(names[i])+" AS "+quoted(c.name))
			}
		}
		rows = append(rows, "(SELECT "+strings.Join(items, ", ")+") AS "+quoted(ref))
	}
	return strings.Join(rows, " CROSS JOIN ")
}
