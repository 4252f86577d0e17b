package interop

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// A timedInterval is what one transaction did to a register, and when.
type timedInterval struct {
	interval
	start, end int64
}

// followTime puts what a transaction saw of a register behind what was seen of it by those that had ended
// before it began. Of these it takes the latest only: the others come before them.
func (h *History) followTime() [][2]int32 {
	var all []timedInterval
	var found []interval
	for t := range int32(len(h.txns)) {
		if found = h.externals(t, found); h.failed(t) {
			continue
		}
		x := &h.txns[t]
		end := x.end
		if x.status == history.Indeterminate {
			end = math.MaxInt64 // it may have come into effect at any time
		}
		for _, m := range found {
			if m.first != unknown {
				all = append(all, timedInterval{m, x.start, end})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timedInterval) int {
		return cmp.Or(cmp.Compare(a.key, b.key),
			cmp.Compare(a.start, b.start))
	})
	var pairs [][2]int32
	for begin := 0; begin < len(all); {
		end := begin
		for end < len(all) && all[end].key == all[begin].key {
			end++
		}
		pairs = h.followTimeOf(pairs, all[begin:end])
		begin = end
	}
	return pairs
}

// followTimeOf does so for one register, whose intervals are in the order in which they began.
func (h *History) followTimeOf(pairs [][2]int32, intervals []timedInterval) [][2]int32 {
	byEnd := slices.SortedStableFunc(slices.Values(intervals),
		func(a, b timedInterval) int { return cmp.Compare(a.end, b.end) })
	var latest []timedInterval // of those that have ended: none of them ended before another one began
	for _, m := range intervals {
		for len(byEnd) > 0 && byEnd[0].end < m.start {
			ended := byEnd[0]
			byEnd = byEnd[1:]
			latest = slices.DeleteFunc(latest, func(l timedInterval) bool { return l.end < ended.start })
			latest = append(latest, ended)
		}
		for _, l := range latest {
			pairs = h.pair(pairs, m.key, l.last, m.first)
		}
	}
	return pairs
}
