package counterexample_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/counterexample"
	"github.com/isotap/isotap/robust/program"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func postgresql(t *testing.T) dsn.Target {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// benchmark returns a benchmark of the paper from its SQL.
func benchmark(t *testing.T, name string) (*robust.Workload, *counterexample.Tables, string) {
	t.Helper()
	w, err := program.Benchmark(name)
	if err != nil {
		t.Fatal(err)
	}
	_, definitions, err := program.BenchmarkFiles(name)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := counterexample.NewTables(dbms.PostgreSQLFamily, definitions.Text)
	if err != nil {
		t.Fatal(err)
	}
	return w, tables, definitions.Text
}

// Each smallest set of SmallBank's programs that is not robust has its anomaly on a real server: the statements of its
// execution run in that order, none waits or fails, and isotap finds its cycle.
func TestNonRobustSmallBankShowsOnPostgreSQL(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	s, err := runner.Open(t.Context(), postgresql(t), runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, tables, _ := benchmark(t, "smallbank")
	a := robust.Analyze(w.Programs, robust.Setting{ForeignKeys: true})
	for test, level := range map[robust.Test]history.Level{robust.TypeII: history.ReadCommitted,
		robust.Snapshot: history.RepeatableRead} {
		for _, set := range a.Subsets(test, 0).Minimal {
			name := ""
			for _, p := range set {
				name += " " + w.Programs[p].Label()
			}
			t.Run(level.String()+name, func(t *testing.T) {
				witness := a.Witness(test, set...)
				sc, err := counterexample.Scenario("SmallBank"+name, w, tables, witness)
				if err != nil {
					t.Fatal(err)
				}
				played, err := s.Play(t.Context(), sc, level)
				if err != nil {
					t.Fatal(err)
				}
				runsAsWritten(t, played)
				hasCycle(t, played, witness)
			})
		}
	}
}

// TPC-C's sets have theirs, too, but where a LIMIT hides it from isotap: what each scenario expects comes.
func TestNonRobustSetsOfTPCCShow(t *testing.T) {
	w, tables, _ := benchmark(t, "tpcc")
	play(t, testdb.PostgreSQL(t).URL(), w, tables, 3)
}

// And so do those of the programs that workload/known runs, in the SQL of MySQL, on MariaDB.
func TestNonRobustSetsShowOnMariaDB(t *testing.T) {
	programs, err := os.ReadFile("../mining/testdata/smallbank.sql")
	if err != nil {
		t.Fatal(err)
	}
	w, tables := compiled(t, dbms.MySQLFamily,
		`CREATE TABLE account (name VARCHAR(20) PRIMARY KEY, custid INT NOT NULL);
		CREATE TABLE savings (custid INT PRIMARY KEY, bal INT NOT NULL, changes INT NOT NULL);
		CREATE TABLE checking (custid INT PRIMARY KEY, bal INT NOT NULL, changes INT NOT NULL);`, string(programs))
	play(t, testdb.MariaDB(t).URL(), w, tables, 3)
}

// play plays the scenarios of a workload that is not robust, and wants at least so many to show their anomaly.
func play(t *testing.T, url string, w *robust.Workload, tables *counterexample.Tables, atLeast int) {
	t.Helper()
	target, err := dsn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := runner.Open(t.Context(), target, runner.Options{Predicates: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := robust.Analyze(w.Programs, robust.Setting{ForeignKeys: true})
	shown := 0
	for test, level := range map[robust.Test]history.Level{robust.TypeII: history.ReadCommitted,
		robust.Snapshot: history.RepeatableRead} {
		for _, set := range a.Subsets(test, 0).Minimal {
			sc, err := counterexample.Scenario(fmt.Sprint(set), w, tables, a.Witness(test, set...))
			if err != nil {
				t.Fatal(err)
			}
			played, err := s.Play(t.Context(), sc, level)
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range played.Unexpected() {
				t.Errorf("%v at %s: %s", set, level, what)
			}
			if played.Shows() == runner.Possible {
				shown++
			}
		}
	}
	if shown < atLeast {
		t.Errorf("%d scenarios show what they are about, want %d", shown, atLeast)
	}
}

// runsAsWritten holds what a replay did against its scenario: the transactions are not in each other's way, and all
// rows are there.
func runsAsWritten(t *testing.T, p *runner.Result) {
	t.Helper()
	for _, r := range p.Trace.Results {
		if r.Status != replay.OK || r.Blocked || len(r.Rows)+int(r.Affected) != 1 && r.SQL != "BEGIN" &&
			r.SQL != "COMMIT" {
			t.Errorf("step %d, %s: %v %s, it waited: %v, %d rows, %d affected", r.N, r.SQL, r.Status, r.Message,
				r.Blocked, len(r.Rows), r.Affected)
		}
	}
}

// hasCycle looks for the proof's cycle among the findings: as many transactions, each of which depends on the one
// before it in a way that the execution has it.
func hasCycle(t *testing.T, p *runner.Result, w *robust.Witness) {
	t.Helper()
	all, err := w.Schedule.Check()
	if err != nil {
		t.Fatal(err)
	}
	var want [][]analyzer.DepKind
	for _, edge := range w.Proof {
		var kinds []analyzer.DepKind
		for _, d := range all {
			if d.From.Run == edge.From.Run && d.To.Run == edge.To.Run {
				kinds = append(kinds, analyzer.DepKind(d.Kind))
			}
		}
		want = append(want, kinds)
	}
	var found []string
	for _, f := range p.Result.Findings {
		if rotated(f.Witness, want) {
			t.Logf("%s: %s", f.Anomaly, f.Summary)
			return
		}
		found = append(found, string(f.Anomaly))
	}
	t.Errorf("found %q, want a cycle of %v", found, want)
}

// rotated reports whether a cycle's edges are of these kinds, wherever it begins.
func rotated(cycle []analyzer.Edge, want [][]analyzer.DepKind) bool {
	for i := range want {
		turned := append(slices.Clone(want[i:]), want[:i]...)
		if slices.EqualFunc(cycle, turned,
			func(e analyzer.Edge, kinds []analyzer.DepKind) bool { return slices.Contains(kinds, e.Kind) }) {
			return true
		}
	}
	return false
}
