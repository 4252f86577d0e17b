package analyzer

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// The histories that only the order of sessions, or of time, makes anomalies of.
const (
	staleRead  = "T1 committed RC s1 1-2 | u x 0\nT2 committed RC s%s 3-4 | r x 0"
	staleWrite = "T1 committed RC s1 1-2 | u x T2.1\nT2 committed RC s%s 3-4 | u x 0"
	earlyRead  = "T1 committed RC s1 1-2 | r x T2.1\nT2 committed RC s%s 3-4 | u x 0"
	apart      = "T1 committed RC s1 1-2 | u y 0\nT2 committed RC s2 1-4 | u x 0\nT3 committed RC s3 1-9 | r x T2.1 | r y 0\nT4 committed RC s%s 3-9 | r x 0"
	batch      = "T1 committed RC s3 1-9 | r x 0 | r z 0 | u y 0\nT2 committed RC s1 2-3 | u x 0\nT3 committed RC s%s 4-5 | r y 0"
	missed     = "T1 committed RC s1 1-2 | u x 0\nT2 committed RC s9 1-9 | r y T3.1 | r x 0\nT3 committed RC s%s 3-4 | u y 0"
)

func TestOrdersOfSessionsAndTimeMakeCycles(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		base    Anomaly
		found   bool // without a model: the engine promises that a snapshot is fresh
	}{
		"a write under an earlier one":              {staleWrite, G0, true},
		"a read of the future":                      {earlyRead, G1c, true},
		"a read of the past":                        {staleRead, GSingle, true},
		"a read of the past, after what came later": {missed, GSingle, true},
		"two that read the past of each other":      {apart, GNonadjacent, true},
		"a slow writer that reads the past":         {batch, G2Item, false},
	} {
		for session, variant := range map[string]func(Anomaly) Anomaly{"1": Anomaly.Process, "7": Anomaly.Realtime} {
			text := strings.ReplaceAll(c.history, "%s", session)
			t.Run(name+" "+session, func(t *testing.T) {
				want := variant(c.base)
				var found []string
				if c.found {
					found = append(found, "violation "+string(want))
				}
				expect(t, scriptInfo(), text, found...)
				model := "strong-session-serializable"
				if session == "7" {
					model = "strict-serializable"
				}
				r := analyzeWith(t, Options{Model: findLevel(t, model)}, text)
				if got := names(r); !slices.Equal(got, []string{"violation " + string(want)}) {
					t.Errorf("by %s: %v, want a violation %s", model, got, want)
				}
				if r := analyzeWith(t, Options{Model: findLevel(t, "serializable")}, text); len(r.Findings) > 0 {
					t.Errorf("by serializability: %v", names(r))
				}
			})
		}
	}
}

