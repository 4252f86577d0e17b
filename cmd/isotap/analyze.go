package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/interop"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/recorder"
)

func analyzeCommand() *cobra.Command {
	var out output
	var other otherHistory
	var judge judgement
	var live following
	var pair string
	c := &cobra.Command{
		Use:   "analyze DIR...",
		Short: "Name the anomalies in recordings",
		Long: "Analyses recordings, those of several proxies together. The exit status is 1 when there are findings " +
			"(see --fail-on), 2 when isotap was used wrongly or failed, and 3 when too little was seen " +
			"(--min-coverage).\n\n" +
			"Violations are what the level that the transactions ran at forbids, as their server documents it. " +
			"--expect asks about another level, whatever they ran at: one of SQL's, as the server documents it, " +
			"or one of the literature's (docs/levels.md). --model asks about one of the latter only.\n\n" +
			"A file in place of a directory is the history of another checker (- for standard input): see --format.",
		Example: "  isotap analyze ./rec\n  isotap analyze --json ./rec | jq '.findings[].anomaly'\n" +
			"  isotap analyze --format elle history.edn\n" +
			"  isotap analyze --expect SERIALIZABLE ./rec\n" +
			"  isotap analyze --model strict-serializable --fail-on violation ./rec\n" +
			"  isotap analyze --explain k00000ip,k00000iq ./rec\n  isotap analyze --follow ./rec",
		Args: needs("DIR", 0),
	}
	out.flags(c)
	out.coverageFlag(c, 0)
	out.scope.add(c, "")
	other.flags(c)
	judge.flags(c)
	live.flags(c)
	c.Flags().StringVar(&pair, "explain", "",
		"two transactions' ids, ID,ID: say only why one precedes the other, or why neither does")
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, args []string) error {
		if live.on {
			return live.run(c, args, &out, &judge)
		}
		if pair != "" {
			if other.meant(args) {
				return errors.New("--explain is for recordings: isotap import makes one of a history")
			}
			return explain(c, args, pair, out.json)
		}
		if err := out.check(); err != nil {
			return err
		}
		opts, err := judge.options()
		if err != nil {
			return err
		}
		var result *analyzer.Result
		if other.meant(args) {
			result, err = other.analyze(c, args, opts)
		} else {
			for _, dir := range args {
				if errors.Is(recorder.InUse(dir), recorder.ErrInUse) {
					fmt.Fprintf(c.ErrOrStderr(),
						"isotap: %s is being written: what is analyzed had been recorded by now\n", dir)
				}
			}
			opts.Scope = out.requests()
			result, err = analysis.Analyze(c.Context(), args, opts)
		}
		if err != nil {
			return err
		}
		return out.report(c, result)
	}
	return c
}

// otherHistory says how the history of another checker is read.
type otherHistory struct {
	format string
	assume []string
}

func (o *otherHistory) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.format, "format", "", "of a file: "+strings.Join(formatList(), ", ")+
		" (default: found by what it holds)")
	f.StringSliceVar(&o.assume, "assume", nil,
		"of a file's registers: sequential-keys, linearizable-keys, as Elle's options of these names")
	complete(c, "format", formatList()...)
	complete(c, "assume", "sequential-keys", "linearizable-keys")
}

// meant reports whether the arguments of analyze are a file.
func (o *otherHistory) meant(args []string) bool {
	if o.format != "" || len(o.assume) > 0 || slices.Contains(args, "-") {
		return true
	}
	info, err := os.Stat(args[0])
	return err == nil && info.Mode().IsRegular()
}

func (o *otherHistory) analyze(c *cobra.Command, args []string, opts analyzer.Options) (*analyzer.Result, error) {
	if len(args) > 1 {
		return nil, errors.New("one history of another checker is analysed at a time")
	}
	var format interop.Format
	var options interop.Options
	var err error
	if o.format != "" {
		if format, err = interop.ParseFormat(o.format); err != nil {
			return nil, fmt.Errorf("--format: %w", err)
		}
	}
	for _, a := range o.assume {
		switch a {
		case "sequential-keys":
			options.SequentialKeys = true
		case "linearizable-keys":
			options.LinearizableKeys = true
		default:
			return nil, fmt.Errorf("--assume: %q is none of sequential-keys, linearizable-keys", a)
		}
	}
	h, err := interop.ReadFile(c.Context(), c.InOrStdin(), args[0], format, options)
	if err != nil {
		return nil, err
	}
	for _, note := range h.Notes() {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: %s: %s\n", args[0], note)
	}
	return h.Analyze(c.Context(), opts)
}

func formatList() []string {
	var names []string
	for _, f := range interop.Formats {
		names = append(names, string(f))
	}
	return names
}
