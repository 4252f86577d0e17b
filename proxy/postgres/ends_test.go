package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/session"
)

// What asks for TLS, for GSSAPI's encryption, and for something that there is not.
var (
	sslRequest  = untyped(1234<<16|5679, "")
	gssRequest  = untyped(1234<<16|5680, "")
	noneRequest = untyped(1234<<16|5681, "")
)

// untyped is a message of a connection's beginning.
func untyped(code uint32, rest string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return string(binary.BigEndian.AppendUint32(b, code)) + rest
}

// startup is the message that begins a session.
func startup(minor uint32, user string, parameters ...string) string {
	return untyped(3<<16|minor, strings.Join(append(parameters, "user", user, "database",
		"postgres"), "\x00")+"\x00\x00")
}

// exchanged sends text to an address, piece by piece, and returns all that is answered up to the end.
func exchanged(t *testing.T, address string, pieces ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var answers bytes.Buffer
	for i, p := range pieces {
		if _, err := c.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if i < len(pieces)-1 { // a request, answered with one byte
			if _, err := io.CopyN(&answers, c, 1); err != nil {
				break
			}
		}
	}
	c.SetReadDeadline(time.Now().Add(testdb.Patience))
	if _, err := io.Copy(&answers, c); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return answers.String()
}

const terminate = "X\x00\x00\x00\x04"

// TestBeginningsAreAnsweredAsByTheServer says to a server without TLS and to a proxy before it what clients
// may say first.
func TestBeginningsAreAnsweredAsByTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	plain := testdb.PostgreSQL(t)
	proxied := throughProxy(t, p, roads{}, func(c *proxy.Config) { c.Address = plain.Addr() })
	for name, pieces := range map[string][]string{
		"nothing more": {startup(0, "postgres") + terminate},
		"options": {startup(0, "postgres", "options",
			"-c work_mem=3MB -c DateStyle=German") + terminate},
		"a parameter unknown":     {startup(0, "postgres", "nonsense", "1")},
		"protocol 3.2":            {startup(2, "postgres") + terminate},
		"protocol 3.9, an option": {startup(9, "postgres", "_pq_.nonsense", "1") + terminate},
		"protocol 4":              {untyped(4<<16, "")},
		"protocol 2":              {untyped(2<<16, "")},
		"TLS, then in the clear":  {sslRequest, startup(0, "postgres") + terminate},
		"TLS at once with it":     {sslRequest + gssRequest + startup(0, "postgres") + terminate},
		"a cancel of nobody":      {untyped(1234<<16|5678, "\x00\x00\x00\x01secr")},
		"TLS at once":             {"\x16\x03\x01\x02\x00\x01\x00"},
		"no user":                 {untyped(3<<16, "\x00")},
		"a message too short":     {"\x00\x00\x00\x04"},
		"a message too long":      {"\x7f\xff\xff\xff\x00\x03\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			direct, through := exchanged(t, plain.Addr(), pieces...), exchanged(t, proxied, pieces...)
			if got, want := kinds(through), kinds(direct); got != want {
				t.Errorf("through the proxy %s\ndirectly          %s", got, want)
			}
		})
	}
}

// Kinds of the server's messages.
const (
	backendKeyData = 'K'
	errorResponse  = 'E'
)

// kinds returns what tells answers apart, without what differs between two sessions: the keys, and what errors say of
// the server's source.
func kinds(answer string) string {
	var b strings.Builder
	for len(answer) > 0 && strings.Contains("NS", answer[:1]) && (len(answer) == 1 || answer[1] != 0) {
		fmt.Fprintf(&b, "%s, ", answer[:1])
		answer = answer[1:]
	}
	for len(answer) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32([]byte(answer[1:5])))
		if size > len(answer) {
			break
		}
		switch body := answer[5:size]; answer[0] {
		case backendKeyData:
			fmt.Fprintf(&b, "K of %d, ", len(body))
		case errorResponse:
			fields, _, _ := strings.Cut(body, "\x00F")
			fields, _, _ = strings.Cut(strings.TrimSuffix(fields, "\x00\x00"), "\x00D")
			fmt.Fprintf(&b, "E %q, ", fields)
		default:
			fmt.Fprintf(&b, "%c %q, ", answer[0], body)
		}
		answer = answer[size:]
	}
	return b.String() + answer
}

func TestBytesBehindARequestForTLSAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	address := throughProxy(t, secureServer(t), roads{client: session.MayTLS})
	if got := kinds(exchanged(t, address, sslRequest+startup(0, "trusted"))); !strings.Contains(got,
		"received unencrypted data after SSL request") {
		t.Errorf("answered %s", got)
	}
	if got := kinds(exchanged(t, address, gssRequest+startup(0, "trusted"))); !strings.Contains(got,
		"received unencrypted data after GSSAPI") {
		t.Errorf("answered %s", got)
	}
	// GSSAPI's encryption would hide everything, so that it is not offered; each may be asked for once.
	plain := throughProxy(t, secureServer(t), roads{})
	for _, requests := range [][]string{{gssRequest, sslRequest}, {sslRequest, gssRequest}, {gssRequest}} {
		got := kinds(exchanged(t, plain, append(requests, startup(0, "trusted")+terminate)...))
		if !strings.HasPrefix(got, strings.Repeat("N, ", len(requests))+"R ") {
			t.Errorf("answered %s", got)
		}
	}
	if got := kinds(exchanged(t, plain, sslRequest, sslRequest)); !strings.Contains(got,
		"unsupported frontend protocol 1234.5679") {
		t.Errorf("one that asks for TLS twice is answered %s", got)
	}
	if got := kinds(exchanged(t, address, gssRequest, noneRequest)); !strings.Contains(got,
		"unsupported frontend protocol 1234.5681") {
		t.Errorf("a request that there is not is answered %s", got)
	}
}

// TestBytesBehindTheServersYesAreRefused has somebody add to the server's answer.
func TestBytesBehindTheServersYesAreRefused(t *testing.T) {
	for answer, want := range map[string]string{
		"Ssomething": "something was sent in the server's name before TLS began",
		"N":          "the server does not support TLS",
		"":           "lost its connection to the server during the login",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			io.ReadFull(c, make([]byte, len(sslRequest)))
			c.Write([]byte(answer))
		}()
		address := throughProxy(t, place{PostgreSQLServer: testdb.PostgreSQL(t)}, roads{server: session.MustTLS},
			func(c *proxy.Config) { c.Address = l.Addr().String() })
		checkLogin(t, connect(t, address, "trusted", "sslmode=disable"), want)
		l.Close()
	}
}

