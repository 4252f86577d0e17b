package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// What a session keeps in memory of what either side sends. docs/operating.md has the table of all bounds.
const (
	// maxLogin is the longest packet of a login, in bytes. Attributes and the answers of plug-ins have at most
	// 64 KiB each. A server takes as much as its max_allowed_packet from whoever connects.
	maxLogin = 256 << 10
	// longCommand is how much of a command that can be passed on unread is kept: one packet.
	longCommand = maxPayload
	// assumedPacket stands in for a max_allowed_packet that is not known: MySQL's default.
	assumedPacket = 64 << 20
	// maxReply is the longest payload of the server: the largest max_allowed_packet that there is.
	maxReply = 1 << 30
)

// tooLarge is what a server says to a packet of more than max_allowed_packet bytes. It then ends the session.
var tooLarge = serverError{gomysql.ER_NET_PACKET_TOO_LARGE, sqlstateCommunicationLink,
	"Got a packet bigger than 'max_allowed_packet' bytes"}

// admits reports whether the client's next packet, of which p holds the rest of the header, may be kept. One that may
// not ends the session as it ends on a server: with an error, when it would have been read.
func (s *Session) admits(p []byte) bool {
	var header [headerBytes]byte
	n := copy(header[:], s.clientBuf)
	if n == headerBytes || n+len(p) < headerBytes {
		return true
	}
	copy(header[n:], p)
	if len(s.clientPayload)+payloadLen(header[:]) < s.clientLimit() {
		return true
	}
	s.client.seq = header[3]
	if s.phase == phaseCommand {
		s.lostServer()
	}
	s.sendClient(appendErr(nil, tooLarge))
	s.forgetSecrets()
	s.phase = phaseClosed
	return false
}

// clientLimit returns below how many bytes the payload must stay that the client is sending.
func (s *Session) clientLimit() int {
	switch {
	case s.phase != phaseCommand:
		return maxLogin
	case len(s.clientPayload) == 0:
		return maxPayload + 1
	}
	switch s.clientPayload[0] {
	case gomysql.COM_STMT_EXECUTE, gomysql.COM_STMT_PREPARE, gomysql.COM_STMT_SEND_LONG_DATA: // isotap may change them
		if s.settings.known && s.settings.env.MaxPacket > 0 {
			return s.settings.env.MaxPacket
		}
		return assumedPacket
	}
	return longCommand
}

// bounded returns an error when the payload that the server is sending grows beyond what any server may send.
func (s *Session) bounded() error {
	limit := maxReply
	if s.phase < phaseCommand {
		limit = maxLogin
	}
	if len(s.serverPayload) > limit {
		return fmt.Errorf("%w: a payload of more than %d bytes", errMalformed, limit)
	}
	return nil
}

// passedLong returns the exchange of a long command whose payload begins with parts, if it can go to the server
// without being looked at further; nil where it cannot.
func (s *Session) passedLong(parts []byte) *exchange {
	switch parts[0] {
	case gomysql.COM_QUERY:
		plan := tooLong
		if !s.watches() {
			plan = passedOn
		}
		s.beforeStatement(plan)
		return s.statement(s.txn.observe(plan, &s.settings, s.now))
	case gomysql.COM_STMT_EXECUTE:
		if s.watches() {
			return nil
		}
		x := s.statement(s.txn.observe(passedOn, &s.settings, s.now))
		x.binary, x.cursor = true, parts[5] != 0
		return x
	case gomysql.COM_STMT_PREPARE:
		if s.watches() {
			return nil
		}
		return &exchange{visible: true, prepared: &prepared{plan: passedOn}, read: (*Session).prepareReply,
			done: (*Session).prepareDone}
	}
	return nil
}
