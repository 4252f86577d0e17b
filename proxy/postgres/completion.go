package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// completed takes a statement that has succeeded: its stages, of which each may rest on those before it.
func (s *Session) completed(x *pendingReply, tag string) {
	s.begin(x)
	r := &s.result
	s.accept(x, r)
	st := s.observe(r)
	r.countRows(&st, tag)
	fetched := s.takeRows(r, &st)
	s.takeCursors(x, r, &st, tag)
	fetched.record(&s.txn, s.settings.txnLevel(), r.plan, &st, true)
	s.names.interruptPieces(r.plan)
	s.settle(r.plan, tag, &st)
	s.names.declared(&s.txn, r, r.form.plan(x.at), &st)
	s.takeNames(r.plan, tag)
	s.cfg.Provoke.Done(&st, s.txn.block)
	s.tellAnswered(&st, true)
	s.withhold(x)
}

// accept notes that the server takes what was sent: the text, if all of it has run, and the portal.
func (s *Session) accept(x *pendingReply, r *resultInProgress) {
	if x.kind == pendingExecute || x.at == len(r.form.statements())-1 {
		s.scripts.prove(r.form.upstream())
	}
	if r.portal != nil {
		r.portal.done = true
	}
}

// takeRows takes what the rows of a statement that has succeeded have shown. It returns what its portal has shown
// altogether; nil where the statement is not fetched in pieces.
func (s *Session) takeRows(r *resultInProgress, st *history.Stmt) *pieces {
	part := piecesOf(r)
	part.before(&s.seen, r, st)
	s.takeIdentities(r, st, false)
	r.doubt(st)
	s.txn.snapshot = s.txn.snapshot || st.Observation != history.Nothing
	return part
}

// takeCursors takes what a statement did to cursors, and read from one.
func (s *Session) takeCursors(x *pendingReply, r *resultInProgress, st *history.Stmt, tag string) {
	s.names.moved(r.form.plan(x.at), r.cursor, tag)
	s.fetched(r, st)
	if tag == "DECLARE CURSOR" && st.Locking != history.NoLock {
		st.Observation, st.Reason = history.Nothing, history.Reason{} // it reads nothing yet
	}
}

// takeNames takes what a statement did to the settings and to what is prepared.
func (s *Session) takeNames(p *sqlpostgres.Plan, tag string) {
	if p == nil {
		s.names.forgetAll()
		return
	}
	s.ranOne(p)
	s.names.deallocated(tag, p.Shape)
	s.txn.fresh = s.txn.fresh || tag == "DISCARD ALL" || tag == "RESET" && strings.EqualFold(p.Shape, "RESET ALL")
	s.preparedBySQL(p, tag)
}

// observe begins the record of the statement whose result is complete.
func (s *Session) observe(c *resultInProgress) history.Stmt {
	st := history.Stmt{Start: c.started, End: s.now}
	p := c.plan
	if p == nil {
		st.Observation, st.Reason = history.Opaque, history.ReasonNotPlanned
		if c.form != nil && !c.form.reason.IsZero() {
			st.Reason = c.form.reason
		}
		return st
	}
	st.Kind, st.Locking, st.Observation, st.Reason = p.RecordedKind(), p.Locking, p.Observation, p.Reason
	st.Shape, st.Sender = p.Shape, p.Sender
	if c.portal != nil && c.portal.of != nil {
		if c.portal.of.ran {
			st.Sender.Request = ""
		}
		c.portal.of.ran = true
	}
	st.Sender = st.Sender.Or(s.settings.sender)
	if s.cfg.Args {
		st.Args = p.Args
	}
	if s.cfg.Texts && c.cursor == nil {
		st.Text = written(p, c.portal)
	}
	downgrade(&st, history.Opaque, c.form.reason)
	if c.cursor == nil && p.Predicates != nil {
		st.Predicates = s.closed(p, c)
	}
	from := c.portal // whose parameters the plan's arguments name
	if c.cursor != nil {
		from = c.cursor
		downgrade(&st, history.Opaque, c.cursor.reason)
	}
	if from != nil && s.cfg.Args {
		st.Args = fillArgs(p.Args, from.args)
	}
	if c.portal != nil {
		downgrade(&st, history.Opaque, c.portal.reason)
		if c.portal.opened && c.portal.cursor == nil && p.Locking != history.NoLock {
			downgrade(&st, history.Inexact, history.ReasonRowLimit)
		}
		if c.portal.early {
			downgrade(&st, history.Inexact, history.ReasonBoundEarly)
		}
	}
	return st
}

