package e2e

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/truth"
	"github.com/isotap/isotap/recorder"
)

// partsOf returns what the analysis of n random parts of a recording tells: of short stretches of time, as if nothing
// else had been recorded, and first of all of it. Edges are the dependencies in them.
func partsOf(t *testing.T, dir string, rng *rand.Rand, n int) (found []*analyzer.Finding, edges []analyzer.Edge) {
	t.Helper()
	var keys []recorder.TxnKey
	var ends []int64
	for _, x := range transactions(t, dir) {
		keys, ends = append(keys, recorder.TxnKey{ID: x.ID, Session: x.Session}), append(ends, x.End)
	}
	if len(ends) == 0 {
		return nil, nil
	}
	const lag = int64(20 * time.Millisecond)
	first, last := slices.Min(ends), slices.Max(ends)
	for k := range n {
		p := analysis.Part{From: first + rng.Int64N(last-first+1)}
		p.To = p.From + (last-first)/int64(2+rng.IntN(6))
		if k == 0 {
			p.From, p.To = first, last
		}
		p.LogFrom, p.LogTo = p.From+lag, p.To-lag
		p.Run = keys[0].ID.Run()
		for i, end := range ends {
			if end >= p.From && end <= p.To {
				p.Txns = append(p.Txns, keys[i])
			}
		}
		r, err := recorder.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		result, all, err := analysis.PartDependencies(t.Context(), r, dir, p, analyzer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		edges = append(edges, all...)
		found = append(found, analysis.KnownLater(result)...)
	}
	return found, edges
}

func transactions(t *testing.T, dir string) (all []*history.Txn) {
	t.Helper()
	r, err := recorder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for x, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// holdParts holds what is found in parts of the recording against the log.
func (r *tokenRun) holdParts(dir string) {
	r.t.Helper()
	found, _ := partsOf(r.t, dir, rand.New(rand.NewPCG(uint64(len(r.recorded)), 7)), 12)
	verdicts := make(map[truth.Verdict]int)
	for _, f := range found {
		if f.Class == analyzer.Violation || r.serializable && !slices.ContainsFunc(f.Witness, beganAgain) {
			r.t.Errorf("%s: a part: %s %s: %v%s", r.told, f.Class, f.Anomaly, f.Explanation, transactionsOf(f))
		}
		for i := range f.Witness {
			r.holdEdge(&f.Witness[i], "a finding in a part", verdicts)
		}
	}
	r.t.Logf("%s: %d findings in parts, dependencies %v", r.told, len(found), verdicts)
}

// holdParts holds what is found in parts of the recording against what the snapshots lack.
func (m *choosers) holdParts(t *testing.T, recording string) {
	t.Helper()
	byID := make(map[history.TxnID]*choosing)
	for _, x := range transactions(t, recording) {
		byID[x.ID] = m.txns[markOf(x)]
	}
	anti, gone := 0, 0
	found, _ := partsOf(t, recording, rand.New(rand.NewPCG(uint64(len(byID)), 7)), 20)
	for _, f := range found {
		for i := range f.Witness {
			e := &f.Witness[i]
			from, to := byID[e.From.ID], byID[e.To.ID]
			switch {
			case !strings.HasSuffix(e.Row.Table, ".item"):
			case e.Kind == analyzer.RW:
				if anti++; from == nil || to == nil || from.shows(to) {
					t.Errorf("a part: %s is said to have come before %s, whose writes its snapshot shows", e.From.ID, e.To.ID)
				}
			case e.Kind == analyzer.WR && e.NotFound && !e.Current:
				if gone++; from == nil || to == nil || !to.shows(from) {
					t.Errorf("a part: %s is said to have missed what %s took away", e.To.ID, e.From.ID)
				}
			}
		}
	}
	t.Logf("in parts %d anti-dependencies, %d dependencies on who took rows away", anti, gone)
}
