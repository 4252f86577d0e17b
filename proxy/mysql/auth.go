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

	"github.com/isotap/isotap/proxy/session"
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

// A leg is what a session knows of one of its connections.
type leg struct {
	seq   byte // of the packet that went last while logging in, either way
	tls   bool // as agreed; it begins with Session.Upgraded
	local bool // a unix socket
}

// safe reports whether a password may go over the leg as it is, as clients and servers see it.
func (l leg) safe() bool { return l.tls || l.local }

// legs are the two connections of a session.
type legs struct{ client, server leg }

// differ reports whether only one of them is encrypted.
func (l legs) differ() bool { return l.client.tls != l.server.tls }

// auth is the authentication in progress. It is relayed packet by packet, but for one case: a client tells its password
// itself over what it takes for a safe leg, and encrypted with the other side's public key over one that is not. Where
// only one of the two legs is safe, isotap stands in for the other side on either of them.
//
// Secrets are held no longer than they are needed: password until the server's key is there, response until TLS has
// begun with the server, and neither after forget.
type auth struct {
	key      func() (*rsa.PrivateKey, error) // isotap's own
	plugin   string
	scramble []byte // the server's; set with its greeting, and anew when it changes the plug-in
	full     bool   // caching_sha2_password wants the password itself
	fresh    bool   // the client has not answered the plug-in yet
	password []byte // with its zero; held while the server is asked for its key
	response []byte // the client's handshake response, while TLS begins with the server
}

// An authPacket is what an authentication goes on with: a packet to one of the sides, or the session's end.
type authPacket struct {
	to      session.Leg
	payload []byte
	secret  bool         // the payload is to be cleared once it is sent
	refusal *serverError // the session ends with that error for the client; payload counts for nothing
}

// reset begins with another plug-in.
func (a *auth) reset(plugin string) {
	*a = auth{key: a.key, scramble: a.scramble, plugin: plugin}
}

// forget is called when the authentication is over.
func (a *auth) forget() {
	clear(a.password)
	clear(a.response)
	a.reset("")
}

// refused ends the session with an error for the client.
func refused(code uint16, state, message string) authPacket {
	return authPacket{refusal: &serverError{code, state, message}}
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

// begin begins an authentication whose first answer stands in the packet of r, and returns the packet
// as it goes to the server. An answer that one leg's safety has shaped goes no further: the server is
// made to ask for it, and the client answers again.
func (a *auth) begin(r *reader, first answer, over legs) []byte {
	a.reset(gomysql.AUTH_NATIVE_PASSWORD)
	if r.err != nil || !first.named {
		return r.b
	}
	r.pos = first.plugin
	a.plugin = string(r.cString())
	if !over.differ() {
		return r.b
	}
	switch a.plugin {
	case gomysql.AUTH_SHA256_PASSWORD, gomysql.AUTH_CLEAR_PASSWORD, dialogPlugin:
	default:
		return r.b
	}
	b := append(bytes.Clone(r.b[:first.from]), 0)
	b = append(b, r.b[first.to:first.plugin]...)
	b = append(append(b, askedPlugin...), 0)
	b = append(b, r.b[r.pos:]...)
	clear(r.b)
	return b
}

// fromServer takes what the server says while it is neither OK nor ERR. multiFactor says that it may ask for several
// answers.
func (a *auth) fromServer(payload []byte, over legs, multiFactor bool) (authPacket, error) {
	switch {
	case payload[0] == markEOF && len(payload) > 1, payload[0] == markNextFactor && multiFactor:
		r := reader{b: payload, pos: 1}
		a.plugin, a.full, a.fresh = string(r.cString()), false, true
		a.scramble = bytes.Clone(r.rest())
		if a.revealsPassword(over) {
			return refused(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
				"the server asks for the password by "+a.plugin+
					", and isotap's connection to it is not encrypted: start isotap with --upstream-tls require"), nil
		}
	case payload[0] == markMoreData && a.password != nil:
		return a.encrypted(payload[1:])
	case payload[0] == markMoreData && a.plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD:
		a.full = len(payload) == 2 && payload[1] == fullLogin
	}
	return authPacket{to: session.ClientLeg, payload: payload}, nil
}

// revealsPassword reports whether the plug-in's answer is the password itself, and the client can take
// the way to the server for safer than it is.
func (a *auth) revealsPassword(over legs) bool {
	return (a.plugin == gomysql.AUTH_CLEAR_PASSWORD || a.plugin == dialogPlugin) &&
		over.client.tls && !over.server.safe()
}

// fromClient takes the client's answer to a plug-in.
func (a *auth) fromClient(payload []byte, over legs) (authPacket, error) {
	fresh := a.fresh
	a.fresh = false
	switch {
	case a.password != nil:
		return authPacket{}, fmt.Errorf("%w from the client while the server was asked for its key", errUnexpected)
	case a.plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD && a.full && over.client.safe() != over.server.safe():
		return a.cross(payload, over.client.safe(), sha2KeyRequest)
	case a.plugin == gomysql.AUTH_SHA256_PASSWORD && over.differ() && (fresh || a.full) &&
		!noPassword(payload):
		a.full = true // also behind a request for the key
		return a.cross(payload, over.client.tls, sha256KeyAsked)
	}
	return authPacket{to: session.ServerLeg, payload: payload}, nil
}

// noPassword reports whether an answer of sha256_password is that of an account without a password.
func noPassword(payload []byte) bool {
	return len(payload) == 0 || len(payload) == 1 && payload[0] == 0
}

// cross takes a password, or a request for the key to encrypt it with, from one leg to the other where
// only one of them is safe.
func (a *auth) cross(payload []byte, fromSafe bool, keyRequest byte) (authPacket, error) {
	switch {
	case fromSafe:
		a.full = false
		a.password = bytes.Clone(payload)
		return authPacket{to: session.ServerLeg, payload: []byte{keyRequest}}, nil
	case len(payload) == 1 && payload[0] == keyRequest:
		key, err := a.ownKey()
		return authPacket{to: session.ClientLeg, payload: append([]byte{markMoreData}, key...)}, err
	}
	a.full = false
	key, err := a.key()
	if err != nil {
		return authPacket{}, fmt.Errorf("make a key pair: %w", err)
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, payload, nil)
	if err != nil {
		return refused(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
			"the client encrypted its password with a public key that is not isotap's: "+
				"let it ask for the key, connect to isotap with TLS (--tls-cert), or start isotap with "+
				"--upstream-tls disable"), nil
	}
	a.scrambleXOR(plain)
	return authPacket{to: session.ServerLeg, payload: plain, secret: true}, nil
}

// ownKey returns isotap's public key as servers send theirs.
func (a *auth) ownKey() ([]byte, error) {
	key, err := a.key()
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

// encrypted sends the client's password on, encrypted with the key that the server has sent.
func (a *auth) encrypted(key []byte) (authPacket, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return authPacket{}, errServerKey
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return authPacket{}, fmt.Errorf("%w: %w", errServerKey, err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return authPacket{}, errServerKey
	}
	a.scrambleXOR(a.password)
	encrypted, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public, a.password, nil)
	clear(a.password)
	a.password = nil
	if err != nil {
		return authPacket{}, fmt.Errorf("encrypt the password: %w", err)
	}
	return authPacket{to: session.ServerLeg, payload: encrypted}, nil
}

// scrambleXOR mixes the scramble into a password, or takes it out again.
func (a *auth) scrambleXOR(password []byte) {
	scramble := a.scramble[:min(len(a.scramble), scrambleBytes)]
	for i := range password {
		if len(scramble) > 0 {
			password[i] ^= scramble[i%len(scramble)]
		}
	}
}
