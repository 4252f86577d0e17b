package proxyserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/proxy"
	postgresproxy "github.com/isotap/isotap/proxy/postgres"
	"github.com/isotap/isotap/proxy/session"
)

// ClientTLS says how clients may connect.
type ClientTLS struct {
	Use session.TLSUse
	// Cert and Key are PEM files. Without them isotap makes a certificate of its own at the start.
	Cert, Key string
	// CA is a PEM file: clients that use TLS must show a certificate that it vouches for.
	CA string
}

// ParseClientTLS reads the settings of clients' TLS. The mode is off, optional or required; empty it is
// optional where there is a certificate, required where clients must show theirs, and off otherwise. The
// certificate "auto" is one made at the start.
func ParseClientTLS(mode, cert, key, ca string) (ClientTLS, error) {
	c := ClientTLS{Cert: cert, Key: key, CA: ca}
	if cert == "auto" {
		c.Cert = ""
	}
	switch {
	case mode == "off":
		return ClientTLS{}, nil
	case mode == "required", mode == "" && ca != "":
		c.Use = session.MustTLS
	case mode == "optional", mode == "" && cert != "":
		c.Use = session.MayTLS
	case mode != "":
		return c, fmt.Errorf("--tls: %q is neither off, optional nor required", mode)
	}
	if (c.Cert == "") != (c.Key == "") {
		return c, errors.New("--tls-cert and --tls-key belong together: give both files, or --tls-cert auto alone")
	}
	return c, nil
}

// config returns what clients are shown; nil where TLS is off.
func (c ClientTLS) config() (*tls.Config, error) {
	if c.Use == session.NoTLS {
		return nil, nil
	}
	pair, err := selfSigned()
	if c.Cert != "" {
		pair, err = tls.LoadX509KeyPair(c.Cert, c.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("load the certificate for clients: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.CA != "" {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		if cfg.ClientCAs, err = dsn.CertPool(c.CA); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// selfSignedLife is how long a certificate made at the start is good for: as long as isotap may run.
const selfSignedLife = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate for this host.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "isotap"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(selfSignedLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if host, err := os.Hostname(); err == nil {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// warnOfPlainLegs logs where passwords may go unencrypted although TLS is asked for.
func (o *Options) warnOfPlainLegs() {
	if o.Upstream.Network == "unix" {
		return
	}
	switch mode := o.Upstream.TLS.Mode; {
	case mode == dsn.TLSPrefer:
		o.Logger.Warn("TLS with the server is preferred, not required: the server, or somebody on the way to it, " +
			"can have connections go without (--upstream-tls require, verify-full)")
	case o.ClientTLS.Use == session.MustTLS && mode < dsn.TLSPrefer:
		o.Logger.Warn("clients must use TLS, and isotap's connections to the server are not encrypted: " +
			"what they send can be read there (--upstream-tls)")
	}
}

// legs puts the TLS of a proxy's legs together.
func (o *Options) legs() (proxy.TLS, error) {
	t := proxy.TLS{ClientUse: o.ClientTLS.Use}
	var err error
	if t.Client, err = o.ClientTLS.config(); err != nil {
		return t, err
	}
	if t.Server, err = o.Upstream.TLSConfig(); err != nil {
		return t, err
	}
	switch o.Upstream.TLS.Mode {
	case dsn.TLSDisable:
	case dsn.TLSAllow:
		t.ServerUse = session.LastTLS
	case dsn.TLSPrefer:
		t.ServerUse = session.MayTLS
	default:
		t.ServerUse = session.MustTLS
	}
	if o.Upstream.Family == dbms.PostgreSQLFamily {
		for _, cfg := range []*tls.Config{t.Client, t.Server} {
			if cfg != nil {
				cfg.NextProtos = []string{postgresproxy.ALPN}
			}
		}
	}
	return t, nil
}