func analyzeWith(t *testing.T, o Options, text string) *Result {
	t.Helper()
	a := New(o)
	if err := a.Add(scriptInfo()); err != nil {
		t.Fatal(err)
	}
	for _, txn := range script(t, text) {
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// No order where none is known: other runs have other clocks, and a transaction without times has no place.
func TestOrderOfTimeNeedsOneClock(t *testing.T) {
	stale := func() []*history.Txn { return script(t, strings.ReplaceAll(staleRead, "%s", "7")) }
	for name, change := range map[string]func(h []*history.Txn){
		"no start":    func(h []*history.Txn) { h[1].Start = 0 },
		"no end":      func(h []*history.Txn) { h[0].End = 0 },
		"at once":     func(h []*history.Txn) { h[1].Start = 2 },
		"another run": func(h []*history.Txn) { h[1].ID = history.MakeTxnID(foreignRun, 2) },
		"not fresh":   func(h []*history.Txn) { h[1].Level = history.ReadUncommitted },
		"a locked table": func(h []*history.Txn) {
			h[1].Stmts[0].Observation, h[1].Stmts[0].Accesses = history.Opaque, nil
		},
	} {
		h := stale()
		change(h)
		if r := analyze(t, scriptInfo(), h); len(r.Findings) > 0 {
			t.Errorf("%s: %v", name, names(r))
		}
	}
	if r := analyze(t, scriptInfo(), stale()); len(r.Findings) != 1 {
		t.Errorf("findings %v, want one", names(r))
	}
}

// What a level of the theory forbids is a violation by that model, and nothing else is.
func TestModelsJudgeByTheTheory(t *testing.T) {
	for _, c := range []struct{ history, model, want string }{
		{"T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0", "PL-CS", "violation lost update"},
		{"T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0", "MAV", "hazard lost update"},
		{"T1 committed SR | r x 0 | u y 0\nT2 committed SR | r y 0 | u x 0", "SI", "hazard write skew"},
		{"T1 committed RU | r x 0 | u y 0\nT2 committed RU | r y 0 | u x 0", "PL-2.99", "violation write skew"},
		{"T1 committed RU | u x 0 | u y T2.2\nT2 committed RU | u x T1.1 | u y 0", "PL-1", "violation G0"},
		{"T1 committed SR | u x 0 | r y T2.1\nT2 committed SR | u y 0 | r x T1.1", "PL-1", "hazard G1c"},
		{"T1 aborted SR | u x 0\nT2 committed SR | r x T1.1", "PL-1", "hazard G1a"},
		{"T1 aborted RU | u x 0\nT2 committed RU | r x T1.1", "PL-2", "violation G1a"},
		{"T1 committed RC | r x T3.2 | r y 0\nT2 committed RC | u y 0\nT3 committed RC | u y T2.1 | u x 0", "MAV",
			"violation OTV"},
		{"T1 committed RC | r y 0 | r x T3.2\nT2 committed RC | u y 0\nT3 committed RC | u y T2.1 | u x 0", "MAV",
			"hazard read skew"},
		{"T1 committed RC | r y 0 | r x T3.2\nT2 committed RC | u y 0\nT3 committed RC | u y T2.1 | u x 0", "RA",
			"violation read skew"},
		{"T1 committed RC | r x T3.2 | r y 0\nT2 committed RC | u y 0\nT3 committed RC | r y T2.1 | u x 0", "PL-2L",
			"violation G-monotonic"},
		{"T1 committed RR | r y 0 | r x T3.2\nT2 committed RR | u y 0\nT3 committed RR | r y T2.1 | u x 0", "PL-2L",
			"hazard G-single"},
		{"T1 committed RC | r y 0 | r x T3.2\nT2 committed RC | u y 0\nT3 committed RC | r y T2.1 | u x 0", "PL-2+",
			"violation G-single"},
		{"T1 committed RC | u x 0 | r x 0", "PL-1", "violation internal inconsistency"},
		// A shorter cycle through the same read, which RA permits, does not hide the fractured reads.
		{"T1 committed RC | r y 0 | r x T4.2 | r q T5.2\nT2 committed RC | u y 0 | u p 0\nT3 committed RC | u y T2.1\nT4 committed RC | u y T3.1 | u x 0\nT5 committed RC | r p T2.2 | u q 0", "RA", "violation read skew"},
		// A lost update through the same read does not hide that the transaction saw the other's write before.
		{"T1 committed RC | r y T2.2 | r x 0 | u x T2.1\nT2 committed RC | u x 0 | u y 0", "MAV", "violation OTV"},
	} {
		r := analyzeWith(t, Options{Model: findLevel(t, c.model)}, c.history)
		if got := names(r); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s\nby %s: %v, want %s", c.history, c.model, got, c.want)
		}
	}
}

// What one finding explains is not looked for again, but counts for the levels.
func TestVerdictCountsWhatFindingsLeaveOut(t *testing.T) {
	for _, c := range []struct{ name, history, finding, level, kept string }{
		{"G-single beside a write skew at stricter levels", `
T1 committed SR | r x 0 | r z T3.2 | u y 0
T2 committed SR | r y 0 | u x 0
T3 committed RU | r x T2.2 | u z 0`, "violation write skew", "PL-2+", "PL-CS"},
		{"G-nonadjacent beside one", `
T1 committed SR | r x 0 | r q T4.1 | u y 0
T2 committed SR | r y 0 | u x 0
T3 committed RU | r x T2.2 | r q 0
T4 committed RC | u q 0`, "violation write skew", "SI", "PL-2+"},
		{"fractured reads beside a lost update", `
T1 committed RC | r y 0 | r x T3.2 | u y T3.1
T2 committed RC | u y 0
T3 committed RC | u y T2.1 | u x 0`, "hazard lost update", "RA", "PL-2L"},
		{"two rw and a step by the clock", strings.ReplaceAll(apart, "%s", "7"), "violation G-nonadjacent-realtime",
			"strong SI", "PL-FCV"},
		{"what no engine owes", strings.ReplaceAll(batch, "%s", "7"), "", "PL-SS", "strong session PL-3"},
	} {
		r := analyze(t, scriptInfo(), script(t, c.history))
		if got := strings.Join(names(r), ", "); got != c.finding {
			t.Errorf("%s: findings %q, want %s", c.name, got, c.finding)
		}
		if slices.Contains(r.Levels.Satisfied, c.level) || !slices.Contains(r.Levels.Satisfied, c.kept) {
			t.Errorf("%s: levels %+v, want %s violated and %s satisfied", c.name, r.Levels, c.level, c.kept)
		}
	}
}

// A level that is expected of all transactions counts as if they had run at it.
func TestExpectedLevelCountsForAll(t *testing.T) {
	const lostUpdate = "T1 committed RC | r x 0 | u x T2.1\nT2 committed ?? | u x 0"
	for level, want := range map[history.Level]string{
		history.LevelUnknown: "hazard lost update", history.ReadCommitted: "hazard lost update",
		history.Serializable: "violation lost update",
	} {
		r := analyzeWith(t, Options{Expect: level}, lostUpdate)
		if got := names(r); !slices.Equal(got, []string{want}) {
			t.Errorf("at %s: %v, want %s", level, got, want)
		}
	}
}
