package mysql

import (
	"bytes"
	"fmt"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// Commands that go-mysql has no name for.
const comResetConnection = 0x1f

// clientCommand takes one command of the client.
func (s *Session) clientCommand(seq byte, payload []byte) error {
	if seq != 0 || len(payload) == 0 {
		return fmt.Errorf("%w from the client: %d bytes numbered %d where a command begins", errUnexpected,
			len(payload), seq)
	}
	return s.dispatch(payload)
}

// dispatch sends a command to the server, or what must go before it; the command then waits.
func (s *Session) dispatch(payload []byte) error {
	command := payload[0]
	if q := s.postponed; q != nil { // the server has not closed the connection
		s.postponed = nil
		s.wait(payload)
		s.ask(q)
		return nil
	}
	if s.settings.stale && (command == gomysql.COM_QUERY || command == gomysql.COM_STMT_PREPARE ||
		command == gomysql.COM_STMT_EXECUTE) {
		s.wait(payload)
		s.askSettings()
		return nil
	}
	switch command {
	case gomysql.COM_QUERY:
		s.query(payload)
	case gomysql.COM_STMT_PREPARE:
		s.prepare(payload)
	case gomysql.COM_STMT_EXECUTE:
		return s.execute(payload)
	case gomysql.COM_STMT_SEND_LONG_DATA:
		s.sendLongData(payload)
	case gomysql.COM_STMT_CLOSE:
		s.closeStatement(payload)
	case gomysql.COM_STMT_RESET:
		s.resetStatement(payload)
	case gomysql.COM_STMT_FETCH:
		s.fetch(payload)
	case gomysql.COM_QUIT:
		return s.quit(payload)
	case comResetConnection, gomysql.COM_CHANGE_USER:
		s.renew(payload)
	case gomysql.COM_INIT_DB:
		s.initDB(payload)
	default:
		s.passCommand(payload)
	}
	return nil
}

// wait keeps a command until the exchanges before it are answered.
func (s *Session) wait(payload []byte) { s.command = bytes.Clone(payload) }

// passCommand sends a command as it is. One whose reply isotap cannot read makes the session a plain
// copy of bytes from here on: its statements go unobserved.
func (s *Session) passCommand(payload []byte) {
	x := &exchange{visible: true}
	switch payload[0] {
	case gomysql.COM_FIELD_LIST:
		x.grammar = fieldListReply
	case gomysql.COM_STATISTICS:
		x.grammar = textReply
	case gomysql.COM_PROCESS_INFO:
		x.grammar = resultReply
	case gomysql.COM_SET_OPTION:
		option := bytes.Clone(payload)
		x.done = func(x *exchange) error {
			s.setOption(option, x)
			return s.commandDone(x)
		}
	case gomysql.COM_PING:
		x.purpose = commandPurpose
		if !s.conditions.gone {
			x.added = s.conditions.added // its reply counts what the statement before raised
		}
	case gomysql.COM_CREATE_DB, gomysql.COM_DROP_DB, gomysql.COM_REFRESH, gomysql.COM_SHUTDOWN,
		gomysql.COM_PROCESS_KILL, gomysql.COM_DEBUG, gomysql.COM_REGISTER_SLAVE:
		x.purpose = commandPurpose
	case gomysql.COM_SLEEP:
		if s.compresses { // a packet within a compressed one: client and server would wait for each other
			s.note("the client compresses although isotap does not offer it: switch compression off in the client")
			s.turnAway(gomysql.ER_NET_UNCOMPRESS_ERROR, sqlstateCommunicationLink,
				"compression is not offered here: switch it off in the client")
			return
		}
		fallthrough
	default:
		s.note("command 0x%02x is not known: the session goes on unobserved", payload[0])
		s.loseCaptures(history.ReasonUnknownCommand)
		s.endOpen(history.Indeterminate)
		s.toServer, _ = appendPacket(s.toServer, 0, payload)
		s.phase = phaseCopy
		return
	}
	s.send(x, payload)
}

// commandDone takes what a command that is no statement left behind. Some of them commit.
func (s *Session) commandDone(x *exchange) error {
	s.conditions.take(&x.reply, nil, x.added)
	if x.failed {
		return nil
	}
	s.counts.rowCount, s.counts.rowCountGone = int64(x.ok.affected), false
	if !s.txn.inTrans {
		s.endOpen(history.Committed)
	}
	return nil
}

// quit reads what is still to be read, and then lets the client go.
func (s *Session) quit(payload []byte) error {
	if s.readCaptures() {
		s.wait(payload)
		return nil
	}
	s.endOpen(history.Aborted)
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
	s.phase = phaseClosed
	return nil
}

// renew passes RESET CONNECTION and CHANGE USER on. The server rolls an open transaction back and
// forgets the session's variables, so captured entries are read first.
func (s *Session) renew(payload []byte) {
	if s.readCaptures() {
		s.wait(payload)
		return
	}
	if payload[0] == gomysql.COM_CHANGE_USER {
		s.endOpen(history.Aborted)
		s.changeUser(payload)
		return
	}
	s.send(&exchange{visible: true, grammar: okReply, done: func(x *exchange) error {
		if x.failed { // an old server does not know the command: the transaction goes on
			s.ask(&transactionQuestion{then: func() {
				if !s.txn.inTrans {
					s.endOpen(history.Aborted)
				}
			}})
			return nil
		}
		s.endOpen(history.Aborted)
		s.reset()
		return nil
	}}, payload)
}

func (s *Session) initDB(payload []byte) {
	s.send(&exchange{visible: true, grammar: okReply, done: func(x *exchange) error {
		s.conditions.take(&x.reply, nil, x.added)
		s.settings.stale = s.watches() && (s.settings.stale || !x.failed)
		return nil
	}}, payload)
}

// unknownSettings is the plan for statements that isotap cannot read, because it does not know how
// the session wants them read.
var unknownSettings = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque,
	Reason: history.ReasonSettingsUnknown}, Txn: sqlmysql.TxnEffect{Ends: true}}

