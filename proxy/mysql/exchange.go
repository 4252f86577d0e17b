package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// An exchange is one command sent to the server and the reply that is due. The queue of exchanges is
// answered in order.
type exchange struct {
	// read takes one packet of the reply and says whether it was the last. There is one for each
	// reply grammar of the protocol (reply.go).
	read func(s *Session, x *exchange, seq byte, payload []byte) (done bool, err error)
	// done runs after the last packet. It may send further exchanges.
	done func(s *Session, x *exchange) error
	// row is given the rows of an exchange that is isotap's own.
	row func(payload []byte) error

	visible bool // the client gets the reply
	// stmt is the client's statement that the exchange runs; nil for everything else.
	stmt *observed

	reply

	hidden  int // columns at the end that the client does not see
	carries int // columns before these that the client does not see either, known by their names
	// disguise is the reply kind of a statement that describes tables; rewrite.Unchanged for all others.
	disguise rewrite.Reply
	conceal  concealment
	exposed  int  // COM_STMT_PREPARE: columns of isotap's among those that the plan shows
	swallow  bool // the client gets an OK packet in place of the result set
	// renumber says that the client gets the reply under other packet numbers than the server sent it;
	// seq is then the number of the client's next one.
	renumber bool
	seq      byte
	// first is the number that the client expects on the reply's first packet. It goes on from those of
	// the command, which may have taken another number of packets than what went upstream.
	first byte
	// added is how many warnings of isotap's the server counts in the reply.
	added int
	// instead are the rows that the client gets in the place of the server's; nil: the server's.
	instead [][]byte
	// part says that the reply is one of a chain's, and more that the client gets others behind it.
	part, more bool
	// retry says that the statement as rewritten was refused, and the original is to be run.
	retry bool
	// begun says that something of the reply has gone to the client.
	begun bool
	// beside is the client's statement that the exchange is the companion of.
	beside *observed
	// settles is the plan of the failed statement whose effect on the transaction the exchange finds out.
	settles *sqlmysql.Plan
	// long says that a parameter came by COM_STMT_SEND_LONG_DATA: the statement cannot be run again.
	long bool
	// prepared is the statement that COM_STMT_PREPARE makes or that is executed or fetched from.
	prepared *prepared
}

// send queues an exchange whose command is payload.
func (s *Session) send(x *exchange, payload []byte) {
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
	s.exchanges = append(s.exchanges, x)
}

// sendFor queues an exchange whose command is payload where the client sent one of asked bytes.
func (s *Session) sendFor(x *exchange, payload []byte, asked int) {
	x.first = packets(asked)
	if x.part {
		x.first = s.chain.seq
	}
	if x.renumber || packets(len(payload)) != x.first {
		x.renumber, x.seq = true, x.first
	}
	s.send(x, payload)
}

// sendQuery queues a query of isotap's own.
func (s *Session) sendQuery(x *exchange, sql string) {
	x.read = (*Session).queryReply
	s.send(x, append([]byte{gomysql.COM_QUERY}, sql...))
}

// replyPacket gives a packet to the exchange that it answers, and goes on with the waiting command
// when that was the last one.
func (s *Session) replyPacket(seq byte, payload []byte) error {
	if len(s.exchanges) == 0 {
		return s.unsolicited(seq, payload)
	}
	x := s.exchanges[0]
	done, err := x.read(s, x, seq, payload)
	if err != nil || !done {
		return err
	}
	s.takeFarewell(x, payload)
	s.exchanges = s.exchanges[1:]
	if x.done != nil {
		if err := x.done(s, x); err != nil {
			return err
		}
	}
	return s.goOn()
}

// goOn continues when no exchange is in flight: with the command that waited for them, or with the
// end of a session whose client is gone.
func (s *Session) goOn() error {
	if len(s.exchanges) > 0 {
		return nil
	}
	s.exchanges = nil
	if s.chain != nil {
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
