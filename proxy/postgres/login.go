package postgres

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/twin"
)

// What the first message of a connection asks for, by the number behind its length ("Message Formats").
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
	// maxStartup is the server's own limit for messages without a type.
	maxStartup = 10000
)

// LoginTimeout is how long servers give a client to log in (authentication_timeout).
const LoginTimeout = time.Minute

// login is what a session knows of its login.
type login struct {
	// replication says that the connection is one for replication: it is passed through untouched.
	replication bool
	// cancels says that the connection asks to cancel a statement of another, foreign that it speaks another
	// version of the protocol, which servers have not spoken for long.
	cancels, foreign bool
	// startupMessage is what the client asks of the server: it goes there once the leg is made, and again if
	// the leg has to be made anew.
	startupMessage []byte
	// answered says that the server has begun to authenticate.
	answered bool
	who      twin.Login
	legs
	binding
}

// startupBytes takes a message without a type out of p, or what there is of it.
func (s *Session) startupBytes(p []byte) (int, error) {
	const head = 8
	in := &s.client
	if len(in.buf) == 0 && s.beginsDirectly(p[0]) {
		return 0, nil
	}
	used := 0
	if missing := head - len(in.buf); missing > 0 {
		used = min(missing, len(p))
		in.buf = append(in.buf, p[:used]...)
	}
	if len(in.buf) < 4 {
		return used, nil
	}
	size := binary.BigEndian.Uint32(in.buf)
	if size < head || size > maxStartup {
		return used, fmt.Errorf("%w: a startup message with length %d", errMalformed, size)
	}
	n := min(int(size)-len(in.buf), len(p)-used)
	in.buf = append(in.buf, p[used:used+n]...)
	used += n
	if len(in.buf) < int(size) {
		return used, nil
	}
	packet := in.buf
	in.buf = nil
	s.startup(binary.BigEndian.Uint32(packet[4:]), packet, used < len(p))
	return used, nil
}

// startup takes a message without a type. more says that something came along with it.
func (s *Session) startup(code uint32, packet []byte, more bool) {
	switch {
	case code == codeSSL && !s.askedTLS && !s.clientLeg.tls:
		s.answerTLS(more)
	case code == codeGSS && !s.askedGSS && !s.clientLeg.tls:
		s.askedGSS = true
		s.toClient = append(s.toClient, declinesEncryption)
		if more {
			s.turnAway(sqlstateProtocolViolation, "received unencrypted data after GSSAPI encryption request", "")
		}
	case code>>16 == 1234 && code != codeCancel:
		s.turnAway(sqlstateFeatureNotSupported, fmt.Sprintf("unsupported frontend protocol %d.%d", code>>16,
			code&0xffff), "")
	case code == codeCancel:
		s.cancels = true
		s.startupMessage = packet
		s.reachServer()
	case code>>16 != 3: // the server answers in a form of its own
		s.foreign = true
		s.startupMessage = packet
		s.reachServer()
	default:
		s.takeStartup(packet[8:])
		s.startupMessage = packet
		if s.cfg.ClientTLS == session.MustTLS && !s.clientLeg.safe() {
			s.turnAway(sqlstateInvalidAuthorization, "isotap takes encrypted connections only",
				"Connect with sslmode=require, or start isotap with --tls optional.")
			return
		}
		s.reachServer()
	}
}

// sendStartup begins the login, or the canceling, on a leg to the server that is as it should be.
func (s *Session) sendStartup() {
	if s.cfg.ServerTLS == session.MayTLS && !s.serverLeg.tls {
		s.events = append(s.events, session.Event{Downgraded: s.plainBecause})
	}
	s.toServer = append(s.toServer, s.startupMessage...)
	switch s.phase = phaseAuth; {
	case s.cancels:
		s.phase = phaseCancel
	case s.foreign:
		s.copyOn()
	}
}

// takeStartup reads the parameters of the startup message.
func (s *Session) takeStartup(params []byte) {
	r := reader{b: params}
	database := ""
	for {
		name := string(r.cString())
		if name == "" || r.err != nil {
			break
		}
		value := string(r.cString())
		asked(&s.who, name, value)
		switch name {
		case "user":
			s.events = append(s.events, session.Event{User: &value})
			database = cmp.Or(database, value)
		case "database":
			database = value
		case "replication":
			s.replication = replicates(value)
		}
	}
	if database != "" && !s.replication && s.cfg.Planners != nil {
		s.events = append(s.events, session.Event{Schema: &session.Schema{Database: database, Expected: true}})
	}
}

// replicates reports what the value of the parameter replication means: "database", or a boolean.
func replicates(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "f", "fa", "fal", "fals", "false", "n", "no", "of", "off":
		return false
	}
	return true
}

// authFromClient relays what the client answers: passwords, and what the mechanisms exchange.
func (s *Session) authFromClient(m message) error {
	if s.chosen(m) {
		s.toServer = append(s.toServer, m.raw...)
	}
	return nil
}

// authFromServer relays the authentication, up to the ReadyForQuery that ends it.
func (s *Session) authFromServer(m message) error {
	switch m.kind {
	case msgReadyForQuery:
		s.startupMessage = nil
		return s.authenticated(m)
	case msgAuthentication:
		s.answered = true
		return s.relayRequest(m)
	case msgParameterStatus:
		s.settings.parameter(m.body)
	case msgBackendKeyData:
		key := reader{b: m.body}
		s.who.Connection = key.uint32()
	case msgErrorResponse:
		if s.choice != nil { // it takes no connection without TLS
			s.cannotBind()
			return nil
		}
		if again, err := s.retries(m); again || err != nil {
			return err
		}
	}
	s.toClient = append(s.toClient, m.raw...)
	return nil
}

// authenticated is called with the server's first ReadyForQuery: the login is over.
func (s *Session) authenticated(m message) error {
	if !s.watches() {
		s.toClient = append(s.toClient, m.raw...)
		s.copyOn()
		return nil
	}
	s.txn.status = txnIdle
	s.phase = phaseAsk
	s.tellLogin()
	s.sendQuestion()
	return nil
}

// LoginOverdue ends a session that took too long to log in. As a server does, it says so only to clients that
// have begun.
func (s *Session) LoginOverdue(now int64) {
	s.now = now
	if s.phase != phaseStartup {
		s.turnAway(sqlstateQueryCanceled, "canceling authentication due to timeout", "")
	}
	s.phase = phaseClosed
}
