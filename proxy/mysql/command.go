package mysql

import (
	"bytes"
	"fmt"
	"strconv"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
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
		x.read = (*Session).fieldListReply
	case gomysql.COM_STATISTICS:
		x.read = (*Session).stringReply
	case gomysql.COM_PROCESS_INFO:
		x.read = (*Session).queryReply
	case gomysql.COM_SET_OPTION:
		option := bytes.Clone(payload)
		x.read, x.done = (*Session).singleReply, func(s *Session, x *exchange) error {
			s.setOption(option, x)
			return s.commandDone(x)
		}
	case gomysql.COM_CREATE_DB, gomysql.COM_DROP_DB, gomysql.COM_REFRESH, gomysql.COM_SHUTDOWN,
		gomysql.COM_PROCESS_KILL,
		gomysql.COM_DEBUG, gomysql.COM_PING, gomysql.COM_REGISTER_SLAVE:
		x.read, x.done = (*Session).singleReply, (*Session).commandDone
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
	s.send(&exchange{visible: true, read: (*Session).singleReply, done: func(s *Session, x *exchange) error {
		if x.failed { // an old server does not know the command: the transaction goes on
			s.askTransaction(nil, func() {
				if !s.txn.inTrans {
					s.endOpen(history.Aborted)
				}
			})
			return nil
		}
		s.endOpen(history.Aborted)
		s.reset()
		return nil
	}}, payload)
}

