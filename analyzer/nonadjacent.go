package analyzer

import "slices"

// longNonadjacent finds cycles of several rw of which no two follow each other: snapshot isolation
// forbids them as it forbids those with one. Like longGSingle it searches from each rw on; what has
// one rw only is explained by now, unless there was no time for it. What it has no time to walk is counted.
func (s *search) longNonadjacent() {
	name := GNonadjacent
	if s.flow&so != 0 {
		name = name.Process()
	}
	for _, begin := range s.beginnings() {
		given := make(map[int32]*group)
		s.eachNonadjacent(begin, func(c int32, cycle []int32) bool {
			given[c] = s.reportLonger(cycle, s.told)
			return true
		}, func(c, e int32) { s.leave(given[c], name, e, s.told) })
	}
}

// beginnings are the rw from which cycles are searched: first those against the order of ends. Mostly every cycle has
// one of these, so that nothing is left of which to search among the others.
func (s *search) beginnings() [2]func(e int32) bool {
	return [2]func(e int32) bool{s.backward, func(int32) bool { return true }}
}

// leave counts an rw, of which it is known that it is on a cycle but not on which one; one against the order of ends,
// which every cycle has.
func (s *search) leave(owner *group, name Anomaly, e int32, explained []bool) {
	if owner == nil || s.class == Hazard && name.variant() || !s.backward(e) {
		return
	}
	owner.cover(s.class, name, 1)
	s.mark(e, explained)
	s.markSeveral(e, owner)
}

// eachNonadjacent calls yield with a short cycle of that kind through each open rw where one may begin, until that says
// no; left with what is on one, too, once the work is done. Both are told the component, of which yield is called
// first.
func (s *search) eachNonadjacent(begin func(e int32) bool, yield func(c int32, cycle []int32) bool, left func(c, e int32)) {
	keep := func(e int32) bool { return s.usable(e, s.flow) || s.open(e) }
	a := s.alternatives(keep)
	work := s.opts.Work
	given := make(map[int32]bool)
	for e := range int32(len(s.edges)) {
		if !s.open(e) || !begin(e) || !a.closes(e) {
			continue
		}
		c := a.comp[s.to(e)]
		if work < 0 && given[c] {
			left(c, e)
			continue
		}
		bound := &work
		if !given[c] {
			bound = nil
		}
		cycle := s.nonadjacent(e, a.ways, func(f int32) bool { return keep(f) && a.of(f) == c }, bound)
		switch {
		case cycle != nil:
			given[c] = true
			if !yield(c, cycle) {
				return
			}
		case bound != nil && work < 0:
			left(c, e)
		}
	}
}

// anyNonadjacent reports whether there is such a cycle.
func (s *search) anyNonadjacent() (found bool) {
	s.eachNonadjacent(s.beginnings()[1], func(int32, []int32) bool { found = true; return false }, func(int32, int32) {})
	return found
}

// nonadjacent returns a short cycle through an edge, from an rw on; nil where there is none, or only one that leads
// through a component that is explained and comes by one of its transactions twice.
func (s *search) nonadjacent(e int32, ways *ways, keep func(e int32) bool, work *int) []int32 {
	for _, ok := range []func(f int32) bool{keep, func(f int32) bool { return keep(f) && s.circled[f] == 0 }} {
		walk := s.alternating(e, ways, ok, work)
		if walk == nil {
			return nil
		}
		cycle := s.simple(walk)
		if !s.apart(cycle) {
			continue
		}
		if s.edges[cycle[0]].kind != rw { // it is a part of the walk, perhaps with one rw, which is to come first
			cycle = s.fromFirstAnti(cycle)
		}
		return cycle
	}
	return nil
}

// apart reports whether a cycle has rw, no two of which follow each other.
func (s *search) apart(cycle []int32) bool {
	any := false
	for i, e := range cycle {
		anti := s.edges[e].kind == rw
		if any = any || anti; anti && s.edges[cycle[(i+1)%len(cycle)]].kind == rw {
			return false
		}
	}
	return any
}

// alternatives are the components of the walks on which no rw follows another: it takes no search to say which rw is
// on such a closed walk. Their states are the nodes, come to by any edge, and behind these the ways that rw may follow.
type alternatives struct {
	s    *search
	ways *ways
	into [][]int32 // by node that an rw leaves which is open: the ways by which walks come to it
	is   []bool    // by way: it is one of these
	comp []int32   // by state
}

func (s *search) alternatives(keep func(e int32) bool) *alternatives {
	a := &alternatives{s: s, ways: s.waysIn(), into: make([][]int32, len(s.nodes))}
	before := make([]bool, len(s.nodes))
	for e := range int32(len(s.edges)) {
		before[s.from(e)] = before[s.from(e)] || s.open(e)
	}
	a.is = make([]bool, len(a.ways.at))
	for e := range int32(len(s.edges)) {
		way := a.ways.of[e]
		if s.edges[e].kind != rw && !a.is[way] && before[s.to(e)] && keep(e) {
			a.is[way] = true
			a.into[s.to(e)] = append(a.into[s.to(e)], way)
		}
	}
	off, to := compressed(len(s.nodes)+len(a.ways.at), func(yield func(from, to int32)) {
		for e := range int32(len(s.edges)) {
			if s.edges[e].kind == rw || !keep(e) {
				continue
			}
			yield(s.from(e), a.state(e))
		}
		for v, ways := range a.into {
			for _, way := range ways {
				a.after(int32(v), way, yield)
			}
		}
	})
	a.comp, _ = components(len(s.nodes)+len(a.ways.at), off, func(i uint32) int32 { return to[i] })
	return a
}

