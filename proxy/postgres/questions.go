package postgres

import (
	"bytes"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// askSettings asks the server for the session's settings, if it can be asked now, and reports whether it did.
// Inside a transaction that has no snapshot yet and keeps its first one the question would take it.
func (s *Session) askSettings() bool {
	switch {
	case s.txn.status == txnIdle:
	case s.txn.status == txnOpen && (s.txn.snapshot || s.txn.level == history.ReadCommitted):
	default:
		return false
	}
	s.sendQuestion()
	return true
}

// sendQuestion asks the server for the session's settings.
func (s *Session) sendQuestion() { s.sendOwn(s.takeSettings, []byte(s.settings.question())) }

// sendOwn sends a text of isotap's own. The client's messages wait until take was given the answer.
func (s *Session) sendOwn(take func(*answer), text []byte) {
	s.asking = true
	s.expect(pendingReply{kind: pendingQuery, form: &form{}, own: true, silent: true, answer: &answer{take: take}})
	s.toServer = appendMessage(s.toServer, msgQuery, append(text, 0)...)
}

// askXID asks for the id of the transaction before a statement that is to commit or prepare it, where the server's log
// is read and what the transaction wrote may not have told it. The statement is sent right behind the question: nobody
// waits. While something else is pending, what that may write decides, and in a transaction that has failed by then the
// question fails, too, and does no harm. It is one only between segments: see [Session.askXIDWithin] for within one. A
// cancel request that meets the question ends the transaction, as it may end a COMMIT: the client then hears of it (see
// [Session.uncommitted]).
func (s *Session) askXID(p *sqlpostgres.Plan) {
	if !s.cfg.Logged || p == nil || !p.Commits() {
		return
	}
	switch {
	case s.pipeline.idle():
		if s.txn.status != txnOpen || !s.txn.snapshot || !s.txn.hidesXID() {
			return
		}
	case !s.speculative.hides, !s.pipeline.betweenSegments():
		return
	}
	s.speculative.hides = false
	s.expect(pendingReply{kind: pendingQuery, form: &form{}, own: true, silent: true, answer: &answer{take: s.takeXID}})
	s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(s.askingXID()), 0)...)
}

// askingXID is the text of the question.
func (s *Session) askingXID() string { return "SELECT " + s.settings.env.AssignedXID() }

// takeXID takes the answer, which is NULL where the transaction has no id. It may have had one before, where a
// procedure can have committed.
func (s *Session) takeXID(a *answer) {
	if a.failed != nil {
		s.txn.interrupt(a)
		return
	}
	if len(a.values) != 1 {
		return
	}
	if v := a.values[0]; v == nil {
		if s.txn.block && !s.txn.beyond {
			s.txn.tell(history.NoXID)
		}
	} else if xid, ok := readNumber(v, formatText, 4); ok {
		s.txn.tell(uint32(xid))
	}
}

// uncommitted returns what the client is told of its statement to commit, where isotap's question before that was
// canceled: the error, in the place of a success by the name of ROLLBACK that nobody looks at. Where replies to what
// was sent behind the statement follow, the protocol has no room for an error, and the name has to do.
func (s *Session) uncommitted(x *pendingReply, m message) message {
	if s.txn.interrupted == nil || m.kind != msgCommandComplete || tagOf(m) != "ROLLBACK" || !s.pipeline.endsBehind(x) {
		return m
	}
	return message{kind: msgErrorResponse, body: s.txn.interrupted[headBytes:], raw: s.txn.interrupted}
}

// tagOf returns the tag of a CommandComplete.
func tagOf(m message) string { return string(bytes.TrimSuffix(m.body, []byte{0})) }

// takeAnswer takes a message of the reply to isotap's own question.
func (s *Session) takeAnswer(x *pendingReply, m message) error {
	a := x.answer
	switch m.kind {
	case msgDataRow:
		r := reader{b: m.body}
		for range r.uint16() {
			a.values = append(a.values, append([]byte(nil), r.value()...))
		}
		return r.err
	case msgCommandComplete:
		if x.kind == pendingExecute {
			s.replyEnds()
			a.take(a)
		}
		return nil
	case msgRowDescription:
		return nil
	case msgReadyForQuery:
	default:
		return unexpected(m, x)
	}
	if len(m.body) != 1 || x.kind == pendingExecute {
		return unexpected(m, x)
	}
	s.txn.status = txnStatus(m.body[0])
	s.replyEnds()
	s.asking = false
	a.take(a)
	if s.phase == phaseAsk && s.settings.stale {
		s.sendQuestion()
		return nil
	}
	if s.phase == phaseAsk { // the client's login has waited for this
		s.toClient = append(s.toClient, m.raw...)
		s.loggedIn()
	}
	return nil
}

// takeSettings takes the answer to the question. Without it the session's statements are not rewritten.
func (s *Session) takeSettings(a *answer) {
	level, problem := s.settings.read(a)
	if problem != "" {
		s.note("cannot read the session's settings (%s): its statements go unobserved", problem)
		return
	}
	if s.txn.status == txnOpen {
		s.txn.readLevel(level)
		s.speculative.level = level
	} else {
		s.speculative = speculativeTxn{level: s.settings.level}
	}
}

// loggedIn begins the session's statements: with a planner for its database, if there is one.
func (s *Session) loggedIn() {
	s.phase = phaseReady
	if !s.settings.known {
		s.copyOn()
		return
	}
	s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.settings.database, Begins: true}})
	s.planning = true
}

// findPlanner finds the planner once the tables have been read that it rests on.
func (s *Session) findPlanner() {
	s.planning = false
	if s.planner = s.cfg.Planners(s.settings.database); s.planner == nil {
		s.note("the tables of database %q are not known: the session goes on unobserved", s.settings.database)
		s.copyOn()
	}
}
