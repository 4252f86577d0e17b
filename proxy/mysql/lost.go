package mysql

import (
	"bytes"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A client whose server goes away sees its connection end, as it would without isotap: clients tell a lost connection
// by that (their error 2013), and some take an error packet for one statement's failure, on a connection that lives.
// Words come from the server alone.

// takeFarewell keeps the error by which the server ends the connection where it answers an exchange that the client
// does not know of.
func (s *Session) takeFarewell(x *exchange, payload []byte) {
	s.farewell = nil
	if x.failed && !x.visible && endsConnection(x.err.code) {
		s.farewell = bytes.Clone(payload)
	}
}

// Errors by which servers end a connection, with the names of their own sources.
const (
	erConnectionKilled   = 1927 // MariaDB: KILL, and wait_timeout
	erClientInteraction  = 4031 // MySQL: wait_timeout
	erSessionWasKilled   = 3169 // MySQL: by the group replication, say
	erServerOfflineMode  = 3032 // MySQL: offline_mode
	erQueryInterruptedBy = 1317 // a KILL of the connection may come as that of the statement
)

// endsConnection reports whether a server that sends the error may close the connection behind it.
func endsConnection(code uint16) bool {
	switch code {
	case gomysql.ER_SERVER_SHUTDOWN, erConnectionKilled, erClientInteraction, erSessionWasKilled, erServerOfflineMode,
		erQueryInterruptedBy:
		return true
	}
	return false
}

// sayFarewell gives the client the server's last words where the connection ends behind them: as the reply that it
// waits for, or, as servers do, unasked.
func (s *Session) sayFarewell() {
	if s.farewell == nil || s.phase != phaseCommand {
		return
	}
	seq := byte(0)
	for _, x := range s.exchanges {
		if x.visible && x.begun {
			return
		}
		if x.visible {
			seq = max(x.first, 1)
		}
	}
	if s.command != nil {
		seq = packets(len(s.command))
	}
	s.toClient, _ = appendPacket(s.toClient, seq, s.farewell)
}

// LoggedIn reports whether the client's first login is over.
func (s *Session) LoggedIn() bool { return s.loggedIn }

// LoginOverdue ends a session that took too long to log in.
func (s *Session) LoginOverdue(now int64) {
	s.now = now
	if s.phase == phaseGreeting {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "", "the server did not greet isotap in time")
		return
	}
	s.turnAway(gomysql.ER_NET_READ_INTERRUPTED, sqlstateCommunicationLink, "Got timeout reading communication packets")
}

// settle has the transaction take a finished statement's end, and does what follows.
func (s *Session) settle(o *observed, x *exchange) {
	if !s.watches() {
		return
	}
	ended, then := s.txn.settle(o, &x.reply, s.now)
	s.handOver(ended)
	switch then {
	case askServer:
		s.askTransaction(o.plan, func() { s.handOver(s.txn.settleError(o, &x.reply, s.now)) })
	case giveUpCaptures:
		s.loseCaptures(history.ReasonLostSavepoint)
	}
}

// askTransaction asks the server, by a ping, whether it still has a transaction open. settles is the plan of
// the statement whose error is the reason to ask; nil when there is none.
func (s *Session) askTransaction(settles *sqlmysql.Plan, then func()) {
	s.send(&exchange{read: (*Session).singleReply, settles: settles, done: func(s *Session, _ *exchange) error {
		s.counts.rowCountGone = true
		then()
		return nil
	}}, []byte{gomysql.COM_PING})
}

// endOpen ends the session's transaction, if there is one.
func (s *Session) endOpen(status history.Status) { s.handOver(s.txn.end(status, s.now)) }

// handOver has a transaction recorded that has ended, once the entries of its statements are read. Nil is none.
func (s *Session) handOver(t *history.Txn) {
	if t != nil {
		s.events = s.captures.handOver(t, s.events)
	}
}

// lostServer settles what was open when the server went away: what waited for an answer may have
// been done, everything else was rolled back.
func (s *Session) lostServer() {
	status := history.Aborted
	for _, x := range s.exchanges {
		if x.settles != nil && x.settles.Txn.Ends {
			status = history.Indeterminate // the error may have come after the commit
		}
		if o := x.stmt; o != nil && o.txn != nil {
			if o.plan.Txn.Ends || !o.was && s.txn.autocommit {
				status = history.Indeterminate
			}
			o.doubtful = true
			o.lower(history.Inexact, history.ReasonServerLost)
			s.seen.take(o)
			s.txn.record(o, s.now)
		}
	}
	s.exchanges, s.chain = nil, nil
	s.release(s.captures.giveUpAll(history.ReasonServerLost, s.events))
	s.endOpen(status)
}
