package analyzer

import "github.com/isotap/isotap/history"

// A judge tells violations from hazards by the engine table. Transactions at different levels may
// meet on one cycle, so it goes by Adya's mixing-correctness: a dependency obliges the engine only
// where the level of the transaction that it protects says so. For rw that is the reader, for wr
// the reader, for ww both.
//
// A cycle is a violation when every dependency of it puts the commit of its first transaction (for
// a read of a snapshot: that snapshot) before the commit of its second, by the engine's own word:
// then they cannot form a cycle.
type judge struct {
	o        *order
	promises [][5][2]*Promise // by run, level, and whether it is optimistic
}

func newJudge(o *order) *judge {
	j := &judge{o: o, promises: make([][5][2]*Promise, len(o.runs))}
	for r := range o.runs {
		for l := range j.promises[r] {
			for i, optimistic := range []bool{false, true} {
				j.promises[r][l][i] = PromiseOf(o.runs[r].info.Server, history.Level(l), optimistic)
			}
		}
	}
	return j
}

func (j *judge) promise(t int32) *Promise {
	r := &j.o.txns[t]
	if int(r.level) >= len(j.promises[r.run]) {
		return &noPromise
	}
	if r.optimistic {
		return j.promises[r.run][r.level][1]
	}
	return j.promises[r.run][r.level][0]
}

// binds says whether a dependency obliges the engine by itself, whatever else is on the cycle.
func (j *judge) binds(d *dep) bool {
	if d.inexact {
		return false
	}
	switch d.kind {
	case ww:
		return j.promise(d.from).forbids(G0) && j.promise(d.to).forbids(G0)
	case wr:
		return j.promise(d.to).forbids(G1c) || j.lockedRead(d.to, d.access)
	case rw:
		return j.promise(d.from).forbids(G2Item) || j.lockedRead(d.from, d.access)
	default:
		return false
	}
}

func (j *judge) lockedRead(t, access int32) bool {
	return j.o.accesses[access].is(locked) && j.promise(t).RowLocks
}

// bindsAfter says whether the rw out of a transaction obliges the engine given the dependency into
// it: by the snapshot that both belong to.
func (j *judge) bindsAfter(in, out *dep) bool {
	if in.inexact || out.inexact {
		return false
	}
	if j.binds(out) {
		return true
	}
	p := j.promise(out.from)
	if !j.plain(out.access) || in.kind == rw {
		return false
	}
	if p.FirstCommitterWins {
		return true
	}
	if in.kind != wr || !j.plain(in.access) {
		return false
	}
	return p.Snapshot || p.Statement && j.o.accesses[in.access].stmt == j.o.accesses[out.access].stmt
}

func (j *judge) plain(access int32) bool { return !j.o.accesses[access].is(current) }

// class judges a cycle.
func (j *judge) class(cycle []dep) Class {
	for i := range cycle {
		d := &cycle[i]
		if d.kind == rw {
			if !j.bindsAfter(&cycle[(i+len(cycle)-1)%len(cycle)], d) {
				return Hazard
			}
		} else if !j.binds(d) {
			return Hazard
		}
	}
	return Violation
}

// classOfRead judges a read of a version that was never installed (G1a, G1b).
func (j *judge) classOfRead(a Anomaly, access int32) Class {
	r := &j.o.accesses[access]
	p := j.promise(r.txn)
	if p.forbids(a) || p.RowLocks && (r.write() || r.is(locked)) {
		return Violation
	}
	return Hazard
}
