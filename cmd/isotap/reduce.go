package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/hunt"
	"github.com/isotap/isotap/internal/stage"
	"github.com/isotap/isotap/scenario"
)

const reduceHelp = `Makes a scenario small: fewest transactions, then statements, rows and tables, then simpler SQL, as long as
its replay on a server still shows the same anomaly. The smaller scenario goes to standard output.

FILE is a scenario (docs/scenarios.md): of isotap fuzz, of isotap analyze --scenarios with its set-up
written in, or of your own.`

func reduceCommand() *cobra.Command {
	var on places
	seen := observing{predicatesMode, columnsIdentity}
	var isolation, anomaly, out string
	c := &cobra.Command{
		Use:     "reduce FILE",
		Short:   "Make a scenario small that shows an anomaly",
		Long:    reduceHelp,
		Example: "  isotap reduce --engine mariadb --anomaly 'lost update' found.yaml > small.yaml",
		Args:    needs("FILE", 1),
	}
	f := c.Flags()
	on.flags(c, "play")
	seen.flags(c)
	f.StringVar(&isolation, "isolation", "", "the level to play at; the file's own when not set")
	f.StringVar(&anomaly, "anomaly", "", "what must stay, by isotap's name; the first that the replay shows when not set")
	f.StringVarP(&out, "out", "o", "", "write the smaller scenario to this file")
	c.RunE = func(c *cobra.Command, files []string) (err error) {
		scripts, err := readScripts(files)
		if err != nil {
			return err
		}
		scenarios := scripts[0]
		if len(scenarios) != 1 {
			return fmt.Errorf("%s holds %d scenarios, and one is reduced: name one permutation", files[0], len(scenarios))
		}
		levels, err := parseAsked(isolation, history.ParseLevel)
		onStage, oddMode := seen.options()
		if err := errors.Join(err, oddMode, on.one()); err != nil {
			return err
		}
		var small *scenario.Scenario
		err = on.eachStage(c, onStage, func(s *stage.Stage) (err error) {
			at, sc := levelsOf(s, scenarios[0], levels)
			if len(at) != 1 {
				return fmt.Errorf("%s names no one isolation level that %s has: set --isolation", files[0], s.Server.Engine)
			}
			if small, err = reduceTo(c, s, sc, at[0], analyzer.Anomaly(anomaly)); err != nil {
				return fmt.Errorf("%s: %w", files[0], err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if out == "" {
			return small.Write(c.OutOrStdout())
		}
		file, err := os.Create(out)
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return errors.Join(small.Write(file), file.Close())
	}
	return c
}

// reduceTo makes a scenario small that shows an anomaly; with no name, the first that it shows.
func reduceTo(c *cobra.Command, s *stage.Stage, sc *scenario.Scenario, level history.Level, anomaly analyzer.Anomaly) (*scenario.Scenario, error) {
	p, err := s.Play(c.Context(), sc.At(), level)
	if err != nil {
		return nil, err
	}
	for _, f := range p.Result.Findings {
		if anomaly != "" && f.Anomaly != anomaly {
			continue
		}
		small, tried, err := hunt.Reduce(c.Context(), sc, level, f.Anomaly, hunt.Shows(s, level, hunt.Like(f.Anomaly, f.Class)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s: %d statements of %d; %d tries; shown %d times of 10\n", f.Anomaly, len(small.Scenario.Steps), len(sc.Steps), tried, small.Shown)
		return small.Scenario, nil
	}
	if anomaly == "" {
		return nil, fmt.Errorf("its replay at %s shows no anomaly", level)
	}
	return nil, fmt.Errorf("its replay at %s does not show %q, but %v", level, anomaly, p.Anomalies())
}
