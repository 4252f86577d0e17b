package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// clientBytes takes one packet out of p, or what there is of it.
func (s *Session) clientBytes(p []byte) (int, error) {
	switch {
	case s.phase == phaseCopy && s.equallySafe():
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	case s.phase == phaseCopy:
		return s.passCopy(p), nil
	case s.phase == phaseInfile:
		return s.passFile(p), nil
	case s.upload.open:
		return s.passRest(p), nil
	}
	if !s.admits(p) {
		return len(p), nil
	}
	packet, used := s.clientPackets.next(p)
	if packet == nil {
		return used, nil
	}
	payload, whole := s.clientPackets.join(packet)
	if !whole {
		if s.phase == phaseCommand && len(s.clientPackets.payload) == longCommand {
			s.beginLong()
		}
		return used, nil
	}
	return used, s.clientPacket(firstSeq(packet, payload), payload)
}

func (s *Session) serverBytes(p []byte) (int, error) {
	if s.phase == phaseCopy {
		s.toClient = append(s.toClient, p...)
		return len(p), nil
	}
	if s.row.open() {
		var n int
		s.toClient, n = s.row.pass(p, &s.serverPackets, s.toClient)
		return n, nil
	}
	if !s.serverPackets.midway() {
		if n := s.passRows(p); n > 0 {
			return n, nil
		}
	}
	packet, used := s.serverPackets.next(p)
	if packet == nil {
		return used, nil
	}
	payload, whole := s.serverPackets.join(packet)
	if !whole {
		return used, s.bounded()
	}
	return used, s.serverPacket(firstSeq(packet, payload), payload)
}

func (s *Session) serverPacket(seq byte, payload []byte) error {
	if len(payload) == 0 && s.phase != phaseAuth {
		return fmt.Errorf("%w: an empty one", errMalformed)
	}
	switch s.phase {
	case phaseGreeting:
		return s.greeting(seq, payload)
	case phaseLogin:
		return s.beforeLogin(seq, payload)
	case phaseAuth:
		return s.authFromServer(seq, payload)
	case phaseCommand, phaseClosing, phaseInfile:
		return s.replyPacket(seq, payload)
	}
	return fmt.Errorf("%w from the server (it begins with 0x%02x)", errUnexpected, payload[0])
}

func (s *Session) clientPacket(seq byte, payload []byte) error {
	switch s.phase {
	case phaseLogin:
		return s.login(seq, payload)
	case phaseAuth:
		return s.authFromClient(seq, payload)
	case phaseCommand:
		return s.clientCommand(seq, payload)
	}
	return fmt.Errorf("%w from the client", errUnexpected)
}

// passRows passes rows on that need no trimming, as many as p holds and the beginning of the next,
// and returns how many bytes of p they were.
func (s *Session) passRows(p []byte) int {
	x := s.pending.first()
	if x == nil || !x.passesRows() {
		return 0
	}
	n := 0
	for len(p)-n > headerBytes && !s.row.long {
		size := payloadLen(p[n:])
		if endsRows(p[n+headerBytes], size, s.caps) {
			break
		}
		x.rows++
		s.row.long = size == maxPayload
		whole := headerBytes + size
		if whole > len(p)-n {
			s.row.left = whole - (len(p) - n)
			n = len(p)
			break
		}
		n += whole
	}
	s.toClient = append(s.toClient, p[:n]...)
	return n
}

// passFile passes a file on that the server asked for. An empty payload ends it.
func (s *Session) passFile(p []byte) int {
	var n int
	var ended bool
	s.toServer, n, ended = s.upload.pass(p, &s.clientPackets, s.toServer)
	if ended && s.upload.size == 0 {
		s.phase = phaseCommand
	}
	return n
}

// passRest passes the rest of a long command on.
func (s *Session) passRest(p []byte) int {
	var n int
	var ended bool
	s.toServer, n, ended = s.upload.pass(p, &s.clientPackets, s.toServer)
	if ended {
		s.upload = upload{}
	}
	return n
}

