package analyzer

import (
	"cmp"
	"slices"
)

// A search looks for anomalies among the transactions that are on a cycle (see the package comment,
// Minimal explanations). Nodes are those transactions by local number, edges are dependencies
// between them.
type search struct {
	o     *order
	found *collector
	judge *judge
	opts  Options
	// final says which dependencies count for the verdict on the levels; nil: all. A [Live] sees some that may go.
	final func(*dep) bool
	// covered are the names of the cycles that groups of other names cover: whether exact accesses prove one.
	covered map[Anomaly]bool

	class   Class // what this pass looks for
	flow    kind  // the kinds that order commits, in this pass
	rows    bool  // see rowsFirst
	local   []int32
	nodes   []int32
	edges   []dep
	ends    []ends   // by edge
	binds   []bool   // by edge: it obliges the engine by itself
	gone    []bool   // by edge: explained
	told    []bool   // by edge: explained by a longer cycle, which does not count for write skews
	several []bool   // by edge: explained by a cycle of several rw
	by      []*group // by edge: whose cycle of several rw that was; nil where it has no group
	again   []bool   // by edge: explained before reopen; nil until the search for hazards
	circled []kind   // by edge: the kinds of the explained component that it is inside of; 0 for none
	off     []uint32 // by node, into out
	out     []int32  // edges by the node that they leave
	pairs   []pair
	pair    []int32 // by edge

	in      incoming
	walk    walk
	arrived arrived
	strides []stride // scratch of alternating
	steps   int      // edges looked at, by whatever search
	chains  chains
}

// ends are the nodes that an edge leads from and to.
type ends struct{ from, to int32 }

// A pair is two nodes, low < high, with edges between them: in both directions.
type pair struct {
	low, high int32
	edges     []int32
}

func newSearch(o *order, c *collector, opts Options) *search {
	return &search{o: o, found: c, judge: c.judge, opts: opts, covered: make(map[Anomaly]bool)}
}

// setTogether says what the judge goes by (see [judge]), on which hang the edges that oblige the engine.
func (s *search) setTogether(together bool) {
	s.judge.together = together
	for e := range s.edges {
		s.binds[e] = s.judge.binds(&s.edges[e])
	}
	s.chains = newChains(s)
}

// rowsFirst looks for cycles of several rw, first for those that go through rows alone: what also goes through
// predicates is the weaker.
func (s *search) rowsFirst(find func()) {
	if s.rows = slices.ContainsFunc(s.edges, func(d dep) bool { return s.o.byPredicate(&d) }); s.rows {
		find()
		s.rows = false
	}
	find()
}

// inHand reports whether the search in hand looks at an edge: not at an rw by a predicate where it goes by rows alone.
func (s *search) inHand(e int32) bool { return !s.rows || !s.o.byPredicate(&s.edges[e]) }

// forget takes the edges that longer cycles explained out of the graph.
func (s *search) forget() {
	for e, told := range s.told {
		s.gone[e] = s.gone[e] || told
	}
}

// orderNodes numbers the nodes by the ends of their transactions. Of several cycles that could be told the first one
// is: what is told must not hang on the order in which transactions of one run were added.
func (s *search) orderNodes() {
	slices.SortFunc(s.nodes, func(a, b int32) int {
		x, y := &s.o.txns[a], &s.o.txns[b]
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.run, y.run), cmp.Compare(x.seq, y.seq))
	})
	for v, t := range s.nodes {
		s.local[t] = int32(v)
	}
}

// collectEdges builds the graph of the nodes.
func (s *search) collectEdges() {
	s.o.among(s.local, s.nodes, func(d dep) {
		if (s.opts.Inexact || !d.inexact) && !s.judge.knownBetter(&d) {
			s.edges = append(s.edges, d)
		}
	})
	s.o.sessions(slices.Sorted(slices.Values(s.nodes)), func(from, to int32) {
		s.edges = append(s.edges, dep{from: from, to: to, kind: so, access: none, version: none, next: none})
	})
	s.ends = make([]ends, len(s.edges))
	s.binds = make([]bool, len(s.edges))
	s.gone = make([]bool, len(s.edges))
	s.told = make([]bool, len(s.edges))
	s.several = make([]bool, len(s.edges))
	s.by = make([]*group, len(s.edges))
	s.circled = make([]kind, len(s.edges))
	s.off = make([]uint32, len(s.nodes)+1)
	for e := range s.edges {
		s.ends[e] = ends{s.local[s.edges[e].from], s.local[s.edges[e].to]}
		s.off[s.ends[e].from+1]++
	}
	offsets(s.off)
	s.out = make([]int32, len(s.edges))
	at := slices.Clone(s.off)
	for e := range int32(len(s.edges)) {
		s.out[at[s.from(e)]] = e
		at[s.from(e)]++
	}
}

