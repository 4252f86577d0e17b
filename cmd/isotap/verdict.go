package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
)

// alone holds a scenario's transactions against themselves at one level, and says what came of it.
func (o *replaying) alone(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, level history.Level) error {
	v, err := oracle.Alone(c.Context(), s.Direct, s.Server, oracle.Script{Scenario: sc}, level)
	if err != nil {
		return err
	}
	o.tell(c, v, fmt.Sprintf("%s at %s on %s %s, each transaction against its own statements in autocommit", sc.Name, level,
		s.Server.Engine, s.Server.Version))
	return nil
}

// serial holds a scenario's transactions against their statements in other orders, and says what came of it.
func (o *replaying) serial(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, level history.Level) error {
	j := &oracle.Serial{Play: s.Direct, Record: s.Record, Server: s.Server, Random: rand.New(rand.NewPCG(1, 0))}
	v, err := j.Judge(c.Context(), oracle.Script{Scenario: sc}, level)
	if err != nil {
		return err
	}
	o.tell(c, v, fmt.Sprintf("%s at %s on %s %s, transactions against their statements in autocommit, in orders that their "+
		"dependencies allow", sc.Name, level, s.Server.Engine, s.Server.Version))
	return nil
}

// views holds a scenario's statements against themselves on what they have to see, and says what came of it.
func (o *replaying) views(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, level history.Level) error {
	v, err := oracle.Views(c.Context(), s.Direct, s.Scratch, s.Server, oracle.Script{Scenario: sc}, level)
	if err != nil {
		return err
	}
	o.tell(c, v, fmt.Sprintf("%s at %s on %s %s, each statement against itself on what it has to see", sc.Name, level,
		s.Server.Engine, s.Server.Version))
	return nil
}

// tell says what an oracle says of a script.
func (o *replaying) tell(c *cobra.Command, v *oracle.Verdict, title string) {
	o.wrong = o.wrong || v.Wrong()
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s: %d transactions, %d statements\n", title, v.Transactions, v.Statements)
	for _, d := range v.Differences {
		fmt.Fprintln(w, "wrong:", d)
	}
	for _, d := range v.ByDesign {
		fmt.Fprintln(w, "by design:", d)
	}
	for _, why := range slices.Sorted(maps.Keys(v.NotJudged)) {
		fmt.Fprintf(w, "not judged: %d statements: %s\n", v.NotJudged[why], why)
	}
	if !v.Wrong() {
		fmt.Fprintln(w, "no difference")
	}
	fmt.Fprintln(w)
}
