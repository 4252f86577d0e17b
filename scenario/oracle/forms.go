package oracle

import (
	"context"
	"fmt"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
)

// Forms holds each query, UPDATE, DELETE and INSERT of a query's rows of a transaction against the same statement in
// other forms, which the server plans and evaluates otherwise: as it is, and with its conditions put in another way
// (otherForms). Each is run where the statement is about to be, in the same transaction, and rolled back to a
// savepoint. It has to give the same rows, change as many, and leave the same tables.
//
// Each session is played by itself: what a condition's form locks does not count. Statements that answer otherwise each
// time, by design, are played and not judged.
func Forms(ctx context.Context, play Play, server history.Server, s Script, level history.Level) (*Verdict, error) {
	var all Verdict
	moving := volatilesOf(server.Engine.Family(), s.Scenario, true)
	for _, session := range s.Sessions {
		f := &forms{ctx: ctx, play: play, engine: server.Engine, script: s, level: level, session: session, verdict: &all,
			moving: moving}
		if err := f.judge(); err != nil {
			return nil, fmt.Errorf("statements of session %s in other forms: %w", session.Name, err)
		}
	}
	slices.SortFunc(all.Replies, func(x, y Reply) int { return x.Step - y.Step })
	return &all, nil
}

// formSavepoint is where a form is rolled back to.
const formSavepoint = "isotap_form"

// forms is the judgement of one session.
type forms struct {
	ctx     context.Context
	play    Play
	engine  dbms.Engine
	script  Script
	level   history.Level
	session scenario.Session
	tables  []string
	judged  []inForms
	steps   []scenario.Step // that are sent
	moving  *volatiles
	verdict *Verdict
}

// inForms is a statement that is run in several forms. Its places are those of what is sent.
type inForms struct {
	step   int // its place in the script
	at     int
	looks  int // where the tables are read behind it; 0: they are not
	others []otherForm
}

// An otherForm is one of them; known is a published bug that may answer it wrongly.
type otherForm struct {
	text, known       string
	at, looks, undone int
}

func (f *forms) judge() (err error) {
	f.tables, err = findTables(f.ctx, f.play, f.engine, f.script, f.session, f.level)
	if err != nil {
		return err
	}
	var sent []sentStep
	for _, steps := range reduce.Transactions(f.script.Steps) {
		if f.script.Steps[steps[0]].Session != f.session.Name {
			continue
		}
		judged := len(f.judged)
		for _, i := range steps {
			sent = append(sent, sentStep{i, f.send(i, len(steps) > 1)})
		}
		if len(f.judged) > judged {
			f.verdict.Transactions++
		}
	}
	if len(f.judged) == 0 {
		return nil
	}
	s := *f.script.Scenario
	s.Sessions, s.Steps = []scenario.Session{f.session}, f.steps
	t, err := f.play(f.ctx, &s, f.level)
	if err != nil {
		return err
	}
	for _, x := range sent {
		f.verdict.hear(x.step+1, &t.Results[x.at])
	}
	for i := range f.judged {
		if !f.undone(&f.judged[i], t.Results) {
			f.verdict.leaveOut(notUndone, len(f.judged)-i)
			return nil
		}
		f.hold(&f.judged[i], t.Results)
	}
	return nil
}

// A sentStep is a step of the script, and its place among what is sent.
type sentStep struct{ step, at int }

