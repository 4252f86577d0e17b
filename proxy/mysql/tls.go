package mysql

import (
	"crypto/tls"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/proxy/session"
)

// erSecureTransportRequired is the servers' own error for a client without TLS.
const erSecureTransportRequired = 3159

// A leg is what a session knows of one of its connections.
type leg struct {
	seq   byte // of the packet that went last while logging in, either way
	tls   bool // as agreed; it begins with Session.Upgraded
	local bool // a unix socket
}

// safe reports whether a password may go over the leg as it is, as clients and servers see it.
func (l leg) safe() bool { return l.tls || l.local }

// Upgrade says which leg is to begin TLS: the caller sends the Output, does the handshake and calls
// [Session.Upgraded]. Bytes of the client that the session has not taken by then belong to TLS.
func (s *Session) Upgrade() session.Leg { return s.upgrade }

// Upgraded tells the session that a leg speaks TLS from now on, or why it cannot.
func (s *Session) Upgraded(now int64, _ *tls.ConnectionState, failed error) {
	s.now = now
	l := s.upgrade
	s.upgrade = session.NoLeg
	switch {
	case failed == nil && l == session.ServerLeg:
		s.sendServer(s.response)
		clear(s.response)
		s.response = nil
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
	if len(s.serverBuf) > 0 {
		s.turnAway(gomysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, sqlstateGeneral,
			"something was sent in the server's name before TLS began")
		return
	}
	s.response = response
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
