package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
)

// A relay is a session that passes everything on. It owes the client as many bytes as it had from it, and
// says whose turn it is by that.
type relay struct {
	session.Session
	turn               session.Turn // what it says while something is owed
	secure             bool         // has the server's leg begin TLS first
	owed               int
	toClient, toServer []byte
	done               bool
}

func (r *relay) FromClient(_ int64, p []byte) (int, error) {
	if r.secure {
		return 0, nil
	}
	r.owed += len(p)
	r.toServer = append(r.toServer, p...)
	return len(p), nil
}

func (r *relay) FromServer(_ int64, p []byte) error {
	r.owed -= len(p)
	r.toClient = append(r.toClient, p...)
	return nil
}

func (r *relay) Output() (toClient, toServer []byte) {
	toClient, toServer = r.toClient, r.toServer
	r.toClient, r.toServer = r.toClient[:0], r.toServer[:0]
	return toClient, toServer
}

func (r *relay) Turn() session.Turn {
	switch {
	case r.owed > 0:
		return r.turn
	case r.owed == 0:
		return session.ClientTurn
	}
	return session.EitherTurn
}

func (r *relay) Upgrade() session.Leg {
	if r.secure {
		return session.ServerLeg
	}
	return session.NoLeg
}

func (r *relay) Upgraded(_ int64, _ *tls.ConnectionState, failed error) {
	r.secure, r.done = false, failed != nil
}
func (r *relay) Events() []session.Event { return nil }
func (r *relay) Copying() bool           { return false }
func (r *relay) LoggedIn() bool          { return true }
func (r *relay) InTransaction() bool     { return r.owed > 0 }
func (r *relay) Unread() bool            { return false }
func (r *relay) Dismiss(int64)           {}
func (r *relay) ClientClosed(int64)      { r.done = r.owed <= 0 }
func (r *relay) ServerClosed(int64)      { r.done = true }
func (r *relay) Done() bool              { return r.done }

// A road is how a client connection reaches its server.
type road struct {
	name    string
	network string
	secure  bool
}

var roads = []road{{"TCP", "tcp", false}, {"a unix socket", "unix", false}, {"TLS", "tcp", true}}

