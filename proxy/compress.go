package proxy

import (
	"net"

	"github.com/isotap/isotap/proxy/session"
)

// A compressor is a session whose legs may be compressed. Compressed returns a leg as it is spoken over from now on;
// nil while it goes on as it is.
type compressor interface {
	Compressed(leg session.Leg, c net.Conn) net.Conn
}

// compress begins compression on both legs, where client and server have just agreed on it. What the client sent
// already is compressed.
func (l *clientConn) compress() {
	s, ok := l.session.(compressor)
	if !ok || l.client.packed != nil {
		return
	}
	client := l.client.stream()
	if len(l.buffered) > 0 {
		client = &resumed{Conn: client, ahead: append([]byte(nil), l.buffered...)}
	}
	packed := s.Compressed(session.ClientLeg, client)
	if packed == nil {
		return
	}
	l.buffered = nil
	l.client.packed = packed
	server := l.server.stream()
	if l.server.secure == nil && l.server.out != nil {
		server = l.server.out
	}
	l.server.packed = s.Compressed(session.ServerLeg, server)
}