// incoming are edges by the node that they lead to: those of node v are edges[off[v]:off[v+1]].
type incoming struct {
	off   []uint32
	edges []int32
}

// into returns the edges that lead to a node.
func (s *search) into(v int32) []int32 {
	in := &s.in
	if in.off == nil {
		in.off = make([]uint32, len(s.nodes)+1)
		for e := range s.ends {
			in.off[s.ends[e].to+1]++
		}
		offsets(in.off)
		in.edges = make([]int32, len(s.edges))
		at := slices.Clone(in.off)
		for e := range int32(len(s.edges)) {
			in.edges[at[s.to(e)]] = e
			at[s.to(e)]++
		}
	}
	return in.edges[in.off[v]:in.off[v+1]]
}

func (s *search) from(e int32) int32 { return s.ends[e].from }
func (s *search) to(e int32) int32   { return s.ends[e].to }

// groupPairs sorts the edges by the two nodes that they are between, whatever their direction.
func (s *search) groupPairs() {
	type keyed struct {
		key  uint64
		edge int32
	}
	keys := make([]keyed, len(s.edges))
	for e := range int32(len(s.edges)) {
		low, high := min(s.from(e), s.to(e)), max(s.from(e), s.to(e))
		keys[e] = keyed{uint64(low)<<32 | uint64(high), e}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.key, b.key),
			cmp.Compare(a.edge, b.edge))
	})
	sorted := make([]int32, len(keys))
	s.pair = make([]int32, len(keys))
	begin := 0
	for i, k := range keys {
		if i == 0 || keys[i-1].key != k.key {
			begin = i
			s.pairs = append(s.pairs, pair{low: int32(k.key >> 32), high: int32(k.key)})
		}
		sorted[i] = k.edge
		s.pairs[len(s.pairs)-1].edges = sorted[begin : i+1]
		s.pair[k.edge] = int32(len(s.pairs) - 1)
	}
}

// usable reports whether an edge of one of the kinds may be part of what this pass looks for. Cycles may lead through
// an explained component, but for one of ww: there it is not known which version came first.
func (s *search) usable(e int32, kinds kind) bool { return s.counts(e, kinds) && s.circled[e] != ww }

// counts reports whether an edge of one of the kinds is in the graph of this pass.
func (s *search) counts(e int32, kinds kind) bool {
	return !s.gone[e] && s.edges[e].kind&kinds != 0 && s.inHand(e) && (s.class == Hazard || s.binds[e])
}

// components finds the strongly connected components of the edges that keep accepts.
func (s *search) components(keep func(e int32) bool) (comp []int32, sizes []int32) {
	s.steps += len(s.edges)
	comp, count := components(len(s.nodes), s.off, func(i uint32) int32 {
		if e := s.out[i]; keep(e) {
			return s.to(e)
		}
		return none
	})
	sizes = make([]int32, count)
	for _, c := range comp {
		sizes[c]++
	}
	return comp, sizes
}

// explain takes all rw edges parallel to e out of the graph: the mishap between the two
// transactions has a name.
func (s *search) explain(e int32) { s.mark(e, s.gone) }

// mark sets all rw edges parallel to e in a set of edges.
func (s *search) mark(e int32, set []bool) {
	s.eachBeside(e, func(p int32) { set[p] = true })
}

// markSeveral notes that a cycle of several rw explains e and what is parallel to it, and whose the cycle is.
func (s *search) markSeveral(e int32, g *group) {
	s.eachBeside(e, func(p int32) { s.several[p], s.by[p] = true, g })
}

// eachBeside calls yield with all rw edges parallel to e.
func (s *search) eachBeside(e int32, yield func(p int32)) {
	for _, p := range s.pairs[s.pair[e]].edges {
		if s.edges[p].kind == rw && s.from(p) == s.from(e) {
			yield(p)
		}
	}
}

// starts is the number of edges of a component from which a short cycle is searched.
const starts = 64

