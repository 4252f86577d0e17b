package analyzer

import (
	"cmp"
	"container/heap"
	"slices"
)

// longGSingle finds cycles of one rw and several ww and wr.
func (s *search) longGSingle() {
	report := func(cycle []int32) bool {
		s.reportLonger(cycle, s.told)
		return true
	}
	s.eachSingle(s.o.earlier, report)
	s.eachSingle(anyway, report)
}

// anyway is what fits every two dependencies.
func anyway(_, _ *dep) bool { return true }

// eachSingle calls yield with a shortest cycle through each open rw and no other, in which the last dependency and
// the rw that follows it fit, until that says no. It looks only at what stands between the two in an order of the
// transactions that ww and wr respect.
func (s *search) eachSingle(fit func(in, out *dep) bool, yield func(cycle []int32) bool) {
	flow := func(e int32) bool { return s.usable(e, s.flow) }
	whole, sizes := s.components(func(e int32) bool { return flow(e) || s.open(e) })
	place := s.places(flow)
	work := s.opts.Work
	for e := range int32(len(s.edges)) {
		d := &s.edges[e]
		reader, writer := s.from(e), s.to(e)
		if !s.open(e) || whole[reader] != whole[writer] || sizes[whole[reader]] < 2 || place[writer] > place[reader] {
			continue
		}
		keep := func(f int32) bool {
			return place[s.to(f)] <= place[reader] && place[s.from(f)] >= place[writer] && flow(f)
		}
		last := func(f int32) bool {
			in := &s.edges[f]
			return fit(in, d) && (s.class == Hazard || s.judge.bindsAfter(in, d))
		}
		var path []int32
		if s.closes(reader, func(f int32) bool { return keep(f) && last(f) }, &work) {
			path = s.path(writer, reader, keep, last, &work)
		}
		if path != nil && !yield(append([]int32{e}, path...)) || work < 0 {
			return
		}
	}
}

// places returns each node's place in an order that edges respect, of those that may be the one of the ends of
// transactions. The nodes of a component have one place.
func (s *search) places(keep func(e int32) bool) []int32 {
	comp, sizes := s.components(keep)
	due := make([]int32, len(sizes)) // by component: the first end of one of its transactions, by its place among all
	for i := range due {
		due[i] = none
	}
	byDue := make([]int32, len(s.nodes))
	for at, v := range s.byEnd() {
		if c := comp[v]; due[c] < 0 {
			due[c], byDue[at] = int32(at), c
		}
	}
	before := make([]int32, len(sizes)) // edges from components that have no place yet
	off, to := compressed(len(sizes), func(yield func(from, to int32)) {
		for e := range int32(len(s.edges)) {
			if a, b := comp[s.from(e)], comp[s.to(e)]; a != b && keep(e) {
				yield(a, b)
			}
		}
	})
	for _, c := range to {
		before[c]++
	}
	var ready dueHeap
	for c, n := range before {
		if n == 0 {
			ready = append(ready, due[c])
		}
	}
	heap.Init(&ready)
	place := make([]int32, len(sizes))
	for next := int32(0); len(ready) > 0; next++ {
		c := byDue[heap.Pop(&ready).(int32)]
		place[c] = next
		for _, u := range to[off[c]:off[c+1]] {
			if before[u]--; before[u] == 0 {
				heap.Push(&ready, due[u])
			}
		}
	}
	for v, c := range comp {
		comp[v] = place[c]
	}
	return comp
}

// byEnd returns the nodes in the order of their ends.
func (s *search) byEnd() []int32 {
	nodes := make([]int32, len(s.nodes))
	for v := range nodes {
		nodes[v] = int32(v)
	}
	slices.SortFunc(nodes, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.o.txns[s.nodes[a]].end, s.o.txns[s.nodes[b]].end), cmp.Compare(a, b))
	})
	return nodes
}

// A dueHeap is a container/heap of numbers.
type dueHeap []int32

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(int32)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// closes reports whether an edge into a node is as told: where none is, no search for a path there is worth its work.
func (s *search) closes(v int32, ok func(e int32) bool, work *int) bool {
	for _, e := range s.into(v) {
		s.steps++
		if *work--; ok(e) {
			return true
		}
	}
	return false
}

// longG2Item finds cycles of several rw. Each component is searched without bound until it has
// given a cycle, so that none stays without a finding. What it has no time to walk is counted.
func (s *search) longG2Item() {
	for _, begin := range s.beginnings() {
		s.longG2ItemFrom(begin)
	}
}

