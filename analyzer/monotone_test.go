package analyzer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
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

// counted reports whether each anomaly of the kind counts, however many others there are: violations with one rw at
// most that go by dependencies alone. Of others there may be fewer when a shorter cycle explains some of these.
func (k kindOf) counted() bool {
	several := []Anomaly{anything, GNonadjacent, G2Item, G2}
	return k.class == Violation && !k.phenomenon.variant() && !slices.Contains(several, k.phenomenon)
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
		before, at := map[kindOf]int{}, 0
		for k := 1; k <= len(h); k += 1 + rng.IntN(1+len(h)/8) {
			if !closed(h, k) {
				continue
			}
			now := totals(analyze(t, info, h[:k]))
			for kind, count := range before {
				vanished := now[kind] == 0 && count > 0 && (kind.class == Violation || now[kindOf{Violation, anything}] == 0)
				if vanished || kind.counted() && now[kind] < count {
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

// Of a serial history with stale reads the one violation that needs no order of sessions hides none that do.
func TestViolationWithoutOrdersHidesNone(t *testing.T) {
	sizes := []int{5_000, 20_000, 35_000, 36_500}
	if testing.Short() {
		sizes = sizes[:3]
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

// Four times as many transactions with stale reads take about four times the time of processors.
func TestStaleReadsTakeLinearTime(t *testing.T) {
	few, many := 20_000, 80_000
	if testing.Short() {
		few, many = 5_000, 20_000
	}
	analyze(t, histgen.LoadInfo(), histgen.Stale(few, 10_000, 8, 20)) // what is done once only
	short, long := userTime(t, few), userTime(t, many)
	t.Logf("%d transactions in %v, %d in %v", few, short, many, long)
	if long > 3*time.Duration(many/few)*short+time.Second {
		t.Errorf("%d transactions take %v, and %d take %v", few, short, many, long)
	}
}

// userTime is the time of processors that the analysis of so many transactions takes.
func userTime(t *testing.T, n int) time.Duration {
	t.Helper()
	h := histgen.Stale(n, 10_000, 8, 20)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano())
	}
	at := used()
	analyze(t, histgen.LoadInfo(), h)
	return used() - at
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
