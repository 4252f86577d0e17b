//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// A row is what came of one run of a campaign, as the table of docs/reliability.md has it.
type row struct {
	campaign, engine, durability string
	rounds                       int
	took                         time.Duration
	operations                   int64 // statements or connections that clients made, and hostile texts
	acknowledged                 int64 // transactions whose client was told that they committed
	faults                       int64 // what was done to isotap and its server
	lost                         int64 // acknowledged transactions that are missing where they are promised to be
	wrong                        int64 // everything else that is not as promised
	panics                       int64
	notes                        []string
	seed                         uint64
	command                      string
}

const tableHead = "| campaign | engine | durability | rounds, time | operations | acknowledged | faults | lost | " +
	"wrong | panics | notes | seed | command |\n" +
	"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

// String is the row as Markdown has it.
func (r *row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s, %s | %s | %s | %s | %d | %d | %d | %s | %d | `%s` |\n", r.campaign,
		r.engine, r.durability,
		thousands(int64(r.rounds)), spell(r.took), thousands(r.operations), thousands(r.acknowledged),
		thousands(r.faults), r.lost, r.wrong, r.panics,
		strings.Join(r.notes, "; "), r.seed, r.command)
}

// bad reports whether something was not as promised.
func (r *row) bad() bool { return r.lost > 0 || r.wrong > 0 || r.panics > 0 }

func (r *row) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// thousands spells a number with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// spell writes a duration in the unit that fits it.
func spell(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
