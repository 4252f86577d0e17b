package postgres

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Refuse tells a client that has just connected why it is not served. It returns once the client knows, or
// does not follow the protocol: the caller bounds the time, and closes the connection. A client that asks to cancel
// what another does needs no session: its request is given back, for the server.
func Refuse(client io.ReadWriter, why string) (cancel []byte) {
	return refuse(client, sqlstateCannotConnectNow, why)
}

// RefuseTooMany is [Refuse] for a client that is one too many.
func RefuseTooMany(client io.ReadWriter) (cancel []byte) {
	return refuse(client, sqlstateTooManyConnections, "sorry, too many clients already")
}

// FirstMessage reads what a client says first: a message without a type, or of TLS that it begins without asking the
// first byte. It returns nil where that is neither.
func FirstMessage(client io.Reader) []byte {
	first := make([]byte, 1)
	if _, err := io.ReadFull(client, first); err != nil {
		return nil
	}
	if first[0] == handshakeByte {
		return first
	}
	_, startup := readStartup(io.MultiReader(bytes.NewReader(first), client))
	return startup
}

// refuse waits for the client's startup message: only to that does every client take an error for an answer.
func refuse(client io.ReadWriter, state, why string) (cancel []byte) {
	// A client asks for TLS and for GSSAPI once each at most.
	for range 3 {
		code, startup := readStartup(client)
		switch {
		case startup == nil:
			return nil
		case code == codeCancel:
			return startup
		case code == codeSSL, code == codeGSS:
			if _, err := client.Write([]byte{declinesEncryption}); err != nil {
				return nil
			}
		default:
			client.Write(fatal(state, why, "")) // the client may be gone, which is as well
			return nil
		}
	}
	return nil
}

// readStartup reads a message without a type, and returns its code; nil where there is none.
func readStartup(client io.Reader) (code uint32, startup []byte) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return 0, nil
	}
	size := binary.BigEndian.Uint32(head)
	if size < uint32(len(head)) || size > maxStartup {
		return 0, nil
	}
	startup = append(head, make([]byte, int(size)-len(head))...)
	if _, err := io.ReadFull(client, startup[len(head):]); err != nil {
		return 0, nil
	}
	return binary.BigEndian.Uint32(head[4:]), startup
}

// fatal is an ErrorResponse of isotap's own that ends the session. The hint may be empty.
func fatal(state, why, hint string) []byte { return errorResponse("FATAL", state, why, hint) }

// errorResponse is an ErrorResponse of isotap's own. The hint may be empty.
func errorResponse(severity, state, why, hint string) []byte {
	e := pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity,
		Code: state, Message: why, Hint: hint}
	return encoded(&e)
}

// encoded returns the bytes of a message of isotap's own.
func encoded(m pgproto3.Message) []byte {
	b, _ := m.Encode(nil) // refuses messages of a gigabyte only
	return b
}

// turnAway tells the client why its session ends.
func (s *Session) turnAway(code, text, hint string) {
	if !s.cancels { // nobody would read it
		s.toClient = append(s.toClient, fatal(code, text, hint)...)
	}
	s.phase = phaseClosed
}