// circular finds the components of edges of the given kinds and reports a short cycle of each, as often as a
// dependency leads against the order of ends from one of its transactions to another: without these there is no cycle.
// All edges inside are explained, as circled ones or as the cycle's rw.
func (s *search) circular(kinds kind) {
	keep := func(e int32) bool { return s.counts(e, kinds) }
	comp, sizes := s.components(keep)
	inside := func(e int32) bool { c := comp[s.from(e)]; return c == comp[s.to(e)] && sizes[c] > 1 }
	first := make(map[int32][]int32)
	var order []int32
	for e := range int32(len(s.edges)) {
		c := comp[s.from(e)]
		if s.circled[e] != 0 || !inside(e) || !keep(e) || !s.backward(e) || len(first[c]) == starts {
			continue
		}
		if first[c] == nil {
			order = append(order, c)
		}
		first[c] = append(first[c], e)
	}
	work := s.opts.Work
	groups := make(map[int32]*group)
	for _, c := range order {
		groups[c] = s.add(s.shortest(first[c], func(e int32) bool { return keep(e) && inside(e) }, &work))
	}
	s.countInside(groups, kinds, comp, sizes)
	for e := range int32(len(s.edges)) {
		if !inside(e) {
			continue
		}
		s.gone[e] = s.gone[e] || s.edges[e].kind == rw
		if s.circled[e] == 0 {
			s.circled[e] = kinds
		}
	}
}

// backward reports whether an edge leads against the order of ends.
func (s *search) backward(e int32) bool {
	from, to := s.edges[e].from, s.edges[e].to
	a, b := s.o.txns[from].end, s.o.txns[to].end
	return a > b || a == b && from > to
}

// countInside counts what the components of groups hold beside the cycles that were reported: dependencies against the
// order of ends, each pair of transactions once, and the rw.
func (s *search) countInside(groups map[int32]*group, kinds kind, comp, sizes []int32) {
	backward := make(map[int32]int)
	for i := range s.pairs {
		p := &s.pairs[i]
		c := comp[p.low]
		if groups[c] == nil || comp[p.high] != c {
			continue
		}
		if slices.ContainsFunc(p.edges, func(e int32) bool {
			return s.counts(e, kinds) && s.circled[e] == 0 && s.backward(e)
		}) {
			backward[c]++
		}
		if sizes[c] > 2 { // of two transactions the cycle says it all
			s.coverInside(groups[c], kinds, comp, s.between(p, p.low, rw))
			s.coverInside(groups[c], kinds, comp, s.between(p, p.high, rw))
		}
	}
	for c, n := range backward {
		groups[c].count += n - 1
	}
}

// coverInside counts parallel rw of a component: each is on a cycle with what else is inside.
func (s *search) coverInside(g *group, kinds kind, comp, antis []int32) {
	if len(antis) == 0 {
		return
	}
	class, name := Hazard, Phantom
	for _, e := range antis {
		if !s.o.byPredicate(&s.edges[e]) {
			name = GSingle
		}
		if s.classInside(e, kinds, comp) == Violation {
			class = Violation
		}
	}
	if kinds&so != 0 {
		if name = GSingle.Process(); class == Hazard {
			return
		}
	}
	g.cover(class, name, 1)
}

// classInside judges an rw of a component by the edges that lead to it there.
func (s *search) classInside(e int32, kinds kind, comp []int32) Class {
	if s.class == Hazard {
		return Hazard
	}
	for _, in := range s.into(s.from(e)) {
		if comp[s.from(in)] == comp[s.from(e)] && s.counts(in, kinds) && s.judge.bindsAfter(&s.edges[in], &s.edges[e]) {
			return Violation
		}
	}
	return Hazard
}

// add reports a cycle. One that goes by an order that is no dependency is of interest only where it is forbidden:
// what does not promise the order is not expected to keep it. It returns the group of the cycle, or the one that
// covers it; nil for neither.
func (s *search) add(cycle []dep) *group {
	name, class := s.o.nameOf(cycle), s.judge.class(cycle)
	if class == Hazard && name.variant() {
		return nil
	}
	if owner := s.found.owner(name, class, cycle); owner != nil {
		s.cover(owner, name, class, cycle)
		return owner
	}
	return s.found.add(name, class, cycle)
}