// written returns a statement with the parameters of its portal in their places; empty where they cannot be written, or
// are too long.
func written(p *sqlpostgres.Plan, of *portal) string {
	var values []string
	if of != nil {
		values = make([]string, len(of.literals))
		for i, literal := range of.literals {
			if values[i] = literal; !strings.Contains(literal, `\`) {
				values[i] = strings.TrimPrefix(literal, "E")
			}
		}
	}
	if len(values) < p.Params {
		return ""
	}
	return session.BoundedText(dbms.PostgreSQLFamily, p.Text, values)
}

// settle puts a statement that succeeded into its transaction, and ends or begins the transaction.
func (s *Session) settle(p *sqlpostgres.Plan, tag string, st *history.Stmt) {
	switch tag {
	case "BEGIN", "START TRANSACTION":
		asked := history.LevelUnknown
		if p != nil {
			asked = p.Txn.Level
		}
		s.txn.beginBlock(st.Start, asked, s.settings.txnLevel())
		s.record(st)
		return
	case "COMMIT", "ROLLBACK":
		s.record(st)
		if p != nil && p.Kind == history.Rollback && p.Txn.Savepoint != "" {
			s.rollBackTo(p.Txn.Savepoint)
			return
		}
		level := s.txn.level
		s.endTxn(s.txn.endBlock(tag))
		if p != nil && p.Txn.Chains {
			s.txn.chain(level)
		}
		return
	case "PREPARE TRANSACTION":
		s.record(st)
		s.prepare(p)
		return
	case "COMMIT PREPARED", "ROLLBACK PREPARED":
		s.endPrepared(p, tag)
		return
	}
	if p == nil {
		if tag == "SAVEPOINT" { // whose name is not known: it stays until the transaction ends
			s.txn.setSavepoint("")
		}
		s.record(st)
		s.schema.mayBeAny()
		s.schema.temporaries.columns = ""
		return
	}
	switch {
	case p.Kind == history.Savepoint:
		s.txn.setSavepoint(p.Txn.Savepoint)
	case p.Kind == history.Release:
		s.txn.savepoints.Release(p.Txn.Savepoint)
	case p.Txn.ImportsSnapshot:
		s.txn.importSnapshot()
	case p.Txn.Level != history.LevelUnknown:
		s.txn.setLevel(runsAt(p.Txn.Level))
	}
	if !s.txn.block && (p.Kind == history.Call || p.Kind == history.DDL) {
		s.txn.beyond = true
	}
	s.record(st)
	s.txn.copied(p.Copied, st.Num)
	s.schema.temporaries.take(p, tag, s.txn.savepoints.Open())
	if p.Schema.Changes {
		s.schema.add(p.Schema.Change, s.settings.searchPath, !s.txn.block)
	}
}

// record puts a statement into its transaction.
func (s *Session) record(st *history.Stmt) { s.txn.record(st, s.settings.txnLevel()) }

// rollBackTo takes back what was done since a savepoint.
func (s *Session) rollBackTo(savepoint string) {
	s.schema.temporaries.columns = "" // which they had then is not known
	if at, sure := s.txn.rollBackTo(savepoint); sure {
		s.names.rollBackCursors(s.txn.open, at)
	}
}

// endTxn ends the session's transaction, if there is one: first its record, then what was its own, and at last what
// it changed.
func (s *Session) endTxn(status history.Status) {
	s.names.holdCursors(s.txn.open, status)
	copies := s.txn.copies
	if t := s.txn.take(status, s.now); t != nil {
		s.ended(t, s.questions(t, copies)...)
	}
	s.names.endCursors(status)
	s.changesEnd(status)
	if s.cfg.Twin != nil {
		s.cfg.Twin.Ended(status)
	}
}

// changesEnd has the settings read again, and the schema, where the end of the transaction has changed them.
func (s *Session) changesEnd(status history.Status) {
	s.settings.txnEnds()
	if changes, changed := s.schema.end(status); changed {
		s.events = append(s.events,
			session.Event{Schema: &session.Schema{Database: s.settings.database, Changes: changes}})
	}
}

// failed takes an error that is the answer to a message.
func (s *Session) failed(x *pendingReply, e *serverError) {
	s.txn.erred = true
	defer s.seen.forget()
	switch {
	case x.own, x.asks && x.at >= len(x.form.statements()):
		return // isotap's question failed, and what was done before it
	case x.kind == pendingQuery, x.kind == pendingExecute:
		s.begin(x)
	default:
		return
	}
	st := s.observe(&s.result)
	st.Rows, st.Void = s.result.rows, true
	st.Error = history.Error{SQLState: e.code}
	if p := s.result.portal; p != nil && p.opened && p.cursor == nil {
		downgrade(&st, history.Inexact, history.ReasonRowLimit)
	}
	if p := s.result.plan; p != nil && st.Reason == refusedWith(e.code) { // it was not isotap's doing
		st.Observation, st.Reason = p.Observation, p.Reason
	}
	if e.code == syntaxError {
		st.Observation, st.Reason = history.Nothing, history.Reason{} // nothing ran
	}
	if s.cfg.Args { // the server quotes values
		st.Error.Message = e.message
	}
	s.takeIdentities(&s.result, &st, true)
	s.result.doubt(&st)
	s.fetched(&s.result, &st)
	s.record(&st)
	s.cfg.Provoke.Done(&st, s.txn.block)
	s.tellAnswered(&st, false)
}

// syntaxError is what a text fails with that the server cannot parse.
const syntaxError = "42601"

// suspended takes a portal that has given as many rows as it was asked for.
func (s *Session) suspended() {
	r := &s.result
	st := s.observe(r)
	st.Rows = r.rows
	if st.Kind != history.Select {
		st.Affected = r.rows
	}
	fetched := s.takeRows(r, &st)
	s.txn.snapshot = true
	if r.cursor != nil {
		r.cursor.cursor.redeclaration.settled = false // where it stands is not known
	}
	s.fetched(r, &st)
	if !fetched.record(&s.txn, s.settings.txnLevel(), r.plan, &st, false) {
		st.Predicates = nil // rows that match may come
		s.record(&st)
	}
	r.portal.opened = true
	if r.plan != nil {
		s.ranOne(r.plan)
	}
	s.names.interruptPieces(r.plan)
}

// ranOne takes a statement that has run for what it may have changed of the settings.
func (s *Session) ranOne(p *sqlpostgres.Plan) {
	switch {
	case p.Session.Changes:
		s.settings.changed()
		if p.Kind == history.Call || p.Schema.Changes {
			s.names.forgetAll()
		}
	case p.Kind == history.DDL:
		clear(s.settings.calls.harmless) // a function may be another one now
	case p.Session.Calls:
		shape := p.Shape
		if s.txn.block {
			shape = "in a block: " + shape // what a transaction alone is given ends with it
		}
		if _, ok := s.settings.calls.harmless[shape]; !ok {
			s.settings.calls.ran = append(s.settings.calls.ran, shape)
			s.settings.changed()
			s.settings.stale = true
			if !s.names.executesKnown(p) {
				s.names.forgetAll() // a function may do as DEALLOCATE and PREPARE do
			}
		}
	}
}

// prepare takes the session's transaction out of it. One whose name cannot be told is indeterminate.
func (s *Session) prepare(plan *sqlpostgres.Plan) {
	s.txn.block = false
	if plan == nil || plan.Txn.Global == "" || s.cfg.Prepared == nil {
		s.endTxn(history.Indeterminate)
		return
	}
	if t := s.txn.take(history.Indeterminate, s.now); t != nil {
		if lost := s.cfg.Prepared.Put(plan.Txn.Global, t); lost != nil {
			s.ended(lost)
		}
	}
	s.changesEnd(history.Committed)
}

// endPrepared ends a transaction that some session prepared.
func (s *Session) endPrepared(plan *sqlpostgres.Plan, tag string) {
	if plan == nil || s.cfg.Prepared == nil {
		return
	}
	t := s.cfg.Prepared.Take(plan.Txn.Global)
	if t == nil {
		return
	}
	t.Status, t.End = history.Committed, s.now
	if tag == "ROLLBACK PREPARED" {
		t.Status = history.Aborted
	}
	s.ended(t)
}

// begin makes the statement whose result the head gives the current one.
func (s *Session) begin(x *pendingReply) {
	c := &s.result
	if c.set {
		return
	}
	// Of what was sent together nobody knows when the server came to it: the reply before it may be read long after.
	*c = resultInProgress{set: true, started: x.sent}
	s.txn.mayBegin(x.sent)
	switch x.kind {
	case pendingQuery:
		c.form, c.plan = x.form, x.form.plan(x.at)
		c.hidden = c.form.hidden(c.plan)
	case pendingExecute:
		c.portal = s.names.confirmed.portals[x.name]
		if c.portal == nil { // DECLARE made it, or nobody
			c.portal = &portal{reason: history.ReasonCursor}
		}
		c.form, c.plan, c.format = &c.portal.form, c.portal.plan, c.portal.format
		c.hidden, c.cut = c.form.hidden(c.form.plan(0)), c.portal.cutOf()
		if f := s.names.confirmed.executed(c.form.plan(0)); f != nil { // its rows come without a description
			c.hidden = f.hidden(f.plan(0))
			if c.plan = withoutSources(c.plan); c.hidden > 0 {
				c.plan = executes(c.plan, f.plan(0))
			}
			c.swallow = c.hidden > 0 && f.plan(0).Result.Reply == rewrite.Returning
			return
		}
	}
	c.swallow = c.hidden > 0 && c.form.plan(x.at).Result.Reply == rewrite.Returning
	if c.portal != nil {
		c.applyLayout(c.portal.layoutOf())
	}
	c.fetch(s.names.confirmed, x.kind == pendingQuery)
}

// fetched takes what a statement has read from a cursor.
func (s *Session) fetched(c *resultInProgress, st *history.Stmt) {
	if c.cursor == nil {
		return
	}
	if plan := c.cursor.plan; plan.Session.Changes || plan.Session.Calls { // its query is run now, not by the DECLARE
		s.settings.changed()
		s.settings.stale = true
	}
	c.cursor.fetched(&s.txn, c.plan, st)
}

// takeIdentities takes what the rows of a statement have shown.
func (s *Session) takeIdentities(c *resultInProgress, st *history.Stmt, failed bool) {
	if s.seen.cut {
		s.planner.SubqueriesTooLarge(c.plan.Shape)
	}
	if tooLarge := s.seen.put(c, st, failed, s.settings.literals); tooLarge {
		s.planner.TooLarge(c.plan.Shape)
	}
}

// closed returns the predicates of a plan that hold for a result, with the parameters of its portal in their places. A
// predicate of a parameter whose value cannot be read is left out.
func (s *Session) closed(p *sqlpostgres.Plan, c *resultInProgress) []history.Predicate {
	literal := s.settings.literals
	var last []string
	if unambiguous(literal) && p.Ordered(s.txn.levelNow(s.settings.txnLevel())) {
		for i := range s.seen.last {
			last = append(last, s.seen.last[i].literal())
		}
	}
	var literals []string
	if c.portal != nil {
		literals = c.portal.literals
	}
	with := rewrite.Literals{Params: literals, User: s.settings.user()}
	return s.txn.close(openConditions{all: p.Predicates, with: with, rows: c.rows, last: last, settings: literal})
}

// ended hands over a transaction that has ended, with the questions about it.
func (s *Session) ended(t *history.Txn, questions ...session.Question) {
	if t.OnlyDefines() {
		s.events = append(s.events, session.Event{Defined: &history.DefiningTxn{Txn: *t}})
		return
	}
	if !slices.ContainsFunc(s.events, func(e session.Event) bool { return e.Txn != nil }) {
		s.ackAt = s.replyAt
	}
	s.events = append(s.events, session.Event{Txn: t, Questions: questions})
}