// throughProxy runs a client connection between a client, whose end it gives, and a server that serve is. Both must be
// done when the test ends.
func throughProxy(t *testing.T, r road, turn session.Turn, serve func(c net.Conn)) net.Conn {
	t.Helper()
	address := "127.0.0.1:0"
	if r.network == "unix" {
		address = filepath.Join(t.TempDir(), "server")
	}
	l, err := net.Listen(r.network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err := net.Dial(r.network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client, ours := socket(t)
	p := New(Config{Off: true, TLS: TLS{Server: &tls.Config{InsecureSkipVerify: true}}})
	link := &clientConn{proxy: p, session: &relay{turn: turn, secure: r.secure}, info: history.Session{},
		loginBy: time.Now().Add(time.Minute),
		login:   p.logins.enter(client.RemoteAddr()), client: newSide(client), server: newSide(server)}
	link.server.out = newNonblockingWriter(server)
	var both sync.WaitGroup
	both.Go(func() { link.run(t.Context()) })
	both.Go(func() {
		defer theirs.Close()
		if r.secure {
			theirs = tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
		}
		serve(theirs)
	})
	t.Cleanup(func() {
		ours.Close()
		both.Wait()
	})
	return ours
}

func certificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Error(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Error(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// pipelined is how much a test sends ahead.
func pipelined() int64 {
	if testing.Short() {
		return 16 << 20
	}
	return 128 << 20
}

// A counted reader gives size bytes, in pages of which no two are alike.
type counted struct{ at, size int64 }

func (c *counted) Read(b []byte) (int, error) {
	const page = 4 << 10
	if c.at == c.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), c.size-c.at)]
	clear(b)
	for at := 0; at < len(b); { // as much as there is room for: each write costs more than what it writes
		inPage := int(c.at % page)
		n := min(len(b)-at, page-inPage)
		if number := binary.BigEndian.AppendUint64(nil, uint64(c.at/page)); inPage < len(number) {
			copy(b[at:at+n], number[inPage:])
		}
		at, c.at = at+n, c.at+int64(n)
	}
	return len(b), nil
}

// sum is the checksum of what the reader gives, and how much that was.
func sum(r io.Reader) (string, int64) {
	h := sha256.New()
	n, _ := io.Copy(h, struct{ io.Reader }{r})
	return string(h.Sum(nil)), n
}

// TestPipelineLongerThanAllBuffersComesThrough has a client send far ahead of the replies that it reads, to
// servers that do not read while they write.
func TestPipelineLongerThanAllBuffersComesThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	size := pipelined()
	want, _ := sum(&counted{size: size})
	echo := func(c net.Conn) {
		io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 8<<10))
	}
	writeFirst := func(c net.Conn) {
		io.Copy(struct{ io.Writer }{c}, &counted{size: size})
		io.Copy(io.Discard, struct{ io.Reader }{io.LimitReader(c, size)})
	}
	for _, r := range roads {
		for name, serve := range map[string]func(net.Conn){"answers piece by piece": echo,
			"writes before it reads": writeFirst} {
			for turn, says := range []string{"either's", "the client's", "the server's"} {
				t.Run(fmt.Sprintf("%s, a server that %s, %s turn", r.name, name, says), func(t *testing.T) {
					client := throughProxy(t, r, session.Turn(turn), serve)
					peak := heapPeak(func() {
						sent := make(chan error, 1)
						go func() {
							_, err := io.Copy(struct{ io.Writer }{client}, &counted{size: size})
							sent <- err
						}()
						if got, n := sum(io.LimitReader(client, size)); got != want {
							t.Errorf("%d of %d bytes came back, or others", n, size)
						}
						if err := <-sent; err != nil {
							t.Error(err)
						}
					})
					if peak > 32<<20 {
						t.Errorf("the heap grew by %d MiB", peak>>20)
					}
				})
			}
		}
	}
}

// heapPeak returns by how much the heap grew at most while f ran, garbage included.
func heapPeak(f func()) uint64 {
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				if runtime.ReadMemStats(&m); m.HeapAlloc > before.HeapAlloc {
					most.Store(max(most.Load(), m.HeapAlloc-before.HeapAlloc))
				}
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most.Load()
}

// TestSideThatDoesNotReadStopsTheOther counts what the other side can send into a client connection before it is
// stopped.
func TestSideThatDoesNotReadStopsTheOther(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	// More than every socket's buffers hold together, and less than would show if it were kept.
	const most = 64 << 20
	fill := func(c net.Conn) (n int64) {
		for n < most {
			c.SetWriteDeadline(time.Now().Add(time.Second))
			m, err := c.Write(make([]byte, 64<<10))
			n += int64(m)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return n
			}
			if err != nil {
				return -1
			}
		}
		return n
	}
	for _, r := range roads {
		t.Run("the client, over "+r.name, func(t *testing.T) {
			got := make(chan int64, 1)
			client := throughProxy(t, r, session.EitherTurn, func(c net.Conn) { got <- fill(c) })
			if r.secure {
				if _, err := client.Write([]byte("begin")); err != nil {
					t.Fatal(err)
				}
			}
			if n := <-got; n <= 0 || n >= most {
				t.Errorf("the server could write %d bytes", n)
			}
		})
		t.Run("the server, over "+r.name, func(t *testing.T) {
			stop := make(chan struct{})
			client := throughProxy(t, r, session.ClientTurn, func(c net.Conn) {
				c.Read(make([]byte, 1))
				<-stop
			})
			if n := fill(client); n <= 0 || n >= most {
				t.Errorf("the client could write %d bytes", n)
			}
			close(stop)
		})
	}
}
