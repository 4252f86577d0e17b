package postgres

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// transactions is what a session knows of its transaction, as the server's replies tell. Boundaries are
// ReadyForQuery's status, and within a segment the tags of commands.
type transactions struct {
	status     txnStatus // as the last ReadyForQuery had it
	block      bool      // a transaction block is open
	blockLevel history.Level
	// implicitLevel is what SET TRANSACTION made the level of an implicit transaction; unknown where it did not.
	implicitLevel history.Level
	// snapshot says that a statement of the block has taken a snapshot.
	snapshot bool
	erred    bool // an error has ended the segment's statements
	// txn is the transaction that statements are recorded in; nil between transactions, and in one of which
	// nothing has been recorded yet.
	txn        *history.Txn
	usual      txnstate.Usual
	savepoints txnstate.Savepoints
	unrecorded txnstate.Unrecorded
	// beyond says that what the transaction wrote may be beyond a rollback: a procedure can commit.
	beyond      bool
	changed     []rewrite.SchemaChange // by the transaction's definitions
	any         bool                   // they may be of any table
	temporaries temporaries
	// resets says that settings were changed, which a rollback takes back.
	resets bool

	current current
	seen    sightings
}

// completed takes a statement that has succeeded.
func (s *Session) completed(x *owed, tag string) {
	s.begin(x)
	c := &s.current
	if x.kind == owesExecute || x.at == len(c.form.statements())-1 {
		s.prove(c.form)
	}
	if c.portal != nil {
		c.portal.done = true
	}
	st := s.observe(c)
	st.Rows = c.rows
	if c.plan != nil && counts(c.plan) {
		st.Affected = rowsOf(tag)
	}
	if c.swallow {
		st.Rows = 0
	}
	part := piecesOf(c)
	part.before(&s.seen, c, &st)
	s.takeSightings(c, &st, false)
	c.doubt(&st)
	s.snapshot = s.snapshot || st.Observation != history.Nothing
	s.moved(x, c, tag)
	s.fetched(c, &st)
	if tag == "DECLARE CURSOR" && st.Locking != history.NoLock {
		st.Observation, st.Reason = history.Nothing, history.Reason{} // it reads nothing yet
	}
	s.piece(part, c.plan, &st, true)
	s.tear(c.plan)
	s.settle(c.plan, tag, st)
	s.declared(c, c.form.plan(x.at), &st)
	if c.plan != nil {
		s.ranOne(c.plan)
		s.names.deallocated(tag, c.plan.Shape)
		s.preparedBySQL(c.plan, tag)
	} else {
		s.names.forgetAll()
	}
	s.withhold(x)
}

// observe begins the record of the statement whose result is complete.
func (s *Session) observe(c *current) history.Stmt {
	st := history.Stmt{Start: c.started, End: s.now}
	p := c.plan
	if p == nil {
		st.Observation, st.Reason = history.Opaque, history.ReasonNotPlanned
		if c.form != nil && !c.form.reason.IsZero() {
			st.Reason = c.form.reason
		}
		return st
	}
	st.Kind, st.Locking, st.Observation, st.Reason, st.Shape = p.Kind, p.Locking, p.Observation, p.Reason, p.Shape
	st.Origin = p.Origin
	if s.cfg.Args {
		st.Args = p.Args
	}
	lower(&st, history.Opaque, c.form.reason)
	if c.cursor == nil && p.Predicates != nil {
		st.Predicates = s.closed(p, c.portal)
	}
	from := c.portal // whose parameters the plan's arguments name
	if c.cursor != nil {
		from = c.cursor
		lower(&st, history.Opaque, c.cursor.reason)
	}
	if from != nil && s.cfg.Args {
		st.Args = fillArgs(p.Args, from.args)
	}
	if c.portal != nil {
		lower(&st, history.Opaque, c.portal.reason)
		if c.portal.opened && c.portal.cursor == nil && p.Locking != history.NoLock {
			lower(&st, history.Inexact, history.ReasonRowLimit)
		}
		if c.portal.early {
			lower(&st, history.Inexact, history.ReasonBoundEarly)
		}
	}
	return st
}

// lower makes a statement's observation no better than to, for a reason; an empty reason is none.
func lower(st *history.Stmt, to history.Observation, reason history.Reason) {
	if !reason.IsZero() && st.Observation < to && st.Observation != history.Nothing {
		st.Observation, st.Reason = to, reason
	}
}

