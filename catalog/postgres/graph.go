package postgres

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A graph relates the relations of a snapshot to those whose tables look different when they do. What is of all
// relations is worked out when it is first asked for, or shared with the graph before.
type graph struct {
	read *reading
	once sync.Once
	*builder
	relatives
	related func() relatives
	indexes layers[name, []uint32]   // tables by the names of their indexes, with a schema and without
	plain   layers[string, []uint32] // relations by their names without a schema
}

// A relatives is how relations belong together.
type relatives struct {
	heirs            map[uint32][]uint32 // that inherit
	targets, sources map[uint32][]uint32 // of foreign keys: the tables that they refer to, and that refer to them
	views            map[uint32][]uint32 // views, also materialized ones, whose queries name a relation
	typed            []uint32            // relations with columns of types that the server does not bring along
}

func newGraph(r *reading) *graph {
	of := &reading{}
	var all []uint32
	for oid := range r.relations.all() {
		all = append(all, oid)
	}
	return &graph{read: r, related: sync.OnceValue(r.relatives),
		plain:   renamed(layers[string, []uint32]{}, of, r, slices.Values(all), (*relation).plain),
		indexes: renamed(layers[name, []uint32]{}, of, r, slices.Values(all), (*relation).indexes)}
}

// over returns the graph of the next reading, in which the relations touched were read again.
func (g *graph) over(next *reading, touched map[uint32]bool) *graph {
	n := &graph{read: next, related: g.related,
		plain:   renamed(g.plain, g.read, next, maps.Keys(touched), (*relation).plain),
		indexes: renamed(g.indexes, g.read, next, maps.Keys(touched), (*relation).indexes)}
	// What a map of the reading has that is the same, replaced has left as it is.
	if !sameMap(next.parents, g.read.parents) || !sameMap(next.references, g.read.references) ||
		relates(touched, g.read, next) {
		n.related = sync.OnceValue(next.relatives)
	}
	return n
}

// sameMap reports whether two variables hold one and the same map.
func sameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// relates reports whether a relation touched is a view that names others or has columns of a table's type, or was or
// had before.
func relates(touched map[uint32]bool, readings ...*reading) bool {
	for oid := range touched {
		for _, read := range readings {
			if r := read.relations.get(oid); r != nil && (r.reads != nil || r.typed) {
				return true
			}
		}
	}
	return false
}

// relatives works out how the relations belong together.
func (r *reading) relatives() relatives {
	all := relatives{r.children(), map[uint32][]uint32{}, r.sources(), map[uint32][]uint32{}, nil}
	for f := range r.references {
		all.targets[f.from] = append(all.targets[f.from], f.to)
	}
	for oid, relation := range r.relations.all() {
		for _, table := range relation.reads {
			all.views[table] = append(all.views[table], oid)
		}
		if relation.typed {
			all.typed = append(all.typed, oid)
		}
	}
	return all
}

func (g *graph) prepare() {
	g.once.Do(func() {
		g.relatives = g.related()
		g.builder = &builder{reading: g.read, children: g.heirs, referrers: g.sources}
	})
}

// renamed returns the layers that find relations by their names, brought up to date for the relations touched.
func renamed[N comparable](of layers[N, []uint32], before, after *reading, touched iter.Seq[uint32],
	names func(*relation) []N) layers[N, []uint32] {
	next := of.edit()
	for oid := range touched {
		was, is := names(before.relations.get(oid)), names(after.relations.get(oid))
		if slices.Equal(was, is) {
			continue
		}
		for _, n := range was {
			others := slices.DeleteFunc(slices.Clone(next.get(n)), func(other uint32) bool { return other == oid })
			if next.set(n, others); len(others) == 0 {
				next.remove(n)
			}
		}
		for _, n := range is {
			next.set(n, append(slices.Clip(next.get(n)), oid))
		}
	}
	return next.done()
}

// plain returns the name without a schema. A nil relation has none.
func (r *relation) plain() []string {
	if r == nil {
		return nil
	}
	return []string{r.name.table}
}

// indexes returns the names of the indexes, with a schema and without.
func (r *relation) indexes() (names []name) {
	if r == nil {
		return nil
	}
	for i := range r.table.Indexes {
		names = append(names, name{table: r.table.Indexes[i].Name}, name{r.name.schema, r.table.Indexes[i].Name})
	}
	return names
}

// indexed returns the tables that have an index of a name.
func (g *graph) indexed(n name) []uint32 { return g.indexes.get(n) }

// affected returns a relation and all those that may look different when it does: what shares rows with it, the tables
// that their foreign keys refer to, directly or by way of others, and views.
func (g *graph) affected(oid uint32) map[uint32]bool {
	g.prepare()
	found := map[uint32]bool{}
	g.kin(oid, found)
	for open := slices.Collect(maps.Keys(found)); len(open) > 0; open = open[1:] {
		for _, target := range g.targets[open[0]] {
			if found[target] {
				continue
			}
			more := map[uint32]bool{}
			g.kin(target, more)
			maps.Copy(found, more)
			open = slices.AppendSeq(open, maps.Keys(more))
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
	maps.DeleteFunc(found, func(oid uint32, _ bool) bool { return g.read.relations.get(oid) == nil })
	return found
}

// maySimplify reports whether relations were simple when they were last read, and so were all related to them.
func (g *graph) maySimplify(oids []uint32) bool {
	g.prepare()
	return !slices.ContainsFunc(oids, func(oid uint32) bool {
		r := g.read.relations.get(oid)
		return r != nil && !r.isSimple() || g.parents[oid] != nil || g.children[oid] != nil || g.targets[oid] != nil ||
			g.sources[oid] != nil
	})
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

// emptied returns the tables that a TRUNCATE of some empties, with those that refer to them if it cascades.
func (g *graph) emptied(tables []uint32, cascades bool) map[uint32]bool {
	found := map[uint32]bool{}
	for open := slices.Clone(tables); len(open) > 0; open = open[1:] {
		for _, oid := range g.family(open[0]) {
			if found[oid] || g.read.relations.get(oid) == nil {
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

// uses returns the relations with a column whose type may be of a table or in a schema that a change names.
func (g *graph) uses(ch *rewrite.SchemaChange) (oids []uint32) {
	g.prepare()
	for _, oid := range g.typed {
		names := func(t rewrite.TableName) bool {
			of := func(c sqlpostgres.Column) bool { return strings.Contains(c.Full, cmp.Or(t.Table, t.Schema)) }
			return slices.ContainsFunc(g.read.relations.get(oid).table.Columns, of)
		}
		if slices.ContainsFunc(ch.Made, names) || slices.ContainsFunc(ch.Named, names) {
			oids = append(oids, oid)
		}
	}
	return oids
}