// state returns where an edge leads.
func (a *alternatives) state(e int32) int32 {
	if way := a.ways.of[e]; a.is[way] {
		return int32(len(a.s.nodes)) + way
	}
	return a.s.to(e)
}

// after calls yield with the steps from a way into a node: on from there, and the rw that may follow.
func (a *alternatives) after(v, way int32, yield func(from, to int32)) {
	s, in := a.s, a.ways.at[way]
	yield(a.state(in), v)
	for _, f := range s.out[s.off[v]:s.off[v+1]] {
		if s.open(f) && s.follows(in, f) {
			yield(a.state(in), s.to(f))
		}
	}
}

// of returns the component where an edge leads.
func (a *alternatives) of(e int32) int32 { return a.comp[a.state(e)] }

// closes reports whether an rw is on a closed walk.
func (a *alternatives) closes(e int32) bool {
	for _, way := range a.into[a.s.from(e)] {
		if in := a.ways.at[way]; a.of(in) == a.of(e) && a.s.follows(in, e) {
			return true
		}
	}
	return false
}

// alternating finds a shortest closed walk from an edge on whose rw do not follow each other;
// nil where there is none. Where violations are searched, an rw must oblige the engine after the edge
// that leads to it. Each edge looked at costs one of work (nil: no bound).
func (s *search) alternating(e int32, ways *ways, keep func(e int32) bool, work *int) []int32 {
	s.arrived.begin(len(s.nodes), len(ways.at))
	queue := append(s.strides[:0], stride{e, none})
	defer func() { s.strides = queue }()
	for head := 0; head < len(queue); head++ {
		in := queue[head].edge
		at := s.to(in)
		for _, f := range s.out[s.off[at]:s.off[at+1]] {
			s.steps++
			if work != nil {
				if *work--; *work < 0 {
					return nil
				}
			}
			anti := s.edges[f].kind == rw
			if !keep(f) || anti && !s.follows(in, f) {
				continue
			}
			if s.to(f) == s.from(e) && (s.edges[e].kind != rw || !anti && s.follows(f, e)) {
				return trace(append(queue, stride{f, int32(head)}))
			}
			if s.arrived.first(s.to(f), ways.of[f], anti) {
				queue = append(queue, stride{f, int32(head)})
			}
		}
	}
	return nil
}

// arrived says where a walk has come to, and by which way, or by an rw.
type arrived struct {
	round         int32
	byAnti, byWay []int32 // by node, and by way: the round in which it last was
}

func (a *arrived) begin(nodes, ways int) {
	a.round++
	for len(a.byAnti) < nodes {
		a.byAnti = append(a.byAnti, 0)
	}
	for len(a.byWay) < ways {
		a.byWay = append(a.byWay, 0)
	}
}

// first reports whether it comes there for the first time.
func (a *arrived) first(node, way int32, anti bool) bool {
	last := &a.byWay[way]
	if anti {
		last = &a.byAnti[node]
	}
	first := *last != a.round
	*last = a.round
	return first
}

// trace returns the edges of the walk that ends with the last stride.
func trace(queue []stride) []int32 {
	var walk []int32
	for i := int32(len(queue) - 1); i >= 0; i = queue[i].before {
		walk = append(walk, queue[i].edge)
	}
	slices.Reverse(walk)
	return walk
}

// follows reports whether the rw out may come after the edge in.
func (s *search) follows(in, out int32) bool {
	if s.edges[in].kind == rw {
		return false
	}
	return s.class == Hazard || s.judge.bindsAfter(&s.edges[in], &s.edges[out])
}

// simple makes a cycle of a closed walk: while it comes by a node twice, it is two closed walks, and
// in at least one of these no rw follows another either.
func (s *search) simple(walk []int32) []int32 {
	for {
		i, j := s.repeated(walk)
		if i < 0 {
			return walk
		}
		inner, outer := walk[i:j], slices.Concat(walk[j:], walk[:i])
		if walk = inner; s.edges[inner[0]].kind == rw && s.edges[inner[len(inner)-1]].kind == rw {
			walk = outer
		}
	}
}

// repeated returns the places of two edges of a closed walk that leave the same node; -1 for none.
func (s *search) repeated(walk []int32) (i, j int) {
	seen := make(map[int32]int, len(walk))
	for j, e := range walk {
		if i, ok := seen[s.from(e)]; ok {
			return i, j
		}
		seen[s.from(e)] = j
	}
	return none, none
}