// settle puts a statement that succeeded into its transaction, and ends or begins the transaction.
func (s *Session) settle(p *sqlpostgres.Plan, tag string, st history.Stmt) {
	switch tag {
	case "BEGIN", "START TRANSACTION":
		s.beginBlock(p, st)
		return
	case "COMMIT", "ROLLBACK":
		if p != nil && p.Kind == history.Rollback && p.Txn.Savepoint != "" {
			s.record(st)
			s.rollbackTo(p.Txn.Savepoint)
			return
		}
		s.endBlock(p, tag, st)
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
			s.setSavepoint("")
		}
		s.record(st)
		s.defines(nil)
		return
	}
	switch {
	case p.Kind == history.Savepoint:
		s.setSavepoint(p.Txn.Savepoint)
	case p.Txn.Savepoint != "":
		s.savepoints.Release(p.Txn.Savepoint)
	case p.Txn.Level != history.LevelUnknown:
		s.setLevel(runsAt(p.Txn.Level))
	}
	if !s.block && (p.Kind == history.Call || p.Kind == history.DDL) {
		s.beyond = true
	}
	s.record(st)
	s.temporaries.take(p, tag, s.savepoints.Open())
	if p.Schema.Changes {
		s.defines(p.Schema.Change)
	}
}

// beginBlock opens a transaction block. What an implicit transaction did before becomes part of it.
func (s *Session) beginBlock(p *sqlpostgres.Plan, st history.Stmt) {
	if !s.block {
		s.block, s.blockLevel, s.snapshot = true, s.defaultLevel(), s.txn != nil
		if p != nil && p.Txn.Level != history.LevelUnknown {
			s.blockLevel = runsAt(p.Txn.Level)
		}
		if s.txn == nil {
			s.txn = s.newTxn(st.Start)
		}
		s.txn.Level = s.blockLevel
	}
	s.record(st)
}

// endBlock ends a transaction by COMMIT or ROLLBACK. The COMMIT of a failed one is answered by ROLLBACK.
func (s *Session) endBlock(p *sqlpostgres.Plan, tag string, st history.Stmt) {
	s.record(st)
	level := s.blockLevel
	s.block, s.erred = false, false
	if tag == "COMMIT" {
		s.endOpen(history.Committed)
	} else {
		s.endOpen(history.Aborted)
	}
	if p != nil && p.Txn.Chains {
		s.block, s.blockLevel, s.snapshot = true, level, false
	}
}

// setLevel takes what SET TRANSACTION did.
func (s *Session) setLevel(l history.Level) {
	if s.block {
		s.blockLevel = l
	} else {
		s.implicitLevel = l
	}
	if s.txn != nil {
		s.txn.Level = l
	}
}

// defaultLevel is the level of a transaction that begins without a word about it.
func (s *Session) defaultLevel() history.Level {
	if s.implicitLevel != history.LevelUnknown {
		return s.implicitLevel
	}
	if s.unsure {
		return history.LevelUnknown
	}
	return s.level
}

// failed takes an error that is the answer to a message.
func (s *Session) failed(x *owed, e *serverError) {
	s.erred = true
	defer s.seen.forget()
	switch x.kind {
	case owesQuery, owesExecute:
		s.begin(x)
	default:
		return
	}
	st := s.observe(&s.current)
	st.Rows, st.Void = s.current.rows, true
	st.Error = history.Error{SQLState: e.code}
	if p := s.current.portal; p != nil && p.opened && p.cursor == nil {
		lower(&st, history.Inexact, history.ReasonRowLimit)
	}
	if p := s.current.plan; p != nil && st.Reason == refusedWith(e.code) { // it was not isotap's doing
		st.Observation, st.Reason = p.Observation, p.Reason
	}
	if e.code == syntaxError {
		st.Observation, st.Reason = history.Nothing, history.Reason{} // nothing ran
	}
	if s.cfg.Args { // the server quotes values
		st.Error.Message = e.message
	}
	s.takeSightings(&s.current, &st, true)
	s.current.doubt(&st)
	s.fetched(&s.current, &st)
	s.record(st)
}

// syntaxError is what a text fails with that the server cannot parse.
const syntaxError = "42601"

