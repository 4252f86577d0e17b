package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/isotap/isotap/scenario"
)

// once runs the scenario's set-up or tear-down on a connection of its own.
func (p *play) once(ctx context.Context, target Server, kind EventKind, statements []string) error {
	if kind == TornDown && len(statements) == 0 {
		return nil
	}
	conn, err := p.runner.login(ctx, target, p.database, &p.options)
	if err != nil {
		return err
	}
	if err := p.sequence(conn, kind, "", statements); err != nil {
		return errors.Join(err, conn.quit())
	}
	if err := p.runner.leave(conn, target, &p.options); err != nil {
		return fmt.Errorf("ending its session: %w", err)
	}
	return nil
}

// sequence runs the statements of a set-up or tear-down, and notes the rows that they give.
func (p *play) sequence(c conn, kind EventKind, session string, statements []string) error {
	for _, sql := range statements {
		r, err := ask(c, sql)
		if err != nil {
			return err
		}
		if r.Columns != nil {
			p.trace.Events = append(p.trace.Events, Event{Kind: kind, Session: session, Rows: Set{r.Columns, r.Rows}})
		}
	}
	return nil
}

// connect connects the sessions that do not come late, and has each begin as the scenario says.
func (p *play) connect(ctx context.Context) error {
	for _, s := range p.scenario.Sessions {
		if !s.Late && len(s.Setup)+len(s.Teardown) > 0 {
			if _, err := p.session(ctx, s.Name); err != nil {
				return err
			}
		}
	}
	for _, step := range p.scenario.Steps {
		if s := p.scenario.Session(step.Session); s != nil && s.Late {
			continue
		}
		if _, err := p.session(ctx, step.Session); err != nil {
			return err
		}
	}
	return p.each(SetUp, func(s *scenario.Session) []string { return s.Setup })
}

// tearDown has each session that nothing holds up end as the scenario says.
func (p *play) tearDown() error {
	return p.each(TornDown, func(s *scenario.Session) []string { return s.Teardown })
}

// each runs statements of the sessions that are idle, in their order in the scenario.
func (p *play) each(kind EventKind, of func(*scenario.Session) []string) error {
	for i := range p.scenario.Sessions {
		listed := &p.scenario.Sessions[i]
		for _, s := range p.sessions {
			if s.name != listed.Name || s.running != nil {
				continue
			}
			if err := p.sequence(s.conn, kind, s.name, of(listed)); err != nil {
				return fmt.Errorf("session %s: %w", s.name, err)
			}
			p.see(s)
		}
	}
	return nil
}

// send starts a step. The notices that its conditions need count from here.
func (p *play) send(s *session, r *Result) {
	s.targets = nil
	for _, c := range p.conditions(r) {
		s.targets = append(s.targets, c.Notices+p.seenBy(c.Step))
	}
	if p.options.Fill != nil {
		r.SQL = p.options.Fill(r.N, p.trace.Results)
	}
	s.send(r)
}

// conditions are those of a step; the final ROLLBACK has none.
func (p *play) conditions(r *Result) []scenario.Condition {
	if r.N == 0 {
		return nil
	}
	return p.scenario.Steps[r.N-1].Until
}

// seenBy counts the notices that the session of a step has shown.
func (p *play) seenBy(step string) int {
	for _, x := range p.scenario.Steps {
		if x.Name == step {
			for _, s := range p.sessions {
				if s.name == x.Session {
					return s.seen
				}
			}
		}
	}
	return 0
}

// isHeld reports whether conditions of the step in flight are not so yet.
func (p *play) isHeld(s *session) bool {
	for i, c := range p.conditions(s.running) {
		if c.Notices > 0 && p.seenBy(c.Step) < s.targets[i] || c.Notices == 0 && p.isInFlight(c.Step) {
			return true
		}
	}
	return false
}

// isInFlight reports whether a step of that name is.
func (p *play) isInFlight(step string) bool {
	for _, s := range p.inFlight() {
		if s.running.N > 0 && p.scenario.Steps[s.running.N-1].Name == step {
			return true
		}
	}
	return false
}

// see notes the notices that a session has got.
func (p *play) see(s *session) {
	for _, n := range s.conn.notices()[s.seen:] {
		p.trace.Events = append(p.trace.Events, Event{Kind: Noticed, Session: s.name, Notice: n})
		s.seen++
		p.notices++
	}
}

// hold notes that a session's step counts as waiting because the scenario has it so.
func (p *play) hold(s *session) {
	p.waits(s)
	s.running.Held = true
}

// waits notes the first time that a session's step waits.
func (p *play) waits(s *session) {
	if !s.running.Blocked && !s.running.Held {
		p.note(Waits, s)
	}
}

// end notes that the step in flight has ended.
func (p *play) end(s *session) {
	for i := range s.running.Notifications {
		n := &s.running.Notifications[i]
		for _, other := range p.sessions {
			if other.conn.id() == n.sender {
				n.From = other.name
			}
		}
	}
	p.note(Ends, s)
	s.running, s.replied = nil, false
}

func (p *play) note(kind EventKind, s *session) {
	if s.running.N > 0 {
		p.trace.Events = append(p.trace.Events, Event{Kind: kind, Step: s.running.N, Session: s.name})
	}
}

// await sees a session's step to its end, and others that this sets free, after step n. A step that waits for good
// stays.
func (p *play) await(ctx context.Context, s *session, n int) error {
	for begin := time.Now(); s.running != nil && time.Since(begin) < stepTimeout; {
		replied, err := s.receive(ctx, stepTimeout)
		if err != nil || !replied {
			return err
		}
		p.see(s)
		if !p.isHeld(s) {
			s.running.DoneAfter = n
			p.end(s)
		}
		if err := p.release(ctx, n, nil); err != nil {
			return err
		}
	}
	return nil
}
