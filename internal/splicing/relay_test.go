package splicing

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// A relay stands between isotap and the server and keeps what isotap sends on each connection.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	sent     map[*bytes.Buffer]struct{}
}

// newRelay starts a relay to a server's address.
func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, sent: make(map[*bytes.Buffer]struct{})}
	var links sync.WaitGroup
	links.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			links.Go(func() { r.serve(client, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		links.Wait()
	})
	return r
}

func (r *relay) serve(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	sent := &bytes.Buffer{}
	r.mu.Lock()
	r.sent[sent] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.sent, sent)
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(client, upstream)
		client.(*net.TCPConn).CloseWrite()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		r.mu.Lock()
		sent.Write(buf[:n])
		r.mu.Unlock()
		if _, werr := upstream.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	upstream.(*net.TCPConn).CloseWrite()
	<-done
}

// take returns what was sent since the last call, by connection.
func (r *relay) take() (sent [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for b := range r.sent {
		if b.Len() > 0 {
			sent = append(sent, bytes.Clone(b.Bytes()))
			b.Reset()
		}
	}
	return sent
}

// holds reports whether all of a text stands in what was sent, in its order, with other bytes between. Semicolons do
// not count: texts may be cut there.
func holds(sent, text []byte) bool {
	for _, c := range text {
		if c == ';' {
			continue
		}
		i := bytes.IndexByte(sent, c)
		if i < 0 {
			return false
		}
		sent = sent[i+1:]
	}
	return true
}
