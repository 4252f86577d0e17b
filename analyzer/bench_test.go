package analyzer

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

const benchRun history.Run = 36 * 36 * 36 * 36 * 36

func benchInfo() history.Info {
	start := time.Unix(0, 0)
	return history.Info{Run: benchRun, Started: start, Ended: start.Add(time.Hour), Mode: "items",
		Server: history.Server{Engine: "mariadb", Version: "10.11"}}
}

// serial makes n transactions of two reads and two updates of rows in a table of the given size, run
// one after the other by 64 sessions, and calls add with each. What it passes is used again.
func serial(n, rows int, add func(*history.Txn) error) error {
	ids := make([]string, rows)
	for i := range ids {
		ids[i] = "k" + strconv.FormatInt(int64(i), 36) + ":0"
	}
	versions := make([]history.Tag, rows)
	stmts := make([]history.Stmt, 4)
	accesses := make([]history.Access, 4)
	for j := range stmts {
		stmts[j] = history.Stmt{Num: uint32(j + 1), Kind: history.Select, Observation: history.Exact, Shape: "SELECT v FROM bench WHERE id = ?"}
		if j%2 == 1 {
			stmts[j].Kind, stmts[j].Shape = history.Update, "UPDATE bench SET v = ? WHERE id = ?"
		}
	}
	x := uint64(88172645463325252)
	for i := range n {
		t := &history.Txn{ID: history.MakeTxnID(benchRun, uint32(i+1)), Session: history.SessionID(i%64 + 1),
			Status: history.Committed, Level: history.Serializable, Start: int64(i), End: int64(i) + 1, Stmts: stmts}
		for j := range stmts {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			r := int(x % uint64(rows))
			accesses[j] = history.Access{Row: history.Row{Table: "app.bench", ID: ids[r]}, Version: versions[r]}
			if j%2 == 1 {
				accesses[j].Op = history.UpdateRow
				versions[r] = history.Tag{Txn: t.ID, Stmt: uint32(j + 1)}
			}
			stmts[j].Accesses = accesses[j : j+1]
		}
		if err := add(t); err != nil {
			return err
		}
	}
	return nil
}

// cpuSeconds is the processor time that the process has used: what the clock says depends on who
// else uses the machine.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

var huge = flag.Bool("huge", false, "BenchmarkAnalyze analyses 10,000,000 transactions, too: some 6 GB of memory")

// BenchmarkAnalyze analyses serial transactions of 4 statements, more and more of them, so that it shows whether the time and
// the memory that each one takes stay the same: in a table of a row for every hundred transactions, and, where memory is
// most in the way, of a row for each.
func BenchmarkAnalyze(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
		if n > 1_000_000 && !*huge {
			continue
		}
		for _, rows := range []int{n / 100, n} {
			b.Run(fmt.Sprintf("txns=%d/rows=%d", n, rows), func(b *testing.B) { benchmarkAnalyze(b, n, rows) })
		}
	}
}

func benchmarkAnalyze(b *testing.B, n, rows int) {
	load := func(history.TxnID, history.SessionID) (*history.Txn, error) { return nil, nil }
	var making time.Duration
	var cpu, peak, live float64
	for b.Loop() {
		begin, burnt := time.Now(), cpuSeconds(b)
		if err := serial(n, rows, func(*history.Txn) error { return nil }); err != nil {
			b.Fatal(err)
		}
		making += time.Since(begin)
		cpu -= 2*cpuSeconds(b) - 2*burnt // it is made once more
		stop := watchHeap()
		a := New(Options{Load: load})
		if err := a.Add(benchInfo()); err != nil {
			b.Fatal(err)
		}
		if err := serial(n, rows, a.AddTxn); err != nil {
			b.Fatal(err)
		}
		r, err := a.Finish()
		if err != nil {
			b.Fatal(err)
		}
		peak = max(peak, stop())
		cpu += cpuSeconds(b) - burnt
		if len(r.Findings) > 0 {
			b.Fatalf("a serial history has findings: %v", names(r))
		}
		live = heapBytes(true)
		runtime.KeepAlive(a)
	}
	b.ReportMetric(float64(n*b.N)/(b.Elapsed()-2*making).Seconds(), "txns/s")
	b.ReportMetric(float64(n*b.N)/cpu, "txns/cpu-s")
	b.ReportMetric(live/float64(n), "live-B/txn")
	b.ReportMetric(peak/float64(n), "peak-B/txn")
}

// heapBytes gives the size of the objects in the heap, dead ones included unless they are collected first.
func heapBytes(collect bool) float64 {
	if collect {
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// watchHeap looks at the heap all the time until the function that it gives is called, which gives by how many bytes it
// had grown at most.
func watchHeap() (stop func() float64) {
	before, done, most := heapBytes(true), make(chan struct{}), make(chan float64)
	go func() {
		peak := before
		for {
			select {
			case <-done:
				most <- peak - before
				return
			case <-time.After(time.Millisecond):
				peak = max(peak, heapBytes(false))
			}
		}
	}()
	return func() float64 { close(done); return <-most }
}
