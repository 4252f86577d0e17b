package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/isotap/isotap/proxy/wire"
)

// What the first message of a connection asks for, by the number behind its length ("Message Formats").
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
	// maxStartup is the server's own limit for messages without a type.
	maxStartup = 10000
)

// login is what a session knows of its login.
type login struct {
	// replication says that the connection is one for replication: it is passed through untouched.
	replication bool
}

// startupBytes takes a message without a type out of p, or what there is of it.
func (s *Session) startupBytes(p []byte) (int, error) {
	const head = 8
	in := &s.client
	used := 0
	if missing := head - len(in.buf); missing > 0 {
		used = min(missing, len(p))
		if in.buf = append(in.buf, p[:used]...); len(in.buf) < head {
			return used, nil
		}
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
	return used, s.startup(binary.BigEndian.Uint32(packet[4:]), packet)
}

// startup takes the first message of a connection.
func (s *Session) startup(code uint32, packet []byte) error {
	switch code {
	case codeSSL, codeGSS:
		s.toClient = append(s.toClient, 'N')
		return nil
	case codeCancel:
		s.toServer = append(s.toServer, packet...)
		s.phase = phaseCopy
		return nil
	}
	s.takeStartup(packet[8:])
	s.toServer = append(s.toServer, packet...)
	s.phase = phaseAuth
	return nil
}

// takeStartup reads the parameters of the startup message.
func (s *Session) takeStartup(params []byte) {
	r := reader{b: params}
	for {
		name := string(r.cString())
		if name == "" || r.err != nil {
			return
		}
		value := string(r.cString())
		switch name {
		case "user":
			s.events = append(s.events, wire.Event{User: &value})
		case "replication":
			s.replication = replicates(value)
		}
	}
}

// replicates says what the value of the parameter replication means: "database", or a boolean.
func replicates(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "f", "fa", "fal", "fals", "false", "n", "no", "of", "off":
		return false
	}
	return true
}

// authFromClient relays what the client answers: passwords, and what the mechanisms exchange.
func (s *Session) authFromClient(m message) error {
	s.toServer = append(s.toServer, m.raw...)
	return nil
}

// authFromServer relays the authentication, up to the ReadyForQuery that ends it.
func (s *Session) authFromServer(m message) error {
	if m.kind != 'Z' {
		s.toClient = append(s.toClient, m.raw...)
		return nil
	}
	return s.authenticated(m)
}

// authenticated is called with the server's first ReadyForQuery: the login is over.
func (s *Session) authenticated(m message) error {
	if !s.watches() {
		s.toClient = append(s.toClient, m.raw...)
		s.copyOn()
		return nil
	}
	s.status = 'I'
	s.phase = phaseAsk
	s.ask(&answer{login: true})
	return nil
}

// LoginOverdue ends a session that took too long to log in.
func (s *Session) LoginOverdue(now int64) {
	s.now = now
	s.phase = phaseClosed
}
