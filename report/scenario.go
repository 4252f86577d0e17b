package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/scenario"
)

// Scenarios writes the interleaving of each finding's witness into a directory, which it makes: one file for
// each, named by the anomaly and the finding's id. Findings without a transaction have none.
func Scenarios(dir string, r *analyzer.Result) error {
	if err := private.MkdirAll(dir); err != nil {
		return fmt.Errorf("write the scenarios: %w", err)
	}
	clock := newClock(r.Runs)
	for _, f := range r.Findings {
		if f.Class == analyzer.Unprotected {
			continue // a play knows no requests
		}
		s := newScenario(f, clock)
		if len(s.Steps) == 0 {
			continue
		}
		file, err := private.Create(filepath.Join(dir, scenarioName(f)))
		if err != nil {
			return fmt.Errorf("write the scenarios: %w", err)
		}
		if err := errors.Join(s.Write(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Scenario returns the interleaving of a finding's witness, of one of the runs; nil where it has no transaction.
func Scenario(f *analyzer.Finding, runs []history.Info) *scenario.Scenario {
	s := newScenario(f, newClock(runs))
	if len(s.Steps) == 0 {
		return nil
	}
	return s
}

// scenarioName is a file's name, whatever is in the id.
func scenarioName(f *analyzer.Finding) string {
	plain := func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}
	return strings.Map(plain, string(f.Anomaly)+"-"+f.ID) + ".yaml"
}

func newScenario(f *analyzer.Finding, c clock) *scenario.Scenario {
	w := newWitness(f)
	s := &scenario.Scenario{Name: string(f.Anomaly), From: "finding " + f.ID, Tables: f.Tables, Setup: []string{},
		Expect: scenario.Outcome{Anomalies: []string{string(f.Anomaly)}}}
	for _, t := range w.txns {
		session := scenario.Session{Name: w.name(t)}
		if t.Level != history.LevelUnknown {
			session.Level = t.Level.String()
		}
		s.Sessions = append(s.Sessions, session)
	}
	steps := commitsBehindReads(w.interleaving(c), f)
	for i, x := range steps {
		first, last := sentOf(x.txn)
		if x.stmt == first && !x.txn.Implicit && first.Kind != history.Begin {
			s.Steps = append(s.Steps, scenario.Step{Session: w.name(x.txn), SQL: "BEGIN"})
		}
		s.Steps = append(s.Steps, newStep(w, steps, i))
		if x.stmt == last && !x.txn.Implicit {
			s.Steps = append(s.Steps, lastStep(w, x.txn, last)...)
		}
	}
	return s
}

// sentOf returns the first and the last statement that somebody sent of a transaction: others stand for what the
// server's log alone tells, and one of those does it.
func sentOf(t *history.Txn) (first, last *history.Stmt) {
	for i := range t.Stmts {
		if s := &t.Stmts[i]; !s.Unseen {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	return first, last
}

// commitsBehindReads puts each COMMIT behind the reads that did not see what its transaction wrote: one may have been
// sent while the server was at the COMMIT.
func commitsBehindReads(steps []step, f *analyzer.Finding) []step {
	for i := range f.Witness {
		e := &f.Witness[i]
		commit := slices.IndexFunc(steps, func(x step) bool { return x.txn == e.To && x.stmt.Kind == history.Commit })
		read := slices.IndexFunc(steps, func(x step) bool { return x.stmt == e.FromStmt })
		if e.Kind != analyzer.RW || commit < 0 || read < commit {
			continue
		}
		late := steps[commit]
		steps = slices.Insert(slices.Delete(steps, commit, commit+1), read, late)
	}
	return steps
}

func newStep(w *witness, steps []step, i int) scenario.Step {
	x := steps[i]
	text, whole := Statement(w.finding.Family, x.stmt)
	// Of what went past isotap the log tells no values.
	out := scenario.Step{Session: w.name(x.txn), SQL: text, Incomplete: !whole || x.txn.ID.Run().Past()}
	for _, other := range steps {
		out.Waits = out.Waits || x.waitsFor(&other)
	}
	switch {
	case x.stmt.Error != (history.Error{}):
		out.Error = x.stmt.Error.SQLState
	case x.stmt.Kind == history.Select:
		out.Rows = &x.stmt.Rows
	case x.stmt.Kind == history.Insert, x.stmt.Kind == history.Update, x.stmt.Kind == history.Delete:
		out.Affected = &x.stmt.Affected
	}
	return out
}

// waitsFor reports whether a step is the end of another transaction, comes later, and let this one go on: its reply
// came after the other's, or after that was sent and both want the same row's lock.
func (x *step) waitsFor(end *step) bool {
	reply := x.at + x.stmt.End - x.stmt.Start
	_, last := sentOf(end.txn)
	if end.txn == x.txn || end.txn.Implicit || end.stmt != last || end.at < x.at {
		return false
	}
	return end.at+end.txn.End-end.stmt.Start <= reply || last.Kind == history.Commit && end.at <= reply &&
		x.wants(end.txn, end.at-end.stmt.Start)
}

// wants reports whether a step locks a row that another transaction locked before; shift leads from the other's times
// to the step's.
func (x *step) wants(other *history.Txn, shift int64) bool {
	for i := range other.Stmts {
		s := &other.Stmts[i]
		if s.Start+shift > x.at {
			break
		}
		for _, a := range s.Accesses {
			if locks(s, &a) && slices.ContainsFunc(x.stmt.Accesses,
				func(b history.Access) bool { return b.Row == a.Row && locks(x.stmt, &b) }) {
				return true
			}
		}
	}
	return false
}

func locks(s *history.Stmt, a *history.Access) bool {
	return a.Op != history.Read || s.Locking != history.NoLock
}

// lastStep ends a transaction whose end is no statement of the recording.
func lastStep(w *witness, t *history.Txn, last *history.Stmt) []scenario.Step {
	switch {
	case last.Kind == history.Commit, last.Kind == history.Rollback:
		return nil
	case t.Status == history.Aborted:
		return []scenario.Step{{Session: w.name(t), SQL: "ROLLBACK"}}
	}
	return []scenario.Step{{Session: w.name(t), SQL: "COMMIT"}}
}
