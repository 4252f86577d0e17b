package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/proxy/session"
)

// TLS says how a proxy's legs are encrypted, each on its own.
type TLS struct {
	// Client is what a client is shown; ClientUse says whether it may or must take it.
	Client    *tls.Config
	ClientUse session.TLSUse
	// Server is how the server is looked at; ServerUse says whether it may or must speak TLS.
	Server    *tls.Config
	ServerUse session.TLSUse
}

// none reports whether TLS is left to client and server.
func (t TLS) none() bool { return t.ClientUse == session.NoTLS && t.ServerUse == session.NoTLS }

// DefaultLoginTimeout is that of MySQL servers (connect_timeout).
const DefaultLoginTimeout = 10 * time.Second

// upgrade begins TLS on a leg, or connects to the server again.
func (l *clientConn) upgrade(ctx context.Context, leg session.Leg) (*tls.ConnectionState, error) {
	ctx, cancel := context.WithDeadline(ctx, l.loginBy)
	defer cancel()
	switch leg {
	case session.ServerDial:
		return nil, l.dial(ctx)
	case session.ServerAgain:
		return nil, l.connect(ctx)
	}
	cfg := &l.proxy.cfg.TLS
	s, begin := &l.client, func(c net.Conn) *tls.Conn { return tls.Server(c, cfg.Client) }
	if leg == session.ServerLeg {
		s, begin = &l.server, func(c net.Conn) *tls.Conn { return tls.Client(c, cfg.Server) }
	}
	s.setDeadline(time.Time{})
	plain := s.conn
	if s.out != nil {
		plain = s.out
		s.out.patient = true
		defer func() { s.out.patient = false }()
	}
	if leg == session.ClientLeg && len(l.buffered) > 0 {
		// A client need not wait for an answer before it begins.
		plain = &resumed{Conn: plain, ahead: append([]byte(nil), l.buffered...)}
		l.buffered = nil
	}
	conn := begin(plain)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	s.secure = conn
	state := conn.ConnectionState()
	return &state, nil
}

// dial makes the client connection's first connection to the server, in its turn. The error is for the client to read:
// why it cannot be made is logged.
func (l *clientConn) dial(ctx context.Context) error {
	p := l.proxy
	waited, err := l.awaitTurn()
	if err == nil {
		if err = l.connect(ctx); err == nil {
			return nil
		}
		if waited && !time.Now().Before(l.loginBy) {
			err = session.ErrTooManyLogins // its turn came too late to be of use
		}
	}
	switch {
	case errors.Is(err, session.ErrTooManyLogins):
		p.meter.tooManyLogins.Add(1)
		p.sayTooManyLogins(l.client.conn.RemoteAddr(), "it was not its turn in time")
		return err
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return err
	}
	p.cannotReach(err)
	if errors.Is(err, ErrLocalUpstream) {
		return errors.New("isotap does not lend a login of its own host to clients of a listener that others can " +
			"reach (--allow-local-upstream)")
	}
	return fmt.Errorf("isotap cannot reach the server at %s", p.cfg.Address)
}

// cannotReach logs why there is no connection to the server.
func (p *Proxy) cannotReach(err error) {
	p.seldom.Warn("cannot reach the server", zap.String("address", p.cfg.Address), zap.Error(err))
}

// connect makes a connection to the server, in the place of the client connection's if it has one.
func (l *clientConn) connect(ctx context.Context) error {
	p := l.proxy
	ctx, cancel := p.untilClosing(ctx)
	defer cancel()
	conn, err := p.dial(ctx, l.lends)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	if l.server.conn != nil {
		l.server.conn.Close()
	}
	l.server = newSide(conn)
	l.server.out = newNonblockingWriter(conn)
	return nil
}

// untilClosing returns a context that also ends when all client connections are closed.
func (p *Proxy) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.closing, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// A resumed connection gives bytes first that were read of it before.
type resumed struct {
	net.Conn
	ahead []byte
}

func (r *resumed) Read(b []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}
