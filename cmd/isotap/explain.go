package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/report"
)

// explain says how two transactions are ordered.
func explain(c *cobra.Command, dirs []string, pair string, asJSON bool) error {
	first, second, ok := strings.Cut(pair, ",")
	if !ok {
		return fmt.Errorf("--explain: %q is not two ids with a comma between them", pair)
	}
	var ids [2]history.TxnID
	for i, text := range []string{first, second} {
		var err error
		if ids[i], err = history.ParseTxnID(strings.TrimSpace(text)); err != nil {
			return fmt.Errorf("--explain: %w: ids are as k00000ip; --verbose and --json show them beside T1, T2, "+
				"which are names within one finding", err)
		}
	}
	why, err := analysis.Explain(c.Context(), dirs, ids[0], ids[1], analyzer.Options{})
	if err != nil {
		return fmt.Errorf("--explain: %w", err)
	}
	if asJSON {
		return report.WhyJSON(c.OutOrStdout(), why)
	}
	return report.Why(c.OutOrStdout(), why, report.TerminalOptions{Color: report.UseColor(c.OutOrStdout())})
}
