package postgres

import (
	"maps"
	"slices"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A builder makes the rewriter's tables of a reading, each with what others make of it: where its rows are, what a
// statement that names it fires.
type builder struct {
	*reading
	children  map[uint32][]uint32
	referrers map[uint32][]uint32 // the tables whose foreign keys refer to one
}

func newBuilder(r *reading) *builder {
	return &builder{reading: r, children: r.children(), referrers: r.sources()}
}

// children returns, by relation, those that inherit from it.
func (r *reading) children() map[uint32][]uint32 {
	children := map[uint32][]uint32{}
	for _, child := range slices.Sorted(maps.Keys(r.parents)) {
		for _, parent := range r.parents[child] {
			children[parent] = append(children[parent], child)
		}
	}
	return children
}

// sources returns, by table, those whose foreign keys refer to it.
func (r *reading) sources() map[uint32][]uint32 {
	sources := map[uint32][]uint32{}
	for f := range r.references {
		sources[f.to] = append(sources[f.to], f.from)
	}
	return sources
}

// tables returns the reading's tables by name.
func (r *reading) tables() map[name]*sqlpostgres.Table {
	b := newBuilder(r)
	tables := make(map[name]*sqlpostgres.Table)
	for oid, relation := range r.relations.all() {
		tables[relation.name] = b.table(oid, relation)
	}
	return tables
}

func (b *builder) table(oid uint32, r *relation) *sqlpostgres.Table {
	t := r.table
	on, acts := r.onStatement, actions{}
	family := b.family(oid)
	t.Rows = b.rows(family)
	for _, member := range family {
		acts = acts.or(b.actions[member])
		if relation := b.relations.get(member); relation != nil {
			// Rows of a member that a statement reaches through its parent fire the member's row triggers.
			on = on.or(relation.onRow)
			t.TellsText = t.TellsText || relation.table.TellsText
			if relation.kind != "p" && len(family) > 1 {
				if t.Leaves == nil {
					t.Leaves = map[uint32]string{}
				}
				t.Leaves[member] = relation.table.Name
			}
		}
	}
	t.InsertTrigger, t.UpdateTrigger, t.DeleteTrigger = on.insert, on.update, on.delete
	if t.CascadesUpdate, t.CascadesDelete = acts.update, acts.delete; acts.delete || len(acts.update) > 0 {
		t.CascadeTriggers, t.CascadeUnlogged = b.followers(family)
	}
	if top := b.top(oid); top != nil {
		t.Root = top.table.Name
	}
	t.Key = b.key(oid, family)
	t.OtherStorage = slices.ContainsFunc(family, func(member uint32) bool {
		relation := b.relations.get(member)
		return relation != nil && relation.table.OtherStorage
	})
	b.isotaps(&t, r, family)
	b.bases(&t, r)
	return &t
}

// followers reports whether of the tables that foreign keys may change along with a family, directly or by way of
// others, some have triggers, and whether the server's log lacks some. Those whose keys only refer count as well.
func (b *builder) followers(family []uint32) (triggers, unlogged bool) {
	found := map[uint32]bool{}
	for open := slices.Clone(family); len(open) > 0; open = open[1:] {
		for _, source := range b.referrers[open[0]] {
			for _, oid := range b.family(source) {
				r := b.relations.get(oid)
				if found[oid] || r == nil {
					continue
				}
				found[oid] = true
				open = append(open, oid)
				triggers = triggers || r.onRow.or(r.onStatement) != events{}
				unlogged = unlogged || r.table.Unlogged || r.table.OtherStorage
			}
		}
	}
	return triggers, unlogged
}

// rows is about how many rows there are in the tables of a family.
func (b *builder) rows(family []uint32) (n int64) {
	for _, member := range family {
		if r := b.relations.get(member); r != nil && (r.kind != "p" || len(family) == 1) {
			n += r.table.Rows
		}
	}
	return n
}

// family returns a table and all that inherit from it, partitions among them.
func (b *builder) family(oid uint32) []uint32 {
	family := []uint32{oid}
	if b.children[oid] == nil {
		return family
	}
	seen := map[uint32]bool{oid: true} // a table may inherit from another on two ways
	for i := 0; i < len(family); i++ {
		for _, child := range b.children[family[i]] {
			if !seen[child] {
				seen[child] = true
				family = append(family, child)
			}
		}
	}
	return family
}

// top returns the partitioned table at the top of a partition; nil for what is none. A partition has one
// parent. Partitions that go round in a circle have no top.
func (b *builder) top(oid uint32) (top *relation) {
	steps := 0
	for parents := b.parents[oid]; len(parents) == 1; parents = b.parents[parents[0]] {
		if steps++; steps > len(b.parents) {
			return nil
		}
		parent := b.relations.get(parents[0])
		if parent == nil || parent.kind != "p" {
			break
		}
		top = parent
	}
	return top
}
