package interop

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// A chain is the order of a list's elements, as the longest read shows it.
type chain struct {
	order  []int32 // versions
	agreed int32   // up to here no read contradicts it
	// broken are the places in order of what was never there for others: elements of failed transactions,
	// and those that nobody appended.
	broken []int32
}

// known is the part of the order that all reads agree on.
func (c *chain) known() []int32 { return c.order[:min(int(c.agreed), len(c.order))] }

// readList adds a read of a list. The elements are the caller's again afterwards.
func (h *History) readList(t, key int32, elements []int32) {
	elements = h.withoutRepeats(t, key, elements)
	o := op{key: key, version: initial, length: int32(len(elements))}
	if n := len(elements); n > 0 {
		o.version = elements[n-1]
	}
	h.addOp(t, o)
	h.extend(t, key, elements)
	h.checkList(t, key, elements)
}

// withoutRepeats stamps the elements of a read, and leaves out those that stand there already: an element is
// appended once.
func (h *History) withoutRepeats(t, key int32, elements []int32) []int32 {
	h.state.stamp++
	stamp := h.state.stamp
	for i, v := range elements {
		if h.versions[v].stamp != stamp {
			h.versions[v].stamp = stamp
			continue
		}
		h.found(duplicateElements, t, "it read %s of list %s, which holds %s more than once", h.texted(elements),
			h.keys[key], h.describe(v))
		kept := elements[:i]
		for _, v := range elements[i:] {
			if h.versions[v].stamp != stamp {
				h.versions[v].stamp = stamp
				kept = append(kept, v)
			}
		}
		return kept
	}
	return elements
}

// extend compares a read with the order of the list so far: one is to be a prefix of the other.
func (h *History) extend(t, key int32, elements []int32) {
	c := &h.chains[key]
	same := 0
	for same < len(elements) && same < len(c.order) && elements[same] == c.order[same] {
		same++
	}
	if same < len(elements) && same < len(c.order) {
		c.agreed = min(c.agreed, int32(same))
		h.found(incompatibleOrder, t, "it read %s of list %s, and another transaction read %s: "+
			"neither is the beginning of the other",
			h.texted(elements), h.keys[key], h.texted(c.order))
	}
	if len(elements) > len(c.order) {
		c.order = append(c.order[:same], elements[same:]...)
	}
}

// inferLists puts what no read shows behind what reads show, and counts it by list.
func (h *History) inferLists(unplaced map[int32]int) {
	for k := range h.chains {
		c := &h.chains[k]
		for i, v := range c.known() {
			h.versions[v].place = int32(i) + 1
		}
		for i, v := range c.order {
			if w := h.versions[v].txn; w == none || h.failed(w) {
				c.broken = append(c.broken, int32(i))
			}
		}
	}
	for v := range h.versions {
		x := &h.versions[v]
		if x.place > 0 || x.txn == none || h.failed(x.txn) || !h.lastOf(int32(v)) {
			continue
		}
		unplaced[x.key]++
		h.pairs = append(h.pairs, [2]int32{h.lastGood(x.key), int32(v)})
	}
}

// lastGood returns the last element of a list that reads agree on and that was there for others.
func (h *History) lastGood(key int32) int32 {
	for _, v := range slices.Backward(h.chains[key].known()) {
		if w := h.versions[v].txn; w != none && !h.failed(w) && h.lastOf(v) {
			return v
		}
	}
	return h.initialOf(key)
}

// below returns the element right before one whose place is known, past those that nobody appended.
func (h *History) below(v int32) int32 {
	x := &h.versions[v]
	known := h.chains[x.key].known()
	for i := x.place - 2; i >= 0; i-- {
		if h.versions[known[i]].txn != none {
			return known[i]
		}
	}
	return initial
}

// failed reports whether a transaction left nothing behind.
func (h *History) failed(t int32) bool { return h.txns[t].status == history.Aborted }

// lastOf reports whether a version is the last that its transaction wrote of its key.
func (h *History) lastOf(v int32) bool {
	x := &h.versions[v]
	later := h.opsOf(x.txn)[x.stmt:]
	return !slices.ContainsFunc(later, func(o op) bool { return o.write && o.key == x.key })
}

func (h *History) opsOf(t int32) []op {
	x := &h.txns[t]
	return h.ops[x.first : x.first+x.count]
}
