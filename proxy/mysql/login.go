package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// Capabilities that a session does not offer, because it would have to understand more than it does:
// compression and TLS change the bytes on the wire, query attributes the shape of commands, optional
// metadata that of replies.
const maskedCaps = gomysql.CLIENT_COMPRESS | gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM | gomysql.CLIENT_SSL |
	gomysql.CLIENT_QUERY_ATTRIBUTES | gomysql.CLIENT_OPTIONAL_RESULTSET_METADATA

// mariaExtendedMetadata is the one extended capability of MariaDB that is offered: it adds a string
// to column definitions, which are passed on whole. Progress reports, bulk execution and cached
// metadata are not (https://mariadb.com/kb/en/connection/#capabilities).
const mariaExtendedMetadata = 1 << 3

// errTLS is what a client gets that begins TLS although it was not offered.
var errTLS = errors.New("the client asked for TLS, which this listener does not offer: connect with TLS disabled")

// errOldProtocol is about clients from before MySQL 4.1.
var errOldProtocol = errors.New("the client speaks the protocol from before MySQL 4.1")

// greeting relays the server's greeting, less what the session cannot honour
// (https://mariadb.com/kb/en/connection/#initial-handshake-packet).
func (s *Session) greeting(seq byte, payload []byte) error {
	if payload[0] == markErr {
		s.toClient, _ = appendPacket(s.toClient, seq, payload)
		s.phase = phaseClosed
		return nil
	}
	if payload[0] != 10 {
		return fmt.Errorf("parse greeting: %w: protocol version %d, not 10", errMalformed, payload[0])
	}
	b := bytes.Clone(payload)
	r := reader{b: b, pos: 1}
	version := r.cString()
	s.dialect, s.version = sqlmysql.ParseVersion(string(version))
	r.bytes(4 + 8 + 1) // connection id, the scramble's first part, a zero
	low := r.bytes(2)
	r.bytes(1 + 2) // collation, status
	high := r.bytes(2)
	r.bytes(1 + 6) // the scramble's length, reserved
	maria := r.bytes(4)
	if r.err != nil {
		return fmt.Errorf("parse greeting: %w", r.err)
	}
	caps := uint32(binary.LittleEndian.Uint16(low)) | uint32(binary.LittleEndian.Uint16(high))<<16
	caps &^= maskedCaps
	binary.LittleEndian.PutUint16(low, uint16(caps))
	binary.LittleEndian.PutUint16(high, uint16(caps>>16))
	if caps&gomysql.CLIENT_LONG_PASSWORD == 0 {
		binary.LittleEndian.PutUint32(maria, binary.LittleEndian.Uint32(maria)&mariaExtendedMetadata)
	}
	s.caps = caps
	s.toClient, _ = appendPacket(s.toClient, seq, b)
	s.phase = phaseLogin
	return nil
}

// login relays the client's handshake response. A client may ask for what was not offered, and the
// server would grant it: such flags are cleared on the way.
func (s *Session) login(seq byte, payload []byte) error {
	b := bytes.Clone(payload)
	r := reader{b: b}
	head := r.bytes(4)
	if r.err != nil {
		return fmt.Errorf("parse handshake response: %w", r.err)
	}
	caps := binary.LittleEndian.Uint32(head)
	switch {
	case caps&gomysql.CLIENT_PROTOCOL_41 == 0:
		return errOldProtocol
	case caps&gomysql.CLIENT_SSL != 0:
		return errTLS
	}
	caps &^= maskedCaps
	binary.LittleEndian.PutUint32(head, caps)
	r.bytes(4 + 1 + 19) // max packet, collation, reserved
	maria := r.bytes(4)
	user := string(r.cString())
	if r.err != nil {
		return fmt.Errorf("parse handshake response: %w", r.err)
	}
	if caps&gomysql.CLIENT_LONG_PASSWORD == 0 {
		binary.LittleEndian.PutUint32(maria, binary.LittleEndian.Uint32(maria)&mariaExtendedMetadata)
	}
	s.caps &= caps
	s.events = append(s.events, Event{User: &user})
	s.toServer, _ = appendPacket(s.toServer, seq, b)
	s.phase = phaseAuth
	return nil
}

// authFromServer relays the server's side of the authentication until it is over. Plug-ins' own data
// never begins like OK or ERR: servers put 0x01 before it.
func (s *Session) authFromServer(seq byte, payload []byte) error {
	s.toClient, _ = appendPacket(s.toClient, seq, payload)
	if len(payload) == 0 {
		return nil
	}
	switch payload[0] {
	case markOK:
		ok, err := parseOK(payload, s.caps)
		if err != nil {
			return err
		}
		s.follow(ok.status)
		s.phase = phaseCommand
		s.reset()
	case markErr:
		s.phase = phaseClosed
	}
	return nil
}

// reset forgets what belonged to the session before RESET CONNECTION or CHANGE USER.
func (s *Session) reset() {
	s.stmts = make(map[uint32]*prepared)
	s.settings = settings{stale: true}
	s.captures, s.conditions = captures{}, conditions{}
	s.savepoints = nil
	s.nextLevel = 0
}

// RefusalPacket is what a client gets in place of a greeting when there is no server to greet it. The
// error is a server's own, 1429: MariaDB's clients take one of the clients' range, such as 2003, for a
// malformed packet.
func RefusalPacket(message string) []byte {
	return earlyError(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, message)
}

// TooManyPacket is what a client gets in place of a greeting when it is one too many.
func TooManyPacket() []byte {
	return earlyError(gomysql.ER_CON_COUNT_ERROR, "Too many connections")
}

// earlyError is an error in the form that precedes the handshake.
func earlyError(code uint16, message string) []byte {
	payload := binary.LittleEndian.AppendUint16([]byte{markErr}, code)
	packet, _ := appendPacket(nil, 0, append(payload, message...))
	return packet
}
