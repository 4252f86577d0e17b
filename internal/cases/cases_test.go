package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/replay"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// measured are the servers whose observations the corpus holds.
var measured = map[dbms.Family]string{dbms.MySQLFamily: "mariadb-10.11.19", dbms.PostgreSQLFamily: "postgresql-15.18"}

func newRunner(t *testing.T, f dbms.Family) (*replay.Runner, replay.Server) {
	t.Helper()
	server := replay.Server{Family: f, User: "root"}
	if f == dbms.PostgreSQLFamily {
		server.Addr, server.User = backends.Start(t, testdb.PostgreSQL(t).Addr()).Addr, "postgres"
	} else {
		server.Addr = testdb.MariaDB(t).Addr()
	}
	r, err := replay.NewRunner(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, server
}

func loadCorpus(t *testing.T, f dbms.Family) []Case {
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
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r, server := newRunner(t, dbms.MySQLFamily)
	plan := Plan(loadCorpus(t, dbms.MySQLFamily))
	for _, mode := range []struct {
		name, note string
		options    replay.Options
	}{
		{"text", "", replay.Options{}},
		{"prepared", "", replay.Options{Prepared: true}},
		{"snapshot isolation", "innodb_snapshot_isolation=ON",
			replay.Options{Session: []string{"SET SESSION innodb_snapshot_isolation=ON"}}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			var chosen []Planned
			for _, p := range plan {
				if p.Case.ObservedAt(measured[dbms.MySQLFamily], p.Level, mode.note) != nil {
					chosen = append(chosen, p)
				}
			}
			if mode.note == "" && len(chosen) != len(plan) {
				t.Errorf("%d of %d planned runs have observations", len(chosen), len(plan))
			}
			runAsObserved(t, r, server, chosen, mode.options, func(p Planned) []Observation {
				return p.Case.ObservedAt(measured[dbms.MySQLFamily], p.Level, mode.note)
			})
		})
	}
}

// TestPostgreSQLRunsTheCorpusAsObserved likewise; READ UNCOMMITTED is READ COMMITTED there.
func TestPostgreSQLRunsTheCorpusAsObserved(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r, server := newRunner(t, dbms.PostgreSQLFamily)
	plan := Plan(loadCorpus(t, dbms.PostgreSQLFamily))
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepared %t", prepared), func(t *testing.T) {
			runAsObserved(t, r, server, plan, replay.Options{Prepared: prepared}, func(p Planned) []Observation {
				if p.Level == history.ReadUncommitted {
					p.Level = history.ReadCommitted
				}
				return p.Case.ObservedAt(measured[dbms.PostgreSQLFamily], p.Level, "")
			})
		})
	}
}

// runAsObserved runs the planned cases and compares each with its observation.
func runAsObserved(t *testing.T, r *replay.Runner, server replay.Server, plan []Planned, o replay.Options,
	observation func(Planned) []Observation) {
	begin := time.Now()
	traces, err := r.RunAll(t.Context(), server, Jobs(plan), 8, o)
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
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, f := range []dbms.Family{dbms.MySQLFamily, dbms.PostgreSQLFamily} {
		t.Run(string(f), func(t *testing.T) {
			r, server := newRunner(t, f)
			plan := Plan(loadCorpus(t, f))
			first, err := r.RunAll(t.Context(), server, Jobs(plan), 8, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			second, err := r.RunAll(t.Context(), server, Jobs(plan), 4, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range plan {
				for _, d := range replay.Compare(first[i], second[i]) {
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
	if levels := c.RunsAt(); len(levels) != 1 || levels[0] != history.ReadCommitted {
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
	for f, want := range map[dbms.Family]int{dbms.MySQLFamily: 53, dbms.PostgreSQLFamily: 39} {
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

// TestDeviationsShowAtAnotherLevel: deviations show when a level is not the measured one.
func TestDeviationsShowAtAnotherLevel(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	for _, c := range loadCorpus(t, dbms.MySQLFamily) {
		if c.ID != "exp-vsr-snapshot" {
			continue
		}
		trace, err := r.Run(t.Context(), server, c.Scenario(), history.ReadCommitted, replay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := places(Deviations(trace, c.ObservedAt(measured[dbms.MySQLFamily], history.RepeatableRead,
			""))); got != "5 rows" {
			t.Errorf("READ COMMITTED against REPEATABLE READ's observation: %q", got)
		}
		if got := places(Deviations(trace, c.ObservedAt(measured[dbms.MySQLFamily], history.Serializable,
			""))); got != "4 waiting, 5 rows" {
			t.Errorf("READ COMMITTED against SERIALIZABLE's observation: %q", got)
		}
		if got := places(Deviations(trace, nil)); got != "0 scenario" {
			t.Errorf("against no observation: %q", got)
		}
		return
	}
	t.Fatal("the corpus has no exp-vsr-snapshot")
}

func places(all []replay.Difference) string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = fmt.Sprintf("%d %s", d.N, d.Field)
	}
	return strings.Join(texts, ", ")
}
