package dsn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// A TLSMode says whether a connection to the server is encrypted, and what is checked of the server.
type TLSMode uint8

const (
	// TLSDisable keeps the connection plain.
	TLSDisable TLSMode = iota
	// TLSAllow encrypts if the server takes no plain connection. It is PostgreSQL's only.
	TLSAllow
	// TLSPrefer encrypts if the server can.
	TLSPrefer
	// TLSRequire encrypts, and takes any certificate.
	TLSRequire
	// TLSVerifyCA takes only a certificate that leads to one that is trusted.
	TLSVerifyCA
	// TLSVerifyFull wants the certificate to name the server's host as well.
	TLSVerifyFull
)

// TLS is how the server is connected to. The zero TLS is a plain connection. The rest are names of PEM
// files: whom to trust in the place of the system's authorities, and isotap's own certificate for servers
// that ask for one.
type TLS struct {
	Mode          TLSMode
	CA, Cert, Key string
	// Direct begins TLS without asking the server whether it can (PostgreSQL's from version 17 on).
	Direct bool
}

var tlsModes = [...]string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// String returns the mode's name.
func (m TLSMode) String() string { return tlsModes[m] }

// ParseTLSMode reads a mode by any of the names that drivers have for it: disable, DISABLED, false;
// prefer, PREFERRED; require, REQUIRED, skip-verify, trust; verify-ca, VERIFY_CA; verify-full,
// VERIFY_IDENTITY.
func ParseTLSMode(text string) (TLSMode, error) {
	switch strings.ReplaceAll(strings.ToLower(text), "_", "-") {
	case "", "0", "false", "off", "no", "disable", "disabled":
		return TLSDisable, nil
	case "prefer", "preferred", "allow":
		return TLSPrefer, nil
	case "require", "required", "skip-verify", "trust":
		return TLSRequire, nil
	case "verify-ca":
		return TLSVerifyCA, nil
	case "verify-full", "verify-identity":
		return TLSVerifyFull, nil
	}
	return 0, errors.New("a TLS mode is one of " + strings.Join(tlsModes[:], ", "))
}

// TLSConfig returns how to look at the server; nil where the connection is plain.
func (t Target) TLSConfig() (*tls.Config, error) {
	if t.TLS.Mode == TLSDisable {
		return nil, nil
	}
	host := "localhost"
	if t.Network != "unix" {
		var err error
		if host, _, err = net.SplitHostPort(t.Address); err != nil {
			return nil, fmt.Errorf("the server's address: %w", err)
		}
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if ca := t.authorities(); ca != "" {
		var err error
		if cfg.RootCAs, err = CertPool(ca); err != nil {
			return nil, err
		}
	}
	if t.TLS.Cert != "" || t.TLS.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.TLS.Cert, t.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("load isotap's certificate for the server: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	switch t.TLS.Mode {
	case TLSAllow, TLSPrefer, TLSRequire:
		cfg.InsecureSkipVerify = true
	case TLSVerifyCA:
		cfg.InsecureSkipVerify = true // of the name only
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, cfg.RootCAs) }
	}
	return cfg, nil
}

// authorities names the file of those that may vouch for the server; empty: the system's. Where none is
// named, libpq looks into the user's own directory.
func (t Target) authorities() string {
	switch {
	case t.Family != dbms.PostgreSQLFamily:
		return t.TLS.CA
	case t.TLS.CA == systemRoots:
		return ""
	case t.TLS.CA == "":
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		file := filepath.Join(home, ".postgresql", "root.crt")
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return file
	}
	return t.TLS.CA
}

// verifyChain checks that the server's certificate leads to one that is trusted, whatever its name.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// CertPool reads the certificates of a PEM file.
func CertPool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read certificates: %s holds none", file)
	}
	return pool, nil
}
