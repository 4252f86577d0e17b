// Package report shows what an analysis found: as a compact text for a terminal ([Terminal],
// [Summary]), as a documented JSON document for scripts ([JSON], docs/report-json.md) and as one
// HTML file that opens offline ([HTML]).
//
// Every report opens with the coverage, because "no anomaly" means nothing without it.
// The text of statements, table names and error messages comes from strangers: it is escaped for
// HTML, and characters that would steer a terminal or reorder a line are shown by their code.
//
// terminal.go and json.go stand alone. html.go fills its page with the drawing of graph.go and the table of
// timeline.go, both made of one witness (witness.go), and with sentences and statements that prose.go and
// statement.go take apart; format.go spells numbers, times and foreign text.
//
// The functions write what they are given and keep no state: they may be called from several
// goroutines, on the same Result too, as long as none changes it.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A Tally counts findings by class.
type Tally struct{ Violations, Hazards, Unprotected int }

// Count counts findings.
func Count(findings []*analyzer.Finding) (t Tally) {
	for _, f := range findings {
		switch f.Class {
		case analyzer.Violation:
			t.Violations++
		case analyzer.Unprotected:
			t.Unprotected++
		default:
			t.Hazards++
		}
	}
	return t
}

// A grade says how far a result's silence may be trusted.
type grade string

const (
	gradeGood grade = "good" // at least lowCoverage of the statements were observed exactly
	gradeLow  grade = "low"
	gradeNone grade = "none" // there was no statement to observe
)

// lowCoverage is the share of exactly observed statements below which a report warns: one statement
// in ten that nobody saw is enough to hide any anomaly.
const lowCoverage = 0.9

func gradeOf(c *analyzer.Coverage) grade {
	switch {
	case c.Statements == 0:
		return gradeNone
	case float64(c.Exact) < lowCoverage*float64(c.Statements),
		float64(c.Txns) < lowCoverage*float64(c.Txns+c.Unrecorded+c.Unreadable):
		return gradeLow
	}
	return gradeGood
}

// verdict is the one line that sums a result up.
func verdict(r *analyzer.Result) string {
	t := Count(r.Findings)
	if t == (Tally{}) {
		if r.Coverage.Exact == 0 {
			return "Nothing observed"
		}
		return "No anomaly found"
	}
	text := plural(t.Hazards, "hazard") + ", " + plural(t.Violations, "violation")
	if t.Unprotected > 0 {
		text += ", " + number(t.Unprotected) + " unprotected"
	}
	return text
}

// caution says why the verdict must not be trusted on its own; empty when it may be.
func caution(c *analyzer.Coverage) string {
	return strings.TrimSpace(missing(c) + cautionOfKept(c))
}

// missing says how many transactions the recording does not have, with a space behind.
func missing(c *analyzer.Coverage) (text string) {
	if c.Unrecorded > 0 {
		text = plural(c.Unrecorded, "transaction") +
			" went unrecorded, as the disk took nothing: what is wrong with these goes unseen. "
	}
	switch {
	case c.Unreadable > 0:
		text += plural(c.Unreadable, "transaction") +
			" were unreadable: the recording is damaged, `isotap recordings --check` says where. "
	case c.Damaged:
		text += "The recording is damaged, `isotap recordings --check` says where. "
	}
	return text
}

// cautionOfKept is caution for the statements that the recording has.
func cautionOfKept(c *analyzer.Coverage) string {
	switch gradeOf(c) {
	case gradeNone:
		return "No statement that reads or writes rows was recorded, so there was nothing to find. " +
			"Check that the traffic went through the proxy."
	case gradeLow:
		if c.Exact == 0 {
			why := sortedReasons(c)[0].Why
			return fmt.Sprintf("Not one of %s was observed exactly, so there was nothing to find. "+
				"The most frequent reason is %q: %s",
				plural(c.Statements, "statement"), clip(oneLine(why.String()), 60), hint(c, why))
		}
		if float64(c.Exact) >= lowCoverage*float64(c.Statements) {
			return "" // what is missing has been told
		}
		return fmt.Sprintf("Only %s of the statements were observed exactly. "+
			"Anomalies between the others go unseen: the absence of a finding means little here.",
			percent(c.Exact, c.Statements))
	}
	return ""
}

// A reason is one entry of Coverage.Reasons.
type reason struct {
	Why   history.Reason
	Count int
}

// sortedReasons returns the reasons, the most frequent first.
func sortedReasons(c *analyzer.Coverage) []reason {
	reasons := make([]reason, 0, len(c.Reasons))
	for why, n := range c.Reasons {
		reasons = append(reasons, reason{why, n})
	}
	slices.SortFunc(reasons, func(a, b reason) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Why.String(), b.Why.String())
	})
	return reasons
}

