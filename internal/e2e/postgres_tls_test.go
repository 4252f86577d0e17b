package e2e

import (
	"crypto/x509"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// securePostgreSQL starts a server with a certificate for 127.0.0.1, and gives who signed it. It takes the role
// secured over TLS only, shown with a certificate of anybody, and isotap by a certificate of its name.
func securePostgreSQL(t *testing.T) (*testdb.PostgreSQLServer, *testdb.Authority) {
	t.Helper()
	a := testdb.OpenAuthority(t)
	sign(t, a, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	server, err := testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{Authority: a, HBA: []string{
		"hostssl all secured 127.0.0.1/32 trust", "hostssl all shown 127.0.0.1/32 trust clientcert=verify-ca",
		"hostssl all isotap 127.0.0.1/32 cert",
		"host all secured,shown,isotap all reject",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testdb.Exec(t, db, "CREATE ROLE secured LOGIN", "CREATE ROLE shown LOGIN", "CREATE ROLE isotap LOGIN")
	return server, a
}

// TestPostgreSQLServerIsLookedAtAsConfigured connects clients, and isotap itself, by each sslmode.
func TestPostgreSQLServerIsLookedAtAsConfigured(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server, a := securePostgreSQL(t)
	stranger := testdb.OpenAuthority(t)
	sign(t, a, "isotap", &x509.Certificate{})
	shows := "&sslrootcert=" + a.File("ca") + "&sslcert=" + a.File("isotap") + "&sslkey=" + a.KeyFile("isotap")
	direct := "" // servers speak it from version 17 on
	if server.Major() < 17 {
		direct = "EOF"
	}
	_, port, _ := net.SplitHostPort(server.Addr())
	for _, tt := range []struct {
		host, user, parameters string
		says                   string // empty: it works
	}{
		{"127.0.0.1", "postgres", "sslmode=disable", ""},
		{"127.0.0.1", "secured", "sslmode=disable", "28000"},
		{"127.0.0.1", "secured", "sslmode=allow", ""},
		{"127.0.0.1", "secured", "sslmode=prefer", ""},
		{"127.0.0.1", "secured", "sslmode=require", ""},
		{"127.0.0.1", "secured", "sslmode=require&sslnegotiation=direct", direct},
		{"localhost", "secured", "sslmode=verify-ca&sslrootcert=" + a.File("ca"), ""},
		{"127.0.0.1", "secured", "sslmode=verify-ca&sslrootcert=" + stranger.File("ca"), "unknown authority"},
		{"127.0.0.1", "secured", "sslmode=verify-full&sslrootcert=" + a.File("ca"), ""},
		{"localhost", "secured", "sslmode=verify-full&sslrootcert=" + a.File("ca"), "localhost"},
		{"127.0.0.1", "secured", "sslmode=verify-full&sslnegotiation=direct&sslrootcert=" + a.File("ca"), direct},
		{"127.0.0.1", "shown", "sslmode=require", "28000"},
		{"127.0.0.1", "shown", "sslmode=verify-full" + shows, ""},
		{"127.0.0.1", "isotap", "sslmode=verify-full" + shows, ""},
	} {
		t.Run(tt.user+" at "+tt.host+" "+tt.parameters, func(t *testing.T) {
			upstream, err := dsn.Parse("postgres://" + tt.user + "@" + net.JoinHostPort(tt.host, port) +
				"/postgres?" + tt.parameters)
			if err != nil {
				t.Fatal(err)
			}
			srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: upstream, Listen: "127.0.0.1:0",
				Recording: filepath.Join(t.TempDir(), "rec"), Logger: zap.NewNop()})
			if err == nil {
				defer srv.Stop()
				err = askPostgreSQL(t, srv, "disable")
			}
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%v; want %q", err, tt.says)
			}
		})
	}
}

// askPostgreSQL logs in through isotap, and asks something.
func askPostgreSQL(t *testing.T, srv *proxyserver.Server, sslmode string) error {
	c, err := postgresConn(t.Context(), srv, sslmode)
	if err != nil {
		return err
	}
	defer c.Close(t.Context())
	return c.ExecParams(t.Context(), "SELECT count(*) FROM pg_class", nil, nil, nil, nil).Read().Err
}

// TestPostgreSQLClientsAreOfferedTLSAsConfigured has clients that show no certificate, one of the authority that
// isotap is told to trust, and one of another.
func TestPostgreSQLClientsAreOfferedTLSAsConfigured(t *testing.T) {
	a, stranger := testdb.OpenAuthority(t), testdb.OpenAuthority(t)
	certificate := func(a *testdb.Authority) string {
		sign(t, a, "client", &x509.Certificate{})
		return "&" + url.Values{"sslcert": {a.File("client")}, "sslkey": {a.KeyFile("client")}}.Encode()
	}
	shown, foreign := certificate(a), certificate(stranger)
	verified := "verify-full&sslrootcert=" + url.QueryEscape(a.File("ca"))
	const direct = "&sslnegotiation=direct"
	// In TLS 1.3 the client has gone on by then, and what it wrote may end the connection before it reads why.
	const refused = "failed to connect"
	never := func(asked, unasked string) map[string]string {
		return map[string]string{verified: asked, verified + shown: asked, verified + foreign: asked,
			verified + direct: unasked, verified + direct + shown: unasked}
	}
	upstream, err := dsn.Parse(testdb.PostgreSQL(t).URL() + "postgres")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, mode, cert, ca string
		says                 map[string]string // by the client's sslmode; absent: it works
	}{
		{"off", "", "", "", never("refused TLS", "EOF")},
		{"optional", "", "server", "", nil},
		{"required", "required", "server", "", map[string]string{"disable": "encrypted connections only"}},
		{"with certificates", "", "server", "ca", map[string]string{
			"disable": "encrypted connections only", verified: refused, verified + foreign: refused,
			verified + direct: refused}},
		{"made at the start", "optional", "", "", never("unknown authority", "unknown authority")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"server": a.File("server"),
				"key of server": a.KeyFile("server"), "ca": a.File("ca")}
			offered, err := proxyserver.ParseClientTLS(tt.mode, files[tt.cert], files["key of "+tt.cert], files[tt.ca])
			if err != nil {
				t.Fatal(err)
			}
			srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: upstream, Listen: "127.0.0.1:0",
				Off: true, ClientTLS: offered, Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Stop()
			for _, sslmode := range []string{"disable", verified, verified + shown, verified + foreign,
				verified + direct, verified + direct + shown} {
				err := askPostgreSQL(t, srv, sslmode)
				if says, fails := tt.says[sslmode]; fails && (err == nil || !strings.Contains(err.Error(), says)) ||
					!fails && err != nil {
					t.Errorf("sslmode=%s: %v", sslmode, err)
				}
			}
		})
	}
}
