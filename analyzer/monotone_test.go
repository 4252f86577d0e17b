package analyzer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
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

// exactly counts the findings by name, and what they cover.
func exactly(r *Result) map[kindOf]int {
	sum := make(map[kindOf]int)
	count := func(class Class, name Anomaly, n int) {
		sum[kindOf{class, name}] += n
		if class == Violation {
			sum[kindOf{Hazard, name}] += n
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

// counted reports whether each anomaly of the kind counts, however many others there are: those with one rw at most
// that go by dependencies alone. Of others there may be fewer when a shorter cycle explains some of these.
func (k kindOf) counted() bool {
	several := []Anomaly{anything, GNonadjacent, G2Item, G2}
	return !k.phenomenon.variant() && !slices.Contains(several, k.phenomenon)
}

// A longer history tells no kind of anomalies less: each is a finding, or is counted by the one that covers it.
// Hazards of a kind may be told as violations.
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
		before, named, at := map[kindOf]int{}, map[kindOf]int{}, 0
		for k := 1; k <= len(h); k += 1 + rng.IntN(1+len(h)/8) {
			if !closed(h, k) {
				continue
			}
			r := analyze(t, info, h[:k])
			now, names := totals(r), exactly(r)
			for kind, count := range before {
				vanished := now[kind] == 0 && count > 0 && (kind.class == Violation || now[kindOf{Violation, anything}] == 0)
				if vanished || kind.counted() && now[kind] < count {
					t.Errorf("history %d: %d transactions have %d %s %s, %d have %d", seed, at, count, kind.class,
						kind.phenomenon, k, now[kind])
				}
			}
			for kind, count := range named {
				says := (&group{class: kind.class, anomaly: kind.phenomenon}).passedOver() && r.Anomalies() > 1
				if names[kind] < count && !says {
					t.Errorf("history %d: %d transactions have %d of the %s %s, %d have %d, and the report does not say why",
						seed, at, count, kind.class, kind.phenomenon, k, names[kind])
				}
			}
			before, named, at = now, names, k
			compared += len(now)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared: the generator is too tame")
	}
}

// A violation of several rw that explains the rw of a hazard counts the hazard.
func TestViolationCountsHazardsThatItExplains(t *testing.T) {
	r := expect(t, scriptInfo(), `
T1 committed SR | r x 0 | r z T3.2 | u y 0
T2 committed SR | r y 0 | u x 0
T3 committed RU | r x T2.2 | u z 0`, "violation write skew")
	if want := []Covered{{Hazard, GSingle, 1}}; len(r.Findings) != 1 || !slices.Equal(r.Findings[0].Covers, want) {
		t.Errorf("findings %v, want one that covers %v", names(r), want)
	}
}

// Of a serial history with stale reads the one violation that needs no order of sessions hides none that do.
func TestViolationWithoutOrdersHidesNone(t *testing.T) {
	sizes := []int{5_000, 35_000, 36_500}
	if testing.Short() {
		sizes = []int{5_000, 20_000}
	}
	before := map[kindOf]int{}
	for _, n := range sizes {
		r := analyze(t, histgen.LoadInfo(), histgen.Stale(n, 10_000, 8, 20))
		now := totals(r)
		if now[kindOf{Violation, anything}] == 0 {
			t.Errorf("%d transactions have no violation: %v", n, names(r))
		}
		for kind, count := range before {
			if kind.class == Violation && now[kind] < count {
				t.Errorf("%d transactions have %d %s, fewer had %d: %v", n, now[kind], kind.phenomenon, count, names(r))
			}
		}
		before = now
	}
}

// The work on each dependency does not grow with the number of transactions with stale reads: with it the dependencies
// of each grow until all of the rows have been written, and then no more.
func TestStaleReadsTakeLinearWork(t *testing.T) {
	sizes := []int{5_000, 20_000}
	var least float64
	for _, n := range sizes {
		a := New(Options{})
		if err := a.Add(histgen.LoadInfo()); err != nil {
			t.Fatal(err)
		}
		for _, txn := range histgen.Stale(n, 10_000, 8, 20) {
			if err := a.AddTxn(txn); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Finish(); err != nil {
			t.Fatal(err)
		}
		each := float64(a.steps) / float64(a.edges)
		t.Logf("%d transactions have %d dependencies on cycles, each of which is looked at %.1f times", n, a.edges, each)
		if least == 0 {
			least = each
		}
		if each > 3*least {
			t.Errorf("of %d transactions each dependency is looked at %.1f times, of %d %.1f times", n, each, sizes[0], least)
		}
	}
}

func BenchmarkStaleReads(b *testing.B) {
	for _, n := range []int{20_000, 40_000, 80_000, 160_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			h := histgen.Stale(n, 10_000, 8, 20)
			for b.Loop() {
				if _, err := Analyze([]history.Info{histgen.LoadInfo()}, h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