// passedOn is the plan for the statements of a session that only passes on.
var passedOn = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Nothing}}

func (s *Session) plan(text []byte) *sqlmysql.Plan {
	if !s.watches() {
		return passedOn
	}
	if !s.settings.known {
		return unknownSettings
	}
	return s.planSafely(text)
}

// faulty is the plan for a statement on which isotap's planner panicked. It may be anything.
var faulty = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonFault},
	Txn: sqlmysql.TxnEffect{Ends: true}, Session: sqlmysql.SessionEffect{Changes: true},
	Schema: sqlmysql.SchemaEffect{Changes: true}}

// planSafely asks the planner. A panic there is isotap's fault and must not be the client's: the statement goes
// as it is, unobserved.
func (s *Session) planSafely(text []byte) (p *sqlmysql.Plan) {
	defer func() {
		if fault := session.Caught(recover()); fault != nil {
			s.events = append(s.events, session.Event{Fault: fault})
			p = faulty
		}
	}()
	env := s.settings.env
	env.Repeats = s.readsAgain()
	env.WriteReads = s.writesRead()
	env.Lasts = s.txn.inTrans && s.txn.open != nil && s.txn.open.Level == history.RepeatableRead
	p = s.cfg.Planner.Plan(text, env)
	if (p.Upstream.Repeats || p.Upstream.Shows) && s.cfg.Planner.AreSubqueriesTooLarge(p.Shape) {
		env.Repeats, env.WriteReads = false, sqlmysql.NotAgain
		p = s.cfg.Planner.Plan(text, env)
	}
	if !p.Writes.Images.Empty() && !s.refused[weak.Make(p)].IsZero() {
		env.Unpictured = true
		p = s.cfg.Planner.Plan(text, env)
	}
	return p
}

// readsAgain reports whether a statement may read rows a second time: the same ones, without a lock, and all those
// that it read for the client, which sql_select_limit may keep from some. Under LOCK TABLES it may not name a table
// twice.
func (s *Session) readsAgain() bool {
	return s.txn.readsSnapshot(s.settings.level) && !s.settings.selectLimit && !s.settings.tablesLocked
}

// writesRead returns how a write reads the tables of its subqueries, if these can be read again: sql_select_limit may
// keep rows from some, and under LOCK TABLES a statement may not name a table twice.
func (s *Session) writesRead() sqlmysql.WriteReads {
	if s.settings.selectLimit || s.settings.tablesLocked {
		return sqlmysql.NotAgain
	}
	reads := s.txn.writesRead(s.settings.level)
	if s.settings.logsStatements && s.dialect == sqlmysql.MariaDB {
		return sqlmysql.NotAgain // of LIMIT and SYSDATE() the server warns; MySQL's copies have them at READ COMMITTED alone
	}
	return reads
}

