package robust

import (
	"errors"
	"slices"
)

// This file is about programs that run at different levels together, which Vandevoort, Ketsman and Neven treat for
// transactions that are known ("Allocating Isolation Levels to Transactions in a Multiversion Setting", PODS 2023).
//
// Let an execution have a cycle of dependencies, let T_m be the transaction on it that commits first, T_p (the pivot)
// the one before it and T_o the one before that; T_o may be T_m. The dependency of T_m on T_p is counterflow, and so an
// rw (Lemma 4.1).
//
//   - If T_p runs at READ COMMITTED, it read what T_m overwrote before T_m committed, and T_o did not commit earlier
//     than T_m. Where T_p's dependency on T_o begins with a write, T_p read or overwrote what was committed: it comes
//     later in T_p than that read, which is the paper's condition, whatever the others' levels are.
//   - If T_p has a snapshot, T_o and T_m committed after it was taken. So T_p sees no write of T_o, and overwrites
//     none: the first committer wins. T_p's dependency on T_o is an rw, too, and they are concurrent. This is Fekete's
//     dangerous structure, of which only T_p need have a snapshot.
//   - If all three are serializable, PostgreSQL refuses one of them.
//
// So an allocation is safe when no cycle in the summary graph has such a pivot. That much is proven; it is conservative
// where Algorithms 1 and 2 are: a cycle in the graph need not be one of an execution, and nothing is made of T_m's
// committing first among all.

// Safe reports whether every execution is serializable when each program runs at its level: a sufficient condition.
// With one level for all, the answer is that of [TypeII] or [Snapshot]. levels is parallel to the programs.
func (a *Analysis) Safe(levels []Level) (bool, error) {
	if len(levels) != len(a.Programs) {
		return false, errors.New("an allocation has one level for each program")
	}
	return a.safe(levels), nil
}

func (a *Analysis) safe(at []Level) bool {
	_, found := a.pivots().danger(at)
	return !found
}

// pivots are what makes nodes pivots where programs run at different levels, so that many allocations can be tried. A
// node's arrivals are sets of the nodes that they come from. It answers as [structure.find] does [Analysis.mixed].
type pivots struct {
	*Analysis
	back []bitset // by node, those that it leads to
	// free are, by pivot, the nodes with an arrival whose place does not matter; later[pivot][i] those with one that is
	// later than the pivot's statement i.
	free  []bitset
	later [][]bitset
	// vulnerable are, by the level of the node that it comes from and by pivot, those with a vulnerable arrival.
	vulnerable [levels][]bitset
}

func (a *Analysis) pivots() *pivots {
	n := len(a.Graph.Nodes)
	p := &pivots{Analysis: a, back: a.structure.closure(fullBitset(n)), free: make([]bitset, n), later: make([][]bitset, n)}
	for level := range p.vulnerable {
		p.vulnerable[level] = make([]bitset, n)
	}
	for pivot := range n {
		p.free[pivot] = newBitset(n)
		for level := range p.vulnerable {
			p.vulnerable[level][pivot] = newBitset(n)
		}
		for range a.Graph.Nodes[pivot].Statements {
			p.later[pivot] = append(p.later[pivot], newBitset(n))
		}
		for i := range a.structure.arrivals[pivot] {
			p.arrive(pivot, &a.structure.arrivals[pivot][i])
		}
	}
	return p
}

// arrive counts an arrival in.
func (p *pivots) arrive(pivot int, in *arrival) {
	if in.free {
		p.free[pivot].add(in.from)
	}
	for at := range max(in.latest, 0) {
		p.later[pivot][at].add(in.from)
	}
	for level, vulnerable := range in.vulnerable {
		if vulnerable {
			p.vulnerable[level][pivot].add(in.from)
		}
	}
}

// danger returns the first danger where programs run at their levels.
func (p *pivots) danger(at []Level) (danger, bool) {
	n := len(p.Graph.Nodes)
	var of [levels]bitset // the nodes of each level
	for level := range of {
		of[level] = newBitset(n)
	}
	for node := range n {
		of[at[p.owners[node]]].add(node)
	}
	from, some := newBitset(n), newBitset(n)
	for pivot := range n {
		for i := range p.structure.departures[pivot] {
			out := &p.structure.departures[pivot][i]
			clear(from)
			switch {
			case of[ReadCommitted].has(pivot):
				if out.earliest < never32 {
					from.unite(p.free[pivot])
					from.unite(p.later[pivot][out.earliest])
				}
			case out.snapshot:
				for level := range of {
					if Level(level) == Serializable && of[level].has(pivot) && of[level].has(out.to) {
						continue
					}
					copy(some, p.vulnerable[level][pivot])
					some.intersect(of[level])
					from.unite(some)
				}
			}
			from.intersect(p.back[out.to])
			if first, ok := from.first(); ok {
				return danger{first, pivot, out.to}, true
			}
		}
	}
	return danger{}, false
}

// mixed returns the question whether programs are safe at different levels.
func (a *Analysis) mixed(at []Level) question {
	level := func(node int) Level { return at[a.owners[node]] }
	pair := func(in *arrival, pivot int, out *departure) bool {
		from, here, to := level(in.from), level(pivot), level(out.to)
		switch {
		case here == ReadCommitted:
			return typeIIPair(in, pivot, out)
		case from == Serializable && here == Serializable && to == Serializable:
			return false
		}
		return out.snapshot && in.vulnerable[from]
	}
	return question{pair: pair, closing: a.structure.closure}
}

// Allocate returns the cheapest level for each program that keeps the whole serializable, as far as [Analysis.Safe] can
// tell: no program can run at a cheaper one while the others stay as they are. It begins with READ COMMITTED for all.
// What is a pivot there needs a snapshot; what is one with a snapshot needs to be serializable, and so do those before
// and behind it.
func (a *Analysis) Allocate() []Level {
	at, p := make([]Level, len(a.Programs)), a.pivots()
	for {
		d, found := p.danger(at)
		if !found {
			break
		}
		pivot := a.owners[d.pivot]
		if at[pivot] == ReadCommitted {
			at[pivot] = SnapshotIsolation
			continue
		}
		for _, node := range []int{d.from, d.pivot, d.to} {
			at[a.owners[node]] = Serializable
		}
	}
	for p.lower(at) {
	}
	return at
}

// lower has one program run at a cheaper level, and reports whether there was one that can.
func (p *pivots) lower(at []Level) bool {
	for i, level := range at {
		for cheaper := ReadCommitted; cheaper < level; cheaper++ {
			at[i] = cheaper
			if _, found := p.danger(at); !found {
				return true
			}
		}
		at[i] = level
	}
	return false
}

// WitnessFor returns a witness that programs are not found safe at different levels; nil when they are.
func (a *Analysis) WitnessFor(levels []Level) *Witness {
	return a.witness(fullBitset(len(a.Graph.Nodes)), a.mixed(slices.Clone(levels)), levels)
}
