package runner

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/isotap/isotap/history"
)

// Matrix writes a table for each server: the scenarios, and whether what each is about was shown at each level (see
// [Result.Shows]). The error is w's.
func Matrix(w io.Writer, all []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, on := range grouped(all, (*Result).server) {
		if i > 0 {
			fmt.Fprintln(t)
		}
		levels := levelsIn(on)
		fmt.Fprint(t, on[0].server())
		for _, l := range levels {
			fmt.Fprintf(t, "\t%s", l)
		}
		fmt.Fprintln(t)
		for _, of := range grouped(on, func(p *Result) string { return p.Scenario.Name }) {
			fmt.Fprintln(t, of[0].Scenario.Name+row(of, levels))
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// row is what the performances of one scenario showed at the levels.
func row(of []*Result, levels []history.Level) string {
	var b strings.Builder
	for _, l := range levels {
		b.WriteByte('\t')
		for _, p := range of {
			if p.Level == l {
				b.WriteString(string(p.Shows()))
			}
		}
	}
	return b.String()
}

// server is the server's name and the number of its version, and what was set on it.
func (p *Result) server() string {
	number, _, _ := strings.Cut(p.Server.Version, " ")
	number, _, _ = strings.Cut(number, "-")
	return strings.TrimSpace(p.Server.Engine.String() + " " + number + " " + p.Settings.String())
}

// grouped returns the performances of each key, in the order in which the keys come first.
func grouped(all []*Result, key func(*Result) string) [][]*Result {
	at := make(map[string]int)
	var groups [][]*Result
	for _, p := range all {
		k := key(p)
		if _, ok := at[k]; !ok {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], p)
	}
	return groups
}

// levelsIn are the levels of the performances, weakest first.
func levelsIn(all []*Result) []history.Level {
	var levels []history.Level
	for _, p := range all {
		levels = append(levels, p.Level)
	}
	slices.Sort(levels)
	return slices.Compact(levels)
}