// withholds returns why a write does not show what its subqueries read; empty where it does, or has none to show.
func (s *Session) withholds(o *pendingStatement) history.Reason {
	up := &o.plan.Upstream
	if o.rewritten && up.Shows && s.dialect == sqlmysql.TiDB && !s.txn.inTrans {
		return history.ReasonSubquery // it may plan the statement anew, and run its subqueries once more
	}
	if o.rewritten && up.Shows && (!up.MayShow(s.writesRead()) || s.cfg.Planner.AreSubqueriesTooLarge(o.plan.Shape)) {
		return history.ReasonSubquery
	}
	return history.Reason{}
}

// query sends a statement of the text protocol.
func (s *Session) query(payload []byte) {
	plan := s.plan(payload[1:])
	switch {
	case s.beginMulti(payload, plan.Upstream.Parts):
	case s.restoreConditions(plan):
		s.wait(payload)
	default:
		s.run(plan, payload)
	}
}

// run sends a statement of the text protocol by its plan.
func (s *Session) run(plan *sqlmysql.Plan, payload []byte) {
	asked := len(payload)
	if why := s.halted(plan); why != nil {
		seq := packets(asked)
		if s.multi != nil {
			seq = s.multi.seq
		}
		s.multi = nil
		s.refuseTxn(seq, why)
		return
	}
	call := s.beforeStatement(plan)
	listed := s.conditions.listed(plan, payload[1:], &s.settings.env, false)
	o := s.txn.observe(plan, &s.settings, s.now)
	o.call = call
	s.mayBeHeld(o)
	s.tellSends(o)
	payload = s.plain(plan, payload)
	if reason := s.leavesAlone(plan); !reason.IsZero() {
		o.downgrade(history.Opaque, reason)
	} else if plan.Upstream.Pieces != nil && (s.counts.rowCountGone || s.counts.foundRowsGone ||
		!plan.Upstream.Substitutes) {
		if plan.Upstream.Plain == "" {
			s.original = append(s.original[:0], payload...)
		}
		o.rewritten = true
		o.withhold(s.withholds(o))
		payload = s.rewritten(o)
	}
	x := s.statement(o)
	x.added = s.conditions.addedBy(plan, o.rewritten)
	x.show(listed)
	s.sendFor(x, payload, asked)
}

// mayBeHeld tells the provoker which statement is about to be sent. It does not for a text of several statements, whose
// client has not seen what the earlier ones read, nor under LOCK TABLES: these are not held back.
func (s *Session) mayBeHeld(o *pendingStatement) {
	if s.cfg.Provoke == nil || s.multi != nil || s.settings.tablesLocked {
		return
	}
	st := provoke.Statement{Kind: o.plan.Kind, Locking: o.plan.Locking, Shape: o.plan.Shape, Target: o.plan.Target}
	if o.txn != nil {
		st.Level = o.txn.Level
	}
	s.cfg.Provoke.Sends(st)
}

// statement is the exchange that runs a client's statement.
func (s *Session) statement(o *pendingStatement) *exchange {
	x := &exchange{grammar: resultReply, visible: true, stmt: o, purpose: statementPurpose}
	if o.rewritten {
		x.hidden, x.carries, x.okInstead = o.plan.HiddenColumns(), o.plan.Result.Carried,
			o.plan.Result.Reply == rewrite.Returning
	}
	if r := o.plan.Result.Reply; r == rewrite.Listing || r == rewrite.Definition {
		x.describes, x.renumber = r, true
	}
	if s.multi != nil {
		s.multi.link(x)
	}
	return x
}

// beforeStatement sends what must run before a statement. It need not wait for the replies. It returns what will be
// known of a CALL.
func (s *Session) beforeStatement(plan *sqlmysql.Plan) *callTrace {
	if !plan.Session.ReadsDiagnostics && s.captures.due(plan, s.now, s.settings.env.MaxPacket, s.cfg.Durable) {
		s.readCaptures()
	}
	if plan.Writes.Captured || !plan.Writes.Images.Empty() {
		s.readyCaptures()
	}
	return s.traceCall(plan)
}

