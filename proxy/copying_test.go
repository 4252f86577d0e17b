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

	"go.uber.org/goleak"
)

// copied is a connection whose bytes are copied both ways, by its two ends.
type copied struct {
	client, server net.Conn
	stop           func()        // has the copying end
	done           chan struct{} // closed when it has
}

// copies has a test look at each way of copying.
func copies(t *testing.T, test func(t *testing.T, c *copied)) {
	start := func(t *testing.T) (c *copied, sides [2]*side) {
		c = &copied{}
		for i, end := range []*net.Conn{&c.client, &c.server} {
			ours, theirs := socket(t)
			s := newSide(ours)
			sides[i], *end = &s, theirs
		}
		return c, sides
	}
	t.Run("goroutines", func(t *testing.T) {
		c, sides := start(t)
		c.stop, c.done = sides[0].wake, make(chan struct{})
		go func() {
			defer close(c.done)
			var both sync.WaitGroup
			both.Go(func() { copyHalf(sides[1], sides[0]) })
			both.Go(func() { copyHalf(sides[0], sides[1]) })
			both.Wait()
		}()
		test(t, c)
	})
	t.Run("relay", func(t *testing.T) {
		c, sides := start(t)
		var r relays
		t.Cleanup(r.stop)
		pair := r.take(sides[0].conn, sides[1].conn, nil)
		if pair == nil {
			t.Skip("Linux alone has it")
		}
		c.stop, c.done = pair.stop, pair.done
		test(t, c)
	})
}

func TestCopyPassesShortAndLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := make([]byte, 8<<20)
	for i := range said {
		said[i] = byte(rng.Uint32())
	}
	copies(t, func(t *testing.T, c *copied) {
		var both sync.WaitGroup
		for _, way := range [][2]net.Conn{{c.client, c.server}, {c.server, c.client}} {
			both.Go(func() { sayInPieces(t, way[0], said) })
			both.Go(func() {
				if got, err := io.ReadAll(way[1]); err != nil || !bytes.Equal(got, said) {
					t.Errorf("%d bytes came, %v, of %d", len(got), err, len(said))
				}
			})
		}
		both.Wait()
		<-c.done
	})
}

// sayInPieces writes bytes in pieces of random sizes, and closes its direction.
func sayInPieces(t *testing.T, to net.Conn, rest []byte) {
	sizes := rand.New(rand.NewPCG(3, 4))
	for len(rest) > 0 {
		n := min(len(rest), 1+sizes.IntN(1<<sizes.IntN(20)))
		if _, err := to.Write(rest[:n]); err != nil {
			t.Error(err)
			return
		}
		rest = rest[n:]
	}
	to.(*net.TCPConn).CloseWrite()
}

// TestCopyAnswersWhatFollowsLargeResults: what is short is not kept until as much has come as is spliced.
func TestCopyAnswersWhatFollowsLargeResults(t *testing.T) {
	copies(t, func(t *testing.T, c *copied) {
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
		<-c.done
	})
}

func TestCopyPassesResetsOn(t *testing.T) {
	copies(t, func(t *testing.T, c *copied) {
		c.client.Write([]byte("x"))
		io.ReadFull(c.server, make([]byte, 1))
		c.client.(*net.TCPConn).SetLinger(0)
		c.client.Close()
		if _, err := c.server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server is told %v", err)
		}
		<-c.done
	})
}

// TestCopyWaitsForSlowReaders: what one end does not take the other is not read for, and all of it comes in the end.
func TestCopyWaitsForSlowReaders(t *testing.T) {
	copies(t, func(t *testing.T, c *copied) {
		const all = 32 << 20
		sent := make(chan int64, 1)
		go func() {
			c.server.SetWriteDeadline(time.Now().Add(time.Second))
			n, _ := c.server.Write(make([]byte, all))
			c.server.(*net.TCPConn).CloseWrite()
			sent <- int64(n)
		}()
		n := <-sent
		if n == all {
			t.Errorf("isotap took all of %d bytes that nobody reads", all)
		}
		if got, err := io.Copy(io.Discard, c.client); got != n || err != nil {
			t.Errorf("%d of %d bytes came, %v", got, n, err)
		}
		c.client.Close()
		<-c.done
	})
}

func TestStoppedCopyEnds(t *testing.T) {
	copies(t, func(t *testing.T, c *copied) {
		c.stop()
		if _, err := c.server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the server is told %v", err)
		}
		c.server.Close()
		<-c.done
	})
}

func TestStoppedRelaysLeaveNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	var r relays
	var pairs []*relayPair
	for range 50 {
		client, _ := socket(t)
		server, _ := socket(t)
		pair := r.take(client, server, []byte("ahead"))
		if pair == nil {
			t.Skip("Linux alone has it")
		}
		pairs = append(pairs, pair)
	}
	r.stop()
	for _, p := range pairs {
		<-p.done
	}
	ours, _ := socket(t)
	other, _ := socket(t)
	if r.take(ours, other, nil) != nil {
		t.Error("a loop that has ended takes sockets")
	}
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
