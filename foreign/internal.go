package foreign

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
	elements []int32 // of a list; the one version of a register
	whole    bool    // they are all; otherwise they are the list's end
}

func newInside() inside { return inside{keys: make(map[int32]int)} }

func (s *inside) reset() {
	clear(s.keys)
	s.states = s.states[:0]
	s.before = s.stamp
}

// of gives what is known of a key, and whether that is anything.
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
	k.elements, k.whole = k.elements[:0], false
	return k, false
}

func (s *inside) wrote(h *History, key, v int32) {
	k, _ := s.of(key)
	if h.kind != lists {
		k.elements = k.elements[:0]
	}
	k.elements = append(k.elements, v)
}

// checkRegister compares a read with what the transaction read or wrote before.
func (h *History) checkRegister(t, key, v int32) {
	k, known := h.state.of(key)
	if known && k.elements[0] != v {
		h.found(internal, t, "it read %s of register %s, after it had itself read or written %s", h.describe(v), h.keys[key], h.describe(k.elements[0]))
	}
	k.elements = append(k.elements[:0], v)
}

// checkList is checkRegister for a list.
func (h *History) checkList(t, key int32, elements []int32) {
	k, known := h.state.of(key)
	if known && !k.fits(elements) {
		expected := h.texted(k.elements)
		if !k.whole {
			expected = "something that ends with " + expected
		}
		h.found(internal, t, "it read %s of list %s, where by its own reads and appends it had to find %s", h.texted(elements), h.keys[key], expected)
	}
	k.elements, k.whole = append(k.elements[:0], elements...), true
}

func (k *keyState) fits(elements []int32) bool {
	from := len(elements) - len(k.elements)
	return from >= 0 && (from == 0 || !k.whole) && slices.Equal(elements[from:], k.elements)
}

// checkFuture looks whether the transaction read a version that it writes only now.
func (h *History) checkFuture(t, v int32) {
	if x := &h.versions[v]; x.stamp > h.state.before {
		h.found(futureRead, t, "it read %s of %s %s, and wrote it after that", h.describe(v), subjectNames[h.kind], h.keys[x.key])
	}
}
