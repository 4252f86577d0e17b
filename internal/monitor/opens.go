package monitor

import (
	"math"

	"github.com/isotap/isotap/history"
)

// opens tells how long ago the oldest transaction began that has not ended. Counters are handed out in the order in
// which transactions begin, and all of them are recorded once they end: one that is missing below another is open.
type opens struct {
	runs  map[history.Run]*begun
	limit int
}

// begun is what is known of the transactions of a run.
type begun struct {
	next   uint32           // the first counter that has not been seen
	since  int64            // when the one before it began, which is not after it did
	beyond map[uint32]int64 // the later ones that have ended: when they began
}

func newOpens(limit int) *opens { return &opens{runs: make(map[history.Run]*begun), limit: limit} }

// skip says that nothing will be known of a run's transactions up to this one.
func (o *opens) skip(upTo history.TxnID, offset int64) {
	o.runs[upTo.Run()] = &begun{next: upTo.Seq() + 1, since: offset, beyond: make(map[uint32]int64)}
}

// ended takes in a transaction of a run whose times count from offset.
func (o *opens) ended(t *history.Txn, offset int64) {
	b := o.runs[t.ID.Run()]
	if b == nil {
		b = &begun{next: 1, since: offset, beyond: make(map[uint32]int64)}
		o.runs[t.ID.Run()] = b
	}
	if t.ID.Seq() < b.next {
		return // it was skipped
	}
	b.beyond[t.ID.Seq()] = t.Start + offset
	b.advance()
	if len(b.beyond) > o.limit {
		// The one that is missing holds back more than is kept anyway, or was never recorded.
		b.skip()
	}
}

func (b *begun) advance() {
	for {
		start, ok := b.beyond[b.next]
		if !ok {
			return
		}
		delete(b.beyond, b.next)
		b.since = max(b.since, start)
		b.next++
	}
}

func (b *begun) skip() {
	first := uint32(math.MaxUint32)
	for seq := range b.beyond {
		first = min(first, seq)
	}
	b.next = first
	b.advance()
}

// since returns a time before which no transaction began that is open, or will be.
func (o *opens) since() int64 {
	since := int64(math.MaxInt64)
	for _, b := range o.runs {
		since = min(since, b.since)
	}
	if len(o.runs) == 0 {
		return 0
	}
	return since
}
