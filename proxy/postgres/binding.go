package postgres

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/proxy/session"
)

// The mechanisms of SCRAM (RFC 5802, RFC 7677). That which ends in PLUS binds the login to the certificate
// that the client was shown.
const (
	scram     = "SCRAM-SHA-256"
	scramPlus = scram + "-PLUS"
	// couldBind is what a client begins with that could bind its login, but was offered none ("gs2-cbind-flag").
	couldBind = 'y'
)

// binding is what a session knows of the binding of its login to TLS (ADR 22).
type binding struct {
	// oneCertificate says that isotap shows clients the server's own certificate.
	oneCertificate bool
	// unbound says that the server's offer to bind was kept from a client that could take it.
	unbound bool
	// choosing says that the client is to choose a mechanism with its next message.
	choosing bool
	// choice is what the client chose, while the server's leg is made anew for it.
	choice []byte
}

// compareCertificates takes note of the server's certificate.
func (s *Session) compareCertificates(with *tls.ConnectionState) {
	s.oneCertificate = len(with.PeerCertificates) > 0 && bytes.Equal(with.PeerCertificates[0].Raw, s.cfg.Certificate)
}

// relayRequest passes on what the server wants of the client. An offer to bind goes to clients alone that see
// the certificate that the server will compare with: a client without TLS takes it for an attack, and one that
// sees another certificate is refused.
func (s *Session) relayRequest(m message) error {
	if len(m.body) < 4 {
		return fmt.Errorf("%w: an authentication request of %d bytes", errMalformed, len(m.body))
	}
	if binary.BigEndian.Uint32(m.body) != pgproto3.AuthTypeSASL {
		s.toClient = append(s.toClient, m.raw...)
		return nil
	}
	var offer pgproto3.AuthenticationSASL
	if err := offer.Decode(m.body); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	if s.choice != nil {
		s.toServer = append(s.toServer, s.choice...)
		s.choice = nil
		return nil
	}
	s.choosing = true
	if !s.clientLeg.tls || !s.oneCertificate {
		offered := len(offer.AuthMechanisms)
		offer.AuthMechanisms = slices.DeleteFunc(offer.AuthMechanisms,
			func(name string) bool { return name == scramPlus })
		if len(offer.AuthMechanisms) < offered {
			s.unbound = s.clientLeg.tls
		}
	}
	s.toClient = append(s.toClient, encoded(&offer)...)
	return nil
}

// chosen looks at the mechanism that the client chose, and reports whether it goes to the server now. Of a
// client that could have bound its login the server would think that somebody had taken its offer away, as
// is so. Without TLS the server has none to make.
func (s *Session) chosen(m message) bool {
	if !s.choosing || m.kind != msgPassword {
		return true
	}
	s.choosing = false
	var choice pgproto3.SASLInitialResponse
	switch err := choice.Decode(m.body); {
	case err != nil: // the server says what it thinks of it
		return true
	case !s.unbound || choice.AuthMechanism != scram || len(choice.Data) == 0 || choice.Data[0] != couldBind:
		return true
	case s.cfg.ServerTLS == session.MayTLS && s.attempts == 1:
		s.choice = append(s.choice, m.raw...)
		s.tryAgain("the login would be bound to TLS, which cannot be passed on")
	default:
		s.cannotBind()
	}
	return false
}

func (s *Session) cannotBind() {
	s.turnAway(sqlstateConnectionRejected,
		"isotap cannot pass on a login that is bound to TLS, "+
			"because the client and the server are shown different certificates",
		"Connect with channel_binding=disable, or have isotap show the server's own certificate "+
			"(--tls-cert and --tls-key), or leave one of isotap's two connections unencrypted (--tls off, "+
			"or sslmode=disable in the address that --upstream gives).")
}
