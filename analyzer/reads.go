package analyzer

import "github.com/isotap/isotap/history"

// findReads finds the anomalies that are no cycle.
func (a *Analyzer) findReads(c *collector) {
	o := a.order
	for _, g := range o.garbage {
		if reader := o.accesses[g.access].txn; o.txns[reader].installed {
			d := dep{from: none, to: reader, kind: wr, access: g.access, version: g.version, next: none}
			c.add(GarbageRead, Violation, []dep{d})
		}
	}
	for _, x := range o.incompatible {
		d := dep{from: o.owner(x.version), to: o.accesses[x.by].txn, kind: wr, access: x.by, version: x.version, next: none}
		g := c.add(IncompatibleOrder, Violation, []dep{d})
		if g.count == 1 {
			g.conflict = x
		}
	}
	for _, f := range o.lost {
		d := dep{from: o.owner(f.a), to: o.owner(f.b), kind: ww, access: none, version: f.a, next: f.b}
		c.add(LostWrite, Violation, []dep{d})
	}
	for _, r := range o.ownReads {
		o.findInternalRead(r, c)
	}
	for i := range o.accesses {
		o.findRead(int32(i), c)
	}
}

// findRead checks what one access of a committed transaction saw.
func (o *order) findRead(access int32, c *collector) {
	v := o.seen[access]
	if v < 0 || o.states[v]&^forked == installed || o.states[v]&^forked == outside {
		return
	}
	a := &o.accesses[access]
	writer := o.owner(v)
	if a.absent() || writer < 0 || writer == a.txn {
		return
	}
	if a.is(inexact) || a.write() && a.is(void) || !o.txns[a.txn].installed {
		return
	}
	d := dep{from: writer, to: a.txn, kind: wr, access: access, version: v, next: none}
	switch {
	case o.state(v) == undone && a.write():
		c.add(DirtyUpdate, c.judge.classOfRead(DirtyUpdate, access), []dep{d})
	case o.state(v) == undone:
		c.add(G1a, c.judge.classOfRead(G1a, access), []dep{d})
	case o.states[v]&deletion != 0 && a.op != history.InsertRow && a.op != gone:
		c.add(GarbageRead, Violation, []dep{d})
	case o.states[v]&^(deletion|forked) == installed|passing && !a.write():
		c.add(G1b, c.judge.classOfRead(G1b, access), []dep{d})
	}
}

// findInternalRead names a read that does not fit what its own transaction wrote.
func (o *order) findInternalRead(r internalRead, c *collector) {
	reader, v := o.accesses[r.access].txn, o.seen[r.access]
	if !o.txns[reader].installed || v < 0 {
		return
	}
	name := Internal
	if r.write == none {
		name = FutureRead
	}
	g := c.add(name, Violation, []dep{{from: o.owner(v), to: reader, kind: wr, access: r.access, version: v, next: none}})
	if g.count == 1 {
		g.conflict.version = r.write
	}
}
