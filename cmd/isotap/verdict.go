package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/fuzz"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
)

// judge has an oracle judge a scenario at one level, and says what it says.
func (o *replaying) judge(c *cobra.Command, s *runner.Runner, by fuzz.Oracle, sc *scenario.Scenario,
	level history.Level) error {
	v, err := judgeOn(s).Verdict(c.Context(), by, oracle.Script{Scenario: sc}, level)
	if err != nil {
		return err
	}
	j := &runner.Judged{Scenario: sc, Server: s.Server, Level: level, Settings: s.Options().Settings, Oracle: string(by),
		Does: by.Does(), Verdict: v}
	o.wrong = o.wrong || v.Wrong()
	o.verdicts = append(o.verdicts, j)
	if o.json {
		return nil
	}
	return j.Text(c.OutOrStdout())
}

// oracleOf returns the oracle that a scenario names, [fuzz.Graph] where it names none.
func oracleOf(sc *scenario.Scenario) (fuzz.Oracle, error) {
	by := fuzz.Oracle(cmp.Or(sc.Oracle, string(fuzz.Graph)))
	if !slices.Contains(fuzz.Oracles(), by) {
		return "", fmt.Errorf("%s: oracle: there is no %q: %v", sc.File, by, fuzz.Oracles())
	}
	return by, nil
}

// judgeOn returns what judges single scripts on a server.
func judgeOn(s *runner.Runner) *fuzz.Judge { return &fuzz.Judge{Runner: s, Seed: 1} }
