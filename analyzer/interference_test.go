package analyzer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
)

// interfering is a history in which T1 has its snapshot at 2 at the latest, and T2 does not send its last statement
// before 3.
const interfering = `
T1 committed RR 1-9 | r y 0 @1-2 | r x T2.1 @7-8
T2 committed RC 1-6 | u x 0 @3-4`

// TestDependencyOnLaterCommitIsInterference: dependency on what committed after the snapshot is interference.
func TestDependencyOnLaterCommitIsInterference(t *testing.T) {
	mariadb, postgres := history.Server{Engine: "mariadb", Version: "10.11"},
		history.Server{Engine: "postgresql", Version: "15"}
	isolated := history.Server{Engine: "mariadb", Version: "11.8", SnapshotIsolation: true}
	mysql, tidb := history.Server{Engine: "mysql", Version: "9"}, history.Server{Engine: "tidb", Version: "8.5"}
	const writer = "\nT2 committed RC 1-6 | u x 0 @3-4"
	for _, c := range []struct {
		name, history string
		forbidden     []history.Server // the others permit it, or promise nothing of the kind
		want          string
	}{
		{"a plain read", interfering, []history.Server{mariadb, isolated, mysql, tidb, postgres}, "G-SIa"},
		{"a write", "T1 committed RR 1-9 | r y 0 @1-2 | u x T2.1 @7-8" + writer, []history.Server{isolated, postgres},
			"G-SIa"},
		{"a locking read", "T1 committed RR 1-9 | r y 0 @1-2 | R x T2.1 @7-8" + writer,
			[]history.Server{isolated, postgres}, "G-SIa"},
		{"a locking read, and then a plain one", "T1 committed RR 1-9 | R y 0 @1-2 | r x T2.1 @7-8" + writer,
			[]history.Server{postgres}, "G-SIa"},
		{"a write, and then a plain read", "T1 committed RR 1-9 | u y 0 @1-2 | r x T2.1 @7-8" + writer,
			[]history.Server{postgres}, "G-SIa"},
		{"an insertion, and then a plain read", "T1 committed RR 1-9 | i y @1-2 | r x T2.1 @7-8" + writer,
			[]history.Server{postgres}, "G-SIa"},
		{"a read of an own row, and then of another", "T1 committed RR 1-9 | u y 0 | r y T1.1 @1-2 | r x T2.1 @7-8" +
			writer, nil, ""},
		{"each statement has a snapshot", strings.ReplaceAll(interfering, "RR", "RC"), nil, ""},
		{"a snapshot that is taken when the other may have committed",
			"T1 committed RR 1-9 | r y 0 @1-3 | r x T2.1 @7-8" + writer, nil, ""},
		{"a first read that failed", "T1 committed RR 1-9 | r! y 0 @1-2 | r x T2.1 @7-8" + writer, nil, ""},
		{"a first read of which it is not known when it was answered", "T1 committed RR 1-9 | r y 0 | r x T2.1 @7-8" +
			writer, nil, ""},
		{"a first read that was not observed exactly", "T1 committed RR 1-9 | r~ y 0 @1-2 | r x T2.1 @7-8" + writer,
			nil, ""},
		{"a first read that found nothing", "T1 committed RR 1-9 | m y 0 @1-2 | r x T2.1 @7-8" + writer, nil, ""},
		{"a second read that was not observed exactly", "T1 committed RR 1-9 | r y 0 @1-2 | r~ x T2.1 @7-8" + writer,
			nil, ""},
		{"what is gone", "T1 committed RR 1-9 | r y 0 @1-2 | g x T2.1 @7-8\nT2 committed RC 1-6 | d x 0 @3-4", nil, ""},
		{"what a procedure may have written", "T1 committed RR 1-9 | r y 0 @1-2 | o | r x T2.1 @7-8" + writer, nil, ""},
		{"what was read before the snapshot", "T1 committed RR 1-9 | r y 0 @1-2 | r x 0 @7-8" + writer, nil, ""},
		{"a stricter name: two versions of a row", "T1 committed RR 1-9 | r x 0 @1-2 | r x T2.1 @7-8" + writer,
			[]history.Server{mariadb, isolated, mysql, tidb, postgres}, "non-repeatable read"},
		{"a stricter name: a long fork", `
T1 committed RR 1-4 | u x 0 @3-4
T2 committed RR 1-4 | u y 0 @3-4
T3 committed RR 1-9 | r z 0 @1-2 | r y 0 @5-6 | r x T1.1 @7-8
T4 committed RR 1-9 | r z 0 @1-2 | r x 0 @5-6 | r y T2.1 @7-8`, []history.Server{mariadb, isolated, mysql, tidb, postgres}, "G-nonadjacent"},
		{"a stricter name: circular flow", `
T1 committed RR 1-9 | r z 0 @1-2 | u x 0 @5-6 | r y T2.2 @7-8
T2 committed RR 1-9 | r x T1.2 @5-6 | u y 0 @7-8`, []history.Server{mariadb, isolated, mysql, tidb, postgres}, "G1c"},
	} {
		for _, server := range []history.Server{mariadb, isolated, mysql, tidb, postgres} {
			info := scriptInfo()
			info.Server = server
			var want []string
			if slices.Contains(c.forbidden, server) {
				want = append(want, "violation "+c.want)
			}
			t.Run(fmt.Sprint(c.name, server), func(t *testing.T) { expect(t, info, c.history, want...) })
		}
	}
}

