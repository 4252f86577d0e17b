// Package scenario holds interleaved scripts: what several sessions do, in which order, and what is expected to
// come of it. docs/scenarios.md describes the YAML file that one is written to.
package scenario

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Format names the file's format and its version, which grows when a field goes away or changes its meaning.
const Format = "isotap-scenario/1"

// A Scenario is one script.
type Scenario struct {
	Format string `yaml:"format"`
	Name   string `yaml:"name"`
	From   string `yaml:"from,omitempty"` // where it comes from, for people
	// Tables are those that the steps need. A recording holds no schema, so that Setup is empty where the
	// scenario comes from one.
	Tables   []string  `yaml:"tables,omitempty"`
	Setup    []string  `yaml:"setup"` // statements that run before, each committed
	Sessions []Session `yaml:"sessions"`
	Steps    []Step    `yaml:"steps"` // in the order in which they are sent
	Expect   Outcome   `yaml:"expect,omitempty"`
}

// A Session is one connection.
type Session struct {
	Name  string `yaml:"name"`
	Level string `yaml:"level,omitempty"` // the isolation level of its transactions, by its SQL name; empty: that of the run
	Late  bool   `yaml:"late,omitempty"`  // it connects at its first step, not before all steps
}

// A Step is one statement.
type Step struct {
	Session string `yaml:"session"`
	SQL     string `yaml:"sql"`
	// Incomplete says that values are missing in SQL: the recording did not have them in their places.
	Incomplete bool `yaml:"incomplete,omitempty"`
	// Waits says that its reply came only after a transaction of another session had ended, as when it waits
	// for a lock.
	Waits    bool    `yaml:"waits,omitempty"`
	Rows     *uint64 `yaml:"rows,omitempty"`     // that a query is expected to give
	Affected *uint64 `yaml:"affected,omitempty"` // that a write is expected to count
	Error    string  `yaml:"error,omitempty"`    // the SQLSTATE that is expected in place of success
}

// An Outcome is what is expected of the whole.
type Outcome struct {
	Anomalies []string `yaml:"anomalies,omitempty"` // by their names in isotap's reports
}

// Session gives a session by its name; nil where none is listed.
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

// Read reads what [Scenario.Write] wrote. A field that it does not know is an error, and so is a step of a session
// that is not listed.
func Read(r io.Reader) (*Scenario, error) {
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	var s Scenario
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	if s.Format != Format {
		return nil, fmt.Errorf("the scenario's format is %q, and this isotap reads %q", s.Format, Format)
	}
	for i, x := range s.Steps {
		if s.Session(x.Session) == nil {
			return nil, fmt.Errorf("step %d is of session %q, which is not listed", i+1, x.Session)
		}
	}
	return &s, nil
}
