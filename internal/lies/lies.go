// Package lies stands before a server, for tests, and answers one question of a client's with a lie.
package lies

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// A Relay passes everything on but for one answer. Its methods may be called from several goroutines.
type Relay struct {
	Addr string // where it listens
	at   int    // the number of the answer that is a lie, from 1 on, over all connections

	mu      sync.Mutex
	answers int
	asked   string // the question that got the lie
}

// next numbers an answer, and reports whether it is to be a lie.
func (r *Relay) next(question string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	if r.answers == r.at {
		r.asked = question
	}
	return r.answers == r.at
}

// Lied reports whether there were as many answers as it takes, and returns the question that got the lie, as far as it
// is known.
func (r *Relay) Lied() (question string, lied bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked, r.answers >= r.at
}

// start listens until the test ends, which ends the connections. Serve ends when one of its two does.
func start(t testing.TB, server string, at int, serve func(r *Relay, client, server net.Conn)) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Addr: l.Addr().String(), at: at}
	var connections sync.WaitGroup
	ended := make(chan struct{})
	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer client.Close()
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				served := make(chan struct{})
				connections.Go(func() {
					select {
					case <-ended: // somebody left a connection open
						client.Close()
						to.Close()
					case <-served:
					}
				})
				defer close(served)
				serve(r, client, to)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(ended)
		connections.Wait()
	})
	return r
}

// pass copies until from ends, and ends to then.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // that it ends is all that matters
	to.Close()
}

// A Panic is the error that a panic becomes, so that the other lies are tried as well.
type Panic struct{ Value any }

func (p *Panic) Error() string { return fmt.Sprint("panic: ", p.Value) }

// Unpanicked returns the error of what it does, or a [Panic].
func Unpanicked(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v}
		}
	}()
	return do()
}
