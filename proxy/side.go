package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
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
	raw      *rawReader         // reads the socket when there is something to read; nil where the system has no such read
	lent     *[readBytes]byte   // what the last read gave is in it; nil while there is nothing
	deadline time.Time          // of reads; zero when there is none
}

// readResult is what one read gave: bytes, valid until the side's next read, or the connection's end. A
// deadline that passed is neither.
type readResult struct {
	bytes []byte
	ended bool
	reset bool // the other side ended it with RST
}

func (r readResult) something() bool { return len(r.bytes) > 0 || r.ended }

// newSide returns a side of a plain socket.
func newSide(conn net.Conn) side { return side{conn: conn, raw: newRawReader(conn)} }

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

// buffers are lent to sides for what they read. Ten thousand clients that say nothing have none.
var buffers = sync.Pool{New: func() any { return new([readBytes]byte) }}

func (s *side) lend() []byte {
	if s.lent == nil {
		s.lent = buffers.Get().(*[readBytes]byte)
	}
	return s.lent[:]
}

func (s *side) giveBack() {
	if s.lent != nil {
		buffers.Put(s.lent)
		s.lent = nil
	}
}

// read waits until the side says something, or its deadline.
func (s *side) read() readResult {
	var n int
	var err error
	if s.packed == nil && s.secure == nil && s.raw != nil {
		s.giveBack()
		n, err = s.raw.readInto(s)
	} else {
		n, err = s.stream().Read(s.lend())
	}
	r := readResult{ended: err != nil && !errors.Is(err, os.ErrDeadlineExceeded),
		reset: errors.Is(err, syscall.ECONNRESET)}
	if n > 0 {
		r.bytes = s.lent[:n]
	}
	return r
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
