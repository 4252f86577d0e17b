package postgres

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/isotap/isotap/rewrite"
)

// A graph relates the relations of a snapshot to those whose tables look different when they do. It is worked out when it is
// first asked for.
type graph struct {
	read *reading
	once sync.Once
	*builder
	targets, sources map[uint32][]uint32 // of foreign keys: the tables that they refer to, and that refer to them
	views            map[uint32][]uint32 // that read a relation
	typed            []uint32            // relations with columns of types that the server does not bring along
	indexes          func() map[name][]uint32
	plain            func() map[string][]uint32 // relations by their names without a schema
}

func newGraph(r *reading) *graph {
	g := &graph{read: r}
	g.indexes, g.plain = sync.OnceValue(g.byIndex), sync.OnceValue(g.byName)
	return g
}

func (g *graph) prepare() {
	g.once.Do(func() {
		g.builder = newBuilder(g.read)
		g.targets, g.sources, g.views = map[uint32][]uint32{}, map[uint32][]uint32{}, map[uint32][]uint32{}
		for f := range g.read.references {
			g.targets[f.from] = append(g.targets[f.from], f.to)
			g.sources[f.to] = append(g.sources[f.to], f.from)
		}
		for oid, r := range g.read.relations {
			if r.query != nil {
				r.query.each(func(table uint32) { g.views[table] = append(g.views[table], oid) })
			}
			if r.typed {
				g.typed = append(g.typed, oid)
			}
		}
	})
}

// byName gives the relations by their names without a schema.
func (g *graph) byName() map[string][]uint32 {
	named := make(map[string][]uint32, len(g.read.relations))
	for oid, r := range g.read.relations {
		named[r.name.table] = append(named[r.name.table], oid)
	}
	return named
}

// byIndex gives the tables by the names of their indexes, with a schema and without.
func (g *graph) byIndex() map[name][]uint32 {
	tables := make(map[name][]uint32)
	for oid, r := range g.read.relations {
		for i := range r.table.Indexes {
			for _, schema := range []string{"", r.name.schema} {
				n := name{schema, r.table.Indexes[i].Name}
				tables[n] = append(tables[n], oid)
			}
		}
	}
	return tables
}

// indexed gives the tables that have an index of a name.
func (g *graph) indexed(n name) []uint32 { return g.indexes()[n] }

// each calls with the relations that a query is known to read.
func (q *stored) each(do func(table uint32)) {
	for _, u := range q.uses {
		if u.query != nil {
			u.query.each(do)
		} else {
			do(u.table)
		}
	}
}

// affected gives a relation and all those that may look different when it does: what shares rows with it, the tables that
// their foreign keys refer to, and views.
func (g *graph) affected(oid uint32) map[uint32]bool {
	g.prepare()
	found := map[uint32]bool{}
	g.kin(oid, found)
	for _, member := range slices.Collect(maps.Keys(found)) {
		for _, target := range g.targets[member] {
			g.kin(target, found)
		}
	}
	for open := slices.Collect(maps.Keys(found)); len(open) > 0; open = open[1:] {
		for _, view := range g.views[open[0]] {
			if !found[view] {
				found[view] = true
				open = append(open, view)
			}
		}
	}
	maps.DeleteFunc(found, func(oid uint32, _ bool) bool { return g.read.relations[oid] == nil })
	return found
}

// kin adds a relation with all that inherit from it, or that it inherits from.
func (g *graph) kin(oid uint32, found map[uint32]bool) {
	if found[oid] {
		return
	}
	found[oid] = true
	for _, other := range [][]uint32{g.parents[oid], g.children[oid]} {
		for _, o := range other {
			g.kin(o, found)
		}
	}
}

// family is [builder.family].
func (g *graph) family(oid uint32) []uint32 {
	g.prepare()
	return g.builder.family(oid)
}

// emptied gives the tables that a TRUNCATE of some empties, with those that refer to them if it cascades.
func (g *graph) emptied(tables []uint32, cascades bool) map[uint32]bool {
	found := map[uint32]bool{}
	for open := slices.Clone(tables); len(open) > 0; open = open[1:] {
		for _, oid := range g.family(open[0]) {
			if found[oid] || g.read.relations[oid] == nil {
				continue
			}
			found[oid] = true
			if cascades {
				open = append(open, g.sources[oid]...)
			}
		}
	}
	return found
}

// uses gives the relations with a column whose type may be of a table or in a schema that a change names.
func (g *graph) uses(ch *rewrite.SchemaChange) (oids []uint32) {
	g.prepare()
	for _, oid := range g.typed {
		names := func(t rewrite.TableName) bool {
			of := func(c rewrite.Column) bool { return strings.Contains(c.Full, cmp.Or(t.Table, t.Schema)) }
			return slices.ContainsFunc(g.read.relations[oid].table.Columns, of)
		}
		if slices.ContainsFunc(ch.Made, names) || slices.ContainsFunc(ch.Named, names) {
			oids = append(oids, oid)
		}
	}
	return oids
}
