package fuzz

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/workload"
)

// Failed reports whether the server broke its word, or did what no healthy server does.
func (t *Tally) Failed() bool {
	for _, l := range t.Levels {
		if len(l.Violations) > 0 {
			return true
		}
	}
	return len(t.Abnormal) > 0 || len(t.Mismatches) > 0
}

// Text writes the tally: what was run, how well it was seen, a table of what was found by level, then each catch. The
// error is w's.
func (t *Tally) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	if t.Rounds > 0 || !slices.ContainsFunc(Oracles(), t.hasJudged) {
		t.run(b)
		t.coverage(b)
		t.table(b)
	}
	for _, by := range Oracles() {
		t.judged(b, by)
	}
	t.mismatches(b)
	t.templates(b)
	if t.Aggregated.Times+t.Aborted.Times > 0 {
		fmt.Fprintf(b, "among them through aggregates: %s, by aborted writes: %s\n", &t.Aggregated, &t.Aborted)
	}
	if len(t.Catches) > 0 {
		fmt.Fprintf(b, "%d unique findings:\n", len(t.Catches))
	}
	for _, c := range t.Catches {
		fmt.Fprintf(b, "  %s; in %d rounds, first with seed %d%s\n", c.Key, c.Seen, c.Seed, c.reduced())
	}
	t.unfinished(b)
	if t.Crashes > 0 {
		fmt.Fprintf(b, "the server crashed or hung %d times\n", t.Crashes)
	}
	for _, a := range t.Abnormal {
		a.write(b)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the tally: %w", err)
	}
	return nil
}

// unfinished says what is not made small though it was to be, and what ended the hunt before its time.
func (t *Tally) unfinished(w io.Writer) {
	n := t.left()
	why := "there was no time (--reduce-time)"
	switch t.End {
	case Interrupted:
		why = "the hunt was interrupted"
		if n == 0 {
			fmt.Fprintln(w, why)
		}
	case ServerGone:
		why = "the server is gone"
	case Failed:
		why = "the hunt failed"
	}
	if n > 0 {
		fmt.Fprintf(w, "%d of these are not made small yet: %s; isotap fuzz --resume DIR goes on\n", n, why)
	}
}

// left counts what is not made small though it was to be.
func (t *Tally) left() (n int) {
	for _, c := range t.Catches {
		n += c.Reduction.unfinished()
	}
	for _, m := range t.Mismatches {
		n += m.Reduction.unfinished()
	}
	return n
}

// hasJudged reports whether an oracle that plays scripts judged any.
func (t *Tally) hasJudged(by Oracle) bool {
	for _, l := range t.Levels {
		if l.Judged[by] != nil {
			return true
		}
	}
	return false
}

// judged writes what came of the scripts that an oracle judged.
func (t *Tally) judged(w io.Writer, by Oracle) {
	if !t.hasJudged(by) {
		return
	}
	fmt.Fprintf(w, "%s %s, %s:\n", t.Server.Engine, t.Server.Version, does[by])
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttransactions\tstatements\tdifferences\tof known bugs\tby design\t")
	notJudged := make(map[string]int)
	for _, l := range slices.SortedFunc(maps.Keys(t.Levels), workload.Isolation.Compare) {
		a := t.Levels[l].judged(by)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n", l, a.Transactions, a.Statements, a.Differences, a.Known, a.ByDesign)
		for why, n := range a.NotJudged {
			notJudged[why] += n
		}
	}
	_ = table.Flush() // w is a buffer, which keeps the error
	for _, why := range slices.Sorted(maps.Keys(notJudged)) {
		fmt.Fprintf(w, "  not judged: %d statements: %s\n", notJudged[why], why)
	}
}

// mismatches writes the differences that oracles found.
func (t *Tally) mismatches(w io.Writer) {
	for _, m := range t.Mismatches {
		fmt.Fprintf(w, "  %s; in %d rounds, first with seed %d", m.Key, m.Seen, m.Seed)
		if m.Replays > 0 {
			fmt.Fprintf(w, "; %d steps, shown %d times of %d", len(m.Scenario.Steps), m.Shown, m.Replays)
		}
		fmt.Fprint(w, m.Reduction.text())
		if m.File != "" {
			fmt.Fprintf(w, ": %s", m.File)
		}
		fmt.Fprintf(w, "\n    %s\n", m.Difference)
	}
}

