package mysql

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// Plug-ins that isotap must know where its legs differ. MariaDB's PAM asks by dialog.
const dialogPlugin = "dialog"

// capMultiFactor says that the server may ask for several answers, one after the other.
const capMultiFactor = 1 << 28

// askedPlugin is no plug-in. Named in a client's stead, it makes every server name the account's own.
const askedPlugin = "isotap_asks"

// First bytes of packets of caching_sha2_password and sha256_password
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html).
const (
	markMoreData   = 0x01
	markNextFactor = 0x02
	fullLogin      = 0x04 // behind markMoreData: the password itself is wanted
	sha2KeyRequest = 0x02
	sha256KeyAsked = 0x01
)

// scrambleBytes is the length of a scramble. Servers put a zero behind it.
const scrambleBytes = 20

// auth is the authentication in progress. It is relayed packet by packet, but for one case: a client
// tells its password itself over what it takes for a safe leg, and encrypted with the other side's
// public key over one that is not. Where only one of the two legs is safe, isotap stands in for the
// other side on either of them.
type auth struct {
	plugin   string
	scramble []byte
	full     bool   // caching_sha2_password wants the password itself
	fresh    bool   // the client has not answered the plug-in yet
	password []byte // with its zero; held while the server is asked for its key
	response []byte // the client's handshake response, while TLS begins with the server
}

// forgetSecrets is called when the authentication is over.
func (s *Session) forgetSecrets() {
	clear(s.password)
	clear(s.response)
	s.auth = auth{scramble: s.scramble}
	b := s.clientPackets.packet
	clear(b[len(b):cap(b)])                            // what stands in it is the client's next packet
	clear(s.toServer[len(s.toServer):cap(s.toServer)]) // what has been sent
}

// An answer is where the client's first answer to a plug-in stands in a packet.
type answer struct {
	from, to int // with its length, or its zero: what is empty is a zero either way
	plugin   int // where the plug-in's name stands
	named    bool
}

func (r *reader) lenencAnswer() answer {
	from := r.pos
	r.lenencBytes()
	return answer{from: from, to: r.pos}
}

func (r *reader) shortAnswer() answer {
	from := r.pos
	r.bytes(int(r.uint8()))
	return answer{from: from, to: r.pos}
}

func (r *reader) cAnswer() answer {
	from := r.pos
	r.cString()
	return answer{from: from, to: r.pos}
}

// beginAuth begins an authentication whose first answer stands in the packet of r, and gives the packet
// as it goes to the server. An answer that one leg's safety has shaped goes no further: the server is
// made to ask for it, and the client answers again.
func (s *Session) beginAuth(r *reader, a answer) []byte {
	s.auth = auth{scramble: s.scramble, plugin: gomysql.AUTH_NATIVE_PASSWORD}
	if r.err != nil || !a.named {
		return r.b
	}
	r.pos = a.plugin
	s.plugin = string(r.cString())
	if s.client.tls == s.server.tls {
		return r.b
	}
	switch s.plugin {
	case gomysql.AUTH_SHA256_PASSWORD, gomysql.AUTH_CLEAR_PASSWORD, dialogPlugin:
	default:
		return r.b
	}
	b := append(bytes.Clone(r.b[:a.from]), 0)
	b = append(b, r.b[a.to:a.plugin]...)
	b = append(append(b, askedPlugin...), 0)
	b = append(b, r.b[r.pos:]...)
	clear(r.b)
	return b
}

// authData takes what the server says while it is neither OK nor ERR.
func (s *Session) authData(payload []byte) error {
	switch {
	case payload[0] == markEOF && len(payload) > 1, payload[0] == markNextFactor && s.caps&capMultiFactor != 0:
		r := reader{b: payload, pos: 1}
		s.plugin, s.full, s.fresh = string(r.cString()), false, true
		s.scramble = bytes.Clone(r.rest())
		if s.revealsPassword() {
			s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
				"the server asks for the password by "+s.plugin+
					", and isotap's connection to it is not encrypted: start isotap with --upstream-tls require")
			return nil
		}
	case payload[0] == markMoreData && s.password != nil:
		return s.sendEncrypted(payload[1:])
	case payload[0] == markMoreData && s.plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD:
		s.full = len(payload) == 2 && payload[1] == fullLogin
	}
	s.sendClient(payload)
	return nil
}

