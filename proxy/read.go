package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/isotap/isotap/proxy/session"
)

const (
	readBytes = 64 << 10
	// quiet is how long the side whose turn it is may say nothing before the other is watched too.
	quiet = 5 * time.Millisecond
)

// A side is a socket as a client connection reads it.
type side struct {
	conn     net.Conn           // the socket; nil for a server that is not connected to yet
	secure   *tls.Conn          // over it; nil on a plain leg
	packed   net.Conn           // compressed over either; nil where it is not
	out      *nonblockingWriter // how the server's socket is written to; nil where a write may wait
	buf      []byte
	deadline time.Time // of reads; zero when there is none
}

// readResult is what one read gave: bytes, valid until the side's next read, or the connection's end. A
// deadline that passed is neither.
type readResult struct {
	bytes []byte
	ended bool
	reset bool // the other side ended it with RST
}

func (r readResult) something() bool { return len(r.bytes) > 0 || r.ended }

// stream is what is spoken over: the socket, TLS over it, or compression over either. Only the client connection's own
// goroutine knows.
func (s *side) stream() net.Conn {
	if s.packed != nil {
		return s.packed
	}
	if s.secure != nil {
		return s.secure
	}
	return s.conn
}

// safety returns who could read along.
func (s *side) safety() Safety {
	switch {
	case s.secure != nil:
		return Encrypted
	case s.conn.RemoteAddr().Network() == "unix":
		return Local
	}
	return Plain
}

func (s *side) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var w io.Writer = s.stream()
	if s.packed == nil && s.secure == nil && s.out != nil {
		w = s.out
	}
	_, err := w.Write(b)
	return err
}

func (s *side) read() readResult {
	n, err := s.stream().Read(s.buf)
	return readResult{bytes: s.buf[:n], ended: err != nil && !errors.Is(err, os.ErrDeadlineExceeded),
		reset: errors.Is(err, syscall.ECONNRESET)}
}

// closeAs closes the side as the other one ended: with FIN, or with RST.
func (s *side) closeAs(reset bool) {
	if tcp, ok := s.conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0) // fails on a closed socket only
		tcp.Close()
		return
	}
	s.stream().Close()
}

// readSoon reads, and gives up after quiet to twice quiet: to set a deadline for each read would cost
// more than it is worth.
func (s *side) readSoon() readResult {
	if now := time.Now(); s.deadline.Sub(now) < quiet {
		s.setDeadline(now.Add(2 * quiet))
	}
	return s.read()
}

func (s *side) setDeadline(t time.Time) {
	s.deadline = t
	if s.conn == nil {
		return
	}
	s.conn.SetReadDeadline(t) // fails on a closed socket only, and then so does the read
}

// wake ends a read that is waiting. It may be called while another goroutine reads.
func (s *side) wake() { s.conn.SetReadDeadline(time.Unix(1, 0)) }

// read waits until either side says something, or the client connection is woken. The protocol has turns, so mostly
// one side is read, by the client connection's own goroutine: from a command to its reply no other needs to run. Both
// are read when it may be either side's turn, and when the one whose turn it is has been quiet for a
// while: the other may end the connection at any time.
func (l *clientConn) read() (client, server readResult) {
	switch {
	case l.server.conn == nil:
		l.client.setDeadline(l.loginBy)
		return l.client.read(), readResult{}
	case l.clientGone:
		return readResult{}, l.server.read()
	case len(l.buffered) > 0:
		return readResult{}, l.server.readSoon()
	}
	switch l.session.Turn() {
	case session.ClientTurn:
		client = l.client.readSoon()
	case session.ServerTurn:
		server = l.server.readSoon()
	}
	if client.something() || server.something() {
		return client, server
	}
	return l.readBoth()
}

// readBoth reads both sides until one of them says something, the client connection is woken, or entries are due to
// be read.
func (l *clientConn) readBoth() (client, server readResult) {
	l.server.setDeadline(time.Time{})
	l.client.setDeadline(time.Time{})
	switch {
	case !l.session.LoggedIn():
		l.client.setDeadline(l.loginBy)
	case l.session.Unread():
		l.client.setDeadline(time.Now().Add(idleRead))
	}
	fromServer := make(chan readResult, 1)
	go func() {
		r := l.server.read()
		l.client.wake()
		fromServer <- r
	}()
	client = l.client.read()
	l.server.wake()
	server = <-fromServer
	l.server.setDeadline(time.Time{})
	l.client.setDeadline(time.Time{})
	return client, server
}
