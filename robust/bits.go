package robust

import "math/bits"

// A bitset is a set of small numbers: of nodes of a graph, or of programs.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

// fullBitset has all numbers below n.
func fullBitset(n int) bitset {
	b := newBitset(n)
	for i := range n {
		b.add(i)
	}
	return b
}

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i int)   { b[i/64] &^= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// unite adds all of the other set.
func (b bitset) unite(other bitset) {
	for i, w := range other {
		b[i] |= w
	}
}

// intersect keeps what the other set has, too.
func (b bitset) intersect(other bitset) {
	for i, w := range other {
		b[i] &= w
	}
}

// intersects reports whether the sets have a number in common.
func (b bitset) intersects(other bitset) bool {
	for i, w := range other {
		if b[i]&w != 0 {
			return true
		}
	}
	return false
}

// within reports whether the other set has all of this one.
func (b bitset) within(other bitset) bool {
	for i, w := range b {
		if w&^other[i] != 0 {
			return false
		}
	}
	return true
}

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// first returns the smallest number; false where there is none.
func (b bitset) first() (int, bool) {
	for i := range b.all {
		return i, true
	}
	return 0, false
}

// all calls f for each number, in order, until it returns false.
func (b bitset) all(f func(int) bool) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			if !f(i*64 + bits.TrailingZeros64(w)) {
				return
			}
		}
	}
}

// list returns the numbers in order.
func (b bitset) list() []int {
	numbers := make([]int, 0, b.count())
	for i := range b.all {
		numbers = append(numbers, i)
	}
	return numbers
}
