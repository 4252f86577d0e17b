package predicate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSearchesFindWhatLookingAtEveryWriteFinds has chains whose writes took any time, and were made in any order.
func TestSearchesFindWhatLookingAtEveryWriteFinds(t *testing.T) {
	found := 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c, matching := anyChain(rng)
		m := missable{chain: c, matching: matching}
		from := rng.Int64N(60)
		end := from + rng.Int64N(30)
		place, ok := m.overwriter(end, from)
		wantPlace, want := overwriterOfAll(&m, end, from)
		if ok != want || ok && place != wantPlace {
			t.Fatalf("seed %d: write %d (%t) overwrites what was seen, want %d (%t)", seed, place, ok, wantPlace, want)
		}
		if ok {
			found++
		}
		for i, w := range c.writes {
			sent, ended := c.lastSent(end), c.lastEnded(from)
			if i > sent && w.start <= end || i == sent && w.start > end || i > ended && w.end < from || i == ended &&
				w.end >= from {
				t.Fatalf("seed %d: write %d of %d to %d is not on its side of %d (sent by %d) or %d (ended before %d)",
					seed, i, w.start, w.end, sent, end, ended, from)
			}
		}
	}
	if found == 0 {
		t.Error("no search finds anything")
	}
}

// anyChain returns a chain, and which of its versions match.
func anyChain(rng *rand.Rand) (c *chain, matching []int) {
	var writes []write
	now := int64(0)
	for i := range 1 + rng.IntN(8) {
		start := max(0, now+rng.Int64N(20)-6)
		now = start + rng.Int64N(10)
		writes = append(writes, write{txn: id(uint32(i + 1)), replaced: history.Tag{Txn: id(uint32(i))},
			start: start, end: now, certain: true})
		if rng.IntN(3) > 0 {
			matching = append(matching, i)
		}
	}
	return newChain(writes), matching
}

func overwriterOfAll(m *missable, end, from int64) (place int, ok bool) {
	newest := -1
	for i, w := range m.chain.writes {
		if w.start <= end && !slices.Contains(m.matching, i) {
			newest = i
		}
	}
	for i := newest + 1; i < len(m.chain.writes); i++ {
		if slices.Contains(m.matching, i) {
			return i, m.chain.writes[i].end > from
		}
	}
	return 0, false
}
