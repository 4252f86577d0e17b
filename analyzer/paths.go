package analyzer

import "slices"

// paths finds shortest paths of dependencies between any two committed transactions. It takes four bytes
// for each dependency and sixteen for each transaction.
type paths struct {
	o   *order
	off []uint32 // the dependencies of transaction t lead to to[off[t]:off[t+1]]
	to  []int32
	so  []int32 // by transaction: the next committed one of its session; none
	via []int32 // by transaction: where the search came from, from 1; 0: not visited
}

func newPaths(o *order) *paths {
	n := len(o.txns)
	p := &paths{o: o, so: make([]int32, n), via: make([]int32, n)}
	all := make([]int32, n)
	latest := make(map[int32]int32) // by session: its last committed transaction so far
	for t := range int32(n) {
		all[t], p.so[t] = t, none
		if !o.txns[t].installed {
			continue
		}
		if before, ok := latest[o.txns[t].session]; ok && !o.txns[t].staleRead {
			p.so[before] = t
		}
		latest[o.txns[t].session] = t
	}
	p.off, p.to = compressed(n, func(yield func(from, to int32)) {
		o.among(all, all, func(d dep) { yield(d.from, d.to) })
	})
	return p
}

// find returns a shortest path; nil where there is none. Session order counts where nothing else does.
func (p *paths) find(from, to int32) []dep {
	for _, sessions := range []bool{false, true} {
		clear(p.via)
		if !p.walk(from, to, sessions) {
			continue
		}
		var path []dep
		for at := to; at != from; {
			before := p.via[at] - 1
			path = append(path, p.dep(before, at))
			at = before
		}
		slices.Reverse(path)
		return path
	}
	return nil
}

// walk goes through the transactions, nearest first, until it is where it is to go.
func (p *paths) walk(from, to int32, sessions bool) bool {
	queue := []int32{from}
	p.via[from] = from + 1
	for head := 0; head < len(queue) && p.via[to] == 0; head++ {
		t := queue[head]
		next := p.to[p.off[t]:p.off[t+1]]
		if so := p.so[t]; sessions && so >= 0 {
			next = append(slices.Clone(next), so)
		}
		for _, u := range next {
			if p.via[u] == 0 {
				p.via[u] = t + 1
				queue = append(queue, u)
			}
		}
	}
	return p.via[to] != 0
}

// dep returns a dependency between two transactions, one that is certain where there is any.
func (p *paths) dep(from, to int32) dep {
	best := dep{from: from, to: to, kind: so, access: none, version: none, next: none}
	consider := func(d dep) {
		if d.from == from && d.to == to && (best.kind == so || best.inexact && !d.inexact) {
			best = d
		}
	}
	p.o.deps(from, consider)
	p.o.deps(to, consider)
	if best.kind == so || best.inexact {
		p.o.extraDeps(consider)
	}
	return best
}
