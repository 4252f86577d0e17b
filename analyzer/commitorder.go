package analyzer

import (
	"cmp"
	"slices"
)

// A commitOrder decides the weak levels by their axioms (Biswas and Enea, On the Complexity of Checking Transactional
// Consistency, 2019, figure 2; so do dbcop, Plume and AWDIT): a history has the level if there is an order of its
// transactions that holds all wr, the known ww and, for the levels of sessions, their order, and in which for
// every two transactions that wrote a row, of which a third one read the first and saw the second, the second comes
// before the first. What it is to see it is where the levels differ. A row of which the order of versions is not known
// needs none: the axioms make it.
type commitOrder struct {
	s        *search
	local    []int32 // by transaction: its place among the nodes; -1 for none
	nodes    []int32
	sessions bool
	edges    [][2]int32 // wr, ww and the order of sessions
	hb       [][2]int32 // the same without ww
	rw       [][2]int32
	so       [][2]int32 // the order of sessions: each transaction and the next
	reads    [][]readOf // by node
	writes   map[rowOfTxn]bool
	rows     [][]int32 // by node: the rows that it wrote
}

// A readOf is a read of a row in a statement: of what a node wrote; -1 for the initial version. By a gone one the
// statement saw that the version, or a later one, kept the row from being found.
type readOf struct {
	row, writer int32
	stmt        uint32
	gone        bool
}

// A visible yields the pairs of transactions that a level puts in an order.
type visible func(c *commitOrder, yield func(from, to int32))

// findByAxioms adds the phenomena of the levels by axioms that occur. Where all orders of versions are known each of
// them is a cycle, so that it looks at the transactions on cycles alone.
func (s *search) findByAxioms(found map[Anomaly]bool) {
	nodes := s.axiomatic()
	if len(nodes) == 0 {
		return
	}
	for _, sessions := range []bool{false, true} {
		c := s.newCommitOrder(nodes, sessions)
		variant := func(a Anomaly) Anomaly {
			if sessions {
				return a.Process()
			}
			return a
		}
		if c.circular(nil) {
			found[variant(G1c)] = true
			continue
		}
		if c.circular(readBefore) {
			found[variant(OTV)] = true
		}
		if c.circular(readAtAll) {
			found[variant(FracturedRead)] = true
		}
		if sessions && c.circular(happenedBefore) {
			found[GCausal] = true
		}
	}
}

// axiomatic returns the transactions that matter: those on cycles and whom they read; all where orders are not known.
func (s *search) axiomatic() []int32 {
	in := make([]bool, len(s.o.txns))
	for t := range s.o.txns {
		in[t] = s.opts.PartialOrder && s.o.txns[t].installed
	}
	for _, t := range s.nodes {
		in[t] = true
		from, to := s.o.accessesOf(t)
		for i := from; i < to; i++ {
			if v := s.o.seen[i]; v >= 0 && s.o.state(v) == installed {
				in[s.o.owner(v)] = true
			}
		}
	}
	var nodes []int32
	for t, is := range in {
		if is {
			nodes = append(nodes, int32(t))
		}
	}
	return nodes
}

func (s *search) newCommitOrder(nodes []int32, sessions bool) *commitOrder {
	c := &commitOrder{s: s, nodes: nodes, sessions: sessions, local: make([]int32, len(s.o.txns)),
		reads: make([][]readOf, len(nodes)), rows: make([][]int32, len(nodes)), writes: make(map[rowOfTxn]bool)}
	for t := range c.local {
		c.local[t] = none
	}
	for v, t := range nodes {
		c.local[t] = int32(v)
	}
	s.o.among(c.local, nodes, func(d dep) {
		if d.inexact || s.final != nil && !s.final(&d) {
			return
		}
		e := [2]int32{c.local[d.from], c.local[d.to]}
		switch d.kind {
		case rw:
			c.rw = append(c.rw, e)
		case wr, ww:
			c.edges = append(c.edges, e)
			if d.kind == wr {
				c.hb = append(c.hb, e)
			}
		}
	})
	if sessions {
		s.o.sessions(nodes, func(from, to int32) {
			d := dep{from: from, to: to, kind: so, access: none, version: none, next: none}
			if s.final == nil || s.final(&d) {
				e := [2]int32{c.local[from], c.local[to]}
				c.edges, c.hb, c.so = append(c.edges, e), append(c.hb, e), append(c.so, e)
			}
		})
	}
	for v, t := range nodes {
		c.take(int32(v), t)
	}
	return c
}

