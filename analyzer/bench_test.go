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

// A load makes transactions of two reads and two updates of rows in a table, run one after the other by 64 sessions.
type load struct {
	made     uint32
	random   uint64
	versions []history.Tag // by row
	batch    []history.Txn
	stmts    []history.Stmt
	accesses []history.Access
	ids      []byte
	ends     []int // of the ids
}

// batchTxns is how many transactions a load makes at a time, as who reads them from a disk does.
const batchTxns = 256

func newLoad(rows int) *load {
	l := &load{random: 88172645463325252, versions: make([]history.Tag, rows), batch: make([]history.Txn, batchTxns),
		stmts: make([]history.Stmt, 4*batchTxns), accesses: make([]history.Access, 4*batchTxns)}
	for i := range l.stmts {
		s := history.Stmt{Num: uint32(i%4 + 1), Kind: history.Select, Observation: history.Exact, Shape: "SELECT v FROM bench WHERE id = ?"}
		if i%2 == 1 {
			s.Kind, s.Shape = history.Update, "UPDATE bench SET v = ? WHERE id = ?"
		}
		s.Accesses = l.accesses[i : i+1]
		l.stmts[i] = s
	}
	return l
}

// next makes up to n transactions. Their memory is used again.
func (l *load) next(n int) []history.Txn {
	txns := l.batch[:min(n, len(l.batch))]
	l.ids, l.ends = l.ids[:0], l.ends[:0]
	for i := range txns {
		l.made++
		txns[i] = history.Txn{ID: history.MakeTxnID(benchRun, l.made), Session: history.SessionID(l.made%64 + 1),
			Status: history.Committed, Level: history.Serializable, Start: int64(l.made) - 1, End: int64(l.made), Stmts: l.stmts[4*i : 4*i+4]}
		for j := range 4 {
			l.access(&l.accesses[4*i+j], history.Tag{Txn: txns[i].ID, Stmt: uint32(j + 1)})
		}
	}
	ids, begin := string(l.ids), 0
	for i, end := range l.ends {
		l.accesses[i].Row.ID = ids[begin:end]
		begin = end
	}
	return txns
}

// access makes the access of a statement, whose versions would have the given tag.
func (l *load) access(a *history.Access, own history.Tag) {
	l.random ^= l.random << 13
	l.random ^= l.random >> 7
	l.random ^= l.random << 17
	row := l.random % uint64(len(l.versions))
	l.ids = append(strconv.AppendUint(append(l.ids, 'k'), row, 36), ":0"...)
	l.ends = append(l.ends, len(l.ids))
	*a = history.Access{Row: history.Row{Table: "app.bench"}, Version: l.versions[row]}
	if own.Stmt%2 == 0 {
		a.Op = history.UpdateRow
		l.versions[row] = own
	}
}

// serial makes n transactions of a load in a table of the given size, and calls add with each. What it passes is used again.
func serial(n, rows int, add func(*history.Txn) error) error {
	for l := newLoad(rows); int(l.made) < n; {
		txns := l.next(n - int(l.made))
		for i := range txns {
			if err := add(&txns[i]); err != nil {
				return err
			}
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
	var cpu, peak, live float64
	for b.Loop() {
		l := newLoad(rows)
		stop := watchHeap()
		begin := cpuSeconds(b)
		a := New(Options{Load: load})
		if err := a.Add(benchInfo()); err != nil {
			b.Fatal(err)
		}
		a.Grow(n)
		for int(l.made) < n {
			making := cpuSeconds(b)
			txns := l.next(n - int(l.made))
			cpu -= cpuSeconds(b) - making
			for i := range txns {
				if err := a.AddTxn(&txns[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
		r, err := a.Finish()
		if err != nil {
			b.Fatal(err)
		}
		cpu += cpuSeconds(b) - begin
		peak = max(peak, stop())
		if len(r.Findings) > 0 {
			b.Fatalf("a serial history has findings: %v", names(r))
		}
		live = heapBytes(true) - float64(len(l.versions))*16
		runtime.KeepAlive(a)
		runtime.KeepAlive(l)
	}
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
