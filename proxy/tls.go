package proxy

import (
	"context"
	"crypto/tls"
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

// upgrade begins TLS on a leg.
func (l *link) upgrade(ctx context.Context, leg wire.Leg) error {
	ctx, cancel := context.WithDeadline(ctx, l.loginBy)
	defer cancel()
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
		return fmt.Errorf("TLS handshake: %w", err)
	}
	s.secure = conn
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
