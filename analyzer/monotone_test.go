package analyzer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// A kindOf is a class and a phenomenon.
type kindOf struct {
	class      Class
	phenomenon Anomaly
}

// anything stands for all anomalies.
const anything Anomaly = ""

// totals counts what a result tells of each phenomenon, its cases and all that is of a graver class included.
func totals(r *Result) map[kindOf]int {
	sum := make(map[kindOf]int)
	count := func(class Class, name Anomaly, n int) {
		for _, p := range slices.Concat(cyclicPhenomena, variants(), []Anomaly{G1a, G1b, GarbageRead, LostWrite, G2, anything}) {
			if !name.Is(p) && p != anything {
				continue
			}
			sum[kindOf{class, p}] += n
			if class == Violation {
				sum[kindOf{Hazard, p}] += n
			}
		}
	}
	for _, f := range r.Findings {
		count(f.Class, f.Anomaly, f.Count)
		for _, c := range f.Covers {
			count(c.Class, c.Anomaly, c.Count)
		}
	}
	return sum
}

// closed reports whether no transaction among the first n names a version of a later one.
func closed(h []*history.Txn, n int) bool {
	later := make(map[history.TxnID]bool)
	for _, txn := range h[n:] {
		later[txn.ID] = true
	}
	return !slices.ContainsFunc(h[:n], func(txn *history.Txn) bool {
		return slices.ContainsFunc(txn.Stmts, func(s history.Stmt) bool {
			return slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
				return later[a.Version.Txn] || slices.ContainsFunc(a.Prior, func(t history.Tag) bool { return later[t.Txn] })
			})
		})
	})
}

// growing is a history whose prefixes are compared.
func growing(rng *rand.Rand) (history.Info, []*history.Txn) {
	if rng.IntN(2) == 0 {
		h := histgen.Stale(20+rng.IntN(200), 3+rng.IntN(40), 1+rng.IntN(8), 20+rng.IntN(200))
		return histgen.LoadInfo(), h
	}
	c := histgen.Random(rng)
	c.Txns, c.Open = 5+rng.IntN(40), 2+rng.IntN(3)
	h := histgen.Generate(rng, c)
	spread(rng, h)
	inSessions(h)
	return c.Info(), h
}

// A longer history tells no fewer anomalies of a kind: each is a finding, or is counted by the one that covers it.
func TestLongerHistoryNeverTellsLess(t *testing.T) {
	n := *histories / 60
	if testing.Short() {
		n /= 10
	}
	compared := 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		info, h := growing(rng)
		info.Ended = time.Time{} // no prefix is recorded to its end
		slices.SortStableFunc(h, func(x, y *history.Txn) int { return cmp.Compare(x.End, y.End) })
		before, at := map[kindOf]int{}, 0
		for k := 1; k <= len(h); k += 1 + rng.IntN(1+len(h)/8) {
			if !closed(h, k) {
				continue
			}
			now := totals(analyze(t, info, h[:k]))
			for kind, count := range before {
				if now[kind] == 0 && count > 0 && (kind.class == Violation || now[kindOf{Violation, anything}] == 0) {
					t.Errorf("history %d: %d transactions have %d %s %s, %d have %d", seed, at, count, kind.class,
						kind.phenomenon, k, now[kind])
				}
			}
			before, at = now, k
			compared += len(now)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared: the generator is too tame")
	}
}