// revealsPassword reports whether the plug-in's answer is the password itself, and the client can take
// the way to the server for safer than it is.
func (s *Session) revealsPassword() bool {
	return (s.plugin == gomysql.AUTH_CLEAR_PASSWORD || s.plugin == dialogPlugin) && s.client.tls && !s.server.safe()
}

// authFromClient takes the client's answer to a plug-in.
func (s *Session) authFromClient(seq byte, payload []byte) error {
	s.client.seq = seq
	fresh := s.fresh
	s.fresh = false
	switch {
	case s.password != nil:
		return fmt.Errorf("%w from the client while the server was asked for its key", errUnexpected)
	case s.plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD && s.full && s.client.safe() != s.server.safe():
		return s.cross(payload, s.client.safe(), sha2KeyRequest)
	case s.plugin == gomysql.AUTH_SHA256_PASSWORD && s.client.tls != s.server.tls && (fresh || s.full) &&
		!noPassword(payload):
		s.full = true // also behind a request for the key
		return s.cross(payload, s.client.tls, sha256KeyAsked)
	}
	s.sendServer(payload)
	return nil
}

// noPassword reports whether an answer of sha256_password is that of an account without a password.
func noPassword(payload []byte) bool {
	return len(payload) == 0 || len(payload) == 1 && payload[0] == 0
}

// cross takes a password, or a request for the key to encrypt it with, from one leg to the other where
// only one of them is safe.
func (s *Session) cross(payload []byte, fromSafe bool, keyRequest byte) error {
	switch {
	case fromSafe:
		s.full = false
		s.password = bytes.Clone(payload)
		s.sendServer([]byte{keyRequest})
		return nil
	case len(payload) == 1 && payload[0] == keyRequest:
		key, err := s.ownKey()
		if err != nil {
			return err
		}
		s.sendClient(append([]byte{markMoreData}, key...))
		return nil
	}
	s.full = false
	key, err := s.cfg.Key()
	if err != nil {
		return fmt.Errorf("make a key pair: %w", err)
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, payload, nil)
	if err != nil {
		s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
			"the client encrypted its password with a public key that is not isotap's: "+
				"let it ask for the key, connect to isotap with TLS (--tls-cert), or start isotap with --upstream-tls disable")
		return nil
	}
	s.scrambleXOR(plain)
	s.sendServer(plain)
	clear(plain)
	return nil
}

// ownKey returns isotap's public key as servers send theirs.
func (s *Session) ownKey() ([]byte, error) {
	key, err := s.cfg.Key()
	if err != nil {
		return nil, fmt.Errorf("make a key pair: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

var errServerKey = errors.New("the server's public key cannot be read")

// sendEncrypted sends the client's password on, encrypted with the key that the server has sent.
func (s *Session) sendEncrypted(key []byte) error {
	block, _ := pem.Decode(key)
	if block == nil {
		return errServerKey
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%w: %w", errServerKey, err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return errServerKey
	}
	s.scrambleXOR(s.password)
	encrypted, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public, s.password, nil)
	clear(s.password)
	s.password = nil
	if err != nil {
		return fmt.Errorf("encrypt the password: %w", err)
	}
	s.sendServer(encrypted)
	return nil
}

// scrambleXOR mixes the scramble into a password, or takes it out again.
func (s *Session) scrambleXOR(password []byte) {
	scramble := s.scramble[:min(len(s.scramble), scrambleBytes)]
	for i := range password {
		if len(scramble) > 0 {
			password[i] ^= scramble[i%len(scramble)]
		}
	}
}
