package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/internal/tap"
)

func recordingsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "recordings DIR...",
		Aliases: []string{"ls"},
		Short:   "List the runs in recordings",
		Long: "Prints each run: when it was, for how long, its server and mode, how many sessions, transactions and\n" +
			"statements it holds, and what share of the statements was observed exactly.",
		Example: "  isotap recordings ./rec\n  isotap recordings --json ./rec-* | jq '.[].transactions'",
		Args:    needs("DIR", 0),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, dirs []string) error {
		all := []tap.RunSummary{}
		for _, dir := range dirs {
			runs, err := tap.Summaries(c.Context(), dir)
			if err != nil {
				return err
			}
			all = append(all, runs...)
		}
		if asJSON {
			return runsJSON(c.OutOrStdout(), all)
		}
		return runsTable(c.OutOrStdout(), all)
	}
	return c
}

func runsTable(w io.Writer, runs []tap.RunSummary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RECORDING\tRUN\tSTARTED (UTC)\tFOR\tSERVER\tMODE\tSESSIONS\tTRANSACTIONS\tSTATEMENTS\tEXACT")
	for i := range runs {
		r := &runs[i]
		took := "no clean end"
		if !r.Info.Ended.IsZero() {
			took = r.Info.Ended.Sub(r.Info.Started).Round(time.Millisecond).String()
		}
		exact := "-"
		if n := r.Exact + r.Inexact + r.Opaque; n > 0 {
			exact = fmt.Sprintf("%.1f%%", 100*float64(r.Exact)/float64(n))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s %s\t%s\t%d\t%d\t%d\t%s\n", r.Recording, r.Info.Run, r.Info.Started.UTC().Format("2006-01-02 15:04:05"),
			took, r.Info.Server.Engine, r.Info.Server.Version, r.Info.Mode, r.Sessions, r.Txns, r.Exact+r.Inexact+r.Opaque, exact)
	}
	return t.Flush()
}

func runsJSON(w io.Writer, runs []tap.RunSummary) error {
	type statements struct {
		Exact   int `json:"exact"`
		Inexact int `json:"inexact"`
		Opaque  int `json:"opaque"`
	}
	type run struct {
		Recording    string     `json:"recording"`
		Run          string     `json:"run"`
		Started      time.Time  `json:"started"`
		Ended        *time.Time `json:"ended"` // null: no clean end
		Isotap       string     `json:"isotap"`
		Engine       string     `json:"engine"`
		Version      string     `json:"version"`
		Mode         string     `json:"mode"`
		Sessions     int        `json:"sessions"`
		Transactions int        `json:"transactions"`
		Statements   statements `json:"statements"`
	}
	list := make([]run, len(runs))
	for i := range runs {
		r := &runs[i]
		list[i] = run{r.Recording, r.Info.Run.String(), r.Info.Started, nil, r.Info.Isotap, r.Info.Server.Engine, r.Info.Server.Version,
			r.Info.Mode, r.Sessions, r.Txns, statements{r.Exact, r.Inexact, r.Opaque}}
		if !r.Info.Ended.IsZero() {
			list[i].Ended = &r.Info.Ended
		}
	}
	return jsondoc.Write(w, "the list of recordings", list)
}
