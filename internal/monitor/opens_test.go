package monitor

import (
	"testing"

	"github.com/isotap/isotap/history"
)

const runA, runB history.Run = 11, 12

func (o *opens) end(r history.Run, seq uint32, start, offset int64) {
	o.ended(&history.Txn{ID: history.MakeTxnID(r, seq), Start: start}, offset)
}

// TestOldestOpenTransactionIsTheFirstMissing: oldest open transaction is the first that is missing.
func TestOldestOpenTransactionIsTheFirstMissing(t *testing.T) {
	o := newOpens(3)
	for i, step := range []struct {
		run           history.Run
		seq           uint32
		start, offset int64
		want          int64
	}{
		{runA, 2, 20, 0, 0},      // 1 is open
		{runA, 3, 30, 0, 0},      // 1 is open
		{runA, 1, 10, 0, 30},     // 4 begins after 3
		{runA, 4, 25, 0, 30},     // 4 was timed before 3, and 5 still begins after it
		{runB, 1, 5, 1000, 30},   // the other run's times count from its own start
		{runA, 5, 2000, 0, 1005}, // so the other run's next one may be the oldest
		{runB, 2, 50, 1000, 1050},
		{runB, 4, 70, 1000, 1050},
		{runB, 5, 80, 1000, 1050},
		{runB, 6, 90, 1000, 1050},
		{runB, 7, 95, 1000, 1095}, // more than the limit: 3 is given up
		{runB, 3, 60, 1000, 1095}, // and comes late
	} {
		o.end(step.run, step.seq, step.start, step.offset)
		if got := o.since(); got != step.want {
			t.Fatalf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// TestNothingEndedBeforeTheFirst: nothing is known to have ended before the first.
func TestNothingEndedBeforeTheFirst(t *testing.T) {
	if since := newOpens(1).since(); since != 0 {
		t.Errorf("since %d", since)
	}
}