// cover counts a cycle in a group that tells it, too.
func (s *search) cover(owner *group, name Anomaly, class Class, cycle []dep) {
	owner.cover(class, name, 1)
	s.covered[name] = s.covered[name] || s.o.provesAll(cycle)
}

// shortest finds the shortest cycle through any of the edges; through the first of them at least.
func (s *search) shortest(edges []int32, keep func(e int32) bool, work *int) []dep {
	best := append([]int32{edges[0]}, s.path(s.to(edges[0]), s.from(edges[0]), keep, nil, nil)...)
	for _, e := range edges[1:] {
		if len(best) == 2 || *work < 0 {
			break
		}
		path := s.path(s.to(e), s.from(e), keep, nil, work)
		if path != nil && len(path)+1 < len(best) {
			best = append([]int32{e}, path...)
		}
	}
	return s.depsOf(best)
}

func (s *search) depsOf(edges []int32) []dep {
	deps := make([]dep, len(edges))
	for i, e := range edges {
		deps[i] = s.edges[e]
	}
	return deps
}

// A walk is the memory of a breadth-first search from both ends, kept from one to the next.
type walk struct {
	round       int32
	forth, back side
}

// A side is the memory of a search from one end on.
type side struct {
	visited []int32 // by node: the round of the latest visit
	via     []int32 // by node: the edge by which the search came there
	queue   []int32
	head    int
}

func newWalk(nodes int) walk {
	side := func() side { return side{visited: make([]int32, nodes), via: make([]int32, nodes)} }
	return walk{forth: side(), back: side()}
}

func (d *side) begin(round, v int32) {
	d.visited[v] = round
	d.queue, d.head = append(d.queue[:0], v), 0
}

func (d *side) visit(round, v, edge int32) {
	d.visited[v], d.via[v] = round, edge
	d.queue = append(d.queue, v)
}

// path finds a shortest path over edges that keep accepts, the last of which last accepts (nil: any
// edge). Each edge looked at costs one of work (nil: no bound). It gives nil where there is none. It searches from both
// ends in turn, a step at a time: so it looks at few edges where a long path leads through a large graph.
func (s *search) path(from, to int32, keep, last func(e int32) bool, work *int) []int32 {
	w := &s.walk
	w.round++
	w.forth.begin(w.round, from)
	w.back.begin(w.round, to)
	ok := func(e int32) bool { return keep(e) && (last == nil || s.to(e) != to || last(e)) }
	for w.forth.head < len(w.forth.queue) && w.back.head < len(w.back.queue) {
		if at := s.level(false, ok, work); at >= 0 {
			return s.trace(from, at, to)
		}
		if at := s.level(true, ok, work); at >= 0 {
			return s.trace(from, at, to)
		}
		if work != nil && *work < 0 {
			return nil
		}
	}
	return nil
}

// level goes one step on from all nodes that the last one came to, forth or back, and returns the first node where the
// other side has been; -1 for none.
func (s *search) level(back bool, ok func(e int32) bool, work *int) int32 {
	here, there := &s.walk.forth, &s.walk.back
	if back {
		here, there = there, here
	}
	for end := len(here.queue); here.head < end; here.head++ {
		for _, e := range s.along(!back, here.queue[here.head]) {
			s.steps++
			if work != nil {
				if *work--; *work < 0 {
					return none
				}
			}
			u := s.to(e)
			if back {
				u = s.from(e)
			}
			if here.visited[u] == s.walk.round || !ok(e) {
				continue
			}
			here.visit(s.walk.round, u, e)
			if there.visited[u] == s.walk.round {
				return u
			}
		}
	}
	return none
}

// along returns the edges that leave a node, or that lead to it.
func (s *search) along(forth bool, v int32) []int32 {
	if forth {
		return s.out[s.off[v]:s.off[v+1]]
	}
	return s.into(v)
}

// trace returns the path by a node where both sides met.
func (s *search) trace(from, at, to int32) []int32 {
	var path []int32
	for v := at; v != from; v = s.from(path[len(path)-1]) {
		path = append(path, s.walk.forth.via[v])
	}
	slices.Reverse(path)
	for v := at; v != to; v = s.to(path[len(path)-1]) {
		path = append(path, s.walk.back.via[v])
	}
	return path
}

// A stride is an edge of a walk in which no rw follows another: so a node is visited twice, by an rw
// and by another edge.
type stride struct {
	edge   int32
	before int32 // its place in the queue; -1 for the first
}
