package postgres

import (
	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// moved takes a statement that has succeeded for what it did to the session's cursors.
func (s *Session) moved(x *pendingReply, c *resultInProgress, tag string) {
	p := c.form.plan(x.at)
	quiet := still(p)
	if c.cursor != nil {
		c.cursor.cursor.redeclaration.moved(p, tag)
		quiet = quiet && still(c.cursor.plan)
	}
	if !quiet {
		s.unsettleCursors()
	}
}

// unsettleCursors notes that a new DECLARE may see what those before did not. There may be thousands of portals: only
// sessions that have declared a cursor look through them.
func (s *Session) unsettleCursors() {
	if !s.names.declares {
		return
	}
	for _, p := range s.names.confirmed.portals {
		if p.cursor != nil {
			p.cursor.redeclaration.settled = false
		}
	}
}

// fetches has the result that begins understood as that of the cursor that is read.
func (s *Session) fetches(x *pendingReply, c *resultInProgress) {
	if c.portal != nil && c.portal.cursor != nil {
		c.cursor = c.portal // Execute of the cursor itself
		return
	}
	if c.cursor = s.names.confirmed.read(c.plan); c.cursor == nil ||
		c.plan.Session.Cursor.Verb == sqlpostgres.MoveCursor {
		return
	}
	p := c.cursor
	c.plan, c.hidden = p.plan, p.form.hidden(p.form.plan(0))
	c.applyLayout(p.layout)
	if x.kind == pendingQuery && p.cursor.binary {
		c.format = 1
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

// tear takes a statement that has run for what it may have fetched from portals, by their names.
func (s *Session) tear(p *sqlpostgres.Plan) {
	if p != nil && !p.Session.Calls && !p.Session.Changes &&
		(p.Session.Cursor == nil || p.Session.Cursor.Verb == sqlpostgres.DeclareCursor ||
			p.Session.Cursor.Verb == sqlpostgres.CloseCursor) {
		return
	}
	for _, portal := range s.names.confirmed.portals {
		portal.pieces.torn = true
	}
}
