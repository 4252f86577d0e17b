package postgres

import (
	"encoding/binary"
	"io"
)

// The SQLSTATEs of a refusal, from PostgreSQL's appendix "PostgreSQL Error Codes".
const (
	tooManyConnections = "53300"
	cannotConnectNow   = "57P03"
	connectionFailure  = "08006"
	protocolViolation  = "08P01"
	adminShutdown      = "57P01"
)

// Refuse tells a client that has just connected why it is not served. It returns once the client knows, or
// does not follow the protocol: the caller bounds the time, and closes the connection.
func Refuse(client io.ReadWriter, why string) { refuse(client, cannotConnectNow, why) }

// RefuseTooMany is [Refuse] for a client that is one too many.
func RefuseTooMany(client io.ReadWriter) {
	refuse(client, tooManyConnections, "sorry, too many clients already")
}

// refuse waits for the client's startup message: only to that does every client take an error for an answer.
func refuse(client io.ReadWriter, state, why string) {
	// A client asks for TLS and for GSSAPI once each at most.
	for range 3 {
		code, ok := readStartup(client)
		switch {
		case !ok, code == codeCancel:
			return
		case code == codeSSL, code == codeGSS:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return
			}
		default:
			client.Write(fatal(state, why, "")) // the client may be gone, which is as well
			return
		}
	}
}

// readStartup reads a message without a type and gives its code.
func readStartup(client io.Reader) (code uint32, ok bool) {
	var head [8]byte
	if _, err := io.ReadFull(client, head[:]); err != nil {
		return 0, false
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < uint32(len(head)) || size > maxStartup {
		return 0, false
	}
	_, err := io.CopyN(io.Discard, client, int64(size)-int64(len(head)))
	return binary.BigEndian.Uint32(head[4:]), err == nil
}

// fatal is an ErrorResponse of isotap's own that ends the session. The hint may be empty.
func fatal(state, why, hint string) []byte {
	b, start := beginMessage(nil, 'E')
	fields := []string{"SFATAL", "VFATAL", "C" + state, "M" + why}
	if hint != "" {
		fields = append(fields, "H"+hint)
	}
	for _, field := range fields {
		b = append(append(b, field...), 0)
	}
	return endMessage(append(b, 0), start)
}

// turnAway tells the client why its session ends.
func (s *Session) turnAway(code, text, hint string) {
	if !s.cancels { // nobody would read it
		s.toClient = append(s.toClient, fatal(code, text, hint)...)
	}
	s.phase = phaseClosed
}
