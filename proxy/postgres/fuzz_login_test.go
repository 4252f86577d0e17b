package postgres

import (
	"crypto/tls"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/proxy/session"
)

// FuzzLogin has either side say anything, cut anywhere. Each byte of the input says how the session is set up
// or whose bytes follow, and how many.
func FuzzLogin(f *testing.F) {
	f.Add([]byte("\x05\x08\x00\x00\x00\x08\x04\xd2\x16\x2f\x2a\x00\x00\x00\x15\x00\x03\x00\x00user\x00me\x00\x00"))
	f.Add([]byte("\x0a\x15\x00\x00\x00\x15\x00\x03\x00\x00user\x00me\x00\x00\x81S\x9cR\x00\x00\x00\x2a\x00\x00\x00\x0aSCRAM-SHA-256-PLUS\x00SCRAM-SHA-256\x00\x00"))
	f.Add([]byte("\x00\x10\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x01"))
	f.Add([]byte("\x0f\x01\x16"))
	mutate.Fuzz(f, func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		s := NewSession(Config{Options: session.Options{}, ClientTLS: session.TLSUse(input[0] & 3),
			ServerTLS: session.TLSUse(input[0] >> 2 & 3), DirectTLS: input[0]&16 != 0})
		fed := 0
		for input = input[1:]; len(input) > 1 && !s.Done(); {
			n := min(int(input[0]&0x7f), len(input)-1)
			piece := input[1 : 1+n]
			if fed += n; input[0]&0x80 == 0 {
				if _, err := s.FromClient(0, piece); err != nil {
					return
				}
			} else if err := s.FromServer(0, piece); err != nil {
				return
			}
			input = input[1+n:]
			toClient, toServer := s.Output()
			if len(toClient)+len(toServer) > 2*fed+2000 {
				t.Fatalf("%d bytes make %d", fed, len(toClient)+len(toServer))
			}
			for turns := 0; s.Upgrade() != session.NoLeg; turns++ {
				if turns > 4 {
					t.Fatal("the legs are made again and again")
				}
				s.Upgraded(0, &tls.ConnectionState{NegotiatedProtocol: ALPN}, nil)
			}
			s.Turn()
		}
		s.ServerClosed(0)
		if !s.Done() {
			t.Error("the session goes on without its server")
		}
	})
}