// take takes in what a transaction read and wrote, as far as that is certain.
func (c *commitOrder) take(v, t int32) {
	o := c.s.o
	from, to := o.accessesOf(t)
	for i := from; i < to; i++ {
		a := &o.accesses[i]
		switch seen := o.seen[i]; {
		case a.is(inexact) || a.absent():
		case a.write():
			if key := (rowOfTxn{v, a.row}); !a.is(void) && !c.writes[key] {
				c.writes[key] = true
				c.rows[v] = append(c.rows[v], a.row)
			}
		case seen < 0 || o.states[seen]&passing != 0:
		case !c.settled(t):
		case o.tagOf(seen).initial() || c.letGo(seen):
			c.reads[v] = append(c.reads[v], readOf{a.row, none, a.stmt, a.op == gone})
		case o.state(seen) == installed && o.owner(seen) != t && c.local[o.owner(seen)] >= 0:
			c.reads[v] = append(c.reads[v], readOf{a.row, c.local[o.owner(seen)], a.stmt, a.op == gone})
		}
	}
}

// settled reports whether what a transaction read stays what it is; a [Live] sees some that may change.
func (c *commitOrder) settled(t int32) bool {
	return c.s.final == nil || c.s.final(&dep{from: t, to: t, kind: so, access: none, version: none, next: none})
}

// letGo reports whether a version is of a transaction that a [Live] let go: it came before all that it still has.
func (c *commitOrder) letGo(v int32) bool {
	o := c.s.o
	if o.owner(v) >= 0 {
		return false
	}
	t := o.tagOf(v)
	return o.runs[t.run].gone.Has(t.seq) && !o.runs[t.run].odd.Has(t.seq)
}

// circular reports whether what must come before what is a circle, as the level has it.
func (c *commitOrder) circular(level visible) bool {
	edges, none := slices.Clone(c.edges), false
	if level != nil {
		level(c, func(from, to int32) {
			if to < 0 {
				none = true // nothing comes before the initial version
				return
			}
			edges = append(edges, [2]int32{from, to})
		})
	}
	if none {
		return true
	}
	_, count := c.components(edges)
	return int(count) < len(c.nodes)
}

// components returns the strongly connected components of the nodes and some edges.
func (c *commitOrder) components(lists ...[][2]int32) (comp []int32, count int32) {
	off, to := compressed(len(c.nodes), func(yield func(from, to int32)) {
		for _, list := range lists {
			for _, e := range list {
				yield(e[0], e[1])
			}
		}
	})
	return components(len(c.nodes), off, func(e uint32) int32 { return to[e] })
}

// readBefore is read committed: a transaction sees whom it read in an earlier statement.
func readBefore(c *commitOrder, yield func(from, to int32)) {
	c.eachRead(func(first uint32, r readOf) bool { return first < r.stmt }, yield)
}

// readAtAll is read atomic: a transaction sees whom it reads, and with sessions whom comes before it in its own.
func readAtAll(c *commitOrder, yield func(from, to int32)) {
	c.eachRead(func(uint32, readOf) bool { return true }, yield)
	if !c.sessions {
		return
	}
	before := c.writersBefore()
	for v := range c.nodes {
		for _, r := range c.reads[v] {
			if w, ok := before[rowOfTxn{int32(v), r.row}]; ok && w != r.writer && !r.gone {
				yield(w, r.writer)
			}
		}
	}
}

// eachRead calls yield with whom a transaction reads, in a statement that fits a read of a row that it wrote, and whose
// version of that row was read.
func (c *commitOrder) eachRead(fits func(first uint32, r readOf) bool, yield func(from, to int32)) {
	for v := range c.nodes {
		byRow, first := make(map[int32][]readOf), make(map[int32]uint32)
		var seen []int32
		for _, r := range c.reads[v] {
			if !r.gone {
				byRow[r.row] = append(byRow[r.row], r)
			}
			if at, ok := first[r.writer]; r.writer >= 0 && (!ok || r.stmt < at) {
				if !ok {
					seen = append(seen, r.writer)
				}
				first[r.writer] = r.stmt
			}
		}
		for _, w := range seen {
			for _, row := range c.rows[w] {
				for _, r := range byRow[row] {
					if r.writer != w && fits(first[w], r) {
						yield(w, r.writer)
					}
				}
			}
		}
	}
}

// writersBefore returns by a transaction and a row that it read the last of its session before it that wrote the row.
func (c *commitOrder) writersBefore() map[rowOfTxn]int32 {
	before := make(map[rowOfTxn]int32)
	latest := make(map[rowOfTxn]int32) // by session and row
	for v, t := range c.nodes {        // those of a session are in its order
		session := c.s.o.txns[t].session
		for _, r := range c.reads[v] {
			if w, ok := latest[rowOfTxn{session, r.row}]; ok && !c.s.o.txns[t].staleRead {
				before[rowOfTxn{int32(v), r.row}] = w
			}
		}
		for _, row := range c.rows[v] {
			latest[rowOfTxn{session, row}] = int32(v)
		}
	}
	return before
}

// happenedBefore is causal consistency: a transaction sees all from which wr and the orders of sessions lead to it.
func happenedBefore(c *commitOrder, yield func(from, to int32)) {
	p := c.places()
	writers := c.writersOf(p)
	c.eachClock(p, func(v int32, clock []int32) {
		for _, r := range c.reads[v] {
			for _, w := range writers[groupRow{p.group[v], r.row}] {
				i, _ := slices.BinarySearchFunc(w.nodes, clock[w.chain]+1,
					func(n, place int32) int { return cmp.Compare(p.place[n], place) })
				if i > 0 && w.nodes[i-1] != r.writer && !r.gone {
					yield(w.nodes[i-1], r.writer)
				}
			}
		}
	})
}

