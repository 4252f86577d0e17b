package analyzer

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// The same anomaly is the engine's fault or the application's by the levels and the kinds of reads.
func TestClassFollowsEngineTable(t *testing.T) {
	mariadb := history.Server{Engine: "mariadb", Version: "10.11"}
	snapshot := history.Server{Engine: "mariadb", Version: "11.8", SnapshotIsolation: true}
	mysql := history.Server{Engine: "mysql", Version: "8.4"}
	unknown := history.Server{Engine: "cobol"}
	tidb := history.Server{Engine: "tidb", Version: "8.5"}
	postgres := history.Server{Engine: "postgresql", Version: "15.18"}
	const (
		lostUpdate = "T1 committed L1 | r x 0 | u x T2.1\nT2 committed L2 | u x 0"
		lockedLost = "T1 committed L1 | R x 0 | u x T2.1\nT2 committed L2 | u x 0"
		readSkew   = "T1 committed L1 | r x 0 | r y T2.2\nT2 committed L2 | u x 0 | u y 0"
		oneSelect  = "T1 committed L1 | r x 0 & r y T2.2\nT2 committed L2 | u x 0 | u y 0"
		figure5    = "T1 committed L1 | r x 0 | R y T2.2\nT2 committed L2 | u x 0 | u y 0"
		updateSkew = "T1 committed L1 | r x 0 | u y T2.2\nT2 committed L2 | u x 0 | u y 0"
		writeSkew  = "T1 committed L1 | r x 0 | u y 0\nT2 committed L2 | r y 0 | u x 0"
		lockedSkew = "T1 committed L1 | R x 0 | u y 0\nT2 committed L2 | R y 0 | u x 0"
		deleteSkew = "T1 committed L1 | r x 0 | d y T2.2\nT2 committed L2 | u x 0 | u y 0"
		reread     = "T1 committed L1 | r x 0 | r x T2.1\nT2 committed L2 | u x 0"
		reLocked   = "T1 committed L1 | r x 0 | R x T2.1\nT2 committed L2 | u x 0"
		dirty      = "T1 aborted L2 | u x 0\nT2 committed L1 | u x T1.1"
		g0         = "T1 committed L1 | u x 0 | u y T2.2\nT2 committed L2 | u x T1.1 | u y 0"
		g1a        = "T1 aborted L2 | u x 0\nT2 committed L1 | r x T1.1"
		lockedG1a  = "T1 aborted L2 | u x 0\nT2 committed L1 | R x T1.1"
		g1b        = "T1 committed L2 | u x 0 | u x T1.1\nT2 committed L1 | r x T1.1"
		g1c        = "T1 committed L1 | u x 0 | r y T2.1\nT2 committed L2 | u y 0 | r x T1.1"
		lockedG1c  = "T1 committed L1 | u x 0 | R y T2.1\nT2 committed L2 | u y 0 | R x T1.1"
		byAnother  = "T1 committed SR | r x 0 | r y T3.2\nT2 committed L1 | u x 0\nT3 committed L2 | r x T2.1 | u y 0"
		longFork   = "T1 committed L1 | r x 0 | r y T4.1\nT2 committed L1 | r y 0 | r x T3.1\nT3 committed L2 | u x 0\nT4 committed L2 | u y 0"
		forkBack   = "T1 committed L1 | r y T4.1 | r x 0\nT2 committed L1 | r x T3.1 | r y 0\nT3 committed L2 | u x 0\nT4 committed L2 | u y 0"
		// Figure 5 the other way round: what the lock showed had been committed before the snapshot was taken.
		lockFirst  = "T1 committed L1 | R y T2.2 | r x 0\nT2 committed L2 | u x 0 | u y 0"
		writeFirst = "T1 committed L1 | u y T2.2 | r x 0\nT2 committed L2 | u x 0 | u y 0"
		fixedFirst = "T1 committed L1 | r z 0 | R y T2.2 | r x 0\nT2 committed L2 | u x 0 | u y 0"
		vanishes   = "T1 committed L1 | r y T2.2 | r x 0\nT2 committed L2 | u x 0 | u y 0"
		backwards  = "T1 committed L1 | r x T2.1 | r x 0\nT2 committed L2 | u x 0"
		// The lock orders T1 before T2, and its read T3 before T1. T2 and T3 are serializable without T1.
		lockBetween = "T1 committed L1 | r y T3.1 | R x 0\nT2 committed L2 | r y 0 | u x 0\nT3 committed L2 | u y 0"
		// T1 sees the balance after T3 and before T2, who did not see T3's: the read-only anomaly.
		readOnly = "T1 committed L1 | r x 0 | r y T3.1\nT2 committed L2 | r y 0 | u x 0\nT3 committed L2 | u y 0"
	)
	for _, c := range []struct {
		server  history.Server
		history string
		l1, l2  string
		want    string
	}{
		{mariadb, lostUpdate, "RC", "RC", "hazard lost update"},
		{mariadb, lostUpdate, "RR", "RR", "hazard lost update"},
		{mariadb, lostUpdate, "SR", "SR", "violation lost update"},
		{mariadb, lostUpdate, "SR", "RC", "violation lost update"},
		{mariadb, lostUpdate, "RC", "SR", "hazard lost update"},
		{snapshot, lostUpdate, "RR", "RR", "violation lost update"},
		{snapshot, lostUpdate, "RC", "RR", "hazard lost update"},
		{mysql, lostUpdate, "RR", "RR", "hazard lost update"},
		{mariadb, lockedLost, "RC", "RC", "violation lost update"},
		{unknown, lockedLost, "SR", "SR", "hazard lost update"},
		{mariadb, lostUpdate, "SR", "??", "hazard lost update"},
		{mariadb, readSkew, "RC", "RC", "hazard read skew"},
		{mariadb, readSkew, "RR", "RC", "violation read skew"},
		{mysql, readSkew, "RR", "RC", "violation read skew"},
		{mariadb, readSkew, "RR", "??", "violation read skew"},
		{mariadb, readSkew, "??", "RR", "hazard read skew"},
		{mariadb, oneSelect, "RC", "RC", "violation read skew"},
		{mariadb, oneSelect, "RU", "RC", "hazard read skew"},
		{mariadb, figure5, "RR", "RR", "hazard read skew"},
		{snapshot, figure5, "RR", "RR", "violation read skew"},
		{mariadb, updateSkew, "RR", "RR", "hazard read-write skew"},
		{snapshot, updateSkew, "RR", "RR", "violation read-write skew"},
		{mariadb, updateSkew, "SR", "SR", "violation read-write skew"},
		{mariadb, writeSkew, "RR", "RR", "hazard write skew"},
		{snapshot, writeSkew, "RR", "RR", "hazard write skew"},
		{mariadb, writeSkew, "SR", "RR", "hazard write skew"},
		{mariadb, writeSkew, "SR", "SR", "violation write skew"},
		{mariadb, lockedSkew, "RC", "RC", "violation write skew"},
		{mariadb, g0, "RU", "RU", "violation G0"},
		{mariadb, g0, "RU", "??", "hazard G0"},
		{mariadb, g1a, "RU", "SR", "hazard G1a"},
		{mariadb, g1a, "RC", "RU", "violation G1a"},
		{mariadb, lockedG1a, "RU", "RU", "violation G1a"},
		{mariadb, g1a, "??", "RC", "hazard G1a"},
		{mariadb, g1b, "RU", "SR", "hazard G1b"},
		{mariadb, g1b, "RC", "RU", "violation G1b"},
		{mariadb, g1c, "RU", "RC", "hazard G1c"},
		{mariadb, g1c, "RC", "RC", "violation G1c"},
		{mariadb, lockedG1c, "RU", "RU", "violation G1c"},
		{mariadb, lockFirst, "RR", "RR", "violation OTV"},
		{mariadb, lockFirst, "RC", "RC", "violation OTV"},
		{mariadb, lockFirst, "RU", "RC", "hazard OTV"},
		{mariadb, writeFirst, "RR", "RR", "violation G-monotonic"},
		{mysql, fixedFirst, "RR", "RR", "hazard OTV"},
		{mysql, fixedFirst, "RC", "RR", "violation OTV"},
		{snapshot, fixedFirst, "RR", "RR", "violation OTV"},
		{tidb, lockFirst, "RR", "RR", "hazard OTV"},
		{postgres, lockFirst, "RC", "RC", "violation OTV"},
		{mariadb, vanishes, "RC", "RC", "violation OTV"},
		{mariadb, vanishes, "RU", "RC", "hazard OTV"},
		{tidb, vanishes, "RC", "RC", "hazard OTV"},
		{mysql, backwards, "RC", "RC", "violation G-monotonic"},
		{mariadb, forkBack, "RC", "RC", "violation G-nonadjacent"},
		{mariadb, forkBack, "RU", "RC", "hazard G-nonadjacent"},
		{mariadb, byAnother, "RC", "RC", "violation G-single"},
		{mariadb, byAnother, "RC", "??", "hazard G-single"},
		{mariadb, byAnother, "??", "RC", "violation G-single"},
		{snapshot, oneSelect, "RC", "RC", "violation read skew"},
		{mariadb, deleteSkew, "RR", "RR", "hazard read-write skew"},
		{snapshot, deleteSkew, "RR", "RR", "violation read-write skew"},
		{mysql, reread, "RC", "RC", "hazard non-repeatable read"},
		{mysql, reread, "RR", "RC", "violation non-repeatable read"},
		{mysql, reLocked, "RR", "RC", "hazard non-repeatable read"},
		{snapshot, reLocked, "RR", "RC", "violation non-repeatable read"},
		{mariadb, dirty, "RU", "RU", "violation dirty update"},
		{unknown, dirty, "RU", "RU", "hazard dirty update"},
		{snapshot, longFork, "RR", "RR", "violation G-nonadjacent"},
		{tidb, lostUpdate, "RR", "RR", "hazard lost update"},
		{tidb, figure5, "RR", "RR", "hazard read skew"},
		{tidb, readSkew, "RR", "RC", "violation read skew"},
		{tidb, readSkew, "RC", "RC", "hazard read skew"},
		{tidb, oneSelect, "RC", "RC", "violation read skew"},
		{tidb, lockedLost, "RC", "RC", "violation lost update"},
		{tidb, writeSkew, "RR", "RR", "hazard write skew"},
		{tidb, writeSkew, "SR", "SR", "hazard write skew"},
		{tidb, g0, "RR", "RC", "violation G0"},
		{tidb, g0, "RU", "RU", "hazard G0"},
		{mariadb, longFork, "RR", "RC", "violation G-nonadjacent"},
		{mariadb, longFork, "RC", "RC", "hazard G-nonadjacent"},
		{mariadb, lockBetween, "RC", "SR", "violation G2-item"},
		{postgres, lostUpdate, "RC", "RC", "hazard lost update"},
		{postgres, lostUpdate, "RR", "RC", "violation lost update"},
		{postgres, lostUpdate, "RC", "SR", "hazard lost update"},
		{postgres, lostUpdate, "SR", "RC", "violation lost update"},
		{postgres, lostUpdate, "SR", "SR", "violation lost update"},
		{postgres, lostUpdate, "SR", "??", "hazard lost update"},
		{postgres, lockedLost, "RC", "RC", "violation lost update"},
		{postgres, readSkew, "RC", "RC", "hazard read skew"},
		{postgres, readSkew, "RR", "RC", "violation read skew"},
		{postgres, readSkew, "SR", "RC", "violation read skew"},
		{postgres, oneSelect, "RU", "RC", "violation read skew"},
		{postgres, oneSelect, "RC", "RC", "violation read skew"},
		{postgres, figure5, "RC", "RC", "hazard read skew"},
		{postgres, figure5, "RR", "RR", "violation read skew"},
		{postgres, updateSkew, "RC", "RC", "hazard read-write skew"},
		{postgres, updateSkew, "SR", "RC", "violation read-write skew"},
		{postgres, deleteSkew, "RR", "RC", "violation read-write skew"},
		{postgres, writeSkew, "RC", "RC", "hazard write skew"},
		{postgres, writeSkew, "RR", "RR", "hazard write skew"},
		{postgres, writeSkew, "SR", "RR", "hazard write skew"},
		{postgres, writeSkew, "RC", "SR", "hazard write skew"},
		{postgres, writeSkew, "SR", "SR", "violation write skew"},
		{postgres, lockedSkew, "RC", "RC", "violation write skew"},
		{postgres, lockedSkew, "RC", "SR", "violation write skew"},
		{postgres, lockBetween, "RC", "SR", "hazard G2-item"},
		{postgres, lockBetween, "SR", "RC", "hazard G2-item"},
		{postgres, lockBetween, "SR", "SR", "violation G2-item"},
		{postgres, readOnly, "SR", "SR", "violation G2-item"},
		{postgres, readOnly, "RR", "SR", "hazard G2-item"},
		{postgres, readOnly, "RC", "SR", "hazard G2-item"},
		{postgres, g0, "RU", "RU", "violation G0"},
		{postgres, g1a, "RU", "SR", "violation G1a"},
		{postgres, g1b, "RU", "SR", "violation G1b"},
		{postgres, g1c, "RU", "RC", "violation G1c"},
		{postgres, dirty, "RU", "RU", "violation dirty update"},
		{postgres, byAnother, "RC", "RC", "violation G-single"},
		{postgres, reread, "RC", "RC", "hazard non-repeatable read"},
		{postgres, reLocked, "RR", "RC", "violation non-repeatable read"},
		{postgres, longFork, "RR", "RC", "violation G-nonadjacent"},
		{postgres, longFork, "SR", "RC", "violation G-nonadjacent"},
		{postgres, longFork, "RC", "SR", "hazard G-nonadjacent"},
	} {
		text := strings.NewReplacer("L1", c.l1, "L2", c.l2).Replace(c.history)
		t.Run(c.server.Engine.String()+" "+c.l1+" "+c.l2+" "+c.want, func(t *testing.T) {
			info := scriptInfo()
			info.Server = c.server
			r := expect(t, info, text, c.want)
			for _, f := range r.Findings {
				if f.Rule == "" || f.Summary == "" || len(f.Advice) == 0 || len(f.Explanation) != len(f.Witness) {
					t.Errorf("finding without all its words: %+v", f)
				}
			}
		})
	}
}

