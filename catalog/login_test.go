package catalog

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
)

// listenAs serves connections, and returns the address.
func listenAs(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func TestFailedLoginsSayWhatIsThere(t *testing.T) {
	broken := errors.New("the library's words")
	mysql := listenAs(t, func(c net.Conn) { c.Write([]byte{1, 0, 0, 0, 10}) })
	postgres := listenAs(t, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, 8)); err == nil {
			c.Write([]byte{'N'})
		}
	})
	web := listenAs(t, func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n")) })
	for _, tt := range []struct {
		name    string
		family  dbms.Family
		address string
		err     error
		said    *Refusal
		want    string
	}{
		{"PostgreSQL", dbms.MySQLFamily, postgres, broken, nil, "the server there speaks PostgreSQL's protocol: " +
			"its address begins with postgres://"},
		{"MySQL", dbms.PostgreSQLFamily, mysql, broken, nil, "the server there speaks MySQL's protocol: " +
			"its address begins with mysql://"},
		{"the server that was meant", dbms.MySQLFamily, mysql, broken, nil, ": the library's words"},
		{"no server", dbms.MySQLFamily, web, broken, nil, ": the library's words"},
		{"nobody", dbms.MySQLFamily, web, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, nil,
			"nothing listens there: connection refused"},
		{"no host", dbms.MySQLFamily, web, &net.DNSError{Name: "db.example", IsNotFound: true}, nil,
			"there is no host db.example"},
		{"a password", dbms.MySQLFamily, mysql, broken, &Refusal{"Access denied for x", "error 1045", true},
			"the server refuses the user or the password: Access denied for x (error 1045)"},
		{"too many", dbms.MySQLFamily, mysql, broken, &Refusal{"Too many connections", "error 1040", false},
			"the server refuses the connection: Too many connections (error 1040)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			target := dsn.Target{Family: tt.family, Network: "tcp", Address: tt.address}
			err := NewLoginError(t.Context(), target, tt.err, tt.said)
			if !strings.HasSuffix(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "connecting to ") ||
				!errors.Is(err, tt.err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Who has no time left is told at once: a proxy that ends does not wait to know who did not answer.
func TestNobodyIsAskedWhenTimeIsUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	at := time.Now()
	e := NewLoginError(ctx, dsn.Target{Network: "tcp", Address: silent.Addr().String()}, context.DeadlineExceeded, nil)
	if took := time.Since(at); took > greetingTime {
		t.Errorf("%q after %v", e.Why, took)
	}
}
