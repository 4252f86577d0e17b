package analyzer

import "slices"

// fractured finds the read skews over others' writes: a transaction read what another wrote, and missed what that
// one wrote to a second row, of which it read a version before others'.
func (s *search) fractured() {
	s.eachFractured(func(e int32, cycle []dep) bool {
		if s.judge.class(cycle) == s.class {
			s.addLonger(s.o.nameOf(cycle), cycle)
			s.mark(e, s.told)
		}
		return true
	})
}

// eachFractured calls yield with such cycles, and the open rw that each begins with, until that says no.
func (s *search) eachFractured(yield func(e int32, cycle []dep) bool) {
	work := s.opts.Work
	for e := range int32(len(s.edges)) {
		if !s.open(e) || !s.usable(e, rw) {
			continue
		}
		for _, f := range s.readsBy(s.from(e)) {
			if work--; work < 0 {
				return
			}
			if cycle := s.fracture(e, f); s.open(e) && cycle != nil && !yield(e, cycle) {
				return
			}
		}
	}
}

// fracture gives the cycle that the rw e and the wr f make, both of one transaction; nil where there is none.
func (s *search) fracture(e, f int32) []dep {
	d := &s.edges[e]
	writer := s.edges[f].from
	if !s.usable(f, wr) || s.o.row(&s.edges[f]) == s.o.row(d) || writer == d.to {
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

// incoming are edges by the node that they lead to: those of node v are edges[off[v]:off[v+1]].
type incoming struct {
	off   []uint32
	edges []int32
}

// readsBy gives the wr that lead to a node.
func (s *search) readsBy(v int32) []int32 {
	in := &s.reads
	if in.off == nil {
		in.off = make([]uint32, len(s.nodes)+1)
		s.eachRead(func(e int32) { in.off[s.to(e)+1]++ })
		offsets(in.off)
		in.edges = make([]int32, in.off[len(s.nodes)])
		at := slices.Clone(in.off)
		s.eachRead(func(e int32) {
			in.edges[at[s.to(e)]] = e
			at[s.to(e)]++
		})
	}
	return in.edges[in.off[v]:in.off[v+1]]
}

func (s *search) eachRead(yield func(e int32)) {
	for e := range int32(len(s.edges)) {
		if s.edges[e].kind == wr {
			yield(e)
		}
	}
}
