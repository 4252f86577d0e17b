package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/truth"
)

// A liveWatch keeps what the live analysis tells while isotap runs. It looks often and remembers little, so that what
// is let go is missed as much as can be.
type liveWatch struct {
	mu   sync.Mutex
	told []*analyzer.Finding
}

// set has what isotap records watched.
func (w *liveWatch) set(o *proxyserver.Options) {
	o.Watch = &monitor.Options{LiveOptions: analyzer.LiveOptions{Window: 20 * time.Millisecond, Patience: 50 * time.Millisecond},
		Every: 20 * time.Millisecond, Tell: w.tell}
}

func (w *liveWatch) tell(news []analyzer.News) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range news {
		w.told = append(w.told, n.Finding)
	}
}

// findings returns what was told while isotap ran, and what its result has.
func (w *liveWatch) findings(watched *analyzer.Result) []*analyzer.Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(w.told, watched.Findings)
}

// holdWatched sees that nothing the live analysis told blames a server that keeps its word.
func (w *liveWatch) holdWatched(t *testing.T, watched *analyzer.Result, serializable bool) {
	t.Helper()
	if watched == nil {
		t.Fatal("nobody watched")
	}
	for _, f := range w.findings(watched) {
		if f.Class == analyzer.Violation || serializable && !slices.ContainsFunc(f.Witness, beganAgain) {
			t.Errorf("live: %s %s: %v%s", f.Class, f.Anomaly, f.Explanation, transactionsOf(f))
		}
	}
}

// holdWatched holds what the live analysis told against the log.
func (r *tokenRun) holdWatched(w *liveWatch, watched *analyzer.Result) {
	r.t.Helper()
	w.holdWatched(r.t, watched, r.serializable)
	verdicts := make(map[truth.Verdict]int)
	for _, f := range w.findings(watched) {
		for i := range f.Witness {
			r.holdEdge(&f.Witness[i], "a live finding", verdicts)
		}
	}
	r.t.Logf("%s: %d times findings were told live, dependencies %v", r.told, len(w.told), verdicts)
}
