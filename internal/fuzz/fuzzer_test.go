package fuzz

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.MySQL) }

var (
	readCommitted = workload.Isolation{Level: history.ReadCommitted}
	serializable  = workload.Isolation{Level: history.Serializable}
)

func openStage(t *testing.T, url string) *runner.Runner {
	t.Helper()
	target, err := dsn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := runner.Open(t.Context(), target, runner.Options{Predicates: true, ServerLog: serverlog.Auto})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// What the levels permit is found, and nothing that they forbid.
func TestRunsFindWhatIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tally, err := Run(t.Context(), openStage(t, url(t)),
				Options{Levels: []workload.Isolation{readCommitted, serializable}, Rounds: 6, Seed: 1, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := tally.Text(&text); err != nil {
				t.Fatal(err)
			}
			if tally.Failed() || len(tally.Levels[serializable].Hazards) > 0 || tally.Rounds != 6 {
				t.Errorf("%s", text.String())
			}
			if len(tally.Levels[readCommitted].Hazards) == 0 || len(tally.Catches) == 0 {
				t.Errorf("READ COMMITTED shows nothing:\n%s", text.String())
			}
			for _, c := range tally.Catches {
				readSaved(t, c.File)
				if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("report-%d.html", c.Seed))); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TiDB's optimistic transactions say so in the scenarios that come of them.
func TestRunsTakeTiDBsModesInTurn(t *testing.T) {
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	dir := t.TempDir()
	tally, err := Run(t.Context(), openStage(t, server.URL()),
		Options{Rounds: 4, Seed: 1, Dir: dir, Profile: random.Profile{Transactions: 40}})
	if err != nil {
		t.Fatal(err)
	}
	if len(tally.Levels) != 4 {
		t.Errorf("%d levels, want two in two modes", len(tally.Levels))
	}
	for isolation, at := range tally.Levels {
		if len(at.Violations) > 0 || at.Transactions != 40 {
			t.Errorf("%v: %+v", isolation, at)
		}
	}
	for _, c := range tally.Catches {
		s := readSaved(t, c.File)
		if began := s.Steps[0].SQL; began == "BEGIN OPTIMISTIC" != c.Level.Optimistic {
			t.Errorf("%s: its first transaction begins with %q", c.Key, began)
		}
	}
}

func readSaved(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s, err := scenario.Read(file)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(name), err)
	}
	return s
}

// lostUpdate is a scenario with much that does not matter.
func lostUpdate() *scenario.Scenario {
	whole := &scenario.Scenario{Name: "whole", Sessions: []scenario.Session{{Name: "A"}, {Name: "B"}}, Setup: []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY)",
		"INSERT INTO t (id, v) VALUES (1, 10)", "INSERT INTO t (id, v) VALUES (2, 20)"}}
	for _, line := range []string{"A: BEGIN", "B: SELECT * FROM u", "A: SELECT v FROM t WHERE id = 1 ORDER BY v",
		"B: BEGIN", "B: UPDATE t SET v = v + 1 WHERE id = 1", "B: UPDATE t SET v = 7 WHERE id = 2",
		"B: COMMIT", "A: UPDATE t SET v = 9 WHERE id = 1 AND v > 0", "A: COMMIT"} {
		session, sql, _ := strings.Cut(line, ": ")
		whole.Steps = append(whole.Steps, scenario.Step{Session: session, SQL: sql})
	}
	return whole
}

// Of a replay the cycle's statements alone are found, and show what it did.
func TestReplaysFindingShowsItsStatements(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStage(t, url(t))
			p, err := s.Play(t.Context(), lostUpdate(), history.ReadCommitted)
			if err != nil {
				t.Fatal(err)
			}
			like := Like("lost update", "hazard")
			at := slices.IndexFunc(p.Result.Findings, like)
			if at < 0 {
				t.Fatalf("found %v", p.Anomalies())
			}
			least := accountOf(p).beginnings(p.Result.Findings[at], func(*account, []string) []string { return nil })[0]
			const want = "S1 BEGIN; S1 SELECT v FROM t WHERE id = 1 ORDER BY v; S2 BEGIN; " +
				"S2 UPDATE t SET v = v + 1 WHERE id = 1; S2 COMMIT; S1 UPDATE t SET v = 9 WHERE id = 1 AND v > 0; S1 COMMIT"
			if got := sent(least); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if ok, err := Shows(s, history.ReadCommitted, like)(t.Context(), least); err != nil || !ok {
				t.Errorf("it does not show it (%v)", err)
			}
		})
	}
}

// A scenario with much that does not matter comes down to the read and the two writes.
func TestAScenarioIsMadeSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	s := openStage(t, testdb.MariaDB(t).URL())
	whole := lostUpdate()
	small, tried, err := Reduce(t.Context(), dbms.MySQLFamily, whole, history.ReadCommitted, "lost update",
		Shows(s, history.ReadCommitted, Like("lost update", "hazard")))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := small.Scenario.Write(&b); err != nil {
		t.Fatal(err)
	}
	if len(small.Scenario.Steps) > 5 || len(small.Scenario.Setup) > 2 || small.Shown != replays {
		t.Errorf("%d tries, shown %d times:\n%s", tried, small.Shown, b.String())
	}
}
