package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/isotap/isotap/proxy/session"
)

func TestIsLocalJudgesBothEndsOfAConnection(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 3306} }
	for _, tt := range []struct {
		local, remote net.Addr
		want          bool
	}{
		{tcp("10.0.0.1"), tcp("10.0.0.2"), false},
		{tcp("10.0.0.1"), tcp("10.0.0.1"), true},
		{tcp("::ffff:10.0.0.1"), tcp("10.0.0.1"), true},
		{tcp("127.0.0.1"), tcp("127.8.8.8"), true},
		{tcp("10.0.0.1"), tcp("::ffff:127.0.0.1"), true},
		{tcp("127.0.0.1"), tcp("10.0.0.1"), true}, // the server sees where it comes from
		{tcp("10.0.0.1"), tcp("0.0.0.0"), true},
		{tcp("::1"), tcp("::1"), true},
		{tcp("fd00::1"), tcp("fd00::2"), false},
		{&net.UnixAddr{Net: "unix"}, &net.UnixAddr{Name: "@db", Net: "unix"}, true},
	} {
		if got := isLocal(tt.local, tt.remote); got != tt.want {
			t.Errorf("isLocal(%v, %v) = %v", tt.local, tt.remote, got)
		}
	}
}

// nameServer has all names resolved to the address that it holds, and returns it.
func nameServer(t *testing.T) *atomic.Pointer[net.IP] {
	t.Helper()
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var means atomic.Pointer[net.IP]
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := dns.ReadFrom(b)
			if err != nil {
				return
			}
			dns.WriteTo(dnsReply(b[:n], *means.Load()), from)
		}
	}()
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = system
		dns.Close()
	})
	return &means
}

// dnsReply answers a query for an A record with the address, others with nothing (RFC 1035, 4.1).
func dnsReply(query []byte, ip net.IP) []byte {
	const head = 12
	end := head
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the root, type and class
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x85, 0x80
	copy(reply[4:head], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if isA := query[end-3] == 1; isA {
		reply[7] = 1
		reply = append(reply, 0xc0, head, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, ip.To4()...)
	}
	return reply
}

// TestNameThatBecomesThisHostIsRefused has the server's name mean another host when the proxy starts, and this one
// when clients come.
func TestNameThatBecomesThisHostIsRefused(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	means := nameServer(t)
	elsewhere, here := net.IPv4(198, 51, 100, 7), net.IPv4(127, 0, 0, 1)
	means.Store(&elsewhere)
	_, port, _ := net.SplitHostPort(server.Addr().String())
	core, logs := observer.New(zap.WarnLevel)
	for name, protocol := range map[string]Protocol{
		"the server speaks first": {},
		"the client speaks first": {FirstMessage: func(r io.Reader) []byte {
			b := make([]byte, 1)
			r.Read(b)
			return b
		}},
	} {
		t.Run(name, func(t *testing.T) {
			refused := make(chan string, 1)
			protocol.Refuse = func(_ net.Conn, _ Refusal, why string) []byte { refused <- why; return nil }
			protocol.NewSession = func(session.Options) session.Session { panic("none is needed") }
			means.Store(&elsewhere)
			p := New(Config{Network: "tcp", Address: net.JoinHostPort("db.example", port), Off: true,
				Protocol: protocol, Logger: zap.New(core)})
			l, err := net.Listen("tcp", "0.0.0.0:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Serve(ctx, l) }()
			time.Sleep(100 * time.Millisecond) // it has judged the name
			means.Store(&here)
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			client.Write([]byte("x"))
			select {
			case why := <-refused:
				if !strings.Contains(why, "--allow-local-upstream") {
					t.Errorf("the client is told %q", why)
				}
			case <-time.After(10 * time.Second):
				t.Error("the client is not refused")
			}
			if n := p.Stats().LocalUpstream; n != 1 {
				t.Errorf("%d refusals counted", n)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	if logs.FilterMessage("cannot reach the server").Len() == 0 {
		t.Error("nothing is logged")
	}
	means.Store(&here)
	cfg := Config{Network: "tcp", Address: "db.example:3306"}
	if err := cfg.Permits(t.Context(), &net.TCPAddr{IP: net.IPv4zero}); !errors.Is(err, ErrLocalUpstream) {
		t.Errorf("at the start: %v", err)
	}
}
