package analyzer

import "slices"

// chains answers whether one version of a row comes before another, in constant time once the row's
// chain has been climbed.
type chains struct {
	s       *search
	heights map[int32]height   // by version
	last    map[rowOfTxn]int32 // by transaction and row: its last version
	known   map[int32]bool     // transactions that last knows
}

type rowOfTxn struct{ txn, row int32 }

// A height of a version is how far it is above the bottom of what is known of its chain. Loose
// counts the steps up to it that do not oblige the engine.
type height struct{ bottom, height, loose int32 }

func newChains(s *search) chains {
	return chains{s: s, heights: make(map[int32]height), last: make(map[rowOfTxn]int32), known: make(map[int32]bool)}
}

// lastWrite returns a transaction's last version of a row; -1 for none.
func (c *chains) lastWrite(t, row int32) int32 {
	if !c.known[t] {
		c.known[t] = true
		from, to := c.s.o.accessesOf(t)
		for i := from; i < to; i++ {
			if a := &c.s.o.accesses[i]; a.write() && !a.is(void) {
				c.last[rowOfTxn{t, a.row}] = i
			}
		}
	}
	if v, ok := c.last[rowOfTxn{t, row}]; ok {
		return v
	}
	return none
}

// below returns the installed version that v directly or by way of others replaced; -1 where that is
// not known well enough.
func (c *chains) below(v int32) int32 {
	p := c.s.o.base(v)
	if p < 0 || !c.s.opts.Inexact && !c.s.o.certainly(p, v) {
		return none
	}
	return p
}

// climbing marks the versions between the one in hand and the bottom that is not found yet.
const climbing = -1

// find returns a version's place, and that of all below it. In a circle nothing comes before anything:
// its versions, and those above, have no bottom.
func (c *chains) find(v int32) height {
	var climb []int32
	here, ok := c.heights[v]
	for at := v; !ok; here, ok = c.heights[at] {
		p := c.below(at)
		if p < 0 {
			c.heights[at] = height{bottom: at}
			continue
		}
		c.heights[at] = height{height: climbing}
		climb = append(climb, at)
		at = p
	}
	if here.height == climbing {
		here = height{bottom: none}
	}
	for _, w := range slices.Backward(climb) {
		here.height++
		if !c.bound(c.below(w), w) {
			here.loose++
		}
		c.heights[w] = here
	}
	return here
}

func (c *chains) bound(p, v int32) bool {
	d := dep{from: c.s.o.owner(p), to: c.s.o.owner(v), kind: ww, inexact: !c.s.o.certainly(p, v), access: none,
		version: p, next: v}
	return d.from == d.to || c.s.judge.binds(&d)
}

// between reports whether b comes after a, in how many steps at most, and whether all of them oblige
// the engine.
func (c *chains) between(a, b int32) (steps int, bound, ok bool) {
	from, to := c.find(a), c.find(b)
	if from.bottom != to.bottom || from.bottom < 0 || from.height >= to.height {
		return 0, false, false
	}
	if len(c.s.o.forks) > 0 && !c.reaches(a, b, to.height-from.height) {
		return 0, false, false
	}
	return int(to.height - from.height), from.loose == to.loose, true
}

// reaches climbs down from b to a: where a version has two successors, places do not tell.
func (c *chains) reaches(a, b, steps int32) bool {
	for range min(steps, maxSteps) {
		b = c.below(b)
	}
	return a == b
}

// links returns the ww between transactions from version a up to version b.
func (c *chains) links(a, b int32) []dep {
	var deps []dep
	for b != a {
		p := c.below(b)
		if from, to := c.s.o.owner(p), c.s.o.owner(b); from != to {
			deps = append(deps, dep{from: from, to: to, kind: ww, inexact: !c.s.o.certainly(p, b), access: none,
				version: p, next: b})
		}
		b = p
	}
	slices.Reverse(deps)
	return withoutLoops(deps)
}

// withoutLoops leaves out of a path what lies between two visits to a transaction, which is an
// anomaly of its own.
func withoutLoops(path []dep) []dep {
	var kept []dep
	for _, d := range path {
		if i := slices.IndexFunc(kept, func(k dep) bool { return k.from == d.to }); i >= 0 {
			kept = kept[:i]
			continue
		}
		kept = append(kept, d)
	}
	return kept
}
