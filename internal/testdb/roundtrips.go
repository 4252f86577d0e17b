package testdb

import (
	"io"
	"net"
	"sync"
)

// A RoundTrips stands before a server and counts how often a client speaks: once for all that it says before the server
// does. What the client then waits for is a round trip.
type RoundTrips struct {
	Addr string

	mu      sync.Mutex
	count   int
	said    []byte
	answers map[net.Conn]bool // the server has spoken since the client did
}

// CountRoundTrips begins to relay to a server.
func CountRoundTrips(tb TB, server string) *RoundTrips {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	t := &RoundTrips{Addr: l.Addr().String(), answers: make(map[net.Conn]bool)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { t.relay(client, server) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		t.mu.Lock()
		for client := range t.answers {
			_ = client.Close()
		}
		t.mu.Unlock()
		running.Wait()
	})
	return t
}

// relay passes on until either side ends.
func (t *RoundTrips) relay(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	t.mu.Lock()
	t.answers[client] = true
	t.mu.Unlock()
	var answering sync.WaitGroup
	answering.Go(func() {
		defer client.Close()
		pass(client, server, func([]byte) { t.answers[client] = true }, &t.mu)
	})
	pass(server, client, func(said []byte) {
		if t.answers[client] {
			t.count++
		}
		t.answers[client], t.said = false, append(t.said, said...)
	}, &t.mu)
	server.Close()
	answering.Wait()
}

// pass passes on what it has noted.
func pass(to io.Writer, from io.Reader, note func([]byte), mu *sync.Mutex) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			mu.Lock()
			note(buffer[:n])
			mu.Unlock()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Since returns how often clients spoke since the last call, and what they said.
func (t *RoundTrips) Since() (turns int, said string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turns, said = t.count, string(t.said)
	t.count, t.said = 0, nil
	return turns, said
}
