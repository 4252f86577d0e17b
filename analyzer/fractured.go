package analyzer

import "slices"

// fractured finds the read skews over others' writes: a transaction read what another wrote, and missed what that
// one wrote to a second row, of which it read a version before others'.
func (s *search) fractured() {
	s.eachFractured(func(e int32, cycle []dep) bool {
		if s.judge.class(cycle) == s.class {
			if !s.reopened(e, s.o.nameOf(cycle), cycle) {
				s.add(cycle)
			}
			s.mark(e, s.told)
		}
		return true
	})
}

// eachFractured calls yield with such cycles, and the open rw that each begins with, until that says no.
func (s *search) eachFractured(yield func(e int32, cycle []dep) bool) {
	work := s.opts.Work
	for e := range int32(len(s.edges)) {
		if !s.open(e) {
			continue
		}
		for _, f := range s.into(s.from(e)) {
			s.steps++
			if work--; work < 0 {
				return
			}
			if !s.usable(f, wr) || !s.open(e) {
				continue
			}
			if cycle := s.fracture(e, f); cycle != nil && !yield(e, cycle) {
				return
			}
		}
	}
}

// fracture returns the cycle that the rw e and the wr f make, both of one transaction; nil where there is none.
func (s *search) fracture(e, f int32) []dep {
	d := &s.edges[e]
	writer := s.edges[f].from
	if s.o.row(&s.edges[f]) == s.o.row(d) || writer == d.to {
		return nil
	}
	own := s.chains.lastWrite(writer, s.o.row(d))
	if own < 0 {
		return nil
	}
	if _, _, ok := s.chains.between(d.next, own); !ok {
		return nil
	}
	links := s.chains.links(d.next, own)
	if len(links) == 0 || slices.ContainsFunc(links, func(l dep) bool { return l.from == d.from }) {
		return nil
	}
	return slices.Concat([]dep{*d}, links, []dep{s.edges[f]})
}
