package tap

import (
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

var disk = flag.Int("disk", 1_000_000, "BenchmarkAnalyzeRecording analyses recordings of so many transactions")

// BenchmarkAnalyzeRecording analyses recordings of transactions of 4 statements, run one after the other by 64 sessions: every
// thousandth loses an update. They go over a table of a row for every hundred of them, and of a row for each.
func BenchmarkAnalyzeRecording(b *testing.B) {
	for _, rows := range []int{*disk / 100, *disk} {
		b.Run(fmt.Sprintf("txns=%d/rows=%d", *disk, rows), func(b *testing.B) { benchmarkRecording(b, *disk, rows) })
	}
}

func benchmarkRecording(b *testing.B, n, rows int) {
	dir := filepath.Join(b.TempDir(), "recording")
	recordSerial(b, dir, n, rows)
	var before, peak runtime.MemStats
	var cpu float64
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		begin := cpuSeconds(b)
		r, err := Analyze(b.Context(), []string{dir}, analyzer.Options{})
		if err != nil {
			b.Fatal(err)
		}
		cpu += cpuSeconds(b) - begin
		runtime.ReadMemStats(&peak)
		if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.LostUpdate {
			b.Fatalf("%d findings, want one lost update", len(r.Findings))
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "txns/s")
	b.ReportMetric(float64(n*b.N)/cpu, "txns/cpu-s")
	b.ReportMetric(float64(peak.HeapSys-peak.HeapReleased)/float64(n), "heap-B/txn")
}

// cpuSeconds is the processor time that the process has used.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func recordSerial(b *testing.B, dir string, n, rows int) {
	b.Helper()
	start := time.Unix(0, 0)
	w, err := recorder.Create(dir, history.Info{Started: start, Mode: "items", Server: history.Server{Engine: "mariadb", Version: "10.11"}}, recorder.Options{})
	if err != nil {
		b.Fatal(err)
	}
	versions := make([]history.Tag, rows)
	var latest int
	var replaced history.Tag
	x := uint64(88172645463325252)
	for i := range n {
		t := &history.Txn{ID: history.MakeTxnID(w.Run(), uint32(i+1)), Session: history.SessionID(i%64 + 1),
			Status: history.Committed, Level: history.RepeatableRead, Start: int64(i), End: int64(i) + 1}
		for j := range 4 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			r := int(x % uint64(len(versions)))
			planted := i%1000 == 999
			if planted && r == latest || versions[r].Txn == t.ID {
				r = (r + 1) % rows // what is planted has its row for itself, and no version is intermediate
			}
			version := versions[r]
			if planted && j >= 2 {
				// It reads the row that the transaction before it wrote, as it was before, and overwrites it.
				r = latest
				if version = versions[r]; j == 2 {
					version = replaced
				}
			}
			a := history.Access{Row: history.Row{Table: "app.bench", ID: strconv.FormatUint(1<<56|uint64(r), 16)}, Version: version}
			s := history.Stmt{Num: uint32(j + 1), Kind: history.Select, Observation: history.Exact, Shape: "SELECT v FROM bench WHERE id = ?", Args: []string{fmt.Sprint(r)}}
			if j%2 == 1 {
				s.Kind, s.Shape, s.Args, s.Affected = history.Update, "UPDATE bench SET v = ? WHERE id = ?", []string{"5", fmt.Sprint(r)}, 1
				a.Op = history.UpdateRow
				if j == 3 {
					latest, replaced = r, versions[r]
				}
				versions[r] = history.Tag{Txn: t.ID, Stmt: s.Num}
			}
			s.Accesses = []history.Access{a}
			t.Stmts = append(t.Stmts, s)
		}
		if err := w.Txn(b.Context(), t); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
