//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// A rawWriter writes to a socket once, without waiting. It calls the system as often as a plain write does,
// and allocates nothing.
type rawWriter struct {
	raw syscall.RawConn
	// write is the method once, and the rest its parameter and results: a closure would be made for
	// every write.
	write func(fd uintptr) bool
	b     []byte
	n     int
	err   error
}

// trier returns a function that writes what the socket takes at once.
func trier(c net.Conn) func(b []byte) (int, error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return timedTrier(c)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return timedTrier(c)
	}
	w := &rawWriter{raw: raw}
	w.write = w.once
	return w.try
}

func (w *rawWriter) try(b []byte) (int, error) {
	w.b, w.n, w.err = b, 0, nil
	err := w.raw.Write(w.write)
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// once reports whether the socket is done with: always, or RawConn would wait until it can be written to.
func (w *rawWriter) once(fd uintptr) bool {
	n, err := syscall.Write(int(fd), w.b)
	for err == syscall.EINTR {
		n, err = syscall.Write(int(fd), w.b)
	}
	if err != nil && err != syscall.EAGAIN {
		w.err = err
	}
	w.n = max(n, 0)
	return true
}
