package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
)

// A Script is what oracles judge.
type Script struct {
	*scenario.Scenario
	// Tables are those that are read at the end, as SQL names them; none: all that the set-up makes.
	Tables []string
}

// Alone holds each session's transactions against their own statements in autocommit. Nobody is beside them, so that
// what a statement gives hangs on the statements before it alone: replies, generated keys, warnings' codes and, at
// the end, all tables have to be the same. It finds how transactions misread their own writes, and needs neither a
// schedule nor a graph.
//
// A transaction that is rolled back is judged by a play of its own, up to its first error on PostgreSQL, where no
// statement succeeds after that. One with savepoints is played, not judged: undone statements have no like in
// autocommit. Statements that answer otherwise each time, by design, are left out of the script: what they write would
// be in all that comes behind them.
func Alone(ctx context.Context, play Play, server history.Server, s Script, level history.Level) (*Verdict, error) {
	var all Verdict
	moving := volatilesOf(server.Engine.Family(), s.Scenario, false).steps(s.Scenario)
	for _, why := range moving {
		all.leaveOut(why, 1)
	}
	for _, session := range s.Sessions {
		a := &alone{ctx: ctx, play: play, engine: server.Engine, script: s, level: level, verdict: &all, out: moving}
		if err := a.judge(session); err != nil {
			return nil, fmt.Errorf("session %s against itself: %w", session.Name, err)
		}
	}
	slices.SortFunc(all.Replies, func(x, y Reply) int { return x.Step - y.Step })
	return &all, nil
}

// alone is the judgement of one session.
type alone struct {
	ctx     context.Context
	play    Play
	engine  dbms.Engine
	script  Script
	level   history.Level
	session scenario.Session
	txns    []transaction
	tables  []string
	out     map[int]notJudged // places in the script of what is left out
	verdict *Verdict
}

// A transaction is some steps of the script: those from its BEGIN to its end, or one outside of all.
type transaction struct {
	steps []int // their places in the script
	// judged are those that autocommit has a like of: of one that is rolled back on PostgreSQL up to its first error.
	judged []int
	kept   bool // it has committed
	end    int  // the place of its COMMIT; -1: it has none
}

func (a *alone) judge(session scenario.Session) error {
	a.session = session
	for _, steps := range reduce.Transactions(a.script.Steps) {
		if a.script.Steps[steps[0]].Session != session.Name {
			continue
		}
		steps = slices.DeleteFunc(steps, func(i int) bool { _, out := a.out[i]; return out })
		if len(steps) > 0 {
			a.txns = append(a.txns, transaction{steps: steps, end: -1})
		}
	}
	if !slices.ContainsFunc(a.txns, a.isOne) {
		return nil
	}
	var err error
	if a.tables, err = findTables(a.ctx, a.play, a.engine, a.script, session, a.level); err != nil {
		return err
	}
	whole := a.newSending()
	for _, t := range a.txns {
		whole.all(t.steps)
	}
	got, err := whole.played()
	if err != nil {
		return err
	}
	for _, i := range whole.steps {
		a.verdict.hear(i+1, got.of[i].Result)
	}
	for i := range a.txns {
		a.sort(i, got)
	}
	return a.compare(got)
}

// isOne reports whether steps are a transaction, and not a statement outside of all.
func (a *alone) isOne(t transaction) bool {
	return reduce.Bounds(a.script.Steps[t.steps[0]].SQL) && len(t.steps) > 1
}

// sort finds out what became of transaction n, and which of its statements are judged.
func (a *alone) sort(n int, got *answers) {
	t := &a.txns[n]
	if !a.isOne(*t) {
		t.kept = true
		return
	}
	last := t.steps[len(t.steps)-1]
	open := !reduce.Bounds(a.script.Steps[last].SQL)
	// Of the MySQL family a BEGIN commits what is open. On PostgreSQL it goes on with it: that is left alone.
	followed := open && n+1 < len(a.txns)
	if followed && (a.engine == dbms.PostgreSQL || !a.isOne(a.txns[n+1])) {
		return
	}
	if isCommit(a.script.Steps[last].SQL) {
		t.end = last
	}
	failed := false
	for _, i := range t.steps {
		if reduce.Bounds(a.script.Steps[i].SQL) {
			continue
		}
		if isSavepoint(a.script.Steps[i].SQL) {
			t.judged = nil
			return
		}
		t.judged = append(t.judged, i)
		if failed = got.of[i].Status != replay.OK && a.engine == dbms.PostgreSQL; failed {
			break
		}
	}
	t.kept = followed || t.end >= 0 && !failed && got.of[t.end].Status == replay.OK
}

// compare plays the committed transactions in autocommit, and each other one behind those before it.
func (a *alone) compare(got *answers) error {
	kept := a.newSending()
	for i, t := range a.txns {
		switch {
		case !a.isOne(t) || t.judged == nil:
			kept.all(t.steps)
		case t.kept:
			kept.all(t.judged)
		default:
			if err := a.compareUndone(kept, i, got); err != nil {
				return err
			}
			kept.all(t.steps) // it leaves nothing but gaps in the numbers that the server gives
		}
	}
	want, err := kept.played()
	if err != nil {
		return err
	}
	for _, t := range a.txns {
		if t.kept {
			a.hold(t, got, want)
		}
	}
	for i, table := range a.tables {
		if d := ofRows(got.tables[i].Rows, want.tables[i].Rows); d != nil {
			d.SQL, d.Aspect = "SELECT * FROM "+table, Table
			a.verdict.Differences = append(a.verdict.Differences, *d)
		}
	}
	return nil
}

