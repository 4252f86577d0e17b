package mysql

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/proxy/session"
)

// asksPassword returns an authentication in which caching_sha2_password asks for the password itself.
func asksPassword(t *testing.T, over legs) *auth {
	t.Helper()
	a := &auth{key: testKey, scramble: []byte("abcdefghijklmnopqrst\x00"), plugin: gomysql.AUTH_CACHING_SHA2_PASSWORD}
	p, err := a.fromServer([]byte{markMoreData, fullLogin}, over, false)
	if err != nil || p.to != session.ClientLeg {
		t.Fatalf("the request goes to leg %v: %v", p.to, err)
	}
	return a
}

// take fails the test unless a packet goes to that leg, and returns what is in it.
func take(t *testing.T, to session.Leg, p authPacket, err error) []byte {
	t.Helper()
	if err != nil || p.refusal != nil || p.to != to {
		t.Fatalf("a packet to leg %v, refusal %v, error %v; want one to leg %v", p.to, p.refusal, err, to)
	}
	return p.payload
}

// TestSafeLegsPasswordIsEncryptedForTheOther: password of a safe leg is encrypted for the other.
func TestSafeLegsPasswordIsEncryptedForTheOther(t *testing.T) {
	over := legs{client: leg{tls: true}}
	a := asksPassword(t, over)
	p, err := a.fromClient([]byte("secret\x00"), over)
	if got := take(t, session.ServerLeg, p, err); !bytes.Equal(got, []byte{sha2KeyRequest}) {
		t.Fatalf("the server gets %q where its key is needed", got)
	}
	if _, err := a.fromClient([]byte("more"), over); err == nil {
		t.Error("the client may go on while the server is asked for its key")
	}
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sent := append([]byte{markMoreData}, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
	p, err = a.fromServer(sent, over, false)
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, take(t, session.ServerLeg, p, err), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.scrambleXOR(plain); string(plain) != "secret\x00" {
		t.Errorf("the server reads the password %q", plain)
	}
	if a.password != nil {
		t.Error("the password is still held")
	}
}

// TestPlainLegsPasswordIsDecryptedForSafeOne: password of a plain leg is decrypted for a safe one.
func TestPlainLegsPasswordIsDecryptedForSafeOne(t *testing.T) {
	over := legs{server: leg{tls: true}}
	a := asksPassword(t, over)
	p, err := a.fromClient([]byte{sha2KeyRequest}, over)
	block, _ := pem.Decode(take(t, session.ClientLeg, p, err)[1:])
	if block == nil {
		t.Fatal("the client gets no key")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	password := []byte("secret\x00")
	a.scrambleXOR(password)
	encrypted, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public.(*rsa.PublicKey), password, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err = a.fromClient(encrypted, over)
	if got := take(t, session.ServerLeg, p, err); string(got) != "secret\x00" || !p.secret {
		t.Errorf("the server gets %q, to be cleared: %t", got, p.secret)
	}
}

func TestPasswordForAnotherKeyIsRefused(t *testing.T) {
	over := legs{server: leg{tls: true}}
	a := asksPassword(t, over)
	if p, err := a.fromClient([]byte("not encrypted for isotap"), over); err != nil || p.refusal == nil {
		t.Errorf("refusal %v, error %v", p.refusal, err)
	}
}

func TestAnswersPassWhereLegsAreAlike(t *testing.T) {
	for _, over := range []legs{{}, {client: leg{tls: true}, server: leg{tls: true}},
		{client: leg{local: true}, server: leg{tls: true}}} {
		a := asksPassword(t, over)
		p, err := a.fromClient([]byte("secret\x00"), over)
		if got := take(t, session.ServerLeg, p, err); string(got) != "secret\x00" || p.secret {
			t.Errorf("%+v: the server gets %q", over, got)
		}
	}
}

func TestSecretsAreForgotten(t *testing.T) {
	password, response := []byte("secret"), []byte("response")
	a := &auth{password: password, response: response, scramble: []byte("kept"), full: true}
	a.forget()
	if a.password != nil || a.response != nil || a.full || string(a.scramble) != "kept" {
		t.Errorf("left behind: %+v", a)
	}
	if string(password) != "\x00\x00\x00\x00\x00\x00" || response[0] != 0 {
		t.Errorf("in memory: %q, %q", password, response)
	}
}
