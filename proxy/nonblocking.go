package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// A nonblockingWriter is the socket to the server, as a client connection writes to it. A write never waits: what the
// socket does not take at once is kept, and [nonblockingWriter.flush] writes it. A server that waits for its replies to
// be read does not read, so that a client connection which waited for it, with a client that sends commands ahead,
// would wait for ever. It stands below TLS, which cannot go on with a write that was cut off.
//
// One goroutine may Write while another flushes.
type nonblockingWriter struct {
	net.Conn
	try     func(b []byte) (int, error) // writes what the socket takes at once
	patient bool                        // writes wait: there is nobody to flush

	mu     sync.Mutex
	behind bool   // there is a rest, or one is being flushed
	rest   []byte // the bytes that are still to be written
}

func newNonblockingWriter(c net.Conn) *nonblockingWriter {
	return &nonblockingWriter{Conn: c, try: trier(c)}
}

// Write writes b, or keeps it. It fails only if the socket does.
func (o *nonblockingWriter) Write(b []byte) (int, error) {
	if o.patient {
		return o.Conn.Write(b)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	if !o.behind {
		var err error
		if n, err = o.try(b); err != nil {
			return n, err
		}
	}
	if n < len(b) {
		o.behind = true
		o.rest = append(o.rest, b[n:]...)
	}
	return len(b), nil
}

// flushed reports whether nothing is kept.
func (o *nonblockingWriter) flushed() bool {
	if o == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.behind
}

// flush writes what is kept, and what is added meanwhile, until limit if there is one. If the socket fails
// it forgets the rest.
func (o *nonblockingWriter) flush(limit time.Time) (err error) {
	o.Conn.SetWriteDeadline(limit) // fails on a closed socket only, and then so does the write
	var out []byte
	for {
		o.mu.Lock()
		out, o.rest = o.rest, out[:0]
		o.behind = len(out) > 0
		if !o.behind {
			o.rest = nil
		}
		o.mu.Unlock()
		if len(out) == 0 {
			return err
		}
		if err == nil {
			_, err = o.Conn.Write(out)
		}
	}
}

// timedTrier returns up soon, where the system has no write that does not wait at all.
func timedTrier(c net.Conn) func(b []byte) (int, error) {
	return func(b []byte) (int, error) {
		c.SetWriteDeadline(time.Now().Add(quiet))
		n, err := c.Write(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		return n, err
	}
}

// catchUp reads the server until it has taken what it did not take at once. Its replies go to the client
// as ever, and what the session has for the server in answer to them queues behind. The client is not
// read, so what is kept does not grow with what it sends.
func (l *clientConn) catchUp(ctx context.Context) {
	out := l.server.out
	if l.closed || l.catchingUp || out == nil || !out.behind {
		return
	}
	l.catchingUp = true
	defer func() { l.catchingUp = false }()
	var limit time.Time
	if l.clientGone || l.session.Done() {
		limit = time.Now().Add(lastReply) // nobody else would end the wait
	}
	deadline := l.server.deadline
	l.server.setDeadline(time.Time{})
	flushed := make(chan error, 1)
	go func() {
		err := out.flush(limit)
		l.server.wake()
		flushed <- err
	}()
	for !l.closed {
		r := l.server.read()
		if !r.something() {
			break // woken
		}
		l.fromServer(ctx, r)
	}
	if err := <-flushed; err != nil {
		// The server's last words may still be on their way: its side is read to the end.
		l.log().Debug("write to server", zap.Error(err))
	}
	l.server.setDeadline(deadline)
}
