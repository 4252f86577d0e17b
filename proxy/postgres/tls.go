package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/isotap/isotap/proxy/session"
)

const (
	// handshakeByte is what TLS begins with, and no message without a type.
	handshakeByte = 0x16
	// ALPN is the name that clients and servers of version 17 and later agree on when they begin TLS.
	ALPN = "postgresql"
)

// A leg is what a session knows of one of its connections.
type leg struct {
	tls   bool
	local bool // a unix socket
}

// safe reports whether nobody can read along.
func (l leg) safe() bool { return l.tls || l.local }

// legs is how the two connections of a session are encrypted.
type legs struct {
	clientLeg, serverLeg leg
	upgrade              session.Leg // that is to begin TLS, or to be made anew
	askedTLS, askedGSS   bool        // the client has asked for it, which it may once
	direct               bool        // the client begins TLS without asking

	// encrypts says whether the server is asked for TLS in this attempt, attempts how many there were.
	encrypts bool
	attempts int
	// plainBecause is why an attempt is not encrypted that could be.
	plainBecause string
}

// Upgrade returns which leg is to begin TLS once the output is sent, or to be made anew. Bytes of the client
// that the session has not taken by then belong to TLS.
func (s *Session) Upgrade() session.Leg { return s.upgrade }

// Upgraded tells the session what came of it. with is nil where no TLS began.
func (s *Session) Upgraded(now int64, with *tls.ConnectionState, failed error) {
	s.now = now
	which := s.upgrade
	s.upgrade = session.NoLeg
	switch which {
	case session.ClientLeg:
		s.clientUpgraded(with, failed)
	case session.ServerLeg:
		s.serverUpgraded(with, failed)
	case session.ServerDial:
		s.serverDialed(failed)
	case session.ServerAgain:
		s.server = frameReader{}
		s.serverLeg.tls = false
		if failed != nil {
			s.turnAway(sqlstateConnectionFailure, fmt.Sprintf("isotap cannot connect to the server again: %v", failed),
				"")
			return
		}
		s.tryServer()
	}
}

// offersTLS reports whether the client may begin TLS. Servers do not offer it on unix sockets.
func (s *Session) offersTLS() bool { return s.cfg.ClientTLS != session.NoTLS && !s.clientLeg.local }

// answerTLS answers a client that asks for TLS. What it sent before the answer is not encrypted, and would be
// taken for encrypted (CVE-2021-23214).
func (s *Session) answerTLS(more bool) {
	s.askedTLS = true
	switch {
	case more:
		if !s.offersTLS() {
			s.toClient = append(s.toClient, declinesEncryption)
		}
		s.turnAway(sqlstateProtocolViolation, "received unencrypted data after SSL request", "")
	case !s.offersTLS():
		s.toClient = append(s.toClient, declinesEncryption)
	default:
		s.toClient = append(s.toClient, acceptsTLS)
		s.upgrade = session.ClientLeg
	}
}

// beginsDirectly reports whether the client begins TLS without asking, by the first byte of its connection.
func (s *Session) beginsDirectly(first byte) bool {
	if first != handshakeByte || s.askedTLS || s.askedGSS || s.clientLeg.tls {
		return false
	}
	s.direct = true
	if s.offersTLS() {
		s.upgrade = session.ClientLeg
	} else {
		s.phase = phaseClosed // which is all that servers without TLS do
	}
	return true
}

func (s *Session) clientUpgraded(with *tls.ConnectionState, failed error) {
	switch {
	case failed != nil:
		s.phase = phaseClosed // there is no way left to tell the client
	case s.direct && with.NegotiatedProtocol != ALPN:
		s.note("a client began TLS without asking, and without the application protocol %s: it was turned away, "+
			"as servers do", ALPN)
		s.phase = phaseClosed
	}
	s.clientLeg.tls = failed == nil
}

// reachServer asks for the connection to the server: the client has said what it wants.
func (s *Session) reachServer() {
	s.phase = phaseLeg
	s.upgrade = session.ServerDial
}

// serverDialed makes the server's leg what it should be, and goes on with the client's request.
func (s *Session) serverDialed(failed error) {
	switch {
	case errors.Is(failed, session.ErrTooManyLogins):
		s.turnAway(sqlstateTooManyConnections, "sorry, too many clients already", "")
		return
	case failed != nil:
		s.turnAway(sqlstateCannotConnectNow, failed.Error(), "")
		return
	}
	if s.serverLeg.local {
		s.cfg.ServerTLS = session.NoTLS // as libpq has it
	}
	s.encrypts = s.cfg.ServerTLS == session.MayTLS || s.cfg.ServerTLS == session.MustTLS
	s.tryServer()
}

// tryServer begins an attempt.
func (s *Session) tryServer() {
	s.attempts++
	s.phase = phaseLeg
	switch {
	case !s.encrypts:
		s.sendStartup()
	case s.cfg.DirectTLS:
		s.upgrade = session.ServerLeg
	default:
		s.toServer = append(s.toServer, 0, 0, 0, 8, codeSSL>>24, codeSSL>>16&0xff, codeSSL>>8&0xff, codeSSL&0xff)
	}
}

// legFromServer takes the server's answer to a request for TLS: one byte, and nothing with it.
func (s *Session) legFromServer(p []byte) {
	switch {
	case p[0] == acceptsTLS && len(p) > 1:
		s.turnAway(sqlstateConnectionFailure, "something was sent in the server's name before TLS began", "")
	case p[0] == acceptsTLS:
		s.upgrade = session.ServerLeg
	case s.cfg.ServerTLS == session.MustTLS:
		s.turnAway(sqlstateConnectionFailure, "the server does not support TLS, but isotap is to use it",
			"Allow a connection without: sslmode=prefer in the address that --upstream gives.")
	case p[0] == declinesEncryption:
		s.encrypts, s.plainBecause = false, "the server does not offer it"
		s.sendStartup()
	default:
		s.tryAgain("the server answers the request for it with an error") // one that knows of no TLS, or cannot serve
	}
}

func (s *Session) serverUpgraded(with *tls.ConnectionState, failed error) {
	if failed == nil && s.cfg.DirectTLS && with.NegotiatedProtocol != ALPN {
		failed = errors.New("the server did not agree on the application protocol " + ALPN)
	}
	switch {
	case failed == nil:
		s.serverLeg.tls = true
		s.compareCertificates(with)
		s.sendStartup()
	case s.cfg.ServerTLS == session.MayTLS && s.attempts == 1:
		s.tryAgain(fmt.Sprintf("it cannot begin: %v", failed))
	default:
		s.turnAway(sqlstateConnectionFailure, fmt.Sprintf("isotap cannot use TLS with the server: %v", failed),
			"See sslmode and sslrootcert in the address that --upstream gives.")
	}
}

// tryAgain makes the other attempt that libpq makes with sslmode=prefer and allow: it needs a connection of its
// own. why is for a connection that is plain then.
func (s *Session) tryAgain(why string) {
	s.encrypts, s.plainBecause = !s.encrypts, why
	s.upgrade = session.ServerAgain
}

// retries reports whether the server refused how it was connected to, and is connected to the other way. Once it
// has asked for a password the client would be asked twice.
func (s *Session) retries(m message) (bool, error) {
	e, err := readError(m.body)
	either := s.cfg.ServerTLS == session.MayTLS && s.serverLeg.tls || s.cfg.ServerTLS == session.LastTLS
	if !either || s.answered || s.attempts > 1 || e.code != sqlstateInvalidAuthorization {
		return false, err
	}
	s.tryAgain("the server refuses the login over it: " + e.message)
	return true, err
}
