package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

const (
	// grace is how long a statement has for its reply before the server is asked whether it waits.
	// Most take less; a longer one costs a question, never a wrong answer.
	grace = 5 * time.Millisecond
	// settling is how long a wait may last without counting as one. The survivor of a deadlock waits
	// until its victim is rolled back, which a poll may happen to see.
	settling = 20 * time.Millisecond
	// stepTimeout bounds a statement that neither ends nor waits for a lock.
	stepTimeout = 30 * time.Second
)

// A play is one run of a scenario. It belongs to one goroutine.
type play struct {
	runner   *Runner
	target   Server
	scenario *scenario.Scenario
	level    history.Level
	database string
	options  Options
	trace    Trace
	sessions []*session // in order of their first step, late ones when they came
	notices  int        // that the trace has
}

func newPlay(r *Runner, target Server, s *scenario.Scenario, level history.Level, database string, o Options) *play {
	p := &play{
		runner: r, target: target, scenario: s, level: level, database: database, options: o,
		trace: Trace{Scenario: s.Name, Level: level, Database: database, Results: make([]Result, len(s.Steps))},
	}
	for i, x := range s.Steps {
		p.trace.Results[i] = Result{N: i + 1, Session: x.Session, SQL: x.SQL, Status: NotRun}
	}
	return p
}

// perform runs the steps in their order.
func (p *play) perform(ctx context.Context) (Trace, error) {
	if err := p.connect(ctx); err != nil {
		return Trace{}, err
	}
	for i := range p.trace.Results {
		if err := p.step(ctx, &p.trace.Results[i]); err != nil {
			return Trace{}, err
		}
	}
	if err := p.finish(ctx); err != nil {
		return Trace{}, err
	}
	if err := p.tearDown(); err != nil {
		return Trace{}, fmt.Errorf("tear-down: %w", err)
	}
	if !p.options.Existing {
		p.runner.dialect.anonymize(&p.trace, p.database)
	}
	return p.trace, nil
}

// session returns a session by its name; the first time it connects it and sets its level.
func (p *play) session(ctx context.Context, name string) (*session, error) {
	for _, s := range p.sessions {
		if s.name == name {
			return s, nil
		}
	}
	if o, outside := p.options.Outside[name]; outside {
		s := newSession(name, newOutsider(ctx, o), false, p.scenario.Loses())
		p.sessions = append(p.sessions, s)
		return s, nil
	}
	level, err := p.levelOf(name)
	if err != nil {
		return nil, err
	}
	conn, err := p.runner.login(ctx, p.target, p.database, &p.options)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", name, err)
	}
	for _, sql := range p.beginnings(name, level) {
		if err := run(conn, sql); err != nil {
			return nil, errors.Join(fmt.Errorf("session %s: %w", name, err), conn.quit())
		}
	}
	s := newSession(name, conn, p.options.Prepared, p.scenario.Loses())
	p.sessions = append(p.sessions, s)
	return s, nil
}

// beginnings are the statements that a session at a level begins with.
func (p *play) beginnings(session string, level history.Level) []string {
	settings := []scenario.Settings{p.options.Settings}
	if s := p.scenario.Session(session); s != nil {
		settings = append(settings, s.Settings)
	}
	return append(beginnings(p.runner.dialect, level, settings...), p.options.Session...)
}

func beginnings(d dialect, level history.Level, settings ...scenario.Settings) []string {
	all := []string{d.setLevel(level)}
	for _, s := range settings {
		for _, variable := range slices.Sorted(maps.Keys(s)) {
			all = append(all, d.set(variable, s[variable]))
		}
	}
	return all
}

// levelOf returns the level of a session's transactions: its own, or the run's.
func (p *play) levelOf(name string) (history.Level, error) {
	s := p.scenario.Session(name)
	if s == nil || s.Level == "" {
		return p.level, nil
	}
	level, err := history.ParseLevel(s.Level)
	if err != nil {
		return level, fmt.Errorf("session %s: %w", name, err)
	}
	return level, nil
}

// step sends one step, unless its session is still waiting: then the step queues. It returns when
// every session is idle or waits for a lock.
func (p *play) step(ctx context.Context, r *Result) error {
	s, err := p.session(ctx, r.Session)
	if err != nil {
		return err
	}
	if s.running != nil && p.scenario.InOrder {
		if err := p.await(ctx, s, r.N-1); err != nil {
			return err
		}
	}
	if s.running != nil {
		r.Queued = true
		s.queue = append(s.queue, r)
		return nil
	}
	p.send(s, r)
	if p.scenario.Steps[r.N-1].AtOnce {
		p.hold(s)
		s.unasked = true
		err := p.release(ctx, r.N, s)
		s.unasked = false
		return err
	}
	done, err := p.settle(ctx, s)
	if err != nil {
		return err
	}
	if done {
		s = nil
	}
	return p.release(ctx, r.N, s)
}

// settle waits until a session's step has ended (done) or waits for a lock, or for what the scenario has it wait for.
func (p *play) settle(ctx context.Context, s *session) (done bool, err error) {
	replied, err := p.reply(ctx, s)
	if err != nil {
		return false, err
	}
	p.see(s)
	switch {
	case replied && !p.isHeld(s):
		p.end(s)
		return true, nil
	case replied:
		p.hold(s)
	default:
		err = p.block(ctx, s)
	}
	return false, err
}

