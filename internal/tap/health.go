package tap

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
func (t *Tap) openAdmin(o *Options) (err error) {
	if o.Admin == "" {
		return nil
	}
	t.admin, err = admin.Listen(admin.Options{Address: o.Admin, Pprof: o.AdminPprof, Metrics: t.Metrics, Healthy: t.Healthy, Ready: t.Ready})
	return err
}

// AdminAddr is where the admin server listens; nil when there is none.
func (t *Tap) AdminAddr() net.Addr {
	if t.admin == nil {
		return nil
	}
	return t.admin.Addr()
}

// Healthy returns why the tap cannot serve; nil when it can: the server is there. Whether what it serves is recorded is up to
// [Tap.Ready].
func (t *Tap) Healthy(ctx context.Context) error {
	if err := t.reachable(ctx); err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return nil
}

// Ready returns why new clients had better go elsewhere: the tap takes none any more, what they do is not recorded, or the tap
// cannot serve them. Nil when they are welcome.
func (t *Tap) Ready(ctx context.Context) error {
	if t.draining() {
		return errors.New("draining: no new clients are taken")
	}
	if t.writer != nil && t.writer.Err() != nil {
		return fmt.Errorf("recording stands still: %w", t.writer.Err())
	}
	return t.Healthy(ctx)
}

func (t *Tap) draining() bool { return t.serving.Err() != nil }

// reachable asks the server over isotap's own connection. In mode off there is none, and the clients'
// own tell; only after a failure of theirs the server is dialled, which MySQL counts as a login that was
// broken off.
func (t *Tap) reachable(ctx context.Context) error {
	p := &t.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeEvery {
		return p.last
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if t.backend == nil {
		p.last = t.proxy.Down()
		if p.last != nil {
			p.last = t.dial(ctx)
		}
	} else {
		p.last = t.ask(ctx)
	}
	p.at = time.Now()
	return p.last
}

// ask has the server answer a query. The connection may be busy with the schema: who waits for it is not
// to wait longer than ctx.
func (t *Tap) ask(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() {
		answered <- t.backend.ping(ctx)
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tap) dial(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, t.upstream.Network, t.upstream.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}
