package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// statementDone takes the end of a statement's reply, stage by stage. Each stage needs what those before it have left.
func (s *Session) statementDone(x *exchange) error {
	defer s.identities.forget() // its rows are the statement's by then
	o := x.stmt
	if x.retry {
		s.refuse(o, x.err)
		return s.runOriginal(o, x)
	}
	if s.partDone(x) {
		return nil
	}

	// What the reply says of the statement. The plan is judged last: where it is wrong, nothing of that holds.
	s.takeResult(o, x)
	s.access(o, x)
	if x.mask.wrong {
		o.misplanned()
	}
	widen(&o.stmt)

	// What the client may ask about the statement, before anything of isotap's own runs and changes the answer.
	s.counts.take(&x.reply, x.okInstead, o.plan.Session.Conditions == sqlmysql.ListsConditions,
		o.plan.Session.FindsRows)
	s.conditions.take(&x.reply, o.plan, x.added)

	// The statement goes into its transaction. What comes later of it is added to it there.
	s.txn.record(o, s.now)
	s.captures.await(o, x.failed, x.ok.lastInsertID, s.settings.literals.increment)
	s.effects(o, x)

	// The transaction may end with the statement. It must know by then which answers it has to wait for.
	s.readVariables(o, x)
	s.readMoment(o, x)
	s.tellAnswered(o, x)
	s.settle(o, x)
	s.cfg.Provoke.Done(&o.stmt, s.txn.inTrans)

	// Queries of isotap's own: a companion runs only where the transaction goes on, captures are read only once it
	// has ended.
	s.runCompanion(o, x)
	s.holdForRecording()
	return nil
}

// takeResult takes how many rows the statement had, and its error.
func (s *Session) takeResult(o *pendingStatement, x *exchange) {
	o.stmt.Rows, o.stmt.Affected = x.rows, x.ok.affected
	if x.okInstead {
		o.stmt.Rows, o.stmt.Affected = 0, x.rows
	}
	if o.plan.Writes.ExactOfNone && !x.failed && o.stmt.Rows == 0 && o.stmt.Affected == 0 &&
		o.stmt.Observation == history.Inexact && o.stmt.Reason == o.plan.Reason {
		o.stmt.Observation, o.stmt.Reason = history.Exact, history.Reason{}
	}
	o.found = o.rowsFound(x)
	o.stmt.Predicates = s.settings.predicates(o, s.identities.ordered(), moments{})
	if x.opens(x.ok) {
		// The client need not fetch all of it, nor in this transaction.
		o.downgrade(history.Inexact, history.ReasonCursor)
		o.stmt.Predicates = nil
		if x.hidden+len(x.mask.columns) > 0 {
			x.prepared.cursor = &cursor{o, x.types, x.fields, x.hidden, x.mask}
		}
	}
	if x.failed {
		o.stmt.Error = history.Error{Code: x.err.code, SQLState: x.err.state}
		if s.cfg.Args { // the server quotes values: Duplicate entry 'ann@example.com' for key 'email'
			o.stmt.Error.Message = x.err.message
		}
		o.stmt.Void = true
	}
}

// access derives from a reply what the statement read or wrote.
func (s *Session) access(o *pendingStatement, x *exchange) {
	if !o.rewritten {
		return
	}
	switch {
	case o.plan.Result.Reply == rewrite.Unchanged:
	case o.plan.Writes.Inserts != 0:
		s.identities.tellNumbers(o)
	default:
		// A DELETE that failed deleted nothing, whatever it had returned by then.
		if o.plan.Kind != history.Delete || !x.failed {
			s.takeIdentities(o, x.ok.warnings > 0)
		}
		return
	}
	if x.failed {
		return
	}
	o.takeCounts(&x.reply, s.caps&gomysql.CLIENT_FOUND_ROWS != 0)
	o.constant, o.insertID = s.settings.constant(o), x.ok.lastInsertID
	o.addInserted(&s.txn.unrecorded)
	if o.showsNothing() && !o.mayHaveEntries() {
		o.downgrade(history.Inexact, history.ReasonSubquery)
	}
}

// takeIdentities gives a statement the rows whose identities came out of its reply. Those of its kind that read too
// much for an array are left alone from then on.
func (s *Session) takeIdentities(o *pendingStatement, warned bool) {
	if s.identities.cut && !o.withheld {
		s.cfg.Planner.SubqueriesTooLarge(o.plan.Shape)
	}
	if s.identities.judgeArrays(o, warned) {
		s.cfg.Planner.TooLarge(o.plan.Shape)
	}
	s.identities.take(o)
}

