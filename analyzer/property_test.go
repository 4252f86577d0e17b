package analyzer

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
	"github.com/isotap/isotap/internal/histgen"
)

var (
	histories    = flag.Int("histories", 14_000, "random histories per property test")
	firstHistory = flag.Int("first-history", 0, "the number of the first of them, which is its seed")
)

// A generated history is how it came about, and what its statements saw that chose rows by predicates: in every third
// one there are some.
type generated struct {
	histgen.Config
	reads []bruteforce.PredicateRead
}

// forRandomHistories runs check on random histories. The seed of a failing one is its number.
func forRandomHistories(t *testing.T, share int, check func(t *testing.T, rng *rand.Rand, c generated,
	h []*history.Txn)) {
	n := *histories / share
	if testing.Short() {
		n /= 5
	}
	for seed := *firstHistory; seed < *firstHistory+n; seed++ {
		randomHistory(t, seed, check)
	}
}

// randomHistory runs check on the random history of a number.
func randomHistory(t *testing.T, seed int, check func(t *testing.T, rng *rand.Rand, c generated, h []*history.Txn)) {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	c := generated{Config: histgen.Random(rng)}
	var h []*history.Txn
	if seed%3 < 2 {
		h = histgen.Generate(rng, c.Config)
	} else {
		h, c.reads = histgen.GenerateWithPredicates(rng, c.Config)
	}
	check(t, rng, c, h)
	if t.Failed() {
		t.Fatalf("history %d (%+v):\n%s", seed, c.Config, dump(h))
	}
}

func analyze(t *testing.T, info history.Info, h []*history.Txn) *Result {
	t.Helper()
	r, err := Analyze([]history.Info{info}, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dump(h []*history.Txn) string {
	text := ""
	for _, txn := range h {
		text += fmt.Sprintf("%s %s %s\n", txn.ID, txn.Status, txn.Level)
		for _, s := range txn.Stmts {
			a, _ := json.Marshal(s.Accesses)
			text += fmt.Sprintf("  %d %s %s void=%v %s\n", s.Num, s.Kind, s.Locking, s.Void, a)
		}
	}
	return text
}

// withoutOrders leaves out what only the order of sessions, of time or of snapshots makes a finding.
func withoutOrders(findings []*Finding) []*Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f *Finding) bool {
		return f.Anomaly.variant() || f.Anomaly == GSIa
	})
}

func names(r *Result) []string {
	var found []string
	for _, f := range r.Findings {
		found = append(found, fmt.Sprintf("%s %s", f.Class, f.Anomaly))
	}
	return found
}

func TestFindsSomethingExactlyWhereNoSerialOrderExists(t *testing.T) {
	counts := make(map[Anomaly]int)
	serializable := 0
	forRandomHistories(t, 1, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		r := analyze(t, c.Info(), h)
		want := bruteforce.Serializable(h, c.reads...)
		if want != (len(withoutOrders(r.Findings)) == 0) {
			t.Errorf("serializable: %v, findings: %v", want, names(r))
		}
		if want {
			serializable++
		}
		for _, f := range r.Findings {
			counts[f.Anomaly]++
		}
	})
	t.Logf("%d serializable; findings: %v", serializable, counts)
	wantAll(t, counts, G0, G1a, G1b, G1c, GSingle, GNonadjacent, G2Item, LostUpdate, NonRepeatableRead, ReadSkew,
		ReadWriteSkew,
		WriteSkew, DirtyUpdate, LostWrite, Phantom, PMP, PhantomNonadjacent, PhantomSkew, G2)
}

// wantAll checks that a test has seen each anomaly; a short one cannot.
func wantAll(t *testing.T, counts map[Anomaly]int, anomalies ...Anomaly) {
	t.Helper()
	for _, a := range anomalies {
		if counts[a] == 0 && !testing.Short() {
			t.Errorf("no history had a %s: the generator is too tame", a)
		}
	}
}

// TestFindsG0OrG1UnlessPL2: finds G0 or G1 exactly where history is not PL2.
func TestFindsG0OrG1UnlessPL2(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	forRandomHistories(t, 4, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		r := analyze(t, c.Info(), h)
		dirty := slices.ContainsFunc(r.Findings, func(f *Finding) bool {
			return slices.Contains([]Anomaly{G0, G1a, G1b, G1c, LostWrite, IncompatibleOrder}, f.Anomaly.base())
		})
		if want := bruteforce.ReadCommitted(h, c.reads...); want == dirty {
			t.Errorf("PL-2: %v, findings: %v", want, names(r))
		}
	})
}

