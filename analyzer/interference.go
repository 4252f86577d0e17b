package analyzer

// interference finds the G-SIa that are forbidden. One that is on a cycle whose rw stand apart has a stricter name.
func (s *search) interference() {
	s.class, s.flow = Violation, flow
	work := s.opts.Work
	var into *ways
	for i := range s.o.interfering {
		d := &s.o.interfering[i]
		if s.judge.classOfInterference(d) != Violation {
			continue
		}
		if into == nil {
			s.setTogether(false)
			into = s.waysIn()
		}
		if !s.onStricter(d, into, &work) {
			s.found.add(GSIa, Violation, []dep{*d})
		}
	}
}

// onStricter reports whether a dependency is on a cycle that is a violation, and no two rw of which follow each other.
func (s *search) onStricter(d *dep, into *ways, work *int) bool {
	if len(s.nodes) == 0 || s.local[d.from] < 0 || s.local[d.to] < 0 {
		return false
	}
	from := s.local[d.from]
	for _, e := range s.out[s.off[from]:s.off[from+1]] {
		if s.edges[e] == *d {
			return s.binds[e] && s.alternating(e, into, func(f int32) bool { return s.usable(f, flow) || s.open(f) },
				work) != nil
		}
	}
	return false
}
