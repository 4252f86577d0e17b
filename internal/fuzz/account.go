package fuzz

import (
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload/random"
)

// An account is all that sessions sent to a database, and when: those of a round, or those of a replay. Its statements
// are whole; those of a recording may lack values.
type account struct {
	setup []string
	steps []random.Step // in the order in which they were sent
	runs  []history.Info
	level history.Level
	// fixes says whether a statement, if it is a transaction's first of the kind, fixes what the plain reads see.
	fixes func(sql string) bool
	txns  map[int][]int // places of steps by their transaction's number
}

func newAccount(setup []string, steps []random.Step, runs []history.Info, level history.Level,
	engine dbms.Engine) *account {
	a := &account{setup: setup, steps: steps, runs: runs, level: level, fixes: snapshots(engine),
		txns: make(map[int][]int)}
	for i := range steps {
		a.txns[steps[i].Transaction] = append(a.txns[steps[i].Transaction], i)
	}
	return a
}

// snapshots returns the test of whether a statement takes an engine's snapshots.
func snapshots(engine dbms.Engine) func(sql string) bool {
	switch engine {
	case dbms.TiDB:
		return func(string) bool { return true } // BEGIN, too
	case dbms.PostgreSQL:
		return func(sql string) bool { return !reduce.Bounds(sql) }
	}
	return func(sql string) bool { return strings.HasPrefix(sql, "SELECT") || strings.HasPrefix(sql, "WITH") }
}

// account is that of a round.
func (r *round) account(engine dbms.Engine) *account {
	return newAccount(r.generator.Setup(), r.outcome.Steps, r.result.Runs, r.level.Level, engine)
}

// accountOf is that of a replay.
func accountOf(p *runner.Result) *account {
	sessions := make(map[string]int)
	steps := make([]random.Step, len(p.Trace.Results))
	for n, group := range reduce.Transactions(p.Scenario.Steps) {
		for _, i := range group {
			r := &p.Trace.Results[i]
			if _, ok := sessions[r.Session]; !ok {
				sessions[r.Session] = len(sessions)
			}
			steps[i] = random.Step{Session: sessions[r.Session], Transaction: n, SQL: r.SQL, Sent: r.Sent,
				Ended: r.Ended}
			if r.Status != replay.OK {
				steps[i].Error = string(r.Status)
			}
		}
	}
	return newAccount(p.Scenario.Setup, steps, p.Result.Runs, p.Level, p.Server.Engine)
}

// placesOf returns the places of a recorded transaction's steps: of the one whose statements were sent and answered
// around the recorded ones. None where no transaction has as many.
func (a *account) placesOf(t *history.Txn) []int {
	var best []int
	var least time.Duration
	for _, places := range a.txns {
		if off, ok := a.distance(t, places); ok && (best == nil || off < least) {
			best, least = places, off
		}
	}
	return best
}

// distance is how much of a recorded transaction's statements lies outside of the time between a step's sending and its
// answer. It is false where there are fewer steps.
func (a *account) distance(t *history.Txn, places []int) (off time.Duration, ok bool) {
	run := slices.IndexFunc(a.runs, func(r history.Info) bool { return r.Run == t.ID.Run() })
	if run < 0 || len(t.Stmts) == 0 || int(t.Stmts[len(t.Stmts)-1].Num) > len(places) {
		return 0, false
	}
	for i := range t.Stmts {
		s, x := &t.Stmts[i], &a.steps[places[t.Stmts[i].Num-1]]
		from, to := a.runs[run].Started.Add(time.Duration(s.Start)), a.runs[run].Started.Add(time.Duration(s.End))
		off += max(x.Sent.Sub(from), 0)
		if !x.Ended.IsZero() {
			off += max(to.Sub(x.Ended), 0)
		}
	}
	return off, true
}

// part returns the steps of a finding's transactions, all of them or only those that the cycle goes through, with those
// that begin and end its transactions; nil where they are not in the account.
func (a *account) part(f *analyzer.Finding, all bool) *part {
	p := &part{of: a, behind: make(map[int][]int)}
	places := make(map[*history.Txn][]int)
	for _, t := range f.Txns() {
		of := a.placesOf(t)
		if of == nil {
			return nil
		}
		kept := slices.DeleteFunc(slices.Clone(of), func(i int) bool { return !all && !a.essential(f, t, of, i) })
		places[t], p.kept = kept, append(p.kept, kept...)
	}
	slices.Sort(p.kept)
	for i := range f.Witness {
		a.bind(p, &f.Witness[i], places)
	}
	return p
}

// essential reports whether a step of a finding's transaction is on the cycle, or begins or ends the transaction.
func (a *account) essential(f *analyzer.Finding, t *history.Txn, places []int, step int) bool {
	for i := range t.Stmts {
		if s := &t.Stmts[i]; places[s.Num-1] == step && onCycle(f, s) {
			return true
		}
	}
	return reduce.Bounds(a.steps[step].SQL)
}

// bind has a part keep the order that an edge tells of: a version is written before it is read or overwritten, and
// committed before a plain read sees it; one that a read did not see was committed after the read's snapshot.
func (a *account) bind(p *part, e *analyzer.Edge, places map[*history.Txn][]int) {
	from, to := places[e.From], places[e.To]
	if e.FromStmt == nil || e.ToStmt == nil || len(from) == 0 || len(to) == 0 {
		return
	}
	writeOrRead, next := a.placesOf(e.From)[e.FromStmt.Num-1], a.placesOf(e.To)[e.ToStmt.Num-1]
	ofSnapshot := a.level >= history.RepeatableRead && !e.Current
	switch {
	case e.Kind == analyzer.RW && (e.Current || a.level == history.ReadUncommitted):
		p.order(writeOrRead, next)
	case e.Kind == analyzer.RW && ofSnapshot:
		p.order(a.snapshot(from), to[len(to)-1])
	case e.Kind == analyzer.RW:
		p.order(writeOrRead, to[len(to)-1])
	case e.Kind == analyzer.WR && a.level == history.ReadUncommitted:
		p.order(writeOrRead, next)
	case e.Kind == analyzer.WR && ofSnapshot:
		p.order(from[len(from)-1], a.snapshot(to))
	case e.Kind == analyzer.WR || e.Kind == analyzer.WW:
		p.order(from[len(from)-1], next)
	}
}

// snapshot gives, of the places of a transaction, that of the statement that fixes what its plain reads see.
func (a *account) snapshot(places []int) int {
	for _, i := range places {
		if a.fixes(a.steps[i].SQL) {
			return i
		}
	}
	return places[0]
}

// span returns when the first statement of some steps was sent, beside those that begin transactions, and when the last
// one ended.
func (a *account) span(places []int) (begin, end time.Time) {
	for _, i := range places {
		x := &a.steps[i]
		if !reduce.Bounds(x.SQL) && (begin.IsZero() || x.Sent.Before(begin)) {
			begin = x.Sent
		}
		if x.Ended.After(end) {
			end = x.Ended
		}
	}
	return begin, end
}

// scenario is some of the steps, in an order, behind a set-up.
func (a *account) scenario(setup []string, places []int) *scenario.Scenario {
	s := &scenario.Scenario{Setup: setup}
	for _, i := range places {
		name := sessionName(a.steps[i].Session)
		if !slices.ContainsFunc(s.Sessions, func(x scenario.Session) bool { return x.Name == name }) {
			s.Sessions = append(s.Sessions, scenario.Session{Name: name})
		}
		s.Steps = append(s.Steps, scenario.Step{Session: name, SQL: a.steps[i].SQL})
	}
	return s
}
