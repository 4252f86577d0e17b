package numset

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSetIsTheNumbersAdded(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s Set
		model := map[uint32]bool{}
		for range 60 {
			n := uint32(rng.IntN(40))
			if rng.IntN(20) == 0 {
				n = math.MaxUint32 - uint32(rng.IntN(3))
			}
			if s.Add(n) == model[n] {
				t.Fatalf("seed %d: adding %d again or for the first time is told wrongly", seed, n)
			}
			model[n] = true
			check(t, seed, &s, model)
		}
	}
}

func check(t *testing.T, seed uint64, s *Set, model map[uint32]bool) {
	t.Helper()
	stretches := 0
	for n := range uint32(45) {
		if s.Has(n) != model[n] {
			t.Fatalf("seed %d: Has(%d) = %v", seed, n, s.Has(n))
		}
		last := n - 1
		for model[last+1] {
			last++
		}
		if got := s.Until(n); got != last {
			t.Fatalf("seed %d: Until(%d) = %d, want %d", seed, n, got, last)
		}
		if model[n] && !model[n+1] {
			stretches++
		}
	}
	if len(s.stretches) > stretches+3 {
		t.Fatalf("seed %d: %d stretches for %d", seed, len(s.stretches), stretches)
	}
}

func TestNoSetHasNothing(t *testing.T) {
	if (*Set)(nil).Has(0) || new(Set).Has(0) {
		t.Error("an empty set has a number")
	}
}
