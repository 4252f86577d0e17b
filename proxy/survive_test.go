package proxy

import (
	"io"
	"testing"
	"time"
)

// TestFaultOfASessionEndsItsConnectionAlone runs a client connection whose session cannot be used.
func TestFaultOfASessionEndsItsConnectionAlone(t *testing.T) {
	l, client, server := greeted(t)
	l.proxy, l.session = New(Config{}), nil
	l.run(t.Context())
	for _, side := range []io.Reader{client, server} {
		client.SetReadDeadline(time.Now().Add(10 * time.Second))
		server.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := side.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("a side reads %d bytes, %v; want the end", n, err)
		}
	}
}
