package analyzer

// longGSingle finds cycles of one rw and several ww and wr. Components of ww and wr are explained
// by now, so these have no cycle, and the numbers of components order the nodes: a path leads from
// high numbers to low ones.
func (s *search) longGSingle() {
	flow := func(e int32) bool { return s.usable(e, ww|wr) }
	whole, sizes := s.components(func(e int32) bool { return flow(e) || s.open(e) })
	rank, _ := s.components(flow)
	work := s.opts.Work
	for e := range int32(len(s.edges)) {
		d := &s.edges[e]
		reader, writer := s.from(e), s.to(e)
		if !s.open(e) || whole[reader] != whole[writer] || sizes[whole[reader]] < 2 || rank[writer] < rank[reader] {
			continue
		}
		keep := func(f int32) bool { return flow(f) && rank[s.to(f)] >= rank[reader] }
		var last func(f int32) bool
		if s.class == Violation {
			last = func(f int32) bool { return s.judge.bindsAfter(&s.edges[f], d) }
		}
		if path := s.path(writer, reader, keep, last, &work); path != nil {
			s.reportLonger(append([]int32{e}, path...), s.told)
		}
		if work < 0 {
			return
		}
	}
}

// longG2Item finds cycles of several rw. Each component is searched without bound until it has
// given a cycle, so that none stays without a finding.
func (s *search) longG2Item() {
	keep := func(e int32) bool { return s.usable(e, ww|wr|rw) }
	comp, sizes := s.components(keep)
	work := s.opts.Work
	given := make(map[int32]bool)
	for e := range int32(len(s.edges)) {
		c := comp[s.from(e)]
		if s.edges[e].kind != rw || !keep(e) || comp[s.to(e)] != c || sizes[c] < 2 {
			continue
		}
		bound := &work
		if !given[c] {
			bound = nil
		} else if work < 0 {
			continue
		}
		path := s.path(s.to(e), s.from(e), func(f int32) bool { return keep(f) && comp[s.to(f)] == c }, nil, bound)
		if path == nil {
			continue
		}
		given[c] = true
		s.reportLonger(append([]int32{e}, path...), s.gone)
	}
}

// open says that an edge is an rw that nothing explains yet.
func (s *search) open(e int32) bool { return s.edges[e].kind == rw && !s.gone[e] && !s.told[e] }

// nameLonger names a cycle of three or more transactions.
func nameLonger(o *order, cycle []dep) Anomaly {
	antis, adjacent, oneRow := 0, false, true
	for i := range cycle {
		d, before := &cycle[i], &cycle[(i+len(cycle)-1)%len(cycle)]
		oneRow = oneRow && o.row(d) == o.row(before)
		if d.kind == rw {
			antis++
			adjacent = adjacent || before.kind == rw
		}
	}
	switch {
	case antis == 1 && oneRow && cycle[len(cycle)-1].kind == wr && cycle[0].kind == rw:
		return NonRepeatableRead
	case antis == 1:
		return GSingle
	case !adjacent:
		return GNonadjacent
	}
	return G2Item
}

// reportLonger reports a cycle of three or more transactions, unless a shorter or stricter one
// already named the same programs, and adds its rw to the explained.
func (s *search) reportLonger(cycle []int32, explained []bool) {
	deps := s.depsOf(cycle)
	name := nameLonger(s.o, deps)
	if class := s.judge.class(deps); !s.found.named(name, class, deps) {
		s.found.add(name, class, deps)
	}
	for _, e := range cycle {
		if s.edges[e].kind == rw {
			s.mark(e, explained)
		}
	}
}
