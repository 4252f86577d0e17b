package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// What a grouping query computes of a group otherwise than by aggregates is computed for the groups that no condition
// leaves out, if anything is asked of it. So what the subqueries in such an item read stands beside the rows of the
// statement that show its value, compare it, or make an aggregate of it: there the columns that they name are those of
// the query's list.

// lookComputed looks into such items of a flat query, beside rows of the statement or groups of these. It reports
// whether all that their subqueries read can be shown.
func (f *flattening) lookComputed(g *flat, grouped bool) (found []*besides, ok bool) {
	if len(g.computed) == 0 {
		return nil, true
	}
	rels, ok := f.tablesOf(g.query)
	if !ok || g.left || g.query.GroupClause == nil {
		return nil, false
	}
	at := f.places.queries[g.query]
	spans := f.st.cut(span{at.from + 1, at.listEnd + 1}, ",")
	l := looker{reading: f.reading, block: &block{n: g.query, rels: rels, grouped: grouped}}
	for _, i := range g.computed {
		s := seeker{planner: f.planner}
		if !s.seek(nodes(g.query.TargetList)[i].(*ast.ResTarget).Val, spans[i], anyValue, nil) {
			return nil, false
		}
		before := len(l.found)
		if slices.ContainsFunc(s.links, func(at link) bool { return f.namesGroups(at.SubLink, rels) }) || !l.lookAt(s.links) || l.bar != nil {
			return nil, false
		}
		for _, c := range l.found[before:] {
			if grouped && c.chain[0].whole || !g.seesGroup(c, rels, s.links) { // without a group it was not run
				return nil, false
			}
		}
	}
	return l.found, true
}

// tablesOf returns the relations of a query's FROM clause, if all are tables.
func (f *flattening) tablesOf(n *ast.SelectStmt) (rels []*relation, ok bool) {
	var add func(item ast.Node) bool
	add = func(item ast.Node) bool {
		switch item := bare(item).(type) {
		case *ast.JoinExpr:
			return item.Alias == nil && !item.IsNatural && item.UsingClause == nil && add(item.Larg) && add(item.Rarg)
		case *ast.RangeVar:
			t, _ := f.table(item)
			if t == nil || f.defines(item.RelName) {
				return false
			}
			s, err := f.sourceOf(t, item)
			rels = append(rels, &relation{ref: s.ref, base: &s, node: item})
			return err == nil
		}
		return false
	}
	for _, item := range nodes(n.FromClause) {
		if !add(item) {
			return nil, false
		}
	}
	return rels, true
}

// namesGroups reports whether a subquery may name a query of a WITH clause, or have an aggregate of the query around.
func (f *flattening) namesGroups(at *ast.SubLink, around []*relation) bool {
	u, err := f.inspect(at)
	return err != nil || u.reachesOut(around) || slices.ContainsFunc(u.reads, func(n *ast.RangeVar) bool {
		return n.SchemaName == "" && f.defines(n.RelName)
	})
}

// seesGroup has a column of a subquery see the group as the statement has it. It reports whether it can.
func (g *flat) seesGroup(c *besides, rels []*relation, links []link) bool {
	columns, ok := c.named(rels, links)
	if !ok {
		return false
	}
	var refs, rows []string
	for _, column := range columns {
		if !slices.Contains(refs, column.ref) {
			refs = append(refs, column.ref)
		}
	}
	for _, ref := range refs {
		var items []string
		for _, column := range columns {
			if column.ref != ref {
				continue
			}
			shown := g.shows(column, len(rels) == 1)
			if shown == "" {
				return false
			}
			items = append(items, quoted(g.ref)+"."+quoted(shown)+" AS "+quoted(column.name))
		}
		rows = append(rows, "(SELECT "+strings.Join(items, ", ")+") AS "+quoted(ref))
	}
	if len(rows) > 0 {
		c.row = &replaced{begin: "(SELECT ", from: " FROM " + strings.Join(rows, " CROSS JOIN ")}
	}
	return true
}

// shows returns the name of the only item of the query's list that is a column as it is; empty where there is none.
func (g *flat) shows(column liftedColumn, alone bool) (name string) {
	for i, item := range nodes(g.query.TargetList) {
		ref, ok := bare(item.(*ast.ResTarget).Val).(*ast.ColumnRef)
		if !ok {
			continue
		}
		names := fields(ref)
		if last(ref) == column.name && (len(names) == 1 && alone || len(names) == 2 && names[0] == column.ref) {
			if g.chooses(g.columns[i].name) == unsure {
				return ""
			}
			name = g.columns[i].name
		}
	}
	return name
}