// run writes what was run, and how fast.
func (t *Tally) run(w io.Writer) {
	r, hunted := &t.Random, t.Hunted
	if hunted == 0 {
		hunted = time.Since(t.Began)
	}
	fmt.Fprintf(w, "%s %s: %d rounds in %s, %d transactions (%.0f a second; %.0f while a round's sessions worked), "+
		"%d committed, %d refused\n",
		t.Server.Engine, t.Server.Version, t.Rounds, hunted.Round(time.Second), r.Transactions,
		float64(r.Transactions)/hunted.Seconds(), t.TransactionsPerSecond(), r.Committed, r.Refused)
}

// coverage writes how well the statements were observed, by kind, and why some were not.
func (t *Tally) coverage(w io.Writer) {
	all := t.Observed()
	fmt.Fprintf(w, "%d statements, %s of them succeeded; %s observed exactly, %s opaque\n", t.Random.Statements,
		share(t.Random.Statements-t.Random.Failed, t.Random.Statements), share(all.Exact, all.Statements()),
		share(all.Opaque, all.Statements()))
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(t.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %s of %d", k, share(t.Kinds[k].Exact, t.Kinds[k].Statements()),
			t.Kinds[k].Statements()))
	}
	fmt.Fprintf(w, "observed exactly, the rounds' own reads among them: %s\n", strings.Join(kinds, ", "))
	if len(t.Reasons) == 0 {
		return
	}
	byCount := slices.SortedFunc(maps.Keys(t.Reasons), func(a, b string) int {
		return cmp.Or(t.Reasons[b]-t.Reasons[a], strings.Compare(a, b))
	})
	counts := make([]string, len(byCount))
	for i, reason := range byCount {
		counts[i] = fmt.Sprintf("%d %s", t.Reasons[reason], reason)
	}
	fmt.Fprintf(w, "the others by reason: %s\n", strings.Join(counts, ", "))
}

// table writes how often each anomaly was found at each level, and in parentheses how many of these are unique.
func (t *Tally) table(w io.Writer) {
	levels := slices.SortedFunc(maps.Keys(t.Levels), workload.Isolation.Compare)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(*LevelTally) string) {
		fmt.Fprintf(table, "%-23s\t", name) // the names are on the left
		for _, l := range levels {
			fmt.Fprintf(table, "%s\t", cell(t.Levels[l]))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "%-23s\t", "")
	for _, l := range levels {
		fmt.Fprintf(table, "%s\t", l)
	}
	fmt.Fprintln(table)
	row("transactions", func(l *LevelTally) string { return strconv.Itoa(l.Transactions) })
	for _, class := range []analyzer.Class{analyzer.Violation, analyzer.Hazard} {
		row(string(class)+"s", func(l *LevelTally) string { return l.all(class).String() })
		for _, a := range t.anomalies(class) {
			row("  "+string(a), func(l *LevelTally) string { return l.found(class)[a].String() })
		}
	}
	_ = table.Flush() // w is a buffer, which keeps the error
}

// String returns the times and, in parentheses, how many are unique; a dash for none.
func (f *Found) String() string {
	if f == nil || f.Times == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%d)", f.Times, f.Unique)
}

// anomalies are those of a class that were found, in the order of the alphabet.
func (t *Tally) anomalies(class analyzer.Class) []analyzer.Anomaly {
	found := make(map[analyzer.Anomaly]bool)
	for _, l := range t.Levels {
		for a := range l.found(class) {
			found[a] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b analyzer.Anomaly) int {
		return strings.Compare(strings.ToLower(string(a)), strings.ToLower(string(b)))
	})
}

func (c *Catch) reduced() string {
	switch {
	case c.Scenario != nil:
		return fmt.Sprintf("; %s, shown %d times of %d%s: %s", c.size(), c.Shown, c.Replays, c.Reduction.text(), c.File)
	case c.File != "":
		return c.Reduction.text() + ": " + c.File
	}
	return ""
}

// size says what a catch's scenario has.
func (c *Catch) size() string {
	transactions, statements := reduce.Count(c.Scenario)
	return fmt.Sprintf("%d transactions, %d statements", transactions, statements)
}

func share(part, whole int) string {
	if whole == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
