package mysql

import (
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// transactions is what a session knows of its transaction. Boundaries come from the status flags of
// the server's replies.
type transactions struct {
	inTrans    bool // SERVER_STATUS_IN_TRANS, as the last reply had it
	autocommit bool
	// txn is the transaction that statements are recorded in; nil between transactions, and in one
	// of which nothing has been recorded yet.
	txn        *history.Txn
	usual      txnstate.Usual
	next       nextLevel
	savepoints txnstate.Savepoints
	unrecorded txnstate.Unrecorded
	// beyond says that what the transaction wrote may be beyond a rollback: a procedure can commit and
	// begin anew, and a branch that is prepared (XA) outlives its session.
	beyond bool
}

// An observed is a statement on its way: the plan it was sent by and what its reply has shown so far.
type observed struct {
	plan      *sqlmysql.Plan
	rewritten bool
	txn       *history.Txn
	// begins is the transaction that a BEGIN opens when it succeeds.
	begins *history.Txn
	stmt   history.Stmt
	index  int  // where stmt stands in its transaction, once it is recorded
	was    bool // the server had a transaction open when the statement was sent
	// tookNext: its transaction is the one that SET TRANSACTION was for.
	tookNext bool

	// capturing says that entries of the statement wait to be read.
	capturing bool
	// insertID is what the server numbered the first row of an INSERT with, and increment the step to the next, in
	// mode predicates.
	insertID, increment uint64

	rowCounts
	made     int  // the rows of an INSERT, whether or not they went in
	doubtful bool // the captured rows are not certain to be those that changed
}

// lower makes the statement's observation no better than o.
func (o *observed) lower(to history.Observation, reason history.Reason) {
	if o.stmt.Observation < to && o.stmt.Observation != history.Nothing {
		o.stmt.Observation, o.stmt.Reason = to, reason
	}
}

// follow takes the status flags of a reply.
func (s *Session) follow(status uint16) {
	s.inTrans = status&gomysql.SERVER_STATUS_IN_TRANS != 0
	s.autocommit = status&gomysql.SERVER_STATUS_AUTOCOMMIT != 0
}

// observe begins the record of a statement. One that leaves no trace in a history, such as SET NAMES,
// has no transaction.
func (s *Session) observe(plan *sqlmysql.Plan) *observed {
	o := &observed{plan: plan, was: s.inTrans}
	taken := s.next.set()
	defer func() { o.tookNext = taken && !s.next.set() }()
	switch {
	case plan.Kind == history.Begin:
		o.begins = s.newTxn()
		o.txn = o.begins
	case plan.Observation == history.Nothing:
		if s.txn == nil || !recorded(plan.Kind) {
			return o
		}
		o.txn = s.txn
	default:
		if s.txn == nil {
			s.txn = s.newTxn()
		}
		o.txn = s.txn
	}
	o.stmt = history.Stmt{Num: uint32(len(o.txn.Stmts) + 1), Kind: plan.Kind, Locking: plan.Locking,
		Observation: plan.Observation, Reason: plan.Reason, Shape: plan.Shape, Origin: plan.Origin, Start: s.now}
	if s.cfg.Args {
		o.stmt.Args = plan.Args
	}
	return o
}

// recorded reports whether a statement that touches no row is worth a place in the history.
func recorded(k history.Kind) bool {
	switch k {
	case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.DDL:
		return true
	}
	return false
}

func (s *Session) newTxn() *history.Txn {
	t := &history.Txn{ID: s.cfg.NextTxn(), Session: s.cfg.ID, Level: s.level, Conflicts: s.conflicts, Start: s.now,
		Stmts: s.usual.Room()}
	if s.next.set() {
		t.Level, s.next = s.next.of(s.level), nextLevel{}
	}
	return t
}

// tag is the tag of the statement's writes.
func (o *observed) tag() history.Tag { return history.Tag{Txn: o.txn.ID, Stmt: o.stmt.Num} }

// record puts a finished statement into its transaction.
func (s *Session) record(o *observed) {
	if o.txn == nil {
		return
	}
	o.stmt.End = s.now
	if o.txn == s.txn {
		o.index = s.unrecorded.Add(o.txn, &o.stmt, o.rewritten)
		return
	}
	o.index = len(o.txn.Stmts) // a BEGIN: of the transaction that it opens
	o.txn.Stmts = append(o.txn.Stmts, o.stmt)
}

// settle decides what a finished statement did to the transaction: it goes on, it ended, or the next
// one began.
func (s *Session) settle(o *observed, x *exchange) {
	if !s.watches() {
		return
	}
	kind := o.plan.Kind
	if o.was && o.plan.Txn.Ends && (kind == history.Call || kind == history.Other) {
		s.beyond = true
	}
	switch {
	case x.failed:
		s.settleError(o, x)
		return
	case kind == history.Begin:
		s.endOpen(history.Committed)
		if s.inTrans {
			s.txn = o.begins
		}
		return
	case o.plan.Txn.MayRestart && o.was:
		s.endOpen(history.Indeterminate)
	case kind == history.Rollback && o.plan.Txn.Savepoint != "":
		s.rollbackTo(o.plan.Txn.Savepoint)
	case kind == history.Savepoint:
		s.setSavepoint(o.plan.Txn.Savepoint)
	case o.plan.Txn.Savepoint != "":
		s.savepoints.Release(o.plan.Txn.Savepoint)
	case kind == history.Commit, kind == history.Rollback, x.leftTxn, !s.inTrans:
		// Under AND CHAIN, or completion_type, the next one has begun already.
		s.endOpen(outcome(o, x))
	}
}

// outcome is how the transaction ended that a successful statement ended.
func outcome(o *observed, x *exchange) history.Status {
	switch {
	case o.plan.Kind == history.Rollback:
		return history.Aborted
	case x.leftTxn, o.was && !o.plan.Txn.Commits && (o.plan.Kind == history.Call || o.plan.Kind == history.Other):
		// A procedure, or several statements in one text: it may have been either.
		return history.Indeterminate
	}
	return history.Committed
}

// settleError finds out what an error did to the transaction. Errors carry no status: inside a
// transaction the server is asked for it, by a ping.
func (s *Session) settleError(o *observed, x *exchange) {
	if !o.was && s.autocommit {
		s.endOpen(history.Aborted)
		return
	}
	s.askTransaction(o.plan, func() {
		if !s.inTrans || x.leftTxn || o.plan.Txn.MayRestart && o.was {
			s.endOpen(outcomeOfError(o, x.err.code))
		}
	})
}

// askTransaction asks the server, by a ping, whether it still has a transaction open. settles is the plan of
// the statement whose error is the reason to ask; nil when there is none.
func (s *Session) askTransaction(settles *sqlmysql.Plan, then func()) {
	s.send(&exchange{read: (*Session).singleReply, settles: settles, done: func(s *Session, _ *exchange) error {
		s.rowCountGone = true
		then()
		return nil
	}}, []byte{gomysql.COM_PING})
}

// outcomeOfError is how a transaction ended whose statement failed. Statements that commit implicitly
// have done so before they fail; a COMMIT that failed for an unknown reason may have worked, and a
// procedure or a text of several statements may have done either before it failed.
func outcomeOfError(o *observed, code uint16) history.Status {
	switch {
	case o.plan.Txn.MayRestart, o.plan.Kind == history.Call,
		o.plan.Kind == history.Other && o.plan.Txn.Ends && !o.plan.Txn.Commits:
		return history.Indeterminate
	case o.plan.Kind == history.Begin, o.plan.Kind == history.DDL, o.plan.Txn.Commits:
		// The time-out may be that of a table's lock, which the statement takes once it has committed.
		if rollsBack(code) && code != gomysql.ER_LOCK_WAIT_TIMEOUT {
			return history.Indeterminate
		}
		return history.Committed
	case rollsBack(code), o.plan.Kind == history.Commit && code == gomysql.ER_DUP_ENTRY:
		// TiDB finds duplicates as late as that in its optimistic transactions.
		return history.Aborted
	case o.plan.Txn.Ends && o.plan.Kind != history.Rollback:
		return history.Indeterminate
	}
	return history.Aborted
}

// Errors of TiDB's COMMIT that tell that the transaction was rolled back
// (https://docs.pingcap.com/tidb/stable/error-codes). Of others, 8501 and the timeouts among them, it is
// not known.
const (
	tidbCannotRetry   = 8002
	tidbTxnTooLarge   = 8004
	tidbStale         = 8005
	tidbRetryable     = 8022
	tidbSchemaChanged = 8028
	tidbWriteConflict = 9007
)

// rollsBack reports whether an error that ended the transaction did so by rolling it back: a deadlock, a
// conflict under MariaDB's innodb_snapshot_isolation, and their kind.
func rollsBack(code uint16) bool {
	switch code {
	case gomysql.ER_LOCK_DEADLOCK, gomysql.ER_CHECKREAD, gomysql.ER_LOCK_WAIT_TIMEOUT, gomysql.ER_LOCK_TABLE_FULL,
		gomysql.ER_ERROR_DURING_ROLLBACK,
		tidbCannotRetry, tidbTxnTooLarge, tidbStale, tidbRetryable, tidbSchemaChanged, tidbWriteConflict:
		return true
	}
	return false
}

func (s *Session) setSavepoint(name string) {
	s.savepoints.Forget(name)
	if s.txn != nil {
		s.savepoints.Set(name, len(s.txn.Stmts))
	}
}

// rollbackTo voids what was written since the savepoint.
func (s *Session) rollbackTo(name string) {
	at, sure := s.savepoints.RollBackTo(name)
	switch {
	case s.txn == nil:
		return
	case !sure:
		s.loseCaptures(history.ReasonLostSavepoint)
		txnstate.Doubt(s.txn, at)
		return
	}
	for i := at; i < len(s.txn.Stmts); i++ {
		switch s.txn.Stmts[i].Kind {
		case history.Insert, history.Update, history.Delete, history.Replace:
			s.txn.Stmts[i].Void = true
		}
	}
}

// endOpen ends the session's transaction, if there is one.
func (s *Session) endOpen(status history.Status) {
	if s.beyond && status == history.Aborted {
		status = history.Indeterminate
	}
	s.savepoints, s.beyond = txnstate.Savepoints{}, false
	s.unrecorded.End()
	t := s.txn
	if t == nil {
		return
	}
	s.txn = nil
	s.usual.Took(len(t.Stmts))
	t.Status, t.End = status, s.now
	t.Implicit = !slices.ContainsFunc(t.Stmts, func(st history.Stmt) bool { return recorded(st.Kind) }) &&
		len(t.Stmts) == 1
	if !slices.ContainsFunc(t.Stmts, func(st history.Stmt) bool { return st.Observation != history.Nothing }) {
		return
	}
	if s.awaitsCaptures(t) {
		s.ended = append(s.ended, t)
		return
	}
	s.events = append(s.events, session.Event{Txn: t})
}

// lostServer settles what was open when the server went away: what waited for an answer may have
// been done, everything else was rolled back.
func (s *Session) lostServer() {
	status := history.Aborted
	for _, x := range s.exchanges {
		lowerAll(x.reads, history.ReasonServerLost)
		if x.settles != nil && x.settles.Txn.Ends {
			status = history.Indeterminate // the error may have come after the commit
		}
		if o := x.stmt; o != nil && o.txn != nil {
			if o.plan.Txn.Ends || !o.was && s.autocommit {
				status = history.Indeterminate
			}
			o.doubtful = true
			o.lower(history.Inexact, history.ReasonServerLost)
			s.takeSightings(o)
			s.record(o)
		}
	}
	s.exchanges, s.chain = nil, nil
	s.loseCaptures(history.ReasonServerLost)
	s.endOpen(status)
}
