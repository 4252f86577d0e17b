package hunt

import (
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload/random"
)

// A beginning is what a reduction may start from. The first steps of its scenario only make rows: so many of them belong
// into the set-up, if that shows the finding as well.
type beginning struct {
	scenario *scenario.Scenario
	before   int
}

// beginnings are what may show a finding again, the smallest first: the finding's own transactions, with the statements on
// the cycle alone or with all; each on the database as it was first, and behind what others had written until then; at
// last all that the round sent until then.
func (r *round) beginnings(f *analyzer.Finding) []beginning {
	var all []beginning
	earlier := r.writesBefore(f)
	for _, of := range []*analyzer.Finding{essential(f), f} {
		s := report.Scenario(of, r.result.Runs)
		if s == nil {
			continue
		}
		s.Setup, s.Tables = r.generator.Setup(), nil // a replay has another database
		all = append(all, beginning{scenario: s})
		if len(earlier) > 0 {
			behind := *s
			behind.Sessions = slices.Concat([]scenario.Session{{Name: before}}, s.Sessions)
			behind.Steps = slices.Concat(earlier, s.Steps)
			all = append(all, beginning{&behind, len(earlier)})
		}
	}
	slices.SortStableFunc(all, func(a, b beginning) int { return len(a.scenario.Steps) - len(b.scenario.Steps) })
	return append(all, beginning{scenario: r.scheduleUntil(r.span(f))})
}

// before is the session that makes rows.
const before = "before"

// span gives when a finding's transactions began and ended.
func (r *round) span(f *analyzer.Finding) (begin, end time.Time) {
	for i, t := range f.Txns() {
		for _, run := range r.result.Runs {
			if run.Run != t.ID.Run() {
				continue
			}
			if from := run.Started.Add(time.Duration(t.Start)); i == 0 || from.Before(begin) {
				begin = from
			}
			if to := run.Started.Add(time.Duration(t.End)); to.After(end) {
				end = to
			}
		}
	}
	return begin, end
}

// writesBefore are the writes of the transactions that had committed when the first of a finding's began, in the order
// of the commits.
func (r *round) writesBefore(f *analyzer.Finding) []scenario.Step {
	begin, _ := r.span(f)
	open := make(map[int][]scenario.Step) // by transaction
	var all []scenario.Step
	for _, x := range byEnd(r.outcome.Steps) {
		verb, _, _ := strings.Cut(x.SQL, " ")
		switch {
		case x.Error != "" || x.Ended.IsZero() || !x.Ended.Before(begin):
		case verb == "COMMIT":
			all = append(all, open[x.Transaction]...)
		case slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE"}, verb):
			open[x.Transaction] = append(open[x.Transaction], scenario.Step{Session: before, SQL: x.SQL})
		}
	}
	return all
}

// byEnd gives steps in the order in which they ended.
func byEnd(steps []random.Step) []random.Step {
	return slices.SortedStableFunc(slices.Values(steps), func(a, b random.Step) int { return a.Ended.Compare(b.Ended) })
}

// scheduleUntil is what the round sent until a time, and the ends of the transactions that were open then.
func (r *round) scheduleUntil(_, end time.Time) *scenario.Scenario {
	s := r.schedule()
	n := len(r.outcome.Steps)
	for n > 0 && r.outcome.Steps[n-1].Sent.After(end) {
		n--
	}
	s.Steps = s.Steps[:n]
	return s
}

// essential is a finding with the statements of its cycle alone, and those that begin and end its transactions.
func essential(f *analyzer.Finding) *analyzer.Finding {
	less := *f
	less.Witness = slices.Clone(f.Witness)
	for _, t := range f.Txns() {
		of, stmts := *t, make(map[*history.Stmt]*history.Stmt)
		of.Stmts = make([]history.Stmt, 0, len(t.Stmts)) // as long: what points into it stays
		for i := range t.Stmts {
			if s := &t.Stmts[i]; onCycle(f, s) || s.Kind == history.Begin || s.Kind == history.Commit || s.Kind == history.Rollback {
				of.Stmts = append(of.Stmts, *s)
				stmts[s] = &of.Stmts[len(of.Stmts)-1]
			}
		}
		if len(of.Stmts) == 0 {
			return f
		}
		for i := range less.Witness {
			e := &less.Witness[i]
			if e.From == t {
				e.From, e.FromStmt = &of, stmts[e.FromStmt]
			}
			if e.To == t {
				e.To, e.ToStmt = &of, stmts[e.ToStmt]
			}
		}
	}
	return &less
}
