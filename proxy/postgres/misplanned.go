package postgres

import (
	"slices"
	"weak"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// The last line of defense: whatever a plan says, no column that isotap has named reaches the client. Where a
// description has one that the plan does not count among those to be hidden, the plan is wrong. The column is taken out
// of the description and out of the rows, and statements of that shape go as the client wrote them from then on, in all
// sessions.

// A layout is where columns of isotap's stand in a result.
type layout struct {
	hidden int   // at its end, as the plan has it
	cut    []int // before these
	wrong  bool  // the plan does not know of some
	known  bool  // it was read off a description
}

// layoutOf reads off a description where columns of isotap's stand in a result that by its plan has so many of them at
// its end.
func layoutOf(description []byte, hidden int) layout {
	l := layout{hidden: hidden, known: true}
	r := reader{b: description}
	fields := r.uint16()
	atEnd := 0
	for i := range fields {
		ours := rewrite.IsColumn(string(r.cString()))
		r.bytes(fieldBytes)
		if r.err != nil {
			return l
		}
		switch {
		case i >= fields-hidden && ours:
			atEnd++
		case ours:
			l.cut, l.wrong = append(l.cut, i), true
		}
	}
	if l.wrong && atEnd < hidden { // the client's own stand among them: nothing is where the plan has it
		l = layout{known: true, wrong: true}
		r := reader{b: description, pos: 2}
		for i := range fields {
			if rewrite.IsColumn(string(r.cString())) {
				l.cut = append(l.cut, i)
			}
			r.bytes(fieldBytes)
		}
	}
	return l
}

// guards reports whether a result has been given columns by isotap: what a form reads under its plan.
func guards(f *form, plan *sqlpostgres.Plan, hidden int) bool {
	return hidden > 0 || f != nil && f.rewritten && plan != nil && plan.Result.Reply != rewrite.Unchanged
}

// defend returns the layout of a result that was described, and sees to it that its plan is used no more if it is
// wrong.
func (s *Session) defend(f *form, plan *sqlpostgres.Plan, description []byte, hidden int) layout {
	if !guards(f, plan, hidden) {
		return layout{hidden: hidden}
	}
	l := layoutOf(description, hidden)
	if !l.wrong {
		s.clear(f)
		return l
	}
	s.events = append(s.events, session.Event{Misplanned: true})
	if plan != nil && s.planner != nil && s.planner.Misplanned(plan.Shape) {
		s.note("a statement was planned wrong, and goes unobserved from now on; the client did not see the columns that isotap added: %s", plan.Shape)
	}
	return l
}

// clear notes that a script shows nothing but what its plan has.
func (s *Session) clear(f *form) {
	if f == nil || f.upstream() == nil {
		return
	}
	if s.scripts.cleared == nil || len(s.scripts.cleared) >= maxScripts {
		s.scripts.cleared = make(map[weak.Pointer[sqlpostgres.Script]]struct{})
	}
	s.scripts.cleared[weak.Make(f.upstream().Model())] = struct{}{}
}

// isCleared reports whether rows of the form can be told from isotap's columns by its plan: it gives none of these, or
// the session has seen a description of its result.
func (s *Session) isCleared(f *form) bool {
	if f == nil || !f.rewritten {
		return true
	}
	if plan := f.plan(0); plan == nil || plan.Result.Reply != rewrite.Trimmed {
		return true
	}
	_, ok := s.scripts.cleared[weak.Make(f.upstream().Model())]
	return ok
}

// isMisplanned reports whether one of a text's statements has a shape that was once planned wrong.
func (s *Session) isMisplanned(plans []*sqlpostgres.Plan) bool {
	return slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool { return s.planner.IsMisplanned(p.Shape) })
}

// laidOut returns the layout of the rows that a Describe is about, and keeps it for them.
func (s *Session) laidOut(x *pendingReply, f *form, plan *sqlpostgres.Plan, description []byte, hidden int) layout {
	shown, by := s.shownForm(f, plan)
	l := s.defend(shown, by, description, hidden)
	if !l.known {
		return l
	}
	if st := s.names.confirmed.statements[x.name]; x.kind == pendingDescribeStatement && st != nil && x.form == nil {
		st.layout = l
	}
	if p := s.names.confirmed.portals[x.name]; x.kind == pendingDescribePortal && p != nil {
		p.layout = l
	}
	if c := s.names.confirmed.read(plan); c != nil {
		c.layout = l
	}
	return l
}

// shownForm returns the form whose rows the only statement of another one shows, and its plan: that of the cursor which it
// reads, or itself.
func (s *Session) shownForm(f *form, plan *sqlpostgres.Plan) (*form, *sqlpostgres.Plan) {
	if c := s.names.confirmed.read(plan); c != nil && plan.Session.Cursor.Verb == sqlpostgres.FetchCursor {
		return &c.form, c.form.plan(0)
	}
	return f, plan
}

// speculativeForm returns the form whose rows a portal will show once all that was sent is done.
func (s *Session) speculativeForm(p *portal) *form {
	plan := p.form.plan(0)
	if c := s.names.speculative.read(plan); c != nil && plan.Session.Cursor.Verb == sqlpostgres.FetchCursor {
		return &c.form
	}
	return &p.form
}

// layoutOf returns the layout of a portal's rows, if it was described, or the statement that it is of.
func (p *portal) layoutOf() layout {
	if !p.layout.known && p.of != nil && p.form.rewritten && p.form.script == p.of.form.script {
		return p.of.layout
	}
	return p.layout
}

// describesRows reports whether the client has asked what the portal's rows look like, in the form that it runs in.
func (p *portal) describesRows() bool {
	return p.asked || p.of != nil && p.of.asked && p.form.script == p.of.form.script
}

// applyLayout has the rows of the statement whose result comes in read by a layout.
func (c *resultInProgress) applyLayout(l layout) {
	if !l.known {
		return
	}
	c.hidden = l.hidden
	for _, at := range l.cut {
		if !slices.Contains(c.cut, at) {
			c.cut = append(slices.Clip(c.cut), at)
		}
	}
	if c.wrong = l.wrong; l.wrong && l.hidden == 0 {
		c.plan, c.swallow = withoutSources(c.plan), false
	}
}

// doubt takes away what a statement has shown whose plan is wrong.
func (c *resultInProgress) doubt(st *history.Stmt) {
	if c.wrong {
		downgrade(st, history.Opaque, history.ReasonMisplanned)
		st.Accesses, st.TupleIDs, st.Images, st.Predicates = nil, nil, nil, nil
	}
}
