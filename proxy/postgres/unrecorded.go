package postgres

import (
	"errors"
	"syscall"

	"github.com/isotap/isotap/history"
)

// noSuchPortal is what the server gets in the place of a statement that is refused: as a text it has an error in its
// syntax, and no portal has such a name. So the server itself goes on as after any error, with what the client sent
// ahead, and the client gets the error in its place in the order of replies.
const noSuchPortal = "isotap: not recorded"

// halted returns why a text or portal is refused: it would begin a transaction that could not be recorded. What touches
// no row is not refused, so that clients can connect and look around. What follows messages whose outcome is not known
// yet may be in a transaction of theirs.
func (s *Session) halted(f *form) error {
	if s.cfg.Halted == nil || s.txn.status != txnIdle || s.txn.block || s.txn.open != nil || s.speculative.block ||
		!s.watches() ||
		s.pipeline.runs() {
		return nil
	}
	for at := 0; ; at++ {
		plan := f.plan(at)
		if plan == nil {
			return nil
		}
		if plan.Kind == history.Begin || plan.Observation != history.Nothing {
			return s.cfg.Halted()
		}
	}
}

// haltedError is the ErrorResponse of a statement that is refused.
func haltedError(why error) message {
	state := sqlstateIOError
	if errors.Is(why, syscall.ENOSPC) {
		state = sqlstateDiskFull
	}
	raw := errorResponse("ERROR", state, "isotap begins no transaction that it cannot record: "+why.Error(), "")
	return message{kind: msgErrorResponse, body: raw[headBytes:], raw: raw}
}

// Unrecorded puts an error in the place of what would acknowledge a transaction that was not stored, and ends the
// session: the server has committed it, so it is neither told to be done nor to have failed.
func (s *Session) Unrecorded(now int64, why error) {
	s.now = now
	if len(s.long.parts) > 0 { // the acknowledgment may be among them
		for s.long.next() != nil {
		}
		s.ackAt, s.toClient = 0, nil
	}
	if s.ackAt <= len(s.toClient) {
		s.toClient = append(s.toClient[:s.ackAt], fatal(sqlstateTransactionResolutionUnknown,
			"the server has committed the transaction, but isotap has not recorded it, and ends the connection",
			why.Error())...)
	}
	s.release()
	s.close()
}
