package proxyserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/isotap/isotap/internal/admin"
)

// The limits of asking the server whether it is there.
const (
	probeLimit = 2 * time.Second
	probeEvery = time.Second // within it, the last answer counts
)

// A probe asks the server at most once in probeEvery, however many ask it.
type probe struct {
	mu   sync.Mutex
	at   time.Time
	last error
}

// openAdmin opens the admin server, if one is asked for.
func (srv *Server) openAdmin(o *Options) (err error) {
	if o.Admin == "" {
		return nil
	}
	srv.admin, err = admin.Listen(admin.Options{Address: o.Admin, Pprof: o.AdminPprof, Metrics: srv.Metrics,
		Healthy: srv.Healthy, Ready: srv.Ready})
	return err
}

// AdminAddr is where the admin server listens; nil when there is none.
func (srv *Server) AdminAddr() net.Addr {
	if srv.admin == nil {
		return nil
	}
	return srv.admin.Addr()
}

// Healthy returns why isotap cannot serve; nil when it can: the server is there. Whether what it serves is recorded is
// up to [Server.Ready].
func (srv *Server) Healthy(ctx context.Context) error {
	if err := srv.reachable(ctx); err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return nil
}

// Ready returns why new clients had better go elsewhere: isotap takes none any more, what they do is not recorded, or
// isotap cannot serve them. Nil when they are welcome.
func (srv *Server) Ready(ctx context.Context) error {
	if srv.draining() {
		return errors.New("draining: no new clients are taken")
	}
	if srv.writer != nil && srv.writer.Err() != nil {
		return fmt.Errorf("recording stands still: %w", srv.writer.Err())
	}
	return srv.Healthy(ctx)
}

func (srv *Server) draining() bool { return srv.serving.Err() != nil }

// reachable asks the server over isotap's own connection. In mode off there is none, and the clients'
// own tell; only after a failure of theirs the server is dialed, which MySQL counts as a login that was
// broken off.
func (srv *Server) reachable(ctx context.Context) error {
	p := &srv.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeEvery {
		return p.last
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if srv.backend == nil {
		p.last = srv.proxy.Down()
		if p.last != nil {
			p.last = srv.dial(ctx)
		}
	} else {
		p.last = srv.ask(ctx)
	}
	p.at = time.Now()
	return p.last
}

// ask has the server answer a query. The connection may be busy with the schema: who waits for it is not
// to wait longer than ctx.
func (srv *Server) ask(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		answered <- srv.backend.ping(ctx)
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (srv *Server) dial(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, srv.upstream.Network, srv.upstream.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}