// chainPlaces say, by node, in which group a transaction is, its chain, counted from 0 in the group, and its place in
// that, from 1. In a chain each happened before the next. A clock is a transaction's and has an entry for each chain of
// its group: so it is as long as what goes around in circles at the same time, and not as the recording.
type chainPlaces struct {
	group, chain, place []int32
	chains              []int32 // by group
	order               []int32 // nodes, each behind those that happened before it
	off                 []uint32
	to                  []int32 // what a node happened right before, in its group: to[off[v]:off[v+1]]
}

// places groups the transactions. Where the orders of versions are known, what happened before a transaction and is
// to come after what that read is on a cycle with it; where they are not, all are one group.
func (c *commitOrder) places() *chainPlaces {
	n := len(c.nodes)
	p := &chainPlaces{group: make([]int32, n), chain: make([]int32, n), place: make([]int32, n), chains: []int32{0}}
	if !c.s.opts.PartialOrder {
		var groups int32
		p.group, groups = c.components(c.edges, c.rw)
		p.chains = make([]int32, groups)
	}
	p.off, p.to = compressed(n, func(yield func(from, to int32)) {
		for _, e := range c.hb {
			if p.group[e[0]] == p.group[e[1]] {
				yield(e[0], e[1])
			}
		}
	})
	p.sort()
	p.findChains(c.so)
	return p
}

// sort puts the nodes in order.
func (p *chainPlaces) sort() {
	before := make([]int32, len(p.group))
	for _, v := range p.to {
		before[v]++
	}
	for v := range before {
		if before[v] == 0 {
			p.order = append(p.order, int32(v))
		}
	}
	for i := 0; i < len(p.order); i++ {
		for _, u := range p.next(p.order[i]) {
			if before[u]--; before[u] == 0 {
				p.order = append(p.order, u)
			}
		}
	}
}

func (p *chainPlaces) next(v int32) []int32 { return p.to[p.off[v]:p.off[v+1]] }

// findChains lets each node go on the chain of the one before it in its session, so that there are no more chains than
// sessions; the first of a session that of one that it comes right behind, if nobody goes on that yet.
func (p *chainPlaces) findChains(sessions [][2]int32) {
	before, after := make(map[int32]bool), make(map[int32]bool)
	for _, e := range sessions {
		if p.group[e[0]] == p.group[e[1]] {
			after[e[0]], before[e[1]] = true, true
			p.chain[e[1]] = e[0]
		}
	}
	for _, v := range p.order {
		if before[v] {
			last := p.chain[v]
			p.chain[v], p.place[v] = p.chain[last], p.place[last]+1
		}
		if p.place[v] == 0 {
			g := p.group[v]
			p.chain[v], p.place[v] = p.chains[g], 1
			p.chains[g]++
		}
		if after[v] {
			continue
		}
		for _, u := range p.next(v) {
			if p.place[u] == 0 && !before[u] {
				p.chain[u], p.place[u] = p.chain[v], p.place[v]+1
				break
			}
		}
	}
}

// A chainWriters is who of a chain wrote a row, in the chain's order.
type chainWriters struct {
	chain int32
	nodes []int32
}

// A groupRow is a row that transactions of a group wrote.
type groupRow struct{ group, row int32 }

// writersOf returns the writers of each row, by chain.
func (c *commitOrder) writersOf(p *chainPlaces) map[groupRow][]chainWriters {
	type chainRow struct {
		groupRow
		chain int32
	}
	writers := make(map[groupRow][]chainWriters)
	known := make(map[chainRow]int)
	for _, v := range p.order {
		for _, row := range c.rows[v] {
			of := groupRow{p.group[v], row}
			key := chainRow{of, p.chain[v]}
			i, ok := known[key]
			if !ok {
				i = len(writers[of])
				known[key] = i
				writers[of] = append(writers[of], chainWriters{chain: p.chain[v]})
			}
			writers[of][i].nodes = append(writers[of][i].nodes, v)
		}
	}
	return writers
}

// eachClock calls do with each transaction that others of its group happened before, after these, and with how many of
// each chain of the group these are.
func (c *commitOrder) eachClock(p *chainPlaces, do func(v int32, clock []int32)) {
	clocks := make([][]int32, len(c.nodes))
	for _, v := range p.order {
		clock := clocks[v]
		if clock != nil {
			do(v, clock)
		}
		for _, u := range p.next(v) {
			if clocks[u] == nil {
				clocks[u] = make([]int32, p.chains[p.group[u]])
			}
			for i, n := range clock {
				clocks[u][i] = max(clocks[u][i], n)
			}
			own := &clocks[u][p.chain[v]]
			*own = max(*own, p.place[v])
		}
		clocks[v] = nil // whoever it happened before has taken it
	}
}
