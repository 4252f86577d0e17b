// Package numset keeps sets of 32-bit numbers that come nearly in order: counters of which almost all are
// seen sooner or later. A set takes 8 bytes for every stretch of numbers without a gap.
package numset

import "slices"

// A Set is a set of numbers. The zero value is empty. It is not for concurrent use.
type Set struct{ stretches []stretch }

// A stretch is the numbers from first to last. Between two stretches a number is missing.
type stretch struct{ first, last uint32 }

// find returns the place of the first stretch that does not end before n.
func (s *Set) find(n uint32) int {
	if k := len(s.stretches); k == 0 || s.stretches[k-1].last < n {
		return k
	}
	i, _ := slices.BinarySearchFunc(s.stretches, n, func(x stretch, n uint32) int {
		if x.last < n {
			return -1
		}
		return 1
	})
	return i
}

// Has reports whether n is in the set.
func (s *Set) Has(n uint32) bool {
	if s == nil {
		return false
	}
	i := s.find(n)
	return i < len(s.stretches) && s.stretches[i].first <= n
}

// Add puts n into the set; false when it was there.
func (s *Set) Add(n uint32) bool {
	i := s.find(n)
	above := i < len(s.stretches) && s.stretches[i].first == n+1 && n+1 != 0
	below := i > 0 && s.stretches[i-1].last == n-1 && n != 0
	switch {
	case i < len(s.stretches) && s.stretches[i].first <= n:
		return false
	case above && below:
		s.stretches[i-1].last = s.stretches[i].last
		s.stretches = slices.Delete(s.stretches, i, i+1)
	case above:
		s.stretches[i].first = n
	case below:
		s.stretches[i-1].last = n
	default:
		s.stretches = slices.Insert(s.stretches, i, stretch{n, n})
	}
	return true
}

// AddUntil puts 1 and all numbers up to n into the set, which has none of them.
func (s *Set) AddUntil(n uint32) {
	if n > 0 {
		s.stretches = append([]stretch{{1, n}}, s.stretches...)
	}
}

// Until returns the last of the numbers from n on without a gap; n-1 where n is not in the set.
func (s *Set) Until(n uint32) uint32 {
	if i := s.find(n); i < len(s.stretches) && s.stretches[i].first <= n {
		return s.stretches[i].last
	}
	return n - 1
}
