package analyzer

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// Many clients race on a stock counter, many on a pair of doctors; the cycles that their meetings
// close by way of each other are no findings of their own.
func TestReportsEachMishapOnce(t *testing.T) {
	r := expect(t, scriptInfo(), `
T1 committed RR | r s.1 0 | u s.1 0
T2 committed RR | r s.1 0 | u s.1 T1.2
T3 committed RR | r s.1 0 | u s.1 T2.2
T4 committed RR | r s.1 T1.2 | u s.1 T3.2
T5 committed RR | r d.1 0 & r d.2 0 | u d.1 0
T6 committed RR | r d.1 0 & r d.2 0 | u d.2 0
T7 committed RR | r d.1 T5.2 & r d.2 0 | r d.1 T5.2
T8 committed RR | r d.1 T5.2 & r d.2 T6.2 | u d.1 T5.2`,
		"hazard lost update x3", "hazard write skew")
	for _, f := range r.Findings {
		if len(f.Programs) != 1 {
			t.Errorf("%s is between %d programs, want 1", f.Anomaly, len(f.Programs))
		}
		if len(f.Witness) != 2 {
			t.Errorf("%s has a witness of %d edges, want the shortest", f.Anomaly, len(f.Witness))
		}
	}
}

// TestReportsLongerCycleThatNoShorterOneExplains: reports longer cycle beside a shorter one that does not explain it.
func TestReportsLongerCycleThatNoShorterOneExplains(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | r s.1 0 | u s.1 T2.2
T2 committed RC | r s.1 0 | u s.1 0
T3 committed RC | r a.1 0 | r b.1 T5.2
T4 committed RC | u a.1 0
T5 committed RC | r a.1 T4.1 | u b.1 0`,
		"hazard lost update", "hazard G-single")
}

// TestLeavesOutCyclesThatAShorterOneNames: leaves out longer cycle of programs that a shorter one names.
func TestLeavesOutCyclesThatAShorterOneNames(t *testing.T) {
	// T1 and T2 have a read skew; T3 has the same by way of T4 and T5, which are of T2's program.
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2
T2 committed RC | u x 0 | u y 0
T3 committed RC | r z 0 | r w T5.2
T4 committed RC | u z 0 | u q 0
T5 committed RC | u q T4.2 | u w 0`,
		"hazard read skew")
}

func TestExplainsAllReadsBetweenTheTwoTransactions(t *testing.T) {
	// T1 missed two writes of T2: what closes longer cycles is the other one.
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r z 0 | r y T2.3 | u w 0
T2 committed RC | u x 0 | u z 0 | u y 0 | r q 0
T3 committed RC | u q 0 | r w 0 | r p 0`, "hazard read skew")
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | u y 0 | u w 0
T2 committed RR | r y 0 | u x 0 | r q 0
T3 committed RR | u q 0 | r w 0`, "hazard write skew")
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | u y 0 | r q 0
T2 committed RR | r y 0 | u x 0 | u w 0
T3 committed RR | u q 0 | r w 0`, "hazard write skew")
}

func TestPrefersTheStricterCycle(t *testing.T) {
	// T1's read of x is on a cycle of four with one rw, through x's versions, and on one of three with two.
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T4.2 | r p T5.2
T2 committed RC | u x 0 | r q 0
T3 committed RC | u x T2.1
T4 committed RC | u x T3.1 | u y 0
T5 committed RC | u q 0 | u p 0`, "hazard read skew")
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2 | u z T2.3
T2 committed RC | u x 0 | u y 0 | u z 0`, "hazard read skew")
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | u! x T2.1 | r y T2.2
T2 committed RC | u x 0 | u y 0`, "hazard read skew")
}

// TestLostUpdateNeedsACertainChain: lost update needs a certain chain on one branch.
func TestLostUpdateNeedsACertainChain(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2 | u x T3.1
T2 committed RC | u x 0 | u y 0
T3 committed RC | u~ x T2.1`, "hazard read skew")
	// x has two branches: T2, T4 and T3, T5, T1.
	expect(t, scriptInfo(), `
T1 committed RC | r x T2.1 | r y T4.2 | u x T5.1
T2 committed RC | u x 0
T3 committed RC | u x 0
T4 committed RC | u x T2.1 | u y 0
T5 committed RC | u x T3.1`, "violation lost write", "hazard read skew")
}

// A cycle with one rw is stricter than a shorter one with two.
func TestPrefersOneAntiDependencyToTwo(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r c T5.2 | r f T7.2
T2 committed RC | u x 0 | u a 0 | u d 0
T3 committed RC | r a T2.2 | u b 0
T4 committed RC | r b T3.2 | u g 0
T5 committed RC | r g T4.2 | u c 0
T6 committed RC | r e 0 | r d T2.3
T7 committed RC | u e 0 | u f 0`, "hazard G-single")
}

// A cycle through rows alone is stricter than one through predicates, wherever it stands.
func TestPrefersRowsToPredicates(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR | m y 0 & m x 0 | i n
T2 committed RR | r x 0 | u y 0
T3 committed RR | u x 0
T4 committed RR | r y 0 & g x T3.1 & m n 0`, "hazard G2", "hazard G2-item")
}

// A write skew is found whatever its rw explain, and does not hide the stricter cycle that one of them is on.
func TestWriteSkewStandsBesideStricterCycle(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR | u x 0
T2 committed RR | r z 0 | u y 0
T3 committed RC | r y 0 | r x T1.1 | u z 0
T4 committed RC | r x 0 | r y T2.2`, "hazard G-nonadjacent", "hazard write skew")
}