func TestEveryPromiseHasItsSource(t *testing.T) {
	for _, p := range Promises {
		if p.Source == "" || p.URL == "" || (len(p.Forbids) == 0) != p.Refused || p.Silent == "" != p.Refused {
			t.Errorf("promise without a source or content: %+v", p)
		}
	}
}

// The levels are ordered as Adya, Bailis and Elle have them. (Elle puts PL-FCV below SI, whose snapshots may be old
// here, and no SI below PL-2.99, which permits phantoms: what is said of rows alone cannot tell these apart.)
func TestLevelsImplyWeakerOnes(t *testing.T) {
	for _, chain := range [][]string{
		{"PL-1", "PL-2", "PL-CS", "PL-2+", "SI", "PL-2.99", "PL-3", "strong session PL-3", "PL-SS"},
		{"PL-2", "MAV", "PL-2L", "PL-2+", "PL-FCV", "strong SI", "PL-SS"},
		{"MAV", "RA", "PL-2+"},
		{"PL-1", "strong session PL-1", "strong session PL-2", "strong session SI", "strong session PL-3"},
		{"strong session PL-1", "strong PL-1", "strong PL-2", "strong SI"},
		{"PL-2", "strong session PL-2", "strong PL-2"},
		{"SI", "strong session SI", "strong SI"},
	} {
		for i := range chain[1:] {
			if !implies(t, chain[i+1], chain[i]) {
				t.Errorf("%s does not imply %s", chain[i+1], chain[i])
			}
			if implies(t, chain[i], chain[i+1]) {
				t.Errorf("%s implies %s", chain[i], chain[i+1])
			}
		}
	}
	for _, pair := range [][2]string{{"PL-CS", "MAV"}, {"RA", "PL-2L"}, {"SI", "PL-FCV"}, {"strong PL-2", "SI"},
		{"strong session PL-3", "strong PL-1"}} {
		if implies(t, pair[0], pair[1]) || implies(t, pair[1], pair[0]) {
			t.Errorf("%s and %s are ordered", pair[0], pair[1])
		}
	}
}

