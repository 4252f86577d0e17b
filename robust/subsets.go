package robust

import (
	"cmp"
	"slices"
)

// Subsets are the robust sets of programs: numbers of programs, each set in order.
type Subsets struct {
	// Maximal are those that no program can be added to, the largest first.
	Maximal [][]int
	// Minimal are the sets that are not robust though each part of them is, the smallest first. A set is robust exactly
	// if it has none of these.
	Minimal [][]int
	// Complete says that these are all; without it there are more than were asked for.
	Complete bool
}

// Subsets returns the maximal robust sets of programs, at most so many of them (0: all), without trying all 2ⁿ. With
// what is robust every part of it is, and so the maximal robust sets are what is left without a minimal hitting set of
// the minimal sets that are not robust. These are found on the way: pairs by trying them; larger ones in what the known
// ones take for robust and the test does not.
func (a *Analysis) Subsets(t Test, most int) Subsets {
	n := len(a.Programs)
	d := &dualization{n: n, robust: func(set bitset) bool { return a.robust(t, set) }}
	if all := fullBitset(n); d.robust(all) {
		return Subsets{Maximal: [][]int{all.list()}, Complete: true}
	}
	d.tryPairs()
	for !d.round(most) {
	}
	return d.result()
}

// A dualization looks for maximal robust sets.
type dualization struct {
	n       int
	robust  func(bitset) bool
	cores   []bitset // minimal sets that are not robust
	maximal []bitset
	cut     bool // there are more than were asked for
}

// tryPairs finds all cores of one and two programs.
func (d *dualization) tryPairs() {
	var fit []int
	for i := range d.n {
		if one := d.set(i); d.robust(one) {
			fit = append(fit, i)
		} else {
			d.cores = append(d.cores, one)
		}
	}
	for k, i := range fit {
		for _, j := range fit[:k] {
			if pair := d.set(i, j); !d.robust(pair) {
				d.cores = append(d.cores, pair)
			}
		}
	}
}

func (d *dualization) set(numbers ...int) bitset {
	set := newBitset(d.n)
	for _, i := range numbers {
		set.add(i)
	}
	return set
}

// round goes through the maximal sets that have no known core. It ends early, and says so, when one of them has a core
// that was not known.
func (d *dualization) round(most int) (done bool) {
	d.maximal = d.maximal[:0]
	done = true
	h := &hitting{n: d.n, cores: d.cores}
	h.search(func(hit bitset) bool {
		set := fullBitset(d.n)
		for i := range hit.all {
			set.remove(i)
		}
		if !d.robust(set) {
			d.cores = append(d.cores, d.shrink(set))
			done = false
			return false
		}
		if d.cut = most > 0 && len(d.maximal) == most; d.cut {
			return false
		}
		d.maximal = append(d.maximal, set)
		return true
	})
	return done
}

// shrink returns a minimal part of a set that is not robust.
func (d *dualization) shrink(set bitset) bitset {
	for i := range slices.Clone(set).all {
		if set.remove(i); d.robust(set) {
			set.add(i)
		}
	}
	return set
}

func (d *dualization) result() Subsets {
	s := Subsets{Complete: !d.cut}
	for _, set := range d.maximal {
		s.Maximal = append(s.Maximal, set.list())
	}
	for _, core := range d.cores {
		s.Minimal = append(s.Minimal, core.list())
	}
	slices.SortFunc(s.Maximal, func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(b), len(a)),
			slices.Compare(a, b))
	})
	slices.SortFunc(s.Minimal, func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(a), len(b)),
			slices.Compare(a, b))
	})
	return s
}

// A hitting enumerates the minimal hitting sets of the cores: sets with a number of each, of which each number is the
// only one for some core.
type hitting struct {
	n     int
	cores []bitset
	f     func(bitset) bool
}

// search calls f for every minimal hitting set, each once, until it returns false.
func (h *hitting) search(f func(bitset) bool) {
	h.f = f
	h.extend(newBitset(h.n), newBitset(h.n))
}

// extend goes through the minimal hitting sets that have all of one set and none of the other. It reports whether to go
// on.
func (h *hitting) extend(hit, not bitset) bool {
	core := h.missed(hit, not)
	if core == nil {
		return h.f(hit)
	}
	not = slices.Clone(not)
	for i := range core.all {
		if not.has(i) {
			continue
		}
		with := slices.Clone(hit)
		with.add(i)
		if h.minimal(with) && !h.extend(with, not) {
			return false
		}
		not.add(i) // the sets with this number have been gone through
	}
	return true
}

// missed returns the core without a number of the set that leaves the least choice; nil when all have one.
func (h *hitting) missed(hit, not bitset) (core bitset) {
	least := h.n + 1
	for _, c := range h.cores {
		if c.intersects(hit) {
			continue
		}
		choice := 0
		for i := range c.all {
			if !not.has(i) {
				choice++
			}
		}
		if choice < least {
			core, least = c, choice
		}
	}
	return core
}

// minimal reports whether each number of the set is the only one for some core.
func (h *hitting) minimal(hit bitset) bool {
	needed := newBitset(h.n)
	for _, c := range h.cores {
		common := slices.Clone(c)
		common.intersect(hit)
		if common.count() == 1 {
			needed.unite(common)
		}
	}
	return hit.within(needed)
}