// usedKinds returns the kinds of the recording's statements, the most frequent first.
func usedKinds(c *analyzer.Coverage) []history.Kind {
	kinds := make([]history.Kind, 0, len(c.Kinds))
	for k := range c.Kinds {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b history.Kind) int {
		if x, y := c.Kinds[a].Statements(), c.Kinds[b].Statements(); x != y {
			return y - x
		}
		return int(a) - int(b)
	})
	return kinds
}

// usedLevels returns the isolation levels that the recording's transactions ran at, weakest first.
func usedLevels(c *analyzer.Coverage) []history.Level {
	levels := make([]history.Level, 0, len(c.Levels))
	for l, n := range c.Levels {
		if n > 0 {
			levels = append(levels, l)
		}
	}
	slices.Sort(levels)
	return levels
}

// spread says what a finding's one witness does not show: other tables, statements and programs.
func spread(f *analyzer.Finding) string {
	var parts []string
	if f.Patterns > 1 {
		parts = append(parts, number(f.Patterns)+" sets of statements, the most frequent of which is shown")
	}
	if len(f.Tables) > 0 && (f.Patterns > 1 ||
		slices.ContainsFunc(f.Tables, func(t string) bool { return strings.HasSuffix(t, "#") })) {
		shown := f.Tables[:min(len(f.Tables), 6)]
		text := "table " + shown[0]
		if len(shown) > 1 {
			text = "tables " + strings.Join(shown, ", ")
		}
		if len(shown) < len(f.Tables) {
			text += fmt.Sprintf(" and %d more", len(f.Tables)-len(shown))
		}
		parts = append(parts, oneLine(text))
	}
	if f.ProgramSets > 1 {
		parts = append(parts, plural(f.ProgramSets, "combination")+" of programs")
	}
	text := ""
	if len(parts) > 0 {
		text = "Seen with " + strings.Join(parts, "; ") + "."
	}
	return strings.TrimSpace(text + " " + covers(f))
}

// counting says what is not counted, of several anomalies.
func counting(r *analyzer.Result) string {
	if r.Anomalies() < 2 {
		return ""
	}
	return "A dependency counts in one finding, the gravest and shortest that explains it: a longer recording may tell fewer " +
		"cycles of several rw, or by the order of sessions or of time."
}

// covers says which anomalies a finding tells along with its own, since it has their statements already.
func covers(f *analyzer.Finding) string {
	if len(f.Covers) == 0 {
		return ""
	}
	var parts []string
	for _, c := range f.Covers {
		parts = append(parts, plural(c.Count, string(c.Anomaly)+" "+string(c.Class)))
	}
	return "Not listed by themselves: " + strings.Join(parts, ", ") + " through the same statements or transactions."
}

// A clock turns the times of a recording's runs, each counted from its own start, into wall time.
type clock map[history.Run]time.Time

func newClock(runs []history.Info) clock {
	c := make(clock, len(runs))
	for _, info := range runs {
		c[info.Run] = info.Started
	}
	return c
}

// wall returns the wall time of a moment in a transaction's run; false when the run is not known.
func (c clock) wall(id history.TxnID, ns int64) (time.Time, bool) {
	started, ok := c[id.Run()]
	return started.Add(time.Duration(ns)).UTC(), ok && !started.IsZero()
}

// shift gives, for each transaction, what to add to its times so that they share one zero. Within
// one run that is nothing; across runs it is the distance of their starts on the wall clock.
func (c clock) shift(txns []*history.Txn) []int64 {
	shifts := make([]int64, len(txns))
	if len(txns) == 0 {
		return shifts
	}
	base, known := c[txns[0].ID.Run()]
	for i, t := range txns {
		if started, ok := c[t.ID.Run()]; known && ok {
			shifts[i] = int64(started.Sub(base))
		}
	}
	return shifts
}

// levelName names a level in a sentence.
func levelName(l history.Level) string {
	if l == history.LevelUnknown {
		return "unknown level"
	}
	return l.String()
}

// gloss says in words what an anomaly's number stands for; empty for those that have a name.
func gloss(a analyzer.Anomaly) string {
	switch a {
	case analyzer.G0:
		return "dirty write"
	case analyzer.G1a:
		return "aborted read"
	case analyzer.G1b:
		return "intermediate read"
	case analyzer.G1c:
		return "circular information flow"
	case analyzer.StaleOverwrite, analyzer.StaleDecision, analyzer.DoubleInsert, analyzer.DoubleSet:
		return "between transactions of one request"
	case analyzer.SilentRevert:
		return "between requests"
	case analyzer.OTV:
		return "observed transaction vanishes"
	case analyzer.GMonotonic:
		return "non-monotonic view"
	case analyzer.GSIa:
		return "interference"
	case analyzer.GSingle:
		return "cycle with one anti-dependency"
	case analyzer.GNonadjacent:
		return "cycle with anti-dependencies apart"
	case analyzer.G2Item:
		return "cycle with several anti-dependencies"
	case analyzer.G2:
		return "cycle with anti-dependencies through conditions"
	}
	return ""
}
