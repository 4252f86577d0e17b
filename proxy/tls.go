package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/isotap/isotap/proxy/wire"
)

// TLS says how a proxy's legs are encrypted, each on its own.
type TLS struct {
	// Client is what a client is shown; ClientUse says whether it may or must take it.
	Client    *tls.Config
	ClientUse wire.TLSUse
	// Server is how the server is looked at; ServerUse says whether it may or must speak TLS.
	Server    *tls.Config
	ServerUse wire.TLSUse
}

// none says whether TLS is left to client and server.
func (t TLS) none() bool { return t.ClientUse == wire.NoTLS && t.ServerUse == wire.NoTLS }

// DefaultLoginTimeout is that of MySQL servers (connect_timeout).
const DefaultLoginTimeout = 10 * time.Second

// upgrade begins TLS on a leg, or connects to the server again.
func (l *link) upgrade(ctx context.Context, leg wire.Leg) (*tls.ConnectionState, error) {
	ctx, cancel := context.WithDeadline(ctx, l.loginBy)
	defer cancel()
	if leg == wire.ServerAgain {
		return nil, l.redial(ctx)
	}
	cfg := &l.proxy.cfg.TLS
	s, begin := &l.client, func(c net.Conn) *tls.Conn { return tls.Server(c, cfg.Client) }
	if leg == wire.ServerLeg {
		s, begin = &l.server, func(c net.Conn) *tls.Conn { return tls.Client(c, cfg.Server) }
	}
	s.setDeadline(time.Time{})
	plain := s.conn
	if s.out != nil {
		plain = s.out
		s.out.patient = true
		defer func() { s.out.patient = false }()
	}
	if leg == wire.ClientLeg && len(l.ahead) > 0 {
		// A client need not wait for an answer before it begins.
		plain = &resumed{Conn: plain, ahead: append([]byte(nil), l.ahead...)}
		l.ahead = nil
	}
	conn := begin(plain)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	s.secure = conn
	state := conn.ConnectionState()
	return &state, nil
}

// redial takes another connection to the server in the place of the link's.
func (l *link) redial(ctx context.Context) error {
	p := l.proxy
	conn, err := (&net.Dialer{}).DialContext(ctx, p.cfg.Network, p.cfg.Address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	l.server.conn.Close()
	l.server = side{conn: conn, buf: l.server.buf, out: newOutlet(conn)}
	return nil
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
