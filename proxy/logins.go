package proxy

import (
	"container/list"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/isotap/isotap/proxy/session"
)

// The most clients that may be connected without having logged in, in all and of one address. Each of them costs a
// file descriptor; how many of them cost the server a connection, Reloadable.MaxLogins says.
const (
	maxHalfOpen     = 16_384
	maxHalfOpenEach = maxHalfOpen / 2
)

// logins are the clients that have not logged in. They come to the server in their turn, so that those who never log in
// take none of its connections from the others for longer than a login may last.
type logins struct {
	most, each int // of clients: maxHalfOpen, maxHalfOpenEach

	mu      sync.Mutex
	clients int
	dialed  int // clients of these with a connection to the server
	peers   map[netip.Prefix]*peer
	waiting list.List // of *login, those that have asked for a connection to the server, oldest first
}

// A peer is what the clients of one address have.
type peer struct{ clients, dialed int }

// A login is a client's, from its connection until it has logged in or is gone. One goroutine uses it.
type login struct {
	of     *logins
	from   netip.Prefix
	place  *list.Element // in waiting
	turn   chan struct{} // closed when the client may have a connection
	dialed bool
	left   bool
}

// A loginLimit is how many clients may have a connection to the server without having logged in, in all and of one
// address; 0: no bound.
type loginLimit struct{ most, each int }

func (p *Proxy) loginLimit() loginLimit {
	settings := p.reloadable.Load()
	return loginLimit{settings.MaxLogins, settings.MaxLoginsPerAddress}
}

func newLogins() *logins {
	return &logins{most: maxHalfOpen, each: maxHalfOpenEach, peers: make(map[netip.Prefix]*peer)}
}

// addressOf returns what clients are counted by: an IPv4 address, the /64 of an IPv6 one (of which one host may have
// all addresses), or nothing for a unix socket.
func addressOf(client net.Addr) netip.Prefix {
	tcp, ok := client.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// enter counts a client that has connected; nil where there are too many that have not logged in.
func (s *logins) enter(client net.Addr) *login {
	from := addressOf(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.peers[from]
	if s.clients >= s.most || p != nil && p.clients >= s.each {
		return nil
	}
	if p == nil {
		p = &peer{}
		s.peers[from] = p
	}
	s.clients++
	p.clients++
	return &login{of: s, from: from}
}

// ask asks for a connection to the server. The channel is closed when the client may have it; nil: it may at once.
func (l *login) ask(limit loginLimit) <-chan struct{} {
	s := l.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.dialed {
		return nil
	}
	if s.grant(l, limit) { // those who wait could not go
		return nil
	}
	l.turn = make(chan struct{})
	l.place = s.waiting.PushBack(l)
	return l.turn
}

// grant lets a client have a connection, if the limits permit it. It needs s.mu.
func (s *logins) grant(l *login, limit loginLimit) bool {
	p := s.peers[l.from]
	if limit.most > 0 && s.dialed >= limit.most || limit.each > 0 && p.dialed >= limit.each {
		return false
	}
	s.dialed++
	p.dialed++
	l.dialed = true
	return true
}

// leave ends a login, whichever way it went, and lets others have its place. It may be called again.
func (l *login) leave(limit loginLimit) {
	s := l.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.left {
		return
	}
	l.left = true
	if l.place != nil {
		s.waiting.Remove(l.place)
	}
	p := s.peers[l.from]
	s.clients--
	if p.clients--; p.clients == 0 {
		delete(s.peers, l.from)
	}
	if !l.dialed {
		return
	}
	s.dialed--
	p.dialed--
	for e := s.waiting.Front(); e != nil && (limit.most == 0 || s.dialed < limit.most); {
		next, w := e.Next(), e.Value.(*login)
		if s.grant(w, limit) {
			s.waiting.Remove(e)
			w.place = nil
			close(w.turn)
		}
		e = next
	}
}

// counts returns how many clients have not logged in, and how many of these wait for a connection to the server.
func (s *logins) counts() (clients, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients, s.waiting.Len()
}

// awaitTurn returns when the client connection may connect to the server. The error is session.ErrTooManyLogins when
// that took longer than a login may. What the client says meanwhile is kept.
func (l *clientConn) awaitTurn() (waited bool, err error) {
	turn := l.login.ask(l.proxy.loginLimit())
	if turn == nil {
		return false, nil
	}
	overdue := time.NewTimer(time.Until(l.loginBy))
	defer overdue.Stop()
	l.buffered = append([]byte(nil), l.buffered...) // it stands where the next read goes
	for {
		said, err := l.listenUntil(turn, overdue.C)
		l.buffered = append(l.buffered, said.bytes...)
		switch {
		case said.ended:
			return true, io.EOF
		case err != nil || closed(turn):
			return true, err
		case said.something():
			return true, l.waitUntil(turn, overdue.C) // not to read without end
		case l.leaving():
			return true, net.ErrClosed
		}
	}
}

// listenUntil reads the client once, until it is the client connection's turn or too late for that.
func (l *clientConn) listenUntil(turn <-chan struct{}, overdue <-chan time.Time) (readResult, error) {
	l.client.setDeadline(time.Time{})
	read := make(chan readResult, 1)
	go func() { read <- l.client.read() }()
	var err error
	select {
	case said := <-read:
		return said, nil
	case <-turn:
	case <-overdue:
		err = session.ErrTooManyLogins
	}
	l.client.wake()
	return <-read, err
}

// waitUntil returns when it is the client connection's turn, or too late for that.
func (l *clientConn) waitUntil(turn <-chan struct{}, overdue <-chan time.Time) error {
	select {
	case <-turn:
		return nil
	case <-overdue:
		return session.ErrTooManyLogins
	case <-l.proxy.closing.Done():
		return net.ErrClosed
	}
}

// closed reports whether a channel that nobody sends on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
