package analyzer

import "slices"

// longGSingle finds cycles of one rw and several ww and wr. Components of ww and wr are explained
// by now, so these have no cycle, and the numbers of components order the nodes: a path leads from
// high numbers to low ones.
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
// the rw that follows it fit, until that says no.
func (s *search) eachSingle(fit func(in, out *dep) bool, yield func(cycle []int32) bool) {
	flow := func(e int32) bool { return s.usable(e, s.flow) }
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

// closes reports whether an edge into a node is as told: where none is, no search for a path there is worth its work.
func (s *search) closes(v int32, ok func(e int32) bool, work *int) bool {
	for _, e := range s.into(v) {
		if *work--; ok(e) {
			return true
		}
	}
	return false
}

// longG2Item finds cycles of several rw. Each component is searched without bound until it has
// given a cycle, so that none stays without a finding.
func (s *search) longG2Item() {
	keep := func(e int32) bool { return s.usable(e, s.flow|rw) }
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

// open reports whether an edge is an rw that nothing explains yet.
func (s *search) open(e int32) bool {
	return s.edges[e].kind == rw && !s.gone[e] && !s.told[e] && s.inHand(e)
}

// reportLonger reports a cycle of three or more transactions, unless a shorter or stricter one
// already named the same programs, and adds its rw to the explained.
func (s *search) reportLonger(cycle []int32, explained []bool) {
	deps := s.depsOf(cycle)
	if s.o.nameOf(deps).base() == GSingle {
		deps = s.strictestLonger(cycle)
	}
	s.add(deps)
	s.markAll(cycle, explained)
}

// markAll sets the rw of a cycle, and those parallel to them, in a set of edges.
func (s *search) markAll(cycle []int32, set []bool) {
	antis := 0
	for _, e := range cycle {
		if s.edges[e].kind == rw {
			antis++
			s.mark(e, set)
		}
	}
	for _, e := range cycle {
		if s.edges[e].kind == rw && antis > 1 {
			s.mark(e, s.several)
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
		if c, n := s.strictest([]int32{r}, through, back); c != nil && (best == nil || telling(n) < telling(name)) {
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
