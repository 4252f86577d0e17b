package workload

import (
	"fmt"
	"strings"
	"time"
)

// An Outcome is what a run did by its own books, held against what the database says.
type Outcome struct {
	Clients  int
	Elapsed  time.Duration
	Programs []ProgramCount
	Checks   []Check
}

// ProgramCount is how often a program ran.
type ProgramCount struct {
	Name      string
	Clients   int // that ran it
	Committed int64
	Declined  int64 // ended by its own decision, without effect
	Retried   int64 // attempts that the server ended: deadlocks, lock wait time-outs, serialization failures
}

// String is a line of text.
func (p ProgramCount) String() string {
	return fmt.Sprintf("  %-16s %5d committed %5d declined %4d retried\n", p.Name, p.Committed, p.Declined, p.Retried)
}

// A Check is an invariant: both numbers must be equal.
type Check struct {
	Name      string
	Want, Got int64
}

// Right reports whether the invariant holds.
func (c Check) Right() bool { return c.Got == c.Want }

// String is a line of text.
func (c Check) String() string {
	verdict := "right"
	if !c.Right() {
		verdict = fmt.Sprintf("WRONG, should be %d", c.Want)
	}
	return fmt.Sprintf("  %-32s %8d  %s\n", c.Name, c.Got, verdict)
}

// Transactions is how many were run to their end, declined ones counted and retries not.
func (o *Outcome) Transactions() (n int64) {
	for _, p := range o.Programs {
		n += p.Committed + p.Declined
	}
	return n
}

// Broken returns the names of the invariants that do not hold.
func (o *Outcome) Broken() (names []string) {
	for _, c := range o.Checks {
		if !c.Right() {
			names = append(names, c.Name)
		}
	}
	return names
}

// String returns the outcome as a few lines of text.
func (o *Outcome) String() string {
	var b strings.Builder
	n := o.Transactions()
	fmt.Fprintf(&b, "%d transactions by %d clients in %.1f s: %.0f a second\n", n, o.Clients, o.Elapsed.Seconds(),
		float64(n)/max(o.Elapsed.Seconds(), 1e-3))
	for _, p := range o.Programs {
		b.WriteString(p.String())
	}
	for _, c := range o.Checks {
		b.WriteString(c.String())
	}
	return b.String()
}
