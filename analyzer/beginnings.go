package analyzer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/isotap/isotap/history"
)

// beginnings knows of each run's transactions roughly when they began, in bounded memory: counters are handed out in
// the order in which transactions begin, so that one began hardly earlier than another with a smaller counter.
type beginnings map[history.Run]*startSamples

// counting is how much later a transaction may be counted than one that began behind it.
const counting = 50 * time.Millisecond

// startSamples are some transactions of a run, in the order of their counters: no two of them closer than apart.
type startSamples struct {
	list  []startSample
	apart uint32
}

type startSample struct {
	seq   uint32
	start int64
}

// maxStartSamples is how many there are at most: then every other one is forgotten.
const maxStartSamples = 8192

// add takes in when a transaction began.
func (b beginnings) add(id history.TxnID, start int64) {
	r := b[id.Run()]
	if r == nil {
		r = &startSamples{apart: 1}
		b[id.Run()] = r
	}
	i := r.find(id.Seq())
	if i > 0 && id.Seq()-r.list[i-1].seq < r.apart || i < len(r.list) && r.list[i].seq-id.Seq() < r.apart {
		return
	}
	r.list = slices.Insert(r.list, i, startSample{id.Seq(), start})
	if len(r.list) > maxStartSamples {
		r.apart *= 2
		kept := r.list[:1]
		for _, x := range r.list[1:] {
			if x.seq-kept[len(kept)-1].seq >= r.apart {
				kept = append(kept, x)
			}
		}
		r.list = kept
	}
}

// before returns a time before which a transaction did not begin; the lowest where none is known.
func (b beginnings) before(id history.TxnID) int64 {
	r := b[id.Run()]
	if r == nil {
		return math.MinInt64
	}
	i := r.find(id.Seq() + 1)
	if i == 0 {
		return math.MinInt64
	}
	if last := r.list[i-1]; last.seq == id.Seq() {
		return last.start
	}
	return subtract(r.list[i-1].start, counting)
}

// find returns where the first sample stands whose counter is not less.
func (r *startSamples) find(seq uint32) int {
	i, _ := slices.BinarySearchFunc(r.list, seq, func(x startSample, seq uint32) int { return cmp.Compare(x.seq, seq) })
	return i
}
