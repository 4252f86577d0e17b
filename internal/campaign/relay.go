//go:build linux

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A relay passes bytes on between those who connect to it and an address, and does harm to them while it is told to.
// Its methods may be called from several goroutines.
type relay struct {
	listener net.Listener
	target   string
	change   mutation // of the bytes; nil: they stay as they are
	serving  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand // nil: nothing is done to what passes
	conns  map[net.Conn]struct{}
	faults int64
}

// A harm is what is done to one connection.
type harm struct {
	kind harmKind
	// after is how many bytes pass in the direction before it happens, for what happens once.
	after int
	// down is the direction: from the server to the client.
	down bool
	wait time.Duration // of a delay, at most
	rate int           // bytes a second
}

type harmKind int

const (
	unharmed  harmKind = iota
	delayed            // each piece waits
	inBytes            // the first bytes come one by one
	narrow             // so many bytes pass a second
	cut                // the connection ends in the middle of a piece
	reset              // it is reset
	halfClose          // one direction ends, as by shutdown(2)
	blackHole          // no more bytes come through, and no end either
	harmKinds
)

// drawHarm draws what happens to a connection.
func drawHarm(random *rand.Rand) harm {
	return harm{kind: harmKind(random.IntN(int(harmKinds))), after: random.IntN(6000), down: random.IntN(2) == 0,
		wait: time.Duration(1+random.IntN(20)) * time.Millisecond, rate: 5000 + random.IntN(100_000)}
}

// newRelay makes a relay to the address, which does no harm yet.
func newRelay(target string, change mutation) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a relay: %w", err)
	}
	r := &relay{listener: l, target: target, change: change, conns: make(map[net.Conn]struct{})}
	r.serving.Go(r.serve)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// harm begins to do harm, as random has it.
func (r *relay) harm(random *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.random = random
}

// calm ends the harm: with it all connections, unless they may stay. It gives the number of connections that were
// harmed.
func (r *relay) calm() (faults int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
	r.random = nil
	faults, r.faults = r.faults, 0
	return faults
}

// close ends the relay and its connections.
func (r *relay) close() error {
	err := r.listener.Close()
	r.calm()
	r.serving.Wait()
	return err
}

func (r *relay) serve() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() { r.pass(client.(*net.TCPConn)) })
	}
}

// pass serves one connection.
func (r *relay) pass(client *net.TCPConn) {
	defer client.Close()
	dialed, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	server := dialed.(*net.TCPConn)
	defer server.Close()
	h, random := r.begin(client, server)
	defer r.forget(client, server)
	var both sync.WaitGroup
	for _, down := range []bool{false, true} {
		p := &pipe{from: client, to: server, harm: h, struck: h.down == down && h.kind != unharmed}
		if down {
			p.from, p.to = server, client
		}
		if r.change != nil && random != nil {
			p.change = r.change(random.Uint64(), down)
		}
		both.Go(p.run)
	}
	both.Wait()
}

// begin draws what happens to a connection. random is nil where nothing does.
func (r *relay) begin(conns ...net.Conn) (h harm, random *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	if r.random == nil {
		return harm{}, nil
	}
	random = rand.New(rand.NewPCG(r.random.Uint64(), 0))
	if r.change != nil {
		r.faults++
		return harm{}, random
	}
	if h = drawHarm(random); h.kind != unharmed {
		r.faults++
	}
	return h, random
}

func (r *relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}

// A pipe is one direction of a relay's connection.
type pipe struct {
	from, to *net.TCPConn
	harm     harm
	struck   bool // the harm is done in this direction
	passed   int
	change   func(p []byte) []byte // nil: the bytes stay as they are
}

func (p *pipe) run() {
	buffer := make([]byte, 4096)
	for {
		n, err := p.from.Read(buffer)
		if n > 0 && !p.pass(buffer[:n]) {
			return
		}
		if err != nil {
			p.to.CloseWrite()
			return
		}
	}
}

// end closes both sides, without a word where reset is true.
func (p *pipe) end(reset bool) bool {
	for _, c := range []*net.TCPConn{p.from, p.to} {
		if reset {
			c.SetLinger(0)
		}
		c.Close()
	}
	return false
}

// pass writes a piece to the other side and reports whether the direction goes on.
func (p *pipe) pass(piece []byte) bool {
	if p.change != nil {
		piece = p.change(piece)
	}
	p.passed += len(piece)
	if p.harm.kind == blackHole && (p.struck && p.passed > p.harm.after) {
		io.Copy(io.Discard, p.from)
		// Who leaves a black hole is not heard of on its other side.
		return false
	}
	if !p.struck {
		return p.write(piece)
	}
	if p.passed > p.harm.after {
		switch p.harm.kind {
		case cut:
			p.write(piece[:len(piece)/2])
			return p.end(false)
		case reset:
			return p.end(true)
		case halfClose:
			p.to.CloseWrite()
			return false
		}
	}
	switch p.harm.kind {
	case delayed:
		time.Sleep(p.harm.wait)
	case narrow:
		time.Sleep(time.Duration(len(piece)) * time.Second / time.Duration(p.harm.rate))
	case inBytes:
		for len(piece) > 0 && p.passed < 20_000 {
			if !p.write(piece[:1]) {
				return false
			}
			piece = piece[1:]
		}
	}
	return p.write(piece)
}

func (p *pipe) write(piece []byte) bool {
	if len(piece) == 0 {
		return true
	}
	if _, err := p.to.Write(piece); err != nil {
		return p.end(false)
	}
	return true
}
