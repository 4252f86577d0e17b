package main

import (
	"fmt"
	"strings"
)

// A report is everything that was measured.
type report struct {
	Server    string     `json:"server"`
	Rounds    int        `json:"rounds"`
	Seconds   int        `json:"seconds"`
	Results   []result   `json:"results"`
	Recording *recording `json:"recording,omitempty"`
}

// table prints the report for people.
func (r report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "MariaDB %s; medians of %d rounds of %d s. haproxy relays TCP, copy is a bare\n"+
		"copy of bytes in Go, off and items are isotap. Latency is of a statement in point selects, of a\n"+
		"transaction of 20 statements in read-write.\n", r.Server, r.Rounds, r.Seconds)
	last := ""
	for _, x := range r.Results {
		if x.Load != last {
			fmt.Fprintf(&b, "\n%s\n", x.Load)
			fmt.Fprintf(&b, columns, "", "stmt/s", ":direct", ":copy", ":off", "latency us", "added us", "cpu s/100,000")
			last = x.Load
		}
		added, cpu := "", ""
		if x.Path != pathDirect {
			added, cpu = fmt.Sprintf("%+.0f", x.Added), fmt.Sprintf("%.2f", x.CPU)
		}
		fmt.Fprintf(&b, columns, x.Path, fmt.Sprintf("%.0f", x.Rate), x.ratio(pathDirect), x.ratio(pathCopy), x.ratio(pathOff),
			fmt.Sprintf("%.0f", x.Latency), added, cpu)
	}
	if c := r.Recording; c != nil {
		fmt.Fprintf(&b, "\nrecorded: %d transactions, %d statements, %.1f bytes per statement on disk\n", c.Txns, c.Stmts, c.BytesPerStmt)
		fmt.Fprintf(&b, "analysed: %.0f transactions per second from disk, %.0f from memory\n", c.FromDisk, c.FromMemory)
	}
	return b.String()
}

const columns = "  %-8s%9s%9s%7s%7s%12s%10s%15s\n"

// ratio prints how the path's rate compares with that of one before it; empty for the path itself and
// those after it.
func (x result) ratio(to string) string {
	order := []string{pathDirect, pathHAProxy, pathCopy, pathOff, pathItems, pathAgainst}
	for _, p := range order {
		if p == x.Path {
			return ""
		}
		if p == to {
			return fmt.Sprintf("%.2f", x.Ratio[to])
		}
	}
	return ""
}
