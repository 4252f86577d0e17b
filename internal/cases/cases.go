// Package cases holds the interleaved cases that isotap is measured by: the "histories" that the isolation
// literature draws as two columns of SQL (Hermitage, and the figures of IsoRel, TxCheck, Troc and the ReplBug
// thesis), with what was measured on a real server beside them.
//
// [Corpus] gives the cases, package replay runs them, and [Deviations] tells what has come of one from what was
// measured.
package cases

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

//go:embed testdata/*.yaml
var corpus embed.FS

// A level is an isolation level by its SQL name.
type level history.Level

// UnmarshalYAML reads the name.
func (l *level) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := history.ParseLevel(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*l = level(parsed)
	return nil
}

// A Case is a set-up and an order of statements by several sessions.
type Case struct {
	ID       string         `yaml:"id"`
	Title    string         `yaml:"title"`
	Source   map[string]any `yaml:"source"` // where it comes from: repository, path, commit, license; or paper and figure
	Dialects []dbms.Engine  `yaml:"dialects"`
	// Isolation is the level that the source speaks of; empty when it speaks of several.
	Isolation level `yaml:"isolation"`
	// Levels are the levels to run at; empty means Isolation only.
	Levels []level  `yaml:"isolation_levels"`
	Claim  Claim    `yaml:"claim"`
	Setup  []string `yaml:"setup"` // one statement each, autocommitted
	Steps  []Step   `yaml:"steps"`
	// Observed holds what was measured, one item a step, by server and level as in
	// "mariadb-10.11.19 RR". A case that runs at one level only may leave the level out.
	Observed map[string][]Observation `yaml:"observed"`
}

// A Claim is what the source says. It is no fact about any server.
type Claim struct {
	Anomaly string `yaml:"anomaly"`
	Verdict string `yaml:"verdict"` // "prevented", "occurs" or empty
}

// A Step is one statement of one session.
type Step struct {
	N       int    `yaml:"n"` // its number, from 1
	Session string `yaml:"s"`
	SQL     string `yaml:"sql"`
	Note    string `yaml:"note"`
}

// RunsAt returns the levels that the case is run at.
func (c *Case) RunsAt() []history.Level {
	if len(c.Levels) == 0 {
		return []history.Level{history.Level(c.Isolation)}
	}
	all := make([]history.Level, len(c.Levels))
	for i, l := range c.Levels {
		all[i] = history.Level(l)
	}
	return all
}

// finalSession reads the final state over a fresh connection.
const finalSession = "T9"

// Scenario returns the case as it is run.
func (c *Case) Scenario() *scenario.Scenario {
	s := &scenario.Scenario{Name: c.ID, Setup: c.Setup}
	for _, x := range c.Steps {
		if s.Session(x.Session) == nil {
			s.Sessions = append(s.Sessions, scenario.Session{Name: x.Session, Late: x.Session == finalSession})
		}
		s.Steps = append(s.Steps, scenario.Step{Session: x.Session, SQL: x.SQL})
	}
	return s
}

// A Planned run is a case and one of the levels it is run at.
type Planned struct {
	Case  Case
	Level history.Level
}

// Plan returns every case at each of its levels.
func Plan(all []Case) []Planned {
	var plan []Planned
	for _, c := range all {
		for _, level := range c.RunsAt() {
			plan = append(plan, Planned{Case: c, Level: level})
		}
	}
	return plan
}

// Jobs returns the planned runs as jobs, in their order.
func Jobs(plan []Planned) []replay.Job {
	jobs := make([]replay.Job, len(plan))
	for i, p := range plan {
		jobs[i] = replay.Job{Scenario: p.Case.Scenario(), Level: p.Level}
	}
	return jobs
}

// Parse reads one case.
func Parse(text []byte) (Case, error) {
	var c Case
	if err := yaml.Unmarshal(text, &c); err != nil {
		return Case{}, fmt.Errorf("reading a case: %w", err)
	}
	if err := c.check(); err != nil {
		return Case{}, fmt.Errorf("case %q: %w", c.ID, err)
	}
	return c, nil
}

// check refuses what would otherwise fail in the middle of a run.
func (c *Case) check() error {
	switch {
	case c.ID == "":
		return fmt.Errorf("it has no id")
	case len(c.Steps) == 0:
		return fmt.Errorf("it has no steps")
	case c.Isolation == level(history.LevelUnknown) && len(c.Levels) == 0:
		return fmt.Errorf("it names no isolation level")
	}
	for i, s := range c.Steps {
		if s.N != i+1 {
			return fmt.Errorf("step %d follows step %d", s.N, i)
		}
		if s.Session == "" || s.SQL == "" {
			return fmt.Errorf("step %d has no session or no statement", s.N)
		}
	}
	return nil
}

// runsOn reports whether the case is written for servers of the family.
func (c *Case) runsOn(f dbms.Family) bool {
	return slices.ContainsFunc(c.Dialects, func(e dbms.Engine) bool { return e.Family() == f })
}

// Corpus returns the cases that come with the package for a family, in order of their ids: those of
// Hermitage, of the papers' figures and of isotap's own experiments that run on MariaDB or PostgreSQL.
func Corpus(f dbms.Family) ([]Case, error) {
	names, err := fs.Glob(corpus, "testdata/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the corpus: %w", err)
	}
	all := make([]Case, 0, len(names))
	for _, name := range names {
		text, err := corpus.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the corpus: %w", err)
		}
		c, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		if c.runsOn(f) {
			all = append(all, c)
		}
	}
	return all, nil
}
