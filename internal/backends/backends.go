// Package backends stands before a PostgreSQL server, for tests, and lends each of its sessions to one client after the
// other. A session of PostgreSQL is a process, and where page faults are dear its start takes ten times what a short
// test does in it.
//
// A client gets a session as it was after its login: DISCARD ALL ran since the last client. That one has logged in with
// the same startup message but for search_path, which is set instead. A session that its client left in the middle of
// something, or that has copied, is ended, as the server would end it.
//
// backends.go lends the sessions, session.go is one of them.
package backends

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Pool lends the sessions of a server. Its methods may be called from several goroutines.
type Pool struct {
	Addr   string // where it listens
	server string

	mu     sync.Mutex
	conns  map[net.Conn]bool     // all that are open
	idle   map[string][]*session // by startup message
	closed bool
}

// Start listens until the test ends, which ends all sessions. The server takes clients without a password and offers no
// TLS.
func Start(t testing.TB, server string) *Pool {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Pool{Addr: l.Addr().String(), server: server, conns: make(map[net.Conn]bool),
		idle: make(map[string][]*session)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

// EndIdle ends the sessions that no client has.
func (p *Pool) EndIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sessions := range p.idle {
		for _, s := range sessions {
			s.conn.Close()
			delete(p.conns, s.conn)
		}
	}
	clear(p.idle)
}

// keep notes an open connection, for the end; it is closed at once where that has come.
func (p *Pool) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
	}
	p.conns[c] = true
}

func (p *Pool) close(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// What the first message of a client may be beside a startup message.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// serve lends a client a session, until the client ends or the session does.
func (p *Pool) serve(client net.Conn) {
	p.keep(client)
	defer p.close(client)
	startup, err := readStartup(client)
	if err != nil {
		return
	}
	if code := binary.BigEndian.Uint32(startup[4:]); code == cancelRequest {
		p.cancel(startup)
		return
	}
	s, greeting, err := p.session(startup)
	if err != nil {
		_, _ = client.Write(greeting) // what the server refuses the client with
		return
	}
	if _, err := client.Write(greeting); err != nil || !s.lend(client) {
		p.close(s.conn)
		return
	}
	client.Close()
	if s.reset() != nil {
		p.close(s.conn)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[s.key] = append(p.idle[s.key], s)
}

// readStartup reads a client's first message, and offers neither TLS nor GSSAPI before it.
func readStartup(client net.Conn) ([]byte, error) {
	for {
		head := make([]byte, 8)
		if _, err := io.ReadFull(client, head); err != nil {
			return nil, err
		}
		if code := binary.BigEndian.Uint32(head[4:]); code == sslRequest || code == gssRequest {
			if _, err := client.Write([]byte{'N'}); err != nil {
				return nil, err
			}
			continue
		}
		m := append(head, make([]byte, binary.BigEndian.Uint32(head)-8)...)
		_, err := io.ReadFull(client, m[8:])
		return m, err
	}
}

// cancel passes a request on, and returns when the server has taken it.
func (p *Pool) cancel(request []byte) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	p.keep(server)
	defer p.close(server)
	if _, err := server.Write(request); err == nil {
		_, _ = io.Copy(io.Discard, server)
	}
}

// session takes an idle session, or begins one, and returns what a client hears of its login: of one that the server
// refuses, too.
func (p *Pool) session(startup []byte) (s *session, greeting []byte, err error) {
	key, path := withoutSearchPath(startup)
	if s = p.take(key); s == nil {
		conn, err := net.Dial("tcp", p.server)
		if err != nil {
			return nil, nil, err
		}
		p.keep(conn)
		s = &session{key: key, conn: conn, in: bufio.NewReader(conn), status: 'I'}
		if err := s.login(); err != nil {
			p.close(conn)
			return nil, s.greeting, err
		}
	}
	greeting = slices.Clone(s.greeting)
	if path != "" {
		told, err := s.run("SET search_path = " + path)
		if err != nil {
			p.close(s.conn)
			return nil, nil, err
		}
		greeting = append(greeting, told...)
	}
	return s, append(greeting, message('Z', "I")...), nil
}

// take returns an idle session that began with the startup message; nil when there is none.
func (p *Pool) take(key string) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[key]
	if len(idle) == 0 {
		return nil
	}
	s := idle[len(idle)-1]
	p.idle[key] = idle[:len(idle)-1]
	return s
}

// withoutSearchPath takes search_path out of a startup message.
func withoutSearchPath(startup []byte) (rest, path string) {
	words := strings.Split(string(startup[8:]), "\x00")
	kept := string(startup[4:8])
	for i := 0; i+1 < len(words) && words[i] != ""; i += 2 {
		if words[i] == "search_path" {
			path = words[i+1]
			continue
		}
		kept += words[i] + "\x00" + words[i+1] + "\x00"
	}
	kept += "\x00"
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(kept)+4))) + kept, path
}
