package recorder

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

func TestLookupGivesTheTransactionsOfTheStream(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w := create(t, dir, Options{})
	s := newSysbench(w.Run(), 2, 500)
	for i := range 60 {
		record(t, w, s.txn(history.SessionID(i%3+1)))
	}
	long := s.txn(2)
	for range 200 {
		long.Stmts = append(long.Stmts, s.txn(2).Stmts...)
	}
	for i := range long.Stmts {
		long.Stmts[i].Num = uint32(i + 1)
	}
	record(t, w, long)
	record(t, w, placed(s.txn(2)))
	closed(t, w)
	_, txns := readAll(t, dir)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	l, err := r.Lookup()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := len(txns) - 1; i >= 0; i-- {
		got, err := l.Txn(t.Context(), txns[i].ID, txns[i].Session)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, txns[i]) {
			t.Fatalf("transaction %s differs from the stream's", txns[i].ID)
		}
	}
	if _, err := l.Txn(t.Context(), txns[0].ID, 99); err == nil || !strings.Contains(err.Error(), txns[0].ID.String()) {
		t.Errorf("a transaction that is not there gives %v, want an error that names it", err)
	}
}
