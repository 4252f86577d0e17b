package predicate

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestVersionsAreKnownByTheRecordingsNumbers: what was tested while a run went on has its statements' numbers, where an
// analysis has put unseen ones before them.
func TestVersionsAreKnownByTheRecordingsNumbers(t *testing.T) {
	one, two := history.Row{Table: "t", ID: "1"}, history.Row{Table: "t", ID: "2"}
	update := func(row history.Row) []history.Access { return []history.Access{{Row: row, Op: history.UpdateRow}} }
	id := history.MakeTxnID(7, 1)
	r := New()
	r.AddRun(history.Info{Run: 7})
	if err := r.Collect(&history.Txn{ID: id, Status: history.Committed, Stmts: []history.Stmt{
		{Num: 1, Kind: history.Update, Unseen: true, Accesses: update(one)},
		{Num: 2, Recorded: 1, Kind: history.Update, Accesses: update(two)}}}); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[history.Row]history.VersionRef{one: {Txn: id}, two: {Txn: id, Stmt: 1}} {
		if got := r.writes[row]; len(got) != 1 || got[0].ref != want {
			t.Errorf("row %s: %v, want the version %v", row.ID, got, want)
		}
	}
}
