package fuzz

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload"
)

// A Catch is a finding that no earlier round has shown.
type Catch struct {
	Key     string // what makes it different: see keyOf
	Level   workload.Isolation
	Seed    uint64
	Finding *analyzer.Finding
	Seen    int // in how many rounds
	// Scenario is the smallest that shows it; nil where none does.
	Scenario *scenario.Scenario
	// Shown is how often it does, of so many replays.
	Shown, Replays int
	Reduction      Reduction
	File           string // the scenario's, or that of all that the round sent; empty: none was written
	seen           []occurrence
	last           uint64 // the last round's seed that showed it
	begun          int    // how often it was begun to make it small
}

// A sighting is a finding of a catch's kind, and the round that it was in.
type occurrence struct {
	round   *round
	finding *analyzer.Finding
	// whole is all that is left of one of an earlier run; nil of one of this.
	whole *scenario.Scenario
}

// maxOccurrences is how many of a catch's occurrences are kept: what a replay of one round does not show, that of
// another may.
const maxOccurrences = 5

// keyOf returns what tells findings apart, as in IsoRel 5.1, by the number, order and types of the statements of the
// transactions involved: here those statements that the cycle goes through, which is what a reduction leaves of them.
func keyOf(f *analyzer.Finding, level workload.Isolation) string {
	var txns []string
	for _, t := range f.Txns() {
		var kinds []string
		for i := range t.Stmts {
			if s := &t.Stmts[i]; onCycle(f, s) {
				kinds = append(kinds, kindOf(f, s))
			}
		}
		txns = append(txns, strings.Join(kinds, ", "))
	}
	slices.Sort(txns) // the cycle may begin with any of them
	return fmt.Sprintf("%s %s at %s: %s", f.Class, f.Anomaly, level, strings.Join(txns, " | "))
}

// kindOf is the kind of a statement on the cycle. An UPDATE that finds its values there already installs no version: it
// is on the cycle as one that saw another's.
func kindOf(f *analyzer.Finding, s *history.Stmt) string {
	kind := strings.TrimSpace(s.Kind.String() + " " + s.Locking.String())
	if s.Kind == history.Update && slices.ContainsFunc(f.Witness, func(e analyzer.Edge) bool {
		return e.ToStmt == s && e.Kept
	}) {
		kind += " of equal values"
	}
	return kind
}

// weight orders catches by what there is on their cycles.
func (c *Catch) weight() int {
	return 100*strings.Count(c.Key, "|") + strings.Count(c.Key, ",")
}

// onCycle reports whether an edge of the finding's witness leaves or enters by a statement.
func onCycle(f *analyzer.Finding, s *history.Stmt) bool {
	return slices.ContainsFunc(f.Witness, func(e analyzer.Edge) bool { return e.FromStmt == s || e.ToStmt == s })
}

// catch keeps a finding if it is new.
func (h *fuzzer) catch(r *round, f *analyzer.Finding) error {
	key := keyOf(f, r.level)
	if c := h.tally.seen[key]; c != nil {
		if c.last != r.seed {
			c.Seen, c.last = c.Seen+1, r.seed
			if len(c.seen) < maxOccurrences {
				c.seen = append(c.seen, occurrence{round: r, finding: f})
			}
		}
		return nil
	}
	c := &Catch{Key: key, Level: r.level, Seed: r.seed, Finding: f, Seen: 1, last: r.seed,
		seen: []occurrence{{round: r, finding: f}}}
	h.tally.seen[key] = c
	h.tally.Catches = append(h.tally.Catches, c)
	h.tally.Levels[r.level].of(f).Unique++
	for _, beyond := range h.tally.beyond(f) {
		beyond.Unique++
	}
	h.say("seed %d: %s", r.seed, key)
	if h.Dir == "" {
		return nil
	}
	return h.save(c, len(h.tally.Catches))
}

// save writes all that a catch's round sent, and keeps the round.
func (h *fuzzer) save(c *Catch, n int) error {
	c.File = filepath.Join(h.Dir, fmt.Sprintf("%02d-%s.yaml", n, strings.ReplaceAll(string(c.Finding.Anomaly), " ",
		"-")))
	if err := write(c.File, h.whole(c)); err != nil {
		return err
	}
	return h.keep(c.seen[0].round)
}

// keep keeps a round's recording and the report on it, once.
func (h *fuzzer) keep(r *round) error {
	if r.saved != "" {
		return nil
	}
	r.saved = filepath.Join(h.Dir, fmt.Sprintf("recording-%d", r.seed))
	if err := os.RemoveAll(r.saved); err != nil { // of an earlier run
		return fmt.Errorf("keep the recording: %w", err)
	}
	if err := os.CopyFS(r.saved, os.DirFS(r.recording)); err != nil {
		return fmt.Errorf("keep the recording: %w", err)
	}
	if r.result == nil { // there was no server any more
		return nil
	}
	page, err := private.Create(filepath.Join(h.Dir, fmt.Sprintf("report-%d.html", r.seed)))
	if err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	return errors.Join(report.HTML(page, r.result), page.Close())
}

func write(name string, s *scenario.Scenario) error {
	if err := replace(name, s.Write); err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	return nil
}

// whole is all that a catch's first round sent until its transactions had ended, as a scenario of that anomaly.
func (h *fuzzer) whole(c *Catch) *scenario.Scenario {
	first := c.seen[0]
	s := first.round.account(h.runner.Server.Engine).until(first.finding)[0]
	s.Name = fmt.Sprintf("seed %d", c.Seed)
	s.Expect.Anomalies = []string{string(c.Finding.Anomaly)}
	return atLevel(s, c.Level)
}

// atLevel sets the level of all of a scenario's sessions, and returns the scenario.
func atLevel(s *scenario.Scenario, level workload.Isolation) *scenario.Scenario {
	for i := range s.Sessions {
		s.Sessions[i].Level = level.Level.String()
	}
	return s
}

// schedule is a round as a scenario: every statement in the order in which it was sent.
func (r *round) schedule() *scenario.Scenario {
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", r.seed), Setup: r.generator.Setup()}
	for i := range r.generator.Sessions() {
		s.Sessions = append(s.Sessions, scenario.Session{Name: sessionName(i)})
	}
	if r.outcome == nil {
		return s // it did not come to its transactions
	}
	for _, x := range r.outcome.Steps {
		s.Steps = append(s.Steps, scenario.Step{Session: sessionName(x.Session), SQL: x.SQL})
	}
	return s
}

func sessionName(i int) string { return fmt.Sprintf("S%d", i+1) }