// What serializable transactions do to each other is not hidden by a hazard through the same reads.
func TestHazardDoesNotHideViolationAmongSerializableTransactions(t *testing.T) {
	info := scriptInfo()
	info.Server = history.Server{Engine: "postgresql", Version: "15.18"}
	expect(t, info, `
T1 committed SR | r x 0 | r b T4.2 | r c T3.2
T2 committed SR | u x 0 | r q 0 | r r 0
T3 committed SR | u r 0 | u c 0
T4 committed RC | u q 0 | u b 0`, "violation G2-item")
}

// What serializable transactions do to each other explains their rw; the levels that longer cycles violate are told.
func TestVerdictCountsPhantomsBesideViolations(t *testing.T) {
	info := scriptInfo()
	info.Server = history.Server{Engine: "postgresql", Version: "15.18"}
	for want, text := range map[Anomaly]string{
		Phantom: `
T1 committed SR | m x 0 | r z T3.2 | i y
T2 committed SR | m y 0 | i x
T3 committed RC | r x T2.2 | u z 0`,
		PhantomNonadjacent: `
T1 committed SR | m x 0 | r z T4.2 | i y
T2 committed SR | m y 0 | i x
T3 committed RC | r x T2.2 | r w 0
T4 committed RC | u w 0 | u z 0`,
	} {
		r := expect(t, info, text, "violation phantom write skew")
		if !slices.ContainsFunc(r.Levels.Violated, func(v LevelViolation) bool {
			return v.Level == "SI" && v.By == want
		}) {
			t.Errorf("%s does not violate SI: %v", want, r.Levels.Violated)
		}
	}
}

// Who reads a version that two others replaced missed both.
func TestReaderOfAForkedVersionMissedBothSuccessors(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | u x 0
T2 committed RC | u x 0 | u y 0
T3 committed RC | r x 0 | r y T2.2`, "violation lost write", "hazard read skew")
	// Only the second of the two overwriters had ended before the reader did.
	expect(t, scriptInfo(), `
T1 committed RC 1-40 | u x 0
T2 committed RC 2-20 | u x 0 | u y 0
T3 committed RC 3-30 | r x 0 | r y T2.2`, "violation lost write", "hazard read skew")
}

// TestHazardDoesNotHideViolationThroughSameRead: hazard does not hide violation through the same read.
func TestHazardDoesNotHideViolationThroughSameRead(t *testing.T) {
	// T1's read of x makes a lost update with T2, which RR permits, and a read skew, which it forbids.
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | r y T2.2 | u x T2.1
T2 committed RR | u x 0 | u y 0`, "violation read skew")
}

func TestKeepsViolationsAndHazardsApart(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RC | r x 0 | r y T2.2
T2 committed RC | u x 0 | u y 0
T3 committed RC | r v 0 & r w T4.2
T4 committed RC | u v 0 | u w 0`, "hazard read skew", "violation read skew")
}

func TestGroupsByPrograms(t *testing.T) {
	r := expect(t, scriptInfo(), `
T1 committed RR | r a.1 0 | u a.1 T2.1
T2 committed RR | u a.1 0
T3 committed RR | r a.2 0 | u a.2 T4.1
T4 committed RR | u a.2 0
T5 committed RR | r b.1 0 | u b.1 T6.2
T6 committed RR | r b.1 0 | u b.1 0`, "hazard lost update x2", "hazard lost update")
	if r.Findings[0].Count != 2 || r.Findings[0].First != 20 || r.Findings[0].Last != 40 {
		t.Errorf("the most frequent finding comes first and spans its witnesses: %+v", r.Findings[0])
	}
	if r.Findings[0].ID == r.Findings[1].ID {
		t.Errorf("two findings have one id")
	}
	p := r.Findings[0].Programs
	if len(p) != 2 || p[0].Name != "UPDATE a" || p[1].Name != "UPDATE a (2)" || p[0].Count != 2 {
		t.Errorf("programs %+v, %+v", p[0], p[1])
	}
	again := expect(t, scriptInfo(), `
T1 committed RR | u a.9 0
T2 committed RR | r a.9 0 | u a.9 T1.1`, "hazard lost update")
	if again.Findings[0].ID != r.Findings[0].ID {
		t.Errorf("the same programs have another id")
	}
}

// In one component of 100,000 transactions each loses the update of the first.
func TestHugeComponentIsAnalysedInLinearTime(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 10_000
	}
	r, err := Analyze([]history.Info{histgen.LoadInfo()}, histgen.HotRow(n))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != LostUpdate || r.Findings[0].Count != n-1 ||
		len(r.Findings[0].Witness) != 2 {
		t.Errorf("findings %v", names(r))
	}
}

// A ring of rw through n transactions is one cycle and no shorter.
func TestHugeCycleIsFound(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 10_000
	}
	r, err := Analyze([]history.Info{histgen.LoadInfo()}, histgen.Ring(n))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != G2Item || len(r.Findings[0].Witness) != n {
		t.Errorf("findings %v", names(r))
	}
}