func (s *Session) initDB(payload []byte) {
	s.send(&exchange{visible: true, read: (*Session).singleReply, done: func(s *Session, x *exchange) error {
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
	return s.cfg.Planner.Plan(text, s.settings.env)
}

// query sends a statement of the text protocol.
func (s *Session) query(payload []byte) {
	plan := s.plan(payload[1:])
	switch {
	case s.begin(payload, plan.Upstream.Parts):
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
		if s.chain != nil {
			seq = s.chain.seq
		}
		s.chain = nil
		s.refuseTxn(seq, why)
		return
	}
	s.beforeStatement(plan)
	listed := s.conditions.listed(plan, payload[1:], &s.settings.env, false)
	o := s.txn.observe(plan, &s.settings, s.now)
	payload = s.plain(plan, payload)
	if reason := s.leavesAlone(plan); !reason.IsZero() {
		o.lower(history.Opaque, reason)
	} else if plan.Upstream.Pieces != nil && (s.counts.rowCountGone || s.counts.foundRowsGone ||
		!plan.Upstream.Substitutes) {
		if plan.Upstream.Plain == "" {
			s.original = append(s.original[:0], payload...)
		}
		o.rewritten = true
		payload = s.rewritten(o)
	}
	o.stmt.Predicates = s.settings.predicates(o, nil)
	x := s.statement(o)
	x.added = s.conditions.addedBy(plan, o.rewritten)
	x.show(listed)
	s.sendFor(x, payload, asked)
}

// statement is the exchange that runs a client's statement.
func (s *Session) statement(o *observed) *exchange {
	x := &exchange{read: (*Session).queryReply, visible: true, stmt: o, done: (*Session).statementDone}
	if o.rewritten {
		x.hidden, x.carries, x.swallow = o.plan.HiddenColumns(), o.plan.Result.Carried,
			o.plan.Result.Reply == rewrite.Returning
	}
	if r := o.plan.Result.Reply; r == rewrite.Listing || r == rewrite.Definition {
		x.disguise, x.renumber = r, true
	}
	if s.chain != nil {
		s.chain.link(x)
	}
	return x
}

// beforeStatement sends what must run before a statement. It need not wait for the replies.
func (s *Session) beforeStatement(plan *sqlmysql.Plan) {
	if !plan.Session.ReadsDiagnostics && s.captures.due(plan, s.now, s.settings.env.MaxPacket, s.cfg.Durable) {
		s.readCaptures()
	}
	if plan.Writes.Captured || !plan.Writes.Images.Empty() {
		s.readyCaptures()
	}
}

// leavesAlone says why a statement goes unchanged although its plan would change it; empty when it
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
	if hasArrays(plan) && s.cfg.Planner.IsTooLarge(plan.Shape) {
		return history.ReasonLargeAggregate
	}
	if s.cfg.Planner.IsMisplanned(plan.Shape) {
		return history.ReasonMisplanned
	}
	return s.refused[weak.Make(plan)]
}

// rewritten returns the command that goes upstream for a text statement. It is valid until the next one.
func (s *Session) rewritten(o *observed) []byte {
	values := s.values(o)
	s.scratch = append(s.scratch[:0], gomysql.COM_QUERY)
	s.scratch = o.plan.Append(s.scratch, func(b []byte, h sqlmysql.Hole, ordinal int) []byte {
		return sqlmysql.AppendHole(b, h, ordinal, &values)
	})
	return s.scratch
}

// values is what fills the holes of a statement's plan.
func (s *Session) values(o *observed) sqlmysql.Values {
	var v sqlmysql.Values
	s.counts.fill(&v)
	v.Deprecates = s.conditions.cleared
	if o.txn != nil {
		v.Tag = o.tag()
	}
	return v
}

// statementDone takes the end of a statement's reply, stage by stage. Each stage needs what those before it have left.
func (s *Session) statementDone(x *exchange) error {
	defer s.seen.forget() // its rows are the statement's by then
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
	o.doubt(x)

	// What the client may ask about the statement, before anything of isotap's own runs and changes the answer.
	s.counts.take(&x.reply, x.swallow)
	s.conditions.take(&x.reply, o.plan, x.added)

	// The statement goes into its transaction. What comes later of it is added to it there.
	s.txn.record(o, s.now)
	s.captures.await(o, x.failed, x.ok.lastInsertID, s.settings.literals.increment)
	s.effects(o, x)

	// The transaction may end with the statement. It must know by then which answers it has to wait for.
	s.readVariables(o, x)
	s.settle(o, x)

	// Queries of isotap's own: a companion runs only where the transaction goes on, captures are read only once it
	// has ended.
	s.accompany(o, x)
	s.holdForRecording()
	return nil
}

// takeResult takes how many rows the statement had, and its error.
func (s *Session) takeResult(o *observed, x *exchange) {
	o.stmt.Rows, o.stmt.Affected = x.rows, x.ok.affected
	if x.swallow {
		o.stmt.Rows, o.stmt.Affected = 0, x.rows
	}
	if x.opens(x.ok) {
		o.lower(history.Inexact, history.ReasonCursor) // the client need not fetch all of it, nor in this transaction
		if x.hidden+len(x.conceal.columns) > 0 {
			x.prepared.cursor = &cursor{o, x.types, x.fields, x.hidden, x.conceal}
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

// access derives from a reply what the statement read or wrote.
func (s *Session) access(o *observed, x *exchange) {
	if !o.rewritten {
		return
	}
	if o.plan.Result.Reply != rewrite.Unchanged {
		// A DELETE that failed deleted nothing, whatever it had returned by then.
		if o.plan.Kind != history.Delete || !x.failed {
			s.takeSeen(o, x.ok.warnings > 0)
		}
		return
	}
	if x.failed {
		return
	}
	o.takeCounts(&x.reply, s.caps&gomysql.CLIENT_FOUND_ROWS != 0)
	o.inserted(&s.txn.unrecorded)
}

// takeSeen gives a statement the rows whose identities came out of its reply. Those of its kind that read too much for
// an array are left alone from then on.
func (s *Session) takeSeen(o *observed, warned bool) {
	if s.seen.judgeArrays(o, warned) {
		s.cfg.Planner.TooLarge(o.plan.Shape)
	}
	s.seen.take(o)
}

// effects takes what a statement changed for those after it.
func (s *Session) effects(o *observed, x *exchange) {
	plan := o.plan
	if plan.Session.Changes {
		s.settings.stale = true
	}
	s.txn.followNext(o, x.failed)
	s.settings.tempTables = sqlmysql.AddTempTables(s.settings.tempTables, plan.Schema.CreatesTemp)
	if !x.failed {
		s.settings.tempTables = sqlmysql.DropTempTables(s.settings.tempTables, plan.Schema.DropsTemp)
	}
	s.settings.env.TempTables = s.settings.tempTables
	if plan.Schema.Changes {
		changed := &session.Schema{Tables: plan.Schema.Changed, References: plan.Schema.References,
			Triggers: plan.Schema.Triggers}
		// CREATE TABLE IF NOT EXISTS warns where there is a table, which may look different.
		if o.rewritten && !x.failed && x.ok.warnings == 0 && len(plan.Schema.Created) > 0 {
			changed.Created = plan.Schema.Created[1:]
		}
		s.events = append(s.events, session.Event{Schema: changed})
	}
}

const maxRefused = 1000

// refuse remembers that the server does not take the statement as rewritten.
func (s *Session) refuse(o *observed, e serverError) {
	if s.refused == nil || len(s.refused) >= maxRefused {
		s.refused = make(map[weak.Pointer[sqlmysql.Plan]]history.Reason)
	}
	s.refused[weak.Make(o.plan)] = history.ReasonRefused.With(strconv.Itoa(int(e.code)))
}

// runOriginal runs the statement as the client wrote it, after the server refused the rewritten one.
func (s *Session) runOriginal(o *observed, x *exchange) error {
	o.rewritten = false
	o.lower(history.Opaque, s.refused[weak.Make(o.plan)])
	if x.prepared != nil {
		s.command = bytes.Clone(s.original)
		s.resumed = o
		return nil
	}
	s.sendFor(s.statement(o), s.original, len(s.original))
	return nil
}
