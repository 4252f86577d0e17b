package postgres

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestLayersAreAsMapsThatWereCopied(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		type state struct {
			plain  map[int]int
			layers layers[int, int]
		}
		states := []state{{plain: map[int]int{}}}
		for range 100 {
			from := states[r.IntN(len(states))]
			plain, edited := maps.Clone(from.plain), from.layers.edit()
			for range r.IntN(20) {
				if k := r.IntN(100); r.IntN(3) == 0 {
					delete(plain, k)
					edited.remove(k)
				} else {
					plain[k] = k + r.IntN(1000)
					edited.set(k, plain[k])
				}
			}
			states = append(states, state{plain, edited.done()})
		}
		for _, s := range states {
			if got := maps.Collect(s.layers.all()); !reflect.DeepEqual(got, s.plain) {
				t.Fatalf("seed %d: %v, not %v", seed, got, s.plain)
			}
			for k := range 100 {
				if s.layers.get(k) != s.plain[k] {
					t.Fatalf("seed %d: %d has %d, not %d", seed, k, s.layers.get(k), s.plain[k])
				}
			}
		}
	}
}