// tooLong is the plan for a statement that is not kept in memory whole. It may be anything.
var tooLong = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonTooLong},
	Txn: sqlmysql.TxnEffect{Ends: true}, Session: sqlmysql.SessionEffect{Changes: true},
	Schema: sqlmysql.SchemaEffect{Changes: true}}

// beginLong passes on what has come of a command that grows long, if it can go on without being
// looked at further. What has come is whole packets.
func (s *Session) beginLong() {
	parts := s.clientPackets.payload
	if parts[0] == gomysql.COM_STMT_SEND_LONG_DATA {
		if !s.addressLongData(parts) {
			return
		}
	} else {
		x := s.passedLong(parts)
		if x == nil {
			return
		}
		s.pending.add(x)
	}
	for seq := byte(0); len(parts) > 0; seq++ {
		s.toServer = append(s.toServer, 0xff, 0xff, 0xff, seq)
		s.toServer = append(s.toServer, parts[:maxPayload]...)
		parts = parts[maxPayload:]
	}
	s.clientPackets.payload = nil
	s.upload = upload{open: true, long: true}
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
		return &exchange{visible: true, prepared: &prepared{plan: passedOn},
			grammar: prepareReply, purpose: preparePurpose}
	}
	return nil
}

// passCopy passes bytes of a session on that is not followed any more. Where only one leg is safe, a
// change of user cannot be let through: its password could go where it must not.
func (s *Session) passCopy(p []byte) int {
	u := &s.upload
	if u.left > 0 {
		n := min(u.left, len(p))
		s.toServer = append(s.toServer, p[:n]...)
		u.left -= n
		return n
	}
	need := headerBytes
	if len(s.clientPackets.packet) >= headerBytes {
		need++
	}
	n := min(need-len(s.clientPackets.packet), len(p))
	s.clientPackets.packet = append(s.clientPackets.packet, p[:n]...)
	if len(s.clientPackets.packet) < headerBytes || len(s.clientPackets.packet) == headerBytes &&
		payloadLen(s.clientPackets.packet) > 0 {
		return n
	}
	begins := s.clientPackets.packet[3] == 0 && u.seq != 0xff // and not a file's or a long command's packet number 256
	u.seq = s.clientPackets.packet[3]
	if begins && len(s.clientPackets.packet) > headerBytes &&
		s.clientPackets.packet[headerBytes] == gomysql.COM_CHANGE_USER {
		s.client.seq = 0
		s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
			"isotap cannot change the user of a session that it does not follow any more "+
				"where only one of its connections is encrypted: connect anew")
		return n
	}
	u.left = headerBytes + payloadLen(s.clientPackets.packet) - len(s.clientPackets.packet)
	s.toServer = append(s.toServer, s.clientPackets.packet...)
	s.clientPackets.packet = s.clientPackets.packet[:0]
	return n
}

// equallySafe reports whether passwords are as safe on one leg as on the other.
func (s *Session) equallySafe() bool {
	return s.client.tls == s.server.tls && s.client.local == s.server.local
}

// tooLarge is what a server says to a packet of more than max_allowed_packet bytes. It then ends the session.
var tooLarge = serverError{gomysql.ER_NET_PACKET_TOO_LARGE, sqlstateCommunicationLink,
	"Got a packet bigger than 'max_allowed_packet' bytes"}

// admits reports whether the client's next packet, of which p holds the rest of the header, may be kept. One that may
// not ends the session as it ends on a server: with an error, when it would have been read.
func (s *Session) admits(p []byte) bool {
	var header [headerBytes]byte
	n := copy(header[:], s.clientPackets.packet)
	if n == headerBytes || n+len(p) < headerBytes {
		return true
	}
	copy(header[n:], p)
	if len(s.clientPackets.payload)+payloadLen(header[:]) < s.clientLimit() {
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
	case len(s.clientPackets.payload) == 0:
		return maxPayload + 1
	}
	switch s.clientPackets.payload[0] {
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
	if len(s.serverPackets.payload) > limit {
		return fmt.Errorf("%w: a payload of more than %d bytes", errMalformed, limit)
	}
	return nil
}

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
