package interop

import (
	"cmp"
	"slices"
)

// An interval is what a transaction did to a register: the first version that it saw and the last.
type interval struct {
	key         int32
	first, last int32
	read, wrote int32 // unknown: it did not
}

// externals returns what a transaction did to each register, as others see it: its first read, unless it had
// written the register before, and its last write.
func (h *History) externals(t int32, into []interval) []interval {
	into = into[:0]
	index := h.state.keys
	clear(index)
	for _, o := range h.opsOf(t) {
		i, ok := index[o.key]
		if !ok {
			i = len(into)
			index[o.key] = i
			into = append(into, interval{key: o.key, read: unknown, wrote: unknown})
		}
		switch x := &into[i]; {
		case o.write:
			x.wrote = o.version
		case !ok:
			x.read = o.version
		}
	}
	for i := range into {
		x := &into[i]
		x.first, x.last = x.read, x.wrote
		if x.first == unknown {
			x.first = x.wrote
		}
		if x.last == unknown {
			x.last = x.read
		}
	}
	return into
}

// inferRegisters finds which versions came before which: the initial ones before all, and then by the
// assumptions, one after the other. One that puts versions of a register in a circle is not used for it. It counts by
// register what none of them has placed.
func (h *History) inferRegisters(o Options, unplaced map[int32]int) {
	pairs := h.withoutCircles(nil, h.followReads(), "that writes follow reads")
	if o.SequentialKeys {
		pairs = h.withoutCircles(pairs, h.followSessions(), "that registers are sequentially consistent")
	}
	if o.LinearizableKeys {
		pairs = h.withoutCircles(pairs, h.followTime(), "that registers are linearizable")
	}
	placed := make([]bool, len(h.versions))
	for _, p := range pairs {
		placed[p[1]] = true
	}
	for v := range int32(len(h.versions)) {
		if placed[v] || !h.counts(v) {
			continue
		}
		key := h.versions[v].key
		if root := h.rootOf(key); root != v {
			unplaced[key]++
			pairs = append(pairs, [2]int32{root, v})
		} else {
			pairs = append(pairs, [2]int32{h.initialOf(key), v})
		}
	}
	slices.SortFunc(pairs, comparePairs)
	h.pairs = pairs
	h.checkRereads()
}

