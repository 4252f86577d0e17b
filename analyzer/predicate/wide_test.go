package predicate

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestAWideConditionTellsByTheClockAlone has a statement from 100 to 110, the second one of its transaction, look for
// rows by a condition that is not all it hangs on, and another transaction write the row and commit: what is added is
// the version below the one that surely was not there, or nothing.
func TestAWideConditionTellsByTheClockAlone(t *testing.T) {
	ins, upd, del := history.InsertRow, history.UpdateRow, history.DeleteRow
	for _, c := range []struct {
		name   string
		level  history.Level
		steps  []step
		commit int64 // when the last of them was told to; 0: with its write
		want   string
	}{
		{"inserted and committed while it ran", history.ReadCommitted, []step{{1, 0, 105, ins, true}}, 0, "none"},
		{"inserted before, committed afterwards", history.ReadCommitted, []step{{1, 0, 50, ins, true}}, 111, "0"},
		{"inserted afterwards", history.ReadCommitted, []step{{1, 0, 112, ins, true}}, 0, "0"},
		{"committed behind the transaction's snapshot", history.RepeatableRead, []step{{1, 0, 50, ins, true}}, 92, "0"},
		{"committed while the snapshot was taken", history.RepeatableRead, []step{{1, 0, 50, ins, true}}, 90, "none"},
		{"changed, from what is not known", history.ReadCommitted, []step{{1, 0, 112, upd, true}}, 0, "none"},
		{"changed so that it matches", history.ReadCommitted, []step{{1, 0, 50, ins, false}, {2, 1, 112, upd, true}},
			0, "1"},
		{"changed, and matched before", history.ReadCommitted, []step{{1, 0, 50, ins, true}, {2, 1, 112, upd, true}},
			0, "none"},
		{"came back", history.ReadCommitted, []step{{1, 0, 50, ins, true}, {2, 1, 60, del, true},
			{3, 2, 112, ins, true}}, 0, "2"},
		{"inserted afterwards, beside a serializable one", history.Serializable, []step{{1, 0, 112, ins, true}}, 0, "none"},
		{"does not match", history.ReadCommitted, []step{{1, 0, 112, ins, false}}, 0, "none"},
	} {
		txns, m := chained(c.steps)
		m.Predicate = chosen
		if last := txns[len(txns)-1]; c.commit > 0 {
			last.Stmts = append(last.Stmts, history.Stmt{Num: 2, Kind: history.Commit, Start: c.commit, End: c.commit + 2})
			last.End = c.commit + 2
		}
		wide := chosen
		wide.Wide = true
		reader := &history.Txn{ID: id(9), Session: 3, Status: history.Committed, Level: c.level, Start: 80, End: 120,
			Stmts: []history.Stmt{{Num: 1, Kind: history.Select, Start: 80, End: 90, Observation: history.Nothing},
				{Num: 2, Kind: history.Select, Start: 100, End: 110, Observation: history.Inexact,
					Predicates: []history.Predicate{wide}}}}
		resolve(m, append(txns, reader), reader)
		got := "none"
		for _, a := range reader.Stmts[1].Accesses {
			if got = fmt.Sprint(a.Version.Txn.Seq()); !a.Wide || !a.Absent {
				t.Errorf("%s: %+v", c.name, a)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
