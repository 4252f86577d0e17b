package analyzer

// A lostUpdate is an rw, the version that its reader left of the row, and how many ww at most lie between that and
// the version that the reader missed; bound says that all of these oblige the engine.
type lostUpdate struct {
	edge, own int32
	steps     int
	bound     bool
}

// lostUpdates finds every transaction that read a row and wrote it later over versions that it had
// not seen: rw and ww through one row.
func (s *search) lostUpdates() {
	s.eachLostUpdate(func(l lostUpdate) bool {
		d := &s.edges[l.edge]
		in := dep{from: d.to, to: d.from, kind: ww, access: none, version: d.next, next: l.own}
		class := s.classOfLostUpdate(d, &in, l.bound)
		if class != s.class {
			return true
		}
		unproven := in
		unproven.inexact = true // it stands for a chain, which may be; the verdict looks for lost updates by itself
		if s.reopened(l.edge, LostUpdate, []dep{*d, unproven}) {
			s.explain(l.edge)
			return true
		}
		g := s.found.group(LostUpdate, class, []dep{*d, in})
		g.saw(max(s.o.txns[d.from].end, s.o.txns[d.to].end))
		if g.better(l.steps + 1) {
			g.witness, g.length = append([]dep{*d}, s.chains.links(d.next, l.own)...), l.steps+1
		}
		s.explain(l.edge)
		return true
	})
}

// eachLostUpdate calls yield with those that are not explained, until that says no.
func (s *search) eachLostUpdate(yield func(lostUpdate) bool) {
	for e := range int32(len(s.edges)) {
		d := &s.edges[e]
		if d.kind != rw || s.gone[e] || s.o.byPredicate(d) {
			continue
		}
		own := s.chains.lastWrite(d.from, s.o.row(d))
		if own < 0 {
			continue
		}
		if steps, bound, ok := s.chains.between(d.next, own); ok && !yield(lostUpdate{e, own, steps, bound}) {
			return
		}
	}
}

// classOfLostUpdate judges the cycle of the rw d and the ww up to the reader's own version, taken
// together as in; bound says that all of these oblige the engine.
func (s *search) classOfLostUpdate(d, in *dep, bound bool) Class {
	if s.judge.model != nil {
		return s.judge.classByName(LostUpdate, *d)
	}
	if bound && s.judge.bindsAfter(in, d) {
		return Violation
	}
	return Hazard
}

// few bounds the parallel edges of two transactions that are tried with each other.
const few = 32

// singles finds all cycles of two transactions with one rw.
func (s *search) singles() {
	for i := range s.pairs {
		if p := &s.pairs[i]; len(p.edges) > 1 {
			s.singleIn(p, p.low, p.high)
			s.singleIn(p, p.high, p.low)
		}
	}
}

// skews finds all cycles of two transactions with two rw.
func (s *search) skews() {
	for i := range s.pairs {
		if p := &s.pairs[i]; len(p.edges) > 1 {
			s.skewIn(p)
		}
	}
}

// between returns a few of the pair's edges of the kinds that are not explained, in one direction.
func (s *search) between(p *pair, from int32, kinds kind) []int32 {
	var edges []int32
	for _, e := range p.edges {
		if s.from(e) == from && s.edges[e].kind&kinds != 0 && !s.gone[e] {
			if edges = append(edges, e); len(edges) == few {
				break
			}
		}
	}
	return edges
}

// singleIn finds a cycle of rw from reader to writer and one dependency back.
func (s *search) singleIn(p *pair, reader, writer int32) {
	out := s.between(p, reader, rw)
	if len(out) == 0 {
		return
	}
	if cycle, name := s.strictest(out, nil, s.between(p, writer, ww|wr)); cycle != nil {
		if !s.reopened(out[0], name, cycle) {
			s.found.add(name, s.class, cycle)
		}
		s.explain(out[0])
	}
}

// strictest chooses of parallel edges those that make a cycle of the class looked for under the strictest name: an
// rw out of the first transaction and an edge back into it, with the dependencies that lead from the one
// to the other. It gives nil where there is none.
func (s *search) strictest(out []int32, between []dep, back []int32) (best []dep, name Anomaly) {
	for _, b := range back {
		for _, r := range out {
			cycle := append(append([]dep{s.edges[r]}, between...), s.edges[b])
			n := s.o.nameSingle(cycle)
			if (best == nil || s.o.tellsMore(n, cycle, name, best)) && s.judge.class(cycle) == s.class {
				best, name = cycle, n
			}
		}
	}
	return best, name
}

// skewIn finds a cycle of two rw.
func (s *search) skewIn(p *pair) {
	there, back := s.between(p, p.low, rw), s.between(p, p.high, rw)
	var best []dep
	var name Anomaly
	for _, a := range there {
		for _, b := range back {
			cycle := s.depsOf([]int32{a, b})
			n := s.o.nameOf(cycle)
			if (best == nil || n == WriteSkew && name != WriteSkew) && s.judge.class(cycle) == s.class {
				best, name = cycle, n
			}
		}
	}
	if best != nil {
		g := s.found.add(name, s.class, best)
		s.markAll([]int32{there[0], back[0]}, s.gone, g)
	}
}

// collisions finds lost updates where it is not known which of two versions came first: two transactions
// that read one version of a row and wrote the row.
func (s *search) collisions() {
	if len(s.o.laterVersions) == 0 {
		return
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		s.collisionIn(s.between(p, p.low, rw), s.between(p, p.high, rw))
	}
}

func (s *search) collisionIn(there, back []int32) {
	for _, a := range there {
		for _, b := range back {
			if s.edges[a].version != s.edges[b].version {
				continue
			}
			if cycle := s.depsOf([]int32{a, b}); s.judge.class(cycle) == s.class {
				if !s.reopened(a, LostUpdate, cycle) {
					s.found.add(LostUpdate, s.class, cycle)
				}
				s.explain(a)
				s.explain(b)
				return
			}
		}
	}
}
