// Package unseen knows the recorded transactions that may have written what isotap did not see. A transaction of the
// server's log that has no known owner may be one of them; only what cannot is said to have gone past isotap.
package unseen

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// Writers are such transactions of one server. All are added before [Writers.Settle]; then they may be asked for by
// several goroutines. The zero value has none.
type Writers struct{ spans []span }

// A span is the time of one. Once settled, to is the latest end of those of its run that began no later.
type span struct {
	txn      history.TxnID
	run      history.Run
	from, to int64
}

// Add adds a transaction. One whose end was not seen may have committed at any time after its start.
func (w *Writers) Add(t *history.Txn) {
	s := span{t.ID, t.ID.Run(), t.Start, t.End}
	if t.End <= 0 || t.Status != history.Committed && t.Status != history.Aborted {
		s.to = math.MaxInt64
	}
	w.spans = append(w.spans, s)
}

// Settle leaves out those of which the log's transactions are known: they are no others of it.
func (w *Writers) Settle(known map[history.TxnID]bool) {
	w.spans = slices.DeleteFunc(w.spans, func(s span) bool { return known[s.txn] })
	slices.SortFunc(w.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.from, b.from))
	})
	for i := 1; i < len(w.spans); i++ {
		if before := &w.spans[i-1]; before.run == w.spans[i].run {
			w.spans[i].to = max(w.spans[i].to, before.to)
		}
	}
}

// MayBe reports whether one of them may be what ended between two times by the clock of a run. Those of other runs,
// whose clocks are others, always may.
func (w *Writers) MayBe(run history.Run, from, to int64) bool {
	n := len(w.spans)
	if n == 0 {
		return false
	}
	if w.spans[0].run != run || w.spans[n-1].run != run {
		return true
	}
	i, _ := slices.BinarySearchFunc(w.spans, to, func(s span, to int64) int {
		if s.from <= to {
			return -1
		}
		return 1
	})
	return i > 0 && w.spans[i-1].to >= from
}
