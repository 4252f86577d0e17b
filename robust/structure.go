package robust

import (
	"math"
	"slices"
)

// A structure is a summary graph as the search for dangerous cycles needs it. Every such cycle has a pivot: a program
// P_4 with an edge that arrives, from P_3, and a counterflow edge that departs, to P_5; and P_5 leads back to P_3.
type structure struct {
	graph      *SummaryGraph
	arrivals   [][]arrival   // by pivot, one for each program that they come from
	departures [][]departure // by pivot, one for each program that they go to
	next       []bitset      // the programs that a program has edges to
	nextNC     []bitset      // by edges that are not counterflow
}

// An arrival is what is known of all edges from one program to a pivot.
type arrival struct {
	from int
	// free says that there is a counterflow edge, or one that begins with a read which does not hold its tuple: the
	// order of the pivot's statements does not matter then (Theorem 6.4, both conditions).
	free bool
	// latest is the last of the pivot's statements that an edge arrives at; -1 if there is none.
	latest int32
	// vulnerable says that there is a vulnerable antidependency, by the level that the program runs at; see
	// [rules.vulnerable].
	vulnerable [levels]bool
}

// A departure is what is known of all counterflow edges from a pivot to one program.
type departure struct {
	to int
	// earliest is the first of the pivot's statements that an edge departs from, at READ COMMITTED.
	earliest int32
	snapshot bool // an edge departs with a snapshot: see [rules.leaves]
}

func (r *rules) digest(g *SummaryGraph) *structure {
	n := len(g.Nodes)
	s := &structure{graph: g, arrivals: make([][]arrival, n), departures: make([][]departure, n)}
	for range n {
		s.next = append(s.next, newBitset(n))
		s.nextNC = append(s.nextNC, newBitset(n))
	}
	for _, e := range g.Edges {
		r.digestEdge(s, e)
	}
	return s
}

// digestEdge counts an edge in. Edges come in the order of their programs, so that those between two programs come
// together.
func (r *rules) digestEdge(s *structure, e Edge) {
	from, to := int(e.From), int(e.To)
	s.next[from].add(to)
	if !e.Counterflow {
		s.nextNC[from].add(to)
	}
	in := r.arrives(s.graph, e)
	if all := s.arrivals[to]; len(all) > 0 && all[len(all)-1].from == from {
		all[len(all)-1].unite(in)
	} else {
		s.arrivals[to] = append(all, in)
	}
	out := r.departs(s.graph, e)
	if !out.possible() {
		return
	}
	if all := s.departures[from]; len(all) > 0 && all[len(all)-1].to == to {
		all[len(all)-1].unite(out)
	} else {
		s.departures[from] = append(all, out)
	}
}

// arrives returns what one edge is as it arrives.
func (r *rules) arrives(g *SummaryGraph, e Edge) arrival {
	from, _ := g.Ends(e)
	in := arrival{from: int(e.From), free: e.Counterflow || r.readers[from.rule()], latest: -1}
	if !e.Counterflow {
		in.latest = e.ToAt
		for level := range in.vulnerable {
			in.vulnerable[level] = r.vulnerable(g, e, Level(level))
		}
	}
	return in
}

func (in *arrival) unite(other arrival) {
	in.free = in.free || other.free
	in.latest = max(in.latest, other.latest)
	for level, vulnerable := range other.vulnerable {
		in.vulnerable[level] = in.vulnerable[level] || vulnerable
	}
}

// departs returns what one edge is as it departs.
func (r *rules) departs(g *SummaryGraph, e Edge) departure {
	if e.Counterflow {
		return departure{to: int(e.To), earliest: e.FromAt}
	}
	return departure{to: int(e.To), earliest: never32, snapshot: r.leaves(g, e)}
}

// possible reports whether an edge can depart at some level.
func (out *departure) possible() bool { return out.earliest < never32 || out.snapshot }

func (out *departure) unite(other departure) {
	out.earliest = min(out.earliest, other.earliest)
	out.snapshot = out.snapshot || other.snapshot
}

// never32 is behind every statement.
const never32 = math.MaxInt32

// A danger is a pivot with what makes it one: nodes of the graph.
type danger struct{ from, pivot, to int }

// A question is which cycles are dangerous.
type question struct {
	// pair says whether an arrival and a departure make a node a pivot.
	pair func(in *arrival, pivot int, out *departure) bool
	// closing says how a cycle closes: given the nodes, those that lead from P_5 back to P_3, by P_5.
	closing func(nodes bitset) []bitset
}

// find returns the first danger among the nodes.
func (s *structure) find(nodes bitset, q question) (found danger, ok bool) {
	s.each(nodes, q, func(d danger) bool {
		found, ok = d, true
		return false
	})
	return found, ok
}

// each calls f for every danger among the nodes, until it returns false.
func (s *structure) each(nodes bitset, q question, f func(danger) bool) {
	var back []bitset // not needed where there is no pivot
	for pivot := range nodes.all {
		for i := range s.departures[pivot] {
			out := &s.departures[pivot][i]
			if !nodes.has(out.to) {
				continue
			}
			for k := range s.arrivals[pivot] {
				in := &s.arrivals[pivot][k]
				if !nodes.has(in.from) || !q.pair(in, pivot, out) {
					continue
				}
				if back == nil {
					back = q.closing(nodes)
				}
				if back[out.to].has(in.from) && !f(danger{in.from, pivot, out.to}) {
					return
				}
			}
		}
	}
}

// closure returns the nodes that each node reaches by edges among the nodes given; every one reaches itself.
func (s *structure) closure(nodes bitset) []bitset {
	reach := make([]bitset, len(s.next))
	for i := range nodes.all {
		reach[i] = slices.Clone(s.next[i])
		reach[i].intersect(nodes)
		reach[i].add(i)
	}
	for k := range nodes.all {
		for i := range nodes.all {
			if reach[i].has(k) {
				reach[i].unite(reach[k])
			}
		}
	}
	return reach
}

// closureWithFlow returns the nodes that each node reaches by edges of which at least one is not counterflow: the first
// edge of Algorithm 2.
func (s *structure) closureWithFlow(nodes bitset) []bitset {
	reach := s.closure(nodes)
	after := make([]bitset, len(reach)) // what is reached by an edge that is not counterflow, and from there
	for i := range nodes.all {
		after[i] = newBitset(len(reach))
		for j := range s.nextNC[i].all {
			if nodes.has(j) {
				after[i].unite(reach[j])
			}
		}
	}
	closed := make([]bitset, len(reach))
	for i := range nodes.all {
		closed[i] = newBitset(len(reach))
		for j := range reach[i].all {
			closed[i].unite(after[j])
		}
	}
	return closed
}
