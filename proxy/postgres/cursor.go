package postgres

import (
	"maps"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A declaration is what makes a portal out of SQL's DECLARE. What is fetched from it is of the snapshot that the
// DECLARE took, and belongs to its record, but for rows that are locked: these are read as they are fetched.
type declaration struct {
	binary        bool
	txn           *history.Txn  // that declared it; nil once that has ended
	at            int           // the DECLARE among its statements, if its observation is recorded
	begun         int           // how many statements it had then
	hold          bool          // it outlives the transaction
	redeclaration redeclaration // whether it can be declared anew
	kept          bool          // it has
}

// newCursor returns the portal that a DECLARE opens which was sent in that form, and is understood by that plan.
func newCursor(f *form, sent, plan *sqlpostgres.Plan) *portal {
	own := form{script: &sqlpostgres.Script{Statements: []*sqlpostgres.Plan{sent}}, rewritten: f.rewritten,
		reason: f.reason}
	return &portal{form: own, plan: plan, cursor: &declaration{binary: plan.Session.Cursor.Binary,
		hold:          plan.Session.Cursor.Hold,
		redeclaration: redeclarationOf(f)}}
}

// follow takes what a statement does to the names of cursors: sent in that form, and understood by that plan. It
// gives the cursor that it declares.
func (n namespace) follow(f *form, sent, plan *sqlpostgres.Plan) *portal {
	if plan == nil || plan.Session.Cursor == nil {
		return nil
	}
	name := plan.Session.Cursor.Name
	switch plan.Session.Cursor.Verb {
	case sqlpostgres.DeclareCursor:
		if n.portals[name] == nil && len(n.portals) >= 2*maxCursors {
			return nil
		}
		c := newCursor(f, sent, plan)
		n.portals[name] = c
		return c
	case sqlpostgres.CloseCursor:
		if name == "" {
			clear(n.portals)
		}
		delete(n.portals, name)
	}
	return nil
}

// read returns the cursor that a statement fetches from or moves; nil where there is none, or isotap did not see it
// declared.
func (n namespace) read(plan *sqlpostgres.Plan) *portal {
	if plan == nil || plan.Session.Cursor == nil || plan.Session.Cursor.Verb != sqlpostgres.FetchCursor &&
		plan.Session.Cursor.Verb != sqlpostgres.MoveCursor {
		return nil
	}
	if p := n.portals[plan.Session.Cursor.Name]; p != nil && p.cursor != nil {
		return p
	}
	return nil
}

// resultOf returns the plan by which the server gives the rows of a form's only statement, and how many hidden
// columns these have.
func (n namespace) resultOf(f *form) (*sqlpostgres.Plan, int) {
	plan := f.plan(0)
	if c := n.read(plan); c != nil && plan.Session.Cursor.Verb == sqlpostgres.FetchCursor {
		f, plan = &c.form, c.form.plan(0)
	}
	return plan, f.hidden(plan)
}

// mayBeRead reports whether one of a text's statements declares a cursor that the server may read by its name, or show
// to the client in pg_cursors.
func (s *Session) mayBeRead(plans []*sqlpostgres.Plan) bool {
	if !slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool {
		return p.Session.Cursor != nil &&
			p.Session.Cursor.Verb == sqlpostgres.DeclareCursor
	}) {
		return false
	}
	return len(s.names.speculative.portals) >= maxCursors || s.names.cursorsListed || s.planner.CursorsAreRead() ||
		slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool { return p.Session.ReadsCursors })
}

// end forgets portals with the transaction that they were made in, but for cursors that outlive it.
func (n namespace) end() {
	maps.DeleteFunc(n.portals, func(_ string, p *portal) bool { return p.cursor == nil || !p.cursor.hold })
}

// fetches has the result that begins understood as that of the cursor that is read.
func (s *Session) fetches(x *pendingReply, c *resultInProgress) {
	if c.portal != nil && c.portal.cursor != nil {
		c.cursor = c.portal // Execute of the cursor itself
		return
	}
	if c.cursor = s.names.confirmed.read(c.plan); c.cursor == nil || c.plan.Session.Cursor.Verb == sqlpostgres.MoveCursor {
		return
	}
	p := c.cursor
	c.plan, c.hidden = p.plan, p.form.hidden(p.form.plan(0))
	c.applyLayout(p.layout)
	if x.kind == pendingQuery && p.cursor.binary {
		c.format = 1
	}
}