// Where nothing but adjacent anti-dependencies is found, and there alone, is a history snapshot
// isolated. (A violation of G2-item, at mixed levels, explains what a hazard would be found by.)
func TestFindsOnlyG2ItemUnderSnapshotIsolation(t *testing.T) {
	isolated, others := 0, 0
	forRandomHistories(t, 4, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		r := analyze(t, c.Info(), h)
		findings := withoutOrders(r.Findings)
		if len(findings) == 0 {
			return
		}
		only, violated := true, false
		for _, f := range findings {
			only = only && f.Anomaly.base() == G2Item
			violated = violated || f.Anomaly.base() == G2Item && f.Class == Violation
		}
		want := bruteforce.SnapshotIsolation(h, c.reads...)
		if want != only && (want || !violated) {
			t.Errorf("snapshot isolated: %v, but %v", want, names(r))
		}
		if want {
			isolated++
		} else {
			others++
		}
	})
	if !testing.Short() && (isolated == 0 || others == 0) {
		t.Errorf("%d histories with findings were snapshot isolated and %d not: the generator is too tame", isolated,
			others)
	}
}

// The verdict on each level is that of its definition, tried in every order.
func TestVerdictIsThatOfBruteForce(t *testing.T) {
	type decision = func([]*history.Txn, ...bruteforce.PredicateRead) bool
	levels := map[string]decision{
		"PL-2+": consistentView,
		"PL-2":  bruteforce.ReadCommitted, "RA": bruteforce.ReadAtomic, "SI": bruteforce.SnapshotIsolation,
		"PL-2.99": bruteforce.RepeatableRead, "PL-3": bruteforce.Serializable,
	}
	for prefix, order := range map[string]bruteforce.Order{"strong session ": bruteforce.BySession,
		"strong ": bruteforce.ByTime} {
		levels[prefix+"PL-3"] = func(h []*history.Txn, reads ...bruteforce.PredicateRead) bool {
			return bruteforce.SerializableIn(h, order, reads...)
		}
		levels[prefix+"SI"] = func(h []*history.Txn, reads ...bruteforce.PredicateRead) bool {
			return bruteforce.SnapshotIsolationIn(h, order, reads...)
		}
	}
	levels["PL-SS"] = levels["strong PL-3"]
	delete(levels, "strong PL-3")
	kept, broken := make(map[string]int), make(map[string]int)
	forRandomHistories(t, 1, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		r := analyze(t, c.Info(), h)
		for level, holds := range levels {
			want := holds(h, c.reads...)
			if got := slices.Contains(r.Levels.Satisfied, level); got != want {
				t.Errorf("%s: %v, by brute force %v; violated %v, findings %v", level, got, want,
					r.Levels.Violated, names(r))
			}
			if want {
				kept[level]++
			} else {
				broken[level]++
			}
		}
	})
	t.Logf("kept %v, broken %v", kept, broken)
	for level := range levels {
		if !testing.Short() && (kept[level] == 0 || broken[level] == 0) {
			t.Errorf("%s was kept %d times and broken %d times: the generator is too tame",
				level, kept[level], broken[level])
		}
	}
}

// consistentView reports whether a history is read committed and its graph has no cycle with one rw.
func consistentView(h []*history.Txn, reads ...bruteforce.PredicateRead) bool {
	graph, ok := bruteforce.Graph(h, reads...)
	return ok && bruteforce.ReadCommitted(h, reads...) && !bruteforce.CyclesOf(graph).GSingle
}

func TestEngineThatKeepsItsPromisesHasNoViolation(t *testing.T) {
	hazards := make(map[histgen.Engine]int)
	forRandomHistories(t, 2, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		if c.Engine == histgen.Broken {
			return
		}
		r := analyze(t, c.Info(), h)
		for _, f := range r.Findings {
			if f.Class == Violation {
				t.Errorf("%v: %s", names(r), f.Rule)
			}
			hazards[c.Engine]++
		}
	})
	for _, e := range []histgen.Engine{histgen.Snapshot, histgen.RepeatableRead, histgen.ReadCommitted,
		histgen.ReadUncommitted} {
		if hazards[e] == 0 && !testing.Short() {
			t.Errorf("engine %d never had a hazard", e)
		}
	}
	if hazards[histgen.Serial]+hazards[histgen.Locking] > 0 {
		t.Errorf("serializable engines had hazards: %v", hazards)
	}
}

