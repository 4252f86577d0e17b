package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/jsondoc"
	"github.com/isotap/isotap/recorder"
)

func recordingsCommand() *cobra.Command {
	var asJSON, check bool
	c := &cobra.Command{
		Use:     "recordings DIR...",
		Aliases: []string{"ls"},
		Short:   "List the runs in recordings",
		Long: "Prints each run: when it was, for how long, its server and mode, how many sessions, transactions and\n" +
			"statements it holds, and what share of the statements was observed exactly.\n\n" +
			"With --check it reads all of each recording instead and prints what is damaged. " +
			"The exit status is 1 if anything\n" +
			"is, or a recording cannot be read at all. What is not damaged can be analysed and " +
			"exported all the same. Nothing is\n" +
			"changed, and the directory may be read-only, or being written.",
		Example: "  isotap recordings ./rec\n  isotap recordings --check ./rec\n" +
			"  isotap recordings --json ./rec-* | jq '.[].transactions'",
		Args: needs("DIR", 0),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&check, "check", false, "read all of it and print what is damaged; exit status 1 if anything is")
	c.ValidArgsFunction = completeDirectories
	c.RunE = func(c *cobra.Command, dirs []string) error {
		if check {
			return checkRecordings(c, dirs, asJSON)
		}
		all := []analysis.RunSummary{}
		for _, dir := range dirs {
			runs, err := analysis.Summaries(c.Context(), dir)
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

func runsTable(w io.Writer, runs []analysis.RunSummary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RECORDING\tRUN\tSTARTED (UTC)\tFOR\tSERVER\tMODE\tSESSIONS\tTRANSACTIONS\tMISSING\tSTATEMENTS\tEXACT")
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s %s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Recording, r.Info.Run,
			r.Info.Started.UTC().Format("2006-01-02 15:04:05"),
			took, r.Info.Server.Engine, r.Info.Server.Version, r.Info.Mode, r.Sessions, r.Txns,
			r.Unrecorded+r.Unreadable, r.Exact+r.Inexact+r.Opaque, exact)
	}
	return t.Flush()
}

func runsJSON(w io.Writer, runs []analysis.RunSummary) error {
	type statements struct {
		Exact   int `json:"exact"`
		Inexact int `json:"inexact"`
		Opaque  int `json:"opaque"`
	}
	type run struct {
		Recording    string      `json:"recording"`
		Run          string      `json:"run"`
		Started      time.Time   `json:"started"`
		Ended        *time.Time  `json:"ended"` // null: no clean end
		Isotap       string      `json:"isotap"`
		Engine       dbms.Engine `json:"engine"`
		Version      string      `json:"version"`
		Mode         string      `json:"mode"`
		Sessions     int         `json:"sessions"`
		Transactions int         `json:"transactions"`
		Unrecorded   uint64      `json:"unrecorded"` // they ended while the disk took nothing
		Unreadable   uint64      `json:"unreadable"` // the recording is damaged
		Statements   statements  `json:"statements"`
	}
	list := make([]run, len(runs))
	for i := range runs {
		r := &runs[i]
		list[i] = run{r.Recording, r.Info.Run.String(), r.Info.Started, nil, r.Info.Isotap, r.Info.Server.Engine,
			r.Info.Server.Version,
			r.Info.Mode, r.Sessions, r.Txns, r.Unrecorded, r.Unreadable, statements{r.Exact, r.Inexact, r.Opaque}}
		if !r.Info.Ended.IsZero() {
			list[i].Ended = &r.Info.Ended
		}
	}
	return jsondoc.Write(w, "the list of recordings", list)
}

// checkRecordings prints what is damaged in recordings, each damage on a line.
func checkRecordings(c *cobra.Command, dirs []string, asJSON bool) error {
	type checked struct {
		Recording  string   `json:"recording"`
		Sound      bool     `json:"sound"`
		Unreadable uint64   `json:"unreadable"` // transactions
		Damage     []string `json:"damage"`
	}
	all := make([]checked, 0, len(dirs))
	var status error
	for _, dir := range dirs {
		one := checked{Recording: dir, Damage: []string{}}
		found, err := analysis.Check(c.Context(), dir)
		switch {
		case errors.Is(err, recorder.ErrCorrupt):
			one.Damage = append(one.Damage, err.Error())
		case err != nil:
			return err
		default:
			one.Sound = found.Sound()
			for _, m := range found.Missing {
				one.Unreadable += m.Written - m.Read
				one.Damage = append(one.Damage, fmt.Sprintf("run %s: %d transactions of %d are unreadable", m.Run,
					m.Written-m.Read, m.Written))
			}
			for _, d := range found.Damage {
				one.Damage = append(one.Damage, d.String())
			}
			for _, err := range found.Unreadable {
				one.Damage = append(one.Damage, err.Error())
			}
		}
		if !one.Sound {
			status = exitStatus(statusFound)
		}
		all = append(all, one)
	}
	if asJSON {
		return errors.Join(jsondoc.Write(c.OutOrStdout(), "the list of recordings", all), status)
	}
	for _, one := range all {
		said := "sound"
		if !one.Sound {
			said = fmt.Sprintf("damaged, %d transactions are unreadable", one.Unreadable)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", one.Recording, said)
		for _, d := range one.Damage {
			fmt.Fprintf(c.OutOrStdout(), "  %s\n", d)
		}
	}
	return status
}