func implies(t *testing.T, a, b string) bool {
	place := func(name string) int {
		l := findLevel(t, name)
		return slices.IndexFunc(TheoryLevels, func(x TheoryLevel) bool { return x.Name == l.Name })
	}
	return stronger[place(a)][place(b)]
}

func findLevel(t *testing.T, name string) *TheoryLevel {
	t.Helper()
	l, err := FindLevel(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLevelsHaveSourcesAndNames: levels have sources and are found by every name.
func TestLevelsHaveSourcesAndNames(t *testing.T) {
	for i := range TheoryLevels {
		l := &TheoryLevels[i]
		if l.Source == "" || len(l.Forbids) == 0 || len(l.Aliases) == 0 {
			t.Errorf("level without a source or content: %+v", l)
		}
		for _, name := range append([]string{l.Name, strings.ToLower(l.Name), strings.ReplaceAll(l.Name, " ", "-")},
			l.Aliases...) {
			if findLevel(t, name) != l {
				t.Errorf("%s is another level", name)
			}
		}
	}
	if _, err := FindLevel("chaos"); err == nil || !strings.Contains(err.Error(), "snapshot-isolation") {
		t.Errorf("error %v", err)
	}
}

// TiDB's optimistic transactions do what its pessimistic ones do not: they refuse at COMMIT what would
// lose an update.
func TestTiDBsPromiseDependsOnHowTheTransactionBegan(t *testing.T) {
	for begin, want := range map[string]Class{
		"BEGIN": Hazard, "BEGIN PESSIMISTIC": Hazard, "START TRANSACTION": Hazard,
		"BEGIN OPTIMISTIC": Violation, "begin /*T! optimistic */": Violation,
	} {
		h := script(t, "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0")
		h[0].Stmts = append([]history.Stmt{{Kind: history.Begin, Shape: begin}}, h[0].Stmts...)
		info := scriptInfo()
		info.Server = history.Server{Engine: "tidb", Version: "8.5"}
		r, err := Analyze([]history.Info{info}, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Class != want {
			t.Errorf("%s: findings %q, want a %s", begin, names(r), want)
		}
	}
}

// A locking clause does not reach into a derived table: what it returns may have been read without
// a lock.
func TestLockingClauseOutsideOfSubqueryIsNoPromise(t *testing.T) {
	for _, text := range []string{
		"T1 committed RC | R x 0 | u x T2.1\nT2 committed RC | u x 0",
		"T1 committed RR | R x 0 | r y T2.2\nT2 committed RR | u x 0 | u y 0",
	} {
		h := script(t, text)
		h[0].Stmts[0].Shape = "SELECT v FROM (SELECT v FROM t WHERE id = ?) d FOR UPDATE"
		r, err := Analyze([]history.Info{scriptInfo()}, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Class != Hazard {
			t.Errorf("findings %q, want a hazard", names(r))
		}
	}
}
