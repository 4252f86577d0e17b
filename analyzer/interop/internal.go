package interop

import "slices"

// inside is what a transaction must find by what it read and wrote itself, while its operations are added.
type inside struct {
	stamp  int32 // of the latest read
	before int32 // the stamp when the transaction began
	keys   map[int32]int
	states []keyState // by keys
}

// A keyState is what a transaction knows of a key.
type keyState struct {
	elements []int32 // that it appended to a list since it read it; the one version of a register
	own      bool    // it wrote the register after it had read it
}

func newInside() inside { return inside{keys: make(map[int32]int)} }

func (s *inside) reset() {
	clear(s.keys)
	s.states = s.states[:0]
	s.before = s.stamp
}

// of returns what is known of a key, and whether that is anything.
func (s *inside) of(key int32) (*keyState, bool) {
	if i, ok := s.keys[key]; ok {
		return &s.states[i], true
	}
	s.keys[key] = len(s.states)
	if cap(s.states) > len(s.states) {
		s.states = s.states[:len(s.states)+1] // with the room of an earlier one
	} else {
		s.states = append(s.states, keyState{})
	}
	k := &s.states[len(s.states)-1]
	k.elements, k.own = k.elements[:0], false
	return k, false
}

func (s *inside) wrote(h *History, key, v int32) {
	k, _ := s.of(key)
	if h.kind != lists {
		k.elements = k.elements[:0]
	}
	k.elements, k.own = append(k.elements, v), true
}

// checkRegister compares a read with an earlier one. That a transaction does not read what it wrote shows in
// the version.
func (h *History) checkRegister(t, key, v int32) {
	k, known := h.state.of(key)
	if known && !k.own && k.elements[0] != v {
		h.rereads = append(h.rereads, rereading{t, key, k.elements[0], v})
	}
	k.elements, k.own = append(k.elements[:0], v), false
}

// A rereading is that of a transaction that read a register twice and got two versions.
type rereading struct{ txn, key, first, second int32 }

// checkRereads finds the rereadings of versions of which it is not known which came first: either way there
// is a cycle. Where it is known, it shows. The pairs are sorted.
func (h *History) checkRereads() {
	for _, r := range h.rereads {
		a, ok := h.node(r.key, r.first)
		b, also := h.node(r.key, r.second)
		if !ok || !also || h.ordered(a, b) || h.ordered(b, a) {
			continue
		}
		h.found(reread, r.txn, "it read %s of register %s, and then %s", h.describe(r.first), h.keys[r.key],
			h.describe(r.second))
	}
}

func (h *History) ordered(a, b int32) bool {
	_, found := slices.BinarySearchFunc(h.pairs, [2]int32{a, b}, comparePairs)
	return found || a >= int32(len(h.versions))
}

// checkList looks for what the transaction appended, which is to stand at the list's end. That it is not the
// last element shows in the version, and that the list's beginning changed in the order.
func (h *History) checkList(t, key int32, elements []int32) {
	k, _ := h.state.of(key)
	n := len(k.elements)
	if n > 0 && len(elements) > 0 && elements[len(elements)-1] == k.elements[n-1] &&
		(len(elements) < n || !slices.Equal(elements[len(elements)-n:], k.elements)) {
		h.found(internal, t, "it read %s of list %s, to which it had appended %s", h.texted(elements), h.keys[key],
			h.texted(k.elements))
	}
	k.elements = k.elements[:0]
}

// checkFuture looks whether the transaction found in a list what it appends only now. That it was the last
// element shows in the version.
func (h *History) checkFuture(t, v int32) {
	x := &h.versions[v]
	last := func(o op) bool { return !o.write && o.version == v }
	if x.stamp > h.state.before && !slices.ContainsFunc(h.opsOf(t), last) {
		h.found(futureRead, t, "it read %s in list %s, and appended it after that", h.describe(v), h.keys[x.key])
	}
}