// reply waits until a session's step has its reply or waits for a lock.
func (p *play) reply(ctx context.Context, s *session) (replied bool, err error) {
	begin := time.Now()
	for since := begin; time.Since(begin) < stepTimeout; {
		if replied, err := s.receive(ctx, cmp.Or(p.options.Grace, grace)); replied || err != nil {
			return replied, err
		}
		waits, known, err := p.runner.watcher.waits(ctx, s.conn.id(), p.connections(), since)
		if err != nil {
			return false, err
		}
		if known && waits {
			return s.receive(ctx, settling)
		}
		if known {
			since = time.Now() // that answer is used up
		}
	}
	return false, fmt.Errorf("step %d (session %s) neither ended nor waited for a lock in %v", s.running.N, s.name,
		stepTimeout)
}

// connections are the server's numbers for the sessions.
func (p *play) connections() []uint32 {
	all := make([]uint32, len(p.sessions))
	for i, s := range p.sessions {
		all[i] = s.conn.id()
	}
	return all
}

// block notes that a session's step waits, and for whom when that is known first.
func (p *play) block(ctx context.Context, s *session) error {
	if s.running.Blocked && len(s.running.WaitedFor) > 0 {
		return nil
	}
	p.waits(s)
	s.running.Blocked = true
	if p.options.Whoever {
		return nil
	}
	blockers, err := p.runner.watcher.blockers(ctx, s.conn.id())
	for _, other := range p.sessions {
		if slices.Contains(blockers, other.conn.id()) {
			s.running.WaitedFor = append(s.running.WaitedFor, other.name)
		}
	}
	slices.Sort(s.running.WaitedFor)
	return err
}

// release looks which waiting sessions step n has set free, and lets them go on with what they have
// queued, until nobody moves any more. The session just found to wait, if any, need not be asked
// again before another has moved.
func (p *play) release(ctx context.Context, n int, waits *session) error {
	for moved := true; moved; {
		moved = false
		notices := p.notices
		for _, s := range p.inFlight() {
			if s == waits || s.unasked || s.running == nil {
				continue
			}
			freed, err := p.resume(ctx, s, n)
			if err != nil {
				return err
			}
			if freed || p.notices > notices {
				moved, waits, notices = true, nil, p.notices
			}
		}
	}
	return nil
}

// inFlight returns the sessions with a step in flight, the longest first.
func (p *play) inFlight() []*session {
	var all []*session
	for _, s := range p.sessions {
		if s.running != nil {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *session) int { return a.running.N - b.running.N })
	return all
}

// resume sees a waiting session through its step in flight and the queued ones, as far as they end.
// freed says that at least one has ended.
func (p *play) resume(ctx context.Context, s *session, n int) (freed bool, err error) {
	for s.running != nil {
		r := s.running
		if done, err := p.settle(ctx, s); err != nil || !done {
			return freed, err
		}
		freed = true
		r.DoneAfter = n
		if len(s.queue) > 0 {
			p.send(s, s.queue[0])
			s.queue = s.queue[1:]
		}
	}
	return freed, nil
}

// finish rolls idle sessions back as long as that sets others free. What then still waits stays
// Blocked.
func (p *play) finish(ctx context.Context) error {
	if p.scenario.InOrder {
		for _, s := range p.inFlight() {
			if err := p.await(ctx, s, AtEnd); err != nil {
				return err
			}
		}
	}
	for {
		waiting := len(p.inFlight())
		if waiting == 0 {
			return nil
		}
		for _, s := range p.sessions {
			if s.running != nil || s.outside() {
				continue
			}
			s.send(&Result{SQL: "ROLLBACK"})
			if done, err := p.settle(ctx, s); err != nil {
				return err
			} else if !done {
				return fmt.Errorf("the final ROLLBACK of session %s waits for a lock", s.name)
			}
		}
		if err := p.release(ctx, AtEnd, nil); err != nil {
			return err
		}
		if len(p.inFlight()) == waiting {
			break
		}
	}
	for _, s := range p.sessions {
		if s.running != nil {
			s.running.Status = Blocked
		}
	}
	return nil
}

// endedServer reports whether the scenario has ended the server, and may: then the trace says so, and how the run ended
// is no error of its own.
func (p *play) endedServer(ctx context.Context, err error) bool {
	lost := slices.ContainsFunc(p.trace.Results, func(r Result) bool { return r.Status == Lost })
	if !p.scenario.Loses() || ctx.Err() != nil || err == nil && !lost {
		return false
	}
	if p.runner.answers(ctx) {
		return false
	}
	for _, s := range p.inFlight() { // whose reply may be there: it was the watcher that lost its connection first
		if _, err := s.receive(ctx, settling); err != nil {
			return false
		}
	}
	p.trace.gone()
	p.runner.dialect.anonymize(&p.trace, p.database)
	return true
}

// abandon ends the sessions of a server that is gone.
func (p *play) abandon() {
	for _, s := range p.sessions {
		s.close()
	}
}

// close ends the sessions, those that still run a statement by force.
func (p *play) close() error {
	var all error
	for _, s := range p.sessions {
		switch {
		case s.outside():
			s.close()
			continue
		case s.running != nil:
			all = errors.Join(all, p.kill(s))
			s.close()
			continue
		}
		s.end()
		_ = p.runner.leave(s.conn, p.target, &p.options) // a courtesy: the socket is closed in any case
	}
	return all
}

func (p *play) kill(s *session) error {
	err := p.runner.administer(p.runner.dialect.kill(s.conn.id()))
	var refused *refusalError
	if errors.As(err, &refused) && p.runner.dialect.gone(&refused.result) {
		return nil // it ended by itself
	}
	return err
}
