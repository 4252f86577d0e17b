package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// send queues an exchange whose command is payload.
func (s *Session) send(x *exchange, payload []byte) {
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
	s.pending.add(x)
}

// sendFor queues an exchange whose command is payload where the client sent one of asked bytes.
func (s *Session) sendFor(x *exchange, payload []byte, asked int) {
	x.first = packets(asked)
	if x.part {
		x.first = s.multi.seq
	}
	if x.renumber || packets(len(payload)) != x.first {
		x.renumber, x.seq = true, x.first
	}
	s.send(x, payload)
}

// sendQuery queues a query of isotap's own.
func (s *Session) sendQuery(x *exchange, sql string) {
	x.grammar = resultReply
	s.send(x, append([]byte{gomysql.COM_QUERY}, sql...))
}

// replyPacket gives a packet to the exchange that it answers, and goes on with the waiting command
// when that was the last one.
func (s *Session) replyPacket(seq byte, payload []byte) error {
	x := s.pending.first()
	if x == nil {
		return s.unsolicited(seq, payload)
	}
	done, err := s.readReply(x, seq, payload)
	if err != nil || !done {
		return err
	}
	s.keepLastError(x, payload)
	s.pending.answered()
	if err := s.replyDone(x); err != nil {
		return err
	}
	return s.goOn()
}

// readReply takes one packet of a reply, and reports whether it was the last.
func (s *Session) readReply(x *exchange, seq byte, payload []byte) (done bool, err error) {
	switch x.grammar {
	case okReply:
		return s.singleReply(x, seq, payload)
	case textReply:
		return s.stringReply(x, seq, payload)
	case fieldListReply:
		return s.fieldListReply(x, seq, payload)
	case prepareReply:
		return s.prepareReply(x, seq, payload)
	case refusedReply:
		return true, s.replyError(x, 1, appendErr(nil, *x.refusal))
	}
	return s.queryReply(x, seq, payload)
}

// replyDone does what follows on a reply.
func (s *Session) replyDone(x *exchange) error {
	switch x.purpose {
	case statementPurpose:
		return s.statementDone(x)
	case preparePurpose:
		return s.prepareDone(x)
	case fetchPurpose:
		return s.fetchDone(x)
	case companionPurpose:
		return s.companionDone(x)
	case commandPurpose:
		return s.commandDone(x)
	}
	if x.done != nil {
		return x.done(x)
	}
	return nil
}

// goOn continues when no exchange is in flight: with the command that waited for them, or with the
// end of a session whose client is gone.
func (s *Session) goOn() error {
	if !s.pending.none() {
		return nil
	}
	if s.multi != nil {
		s.nextPart()
		return nil
	}
	if s.phase == phaseClosing {
		s.close()
		return nil
	}
	if s.command == nil {
		return nil
	}
	payload := s.command
	s.command = nil
	return s.dispatch(payload)
}

// unsolicited is a packet that answers nothing: the server says why it ends the session.
func (s *Session) unsolicited(seq byte, payload []byte) error {
	if payload[0] != markErr {
		return fmt.Errorf("%w from the server: nothing was asked (it begins with 0x%02x)", errUnexpected, payload[0])
	}
	s.toClient, _ = appendPacket(s.toClient, seq, payload)
	return nil
}
