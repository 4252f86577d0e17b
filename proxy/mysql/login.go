package mysql

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// protocolVersion is the only version of the protocol that is spoken today: what the greeting begins with.
const protocolVersion = 10

// Capabilities that a session does not offer, because it would have to understand more than it does:
// query attributes change the shape of commands, optional metadata that of replies. TLS is each leg's own affair
// (see leg).
const maskedCaps = gomysql.CLIENT_SSL | gomysql.CLIENT_QUERY_ATTRIBUTES | gomysql.CLIENT_OPTIONAL_RESULTSET_METADATA

// compressionCaps are taken apart below the session (compress.go). What is agreed on holds for both legs: clients can
// ask the server for it (SHOW STATUS LIKE 'Compression').
const compressionCaps = gomysql.CLIENT_COMPRESS | gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM

// mariaExtendedMetadata is the one extended capability of MariaDB that is offered: it adds a string
// to column definitions, which are passed on whole. Progress reports, bulk execution and cached
// metadata are not (https://mariadb.com/kb/en/connection/#capabilities).
const mariaExtendedMetadata = 1 << 3

// greeting relays the server's greeting, less what the session cannot honor
// (https://mariadb.com/kb/en/connection/#initial-handshake-packet).
func (s *Session) greeting(seq byte, payload []byte) error {
	s.client.seq, s.server.seq = seq-1, seq
	if payload[0] == markErr {
		s.sendClient(payload)
		s.phase = phaseClosed
		return nil
	}
	if payload[0] != protocolVersion {
		return fmt.Errorf("parse greeting: %w: protocol version %d, not %d", errMalformed, payload[0], protocolVersion)
	}
	b := bytes.Clone(payload)
	r := reader{b: b, pos: 1}
	version := r.cString()
	s.dialect, s.version = sqlmysql.ParseVersion(string(version))
	if id := r.bytes(4); id != nil {
		s.connection = binary.LittleEndian.Uint32(id)
	}
	scramble := bytes.Clone(r.bytes(8))
	r.bytes(1)
	low := r.bytes(2)
	r.bytes(1 + 2) // collation, status
	high := r.bytes(2)
	r.bytes(1 + 6) // the scramble's length, reserved
	maria := r.bytes(4)
	if r.err != nil {
		return fmt.Errorf("parse greeting: %w", r.err)
	}
	s.auth.scramble = append(scramble, r.cString()...)
	caps := uint32(binary.LittleEndian.Uint16(low)) | uint32(binary.LittleEndian.Uint16(high))<<16
	if caps&gomysql.CLIENT_SSL == 0 && s.cfg.ServerTLS == session.MustTLS {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "",
			"isotap is to use TLS with the server, which does not offer it: "+
				"configure the server for TLS, or isotap with --upstream-tls prefer or disable")
		return nil
	}
	s.server.tls = caps&gomysql.CLIENT_SSL != 0 && s.cfg.ServerTLS != session.NoTLS
	if s.cfg.ServerTLS == session.MayTLS && !s.server.safe() {
		s.events = append(s.events, session.Event{Downgraded: "the server does not offer it"})
	}
	caps &^= maskedCaps
	s.caps = caps
	if s.cfg.ClientTLS != session.NoTLS {
		caps |= gomysql.CLIENT_SSL
	}
	binary.LittleEndian.PutUint16(low, uint16(caps))
	binary.LittleEndian.PutUint16(high, uint16(caps>>16))
	if caps&gomysql.CLIENT_LONG_PASSWORD == 0 {
		binary.LittleEndian.PutUint32(maria, binary.LittleEndian.Uint32(maria)&mariaExtendedMetadata)
	}
	s.sendClient(b)
	s.phase = phaseLogin
	return nil
}

// loginHead is the length of a handshake response up to the user's name. A client that begins TLS
// sends no more than that before.
const loginHead = 4 + 4 + 1 + 19 + 4

