package proxy

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/isotap/isotap/proxy/mysql"
)

// TLS says how a proxy's legs are encrypted, each on its own.
type TLS struct {
	// Client is what a client is shown; ClientUse says whether it may or must take it.
	Client    *tls.Config
	ClientUse mysql.TLSUse
	// Server is how the server is looked at; ServerUse says whether it may or must speak TLS.
	Server    *tls.Config
	ServerUse mysql.TLSUse
}

// none says whether TLS is left to client and server.
func (t TLS) none() bool { return t.ClientUse == mysql.NoTLS && t.ServerUse == mysql.NoTLS }

// DefaultLoginTimeout is that of MySQL servers (connect_timeout).
const DefaultLoginTimeout = 10 * time.Second

// passwordKey gives the key pair that clients on a plain leg encrypt their passwords for. It is made
// when the first of them asks, and lives as long as the process.
var passwordKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// upgrade begins TLS on a leg.
func (l *link) upgrade(ctx context.Context, leg mysql.Leg) error {
	ctx, cancel := context.WithDeadline(ctx, l.loginBy)
	defer cancel()
	cfg := &l.proxy.cfg.TLS
	s, begin := &l.client, func(c net.Conn) *tls.Conn { return tls.Server(c, cfg.Client) }
	if leg == mysql.ServerLeg {
		s, begin = &l.server, func(c net.Conn) *tls.Conn { return tls.Client(c, cfg.Server) }
	}
	s.setDeadline(time.Time{})
	plain := s.conn
	if leg == mysql.ClientLeg && len(l.ahead) > 0 {
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
