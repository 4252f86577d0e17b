package monitor

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// stream is a history with findings in it.
func stream(t *testing.T) (history.Info, []*history.Txn, *analyzer.Result) {
	t.Helper()
	c := histgen.Config{Engine: histgen.ReadCommitted, Txns: 300, Rows: 5, Ops: 4, Open: 3}
	txns := histgen.Generate(rand.New(rand.NewPCG(1, 2)), c)
	// That is the order in which a recording is read: of two names for a mishap, the first that is seen counts.
	slices.SortFunc(txns, func(x, y *history.Txn) int {
		return cmp.Or(cmp.Compare(x.Session, y.Session), cmp.Compare(x.Start, y.Start))
	})
	want, err := analyzer.Analyze([]history.Info{c.Info()}, txns)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Findings) < 2 {
		t.Fatalf("the history has %d findings", len(want.Findings))
	}
	return c.Info(), txns, want
}

func TestWatchTellsWhatTheAnalysisFinds(t *testing.T) {
	info, txns, want := stream(t)
	ctx := t.Context()
	told := make(map[string]int)
	m := Start(Options{Tell: func(news []analyzer.News) {
		for _, n := range news {
			told[n.Finding.ID] = n.Finding.Count
		}
	}})
	running := info
	running.Ended = time.Time{}
	if err := m.Run(ctx, running); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for part := range slices.Chunk(txns, 100) {
		clients.Go(func() {
			for _, txn := range part {
				if err := m.Txn(ctx, txn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	if err := m.Run(ctx, info); err != nil {
		t.Fatal(err)
	}
	got, err := m.Close()
	if err != nil {
		t.Fatal(err)
	}
	counts := m.Counts()
	for _, f := range want.Findings {
		if i := slices.IndexFunc(got.Findings, func(g *analyzer.Finding) bool { return g.ID == f.ID }); i < 0 ||
			got.Findings[i].Count != f.Count {
			t.Errorf("%s x%d is missing", f.Anomaly, f.Count)
		}
		if told[f.ID] == 0 && f.Patterns == 1 || counts[Kind{f.Anomaly, f.Class}] == 0 {
			t.Errorf("%s was not told: %v, %v", f.Anomaly, told, counts)
		}
	}
	if s := m.Stats(); s.Cut > 0 {
		t.Errorf("%d transactions were cut", s.Cut)
	}
}

func TestWatchSaysWhatItCannotTake(t *testing.T) {
	m := Start(Options{})
	txn := &history.Txn{ID: history.MakeTxnID(runA, 1)}
	for range 2 {
		if err := m.Txn(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	<-m.done
	if err := m.Txn(t.Context(), txn); err == nil {
		t.Error("a watch that failed takes transactions")
	}
	if _, err := m.Close(); err == nil {
		t.Error("a watch that failed has a result")
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	m := &Monitor{queue: make(chan item), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Txn(ctx, &history.Txn{}); err == nil {
		t.Error("nothing took the transaction, and nothing was said")
	}
}
