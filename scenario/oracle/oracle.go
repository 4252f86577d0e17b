// Package oracle judges what a server answers by what it must have answered, with neither rows' versions nor orders
// of transactions: it plays a script, plays it again in another form that has to come to the same, and compares.
//
// [Alone] holds transactions against their own statements in autocommit. alone.go makes the two forms, compare.go
// compares what came of them, exemption.go lists what differs by design, volatile.go what differs each time.
//
// [Serial] does so with concurrent ones: serial.go has their statements played in orders that a graph of them allows
// (package sdg), observe.go sees what the graph is made of, looks.go which tables a statement looks at; notjudged.go
// says what is not judged.
//
// [Views] holds each statement of concurrent transactions against itself on what it has to see: views.go goes
// through what happened, views_rules.go has what statements see, views_model.go the versions, views_scenes.go what
// one statement may see. views_judge.go compares, views_bench.go is the database where statements are tried, and
// views_statement.go reads what a statement is about.
//
// [Forms] holds each statement of a transaction against itself in other forms: forms.go runs them, forms_statement.go
// makes them.
package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle/sdg"
	"github.com/isotap/isotap/scenario/replay"
)

// A Play plays a scenario at a level in a fresh database, directly on the server.
type Play func(ctx context.Context, s *scenario.Scenario, level history.Level) (replay.Trace, error)

// An Aspect is that of an answer which is not as it has to be.
type Aspect uint8

// The aspects of an answer.
const (
	Outcome  Aspect = iota // whether it succeeds, and with which error it fails
	Affected               // how many rows a write changed
	Rows                   // which rows a query gives
	Order                  // in which order, as far as its ORDER BY says
	Key                    // which number the server gave a row
	Warnings               // the codes of the warnings
	Table                  // what is in a table at the end
	Waiting                // that a statement has to wait
)

var aspects = [...]string{"outcome", "rows changed", "rows", "order of the rows", "generated key", "warnings",
	"table at the end", "waiting"}

// String returns the aspect in words.
func (a Aspect) String() string { return aspects[a] }

// MarshalText gives the aspect in words, for JSON.
func (a Aspect) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is its inverse.
func (a *Aspect) UnmarshalText(text []byte) error {
	i := slices.Index(aspects[:], string(text))
	if i < 0 {
		return fmt.Errorf("there is no aspect %q of an answer", text)
	}
	*a = Aspect(i)
	return nil
}

// A Difference is something that a server answered in a transaction, and otherwise where it has to be the same.
type Difference struct {
	// Step is the number of the step in the script, from 1; 0 for a table at the end.
	Step   int
	SQL    string // of the step, or the query that reads the table
	Aspect Aspect
	// Got is what came of it in the transaction, Want where it has to be the same.
	Got, Want string
	// GotOnly and WantOnly are the rows that only the one has, of rows and tables.
	GotOnly, WantOnly []string
	// By says what Want comes of, where that is not the same statement in autocommit; Known names a published bug
	// that explains Got.
	By, Known string
}

// String returns the two answers side by side, and the statement.
func (d Difference) String() string { return d.Words() + ": " + d.SQL }

// Words returns the two answers side by side.
func (d Difference) Words() string {
	where := fmt.Sprintf("step %d", d.Step)
	if d.Step == 0 {
		where = "at the end"
	}
	known := ""
	if d.Known != "" {
		known = " (" + d.Known + ")"
	}
	return fmt.Sprintf("%s, %s: the server said %s; %s it is %s%s", where, d.Aspect, d.Got, cmp.Or(d.By, "alone, in autocommit,"),
		d.Want, known)
}

// A Reply is what a step of the script was answered, and what it had to be answered.
type Reply struct {
	Step int // from 1
	Got  *replay.Result
	Want *replay.Result // nil: it is not judged
}

// A Verdict is what an oracle says of a script.
type Verdict struct {
	Differences []Difference
	// ByDesign are those that have to be, each with why.
	ByDesign []string
	// Transactions and Statements are how many were judged.
	Transactions, Statements int
	// NotJudged counts statements by why they were not.
	NotJudged map[string]int
	// Replies are those of the steps that were played, in the order in which they were sent. Order are the numbers of
	// the steps in the order of [Serial] that shows the differences, or the last one that was tried.
	Replies []Reply
	Order   []int
	// Orders and Graph are of [Serial]: which orders there are and were played, and the graph that allows them.
	Orders Orders
	Graph  *sdg.Graph
}

// hear keeps what a step was answered.
func (v *Verdict) hear(step int, got *replay.Result) {
	v.Replies = append(v.Replies, Reply{Step: step, Got: got})
}

// expect keeps what a step had to be answered.
func (v *Verdict) expect(step int, want *replay.Result) {
	for i := range v.Replies {
		if v.Replies[i].Step == step {
			v.Replies[i].Want = want
		}
	}
}

// Wrong reports whether there is a difference that may not be.
func (v *Verdict) Wrong() bool { return len(v.Differences) > 0 }

// String returns the differences, one a line.
func (v *Verdict) String() string {
	lines := make([]string, len(v.Differences))
	for i, d := range v.Differences {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}