// blur makes a history worse observed: lists are cut or left out, captures are missing, statements
// name wrong versions and say that they are inexact, the ends of transactions are not known. In a
// broken store others may see what a transaction wrote that then aborted, so that its end stays known.
func blur(rng *rand.Rand, c generated, h []*history.Txn) {
	for _, txn := range h {
		if rng.IntN(6) == 0 && (c.Engine != histgen.Broken || txn.Status == history.Committed) {
			txn.Status = history.Indeterminate
		}
		for i := range txn.Stmts {
			s := &txn.Stmts[i]
			s.Accesses = slices.Clone(s.Accesses)
			for j := range s.Accesses {
				blurAccess(rng, h, &s.Accesses[j])
			}
			s.Accesses = slices.DeleteFunc(s.Accesses, func(history.Access) bool { return rng.IntN(10) == 0 })
		}
	}
}

func blurAccess(rng *rand.Rand, h []*history.Txn, a *history.Access) {
	switch rng.IntN(4) {
	case 0:
		a.Prior = nil
	case 1:
		a.Prior = a.Prior[rng.IntN(len(a.Prior)+1):]
	}
	if rng.IntN(8) > 0 {
		return
	}
	a.Inexact = true
	if rng.IntN(2) == 0 {
		other := h[rng.IntN(len(h))]
		a.Version = history.Tag{Txn: other.ID, Stmt: uint32(1 + rng.IntN(6))}
		a.Prior = append(slices.Clone(a.Prior), history.Tag{Txn: h[rng.IntN(len(h))].ID, Stmt: 1})
	}
}

func TestRaisesNoFalseAlarmHoweverBadlyObserved(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	forRandomHistories(t, 1, func(t *testing.T, rng *rand.Rand, c generated, h []*history.Txn) {
		if !bruteforce.SerializableIn(h, bruteforce.ByTime, c.reads...) {
			return
		}
		ordered := c.Engine != histgen.Broken ||
			bruteforce.StartOrdered(h, bruteforce.ByTime, startsBeforeCommit, c.reads...)
		blur(rng, c, h)
		info := c.Info()
		if rng.IntN(2) == 0 {
			h = h[1:]
			info.Ended = info.Started
		}
		r := analyze(t, info, h)
		if !ordered {
			r.Findings = slices.DeleteFunc(r.Findings, func(f *Finding) bool { return f.Anomaly == GSIa })
		}
		if len(r.Findings) > 0 {
			t.Errorf("serializable, but %v: %v", names(r), r.Findings[0].Explanation)
		}
	})
}

// The verdict on the levels that axioms define is that of their definition.
func TestAxiomaticVerdictIsThatOfBruteForce(t *testing.T) {
	kept, broken := make(map[string]int), make(map[string]int)
	forRandomHistories(t, 1, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		if len(c.reads) > 0 {
			return // the axioms say nothing of conditions
		}
		r := analyze(t, c.Info(), h)
		for level, want := range map[string]bool{
			"MAV":                bruteforce.CommitOrder(h, bruteforce.ReadCommittedAxiom, false),
			"RA":                 bruteforce.CommitOrder(h, bruteforce.ReadAtomicAxiom, false),
			"strong session MAV": bruteforce.CommitOrder(h, bruteforce.ReadCommittedAxiom, true),
			"strong session RA":  bruteforce.CommitOrder(h, bruteforce.ReadAtomicAxiom, true),
			"CC":                 bruteforce.CommitOrder(h, bruteforce.CausalAxiom, true),
		} {
			if got := slices.Contains(r.Levels.Satisfied, level); got != want {
				t.Errorf("%s: %v, by brute force %v; violated %v, findings %v", level, got, want, r.Levels.Violated,
					names(r))
			}
			if want {
				kept[level]++
			} else {
				broken[level]++
			}
		}
	})
	t.Logf("kept %v, broken %v", kept, broken)
}
