package pglog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// BenchmarkSettle takes in logs of which every second transaction is past isotap. Of the recorded ones every tenth
// writes to an unlogged table as well, which the log lacks.
func BenchmarkSettle(b *testing.B) {
	for _, n := range []int{25_000, 100_000, 400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log, txns := half(n)
			before := heap()
			var r *Resolver
			for b.Loop() {
				r = settledScale(b, log, txns)
			}
			b.ReportMetric(float64(heap()-before)/float64(n), "kept-B/txn")
			runtime.KeepAlive(r)
			runtime.KeepAlive(log)
			runtime.KeepAlive(txns)
		})
	}
}

// BenchmarkComplete has one transaction write n rows unseen, each of which a statement of its own had read.
func BenchmarkComplete(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			log, txn := large(n)
			for b.Loop() {
				completeLarge(b, log, txn)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

// large returns a transaction that wrote n rows unseen, as the log has it, and as it was recorded.
func large(n int) (*history.LoggedTxn, *history.Txn) {
	const xid = 30
	var writes []history.LoggedWrite
	var stmts []history.Stmt
	for i := range uint64(n) {
		w := update(xid, i+1, uint64(n)+i+1)
		w.TupleID.LSN = 100 + i
		writes = append(writes, w)
		s := saw(5, i+1)
		s.Accesses[0].Row.ID = fmt.Sprint(i)
		stmts = append(stmts, s)
	}
	return committed(xid, 120, 130, writes...), recorded(1, append(stmts, told(xid))...)
}

func completeLarge(t tester, log *history.LoggedTxn, txn *history.Txn) {
	t.Helper()
	r := settled(t, []*history.LoggedTxn{log}, []*history.Txn{txn})
	c := *txn
	r.Complete(&c)
	if got, want := len(c.Stmts), len(txn.Stmts)+len(log.Writes); got != want || r.Stats().Told != len(log.Writes) {
		t.Fatal(got, "statements instead of", want)
	}
}

// half returns a log of n transactions, and every second of them as it was recorded. They write a thousand rows by
// turns.
func half(n int) (log []*history.LoggedTxn, txns []*history.Txn) {
	const rows = 1000
	for i := range n {
		xid, row := uint32(20+i), i/2%rows
		from, to := uint64(1+row+i/2/rows*2*rows), uint64(0)
		if to = from + rows; i%2 == 1 {
			from, to = to, to+rows
		}
		at := int64(10 + 10*i)
		w := update(xid, from, to)
		w.TupleID.LSN = uint64(100 + i)
		log = append(log, committed(xid, at, at+5, w))
		if i%2 == 0 {
			continue
		}
		s := wrote(xid-1, from, xid, to)
		s.Accesses[0].Row.ID = fmt.Sprint(row)
		t := recorded(uint32(i), s)
		if i%20 == 1 {
			u := wrote(0, 0, xid, to)
			u.Accesses[0].Row.Table, u.TupleIDs[0].Leaf = "public.unlogged", leaf+1
			t.Stmts = append(t.Stmts, u)
		}
		t.Start, t.End = at, at+5
		for j := range t.Stmts {
			t.Stmts[j].Start, t.Stmts[j].End = at, at+5
		}
		txns = append(txns, t)
	}
	return log, txns
}

// heap returns how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func settledScale(b *testing.B, log []*history.LoggedTxn, txns []*history.Txn) *Resolver {
	b.Helper()
	info := history.Info{Run: theRun, Ended: time.Unix(1, 0), Server: history.Server{Engine: dbms.PostgreSQL}, Horizon: 10,
		Log: []history.LogStretch{{From: 1, To: 1 << 40}}}
	r := New(history.FirstPast)
	r.AddRun(info)
	for i, l := range log {
		l.Number = uint32(i + 1)
		r.AddLogged(theRun, l)
	}
	r.Link()
	r.AddSession(history.Session{Run: theRun, ID: 1, Database: "shop"})
	for _, txn := range txns {
		if err := r.Observe(txn); err != nil {
			b.Fatal(err)
		}
	}
	r.Settle()
	if s := r.Stats(); s.Past != len(log)/2 || s.Disputed != 0 {
		b.Fatalf("%+v of %d", s, len(log))
	}
	return r
}

// TestTablesOfTheLogAreKnown holds the tables that are known to be in the log against the log itself.
func TestTablesOfTheLogAreKnown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var log []*history.LoggedTxn
		want := make(map[uint32]bool)
		for i := range rapid.IntRange(0, 5).Draw(rt, "transactions") {
			xid := uint32(20 + i)
			w := update(xid, uint64(2*i+1), uint64(2*i+2))
			w.Op = rapid.SampledFrom([]history.Op{history.InsertRow, history.UpdateRow, history.DeleteRow}).Draw(rt, "op")
			w.TupleID.Leaf = rapid.Uint32Range(1, 4).Draw(rt, "leaf")
			w.Storage = rapid.Uint32Range(60, 61).Draw(rt, "file")
			if w.Op == history.DeleteRow {
				w.TupleID.NewXID, w.TupleID.NewID = 0, 0
			}
			want[w.TupleID.Leaf] = true
			log = append(log, committed(xid, 110, 120, w))
		}
		r := settled(t, log, []*history.Txn{recorded(1, saw(5, 1), wrote(20, 2, 21, 4))})
		for leaf := uint32(1); leaf <= 5; leaf++ {
			if got := r.isLogged(r.runs[theRun], r.database("shop"), leaf); got != want[leaf] {
				rt.Fatalf("table %d is logged: %v", leaf, got)
			}
		}
		if r.isLogged(r.runs[theRun], r.database("other"), 1) {
			rt.Fatal("a table of another database is")
		}
	})
}
