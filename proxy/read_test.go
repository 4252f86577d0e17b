package proxy

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/isotap/isotap/proxy/mysql"
	"github.com/isotap/isotap/proxy/session"
)

// socket returns both ends of a TCP connection.
func socket(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs
}

// greeted returns a client connection that waits for the server's greeting, with the other ends of its sockets.
func greeted(t *testing.T) (l *clientConn, client, server net.Conn) {
	t.Helper()
	l = &clientConn{session: mysql.NewSession(mysql.Config{})}
	ours, client := socket(t)
	l.client = newSide(ours)
	ours, server = socket(t)
	l.server = newSide(ours)
	return l, client, server
}

// TestLinkHearsBothSides: link hears the side whose turn it is not.
func TestLinkHearsBothSides(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(client net.Conn) error
		want func(client, server readResult) bool
	}{
		{"bytes", func(c net.Conn) error { _, err := c.Write([]byte("early")); return err },
			func(client, server readResult) bool { return string(client.bytes) == "early" && !server.something() }},
		{"its end", func(c net.Conn) error { return c.Close() },
			func(client, server readResult) bool { return client.ended && !server.something() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, theirs, _ := greeted(t)
			if l.session.Turn() != session.ServerTurn {
				t.Fatal("it is not the server's turn at the start")
			}
			if err := test.do(theirs); err != nil {
				t.Fatal(err)
			}
			if client, server := l.read(); !test.want(client, server) {
				t.Errorf("heard %+v of the client, %+v of the server", client, server)
			}
		})
	}
}

func TestWokenLinkHearsNothing(t *testing.T) {
	l, _, _ := greeted(t)
	// Again and again, as a drain does: one that comes just before a read may be lost.
	read := make(chan struct{})
	defer close(read)
	go func() {
		for tick := time.Tick(3 * quiet); ; {
			select {
			case <-tick:
				l.client.wake()
			case <-read:
				return
			}
		}
	}()
	if client, server := l.read(); client.something() || server.something() {
		t.Errorf("heard %+v of the client, %+v of the server, who said nothing", client, server)
	}
}

func TestReadingBothSidesLosesNothing(t *testing.T) {
	l, client, server := greeted(t)
	rng := rand.NewChaCha8([32]byte{1})
	said := make([]byte, 1<<17)
	rng.Read(said)
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		for at := 0; at < len(said); {
			n := min(1+int(rng.Uint64()%5000), len(said)-at)
			for _, c := range []net.Conn{client, server} {
				if _, err := c.Write(said[at : at+n]); err != nil {
					return
				}
			}
			if at += n; rng.Uint64()%4 == 0 {
				l.client.wake()
			}
		}
		client.Close()
		server.Close()
	}()
	var fromClient, fromServer bytes.Buffer
	for clientEnded, serverEnded := false, false; !clientEnded || !serverEnded; {
		c, s := l.readBoth()
		fromClient.Write(c.bytes)
		fromServer.Write(s.bytes)
		clientEnded, serverEnded = clientEnded || c.ended, serverEnded || s.ended
	}
	for name, got := range map[string]io.Reader{"client": &fromClient, "server": &fromServer} {
		if b, _ := io.ReadAll(got); !bytes.Equal(b, said) {
			t.Errorf("the %s said %d bytes, other %d were heard", name, len(said), len(b))
		}
	}
}
