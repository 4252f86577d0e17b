package analyzer

import (
	"fmt"
	"runtime"
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

// BenchmarkAnalyze analyses 1,000,000 serial transactions of 4 statements.
func BenchmarkAnalyze(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { benchmarkAnalyze(b, 1_000_000, rows) })
	}
}

func benchmarkAnalyze(b *testing.B, n, rows int) {
	b.ReportAllocs()
	load := func(history.TxnID, history.SessionID) (*history.Txn, error) { return nil, nil }
	var making time.Duration
	var cpu float64
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		begin, burntBefore := time.Now(), cpuSeconds(b)
		if err := serial(n, rows, func(*history.Txn) error { return nil }); err != nil {
			b.Fatal(err)
		}
		making += time.Since(begin)
		cpu -= cpuSeconds(b) - burntBefore
		burnt := cpuSeconds(b)
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
		cpu += cpuSeconds(b) - burnt
		if len(r.Findings) > 0 {
			b.Fatalf("a serial history has findings: %v", names(r))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(a)
	}
	b.ReportMetric(float64(n*b.N)/(b.Elapsed()-making).Seconds(), "txns/s")
	b.ReportMetric(float64(n*b.N)/cpu, "txns/cpu-s")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "live-B/txn")
}