func (s *search) longG2ItemFrom(begin func(e int32) bool) {
	keep := func(e int32) bool { return s.usable(e, s.flow|rw) }
	comp, sizes := s.components(keep)
	name := G2Item
	if s.flow&so != 0 {
		name = name.Process()
	}
	work := s.opts.Work
	given := make(map[int32]*group)
	for e := range int32(len(s.edges)) {
		c := comp[s.from(e)]
		if s.edges[e].kind != rw || !begin(e) || !keep(e) || comp[s.to(e)] != c || sizes[c] < 2 {
			continue
		}
		owner, found := given[c]
		bound := &work
		if !found {
			bound = nil
		}
		var path []int32
		if !found || work >= 0 {
			path = s.path(s.to(e), s.from(e), func(f int32) bool { return comp[s.to(f)] == c && keep(f) }, nil, bound)
		}
		if path != nil {
			given[c] = s.reportLonger(s.fromFirstAnti(append([]int32{e}, path...)), s.gone)
		} else if work < 0 {
			s.leave(owner, name, e, s.gone)
		}
	}
}

// fromFirstAnti returns a cycle from its first rw on, by number: however it was found, it is told in one way.
func (s *search) fromFirstAnti(cycle []int32) []int32 {
	first := none
	for i, e := range cycle {
		if s.edges[e].kind == rw && (first < 0 || e < cycle[first]) {
			first = i
		}
	}
	return slices.Concat(cycle[first:], cycle[:first])
}

// open reports whether an edge is an rw that nothing explains yet.
func (s *search) open(e int32) bool {
	return s.edges[e].kind == rw && !s.gone[e] && !s.told[e] && s.inHand(e)
}

// reportLonger reports a cycle of three or more transactions, unless a shorter or stricter one
// already named the same programs, and adds its rw to the explained. It returns what [search.add] does.
func (s *search) reportLonger(cycle []int32, explained []bool) *group {
	deps := s.depsOf(cycle)
	if s.o.nameOf(deps).base() == GSingle {
		deps = s.strictestLonger(cycle)
	}
	if s.reopened(cycle[0], s.o.nameOf(deps), deps) {
		s.markAll(cycle, explained, nil)
		return nil
	}
	g := s.add(deps)
	s.markAll(cycle, explained, g)
	return g
}

// markAll sets the rw of a group's cycle, and those parallel to them, in a set of edges.
func (s *search) markAll(cycle []int32, set []bool, g *group) {
	antis := 0
	for _, e := range cycle {
		if s.edges[e].kind == rw {
			antis++
			s.mark(e, set)
		}
	}
	for _, e := range cycle {
		if s.edges[e].kind == rw && antis > 1 {
			s.markSeveral(e, g)
		}
	}
}

// strictestLonger chooses among the edges parallel to those of a cycle, which begins with its only rw, the ones that
// make the strictest name.
func (s *search) strictestLonger(cycle []int32) []dep {
	last := len(cycle) - 1
	out, back := s.parallel(cycle[0], rw), s.parallel(cycle[last], ww|wr)
	between := s.depsOf(cycle[1:last])
	best, name := s.strictest(out, between, back)
	for _, r := range out {
		through := s.through(s.o.row(&s.edges[r]), cycle[1:last])
		if through == nil {
			continue
		}
		if c, n := s.strictest([]int32{r}, through, back); c != nil && (best == nil || s.o.tellsMore(n, c, name, best)) {
			best, name = c, n
		}
	}
	if best == nil {
		return s.depsOf(cycle)
	}
	return best
}

// parallel returns a few edges of the kinds, that are not explained, from where e leads from to where it leads to.
func (s *search) parallel(e int32, kinds kind) []int32 {
	return s.between(&s.pairs[s.pair[e]], s.from(e), kinds)
}

// through returns the ww through one row that are parallel to the edges of a path; nil where one is missing.
func (s *search) through(row int32, path []int32) []dep {
	deps := make([]dep, 0, len(path))
	for _, e := range path {
		parallel := s.parallel(e, ww)
		i := slices.IndexFunc(parallel, func(p int32) bool { return s.o.row(&s.edges[p]) == row })
		if i < 0 {
			return nil
		}
		deps = append(deps, s.edges[parallel[i]])
	}
	return deps
}
