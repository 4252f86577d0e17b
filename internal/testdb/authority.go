package testdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An Authority signs certificates, which it keeps in PEM files of a directory of its own.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority, whose own certificate is called "ca", with a certificate "server" for this
// machine. The caller ends it with Close.
func NewAuthority() (*Authority, error) {
	dir, err := os.MkdirTemp("", "isotap-tls-")
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	a := &Authority{dir: dir}
	err = os.Chmod(dir, 0o755) // for the servers, which run as users of their own
	if err == nil {
		err = a.Sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	}
	if err == nil {
		err = a.Sign("server", &x509.Certificate{DNSNames: []string{"localhost"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making an authority: %w", err), a.Close())
	}
	return a, nil
}

// OpenAuthority makes an authority for a test.
func OpenAuthority(tb TB) *Authority {
	tb.Helper()
	a, err := NewAuthority()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { a.Close() })
	return a
}

// Close removes the authority's files.
func (a *Authority) Close() error { return os.RemoveAll(a.dir) }

// File is the file of the certificate of the name. Servers may read it and the key's.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name+".pem") }

// KeyFile is the file of a certificate's private key.
func (a *Authority) KeyFile(name string) string { return a.File(name + "-key") }

// Pair loads the certificate of the name and its key.
func (a *Authority) Pair(name string) (tls.Certificate, error) {
	return tls.LoadX509KeyPair(a.File(name), a.KeyFile(name))
}

// Pool holds the authority's own certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Sign makes the certificate of the template, good for an hour, with the name as its common name.
func (a *Authority) Sign(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil { // the authority's own
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("signing the certificate %s: %w", name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{a.File(name): {Type: "CERTIFICATE", Bytes: der},
		a.KeyFile(name): {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o644); err != nil {
			return fmt.Errorf("writing the certificate %s: %w", name, err)
		}
	}
	if a.cert == nil {
		a.key = key
		a.cert, err = x509.ParseCertificate(der)
	}
	return err
}

// certify copies what a PostgreSQL needs to offer TLS into its data directory, under the names that it looks for:
// it takes no key that others may read.
func (a *Authority) certify(at installation) error {
	for name, source := range map[string]string{"server.crt": a.File("server"), "server.key": a.KeyFile("server"),
		"root.crt": a.File("ca")} {
		text, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("reading the server's certificate: %w", err)
		}
		file := filepath.Join(dataDir(at.dir), name)
		err = os.WriteFile(file, text, 0o600)
		if err == nil && at.user != nil {
			err = os.Chown(file, at.user.uid, at.user.gid)
		}
		if err != nil {
			return fmt.Errorf("giving the server its certificate: %w", err)
		}
	}
	return nil
}