// effects takes what a statement changed for those after it.
func (s *Session) effects(o *pendingStatement, x *exchange) {
	plan := o.plan
	if plan.Session.Changes {
		s.settings.stale = true
	}
	s.txn.followNext(o, x.failed)
	s.settings.tempTables = sqlmysql.AddTempTables(s.settings.tempTables, plan.Schema.CreatesTemp)
	if !x.failed {
		s.settings.takeTableLocks(plan)
		s.settings.tempTables = sqlmysql.DropTempTables(s.settings.tempTables, plan.Schema.DropsTemp)
	}
	s.settings.env.TempTables = s.settings.tempTables
	if plan.Schema.Changes {
		changed := &session.Schema{Tables: plan.Schema.Changed, References: plan.Schema.References,
			Triggers: plan.Schema.Triggers}
		if o.rewritten && !x.failed && len(plan.Schema.Created) > 0 {
			// CREATE TABLE IF NOT EXISTS warns where there is a table, which may look different.
			if changed.MayHaveStayed = x.ok.warnings > 0; !changed.MayHaveStayed {
				changed.Created = plan.Schema.Created[1:]
			}
		}
		s.events = append(s.events, session.Event{Schema: changed})
	}
}

// settle has the transaction take a finished statement's end, and does what follows.
func (s *Session) settle(o *pendingStatement, x *exchange) {
	if !s.watches() {
		return
	}
	ended, then := s.txn.settle(o, &x.reply, s.now)
	s.tellEnd(o, x, ended)
	s.handOver(ended)
	if !x.failed && !o.wasInTrans {
		s.endBranch(o.plan)
	}
	switch then {
	case askCommands:
		s.askCommands(o, x)
	case askServer:
		ask := &transactionQuestion{o.plan, func() { s.handOver(s.txn.settleError(o, &x.reply, s.now)) }}
		if x.failed && endsConnection(x.err.code) { // what is sent to a server that closes makes it reset the connection
			s.postponed = ask
			return
		}
		s.ask(ask)
	case giveUpCaptures:
		s.loseCaptures(history.ReasonLostSavepoint)
	}
}

// A transactionQuestion is whether the server still has a transaction open.
type transactionQuestion struct {
	settles *sqlmysql.Plan // of the statement whose error is the reason to ask; nil when there is none
	then    func()         // takes the answer, which the session then knows
}

// ask asks the server by a ping.
func (s *Session) ask(q *transactionQuestion) {
	s.send(&exchange{grammar: okReply, settles: q.settles, done: func(*exchange) error {
		s.counts.rowCountGone = true
		q.then()
		return nil
	}}, []byte{gomysql.COM_PING})
}

// endOpen ends the session's transaction, if there is one.
func (s *Session) endOpen(status history.Status) { s.handOver(s.txn.end(status, s.now)) }

// handOver has a transaction recorded that has ended, once the entries of its statements are read. Nil is none. One
// that has left the session as a branch waits for whoever ends it.
func (s *Session) handOver(t *history.Txn) {
	if left := s.txn.left; t != nil && left.txn == t && s.cfg.Prepared != nil && !s.captures.awaited(t) {
		t = s.cfg.Prepared.Put(left.name, t)
	}
	s.txn.left = leftBranch{}
	switch {
	case t == nil:
	case t.OnlyDefines():
		s.events = append(s.events, session.Event{Defined: &history.DefiningTxn{Txn: *t, Database: s.settings.env.Schema}})
	default:
		s.events = s.captures.handOver(t, s.events)
	}
}

// endBranch ends a branch that had left its session, by a statement that has done so.
func (s *Session) endBranch(plan *sqlmysql.Plan) {
	if plan.Txn.Global == "" || plan.Txn.Branch || s.cfg.Prepared == nil {
		return
	}
	t := s.cfg.Prepared.Take(plan.Txn.Global)
	if t == nil {
		return
	}
	t.Status, t.End = history.Committed, s.now
	if plan.Kind == history.Rollback {
		t.Status = history.Aborted
	}
	s.handOver(t)
}

// holdForRecording keeps the reply back that ends a transaction, where all that the transaction wrote is to be stored
// before the client hears of it.
func (s *Session) holdForRecording() {
	if !s.cfg.Durable || len(s.captures.ended) == 0 {
		return
	}
	s.holding = true
	if len(s.captures.unread) > 0 {
		s.keepConditions()
	}
	s.readCaptures()
}
