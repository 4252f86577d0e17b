package main

import (
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
	v, err := fuzz.Judge(c.Context(), s, by, oracle.Script{Scenario: sc}, level)
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
