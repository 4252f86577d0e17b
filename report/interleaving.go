package report

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A step is a statement of a witness's transaction.
type step struct {
	txn  *history.Txn
	stmt *history.Stmt
	at   int64 // when it was sent, by the clock of the witness's first transaction
}

// interleaving returns the statements of all transactions of the witness in the order in which they were
// sent.
func (w *witness) interleaving(c clock) []step {
	var steps []step
	shifts := c.shift(w.txns)
	for i, t := range w.txns {
		for j := range t.Stmts {
			if t.Stmts[j].Unseen { // one of the others does it
				continue
			}
			steps = append(steps, step{t, &t.Stmts[j], t.Stmts[j].Start + shifts[i]})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}
