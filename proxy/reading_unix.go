//go:build unix

package proxy

import (
	"io"
	"net"
	"syscall"
)

// A rawReader reads a socket when there is something to read, and takes its buffer no sooner. It calls the system as
// often as a plain read does, and allocates nothing.
type rawReader struct {
	raw syscall.RawConn
	// read is the method once, and the rest its parameter and results: a closure would be made for every read.
	read func(fd uintptr) bool
	side *side
	n    int
	err  error
}

// newRawReader returns nil for what is no socket of the system's.
func newRawReader(c net.Conn) *rawReader {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawReader{raw: raw}
	r.read = r.once
	return r
}

func (r *rawReader) readInto(s *side) (int, error) {
	r.side, r.n, r.err = s, 0, nil
	err := r.raw.Read(r.read) // which waits, until the socket's deadline for reads
	r.side = nil
	if err == nil {
		err = r.err
	}
	return r.n, err
}

// once reports whether the socket had something to say, or has ended. It is called again when that may be so.
func (r *rawReader) once(fd uintptr) bool {
	b := r.side.lend()
	n, err := syscall.Read(int(fd), b)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), b)
	}
	if err == syscall.EAGAIN {
		r.side.giveBack()
		return false
	}
	if r.n = max(n, 0); err == nil && n == 0 {
		err = io.EOF
	}
	r.err = err
	return true
}
