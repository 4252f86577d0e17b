// Package scenario holds interleaved scripts: what several sessions do, in which order, and what is expected to
// come of it. docs/scenarios.md describes the YAML file that one is written to.
package scenario

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/history"
)

// Format names the file's format and its version, which grows when a field goes away or changes its meaning.
const Format = "isotap-scenario/1"

// A Scenario is one script.
type Scenario struct {
	File string `yaml:"-"` // that [ReadFile] read it from; empty: none
	// Unused are the steps of a specification that none of its permutations has, in order of their names.
	Unused []string `yaml:"-"`
	Format string   `yaml:"format"`
	Name   string   `yaml:"name"`
	From   string   `yaml:"from,omitempty"` // where it comes from, for people
	// Engines are the servers whose SQL it is written in, as in [Outcome]; none: all.
	Engines []string `yaml:"engines,omitempty,flow"`
	// Server is what it needs of the server beside its SQL.
	Server ServerNeeds `yaml:"server,omitempty,flow"`
	// Shows are the anomalies that it is about, by their names in isotap's reports. Others may be found beside them.
	Shows []string `yaml:"shows,omitempty,flow"`
	// Witness are replies, by the number of the step from 1, that all come only where one of Shows happened, or where
	// the server has the bug that the scenario is about. They tell of it where isotap sees nothing on a server, or is
	// not there. A reply that waits has to come late; of others it does not matter.
	Witness map[int]Reply `yaml:"witness,omitempty,flow"`
	// Tables are those that the steps need. A recording holds no schema, so that Setup is empty where the
	// scenario comes from one.
	Tables   []string  `yaml:"tables,omitempty"`
	Setup    []string  `yaml:"setup"` // statements that run before, each committed
	Sessions []Session `yaml:"sessions"`
	Steps    []Step    `yaml:"steps"` // in the order in which they are sent
	// InOrder says that a step whose session still waits is not passed by the steps behind it, and that steps which
	// wait at the end are given time to end by themselves, as by a time-out, before the other sessions are rolled back.
	InOrder bool `yaml:"in_order,omitempty"`
	// Closed says that nothing in the statements is left open: no LIMIT chooses among rows that its order does not tell
	// apart. Of an open scenario oracles compare only how many rows a LIMIT leaves.
	Closed bool `yaml:"closed,omitempty"`
	// Oracle is the one that finds a difference in it, by its name; empty: none is known to.
	Oracle   string   `yaml:"oracle,omitempty"`
	Teardown []string `yaml:"teardown,omitempty"` // statements that run after the sessions' own
	Expect   Outcome  `yaml:"expect,omitempty"`
	// Outcomes are what is expected on some servers and at some levels; the first that fits counts in place of Expect
	// and the steps' own expectations.
	Outcomes []Outcome `yaml:"outcomes,omitempty"`
}

// ServerNeeds are what a scenario needs of a server beside its SQL.
type ServerNeeds struct {
	// Own says that it changes the server itself, as by SET GLOBAL, or may end it: it is played on a throw-away server
	// that nothing else is played on.
	Own bool `yaml:"own,omitempty"`
	// Args are command line options of the server, as "--query-cache-type=1". They need a server of its own as well.
	Args []string `yaml:"args,omitempty,flow"`
}

// OwnServer reports whether the scenario is to be played on a server of its own: it says so, or expects that a
// connection is lost, as when the server crashes.
func (s *Scenario) OwnServer() bool { return s.Server.Own || len(s.Server.Args) > 0 || s.Loses() }

// Loses reports whether it expects somewhere that a connection is lost.
func (s *Scenario) Loses() bool {
	lost := func(replies map[int]Reply) bool {
		for _, r := range replies {
			if r.Lost {
				return true
			}
		}
		return false
	}
	return lost(s.Witness) || slices.ContainsFunc(s.Steps, func(x Step) bool { return x.Lost }) ||
		slices.ContainsFunc(append(slices.Clone(s.Outcomes), s.Expect), func(o Outcome) bool { return lost(o.Steps) })
}

// A Session is one connection.
type Session struct {
	Name  string `yaml:"name"`
	Level string `yaml:"level,omitempty"` // the isolation level of its transactions, by its SQL name; empty: that of the run
	Late  bool   `yaml:"late,omitempty"`  // it connects at its first step, not before all steps
	// Settings are its own, beside the run's.
	Settings Settings `yaml:"settings,omitempty,flow"`
	// Setup are statements that it begins with, after all sessions have connected; Teardown those that it ends with.
	Setup    []string `yaml:"setup,omitempty"`
	Teardown []string `yaml:"teardown,omitempty"`
}

