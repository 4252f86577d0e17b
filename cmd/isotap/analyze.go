package main

import (
	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/tap"
)

func analyzeCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "analyze DIR...",
		Short:   "Name the anomalies in recordings",
		Long:    "Analyses recordings, those of several proxies together. The exit status is 1 when there are findings (see --fail-on).",
		Example: "  isotap analyze ./rec\n  isotap analyze --json ./rec | jq '.findings[].anomaly'",
		Args:    needs("DIR", 0),
	}
	out.flags(c)
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, dirs []string) error {
		if err := out.check(); err != nil {
			return err
		}
		result, err := tap.Analyze(c.Context(), dirs, analyzer.Options{})
		if err != nil {
			return err
		}
		if err := out.write(c, result); err != nil {
			return err
		}
		return out.status(result)
	}
	return c
}
