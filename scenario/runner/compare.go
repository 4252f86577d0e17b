package runner

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/replay"
)

// Compare writes in what performances of the same scenario differ from each other: which steps waited, failed, changed
// other numbers of rows or gave other rows, in any order where the statement leaves it open, and what was found. What
// is the same on all servers and levels is only counted. The error is w's.
func Compare(w io.Writer, all []*Result) error {
	b := bufio.NewWriter(w)
	for _, of := range grouped(all, func(p *Result) string { return p.Scenario.Name }) {
		differ, steps := 0, of[0].Trace.Results
		fmt.Fprintln(b, of[0].Scenario.Name)
		for i := range steps {
			title := fmt.Sprintf("%4d  %s  %s", steps[i].N, steps[i].Session, statement(steps[i].SQL))
			say := func(p *Result) string { return outcomeOf(&p.Trace.Results[i]) }
			// What is said may leave rows out.
			key := func(p *Result) string { return say(p) + fmt.Sprint(p.Trace.Results[i].RowSet()) }
			if variants(b, title, grouped(of, key), say) {
				differ++
			}
		}
		found := func(p *Result) string { return names(p.Anomalies()) }
		variants(b, "found", grouped(of, found), found)
		fmt.Fprintf(b, "%d of %d steps are the same on all\n\n", len(steps)-differ, len(steps))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// variants writes what something was, and where; nothing if it was the same everywhere.
func variants(b *bufio.Writer, title string, groups [][]*Result, say func(*Result) string) bool {
	if len(groups) < 2 {
		return false
	}
	fmt.Fprintln(b, title)
	for _, same := range groups {
		fmt.Fprintf(b, "        %s: %s\n", say(same[0]), where(same))
	}
	return true
}

// where names the servers and levels of performances.
func where(all []*Result) string {
	var servers []string
	for _, on := range grouped(all, (*Result).server) {
		var levels []string
		for _, l := range levelsIn(on) {
			levels = append(levels, l.String())
		}
		servers = append(servers, on[0].server()+" "+strings.Join(levels, ", "))
	}
	return strings.Join(servers, "; ")
}

// outcomeOf is what came of a step, without what servers word in their own way.
func outcomeOf(r *replay.Result) string {
	inOrder := *r
	inOrder.Rows, inOrder.WaitedFor = r.RowSet(), nil
	if r.Status == replay.Failed {
		inOrder.Code, inOrder.Message = 0, ""
	}
	return strings.TrimSuffix(outcome(&inOrder), ": ")
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
