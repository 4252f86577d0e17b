package unseen

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// TestMayBeIsThatOneOverlaps compares what is told with a look at each transaction by itself.
func TestMayBeIsThatOneOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		time := rapid.Int64Range(1, 12)
		runs := rapid.Uint64Range(1, rapid.SampledFrom([]uint64{1, 2}).Draw(t, "runs"))
		known := make(map[history.TxnID]bool)
		var txns []*history.Txn
		var w Writers
		for i := range rapid.IntRange(0, 6).Draw(t, "transactions") {
			txn := &history.Txn{ID: history.MakeTxnID(history.Run(runs.Draw(t, "run")), uint32(i+1)),
				Start: time.Draw(t, "start"), Status: rapid.SampledFrom([]history.Status{history.Committed,
					history.Aborted, history.Indeterminate}).Draw(t, "status")}
			txn.End = rapid.SampledFrom([]int64{0, txn.Start + time.Draw(t, "length")}).Draw(t, "end")
			w.Add(txn)
			if rapid.Bool().Draw(t, "known") {
				known[txn.ID] = true
			} else {
				txns = append(txns, txn)
			}
		}
		w.Settle(known)
		run, from := history.Run(runs.Draw(t, "of run")), time.Draw(t, "from")
		to := from + time.Draw(t, "length")
		want := slices.ContainsFunc(txns, func(txn *history.Txn) bool {
			open := txn.End == 0 || txn.Status == history.Indeterminate
			return txn.ID.Run() != run || txn.Start <= to && (open || txn.End >= from)
		})
		if got := w.MayBe(run, from, to); got != want {
			t.Fatalf("what ended between %d and %d of run %s may be one of %v: %v", from, to, run, txns, got)
		}
	})
}
