package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// measured are the servers whose observations the corpus holds.
var measured = map[Family]string{MySQL: "mariadb-10.11.19", PostgreSQL: "postgresql-15.18"}

func newRunner(t *testing.T, f Family) (*Runner, Server) {
	t.Helper()
	server := Server{Family: f, User: "root"}
	if f == PostgreSQL {
		server.Addr, server.User = testdb.PostgreSQL(t).Addr(), "postgres"
	} else {
		server.Addr = testdb.MariaDB(t).Addr()
	}
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

func loadCorpus(t *testing.T, f Family) []Case {
	t.Helper()
	all, err := Corpus(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCorpusRunsAsObserved runs every case at every level, as text and prepared, and compares each
// step with what was measured when the corpus was made.
func TestCorpusRunsAsObserved(t *testing.T) {
	r, server := newRunner(t, MySQL)
	plan := Plan(loadCorpus(t, MySQL))
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
				if p.Case.ObservedAt(measured[MySQL], p.Level, mode.note) != nil {
					chosen = append(chosen, p)
				}
			}
			if mode.note == "" && len(chosen) != len(plan) {
				t.Errorf("%d of %d planned runs have observations", len(chosen), len(plan))
			}
			runAsObserved(t, r, server, chosen, mode.options, func(p Planned) []Observation {
				return p.Case.ObservedAt(measured[MySQL], p.Level, mode.note)
			})
		})
	}
}

// TestPostgreSQLRunsTheCorpusAsObserved likewise; READ UNCOMMITTED is READ COMMITTED there.
func TestPostgreSQLRunsTheCorpusAsObserved(t *testing.T) {
	r, server := newRunner(t, PostgreSQL)
	plan := Plan(loadCorpus(t, PostgreSQL))
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepared %t", prepared), func(t *testing.T) {
			runAsObserved(t, r, server, plan, Options{Prepared: prepared}, func(p Planned) []Observation {
				if p.Level == RU {
					p.Level = RC
				}
				return p.Case.ObservedAt(measured[PostgreSQL], p.Level, "")
			})
		})
	}
}

// runAsObserved runs the planned cases and compares each with its observation.
func runAsObserved(t *testing.T, r *Runner, server Server, plan []Planned, o Options, observation func(Planned) []Observation) {
	begin := time.Now()
	traces, err := r.RunAll(t.Context(), server, plan, 8, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs in %v", len(traces), time.Since(begin).Round(time.Millisecond))
	for i, trace := range traces {
		for _, d := range Deviations(trace, observation(plan[i])) {
			t.Error(d)
		}
	}
}

func TestTwoRunsOfTheCorpusCompareEqual(t *testing.T) {
	for _, f := range []Family{MySQL, PostgreSQL} {
		t.Run(string(f), func(t *testing.T) {
			r, server := newRunner(t, f)
			plan := Plan(loadCorpus(t, f))
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
		})
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
	for f, want := range map[Family]int{MySQL: 53, PostgreSQL: 39} {
		all := loadCorpus(t, f)
		if len(all) != want {
			t.Errorf("%s: %d cases, want %d", f, len(all), want)
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
}