// compare reports whether a description has the hidden columns of the cursor that is read. A function may have
// opened another one under its name.
func (s *Session) compare(c *resultInProgress, description []byte) {
	if c.hidden == 0 { // a column so named is the client's own
		return
	}
	if n := s.hiddenFields(c.plan, description); n != c.hidden {
		c.hidden, c.cursor, c.plan = n, nil,
			&sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonCursor, Shape: c.plan.Shape}}
	}
}

// declared takes a DECLARE that was recorded as st.
func (s *Session) declared(c *resultInProgress, sent *sqlpostgres.Plan, st *history.Stmt) {
	if c.plan == nil || c.plan.Session.Cursor == nil || c.cursor != nil {
		return
	}
	s.names.unsure = true
	p := s.names.confirmed.follow(c.form, sent, c.plan)
	if p == nil {
		return
	}
	if c.portal != nil {
		p.args = c.portal.args
	}
	if st.Observation == history.Opaque {
		p.reason = st.Reason
	}
	if s.txn.open != nil && len(s.txn.open.Stmts) > 0 && !s.txn.unrecorded.Full() {
		p.cursor.txn, p.cursor.begun = s.txn.open, len(s.txn.open.Stmts)
		p.cursor.at = p.cursor.begun - 1
	}
}

// holdCursors takes the end of a transaction for the cursors that are to outlive it: the server reads the rest of their
// rows then, and shows them to later statements, which did not read them.
func (n *names) holdCursors(t *history.Txn, status history.Status) {
	if status == history.Aborted || t == nil {
		return
	}
	for _, p := range n.confirmed.portals {
		if d := p.cursor; d != nil && d.hold && d.txn == t && p.plan.Observation != history.Nothing {
			downgrade(&d.txn.Stmts[d.at], history.Inexact, history.ReasonHeldCursor)
		}
	}
}

// fetched takes what a statement read from a cursor, and puts it where it belongs. A statement all of whose
// reads are told by the DECLARE leaves no record of its own.
func (s *Session) fetched(c *resultInProgress, st *history.Stmt) {
	if c.cursor == nil {
		return
	}
	plan, d := c.cursor.plan, c.cursor.cursor
	if plan.Session.Changes || plan.Session.Calls { // what its query calls is called now, not by the DECLARE
		s.settings.changed()
		s.settings.stale = true
	}
	switch {
	case plan.Observation == history.Nothing:
		st.Observation, st.Reason = history.Nothing, history.Reason{}
	case plan.Locking != history.NoLock:
	case d.txn == nil || d.txn != s.txn.open:
		downgrade(st, history.Opaque, history.ReasonHeldCursor)
		st.Accesses, st.TupleIDs = nil, nil
	default:
		credit(&s.txn, &d.txn.Stmts[d.at], st, plan.Observation == history.Exact && c.plan != plan)
	}
}

// credit moves what a statement read to the record of the DECLARE. A MOVE shows no rows.
func credit(t *transaction, declare, st *history.Stmt, moved bool) {
	t.append(declare, st, declare)
	declare.Rows += st.Rows
	st.Accesses, st.TupleIDs = nil, nil
	if st.Observation == history.Inexact {
		downgrade(declare, history.Inexact, st.Reason)
	}
	if !st.Void && (moved || st.Observation == history.Exact) {
		st.Observation, st.Reason = history.Nothing, history.Reason{}
	}
}

// rollBackCursors forgets the cursors that a transaction has declared since the savepoint before the statement of that
// index.
func (n *names) rollBackCursors(t *history.Txn, at int) {
	maps.DeleteFunc(n.confirmed.portals, func(_ string, p *portal) bool {
		return p.cursor != nil && p.cursor.txn != nil && p.cursor.txn == t && p.cursor.begun > at
	})
	n.unsure = true
}

// endCursors takes the end of a transaction: of its cursors those stay that are to outlive it.
func (n *names) endCursors(status history.Status) {
	for name, p := range n.confirmed.portals {
		switch d := p.cursor; {
		case d == nil || d.kept:
		case d.hold && status != history.Aborted:
			d.kept, d.txn = true, nil
		default:
			delete(n.confirmed.portals, name)
		}
		n.unsure = n.unsure || p.cursor != nil
	}
}
