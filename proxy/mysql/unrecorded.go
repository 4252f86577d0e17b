package mysql

import (
	"errors"
	"syscall"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A finalPacket is the packet that was last put into the output to the client: the one that ends a reply, while that
// waits.
type finalPacket struct {
	at  int  // where it begins in the output
	seq byte // its number
	set bool // it has not been sent yet
}

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