// A Step is one statement.
type Step struct {
	Session string `yaml:"session"`
	SQL     string `yaml:"sql"`
	Name    string `yaml:"name,omitempty"` // for Until; steps that are sent several times share one
	// AtOnce has it count as waiting as soon as it is sent: the next step does not wait for it.
	AtOnce bool `yaml:"at_once,omitempty"`
	// Until keeps it from counting as ended before all of these are so.
	Until []Condition `yaml:"until,omitempty"`
	// Incomplete says that values are missing in SQL: the recording did not have them in their places.
	Incomplete bool `yaml:"incomplete,omitempty"`
	// Reply is what is expected of the step.
	Reply `yaml:",inline"`
}

// A Condition is about another step: that it is not in flight, or that its session has got so many notices since the
// step with the condition was sent.
type Condition struct {
	Step    string `yaml:"step"` // its name
	Notices int    `yaml:"notices,omitempty"`
}

// A Reply is what is expected of a step.
type Reply struct {
	// Waits says that the reply comes only after a transaction of another session has ended, as when the step waits
	// for a lock.
	Waits    bool    `yaml:"waits,omitempty"`
	Rows     *uint64 `yaml:"rows,omitempty"`     // that a query gives
	Affected *uint64 `yaml:"affected,omitempty"` // that a write counts
	Error    string  `yaml:"error,omitempty"`    // the SQLSTATE that it fails with in place of success
	// Lost says that the connection ends in place of a reply, as when the server crashes.
	Lost bool `yaml:"lost,omitempty"`
	// Values are the rows that a query gives, as text, in their order; null is NULL.
	Values [][]*string `yaml:"values,omitempty,flow"`
}

// An Outcome is what is expected of the whole.
type Outcome struct {
	// Engines are the servers it is for: an engine ("mariadb", "mysql", "tidb", "postgresql"), or with the beginning of
	// its version ("mariadb 11.8"); none: all.
	Engines []string `yaml:"engines,omitempty"`
	Levels  []string `yaml:"levels,omitempty"` // the isolation levels it is for, by their SQL names; none: all
	// Settings are those that a run makes in its sessions, by the variables' names; none: it makes none.
	Settings Settings `yaml:"settings,omitempty,flow"`
	// Anomalies are all that are found, by their names in isotap's reports.
	Anomalies []string `yaml:"anomalies,omitempty"`
	// Shown says that one of the scenario's Shows is found, whatever else is; Open, that nothing is expected of what is
	// found. Anomalies do not count then.
	Shown bool `yaml:"shown,omitempty"`
	Open  bool `yaml:"open,omitempty"`
	// Steps are the replies, by the number of the step from 1. Of others nothing is expected.
	Steps map[int]Reply `yaml:"steps,omitempty"`
}

// fits reports whether the outcome is for a server at a level, with a run's settings.
func (o *Outcome) fits(server history.Server, level history.Level, settings Settings) bool {
	return (len(o.Levels) == 0 || slices.Contains(o.Levels, level.String())) && among(o.Engines, server) &&
		maps.Equal(o.Settings, settings)
}

// among reports whether a server is one of those that are named.
func among(engines []string, server history.Server) bool {
	engine := server.Engine.String() + " " + server.Version
	return len(engines) == 0 || slices.ContainsFunc(engines, func(e string) bool {
		rest, ok := strings.CutPrefix(engine, e)
		return ok && (rest == "" || rest[0] < '0' || rest[0] > '9')
	})
}

// RunsOn reports whether the scenario is written for a server.
func (s *Scenario) RunsOn(server history.Server) bool { return among(s.Engines, server) }

// Expected returns what is expected on a server when sessions run at a level, with settings.
func (s *Scenario) Expected(server history.Server, level history.Level, settings Settings) Outcome {
	for _, o := range s.Outcomes {
		if o.fits(server, level, settings) {
			return o
		}
	}
	o := Outcome{Anomalies: s.Expect.Anomalies, Shown: s.Expect.Shown, Open: s.Expect.Open, Steps: make(map[int]Reply)}
	for i, x := range s.Steps {
		if x.Waits || x.Rows != nil || x.Affected != nil || x.Error != "" || x.Lost || x.Values != nil {
			o.Steps[i+1] = x.Reply
		}
	}
	return o
}

// At returns the scenario with all sessions at the level of the run.
func (s *Scenario) At() *Scenario {
	at := *s
	at.Sessions = slices.Clone(s.Sessions)
	for i := range at.Sessions {
		at.Sessions[i].Level = ""
	}
	return &at
}

// Session returns a session by its name; nil where none is listed.
func (s *Scenario) Session(name string) *Session {
	for i := range s.Sessions {
		if s.Sessions[i].Name == name {
			return &s.Sessions[i]
		}
	}
	return nil
}

// Write writes a scenario's file. The error is w's.
func (s *Scenario) Write(w io.Writer) error {
	s.Format = Format
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("write the scenario: %w", err)
	}
	return enc.Close()
}
