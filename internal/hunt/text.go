package hunt

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
)

// Failed says whether the server broke its word, or did what no healthy server does.
func (t *Tally) Failed() bool {
	for _, l := range t.Levels {
		if len(l.Violations) > 0 {
			return true
		}
	}
	return len(t.Abnormal) > 0
}

// Text writes the tally as a table by level, then each catch. The error is w's.
func (t *Tally) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	r := &t.Random
	fmt.Fprintf(b, "%s %s: %d rounds in %s, %d transactions (%.0f a second while sessions worked), %d committed, %d refused\n",
		t.Server.Engine, t.Server.Version, t.Rounds, time.Since(t.Began).Round(time.Second), r.Transactions, t.TransactionsPerSecond(), r.Committed, r.Refused)
	fmt.Fprintf(b, "%d statements, %s of them succeeded; %s observed exactly\n", r.Statements, share(r.Statements-r.Failed, r.Statements), share(t.Coverage.Exact, t.Coverage.Statements()))
	for _, level := range slices.Sorted(maps.Keys(t.Levels)) {
		l := t.Levels[level]
		if l.Rounds > 0 {
			fmt.Fprintf(b, "%-16s  %d transactions; violations: %s; hazards: %s\n", level, l.Transactions, counts(l.Violations), counts(l.Hazards))
		}
	}
	if len(t.Catches) > 0 {
		fmt.Fprintf(b, "%d unique findings:\n", len(t.Catches))
	}
	for _, c := range t.Catches {
		fmt.Fprintf(b, "  %s; in %d rounds, first with seed %d%s\n", c.Key, c.Seen, c.Seed, c.reduced())
	}
	for _, text := range t.Abnormal {
		fmt.Fprintf(b, "ABNORMAL  %s\n", text)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the tally: %w", err)
	}
	return nil
}

func (c *Catch) reduced() string {
	switch {
	case c.Scenario != nil:
		return fmt.Sprintf("; %d statements, shown %d times of %d: %s", len(c.Scenario.Steps), c.Shown, c.Replays, c.File)
	case c.File != "":
		return ": " + c.File
	}
	return ""
}

func share(part, whole int) string {
	if whole == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// counts lists anomalies by how often they were found.
func counts(found map[analyzer.Anomaly]int) string {
	if len(found) == 0 {
		return "none"
	}
	var all []string
	for _, a := range slices.Sorted(maps.Keys(found)) {
		all = append(all, fmt.Sprintf("%d %s", found[a], a))
	}
	return strings.Join(all, ", ")
}