func comparePairs(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// initialOf numbers a key's initial version: past all others.
func (h *History) initialOf(key int32) int32 { return int32(len(h.versions)) + key }

// isInitial reports whether a number is one of initialOf's, and of which key.
func (h *History) isInitial(v int32) (key int32, is bool) {
	key = v - int32(len(h.versions))
	return key, key >= 0
}

// rootOf returns what comes before all else of a key: its initial version, or where the format's files have a
// transaction that writes zeros first, that zero.
func (h *History) rootOf(key int32) int32 {
	if h.zeroIsInitial {
		if v, ok := h.valueIndex[element{key, h.integer(0)}]; ok && h.counts(v) {
			return v
		}
	}
	return h.initialOf(key)
}

// counts reports whether a version has a place in its key's order: its transaction did not fail, and did not
// write the key again.
func (h *History) counts(v int32) bool {
	x := &h.versions[v]
	return x.txn != none && !h.failed(x.txn) && h.lastOf(v)
}

// node returns the number of a version that was seen, where it has a place in the order.
func (h *History) node(key, v int32) (int32, bool) {
	switch {
	case v == initial:
		return h.initialOf(key), true
	case v == unknown || !h.counts(v):
		return 0, false
	}
	return v, true
}

// pair returns two versions of a key as nodes, unless they are one or have no place in the order.
func (h *History) pair(pairs [][2]int32, key, before, after int32) [][2]int32 {
	b, ok := h.node(key, before)
	a, also := h.node(key, after)
	if !ok || !also || a == b {
		return pairs
	}
	return append(pairs, [2]int32{b, a})
}

// followReads puts what a transaction wrote behind what it had read.
func (h *History) followReads() [][2]int32 {
	var pairs [][2]int32
	var found []interval
	for t := range int32(len(h.txns)) {
		if found = h.externals(t, found); h.failed(t) {
			continue
		}
		for _, x := range found {
			pairs = h.pair(pairs, x.key, x.read, x.wrote)
		}
	}
	return pairs
}

// followSessions puts what a session saw of a register behind what it had seen of it before.
func (h *History) followSessions() [][2]int32 {
	type sessionKey struct{ session, key int32 }
	last := make(map[sessionKey]int32)
	var pairs [][2]int32
	var found []interval
	for t := range int32(len(h.txns)) {
		if found = h.externals(t, found); h.failed(t) {
			continue
		}
		for _, x := range found {
			if x.first == unknown {
				continue
			}
			k := sessionKey{h.txns[t].session, x.key}
			if before, ok := last[k]; ok {
				pairs = h.pair(pairs, x.key, before, x.first)
			}
			last[k] = x.last
		}
	}
	return pairs
}

// withoutCircles adds to pairs those that an assumption gives, but for the registers whose versions would
// come before themselves.
func (h *History) withoutCircles(pairs, more [][2]int32, assumption string) [][2]int32 {
	slices.SortFunc(more, comparePairs)
	more = slices.Compact(more)
	circular := h.circular(slices.Concat(pairs, more))
	for _, p := range more {
		if key := h.keyOf(p[0]); circular[key] == nil {
			pairs = append(pairs, p)
		}
	}
	for key := range int32(len(h.keys)) {
		if vs := circular[key]; vs != nil {
			h.found(cyclicVersions, h.versions[vs[0]].txn,
				"assuming %s, each of the versions %s of register %s comes before itself", assumption, h.texted(vs),
				h.keys[key])
		}
	}
	return pairs
}

func (h *History) keyOf(v int32) int32 {
	if key, is := h.isInitial(v); is {
		return key
	}
	return h.versions[v].key
}

// circular finds the registers of which versions come before themselves, and these versions. That something
// comes before the initial version is a circle, too.
func (h *History) circular(pairs [][2]int32) map[int32][]int32 {
	for _, p := range pairs {
		if _, is := h.isInitial(p[1]); is {
			pairs = append(pairs, [2]int32{p[1], p[0]})
		}
	}
	// From the front, then from the back: what is left is on circles, or between them.
	left := flipped(h.peeled(flipped(h.peeled(pairs))))
	found := make(map[int32][]int32)
	met := make(map[int32]bool)
	for _, p := range left {
		for _, v := range p {
			if _, is := h.isInitial(v); !is && !met[v] {
				met[v] = true
				found[h.versions[v].key] = append(found[h.versions[v].key], v)
			}
		}
	}
	return found
}

func flipped(pairs [][2]int32) [][2]int32 {
	for i, p := range pairs {
		pairs[i] = [2]int32{p[1], p[0]}
	}
	return pairs
}

// peeled leaves out of pairs what begins with a version that nothing comes before, again and again. It
// sorts them.
func (h *History) peeled(pairs [][2]int32) [][2]int32 {
	slices.SortFunc(pairs, comparePairs)
	before := make([]int32, len(h.versions)+len(h.keys)) // how many come before each
	for _, p := range pairs {
		before[p[1]]++
	}
	var free []int32
	for i, p := range pairs {
		if before[p[0]] == 0 && (i == 0 || pairs[i-1][0] != p[0]) {
			free = append(free, p[0])
		}
	}
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		i, _ := slices.BinarySearchFunc(pairs, v, func(p [2]int32, v int32) int { return cmp.Compare(p[0], v) })
		for ; i < len(pairs) && pairs[i][0] == v; i++ {
			if before[pairs[i][1]]--; before[pairs[i][1]] == 0 {
				free = append(free, pairs[i][1])
			}
		}
		before[v] = peeledOff
	}
	return slices.DeleteFunc(pairs, func(p [2]int32) bool { return before[p[0]] == peeledOff })
}

const peeledOff = -1
