package fuzz

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// A healthy server answers a transaction as it answers its statements in autocommit, at all levels.
func TestTransactionsAloneAreNotAccused(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStage(t, url(t))
			tally, err := Run(t.Context(), s, Options{Oracles: []Oracle{Alone}, Rounds: len(s.Levels()), Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := tally.Text(&text); err != nil {
				t.Fatal(err)
			}
			if tally.Failed() {
				t.Errorf("%s", text.String())
			}
			for level, at := range tally.Levels {
				if at.judged(Alone).Transactions == 0 || at.judged(Alone).Statements < at.judged(Alone).Transactions {
					t.Errorf("%s: %+v", level, at.judged(Alone))
				}
			}
		})
	}
}

// What a server answers wrong in transactions is told once, made small, and written as a scenario that shows it.
func TestWrongAnswersOfTransactionsAreMadeSmall(t *testing.T) {
	s := openStage(t, testdb.Current(t).URL())
	dir := t.TempDir()
	h := &fuzzer{Options: Options{Oracles: []Oracle{Alone}, Rounds: 3, Seed: 1, Dir: dir, Reduce: 1, Log: io.Discard,
		Patience: random.Patience, Levels: []workload.Isolation{serializable}}, runner: s,
		tally: newTally(s.Server, []workload.Isolation{serializable})}
	h.play = func(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, error) {
		trace, err := s.Direct(ctx, sc, level)
		open := false
		for i := range trace.Results {
			r := &trace.Results[i]
			if open = open && r.SQL != "COMMIT" && r.SQL != "ROLLBACK" || r.SQL == "BEGIN"; open && strings.HasPrefix(r.SQL, "UPDATE") {
				r.Affected += 3
			}
		}
		return trace, err
	}
	if err := h.rounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.reduceAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(h.tally.Mismatches) != 1 {
		t.Fatalf("%d kinds of differences, want one", len(h.tally.Mismatches))
	}
	m := h.tally.Mismatches[0]
	const key = "alone at SERIALIZABLE: rows changed of UPDATE"
	if m.Key != key || m.Seen != 3 || m.Shown != replays || len(m.Scenario.Steps) > 2 {
		t.Errorf("%s, in %d rounds, shown %d times, by %d steps", m.Key, m.Seen, m.Shown, len(m.Scenario.Steps))
	}
	if saved := readSaved(t, m.File); len(saved.Steps) != len(m.Scenario.Steps) ||
		saved.Sessions[0].Level != history.Serializable.String() {
		t.Errorf("the file has %d steps at %s", len(saved.Steps), saved.Sessions[0].Level)
	}
	var text bytes.Buffer
	if err := h.tally.Text(&text); err != nil || !h.tally.Failed() || !strings.Contains(text.String(), key) {
		t.Errorf("%v: %s", err, text.String())
	}
}