// leavesAlone returns why a statement goes unchanged although its plan would change it; empty when it
// does not.
func (s *Session) leavesAlone(plan *sqlmysql.Plan) history.Reason {
	switch {
	case plan.Upstream.Pieces == nil:
		return history.Reason{}
	case s.txn.unrecorded.Full():
		return history.ReasonTxnMemory
	}
	if plan.Upstream.MayHideLocks && s.txn.readsLock(plan.Locking, s.settings.level) {
		return history.ReasonPlan
	}
	if plan.Upstream.Repeats && (!s.readsAgain() ||
		s.cfg.Planner.AreSubqueriesTooLarge(plan.Shape)) {
		return history.ReasonSubquery
	}
	if plan.Upstream.Shows && s.settings.tablesLocked {
		return history.ReasonSubquery
	}
	if plan.Result.Collects && (s.settings.selectLimit || s.cfg.Planner.IsTooLarge(plan.Shape)) {
		return history.ReasonUnion
	}
	if hasArrays(plan) && s.cfg.Planner.IsTooLarge(plan.Shape) {
		return history.ReasonLargeAggregate
	}
	if s.cfg.Planner.IsMisplanned(plan.Shape) {
		return history.ReasonMisplanned
	}
	return s.refused[weak.Make(plan)]
}

// rewritten returns the command that goes upstream for a text statement. It is valid until the next one.
func (s *Session) rewritten(o *pendingStatement) []byte {
	values := s.values(o)
	s.scratch = append(s.scratch[:0], gomysql.COM_QUERY)
	s.scratch = o.plan.Append(s.scratch, func(b []byte, h sqlmysql.Hole, ordinal int) []byte {
		return sqlmysql.AppendHole(b, h, ordinal, &values)
	})
	return s.scratch
}

// values is what fills the holes of a statement's plan.
func (s *Session) values(o *pendingStatement) sqlmysql.Values {
	var v sqlmysql.Values
	s.counts.fill(&v)
	v.Casts, v.Withheld = s.dialect == sqlmysql.TiDB, o.withheld
	if o.txn != nil {
		v.Tag = o.tag()
	}
	return v
}

// beginMulti begins to send the statements of a text one by one, where the plan knows the text's statements and the
// server would run them.
func (s *Session) beginMulti(command []byte, ends []int) bool {
	if len(ends) < 2 || s.caps&gomysql.CLIENT_MULTI_STATEMENTS == 0 {
		return false
	}
	s.multi = newMultiStatement(command, ends, s.settings.env)
	s.sendPart()
	return true
}

// sendPart sends the statement that is next, or what must be known before it: goOn comes back then.
func (s *Session) sendPart() {
	command := s.multi.command()
	if plan := s.plan(command[1:]); !s.restoreConditions(plan) {
		s.run(plan, command)
	}
}

// partDone takes the end of the reply of one of a text's statements, and reports whether the statement is to be sent
// again.
func (s *Session) partDone(x *exchange) (again bool) {
	if s.multi == nil || !x.part {
		return false
	}
	switch s.multi.done(x) {
	case partSentAgain:
		s.sendPart()
		return true
	case lastPart:
		s.multi = nil
	}
	return false
}

// nextPart goes on with the next statement of the text. What a statement changed may change what the rest means.
func (s *Session) nextPart() {
	if s.settings.stale {
		s.askSettings()
		return
	}
	if s.multi.outdated(&s.settings) {
		s.multi.cutAgain(s.plan(s.multi.rest()).Upstream.Parts, s.settings.env)
	}
	s.sendPart()
}

// setOption follows COM_SET_OPTION, which turns texts of several statements on and off.
func (s *Session) setOption(payload []byte, x *exchange) {
	if x.failed || len(payload) < 3 {
		return
	}
	switch payload[1] {
	case 0:
		s.caps |= gomysql.CLIENT_MULTI_STATEMENTS
	case 1:
		s.caps &^= gomysql.CLIENT_MULTI_STATEMENTS
	}
}

// plain returns a statement's command in the form that stands for the client's own text. It is valid until
// the next command.
func (s *Session) plain(plan *sqlmysql.Plan, payload []byte) []byte {
	if plan.Upstream.Plain == "" {
		return payload
	}
	s.original = append(append(s.original[:0], payload[0]), plan.Upstream.Plain...)
	return s.original
}
