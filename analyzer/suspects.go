package analyzer

import (
	"cmp"
	"math"
	"slices"
)

// A span is a stretch of time, both ends included; nanoseconds since a run's start.
type span struct{ from, to int64 }

// spans finds the stretches of time outside of which no transaction of a cycle ends. A cycle goes
// back from the one of its transactions that ended last to the one that ended first, so
// dependencies on transactions that did not end later cover all the time between. (This holds for
// any numbers, so it does not matter that the clocks of several runs differ.) It looks at every dependency, so it keeps
// those that interfere, too.
func (o *order) spans(useInexact bool) []span {
	ends := o.allEnds()
	parts, late := make([][]span, workers()+1), make([][]dep, workers()+1)
	collect := func(part int) func(dep) {
		return func(d dep) {
			from, to := ends.of(d.from), ends.of(d.to)
			if from >= to && (useInexact || !d.inexact) {
				parts[part] = append(parts[part], span{to, from})
			}
			if from > o.txns[d.to].snapshot && o.interferes(&d) {
				late[part] = append(late[part], d)
			}
		}
	}
	inParts(len(o.accesses), func(part, from, to int) {
		yield := collect(part)
		inSteps(from, to, func(from, to int) { o.backward(from, to, ends, yield) })
	})
	o.extraDeps(collect(workers()))
	o.interfering = slices.Concat(late...)
	back := slices.Concat(parts...)
	slices.SortFunc(back, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	merged := back[:0]
	for _, s := range back {
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// allEnds are when transactions ended, by index and one more: first stands one that nobody ended before. Alone they are
// a fraction of the transactions' size, so that more of them are at hand.
type allEnds []int64

func (o *order) allEnds() allEnds {
	ends := make(allEnds, len(o.txns)+1)
	ends[0] = math.MinInt64
	for t := range o.txns {
		ends[t+1] = o.txns[t].end
	}
	return ends
}

func (e allEnds) of(t int32) int64 { return e[t+1] }

// backward calls yield with the dependencies that show in some accesses, but for such as certainly lead to a later
// end and do not interfere: nearly all, in most histories.
func (o *order) backward(from, to int, ends allEnds, yield func(dep)) {
	var near [stepSize]linked
	var overwriters [stepSize]int32
	for k, v := range o.seen[from:to] {
		if near[k] = (linked{none, none}); v >= 0 {
			near[k] = o.links[v]
		}
	}
	for k := range to - from {
		if overwriters[k] = none; near[k].next >= 0 {
			overwriters[k] = o.links[near[k].next].owner
		}
	}
	for k := range to - from {
		i := from + k
		a, v := &o.accesses[i], o.seen[i]
		if v < 0 {
			continue
		}
		end := ends.of(a.txn)
		known := end // whoever ended before does not interfere
		if snapshot := o.txns[a.txn].snapshot; snapshot > 0 {
			known = min(end, snapshot)
		}
		forward := ends.of(near[k].owner) < known && o.states[v]&forked == 0 && len(o.laterVersions) == 0
		if a.write() {
			forward = forward && o.states[v]&stateMask == installed
		} else if overwriters[k] >= 0 {
			forward = forward && end < ends.of(overwriters[k])
		}
		if !forward {
			o.accessDeps(a.txn, int32(i), yield)
		}
	}
}

// suspects returns the committed transactions that may be on a cycle, and their place among them by
// index (-1 for the others).
func (o *order) suspects(useInexact bool) (local []int32, nodes []int32) {
	spans := o.spans(useInexact)
	if len(spans) == 0 {
		return nil, nil
	}
	local = make([]int32, len(o.txns))
	for t := range o.txns {
		local[t] = none
		end := o.txns[t].end
		i, found := slices.BinarySearchFunc(spans, end, func(s span, end int64) int { return cmp.Compare(s.from, end) })
		if !o.txns[t].installed || !found && (i == 0 || spans[i-1].to < end) {
			continue
		}
		local[t] = int32(len(nodes))
		nodes = append(nodes, int32(t))
	}
	return local, nodes
}

// cyclic finds the transactions that are on any cycle of dependencies, session order and the order of time, and
// their place among them by index (-1 for the others).
func (o *order) cyclic(useInexact bool) (local []int32, nodes []int32) {
	local, suspects := o.suspects(useInexact)
	if len(suspects) == 0 {
		return nil, nil
	}
	ends := o.ends(local, suspects)
	off, to := o.adjacency(local, suspects, ends, useInexact)
	comp, count := components(len(suspects)+len(ends), off, func(e uint32) int32 { return to[e] })
	size := make([]int32, count)
	for _, c := range comp {
		size[c]++
	}
	for i, t := range suspects {
		local[t] = none
		if size[comp[i]] > 1 {
			local[t] = int32(len(nodes))
			nodes = append(nodes, t)
		}
	}
	return local, nodes
}

// adjacency returns the dependencies and orders between the given transactions in compressed rows: those of the
// i-th lead to to[off[i]:off[i+1]]. The ends of transactions are nodes, too, after these.
func (o *order) adjacency(local, nodes, ends []int32, useInexact bool) (off []uint32, to []int32) {
	each := func(yield func(from, to int32)) {
		o.among(local, nodes, func(d dep) {
			if useInexact || !d.inexact {
				yield(local[d.from], local[d.to])
			}
		})
		o.sessions(nodes, func(from, to int32) { yield(local[from], local[to]) })
		o.times(local, nodes, ends, yield)
	}
	return compressed(len(nodes)+len(ends), each)
}

// compressed returns the edges that each yields, twice the same, between so many nodes in compressed rows.
func compressed(count int, each func(yield func(from, to int32))) (off []uint32, to []int32) {
	off = make([]uint32, count+1)
	each(func(from, _ int32) { off[from+1]++ })
	offsets(off)
	to = make([]int32, off[count])
	at := slices.Clone(off)
	each(func(from, target int32) {
		to[at[from]] = target
		at[from]++
	})
	return off, to
}

// among calls yield with the dependencies between the given transactions.
func (o *order) among(local, nodes []int32, yield func(dep)) {
	inside := func(d dep) {
		if local[d.from] >= 0 && local[d.to] >= 0 {
			yield(d)
		}
	}
	for _, t := range nodes {
		o.deps(t, inside)
	}
	o.extraDeps(inside)
}

func (o *order) each(yield func(dep)) {
	for t := range o.txns {
		o.deps(int32(t), yield)
	}
	o.extraDeps(yield)
}
