package postgres

import (
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestARefusedClientLearnsWhy(t *testing.T) {
	tests := []struct {
		mode, state string
		refuse      func(net.Conn)
	}{
		{"disable", "57P03", func(c net.Conn) { Refuse(c, "there is no server") }},
		{"prefer", "57P03", func(c net.Conn) { Refuse(c, "there is no server") }},
		{"prefer", "53300", func(c net.Conn) { RefuseTooMany(c) }},
	}
	for _, tt := range tests {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				tt.refuse(c)
				c.Close()
			}
		}()
		_, err = pgconn.Connect(t.Context(), "postgres://u@"+l.Addr().String()+"/d?sslmode="+tt.mode)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != tt.state || refusal.Severity != "FATAL" {
			t.Errorf("sslmode=%s: %v", tt.mode, err)
		}
		l.Close()
		<-done
	}
}

func TestWhatIsNoStartupMessageIsNotAnswered(t *testing.T) {
	for _, sent := range []string{"", "GET / HTTP/1.1\r\n\r\n",
		"\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x02"} {
		client, server := net.Pipe()
		answered := make(chan int)
		go func() {
			client.Write([]byte(sent))
			if sent == "" {
				client.Close()
			}
			n, _ := client.Read(make([]byte, 100))
			answered <- n
		}()
		Refuse(server, "no")
		server.Close()
		if n := <-answered; n > 0 {
			t.Errorf("%q is answered with %d bytes", sent, n)
		}
		client.Close()
	}
}
