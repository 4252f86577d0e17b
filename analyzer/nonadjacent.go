package analyzer

import "slices"

// longNonadjacent finds cycles of several rw of which no two follow each other: snapshot isolation
// forbids them as it forbids those with one. Like longGSingle it searches from each rw on; what has
// one rw only is explained by now.
func (s *search) longNonadjacent() {
	s.eachNonadjacent(func(cycle []int32) bool {
		s.reportLonger(cycle, s.told)
		return true
	})
}

// eachNonadjacent calls yield with a short cycle of that kind through each open rw, until that says no.
func (s *search) eachNonadjacent(yield func(cycle []int32) bool) {
	keep := func(e int32) bool { return s.usable(e, s.flow) || s.open(e) }
	comp, sizes := s.components(keep)
	work := s.opts.Work
	for e := range int32(len(s.edges)) {
		c := comp[s.from(e)]
		if !s.open(e) || comp[s.to(e)] != c || sizes[c] < 3 {
			continue
		}
		inside := func(f int32) bool { return keep(f) && comp[s.to(f)] == c }
		var walk []int32
		if s.closes(s.from(e), func(f int32) bool { return inside(f) && s.follows(f, e) }, &work) {
			walk = s.alternating(e, inside, &work)
		}
		if walk != nil && !yield(s.simple(walk)) || work < 0 {
			return
		}
	}
}

// alternating finds a shortest closed walk from an edge on whose rw do not follow each other;
// nil where there is none. Where violations are searched, an rw must oblige the engine after the edge
// that leads to it.
func (s *search) alternating(e int32, keep func(e int32) bool, work *int) []int32 {
	w := &s.walk
	w.round++
	queue := append(s.strides[:0], stride{e, none})
	defer func() { s.strides = queue }()
	for head := 0; head < len(queue); head++ {
		in := queue[head].edge
		at := s.to(in)
		for _, f := range s.out[s.off[at]:s.off[at+1]] {
			if *work--; *work < 0 {
				return nil
			}
			anti := s.edges[f].kind == rw
			if !keep(f) || anti && !s.follows(in, f) {
				continue
			}
			if s.to(f) == s.from(e) && (s.edges[e].kind != rw || !anti && s.follows(f, e)) {
				return trace(append(queue, stride{f, int32(head)}))
			}
			visited := w.visited
			if anti {
				visited = s.byAnti
			}
			if visited[s.to(f)] != w.round {
				visited[s.to(f)] = w.round
				queue = append(queue, stride{f, int32(head)})
			}
		}
	}
	return nil
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
