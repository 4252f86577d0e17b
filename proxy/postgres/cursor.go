package postgres

import (
	"maps"
	"strconv"

	"github.com/isotap/isotap/history"
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
	kept          bool          // it has outlived it
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

// end forgets portals with the transaction that they were made in, but for cursors that outlive it.
func (n namespace) end() {
	maps.DeleteFunc(n.portals, func(_ string, p *portal) bool { return p.cursor == nil || !p.cursor.hold })
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

// redeclaration is what a cursor can be declared anew by.
type redeclaration struct {
	script *sqlpostgres.Script // of the text that declared it alone; nil: there is none
	// settled says that nothing has happened since the DECLARE that a new one could see, and that position is how many
	// rows the cursor has gone forward, ended that it has gone behind the last one.
	settled  bool
	position uint64
	ended    bool
}

// maxPassed bounds how many rows are passed again.
const maxPassed = 10_000

func redeclarationOf(f *form) redeclaration {
	if plan := f.plan(0); len(f.statements()) != 1 || !f.rewritten || plan.Params > 0 || plan.Session.Calls ||
		plan.Session.Changes {
		return redeclaration{}
	}
	return redeclaration{script: f.script, settled: true}
}

// still reports whether a statement changes nothing that a DECLARE could see, and no savepoint stands behind it that a
// cursor would be lost with.
func still(p *sqlpostgres.Plan) bool {
	switch {
	case p == nil, p.Session.Changes, p.Schema.Changes:
		return false
	case p.Session.Cursor != nil && p.Session.Cursor.Verb != sqlpostgres.DeclareCursor:
		return true // what its query calls the cursor's plan says
	}
	return p.Kind == history.Select && !p.Session.Calls && p.Reason != history.ReasonCopy
}

// moved takes a FETCH or MOVE that has succeeded, or an Execute of the cursor itself.
func (a *redeclaration) moved(p *sqlpostgres.Plan, tag string) {
	if p == nil || p.Session.Cursor == nil || !p.Session.Cursor.Forward {
		a.settled = false
		return
	}
	asked := uint64(1)
	if len(p.Args) > 0 {
		var err error
		if asked, err = strconv.ParseUint(p.Args[0], 10, 64); err != nil || asked == 0 { // FETCH 0 stays where it is
			a.settled = false
			return
		}
	}
	n := rowsOf(tag)
	a.position += n
	a.ended = a.ended || p.Session.Cursor.All || n < asked
}

// hasRedeclarable reports whether there is a cursor with hidden columns that may be declared anew.
func (n namespace) hasRedeclarable() bool {
	for _, p := range n.portals {
		if p.redeclarable() {
			return true
		}
	}
	return false
}

// redeclarable reports whether a portal is a cursor with hidden columns that may be declared anew.
func (p *portal) redeclarable() bool {
	return p.cursor != nil && p.cursor.redeclaration.settled && p.form.hidden(p.form.plan(0)) > 0 && !p.cursor.hold &&
		p.cursor.redeclaration.position <= maxPassed
}

// shownForm returns the form whose rows the only statement of another one shows, and its plan: that of the cursor which
// it reads, or itself.
func (n namespace) shownForm(f *form, plan *sqlpostgres.Plan) (*form, *sqlpostgres.Plan) {
	if c := n.read(plan); c != nil && plan.Session.Cursor.Verb == sqlpostgres.FetchCursor {
		return &c.form, c.form.plan(0)
	}
	return f, plan
}

// unsettleCursors notes that a new DECLARE may see what those before did not. There may be thousands of portals: only
// sessions that have declared a cursor look through them.
func (n *names) unsettleCursors() {
	if !n.declares {
		return
	}
	for _, p := range n.confirmed.portals {
		if p.cursor != nil {
			p.cursor.redeclaration.settled = false
		}
	}
}

// interruptPieces takes a statement that has run for what it may have fetched from portals, by their names.
func (n *names) interruptPieces(p *sqlpostgres.Plan) {
	if p != nil && !p.Session.Calls && !p.Session.Changes &&
		(p.Session.Cursor == nil || p.Session.Cursor.Verb == sqlpostgres.DeclareCursor ||
			p.Session.Cursor.Verb == sqlpostgres.CloseCursor) {
		return
	}
	for _, portal := range n.confirmed.portals {
		portal.pieces.interrupted = true
	}
}

// moved takes a statement that has succeeded for what it did to cursors; read is the one that it has read, if any.
func (n *names) moved(p *sqlpostgres.Plan, read *portal, tag string) {
	quiet := still(p)
	if read != nil {
		read.cursor.redeclaration.moved(p, tag)
		quiet = quiet && still(read.plan)
	}
	if !quiet {
		n.unsettleCursors()
	}
}

// declared takes a DECLARE that was recorded in a transaction as st.
func (n *names) declared(t *transaction, c *resultInProgress, sent *sqlpostgres.Plan, st *history.Stmt) {
	if c.plan == nil || c.plan.Session.Cursor == nil || c.cursor != nil {
		return
	}
	n.unsure = true
	p := n.confirmed.follow(c.form, sent, c.plan)
	if p == nil {
		return
	}
	if c.portal != nil {
		p.args = c.portal.args
	}
	if st.Observation == history.Opaque {
		p.reason = st.Reason
	}
	if t.open != nil && len(t.open.Stmts) > 0 && !t.unrecorded.Full() {
		p.cursor.txn, p.cursor.begun = t.open, len(t.open.Stmts)
		p.cursor.at = p.cursor.begun - 1
	}
}

// fetched takes what a statement has read from the cursor by a plan, and puts it where it belongs. A statement all of
// whose reads are told by the DECLARE leaves no record of its own.
func (p *portal) fetched(t *transaction, by *sqlpostgres.Plan, st *history.Stmt) {
	switch d := p.cursor; {
	case p.plan.Observation == history.Nothing:
		st.Observation, st.Reason = history.Nothing, history.Reason{}
	case p.plan.Locking != history.NoLock:
	case d.txn == nil || d.txn != t.open:
		downgrade(st, history.Opaque, history.ReasonHeldCursor)
		st.Accesses, st.TupleIDs = nil, nil
	default:
		credit(t, &d.txn.Stmts[d.at], st, p.plan.Observation == history.Exact && by != p.plan)
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