// login takes the client's handshake response, or its request for TLS before it.
func (s *Session) login(seq byte, payload []byte) error {
	s.client.seq = seq
	if len(payload) < loginHead {
		return fmt.Errorf("parse handshake response: %w: %d bytes", errMalformed, len(payload))
	}
	caps := binary.LittleEndian.Uint32(payload)
	switch {
	case caps&gomysql.CLIENT_PROTOCOL_41 == 0:
		s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, "", "isotap does not speak the protocol from before MySQL 4.1")
		return nil
	case caps&gomysql.CLIENT_SSL != 0 && !s.client.tls:
		s.beginClientTLS()
		return nil
	case s.cfg.ClientTLS == session.MustTLS && !s.client.safe():
		s.turnAway(erSecureTransportRequired, sqlstateGeneral,
			"isotap takes connections with TLS only (--tls required): connect with ssl-mode=REQUIRED")
		return nil
	}
	refused := caps & compressionCaps &^ s.caps
	s.compresses = refused != 0
	b, err := s.handshakeResponse(payload, caps&^(maskedCaps|refused))
	if err != nil {
		return fmt.Errorf("parse handshake response: %w", err)
	}
	if s.server.tls {
		s.beginServerTLS(b)
		return nil
	}
	s.sendServer(b)
	s.phase = phaseAuth
	return nil
}

// handshakeResponse returns the client's handshake response as it goes to the server. A client may ask
// for what was not offered, and the server would grant it: such flags are cleared on the way.
func (s *Session) handshakeResponse(payload []byte, caps uint32) ([]byte, error) {
	b := bytes.Clone(payload)
	asked := caps
	if s.server.tls {
		asked |= gomysql.CLIENT_SSL
	}
	binary.LittleEndian.PutUint32(b, asked)
	if maria := b[loginHead-4:]; caps&gomysql.CLIENT_LONG_PASSWORD == 0 {
		binary.LittleEndian.PutUint32(maria, binary.LittleEndian.Uint32(maria)&mariaExtendedMetadata)
	}
	s.caps &= caps
	r := reader{b: b, pos: loginHead}
	user := string(r.cString())
	s.user, s.collation = user, b[8]
	if r.err != nil {
		return nil, r.err
	}
	s.events = append(s.events, session.Event{User: &user})
	var a answer
	switch {
	case caps&gomysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA != 0:
		a = r.lenencAnswer()
	case caps&gomysql.CLIENT_SECURE_CONNECTION != 0:
		a = r.shortAnswer()
	default:
		a = r.cAnswer()
	}
	if caps&gomysql.CLIENT_CONNECT_WITH_DB != 0 {
		r.cString()
	}
	if caps&gomysql.CLIENT_PLUGIN_AUTH != 0 {
		a.plugin, a.named = r.pos, true
	}
	s.settings.sender = senderOfAttributes(b, a.plugin, caps)
	return s.auth.begin(&r, a, s.legs), nil
}

// changeUser begins the authentication of COM_CHANGE_USER
// (https://mariadb.com/kb/en/com_change_user/). From here on it goes as at the start.
func (s *Session) changeUser(payload []byte) {
	r := reader{b: bytes.Clone(payload), pos: 1}
	user := string(r.cString())
	s.user, s.collation = user, 0
	a := r.shortAnswer()
	if s.caps&gomysql.CLIENT_SECURE_CONNECTION == 0 {
		r.pos = a.from
		a = r.cAnswer()
	}
	r.cString() // the database
	r.bytes(2)  // the collation
	if r.err == nil && r.pos < len(r.b) && s.caps&gomysql.CLIENT_PLUGIN_AUTH != 0 {
		a.plugin, a.named = r.pos, true
	}
	s.settings.sender = senderOfAttributes(r.b, a.plugin, s.caps)
	s.events = append(s.events, session.Event{User: &user})
	s.client.seq, s.server.seq = 0, 0xff
	s.sendServer(s.auth.begin(&r, a, s.legs))
	s.phase = phaseAuth
}

// authFromServer takes the server's side of the authentication until it is over. Plug-ins' own data
// never begins like OK or ERR: servers put 0x01 before it.
func (s *Session) authFromServer(seq byte, payload []byte) error {
	s.server.seq = seq
	if len(payload) == 0 {
		s.sendClient(payload)
		return nil
	}
	switch payload[0] {
	case markOK:
		ok, err := parseOK(payload, s.caps)
		if err != nil {
			return err
		}
		s.sendClient(payload)
		s.txn.follow(ok.status)
		s.forgetSecrets()
		again := s.loggedIn // by CHANGE USER
		s.phase, s.loggedIn = phaseCommand, true
		s.reset()
		s.txn.fresh = again
		return nil
	case markErr:
		s.sendClient(payload)
		s.forgetSecrets()
		s.phase = phaseClosed
		return nil
	}
	return s.sendAuth(s.auth.fromServer(payload, s.legs, s.caps&capMultiFactor != 0))
}

// authFromClient takes the client's answer to a plug-in.
func (s *Session) authFromClient(seq byte, payload []byte) error {
	s.client.seq = seq
	return s.sendAuth(s.auth.fromClient(payload, s.legs))
}

