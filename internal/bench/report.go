package main

import (
	"fmt"
	"slices"
	"strings"
)

// A report is everything that was measured of one engine.
type report struct {
	Server    string       `json:"server"` // the server's name and version
	Rounds    int          `json:"rounds"`
	Seconds   int          `json:"seconds"`
	Results   []result     `json:"results"`
	Goals     []attainment `json:"goals"`
	Recording *recording   `json:"recording,omitempty"`
	explain   string       // what the latencies are of
}

// table prints the report for people.
func (r report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; medians of %d rounds of %d s. haproxy relays TCP, copy is a bare\n"+
		"copy of bytes in Go, off and items are isotap. proxy and server have processor seconds of\n"+
		"100,000 statements; others is how many processors were busy with something else.\n%s\n", r.Server, r.Rounds, r.Seconds, r.explain)
	bases := r.bases()
	last := ""
	for _, x := range r.Results {
		if x.Load != last {
			fmt.Fprintf(&b, "\n%s\n", x.Load)
			b.WriteString(line("", "stmt/s", bases, func(base string) string { return ":" + base }, "latency us",
				"p99", "added us", "proxy", "server", "others"))
			last = x.Load
		}
		added, cpu := "", ""
		if x.Path != pathDirect {
			added, cpu = fmt.Sprintf("%+.0f", x.Added), fmt.Sprintf("%.2f", x.CPU)
		}
		b.WriteString(line(x.Path, fmt.Sprintf("%.0f", x.Rate), bases, x.ratio, fmt.Sprintf("%.0f", x.Latency),
			fmt.Sprintf("%.0f", x.Tail), added, cpu, fmt.Sprintf("%.2f", x.Server), x.others()))
	}
	if len(r.Goals) > 0 {
		b.WriteString(goalTable(r.Goals))
	}
	if c := r.Recording; c != nil {
		fmt.Fprintf(&b, "\nrecorded: %d transactions, %d statements, %.1f bytes per statement on disk\n", c.Txns,
			c.Stmts, c.BytesPerStmt)
		fmt.Fprintf(&b, "analysed: %.0f transactions per second from disk, %.0f from memory\n", c.FromDisk,
			c.FromMemory)
	}
	return b.String()
}

// bases are the paths that those behind them are compared with: all but HAProxy, as far as they were measured.
func (r report) bases() []string {
	var names []string
	for _, name := range []string{pathDirect, pathPgBouncer, pathCopy, pathOff} {
		if slices.ContainsFunc(r.Results, func(x result) bool { return x.Path == name }) {
			names = append(names, name)
		}
	}
	return names
}

// line is a line of the table, with a column for each of the bases.
func line(path, rate string, bases []string, ratio func(base string) string, latency string, rest ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-10s%9s", path, rate)
	for _, base := range bases {
		fmt.Fprintf(&b, "%*s", len(base)+3, ratio(base))
	}
	fmt.Fprintf(&b, "%12s", latency)
	for _, column := range rest {
		fmt.Fprintf(&b, " %8s", column)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// noisy is how many processors may be busy with something else until a figure counts as disturbed.
const noisy = 0.2

// others prints how many processors were busy with something else.
func (x result) others() string {
	if x.Others > noisy {
		return fmt.Sprintf("%.2f noisy", x.Others)
	}
	return fmt.Sprintf("%.2f", x.Others)
}

// ratio prints how the path's rate compares with that of one before it; empty for the path itself and
// those after it.
func (x result) ratio(to string) string {
	if slices.Index(pathOrder, to) >= slices.Index(pathOrder, x.Path) {
		return ""
	}
	return fmt.Sprintf("%.2f", x.Ratio[to].Median)
}