// A cycle that a snapshot permits does not hide what it forbids.
func TestInterferenceStandsBesideAWriteSkew(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR 1-9 | r y 0 @1-2 | r x T2.2 @5-6 | r v 0 | u w 0
T2 committed RR 1-6 | r w 0 | u x 0 @3-4
T3 committed RR 1-6 | r x 0 | u v 0`, "violation G-SIa", "hazard G2-item")
}

func TestInterferenceIsBySnapshotsThatSurelyWereTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h []*history.Txn)
		found  bool
	}{
		"as it is": {func([]*history.Txn) {}, true},
		"by BEGIN": {func(h []*history.Txn) {
			h[0].Stmts[0].Kind, h[0].Stmts[0].Accesses, h[0].Stmts[0].Shape = history.Begin, nil,
				"START TRANSACTION WITH CONSISTENT SNAPSHOT"
		}, true},
		"by no BEGIN of another kind": {func(h []*history.Txn) {
			h[0].Stmts[0].Kind, h[0].Stmts[0].Accesses, h[0].Stmts[0].Shape = history.Begin, nil, "BEGIN"
		}, false},
		"by what may call a procedure":  {func(h []*history.Txn) { h[0].Stmts[0].Shape = "SELECT f() FROM t" }, false},
		"by what may lock in a query":   {func(h []*history.Txn) { h[0].Stmts[0].Shape = "SELECT * FROM (SELECT * FROM t FOR UPDATE) AS x" }, false},
		"by another kind of statement":  {func(h []*history.Txn) { h[0].Stmts[0].Kind = history.Call }, false},
		"after the writer's last words": {func(h []*history.Txn) { h[1].Stmts[0].Start = 2 }, false},
		"before its COMMIT": {func(h []*history.Txn) {
			h[1].Stmts[0].Start = 1
			h[1].Stmts = append(h[1].Stmts,
				history.Stmt{Num: 2, Kind: history.Commit, Shape: "COMMIT", Start: 3, End: 4})
		}, true},
		"before it began, by a mishap of another name": {func(h []*history.Txn) {
			h[1].Start, h[1].End = 10, 12
			h[1].Stmts[0].Start, h[1].Stmts[0].End = 10, 11
		}, false},
	} {
		h := script(t, interfering)
		c.change(h)
		if got := slices.Contains(names(analyze(t, scriptInfo(), h)), "violation G-SIa"); got != c.found {
			t.Errorf("%s: found %v, want %v", name, got, c.found)
		}
	}
}

// Two proxies have two clocks, whatever the one says that recorded the reader.
func TestInterferenceGoesByOneClock(t *testing.T) {
	h, other := script(t, interfering), scriptInfo()
	h[0].ID, other.Run = history.MakeTxnID(foreignRun, 1), foreignRun
	r, err := Analyze([]history.Info{scriptInfo(), other}, h)
	if err != nil || len(r.Findings) > 0 {
		t.Errorf("findings %v, error %v", names(r), err)
	}
}

// A cycle with a writer of whom nothing is promised is a hazard, and does not hide what his reader was promised.
func TestInterferenceStandsBesideItsCyclesHazard(t *testing.T) {
	info := scriptInfo()
	info.Server.SnapshotIsolation = true
	expect(t, info, `
T1 committed RR 1-9 | r x 0 @1-2 | u x T2.1 @7-8
T2 committed ?? 1-6 | u x 0 @3-4`, "hazard lost update", "violation G-SIa")
}

// A verdict says nothing of PL-SI, and a level that PL-SI implies may be the strongest.
func TestVerdictDoesNotGoBySnapshots(t *testing.T) {
	r := analyze(t, scriptInfo(), script(t, strings.ReplaceAll(batch, "%s", "7")))
	if slices.Contains(r.Levels.Satisfied, "PL-SI") || !slices.Contains(r.Levels.Strongest, "strong SI") {
		t.Errorf("satisfied %v, the strongest of them %v", r.Levels.Satisfied, r.Levels.Strongest)
	}
}

func TestModelsAndLevelsJudgeInterference(t *testing.T) {
	const locking = `
T1 committed RC 1-9 | r y 0 @1-2 | R x T2.1 @7-8
T2 committed RC 1-6 | u x 0 @3-4`
	plain := strings.ReplaceAll(interfering, "RR", "RC")
	for _, c := range []struct {
		name, history string
		opts          Options
		found         bool
	}{
		{"Adya's snapshots are of all that is read", locking, Options{Model: findLevel(t, "PL-SI")}, true},
		{"snapshots of later than they were taken", locking, Options{Model: findLevel(t, "snapshot-isolation")}, false},
		{"serializable all the same", locking, Options{Model: findLevel(t, "strict-serializable")}, false},
		{"had it run at REPEATABLE READ", plain, Options{Expect: history.RepeatableRead}, true},
		{"current reads, had they", locking, Options{Expect: history.RepeatableRead}, false},
	} {
		r := analyzeWith(t, c.opts, c.history)
		if got := slices.Equal(names(r), []string{"violation G-SIa"}); got != c.found || !c.found &&
			len(r.Findings) > 0 {
			t.Errorf("%s: findings %v, want G-SIa: %v", c.name, names(r), c.found)
		}
	}
}

func TestExplainsWhenTheSnapshotWasTaken(t *testing.T) {
	f := expect(t, scriptInfo(), interfering, "violation G-SIa").Findings[0]
	for _, text := range []string{"had the answer to `SELECT v FROM t WHERE id = ?`, which took its snapshot, " +
		"1ns before T1 (", "read it in"} {
		if !strings.Contains(f.Explanation[0], text) {
			t.Errorf("%q does not say %q", f.Explanation[0], text)
		}
	}
	if !strings.Contains(f.Rule, "one snapshot") || !strings.Contains(f.Summary, "after the snapshot") {
		t.Errorf("rule %q, summary %q", f.Rule, f.Summary)
	}
}

// What is found is there by the definition, the schedules of such a history are none, and where no stricter cycle is
// what is there is found.
func TestInterferenceIsThatOfBruteForce(t *testing.T) {
	counts := make(map[bool]int)
	model := findLevel(t, "PL-SI")
	forRandomHistories(t, 4, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		graph, ok := bruteforce.Graph(h)
		if !ok {
			return
		}
		a := New(Options{Model: model})
		r, err := finishAll(a, c.Info(), h)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(r.Findings, func(f *Finding) bool { return f.Anomaly == GSIa })
		want := false
		byID := make(map[history.TxnID]*history.Txn)
		for _, txn := range h {
			byID[txn.ID] = txn
		}
		for e := range graph {
			want = want || e.Kind != bruteforce.RW && startsBeforeCommit(byID[e.To], byID[e.From])
		}
		graph, _ = bruteforce.Graph(h, c.reads...)
		cycles := bruteforce.CyclesOf(graph)
		stricter := cycles.G0 || cycles.G1c || cycles.GSingle || cycles.GNonadjacent
		if got && !want || want && !got && !stricter {
			t.Errorf("G-SIa found: %v, by the definition %v; findings %v", got, want, names(r))
		}
		if got && bruteforce.StartOrdered(h, bruteforce.ByTime, startsBeforeCommit, c.reads...) {
			t.Errorf("there is a schedule: %v", names(r))
		}
		counts[got]++
	})
	if !testing.Short() && (counts[true] == 0 || counts[false] == 0) {
		t.Errorf("G-SIa was found in %d histories and not in %d: the generator is too tame",
			counts[true], counts[false])
	}
}

// startsBeforeCommit reports whether a transaction had the answer to a plain SELECT before another one sent its last
// statement.
func startsBeforeCommit(reader, writer *history.Txn) bool {
	if len(writer.Stmts) == 0 {
		return false
	}
	i := slices.IndexFunc(reader.Stmts, func(s history.Stmt) bool {
		return s.Kind == history.Select && s.Locking == history.NoLock && !s.Void &&
			slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
				return !a.Absent && !a.Gone && a.Version.Txn != reader.ID
			})
	})
	return i >= 0 && reader.Stmts[i].End < writer.Stmts[len(writer.Stmts)-1].Start
}
