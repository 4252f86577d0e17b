package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// copied is a connection through copyHalf in both directions, by its two ends.
type copied struct {
	client, server net.Conn
	sides          [2]*side
	both           sync.WaitGroup
}

func copying(t *testing.T) *copied {
	t.Helper()
	c := &copied{}
	for i, end := range []*net.Conn{&c.client, &c.server} {
		ours, theirs := socket(t)
		s := newSide(ours)
		c.sides[i], *end = &s, theirs
	}
	c.both.Go(func() { copyHalf(c.sides[1], c.sides[0]) })
	c.both.Go(func() { copyHalf(c.sides[0], c.sides[1]) })
	return c
}

func TestCopyPassesShortAndLarge(t *testing.T) {
	c := copying(t)
	rng := rand.New(rand.NewPCG(1, 2))
	said := make([]byte, 8<<20)
	for i := range said {
		said[i] = byte(rng.Uint32())
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c.client, c.server}, {c.server, c.client}} {
		sizes := rand.New(rand.NewPCG(3, 4))
		both.Go(func() {
			for rest := said; len(rest) > 0; {
				n := min(len(rest), 1+sizes.IntN(1<<sizes.IntN(20)))
				if _, err := way[0].Write(rest[:n]); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
			way[0].(*net.TCPConn).CloseWrite()
		})
		both.Go(func() {
			if got, err := io.ReadAll(way[1]); err != nil || !bytes.Equal(got, said) {
				t.Errorf("%d bytes came, %v, of %d", len(got), err, len(said))
			}
		})
	}
	both.Wait()
	c.both.Wait()
}

// TestCopyAnswersWhatFollowsLargeResults: what is short is not kept until as much has come as is spliced.
func TestCopyAnswersWhatFollowsLargeResults(t *testing.T) {
	c := copying(t)
	go c.server.Write(make([]byte, 3*spliced/2))
	if _, err := io.ReadFull(c.client, make([]byte, 3*spliced/2)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		for _, way := range [][2]net.Conn{{c.client, c.server}, {c.server, c.client}} {
			way[0].Write([]byte("short"))
			way[1].SetReadDeadline(time.Now().Add(10 * time.Second))
			got := make([]byte, 5)
			if _, err := io.ReadFull(way[1], got); err != nil || string(got) != "short" {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	c.client.Close()
	c.server.Close()
	c.both.Wait()
}

func TestCopyPassesResetsOn(t *testing.T) {
	c := copying(t)
	c.client.Write([]byte("x"))
	io.ReadFull(c.server, make([]byte, 1))
	c.client.(*net.TCPConn).SetLinger(0)
	c.client.Close()
	if _, err := c.server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server is told %v", err)
	}
	c.both.Wait()
}

func TestWokenCopyEnds(t *testing.T) {
	c := copying(t)
	c.sides[0].wake()
	if _, err := c.server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the server is told %v", err)
	}
	c.server.Close()
	c.both.Wait()
}

func TestSidesThatWaitHoldNoBuffers(t *testing.T) {
	ours, theirs := socket(t)
	s := newSide(ours)
	theirs.Write([]byte("said"))
	if said := s.read(); string(said.bytes) != "said" || s.lent == nil {
		t.Fatalf("%+v", said)
	}
	s.setDeadline(time.Now().Add(time.Millisecond))
	if said := s.read(); said.something() || s.raw != nil && s.lent != nil {
		t.Errorf("%+v, and a buffer: %t", said, s.lent != nil)
	}
}
