package mysql

import (
	"context"
	"errors"
	"github.com/isotap/isotap/internal/dsn"
	"sync"
)

// readers are connections that are opened when they are needed, so that nobody waits for what another reads. It is safe
// for concurrent use.
type readers struct {
	target dsn.Target

	mu     sync.Mutex
	idle   []*Conn
	closed bool
}

// maxIdle connections are kept for the next ones.
const maxIdle = 4

var errClosed = errors.New("the catalog's connections are closed")

// use gives f a connection that nobody else uses meanwhile.
func (r *readers) use(ctx context.Context, f func(*Conn) error) error {
	conn, err := r.take(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), r.putBack(conn))
}

func (r *readers) take(ctx context.Context) (*Conn, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errClosed
	}
	if n := len(r.idle); n > 0 {
		conn := r.idle[n-1]
		r.idle = r.idle[:n-1]
		r.mu.Unlock()
		return conn, nil
	}
	r.mu.Unlock()
	return Connect(ctx, r.target)
}

func (r *readers) putBack(conn *Conn) error {
	r.mu.Lock()
	keeps := !r.closed && len(r.idle) < maxIdle
	if keeps {
		r.idle = append(r.idle, conn)
	}
	r.mu.Unlock()
	if keeps {
		return nil
	}
	return conn.Close()
}

func (r *readers) close() error {
	r.mu.Lock()
	idle := r.idle
	r.idle, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for _, conn := range idle {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
