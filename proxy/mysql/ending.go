package mysql

import (
	"bytes"
	"errors"
	"syscall"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// halted returns why a statement is refused: it would begin a transaction that could not be recorded. What touches no
// row is not refused, so that clients can connect and look around.
func (s *Session) halted(plan *sqlmysql.Plan) error {
	if s.cfg.Halted == nil || s.txn.inTrans || s.txn.open != nil || !s.watches() || plan.Kind != history.Begin &&
		plan.Observation == history.Nothing {
		return nil
	}
	return s.cfg.Halted()
}

// refuseTxn answers a statement with an error in the server's place: nothing was sent.
func (s *Session) refuseTxn(seq byte, why error) {
	e := serverError{code: gomysql.ER_ERROR_ON_WRITE, state: sqlstateGeneral,
		message: "isotap begins no transaction that it cannot record: " + why.Error()}
	if errors.Is(why, syscall.ENOSPC) {
		e.code = gomysql.ER_DISK_FULL
	}
	s.counts.rowCount, s.counts.rowCountGone = -1, true
	s.toClient, _ = appendPacket(s.toClient, seq, appendErr(nil, e))
}

// A finalPacket is the packet that was last put into the output to the client: the one that ends a reply, while that
// waits.
type finalPacket struct {
	at  int  // where it begins in the output
	seq byte // its number
	set bool // it has not been sent yet
}

// Unrecorded puts an error in the place of the packet that would acknowledge a transaction which was not stored, and
// ends the session: the server has committed it, so it is neither told to be done nor to have failed.
func (s *Session) Unrecorded(now int64, why error) {
	s.now = now
	if s.final.set && s.final.at <= len(s.toClient) {
		e := serverError{gomysql.ER_ERROR_DURING_COMMIT, sqlstateTransactionUnknown,
			"the server has committed the transaction, but isotap has not recorded it, and ends the connection: " +
				why.Error()}
		s.toClient, _ = appendPacket(s.toClient[:s.final.at], s.final.seq, appendErr(nil, e))
	}
	s.holding, s.holdingHead = false, false
	s.lostServer()
	s.phase = phaseClosed
}

// A client whose server goes away sees its connection end, as it would without isotap: clients tell a lost connection
// by that (their error 2013), and some take an error packet for one statement's failure, on a connection that lives.
// An error comes from the server alone.

// keepLastError keeps the error by which the server ends the connection where it answers an exchange that the client
// does not know of. One that the client knows is a farewell: nothing is asked behind it.
func (s *Session) keepLastError(x *exchange, payload []byte) {
	s.lastError = nil
	s.farewell = x.failed && x.visible && endsConnection(x.err.code) && x.err.code != erQueryInterruptedBy
	if x.failed && !x.visible && endsConnection(x.err.code) {
		s.lastError = bytes.Clone(payload)
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
	case gomysql.ER_SERVER_SHUTDOWN, erConnectionKilled, erClientInteraction, erSessionWasKilled,
		erServerOfflineMode, erQueryInterruptedBy:
		return true
	}
	return false
}

// passLastError gives the client the error by which the server has ended the connection: as the reply that it
// waits for, or, as servers do, unasked.
func (s *Session) passLastError() {
	if s.lastError == nil || s.phase != phaseCommand {
		return
	}
	seq, within := s.pending.nextSeq()
	if within {
		return
	}
	if s.command != nil {
		seq = packets(len(s.command))
	}
	s.toClient, _ = appendPacket(s.toClient, seq, s.lastError)
}

// lostServer settles what was open when the server went away: what waited for an answer may have
// been done, everything else was rolled back.
func (s *Session) lostServer() {
	status := history.Aborted
	if q := s.postponed; q != nil && q.settles != nil && q.settles.Txn.Ends {
		status = history.Indeterminate // as below
	}
	for _, x := range s.pending.queue {
		if x.settles != nil && x.settles.Txn.Ends {
			status = history.Indeterminate // the error may have come after the commit
		}
		o := x.stmt
		if o != nil && o.plan.Txn.Ends {
			status = history.Indeterminate // be it recorded or not, as LOCK TABLES
		}
		if o != nil && o.txn != nil {
			if !o.wasInTrans && s.txn.autocommit {
				status = history.Indeterminate
			}
			o.doubtful = true
			o.downgrade(history.Inexact, history.ReasonServerLost)
			s.identities.take(o)
			s.txn.record(o, s.now)
		}
	}
	s.pending.drop()
	s.multi = nil
	s.release(s.captures.giveUpAll(history.ReasonServerLost, s.events))
	s.endOpen(status)
}

// close ends a session whose client is gone: what is still to be asked is asked first, and the entries still unread are
// read.
func (s *Session) close() {
	if q := s.postponed; q != nil {
		s.postponed = nil
		s.ask(q)
		return
	}
	if s.readCaptures() {
		return
	}
	s.endOpen(history.Aborted)
	s.phase = phaseClosed
}
