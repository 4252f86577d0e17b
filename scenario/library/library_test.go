package library_test

import (
	"flag"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/library"
	"github.com/isotap/isotap/scenario/runner"
)

func TestMain(m *testing.M) {
	testdb.Main(m, append([]testdb.Engine{testdb.MariaDB118, testdb.MySQL}, testdb.PostgreSQLs...)...)
}

// times is how often each scenario is played at each level: the same has to come of it each time.
var times = flag.Int("times", 1, "play each scenario so often")

// all returns the catalogue's scenarios by the files' paths, without ReplBug's.
func all(t *testing.T) map[string]*scenario.Scenario {
	t.Helper()
	scenarios := read(t, ".")
	maps.DeleteFunc(scenarios, func(path string, _ *scenario.Scenario) bool { return strings.HasPrefix(path, "replbug/") })
	return scenarios
}

// read returns the scenarios of a directory by the files' paths.
func read(t *testing.T, root string) map[string]*scenario.Scenario {
	t.Helper()
	scenarios := make(map[string]*scenario.Scenario)
	err := fs.WalkDir(library.Files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := library.Files.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		scenarios[path], err = scenario.Read(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

func TestScenariosSayWhatTheyAreAndComeFrom(t *testing.T) {
	for path, s := range all(t) {
		if s.Name == "" || s.From == "" || strings.Contains(s.From, "\n") || len(s.Outcomes) == 0 {
			t.Errorf("%s has no name, no line of where it comes from, or no outcomes", path)
		}
		if strings.HasPrefix(path, "hermitage/") && (len(s.Shows) == 0 || len(s.Witness) == 0) {
			t.Errorf("%s does not say which anomalies it is about, or which replies tell of them", path)
		}
	}
}

// The thesis has 116 bugs that it could replicate, and 12 that it could not. What can end a server, or changes it, is
// written for the one server that the report is about.
func TestReplBugIsWhole(t *testing.T) {
	bugs := read(t, "replbug")
	if len(bugs) != 128 {
		t.Errorf("there are %d bugs, want 128", len(bugs))
	}
	untold := 0
	for path, s := range bugs {
		if s.Name == "" || !strings.Contains(s.From, "; ReplBug ") || !strings.Contains(s.From, "; by the thesis on ") {
			t.Errorf("%s does not say what it is and where it comes from", path)
		}
		if s.OwnServer() && len(s.Engines) != 1 {
			t.Errorf("%s may harm servers of %v", path, s.Engines)
		}
		if len(s.Witness) == 0 {
			untold++
		}
	}
	if untold != 19 {
		t.Errorf("of %d bugs no reply tells, want 19", untold)
	}
}

// Of Hermitage's anomalies there are two judges: the replies, and isotap, which needs no replies. Where an outcome was
// measured they say the same.
func TestWitnessesSayWhatIsotapFinds(t *testing.T) {
	told := 0
	for path, s := range all(t) {
		if !strings.HasPrefix(path, "hermitage/") {
			continue
		}
		for _, o := range s.Outcomes {
			for _, level := range o.Levels {
				at := strings.Join([]string{path, o.Engines[0], level}, ", ")
				found := slices.ContainsFunc(o.Anomalies, func(a string) bool { return slices.Contains(s.Shows, a) })
				comes := comes(s.Witness, o.Steps)
				if comes {
					told++
				}
				if comes != found {
					t.Errorf("%s %s: the witness comes: %v; %v is found", at, o.Settings, comes, o.Anomalies)
				}
			}
		}
	}
	if told < 40 {
		t.Errorf("%d outcomes show their anomaly", told)
	}
}

// comes reports whether replies are those of a witness.
func comes(witness, replies map[int]scenario.Reply) bool {
	for n, want := range witness {
		got := replies[n]
		if got.Error != want.Error || want.Affected != nil && (got.Affected == nil || *got.Affected != *want.Affected) ||
			want.Values != nil && !reflect.DeepEqual(got.Values, want.Values) {
			return false
		}
		rows := uint64(len(got.Values))
		if got.Rows != nil {
			rows = *got.Rows
		}
		if want.Rows != nil && rows != *want.Rows {
			return false
		}
	}
	return true
}

func TestScenariosComeAsTheyAreExpectedOnMySQL(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel()
	play(t, targetOf(t, testdb.Current(t).URL()), nil)
}

func TestScenariosComeAsTheyAreExpectedOnPostgreSQL(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel()
	target := targetOf(t, testdb.PostgreSQL(t).URL())
	target.Address = backends.Start(t, target.Address).Addr // a process for each session takes most of the time
	play(t, target, nil)
}

func TestScenariosComeAsTheyAreExpectedOnTiDB(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel()
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	for mode, settings := range map[string]scenario.Settings{"pessimistic": nil,
		"optimistic": {"tidb_txn_mode": "optimistic"}} {
		t.Run(mode, func(t *testing.T) { play(t, targetOf(t, server.URL()), settings) })
	}
}

func targetOf(t *testing.T, url string) dsn.Target {
	t.Helper()
	target, err := dsn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// play plays the catalogue at all levels of a server.
func play(t *testing.T, target dsn.Target, settings scenario.Settings) {
	t.Helper()
	s, err := runner.Open(t.Context(), target, runner.Options{Columns: true, Predicates: true, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for path, sc := range all(t) {
		if !sc.RunsOn(s.Server) {
			continue
		}
		for _, level := range s.Levels() {
			first := playOnce(t, s, sc, level, path)
			for range *times - 1 {
				if again := playOnce(t, s, sc, level, path); again != first {
					t.Errorf("%s at %s: once\n%s\nand once\n%s", path, level, first, again)
				}
			}
		}
	}
}

// playOnce plays a scenario at a level, and returns the JSON report.
func playOnce(t *testing.T, s *runner.Runner, sc *scenario.Scenario, level history.Level, path string) string {
	t.Helper()
	p, err := s.Play(t.Context(), sc, level)
	if err != nil {
		t.Fatalf("%s at %s: %v", path, level, err)
	}
	for _, text := range p.Unexpected() {
		t.Errorf("%s at %s: %s", path, level, text)
	}
	var b strings.Builder
	if err := runner.JSON(&b, []*runner.Result{p}, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
