package recorder

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// diskBytes is what the files of a directory take on disk as their sizes say.
func diskBytes(tb testing.TB, dir string) (sum int64) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := d.Info()
		sum += info.Size()
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return sum
}

const benchSessions = 16

// BenchmarkWrite measures what recording oltp_read_write costs: the time from handing a transaction
// over to its being durable, overall, and its size on disk.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []struct {
		name         string
		tables, rows int
	}{{"hot", 1, 1000}, {"warm", 1, 100_000}, {"wide", 10, 100_000}} {
		b.Run(size.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "r")
			w, err := Create(dir, history.Info{}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			s := newSysbench(w.Run(), size.tables, size.rows)
			txns := make([]*history.Txn, 2000)
			b.ReportAllocs()
			var handing time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; {
				b.StopTimer()
				n := min(b.N-done, len(txns))
				for i := range n {
					txns[i] = s.txn(history.SessionID(i%benchSessions + 1))
				}
				b.StartTimer()
				start := time.Now()
				for _, t := range txns[:n] {
					if err := w.Txn(context.Background(), t); err != nil {
						b.Fatal(err)
					}
				}
				handing += time.Since(start)
				if err := w.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
				done += n
			}
			b.StopTimer()
			stats := w.Stats()
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(diskBytes(b, dir))/float64(stats.Stmts), "disk-B/stmt")
			b.ReportMetric(float64(stats.Bytes)/float64(stats.Stmts), "B/stmt")
			b.ReportMetric(float64(handing.Nanoseconds())/float64(b.N), "ns-handing/op")
			b.ReportMetric(float64(stats.Txns)/b.Elapsed().Seconds(), "txn/s")
			b.ReportMetric(float64(stats.Stalls), "stalls")
		})
	}
}

// BenchmarkEncode measures the encoding alone: the work of the writing goroutine beside Badger's.
func BenchmarkEncode(b *testing.B) {
	s := newSysbench(1, 1, 100_000)
	var txns []*history.Txn
	for range 2000 {
		txns = append(txns, s.txn(1))
	}
	e := encoder{priors: newPriorSet()}
	var buf []byte
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		buf = e.txn(buf[:0], txns[i%len(txns)])
	}
}

// BenchmarkRead measures streaming a recording of oltp_read_write.
func BenchmarkRead(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "r")
	w, err := Create(dir, history.Info{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := newSysbench(w.Run(), 1, 100_000)
	const txns = 5000
	for i := range txns {
		if err := w.Txn(context.Background(), s.txn(history.SessionID(i%benchSessions+1))); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	read := 0
	for range b.N {
		for _, err := range r.Txns(context.Background()) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "txn/s")
	b.StopTimer()
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFlush measures making one small transaction durable, with one caller and with many.
func BenchmarkFlush(b *testing.B) {
	for _, bench := range []struct {
		name    string
		callers int
	}{{"1", 1}, {"64", 64}} {
		b.Run(bench.name, func(b *testing.B) {
			w, err := Create(filepath.Join(b.TempDir(), "r"), history.Info{}, Options{Durability: Commit})
			if err != nil {
				b.Fatal(err)
			}
			ids := make(chan uint32, bench.callers)
			b.SetParallelism(bench.callers)
			go func() {
				defer close(ids)
				for i := range b.N {
					ids <- uint32(i + 1)
				}
			}()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					t := &history.Txn{ID: history.MakeTxnID(w.Run(), <-ids), Session: 1, Status: history.Committed}
					if err := w.Txn(context.Background(), t); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(w.Stats().Syncs)/float64(b.N), "syncs/op")
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
