package analyzer

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// byTime looks for the cycles of some rules that go by the order of time. In such a cycle one step by the
// clock is enough: of two, from T to U and from V to W, either T had ended before W began, or V before U. So it
// is a path of dependencies from a transaction to one that had ended before it began. Each rw is reported once.
func (s *search) byTime(rules []timeRule) {
	named := make(map[ends]bool)
	for _, rule := range rules {
		s.eachInTime(rule, func(e int32, cycle []dep) bool {
			if !(rule.antis == noAnti && named[s.ends[e]]) && s.judge.class(cycle) == Violation {
				if rule.antis == noAnti {
					named[s.ends[e]] = true
				}
				s.add(cycle)
				for i := range cycle {
					s.explainBetween(&cycle[i])
				}
			}
			return true
		})
	}
}

// explainBetween takes all rw parallel to an rw out of the graph.
func (s *search) explainBetween(d *dep) {
	if d.kind != rw {
		return
	}
	v := s.local[d.from]
	for _, e := range s.out[s.off[v]:s.off[v+1]] {
		if s.edges[e].to == d.to && s.edges[e].kind == rw {
			s.gone[e] = true
		}
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

// The states of a path in the search from one of its ends on, beside the node that it has come to.
const (
	plainPath = 0 // it has no rw, or for antisApart and anyAntis none at the end that it has come to
	antiPath  = 1
	states    = 2
)

// extend returns the state of a path to which an edge of a kind is put; false where the rule has none. A path with one
// rw is two paths without any, one to it and one from it.
func (r antiRule) extend(state int32, k kind) (int32, bool) {
	switch {
	case k != rw:
		return plainPath, true
	case r == anyAntis:
		return antiPath, true
	}
	return antiPath, r == antisApart && state == plainPath
}

// A timeWalk is the memory of the search for paths to transactions that end early, or from those that begin late, by
// node and state: which transaction such a path leads to, and by which edge it goes on to there.
type timeWalk struct {
	forth bool    // from those that begin late, along the edges
	goal  []int32 // a node; -1 for none
	via   []int32 // -1 at the goal itself
	next  []int32 // the node and state after that edge
	queue []int32
	// ways are those into the nodes, and latest is of which beginning the latest leads on by each, by node: nil where
	// nobody has asked yet. Both are for a walk forth that is over.
	ways   *ways
	latest [][]comingBy
}

// A comingBy is the latest beginning that leads to a node by the edges of one way: from which place, and by which edge.
type comingBy struct {
	at, by int32
	began  int64
}

// eachInTime calls yield with cycles of a path as the rule has it and the step by the clock that closes it, one for
// each edge that may be its rw, or that leads back in time where the rule has no rw, until that says no.
func (s *search) eachInTime(rule timeRule, yield func(e int32, cycle []dep) bool) {
	ends, into := s.o.ends(s.local, s.nodes), s.waysIn()
	for len(ends) > 0 {
		run := s.o.txns[ends[0]].run
		n := slices.IndexFunc(ends, func(t int32) bool { return s.o.txns[t].run != run })
		if n < 0 {
			n = len(ends)
		}
		if !s.inTimeOf(ends[:n], s.starts(run), into, rule, yield) {
			return
		}
		ends = ends[n:]
	}
}

// starts returns the transactions of a run whose beginning is known, and counts for what they read, the latest first.
func (s *search) starts(run uint16) []int32 {
	var starts []int32
	for _, t := range s.nodes {
		if s.o.txns[t].run == run && s.o.txns[t].seesItsTime() {
			starts = append(starts, t)
		}
	}
	slices.SortStableFunc(starts, func(a, b int32) int { return cmp.Compare(s.o.txns[b].start, s.o.txns[a].start) })
	return starts
}

// inTimeOf does so in one run, whose transactions are given in order of their ends and of their beginnings. From each
// end on it goes back over the paths that lead there, and not where it came before: so every path is known by the
// earliest end that it leads to; and from each beginning on forth, so that it is known by the latest.
func (s *search) inTimeOf(ends, starts []int32, into *ways, rule timeRule, yield func(e int32, cycle []dep) bool) bool {
	if len(starts) == 0 || s.o.txns[ends[0]].end >= s.o.txns[starts[0]].start {
		return true
	}
	back, forth := s.newTimeWalk(false), s.newTimeWalk(true)
	forth.ways, forth.latest = into, make([][]comingBy, len(s.nodes))
	for _, t := range ends {
		if s.o.txns[t].end < s.o.txns[starts[0]].start {
			s.walkInTime(back, s.local[t], rule)
		}
	}
	for _, t := range starts {
		if s.o.txns[t].start > s.o.txns[ends[0]].end {
			s.walkInTime(forth, s.local[t], rule)
		}
	}
	for e := range int32(len(s.edges)) {
		if rule.antis == noAnti && !s.backward(e) || rule.antis != noAnti && s.edges[e].kind != rw ||
			!s.passable(e, rule.kinds) {
			continue
		}
		if cycle := s.inTime(back, forth, e, rule); cycle != nil && !yield(e, cycle) {
			return false
		}
	}
	return true
}

func (s *search) newTimeWalk(forth bool) *timeWalk {
	n := states * len(s.nodes)
	w := &timeWalk{forth: forth, goal: make([]int32, n), via: make([]int32, n), next: make([]int32, n)}
	for i := range w.goal {
		w.goal[i], w.via[i] = none, none
	}
	return w
}

func (s *search) walkInTime(w *timeWalk, goal int32, rule timeRule) {
	begin := goal*states + plainPath
	if w.goal[begin] >= 0 {
		return // whatever leads there leads to an earlier end, or a later beginning
	}
	w.goal[begin] = goal
	w.queue = append(w.queue[:0], begin)
	for head := 0; head < len(w.queue); head++ {
		at := w.queue[head]
		for _, e := range s.along(w.forth, at/states) {
			s.steps++
			if !s.passable(e, rule.kinds) || w.via[at] >= 0 && !s.mayMeet(w.forth, e, w.via[at]) {
				continue
			}
			state, ok := rule.antis.extend(at%states, s.edges[e].kind)
			node := s.from(e)
			if w.forth {
				node = s.to(e)
			}
			to := node*states + state
			if !ok || w.goal[to] >= 0 {
				continue
			}
			w.goal[to], w.via[to], w.next[to] = goal, e, at
			w.queue = append(w.queue, to)
		}
	}
}

// mayMeet reports whether an edge may be put to a path that begins, or ends, with another.
func (s *search) mayMeet(forth bool, e, path int32) bool {
	if forth {
		return s.mayFollow(path, e)
	}
	return s.mayFollow(e, path)
}

// passable reports whether an edge may be on a path: an rw may, whose class hangs on the edge before it.
func (s *search) passable(e int32, kinds kind) bool {
	if s.edges[e].kind == rw {
		return kinds&rw != 0 && s.open(e)
	}
	return s.usable(e, kinds) && s.circled[e] == 0
}

// mayFollow reports whether, in the pass in hand, the edge out may follow the edge in on a path.
func (s *search) mayFollow(in, out int32) bool {
	return s.edges[out].kind != rw || s.class == Hazard || s.judge.bindsAfter(&s.edges[in], &s.edges[out])
}

// inTime returns a cycle by time through an edge; nil where the paths to it and from it are of transactions of
// which the one had not ended when the other began. It takes the transactions of the edge where these do.
func (s *search) inTime(back, forth *timeWalk, e int32, rule timeRule) []dep {
	at, by, began := s.timeBefore(forth, e, rule)
	after, ended := s.timeAfter(back, e, rule)
	if after < 0 || at < 0 || ended >= began {
		return nil
	}
	d := &s.edges[e]
	own := s.closesInTime(e) && s.sameRun(forth.goal[at], d.from) && s.o.txns[d.from].seesItsTime()
	if own && ended < s.o.txns[d.from].start {
		at, by, began = none, none, s.o.txns[d.from].start
	}
	if s.sameRun(back.goal[after], d.to) && s.o.txns[d.to].end > 0 && s.o.txns[d.to].end < began &&
		s.o.txns[d.to].status != history.Indeterminate {
		after = none
	}
	return s.cycleInTime(back, forth, e, at, by, after)
}

func (s *search) sameRun(node, t int32) bool { return s.o.txns[s.nodes[node]].run == s.o.txns[t].run }

// timeBefore returns the place before an edge from which the latest beginning leads to it, by which other edge, and
// when that is; -1 for none.
func (s *search) timeBefore(forth *timeWalk, e int32, rule timeRule) (at, by int32, began int64) {
	at, by, began = none, none, math.MinInt64
	if place := s.from(e)*states + plainPath; s.closesInTime(e) && forth.goal[place] == s.from(e) {
		at, began = place, s.o.txns[s.nodes[forth.goal[place]]].start
	}
	for _, c := range s.latestBy(forth, s.from(e), rule) {
		if c.began > began && s.mayFollow(c.by, e) && rule.mayPrecede(s.edges[c.by].kind, s.edges[e].kind) {
			at, by, began = c.at, c.by, c.began
		}
	}
	return at, by, began
}

// latestBy returns the latest beginnings that lead to a node, one for each way into it.
func (s *search) latestBy(forth *timeWalk, node int32, rule timeRule) []comingBy {
	if forth.latest[node] != nil {
		return forth.latest[node]
	}
	latest := []comingBy{}
	places := make(map[int32]int) // by way
	for _, in := range s.into(node) {
		if !s.passable(in, rule.kinds) {
			continue
		}
		for _, state := range [states]int32{plainPath, antiPath} {
			place := s.from(in)*states + state
			apart := s.edges[in].kind != rw || state == plainPath || rule.antis == anyAntis
			if forth.goal[place] < 0 || !apart || forth.via[place] >= 0 && !s.mayFollow(forth.via[place], in) {
				continue
			}
			c := comingBy{place, in, s.o.txns[s.nodes[forth.goal[place]]].start}
			way := forth.ways.of[in]
			if i, ok := places[way]; !ok {
				places[way] = len(latest)
				latest = append(latest, c)
			} else if c.began > latest[i].began {
				latest[i] = c
			}
		}
	}
	forth.latest[node] = latest
	return latest
}

// mayPrecede reports whether an edge of the one kind may come before one of the other.
func (r timeRule) mayPrecede(in, out kind) bool {
	return in != rw || r.antis == anyAntis || r.antis == antisApart && out != rw
}

// closesInTime reports whether the step by the clock may lead to the transaction where an edge begins.
func (s *search) closesInTime(e int32) bool {
	if s.edges[e].kind != rw || s.class == Hazard {
		return true
	}
	t := s.edges[e].from
	step := dep{from: t, to: t, kind: rt, access: none, version: none, next: none}
	return s.judge.bindsAfter(&step, &s.edges[e])
}

// timeAfter returns the place after an edge from which the earliest end is reached, and that end; -1 for none.
func (s *search) timeAfter(back *timeWalk, e int32, rule timeRule) (place int32, ended int64) {
	place, ended = none, math.MaxInt64
	for _, state := range [states]int32{plainPath, antiPath} {
		at := s.to(e)*states + state
		if back.goal[at] < 0 || back.via[at] >= 0 && (!s.mayFollow(e, back.via[at]) ||
			!rule.mayPrecede(s.edges[e].kind, s.edges[back.via[at]].kind)) {
			continue
		}
		if end := s.o.txns[s.nodes[back.goal[at]]].end; end < ended {
			place, ended = at, end
		}
	}
	return place, ended
}

// cycleInTime returns the path to an edge, the edge, the path from it, and the step by the clock. Where there is no
// place before or after it, the path begins or ends with the edge.
func (s *search) cycleInTime(back, forth *timeWalk, e, at, by, after int32) []dep {
	first, last := s.edges[e].from, s.edges[e].to
	var path []dep
	if by >= 0 {
		path = append(path, s.edges[by])
	}
	if at >= 0 {
		first = s.nodes[forth.goal[at]]
		for ; forth.via[at] >= 0; at = forth.next[at] {
			path = append(path, s.edges[forth.via[at]])
		}
	}
	slices.Reverse(path)
	path = append(path, s.edges[e])
	if after >= 0 {
		last = s.nodes[back.goal[after]]
		for ; back.via[after] >= 0; after = back.next[after] {
			path = append(path, s.edges[back.via[after]])
		}
	}
	path = withoutLoops(path)
	if !slices.Contains(path, s.edges[e]) {
		return nil // it is on a cycle without the clock
	}
	return append(path, dep{from: last, to: first, kind: rt, access: none, version: none, next: none})
}