// suspended takes a portal that has given as many rows as it was asked for.
func (s *Session) suspended() {
	c := &s.current
	st := s.observe(c)
	st.Rows = c.rows
	part := piecesOf(c)
	if st.Kind != history.Select {
		st.Affected = c.rows
	}
	part.before(&s.seen, c, &st)
	s.takeSightings(c, &st, false)
	c.doubt(&st)
	s.snapshot = true
	if c.cursor != nil {
		c.cursor.cursor.anew.settled = false // where it stands is not known
	}
	s.fetched(c, &st)
	if !s.piece(part, c.plan, &st, false) {
		st.Predicates = nil // rows that match may come
		s.record(st)
	}
	c.portal.opened = true
	if c.plan != nil {
		s.ranOne(c.plan)
	}
	s.tear(c.plan)
}

// record puts a statement into its transaction. One that leaves no trace in a history has none.
func (s *Session) record(st history.Stmt) {
	if st.Observation == history.Nothing && (s.txn == nil || !recorded(st.Kind)) {
		return
	}
	if s.txn == nil {
		s.txn = s.newTxn(st.Start)
	}
	st.Num = uint32(len(s.txn.Stmts) + 1)
	s.unrecorded.Add(s.txn, &st, false)
}

// recorded reports whether a statement that touches no row is worth a place in the history.
func recorded(k history.Kind) bool {
	switch k {
	case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.DDL:
		return true
	}
	return false
}

func (s *Session) newTxn(start int64) *history.Txn {
	t := &history.Txn{ID: s.cfg.NextTxn(), Session: s.cfg.ID, Level: s.defaultLevel(), Start: start,
		Stmts: s.usual.Room()}
	if s.block {
		t.Level = s.blockLevel
	}
	return t
}

// settleSegment takes a ReadyForQuery: what is no transaction block has ended.
func (s *Session) settleSegment(kind owedKind) {
	switch {
	case s.status != txnIdle:
		if !s.block { // begun by what isotap could not read
			s.block, s.blockLevel, s.snapshot = true, history.LevelUnknown, true
			if s.txn != nil {
				s.txn.Level = history.LevelUnknown
			}
		}
	case s.block && !s.erred:
		s.block = false
		s.endOpen(history.Indeterminate)
	case s.erred:
		s.block = false
		s.endOpen(history.Aborted)
	default:
		s.endOpen(history.Committed)
	}
	s.erred = s.status == txnFailed
}

// setSavepoint notes a savepoint before the statement that comes next. One of the same name stays below it.
func (s *Session) setSavepoint(name string) {
	at := 0
	if s.txn != nil {
		at = len(s.txn.Stmts)
	}
	s.savepoints.Set(name, at)
}

// rollbackTo voids what was written and locked since the savepoint.
func (s *Session) rollbackTo(name string) {
	at, sure := s.savepoints.RollBackTo(name)
	s.erred = false
	if sure {
		s.rollBackCursors(at)
	}
	switch {
	case s.txn == nil:
		return
	case !sure:
		txnstate.Doubt(s.txn, at)
		return
	}
	for i := at; i < len(s.txn.Stmts); i++ {
		if st := &s.txn.Stmts[i]; st.Observation != history.Nothing &&
			(st.Kind != history.Select || st.Locking != history.NoLock || wrote(st)) {
			st.Void = true
		}
	}
}

// wrote reports whether a statement wrote rows, as a SELECT does with an UPDATE in its WITH.
func wrote(st *history.Stmt) bool {
	return slices.ContainsFunc(st.Accesses, func(a history.Access) bool { return a.Op != history.Read })
}

// endOpen ends the session's transaction, if there is one.
func (s *Session) endOpen(status history.Status) {
	s.holdCursors(status)
	if t := s.takeOpen(status); t != nil {
		s.ended(t)
	}
	s.endCursors(status)
	s.definitionsEnd(status)
}

// takeOpen takes the transaction out of the session, with its end; nil when there is nothing to record.
func (s *Session) takeOpen(status history.Status) *history.Txn {
	if s.beyond && status == history.Aborted {
		status = history.Indeterminate
	}
	s.savepoints, s.beyond, s.snapshot, s.implicitLevel = txnstate.Savepoints{}, false, false, history.LevelUnknown
	s.unrecorded.End()
	t := s.txn
	s.txn = nil
	if t != nil {
		s.usual.Took(len(t.Stmts))
	}
	if t == nil || !slices.ContainsFunc(t.Stmts,
		func(st history.Stmt) bool { return st.Observation != history.Nothing }) {
		return nil
	}
	t.Status, t.End = status, s.now
	t.Implicit = len(t.Stmts) == 1 && !recorded(t.Stmts[0].Kind)
	return t
}
