package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/mysql"
)

const (
	readBytes = 64 << 10
	// idleRead is how long a client is quiet before isotap reads what its last write captured.
	idleRead = 200 * time.Millisecond
	// lastReply is how long a link waits for the server's last replies when its client is gone.
	lastReply = 10 * time.Second
	// reloadLimit bounds how long a client waits for the schema to be read again.
	reloadLimit = 5 * time.Second
)

// A link is one client's connection and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu      sync.Mutex // guards everything below, and the order of writes to both sockets
	changed sync.Cond  // the session took something from the server
	session *mysql.Session
	info    history.Session
	idle    *time.Timer
	closed  bool

	draining atomic.Bool
}

// run drives the session until it is done or either side is gone.
func (l *link) run(ctx context.Context) {
	defer l.finish(ctx)
	var both sync.WaitGroup
	both.Go(func() { l.fromClient(ctx) })
	both.Go(func() { l.fromServer(ctx) })
	both.Wait()
}

// finish records the session's end, and whatever its last moments left, even if the drain is over.
func (l *link) finish(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		l.idle.Stop()
	}
	l.session.ServerClosed(l.proxy.now())
	err := l.record(ctx)
	l.info.End = l.proxy.now()
	if err := errors.Join(err, l.proxy.cfg.Recorder.Session(ctx, l.info)); err != nil {
		l.log().Error("the recording failed", zap.Error(err))
	}
}

func (l *link) log() *zap.Logger {
	return l.proxy.cfg.Logger.With(zap.Uint32("session", uint32(l.info.ID)))
}

// fromClient feeds the session what the client sends.
func (l *link) fromClient(ctx context.Context) {
	buf := make([]byte, readBytes)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !l.feedClient(ctx, buf[:n]) {
			return
		}
		if err != nil {
			l.clientClosed(ctx)
			return
		}
	}
}

// feedClient gives the session all of p, waiting for replies where it takes no more before them. It
// says whether the link goes on.
func (l *link) feedClient(ctx context.Context, p []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(p) > 0 && !l.closed {
		n, err := l.session.FromClient(l.proxy.now(), p)
		p = p[n:]
		l.step(ctx, err)
		if n == 0 && len(p) > 0 && !l.closed {
			l.changed.Wait()
		}
	}
	return !l.closed
}

// clientClosed lets the session finish what it has in flight: an update that the client did not wait
// for has happened all the same.
func (l *link) clientClosed(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.server.SetReadDeadline(time.Now().Add(lastReply))
	l.session.ClientClosed(l.proxy.now())
	l.step(ctx, nil)
}

// fromServer feeds the session what the server sends.
func (l *link) fromServer(ctx context.Context) {
	buf := make([]byte, readBytes)
	for {
		n, err := l.server.Read(buf)
		l.mu.Lock()
		if n > 0 && !l.closed {
			l.step(ctx, l.session.FromServer(l.proxy.now(), buf[:n]))
		}
		if err != nil && !l.closed {
			l.session.ServerClosed(l.proxy.now())
			l.step(ctx, nil)
		}
		closed := l.closed
		l.changed.Signal()
		l.mu.Unlock()
		if closed {
			return
		}
	}
}

// step deals with what the session answered: first the events, so that nothing is acknowledged that
// was to be recorded before, then the bytes. failed is the session's own error, if it had one.
func (l *link) step(ctx context.Context, failed error) {
	if err := l.record(ctx); err != nil {
		l.proxy.notRecording(err)
		if l.proxy.cfg.Durable {
			failed = errors.Join(failed, fmt.Errorf("record: %w", err))
		}
	}
	if failed != nil {
		l.log().Error("the session cannot go on", zap.Error(failed))
		l.close()
		return
	}
	toClient, toServer := l.session.Output()
	if err := write(l.server, toServer); err != nil {
		// The server's last words may still be on their way: its side is read to the end.
		l.log().Debug("write to server", zap.Error(err))
	}
	if err := write(l.client, toClient); err != nil {
		l.session.ClientClosed(l.proxy.now())
	}
	if l.session.Done() || l.draining.Load() && !l.session.InTransaction() && !l.session.Unread() {
		l.close()
		return
	}
	l.watchIdle(ctx)
}

func write(c net.Conn, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := c.Write(b)
	return err
}

// record hands the session's events over.
func (l *link) record(ctx context.Context) error {
	cfg := &l.proxy.cfg
	for _, e := range l.session.Events() {
		switch {
		case e.Txn != nil:
			if err := cfg.Recorder.Txn(ctx, e.Txn); err != nil {
				return err
			}
		case e.User != nil:
			l.info.User = *e.User
			if err := cfg.Recorder.Session(ctx, l.info); err != nil {
				return err
			}
		case e.SchemaChanged:
			reload, cancel := context.WithTimeout(ctx, reloadLimit)
			err := cfg.Reload(reload)
			cancel()
			if err != nil {
				l.log().Warn("cannot read the schema again: changed tables may go unobserved", zap.Error(err))
			}
		case e.Note != "":
			l.log().Warn(e.Note)
		}
	}
	return nil
}

// watchIdle has captured entries read when the client stays quiet.
func (l *link) watchIdle(ctx context.Context) {
	if !l.session.Unread() {
		return
	}
	if l.idle == nil {
		l.idle = time.AfterFunc(idleRead, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.closed {
				l.session.Idle(l.proxy.now())
				l.step(ctx, nil)
			}
		})
		return
	}
	l.idle.Reset(idleRead)
}

// drain ends the link as soon as its client has no transaction open: now, or after the step that is
// under way.
func (l *link) drain(ctx context.Context) {
	l.draining.Store(true)
	if l.session == nil || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if l.closed || l.session.InTransaction() {
		return
	}
	l.server.SetReadDeadline(time.Now().Add(lastReply))
	l.session.ClientClosed(l.proxy.now())
	l.step(ctx, nil)
}

// close closes both sockets, which ends both goroutines.
func (l *link) close() {
	l.closed = true
	l.client.Close()
	l.server.Close()
	l.changed.Broadcast()
}

// copy moves bytes both ways until both sides have said all they had to.
func (l *link) copy() {
	var both sync.WaitGroup
	both.Go(func() { copyHalf(l.server, l.client) })
	both.Go(func() { copyHalf(l.client, l.server) })
	both.Wait()
}

// copyHalf copies one direction, and passes its end on.
func copyHalf(dst, src net.Conn) {
	io.Copy(dst, src)
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	dst.Close()
}