// sendAuth sends what the authentication goes on with.
func (s *Session) sendAuth(p authPacket, err error) error {
	switch {
	case err != nil:
		return err
	case p.refusal != nil:
		s.turnAway(p.refusal.code, p.refusal.state, p.refusal.message)
	case p.to == session.ClientLeg:
		s.sendClient(p.payload)
	default:
		s.sendServer(p.payload)
	}
	if p.secret {
		clear(p.payload)
	}
	return nil
}

// forgetSecrets is called when the authentication is over.
func (s *Session) forgetSecrets() {
	s.auth.forget()
	b := s.clientPackets.packet
	clear(b[len(b):cap(b)])                            // what stands in it is the client's next packet
	clear(s.toServer[len(s.toServer):cap(s.toServer)]) // what has been sent
}

// reset forgets what belonged to the session before RESET CONNECTION or CHANGE USER.
func (s *Session) reset() {
	s.prepared.reset()
	s.settings.reset(s.watches())
	s.captures.reset()
	s.counts, s.conditions = counts{}, newConditions(s.dialect)
	s.txn.reset()
	s.tellLogin()
}

// sendClient sends a packet of the handshake to the client, numbered as that leg counts.
func (s *Session) sendClient(payload []byte) {
	s.client.seq++
	s.toClient, _ = appendPacket(s.toClient, s.client.seq, payload)
}

// sendServer sends a packet of the handshake to the server.
func (s *Session) sendServer(payload []byte) {
	s.server.seq++
	s.toServer, _ = appendPacket(s.toServer, s.server.seq, payload)
}

// turnAway ends the session with an error for the client.
func (s *Session) turnAway(code uint16, state, message string) {
	s.sendClient(appendErr(nil, serverError{code, state, message}))
	s.forgetSecrets()
	s.phase = phaseClosed
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

// earlyError is an error before the greeting, which has no SQL state.
func earlyError(code uint16, message string) []byte {
	packet, _ := appendPacket(nil, 0, appendErr(nil, serverError{code: code, message: message}))
	return packet
}

// erSecureTransportRequired is the servers' own error for a client without TLS.
const erSecureTransportRequired = 3159

// Upgraded tells the session that a leg speaks TLS from now on, or why it cannot.
func (s *Session) Upgraded(now int64, _ *tls.ConnectionState, failed error) {
	s.now = now
	l := s.upgrade
	s.upgrade = session.NoLeg
	switch {
	case failed == nil && l == session.ServerLeg:
		s.sendServer(s.auth.response)
		clear(s.auth.response)
		s.auth.response = nil
		s.phase = phaseAuth
	case failed != nil && l == session.ServerLeg:
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, sqlstateGeneral,
			fmt.Sprintf("isotap cannot use TLS with the server: %v "+
				"(see --upstream-tls and --upstream-ca)", failed))
	case failed != nil:
		s.phase = phaseClosed // there is no way left to tell the client
	}
}

// beginClientTLS answers a client that asks for TLS. What stands behind the request in its packet is
// not looked at.
func (s *Session) beginClientTLS() {
	if s.cfg.ClientTLS == session.NoTLS {
		s.turnAway(erSecureTransportRequired, "",
			"isotap offers no TLS here: connect with TLS disabled, or start isotap with --tls-cert")
		return
	}
	s.client.tls = true
	s.upgrade = session.ClientLeg
}

// beginServerTLS asks the server for TLS in the client's stead. Its handshake response waits.
func (s *Session) beginServerTLS(response []byte) {
	if len(s.serverPackets.packet) > 0 {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, sqlstateGeneral,
			"something was sent in the server's name before TLS began")
		return
	}
	s.auth.response = response
	s.sendServer(response[:loginHead])
	s.upgrade = session.ServerLeg
}

// beforeLogin takes what the server says before the client has logged in: why it will not wait.
func (s *Session) beforeLogin(seq byte, payload []byte) error {
	if payload[0] != markErr {
		return fmt.Errorf("%w from the server before the login (it begins with 0x%02x)", errUnexpected, payload[0])
	}
	s.server.seq = seq
	s.sendClient(payload)
	s.phase = phaseClosed
	return nil
}

// LoginOverdue ends a session that took too long to log in.
func (s *Session) LoginOverdue(now int64) {
	s.now = now
	if s.phase == phaseGreeting {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "", "the server did not greet isotap in time")
		return
	}
	s.turnAway(gomysql.ER_NET_READ_INTERRUPTED, sqlstateCommunicationLink, "Got timeout reading communication packets")
}
