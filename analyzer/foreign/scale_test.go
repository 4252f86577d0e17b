package foreign_test

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/analyzer/foreign"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// BenchmarkHotRow has one row written by turns by isotap's clients and past isotap.
func BenchmarkHotRow(b *testing.B) {
	for _, n := range []int{25_000, 100_000, 400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				hotRow(b, n)
			}
		})
	}
}

func hotRow(b *testing.B, n int) {
	var log []*history.LoggedTxn
	var txns []*history.Txn
	var shown history.Tag
	for i := range n {
		at, next := int64(10+10*i), shown
		if i%2 == 0 {
			next = tag(uint32(i+1), 1)
			txns = append(txns, one(uint32(i+1), history.Update, history.UpdateRow, shown, at, at+5))
		}
		log = append(log, update(uint64(i+1), shown, next, at, at+5))
		shown = next
	}
	r := foreign.New()
	r.AddRun(history.Info{Run: run, Server: history.Server{Engine: dbms.MariaDB}})
	for _, l := range log {
		r.Note(l)
	}
	for _, t := range txns {
		if err := r.Collect(t); err != nil {
			b.Fatal(err)
		}
	}
	for i, l := range log {
		l.Number = uint32(i + 1)
		r.Add(run, l)
	}
	r.Settle()
	for _, t := range txns {
		r.Resolve(t)
	}
	if _, _, past := r.Past(); len(past) != n/2 {
		b.Fatalf("%d of %d went past isotap", len(past), n)
	}
}
