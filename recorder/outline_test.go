package recorder

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

func TestOutlinesAreTransactionsWithoutArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := Restore(dir, history.Info{Run: 5, Started: time.Unix(1, 0)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := func(id string) history.Access { return history.Access{Row: history.Row{Table: "t", ID: id}} }
	for seq := range uint32(3) {
		txn := &history.Txn{ID: history.MakeTxnID(5, seq+1), Session: 1, Conflicts: history.ConflictsRefused,
			Stmts: []history.Stmt{
				{Num: 1, Shape: "SELECT ?, ?, ?", Args: []string{"12", "text", "-9"}, Rows: 3,
					Accesses: []history.Access{row("1f"), row("31"), row("0000051.1:2"), row("0000051.1:3"),
						row("0000052.1:3"), row("raw one")},
					TupleIDs: []history.TupleID{{XID: 7, CTID: 1}, {XID: 7, CTID: 2}, {}, {LSN: 5}, {}, {Leaf: 9}}},
				{Num: 2, Shape: "SELECT 1"},
			}}
		if err := w.Txn(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var whole, outlines []*history.Txn
	for txn, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		txn.Stmts[0].Args = nil
		whole = append(whole, txn)
	}
	for txn, err := range r.Outlines(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		outlines = append(outlines, txn)
	}
	// In an arena each transaction takes the place of the one before.
	var arena Arena
	for txn, err := range r.Outlines(t.Context(), func() *Arena { arena.Reset(); return &arena }) {
		if err != nil {
			t.Fatal(err)
		}
		if want := whole[txn.ID.Seq()-1]; !reflect.DeepEqual(txn, want) {
			t.Errorf("in an arena %+v, want %+v", txn, want)
		}
	}
	if len(whole) != 3 || !reflect.DeepEqual(outlines, whole) {
		t.Errorf("outlines %+v, want %+v", outlines, whole)
	}
}
