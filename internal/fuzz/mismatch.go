package fuzz

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
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
	File           string // the scenario's; empty: none was written
	last           uint64 // the last round's seed that showed it
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

// mismatch keeps a difference if it is new.
func (h *fuzzer) mismatch(by Oracle, s oracle.Script, seed uint64, level workload.Isolation, d oracle.Difference) error {
	h.tally.Levels[level].judged(by).Differences++
	key := keyOfDifference(by, &d, level)
	i := slices.IndexFunc(h.tally.Mismatches, func(m *Mismatch) bool { return m.Key == key })
	if i >= 0 {
		if m := h.tally.Mismatches[i]; m.last != seed {
			m.Seen, m.last = m.Seen+1, seed
		}
		return nil
	}
	m := &Mismatch{Oracle: by, Key: key, Level: level, Seed: seed, Seen: 1, Difference: d, Scenario: s.Scenario, last: seed}
	h.tally.Mismatches = append(h.tally.Mismatches, m)
	h.say("seed %d: %s", seed, key)
	if h.Dir == "" {
		return nil
	}
	m.File = filepath.Join(h.Dir, fmt.Sprintf("%s-%02d.yaml", by, len(h.tally.Mismatches)))
	return write(m.File, m.Scenario)
}

// reduceMismatches makes the scenarios of all differences small.
func (h *fuzzer) reduceMismatches(ctx context.Context) error {
	for _, m := range h.tally.Mismatches {
		shows := func(ctx context.Context, s *scenario.Scenario) (bool, error) {
			v, err := h.verdict(ctx, m.Oracle, oracle.Script{Scenario: s, Closed: true}, m.Level)
			if err != nil {
				if ctx.Err() != nil {
					return false, context.Cause(ctx)
				}
				return false, h.alive(ctx) // what was left out was needed
			}
			i := slices.IndexFunc(v.Differences, func(d oracle.Difference) bool {
				return keyOfDifference(m.Oracle, &d, m.Level) == m.Key
			})
			if i >= 0 {
				m.Difference = v.Differences[i]
			}
			return i >= 0, nil
		}
		small, tried, err := inStages(ctx, h.runner.Server.Engine.Family(), m.Scenario, shows)
		if err != nil {
			return fmt.Errorf("reduce %q: %w", m.Key, err)
		}
		small.Scenario.Name = m.Key
		for i := range small.Scenario.Sessions {
			small.Scenario.Sessions[i].Level = m.Level.Level.String()
		}
		m.Scenario, m.Shown, m.Replays = small.Scenario, small.Shown, replays
		h.say("%s (seed %d): %d steps after %d tries; shown %d times of %d", m.Key, m.Seed, len(m.Scenario.Steps), tried,
			m.Shown, replays)
		if m.File == "" {
			continue
		}
		if err := write(m.File, m.Scenario); err != nil {
			return err
		}
	}
	return nil
}
