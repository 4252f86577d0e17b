package postgres

import (
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// What subqueries read in a condition on groups stands beside the rows that the client gets, as elsewhere: for a group
// that is left out it is a matter of the condition. So do the rows of tables that are joined with such groups. The copy
// that tells the groups has neither (ADR 62).

// besideRows are the columns that stand beside the client's rows.
type besideRows struct {
	columns spelling
	items   []ast.Node
	sources []Source
}

// beside returns the columns that the client's query gets for what the copy does not tell; nil where that is nothing.
// It reports whether that is all.
func (f *flattening) beside(n *ast.SelectStmt) (*besideRows, bool) {
	u, err := f.inspect(n.TargetList, n.SortClause)
	if err != nil || hasSubquery(n.SortClause) || hasSubquery(n.GroupClause) || hasSubquery(n.HavingClause) ||
		hasSubquery(n.DistinctClause) || hasSubquery(n.WindowClause) {
		return nil, false
	}
	shown, computes := hasSubquery(n.TargetList), slices.ContainsFunc(f.flats, func(g *flat) bool { return len(g.computed) > 0 })
	if !f.apart && !shown && len(f.left) == 0 && !computes {
		return nil, true
	}
	grouped := u.aggregate || n.GroupClause != nil || n.HavingClause != nil
	if computes && f.apart && f.leavesOut(n) {
		return nil, false
	}
	if f.failure() != never || u.window || n.TargetList == nil || f.session.Serializable {
		return nil, false
	}
	if f.apart && f.leavesOut(n) {
		return nil, f.tellJoined(n)
	}
	if n.DistinctClause != nil {
		return nil, false
	}
	rels, ok := f.relationsOf(n)
	if !ok {
		return nil, false
	}
	b := &block{n: n, rels: rels, grouped: grouped}
	found, ok := f.lookBeside(b, n)
	for _, g := range f.flats {
		more, known := f.lookComputed(g, grouped)
		found, ok = append(found, more...), ok && known
	}
	if !ok || len(found) > maxBesideColumns || beyond(n.SortClause, len(nodes(n.TargetList))) {
		return nil, false
	}
	out := &besideRows{}
	if f.apart && !f.identities(out, b) {
		return nil, false
	}
	for _, c := range found {
		out.add(c.spell(f.reading, b), c.source(b))
	}
	tree, err := parse("SELECT " + f.readable(out.columns.in(f.st)))
	if err != nil {
		return nil, false
	}
	out.items = nodes(tree.(*ast.SelectStmt).TargetList)
	return out, len(out.items) > 0
}

// add adds a column.
func (b *besideRows) add(s spelling, sources ...Source) {
	if len(b.columns) > 0 {
		b.columns.text(", ")
	}
	b.columns = append(b.columns, s...)
	b.columns.text(" AS " + rewrite.CarriedPrefix + strconv.Itoa(len(b.columns)))
	b.sources = append(b.sources, sources...)
}

// identities adds those of the rows of the tables that are joined with flat queries. A statement that groups collects
// them.
func (f *flattening) identities(out *besideRows, b *block) bool {
	for _, rel := range b.rels {
		if rel.base == nil {
			continue
		}
		shown, err := sightOf(rel.base)
		if err != nil {
			return false
		}
		shown.nullable = true // perhaps
		b.sights = append(b.sights, shown)
	}
	if b.grouped {
		f.collect(b)
	}
	for _, s := range b.sights {
		for i, e := range s.exprs {
			if out.add(spelling{{text: e}}); i == 0 {
				out.sources = append(out.sources, s.source)
			}
		}
	}
	return true
}

// relationsOf returns the relations of the statement's FROM clause; of the flat ones the names of their columns.
func (f *flattening) relationsOf(n *ast.SelectStmt) (rels []*relation, ok bool) {
	if f.others {
		return nil, false
	}
	for _, g := range f.flats {
		rels = append(rels, g.relation())
	}
	for _, item := range f.tables {
		t, _ := f.table(item)
		if t == nil || f.apart && t.Rows > MaxArray {
			return nil, false
		}
		s, err := f.sourceOf(t, item)
		if err != nil {
			return nil, false
		}
		rels = append(rels, &relation{ref: s.ref, base: &s, node: item})
	}
	return rels, true
}

// relation is what a flat query is to the statement.
func (g *flat) relation() *relation {
	rel := &relation{ref: g.ref, node: g.node, open: g.star || g.unnamed}
	for _, c := range g.columns {
		rel.names = append(rel.names, c.name)
	}
	return rel
}

// lookBeside looks into the subqueries that the copy does not tell of.
func (f *flattening) lookBeside(b *block, n *ast.SelectStmt) ([]*besides, bool) {
	at := f.places.queries[n]
	s := seeker{planner: f.planner}
	if !s.list(n.TargetList, span{at.from + 1, at.listEnd + 1}) {
		return nil, false
	}
	conditions := f.left
	if f.apart {
		conditions = []omitted{{n.WhereClause, f.places.whereClause(at.listEnd+1, at.to)}}
	}
	for _, c := range conditions {
		if hasSubquery(c.Node) && !s.seek(c.Node, c.span, ofAll, nil) {
			return nil, false
		}
	}
	l := looker{reading: f.reading, block: b}
	if slices.ContainsFunc(s.links, func(at link) bool { return f.hidden(at.SubLink) }) || !l.lookAt(s.links) || l.bar != nil {
		return nil, false
	}
	return l.found, true
}

// namesOthers reports whether a condition may name a column of what is joined with the flat queries, but for what
// stands in its subqueries.
func (f *flattening) namesOthers(n ast.Node) (may bool) {
	inner := f.innerNames(n)
	whole := pgtree.Walk(func(n ast.Node) bool {
		if ref, ok := n.(*ast.ColumnRef); ok && !inner[ref] {
			names := fields(ref)
			may = may || !slices.ContainsFunc(f.flats, func(g *flat) bool {
				return len(names) == 2 && names[0] == g.ref || len(names) == 1 && g.chooses(names[0]) != another
			})
		}
		return !may
	}, n)
	return may || !whole
}
