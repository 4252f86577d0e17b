package cases

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// measured is the server whose observations the corpus holds.
const measured = "mariadb-10.11.19"

func newRunner(t *testing.T) (*Runner, Server) {
	t.Helper()
	server := Server{Addr: testdb.MariaDB(t).Addr(), User: "root"}
	running := goleak.IgnoreCurrent()
	r, err := NewRunner(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, running)
	})
	return r, server
}

func loadCorpus(t *testing.T) []Case {
	t.Helper()
	all, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCorpusRunsAsObserved runs every case at every level, as text and prepared, and compares each
// step with what was measured when the corpus was made.
func TestCorpusRunsAsObserved(t *testing.T) {
	r, server := newRunner(t)
	plan := Plan(loadCorpus(t))
	for _, mode := range []struct {
		name, note string
		options    Options
	}{
		{"text", "", Options{}},
		{"prepared", "", Options{Prepared: true}},
		{"snapshot isolation", "innodb_snapshot_isolation=ON", Options{Session: []string{"SET SESSION innodb_snapshot_isolation=ON"}}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			var chosen []Planned
			for _, p := range plan {
				if p.Case.ObservedAt(measured, p.Level, mode.note) != nil {
					chosen = append(chosen, p)
				}
			}
			if mode.note == "" && len(chosen) != len(plan) {
				t.Errorf("%d of %d planned runs have observations", len(chosen), len(plan))
			}
			begin := time.Now()
			traces, err := r.RunAll(t.Context(), server, chosen, 8, mode.options)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d runs in %v", len(traces), time.Since(begin).Round(time.Millisecond))
			for i, trace := range traces {
				for _, d := range Deviations(trace, chosen[i].Case.ObservedAt(measured, trace.Level, mode.note)) {
					t.Error(d)
				}
			}
		})
	}
}

func TestTwoRunsOfTheCorpusCompareEqual(t *testing.T) {
	r, server := newRunner(t)
	plan := Plan(loadCorpus(t))
	first, err := r.RunAll(t.Context(), server, plan, 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.RunAll(t.Context(), server, plan, 4, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan {
		for _, d := range Compare(first[i], second[i]) {
			t.Error(d)
		}
	}
}

func TestParseRefusesWhatCannotBeRun(t *testing.T) {
	const whole = "id: x\nisolation: READ COMMITTED\nsteps:\n  - {n: 1, s: A, sql: SELECT 1}\n  - {n: 2, s: B, sql: SELECT 2}\n"
	c, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if levels := c.RunsAt(); len(levels) != 1 || levels[0] != RC {
		t.Errorf("RunsAt = %v", levels)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"no YAML", "id: x", "id: [", "reading a case"},
		{"no id", "id: x", "id: ''", "no id"},
		{"no steps", "steps:", "stages:", "no steps"},
		{"no level", "isolation: READ COMMITTED", "", "no isolation level"},
		{"unknown level", "READ COMMITTED", "CURSOR STABILITY", "CURSOR STABILITY"},
		{"no order", "n: 2", "n: 1", "step 1 follows step 1"},
		{"no session", "s: B", "s: ''", "step 2 has no session"},
		{"no statement", "sql: SELECT 2", "sql: ''", "step 2 has no session or no statement"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(strings.Replace(whole, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
}

func TestCorpusKeepsItsSources(t *testing.T) {
	all := loadCorpus(t)
	if len(all) != 53 {
		t.Errorf("%d cases", len(all))
	}
	for _, c := range all {
		if len(c.Source) == 0 || c.Title == "" {
			t.Errorf("%s: no title or no source", c.ID)
		}
		if strings.HasPrefix(c.ID, "hermitage-") && c.Source["license"] != "CC-BY-4.0" {
			t.Errorf("%s: license %v", c.ID, c.Source["license"])
		}
	}
}
