package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
)

// views holds a scenario's statements against themselves on what they have to see, and says what came of it.
func (o *replaying) views(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, level history.Level) error {
	v, err := oracle.Views(c.Context(), s.Direct, s.Scratch, s.Server, oracle.Script{Scenario: sc}, level)
	if err != nil {
		return err
	}
	o.wrong = o.wrong || v.Wrong()
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s at %s on %s %s, each statement against itself on what it has to see: %d transactions, %d statements\n",
		sc.Name, level, s.Server.Engine, s.Server.Version, v.Transactions, v.Statements)
	for _, d := range v.Differences {
		fmt.Fprintln(w, "wrong:", d)
	}
	writeNotJudged(w, v.NotJudged)
	if !v.Wrong() {
		fmt.Fprintln(w, "no difference")
	}
	fmt.Fprintln(w)
	return nil
}

// writeNotJudged says how many statements were not judged, and why.
func writeNotJudged(w io.Writer, all map[string]int) {
	for _, why := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "not judged: %d, because: %s\n", all[why], why)
	}
}