// TestCancelReachesTheRightBackend cancels one of two statements, over each kind of legs. The second client
// speaks the newest protocol that the server does: 3.2, with its longer keys, from version 18 on.
func TestCancelReachesTheRightBackend(t *testing.T) {
	p := secureServer(t)
	for name, r := range map[string]roads{
		"plain":     {},
		"TLS":       {client: session.MustTLS, server: session.MustTLS},
		"a socket":  {socket: true},
		"preferred": {client: session.MayTLS, server: session.MayTLS},
	} {
		t.Run(name, func(t *testing.T) {
			address := throughProxy(t, p, r)
			mode := "disable"
			if r.client != session.NoTLS {
				mode = "require"
			}
			var ended [2]chan error
			var conns [2]*pgconn.PgConn
			for i, protocol := range []string{"3.0", "latest"} {
				conns[i] = logIn(t, address, "sslmode="+mode+"&max_protocol_version="+protocol)
				if got, want := len(conns[i].SecretKey()), keySize(p, protocol); got != want {
					t.Errorf("protocol %s: the key has %d bytes, not %d", protocol, got, want)
				}
				ended[i] = make(chan error, 1)
				go func() {
					_, err := conns[i].Exec(context.Background(), "SELECT pg_sleep(600)").ReadAll()
					ended[i] <- err
				}()
			}
			db := logIn(t, p.Addr(), "sslmode=disable")
			waitFor(t, db, "SELECT count(*) = 2 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND wait_event = 'PgSleep'")
			for i, c := range conns {
				if err := c.CancelRequest(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-ended[i]; !hasState(err, "57014") {
					t.Errorf("the statement ended with %v", err)
				}
				if i == 0 && len(ended[1]) > 0 {
					t.Error("the other statement ended as well")
				}
			}
		})
	}
}

// keySize is how long the key is that a server gives for canceling.
func keySize(p place, protocol string) int {
	if protocol == "3.0" || p.Major() < 18 {
		return 4
	}
	return 32
}

// A cancel has a connection of its own, but is no client.
func TestACancelIsNeverOneTooMany(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	c := logIn(t, throughProxy(t, p, roads{}, func(c *proxy.Config) { c.MaxConns = 1 }), "sslmode=disable")
	ended := make(chan error)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_sleep(600)").ReadAll()
		ended <- err
	}()
	waitFor(t, logIn(t, p.Addr(), "sslmode=disable"),
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND wait_event = 'PgSleep'")
	if err := c.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !hasState(err, "57014") {
		t.Errorf("the statement ended with %v", err)
	}
}

// logIn logs trusted in.
func logIn(t *testing.T, address, parameters string) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://trusted@%s/postgres?%s", address, parameters))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// waitFor asks until the answer is true.
func waitFor(t *testing.T, c *pgconn.PgConn, question string) {
	t.Helper()
	for {
		r := c.ExecParams(t.Context(), question, nil, nil, nil, nil).Read()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if string(r.Rows[0][0]) == "t" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func hasState(err error, state string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == state
}

// TestEndsOfSessionsAreTheServersOwn compares what an idle client is told when the server ends its session.
func TestEndsOfSessionsAreTheServersOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	for name, tt := range map[string]struct {
		statements string
		kill       bool
		from       int // of which version on
		state      string
	}{
		"terminated":                  {"SELECT 1", true, 0, "57P01"},
		"terminated in a transaction": {"BEGIN", true, 0, "57P01"},
		"idle for too long":           {"SET idle_session_timeout = '50ms'", false, 14, "57P05"},
		"idle too long, in a transaction": {"SET idle_in_transaction_session_timeout = '50ms'; BEGIN", false, 0,
			"25P03"},
	} {
		t.Run(name, func(t *testing.T) {
			if p.Major() < tt.from {
				t.Skipf("version %d has no such limit", p.Major())
			}
			for _, r := range []roads{{}, {client: session.MustTLS, server: session.MustTLS}} {
				c := logIn(t, throughProxy(t, p, r), map[session.TLSUse]string{session.NoTLS: "sslmode=disable",
					session.MustTLS: "sslmode=require"}[r.client])
				if _, err := c.Exec(t.Context(), tt.statements).ReadAll(); err != nil {
					t.Fatal(err)
				}
				if tt.kill {
					waitFor(t, logIn(t, p.Addr(), "sslmode=disable"),
						fmt.Sprintf("SELECT pg_terminate_backend(%d)", c.PID()))
				}
				m, err := c.ReceiveMessage(t.Context())
				if err == nil {
					t.Fatalf("told %v", m)
				}
				if !hasState(err, tt.state) {
					t.Errorf("told %v", err)
				}
				if _, err := c.ReceiveMessage(t.Context()); err == nil {
					t.Error("the connection goes on")
				}
			}
		})
	}
}

// TestLoginMayNotTakeForEver ends those who say nothing, and those who do not say their password.
func TestLoginMayNotTakeForEver(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	address := throughProxy(t, secureServer(t), roads{},
		func(c *proxy.Config) { c.LoginTimeout = 200 * time.Millisecond })
	if got := exchanged(t, address, ""); got != "" {
		t.Errorf("who says nothing is told %q", got)
	}
	got := kinds(exchanged(t, address, startup(0, "clear")))
	if !strings.Contains(got, "57014") || !strings.Contains(got, "authentication due to timeout") {
		t.Errorf("who does not give the password is told %s", got)
	}
}

// TestNotificationsReachAnIdleClient has a client wait that says nothing.
func TestNotificationsReachAnIdleClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	heard := make(chan string, 10)
	address := throughProxy(t, p, roads{})
	config, err := pgconn.ParseConfig("postgres://trusted@" + address + "/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { heard <- n.Payload }
	c, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), "LISTEN here").ReadAll(); err != nil {
		t.Fatal(err)
	}
	other := logIn(t, p.Addr(), "sslmode=disable")
	for i := range 5 {
		said := fmt.Sprint("number ", i)
		if _, err := other.Exec(t.Context(), "NOTIFY here, '"+said+"'").ReadAll(); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitForNotification(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != said {
			t.Errorf("heard %q, said %q", got, said)
		}
	}
}
