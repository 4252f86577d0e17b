package analyzer

import (
	"slices"
)

// deps calls yield with every dependency that shows in the accesses of transaction t: what it read
// (wr), overwrote (ww), and what overwrote what it read (rw). Each dependency of the graph shows in
// exactly one transaction, or in deps of the extra versions.
func (o *order) deps(t int32, yield func(dep)) {
	from, to := o.accessesOf(t)
	for i := from; i < to; i++ {
		o.accessDeps(t, i, yield)
	}
}

// accessDeps calls yield with those that show in one access of the transaction.
func (o *order) accessDeps(t, i int32, yield func(dep)) {
	if !o.txns[t].installed {
		return
	}
	switch a := &o.accesses[i]; {
	case a.write():
		if !a.is(void) {
			o.writeDep(t, i, yield)
		}
	case o.seen[i] >= 0:
		o.readDeps(t, i, yield)
	}
}

// extraDeps calls yield with the dependencies that show in writes that were not captured, and in relations.
func (o *order) extraDeps(yield func(dep)) {
	for i := range o.extra {
		if v := int32(len(o.accesses) + i); o.state(v) == installed {
			o.writeDep(o.extra[i].owner, v, yield)
		}
	}
	o.laterVersionDeps(yield)
}

func (o *order) writeDep(t, v int32, yield func(dep)) {
	p := o.base(v)
	if p < 0 || o.owner(p) == t {
		return
	}
	yield(dep{from: o.owner(p), to: t, kind: ww, inexact: !o.certainly(p, v), access: none, version: p, next: v})
}

// readDeps returns the dependencies of one read. An aborted or intermediate version was never
// installed, so nothing depends on anything through it: that is G1a or G1b. (Nothing follows an
// aborted one in the order.)
func (o *order) readDeps(t, i int32, yield func(dep)) {
	v := o.seen[i]
	state := o.states[v]
	if state&passing != 0 {
		return
	}
	unsure := o.accesses[i].is(inexact)
	if state&stateMask == installed {
		owner := o.owner(v)
		if owner == t {
			return
		}
		if !o.accesses[i].absent() {
			yield(dep{from: owner, to: t, kind: wr, inexact: unsure, access: i, version: v, next: none})
		}
	}
	if o.accesses[i].op == gone {
		return // it may have seen a later version
	}
	o.missed(t, i, v, yield)
	next := o.links[v].next
	// Who overwrote what it had read comes before the next writer by the ww between them.
	if next < 0 || o.overwrote(t, v, next) || slices.ContainsFunc(o.others(v), func(f int32) bool {
		return o.overwrote(t, v, f)
	}) {
		return
	}
	o.overwritten(t, i, next, yield)
	for _, f := range o.others(v) {
		o.overwritten(t, i, f, yield)
	}
}

// overwrote reports whether a transaction wrote the next version over v itself, not over what another undid.
func (o *order) overwrote(t, v, next int32) bool { return o.owner(next) == t && o.pred(next) == v }

// overwritten calls yield with the rw from the transaction of a read to that of a version that followed, unless both
// are one.
func (o *order) overwritten(t, i, next int32, yield func(dep)) {
	if v := o.seen[i]; o.owner(next) != t {
		yield(dep{from: t, to: o.owner(next), kind: rw, inexact: o.accesses[i].is(inexact) || !o.certainly(v, next),
			access: i, version: v, next: next})
	}
}

// row returns the row that a dependency goes through.
func (o *order) row(d *dep) int32 {
	if d.version < 0 {
		return o.rowOf(d.next) // a look for it
	}
	return o.rowOf(d.version)
}

// interferes reports whether a transaction depends on another one, by what it read or wrote, that committed after its
// snapshot had been taken: there is no start-dependency between the two (Adya 1999, 4.3.4, G-SIa). By one proxy's clock
// the one had its reply before the other's COMMIT was sent. What had ended before the other began depends on it by a
// mishap of another name.
func (o *order) interferes(d *dep) bool {
	if d.kind&flow == 0 || d.inexact || o.unfound(d) {
		return false
	}
	from, to := &o.txns[d.from], &o.txns[d.to]
	return to.snapshot > 0 && from.ending > to.snapshot && from.run == to.run && from.start <= to.end
}

// unfound reports whether a dependency rests on a statement that looked for a row and did not find it.
func (o *order) unfound(d *dep) bool { return d.access >= 0 && o.accesses[d.access].unfound() }

// wide reports whether a dependency rests on a condition that is wider than what its statement hangs on.
func (o *order) wide(d *dep) bool { return d.access >= 0 && o.accesses[d.access].op == notFoundWide }

// proves reports whether a dependency may be what a violation rests on.
func (o *order) proves(d *dep) bool {
	return !d.inexact && !o.wide(d) && (d.access < 0 || !o.accesses[d.access].is(begunAgain))
}