// compareUndone compares a transaction that was rolled back, by a play of its statements in autocommit behind what
// came before it.
func (a *alone) compareUndone(before *sending, i int, got *answers) error {
	t := a.txns[i]
	f := a.newSending()
	f.steps = slices.Clone(before.steps)
	f.all(t.judged)
	want, err := f.played()
	if err != nil {
		return err
	}
	if t.end >= 0 && got.of[t.end].Status != replay.OK {
		return a.holdRefused(t, got, want)
	}
	a.hold(t, got, want)
	return nil
}

// holdRefused judges a transaction whose COMMIT failed.
func (a *alone) holdRefused(t transaction, got, want *answers) error {
	commit := got.of[t.end].Result
	for _, i := range t.judged {
		if why, ok := exempt(a.engine, commit, want.of[i].Result); ok {
			a.verdict.ByDesign = append(a.verdict.ByDesign, fmt.Sprintf("step %d: %s: %s", i+1, outcome(commit), why))
			return nil
		}
	}
	a.hold(t, got, want)
	a.verdict.Differences = append(a.verdict.Differences, Difference{Step: t.end + 1, SQL: commit.SQL, Aspect: Outcome,
		Got: outcome(commit), Want: "success of each statement"})
	return nil
}

// hold compares the statements of a transaction.
func (a *alone) hold(t transaction, got, want *answers) {
	if len(t.judged) == 0 {
		return
	}
	a.verdict.Transactions++
	for _, i := range t.judged {
		a.verdict.Statements++
		a.verdict.expect(i+1, want.of[i].Result)
		a.verdict.Differences = append(a.verdict.Differences,
			differences(i+1, got.of[i], want.of[i], a.script.Closed)...)
	}
}

// findTables returns the tables of a script as SQL names them: those that it has, or those that its set-up makes.
func findTables(ctx context.Context, play Play, engine dbms.Engine, of Script, session scenario.Session,
	level history.Level) ([]string, error) {
	if of.Tables != nil {
		return of.Tables, nil
	}
	text, quote := "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND "+
		"TABLE_TYPE = 'BASE TABLE' ORDER BY 1", "`"
	if engine == dbms.PostgreSQL {
		text, quote = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1", `"`
	}
	s := *of.Scenario
	s.Sessions, s.Steps = []scenario.Session{session}, []scenario.Step{{Session: session.Name, SQL: text}}
	t, err := play(ctx, &s, level)
	if err != nil {
		return nil, err
	}
	var tables []string
	for _, row := range t.Results[0].Rows {
		tables = append(tables, quote+strings.ReplaceAll(row[0].Text, quote, quote+quote)+quote)
	}
	return tables, nil
}

// A sending is what is sent of a script: some of its steps, each with a question for its warnings where replies have
// none, and a look at each table behind them.
type sending struct {
	of    *alone
	steps []int // places in the script
}

func (a *alone) newSending() *sending { return &sending{of: a} }

func (f *sending) all(steps []int) { f.steps = append(f.steps, steps...) }

// The answers to a sending, by the steps' places in the script, and the tables at the end.
type answers struct {
	of     map[int]answer
	tables []*replay.Result
}

// played plays a sending.
func (f *sending) played() (*answers, error) {
	a := f.of
	asks := a.engine != dbms.PostgreSQL
	s := *a.script.Scenario
	s.Sessions, s.Steps = []scenario.Session{a.session}, nil
	send := func(x scenario.Step) {
		x.Session, x.AtOnce, x.Until = a.session.Name, false, nil
		s.Steps = append(s.Steps, x)
	}
	for _, i := range f.steps {
		send(a.script.Steps[i])
		if asks {
			send(scenario.Step{SQL: "SHOW WARNINGS"})
		}
	}
	send(scenario.Step{SQL: "ROLLBACK"}) // of what the script leaves open
	for _, table := range a.tables {
		send(scenario.Step{SQL: "SELECT * FROM " + table})
	}
	t, err := a.play(a.ctx, &s, a.level)
	if err != nil {
		return nil, err
	}
	all, at := &answers{of: make(map[int]answer)}, 0
	next := func() *replay.Result { at++; return &t.Results[at-1] }
	for _, i := range f.steps {
		x := answer{Result: next()}
		if asks {
			x.warnings = next()
		}
		all.of[i] = x
	}
	next()
	for range a.tables {
		all.tables = append(all.tables, next())
	}
	return all, nil
}

// isCommit reports whether a statement that ends a transaction commits it.
func isCommit(sql string) bool { return strings.EqualFold(firstWord(sql), "COMMIT") }

// isSavepoint reports whether a statement makes a savepoint, gives one up, or goes back to it.
func isSavepoint(sql string) bool {
	words := strings.Fields(strings.ToUpper(sql))
	switch firstWord(strings.ToUpper(sql)) {
	case "SAVEPOINT", "RELEASE":
		return true
	case "ROLLBACK":
		return slices.Contains(words, "TO")
	}
	return false
}

func firstWord(sql string) string {
	words := strings.Fields(strings.TrimRight(sql, "; "))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
