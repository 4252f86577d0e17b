package fuzz

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
)

// A Mismatch is a difference that an oracle found and no earlier round had.
type Mismatch struct {
	Oracle     Oracle
	Key        string // what makes it another one: oracle, aspect, kind of statement, outcomes
	Level      workload.Isolation
	Seed       uint64
	Seen       int // in how many rounds
	Difference oracle.Difference
	// Scenario is the smallest that shows it, Shown how often of so many replays.
	Scenario       *scenario.Scenario
	Shown, Replays int
	Reduction      Reduction
	File           string // the scenario's; empty: none was written
	last           uint64 // the last round's seed that showed it
	begun          int    // how often it was begun to make it small
}

// keyOfDifference returns what tells differences apart.
func keyOfDifference(by Oracle, d *oracle.Difference, level workload.Isolation) string {
	if d.Known != "" {
		name, _, _ := strings.Cut(d.Known, ":")
		return fmt.Sprintf("%s at %s: %s", by, level, name)
	}
	kind, _, _ := strings.Cut(d.SQL, " ")
	if d.Aspect == oracle.Table {
		kind = "table"
	}
	key := fmt.Sprintf("%s at %s: %s of %s", by, level, d.Aspect, kind)
	if d.Aspect == oracle.Outcome || d.Aspect == oracle.Warnings {
		key += fmt.Sprintf(": %s, alone %s", d.Got, d.Want)
	}
	return key
}

// script is a scenario that shows a difference, with the level and the oracle that it is played for.
func (m *Mismatch) script(s *scenario.Scenario) *scenario.Scenario {
	s = atLevel(s, m.Level)
	s.Oracle = string(m.Oracle)
	return s
}

// mismatch keeps a difference if it is new.
func (h *fuzzer) mismatch(by Oracle, s oracle.Script, seed uint64, level workload.Isolation, v *oracle.Verdict,
	d oracle.Difference) error {
	h.tally.Levels[level].judged(by).Differences++
	key := keyOfDifference(by, &d, level)
	i := slices.IndexFunc(h.tally.Mismatches, func(m *Mismatch) bool { return m.Key == key })
	if i >= 0 {
		if m := h.tally.Mismatches[i]; m.last != seed {
			m.Seen, m.last = m.Seen+1, seed
		}
		return nil
	}
	m := &Mismatch{Oracle: by, Key: key, Level: level, Seed: seed, Seen: 1, Difference: d, last: seed}
	m.Scenario = m.script(s.Scenario)
	h.tally.Mismatches = append(h.tally.Mismatches, m)
	h.say("seed %d: %s", seed, key)
	if h.Dir == "" {
		return nil
	}
	m.File = filepath.Join(h.Dir, fmt.Sprintf("%s-%02d.yaml", by, len(h.tally.Mismatches)))
	if err := write(m.File, m.Scenario); err != nil {
		return err
	}
	return h.page(m, v)
}

// Page is the file of the page on a difference, beside that of its scenario; empty where there is none.
func (m *Mismatch) Page() string {
	if m.File == "" {
		return ""
	}
	return strings.TrimSuffix(m.File, ".yaml") + ".html"
}

// page writes the page on what an oracle says of a difference's scenario.
func (h *fuzzer) page(m *Mismatch, v *oracle.Verdict) error {
	sc := *m.Scenario
	sc.File = m.File
	j := &runner.Judged{Scenario: &sc, Server: h.runner.Server, Level: m.Level.Level, Oracle: string(m.Oracle),
		Does: m.Oracle.Does(), Verdict: v}
	if err := replace(m.Page(), func(w io.Writer) error { return runner.HTML(w, []*runner.Judged{j}) }); err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	return nil
}

// reduceMismatch makes the scenario of a difference small, if there is time and it is not yet.
func (h *fuzzer) reduceMismatch(ctx context.Context, m *Mismatch) error {
	if late(h.until) || m.Reduction.isFinal() {
		return nil
	}
	m.begun++
	if err := h.passOver(ctx, m.begun, h.makeSmall(ctx, m), func(why error) error {
		return h.settle(func() error { return h.take(m, NotPlayed, nil, nil) },
			func() { h.say("%s (seed %d): not made small: %v", m.Key, m.Seed, why) })
	}); err != nil {
		return &reductionError{m.Key, m.Level, m.Seed, err}
	}
	return nil
}

// makeSmall reduces the scenario of a difference, and takes what that came to.
func (h *fuzzer) makeSmall(ctx context.Context, m *Mismatch) error {
	var last *shown // by the last play that showed it
	shows := func(ctx context.Context, s *scenario.Scenario) (bool, error) {
		x, err := h.showsMismatch(ctx, m, s)
		if x != nil {
			last = x
		}
		return x != nil, err
	}
	small, tried, err := h.smallMismatch(ctx, m, shows)
	if err != nil {
		return err
	}
	outcome := Done
	switch {
	case late(h.until):
		outcome = Unfinished
	case small == nil || small.Shown == 0:
		outcome = NotShown
	}
	return h.settle(func() error { return h.take(m, outcome, small, last) }, func() {
		if small == nil || small.Shown == 0 {
			h.say("%s (seed %d): a replay does not show it", m.Key, m.Seed)
			return
		}
		h.say("%s (seed %d): %d steps after %d tries; shown %d times of %d", m.Key, m.Seed, len(m.Scenario.Steps), tried,
			m.Shown, replays)
	})
}

// take keeps what a reduction came to; small is nil, or never shown, where that is nothing.
func (h *fuzzer) take(m *Mismatch, outcome Reduction, small *Reduced, last *shown) error {
	m.Reduction = outcome
	if small == nil || small.Shown == 0 {
		return nil
	}
	small.Scenario.Name = m.Key
	m.Scenario, m.Shown, m.Replays, m.Difference = m.script(small.Scenario), small.Shown, replays, last.difference
	if m.File == "" {
		return nil
	}
	if err := write(m.File, m.Scenario); err != nil {
		return err
	}
	return h.page(m, last.verdict)
}

// A shown is a difference in what an oracle says.
type shown struct {
	verdict    *oracle.Verdict
	difference oracle.Difference
}

// smallMismatch reduces the scenario of a difference. It returns nil if no replay shows it.
func (h *fuzzer) smallMismatch(ctx context.Context, m *Mismatch, shows reduce.Shows) (small *Reduced, tried int,
	err error) {
	for range attempts {
		ok, err := shows(ctx, m.Scenario)
		if err != nil {
			return nil, tried, err
		}
		if ok {
			return h.reducer().surest(ctx, m.Scenario, shows)
		}
	}
	return nil, attempts, nil
}

// showsMismatch returns the difference of a mismatch's kind that an oracle finds in a scenario; nil where it finds
// none.
func (h *fuzzer) showsMismatch(ctx context.Context, m *Mismatch, s *scenario.Scenario) (*shown, error) {
	v, err := h.verdict(ctx, m.Oracle, oracle.Script{Scenario: s}, m.Level)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, h.alive(ctx) // what was left out was needed
	}
	return differing(v, m.Oracle, m.Level, m.Key), nil
}

// differing returns the difference of a kind that a verdict has; nil where it has none.
func differing(v *oracle.Verdict, by Oracle, level workload.Isolation, key string) *shown {
	i := slices.IndexFunc(v.Differences, func(d oracle.Difference) bool { return keyOfDifference(by, &d, level) == key })
	if i < 0 {
		return nil
	}
	return &shown{v, v.Differences[i]}
}
