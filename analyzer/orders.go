package analyzer

import (
	"slices"
)

// bySessions looks for the cycles that go by session order, too: the -process variants. (Those that do not are
// explained by now.)
func (s *search) bySessions() {
	s.restart(Violation, sessionFlow)
	s.circular(ww | so)
	s.circular(sessionFlow)
	s.longGSingle()
	s.longNonadjacent()
	s.forget()
	s.longG2Item()
}

// restart begins a pass over what is not explained.
func (s *search) restart(class Class, flow kind) {
	s.forget()
	clear(s.told)
	s.class, s.flow = class, flow
}

// byTime looks for the cycles that go by the order of time: the -realtime variants. In such a cycle one step by the
// clock is enough: of two, from T to U and from V to W, either T had ended before W began, or V before U. So it
// is a path of dependencies from a transaction to one that had ended before it began.
func (s *search) byTime() {
	s.restart(Violation, flow)
	named := make(map[int32]bool)
	for _, rule := range timeRules {
		s.eachInTime(rule, func(cycle []dep) bool {
			if first := cycle[len(cycle)-1].to; !named[first] && s.judge.class(cycle) == Violation {
				named[first] = true
				s.add(cycle)
			}
			return true
		})
	}
}

// A timeRule says which paths are looked for: of which kinds, and how the rw on it may stand.
type timeRule struct {
	kinds kind
	antis antiRule
}

type antiRule uint8

const (
	noAnti antiRule = iota
	oneAnti
	antisApart
	anyAntis
)

// timeRules are the paths of G0, G1c, G-single, G-nonadjacent and G2-item, strictest first.
var timeRules = []timeRule{{ww, noAnti}, {flow, noAnti}, {flow | rw, oneAnti}, {flow | rw, antisApart},
	{flow | rw, anyAntis}}

// The states of a path in the search from its end on, beside the node where it begins.
const (
	plainPath = 0 // it has no rw, for oneAnti; it does not begin with one, for antisApart
	antiPath  = 1
	states    = 2
)

// extend returns the state of a path to which an edge of a kind is put in front; false where the rule has none.
func (r antiRule) extend(state int32, k kind) (int32, bool) {
	switch {
	case k != rw && r == oneAnti:
		return state, true
	case k != rw:
		return plainPath, true
	case r == anyAntis:
		return antiPath, true
	}
	return antiPath, r != noAnti && state == plainPath
}

// A timeWalk is the memory of the search for paths to transactions that end early, by node and state: which
// transaction such a path leads to, and by which edge it begins.
type timeWalk struct {
	goal  []int32 // -1 for none
	via   []int32
	next  []int32 // the node and state after that edge
	queue []int32
}

// eachInTime calls yield with cycles of a path as the rule has it and the step by the clock that closes it, one for
// each transaction where such a path begins at most, until that says no.
func (s *search) eachInTime(rule timeRule, yield func(cycle []dep) bool) {
	ends := s.o.ends(s.local, s.nodes)
	for len(ends) > 0 {
		run := s.o.txns[ends[0]].run
		n := slices.IndexFunc(ends, func(t int32) bool { return s.o.txns[t].run != run })
		if n < 0 {
			n = len(ends)
		}
		if !s.inTimeOf(run, ends[:n], rule, yield) {
			return
		}
		ends = ends[n:]
	}
}

// inTimeOf does so in one run, whose transactions are given in order of their ends. From each of them on it goes back
// over the paths that lead there, and not where it came before: so every path is known by the earliest end
// that it leads to.
func (s *search) inTimeOf(run uint16, ends []int32, rule timeRule, yield func(cycle []dep) bool) bool {
	n := states * len(s.nodes)
	w := timeWalk{goal: make([]int32, n), via: make([]int32, n), next: make([]int32, n)}
	for i := range w.goal {
		w.goal[i] = none
	}
	latest := int64(0)
	for _, t := range s.nodes {
		if s.o.txns[t].run == run {
			latest = max(latest, s.o.txns[t].start)
		}
	}
	for _, t := range ends {
		if s.o.txns[t].end < latest {
			s.backFrom(&w, s.local[t], rule)
		}
	}
	for v, t := range s.nodes {
		if s.o.txns[t].run != run {
			continue
		}
		for state := range int32(states) {
			if cycle := s.inTime(&w, int32(v)*states+state); cycle != nil && !yield(cycle) {
				return false
			}
		}
	}
	return true
}

func (s *search) backFrom(w *timeWalk, goal int32, rule timeRule) {
	w.queue = append(w.queue[:0], goal*states+plainPath)
	for head := 0; head < len(w.queue); head++ {
		at := w.queue[head]
		for _, e := range s.into(at / states) {
			if !s.passable(e, rule.kinds) || head > 0 && !s.mayFollow(e, w.via[at]) {
				continue
			}
			state, ok := rule.antis.extend(at%states, s.edges[e].kind)
			before := s.from(e)*states + state
			if !ok || w.goal[before] >= 0 || s.from(e) == goal {
				continue
			}
			w.goal[before], w.via[before], w.next[before] = goal, e, at
			w.queue = append(w.queue, before)
		}
	}
}

// passable reports whether an edge may be on a path: an rw may, whose class hangs on the edge before it.
func (s *search) passable(e int32, kinds kind) bool {
	if s.edges[e].kind == rw {
		return kinds&rw != 0 && s.open(e)
	}
	return s.usable(e, kinds)
}

// mayFollow reports whether, in the pass in hand, the edge out may follow the edge in on a path.
func (s *search) mayFollow(in, out int32) bool {
	return s.edges[out].kind != rw || s.class == Hazard || s.judge.bindsAfter(&s.edges[in], &s.edges[out])
}

// inTime returns the cycle that the path from a node in a state closes; nil where the path leads to no transaction
// that had ended by then.
func (s *search) inTime(w *timeWalk, at int32) []dep {
	goal := w.goal[at]
	if goal < 0 {
		return nil
	}
	first, last := s.nodes[at/states], s.nodes[goal]
	began := s.o.txns[first].start
	if began <= 0 || s.o.txns[last].end >= began {
		return nil
	}
	var path []dep
	for ; at/states != goal; at = w.next[at] {
		path = append(path, s.edges[w.via[at]])
	}
	return append(withoutLoops(path), dep{from: last, to: first, kind: rt, access: none, version: none, next: none})
}