// send sends a step, behind its other forms if it stands in a transaction. It returns its place.
func (f *forms) send(i int, inTransaction bool) int {
	x := f.script.Steps[i]
	x.AtOnce, x.Until = false, nil
	st := read(f.engine.Family(), x.SQL, nil)
	j := inForms{step: i}
	moves := f.moving.is(x.SQL)
	if moves && inTransaction {
		f.verdict.leaveOut(volatileStep, 1)
	}
	if inTransaction && !moves && hasForms(st) {
		for _, other := range f.others(st) {
			f.add("SAVEPOINT " + formSavepoint)
			other.at, other.looks = f.add(other.text), f.look(st)
			other.undone = f.add("ROLLBACK TO SAVEPOINT " + formSavepoint)
			// Or a later ROLLBACK TO, in a transaction that has failed, would go back to here.
			f.add("RELEASE SAVEPOINT " + formSavepoint)
			j.others = append(j.others, other)
		}
	}
	f.steps = append(f.steps, x)
	j.at = len(f.steps) - 1
	if len(j.others) > 0 {
		j.looks = f.look(st)
		f.judged = append(f.judged, j)
	}
	return j.at
}

// hasForms reports whether a statement is held against its other forms. An INSERT is where a query gives its rows; what
// becomes of keys that are there already may hang on the order in which these come.
func hasForms(s *statement) bool {
	switch s.verb {
	case selects, locks, updates, deletes:
		return true
	case inserts:
		return len(s.conditions(false)) > 0 && !s.returning && !slices.ContainsFunc([]string{"REPLACE", "IGNORE", "DUPLICATE",
			"CONFLICT"}, s.anywhere)
	}
	return false
}

// others returns the forms of a statement. Which rows a LIMIT leaves to a write, or to the query around, may hang on
// the form, unless the script is closed.
func (f *forms) others(s *statement) []otherForm {
	open := s.limited && !f.script.Closed
	if open && s.writes() {
		return []otherForm{{text: s.text}}
	}
	return otherForms(s, f.engine, open)
}

// add sends a text, and returns its place.
func (f *forms) add(sql string) int {
	f.steps = append(f.steps, scenario.Step{Session: f.session.Name, SQL: sql})
	return len(f.steps) - 1
}

// look reads the tables behind a statement that writes. It returns the place of the first; 0 for none. The numbers that
// an INSERT gives are others each time.
func (f *forms) look(behind *statement) int {
	if !behind.writes() || behind.verb == inserts {
		return 0
	}
	first := len(f.steps)
	for _, table := range f.tables {
		f.add("SELECT * FROM " + table)
	}
	return first
}

// undone reports whether what the forms of a statement did was undone. It is not where the transaction has ended
// without a word, as with DDL in the MySQL family.
func (f *forms) undone(j *inForms, results []replay.Result) bool {
	return !slices.ContainsFunc(j.others, func(other otherForm) bool {
		return results[other.at].Status == replay.OK && results[other.undone].Status != replay.OK
	})
}

// hold compares a statement with its other forms.
func (f *forms) hold(j *inForms, results []replay.Result) {
	got, compared := &results[j.at], false
	for _, other := range j.others {
		want := &results[other.at]
		if got.Status != replay.OK || want.Status != replay.OK {
			continue
		}
		compared = true
		all := differences(j.step+1, answer{Result: got}, answer{Result: want}, f.script.Closed)
		all = slices.DeleteFunc(all, func(d Difference) bool { return d.Aspect == Warnings || d.Aspect == Key })
		if j.looks > 0 && len(all) == 0 {
			all = f.tablesDiffer(j, results[j.looks:], results[other.looks:])
		}
		for i := range all {
			all[i].By, all[i].Known = "as "+other.text+", rolled back,", other.known
		}
		if len(all) > 0 {
			f.verdict.expect(j.step+1, want)
			f.verdict.Differences = append(f.verdict.Differences, all...)
			break // one form tells
		}
	}
	if compared {
		f.verdict.Statements++
		return
	}
	f.verdict.leaveOut(failsInOneForm, 1)
}

// tablesDiffer compares the tables behind a statement.
func (f *forms) tablesDiffer(j *inForms, got, want []replay.Result) (all []Difference) {
	for i, table := range f.tables {
		if d := ofRows(got[i].Rows, want[i].Rows); d != nil {
			d.Step, d.SQL, d.Aspect = j.step+1, "SELECT * FROM "+table, Table
			all = append(all, *d)
		}
	}
	return all
}
