package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// reader is the session that reads the tables at the end.
const reader = "isotap_reader"

// Views holds the statements of concurrent transactions against themselves, each on a table that holds what it has
// to see: the versions of rows that its level lets it see in the order of things that the server chose (Troc, ICSE
// 2023). Open makes a scratch database for these tables. Replies have to be the same, and so have the tables at the
// end; who writes a row that another transaction has written has to wait for its end.
//
// What the order of things and the rules leave open is accepted in each form; what they do not tell is counted as
// not judged, with the reason.
func Views(ctx context.Context, play Play, open func(context.Context) (*replay.Scratch, error), server history.Server,
	s Script, level history.Level) (verdict *Verdict, err error) {
	v := &viewing{script: s, family: server.Engine.Family(), engine: server.Engine, level: level,
		verdict: &Verdict{NotJudged: make(map[string]int)}, actors: make(map[string]*actor), start: make(map[int]int)}
	sc := *s.Scenario
	sc.Sessions = slices.Clone(sc.Sessions)
	for _, x := range sc.Steps {
		if sc.Session(x.Session) == nil {
			sc.Sessions = append(sc.Sessions, scenario.Session{Name: x.Session})
		}
	}
	sc.Sessions = append(sc.Sessions, scenario.Session{Name: reader, Level: history.ReadCommitted.String(), Late: true})
	v.scenario, v.moving = &sc, volatilesOf(v.family, s.Scenario, true)
	if v.moving.setup {
		v.lose(reasonsNotJudged[volatileSetup])
	}
	if v.bench, err = openBench(ctx, open, server.Engine, &sc); err != nil {
		return nil, fmt.Errorf("views of %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, v.bench.close()) }()
	v.store = newStore(v.bench)
	sc.Steps = slices.Clone(sc.Steps)
	for _, t := range v.bench.tables {
		sc.Steps = append(sc.Steps, scenario.Step{Session: reader, SQL: "SELECT * FROM " + t.quoted})
	}
	if v.trace, err = play(ctx, &sc, level); err != nil {
		return nil, err
	}
	for i := range s.Steps {
		v.verdict.hear(i+1, &v.trace.Results[i])
	}
	if err := v.walk(); err != nil {
		return nil, fmt.Errorf("views of %s: %w", s.Name, err)
	}
	return v.verdict, nil
}

// A viewing is one judgement by views.
type viewing struct {
	script   Script
	scenario *scenario.Scenario // with the reads at the end
	family   dbms.Family
	engine   dbms.Engine
	level    history.Level
	bench    *bench
	store    *store
	trace    replay.Trace
	verdict  *Verdict
	moving   *volatiles
	actors   map[string]*actor // the open transactions, by session
	ever     []*actor          // all transactions
	now      int               // the event that the walk is at
	// start has the event before which each step began, by its number; ends are the steps as they ended.
	start map[int]int
	ends  []ending
	lost  string // why nothing is known of the versions any more; empty: they are known
}

// An ending is a step that ended, as an event.
type ending struct{ step, event, batch int }

// walk goes through the steps as they ended.
func (v *viewing) walk() error {
	v.order()
	unclear := v.unclear()
	rolled := false
	for _, e := range v.ends {
		if unclear[e.batch] {
			v.lose("behind a write in autocommit that went on beside others")
		}
		if e.batch > len(v.scenario.Steps) && !rolled {
			rolled = true
			v.leave()
		}
		if err := v.end(e); err != nil {
			return fmt.Errorf("step %d: %w", e.step, err)
		}
	}
	for i := range v.trace.Results {
		if r := &v.trace.Results[i]; r.Status == replay.Blocked || r.Status == replay.NotRun {
			v.pass("it still waits at the end")
		}
	}
	return nil
}

// order finds out when steps began and ended. The victims of a deadlock come before those that ended together with
// them since they waited: the others went on because these were gone.
func (v *viewing) order() {
	last := make(map[string]int) // the event of each session's last end
	waits := make(map[int]int)   // the event by which each step waits
	for i, e := range v.trace.Events {
		if e.Kind != replay.Waits && e.Kind != replay.Ends {
			continue
		}
		r := &v.trace.Results[e.Step-1]
		if _, ok := v.start[e.Step]; !ok {
			v.start[e.Step] = i
			if r.Queued {
				v.start[e.Step] = last[e.Session] + 1
			}
		}
		if e.Kind == replay.Waits {
			waits[e.Step] = i
		} else {
			last[e.Session] = i
			batch := r.DoneAfter
			switch {
			case batch == replay.AtEnd:
				batch = len(v.scenario.Steps) + 1
			case batch == 0:
				batch = e.Step
			}
			v.ends = append(v.ends, ending{e.Step, i, batch})
		}
	}
	at := func(e ending) int {
		r := &v.trace.Results[e.step-1]
		if w, ok := waits[e.step]; ok && clashOf(v.family, r.ErrorCode()) != nil {
			return w
		}
		return e.event
	}
	slices.SortStableFunc(v.ends, func(a, b ending) int { return cmp.Or(a.batch-b.batch, at(a)-at(b)) })
}

// unclear finds the moments in which a write in autocommit that had waited went on beside statements of others:
// which of them came first nobody can tell, and it is committed at once.
func (v *viewing) unclear() map[int]bool {
	sessions := make(map[int]map[string]bool)
	for _, e := range v.ends {
		r := &v.trace.Results[e.step-1]
		if sessions[e.batch] == nil {
			sessions[e.batch] = make(map[string]bool)
		}
		if e.step != e.batch {
			sessions[e.batch][r.Session] = true
		}
	}
	open, all := make(map[string]bool), make(map[int]bool)
	for _, e := range v.ends {
		r := &v.trace.Results[e.step-1]
		s := read(v.family, r.SQL, nil)
		c := clashOf(v.family, r.ErrorCode())
		switch {
		case s.verb == begins && r.Status == replay.OK:
			open[r.Session] = true
		case s.verb == commits || s.verb == undoes || c != nil && c.undoes:
			open[r.Session] = false
		case s.writes() && !open[r.Session] && r.Blocked && len(sessions[e.batch]) > 1:
			all[e.batch] = true
		}
	}
	return all
}

// leave rolls back what idle sessions have open: the play does so for those that wait at its end.
func (v *viewing) leave() {
	for session, t := range v.actors {
		busy := slices.ContainsFunc(v.ends, func(e ending) bool {
			return e.batch > len(v.scenario.Steps) && v.trace.Results[e.step-1].Session == session
		})
		if !busy {
			v.rollback(t)
		}
	}
}

// end takes a step that has ended.
func (v *viewing) end(e ending) error {
	v.now = max(v.now, e.event)
	r := &v.trace.Results[e.step-1]
	s := read(v.family, r.SQL, v.bench.names())
	t := v.actors[r.Session]
	if r.Session == reader && v.lost != "" {
		return nil
	}
	if t != nil && t.failed && s.verb != undoes && s.verb != commits && s.verb != undoesTo {
		v.expect(e, r, "error 25P02", outcome(r))
		return nil
	}
	switch s.verb {
	case begins, commits, undoes, saves, undoesTo, releases:
		v.bound(e, r, s)
		return nil
	case sets:
		twin, err := v.bench.twins[r.Session].Ask(r.SQL)
		if err == nil && outcome(twin) != outcome(r) {
			v.lose("a SET that has another outcome by itself")
		}
		return err
	case other:
		v.pass("a statement that the model does not know: " + strings.ToUpper(firstWord(r.SQL)))
		v.lose("behind one that the model does not know")
		return nil
	}
	if t == nil {
		t = v.begin(e, r.Session)
		t.alone = true
		defer func() {
			if t.alone {
				v.commit(t, e.event)
			}
		}()
	}
	if v.lost != "" {
		v.pass(v.lost)
		return nil
	}
	return v.judge(&judging{viewing: v, ending: e, got: r, statement: s, of: t})
}

// begin begins a transaction.
func (v *viewing) begin(e ending, session string) *actor {
	t := &actor{session: session, began: v.start[e.step]}
	v.actors[session], v.ever = t, append(v.ever, t)
	return t
}

func (v *viewing) commit(t *actor, event int) {
	t.committed, t.over, t.ended = true, true, event
	delete(v.actors, t.session)
}

func (v *viewing) rollback(t *actor) {
	v.store.undo(t, 0)
	t.over, t.ended = true, v.now
	delete(v.actors, t.session)
}

// bound takes a statement that begins or ends a transaction, or a part of one.
func (v *viewing) bound(e ending, r *replay.Result, s *statement) {
	t := v.actors[r.Session]
	ok := r.Status == replay.OK
	switch {
	case s.verb == begins && ok:
		if t != nil && v.family == dbms.PostgreSQLFamily {
			return // a warning
		}
		if t != nil {
			v.commit(t, e.event)
		}
		t = v.begin(e, r.Session)
		t.optimistic = v.isOptimistic(r.Session, s)
		if rule := v.rule(r.Session); (s.snapshot || rule.atBegin) && rule.plain == snapshot {
			t.snaps = []int{v.start[e.step]}
		}
	case t == nil:
	case s.verb == commits && ok && !t.failed:
		v.commit(t, e.event)
	case s.verb == commits && !ok:
		if clashOf(v.family, r.ErrorCode()) == nil {
			v.pass("COMMIT fails")
		}
		v.rollback(t)
	case s.verb == commits, s.verb == undoes:
		v.rollback(t)
	case s.verb == saves && ok:
		t.savepoints = append(t.savepoints, savepoint{s.name, v.store.seq})
	case s.verb == releases && ok:
		for i, x := range slices.Backward(t.savepoints) {
			if x.name == s.name {
				t.savepoints = t.savepoints[:i]
				break
			}
		}
	case s.verb == undoesTo && ok:
		for i, x := range slices.Backward(t.savepoints) {
			if x.name == s.name {
				v.store.undo(t, x.seq)
				t.savepoints, t.failed, t.unsure = t.savepoints[:i+1], false, true
				break
			}
		}
	}
}

// levelOf returns the level of a session's transactions.
func (v *viewing) levelOf(session string) history.Level {
	if x := v.scenario.Session(session); x != nil && x.Level != "" {
		if level, err := history.ParseLevel(x.Level); err == nil {
			return level
		}
	}
	return v.level
}

// isOptimistic reports whether BEGIN begins a transaction of TiDB's that waits for nobody.
func (v *viewing) isOptimistic(session string, begin *statement) bool {
	if v.engine != dbms.TiDB || begin.anywhere("PESSIMISTIC") {
		return false
	}
	x := v.scenario.Session(session)
	return begin.anywhere("OPTIMISTIC") || x != nil && strings.EqualFold(x.Settings["tidb_txn_mode"], "optimistic")
}

func (v *viewing) rule(session string) *viewRule {
	if r := v.ruleIfAny(session); r != nil {
		return r
	}
	return &viewRule{}
}

// ruleIfAny returns the rule of what a session has open; nil where there is none.
func (v *viewing) ruleIfAny(session string) *viewRule {
	t := v.actors[session]
	return ruleFor(v.engine, v.levelOf(session), t != nil && t.optimistic)
}

// pass counts a statement that is not judged.
func (v *viewing) pass(why string) { v.verdict.NotJudged[why]++ }

// lose gives up the versions.
func (v *viewing) lose(why string) {
	if v.lost == "" {
		v.lost = why
	}
}

// expect compares something of a step with what it has to be.
func (v *viewing) expect(e ending, r *replay.Result, want, got string) {
	v.verdict.Statements++
	if want != got {
		v.differ(r, Difference{Step: e.step, SQL: r.SQL, Aspect: Outcome, Got: got, Want: want})
	}
}

// differ keeps a difference.
func (v *viewing) differ(r *replay.Result, d Difference) {
	d.By = "by the views of " + v.levelOf(r.Session).String()
	if r.Session == reader {
		d.By = "by the versions that were committed"
		d.Step, d.Aspect = 0, Table
	}
	v.verdict.Differences = append(v.verdict.Differences, d)
}

// others reports whether another transaction was open at some time since one began.
func (v *viewing) others(t *actor) bool {
	return slices.ContainsFunc(v.ever, func(o *actor) bool {
		return o != t && (!o.over || o.ended >= t.began)
	})
}
