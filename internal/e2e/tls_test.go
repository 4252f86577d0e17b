package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
)

// mysqlURL is a MySQL server's, whose account root has no password.
func mysqlURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("ISOTAP_TEST_MYSQL_URL")
	if url == "" {
		t.Skip("needs MySQL 9: set ISOTAP_TEST_MYSQL_URL to a server whose root has no password")
	}
	return url
}

// A serverLeg is a way from isotap to a server, a clientLeg one from a client to isotap.
type serverLeg struct {
	name string
	mode dsn.TLSMode
	unix bool
}

type clientLeg struct {
	name string
	tls  bool
	unix bool
}

var (
	serverLegs = []serverLeg{{"plain", dsn.TLSDisable, false}, {"TLS", dsn.TLSRequire, false},
		{"a socket", dsn.TLSDisable, true}}
	clientLegs = []clientLeg{{"plain", false, false}, {"TLS", true, false}, {"a socket", false, true}}
)

// startLegs starts isotaps for both kinds of client, over one way to the server.
func startLegs(t *testing.T, upstream dsn.Target, off bool) (tcp, unix *proxyserver.Server) {
	t.Helper()
	dir := t.TempDir()
	start := func(listen, recording string, use session.TLSUse) *proxyserver.Server {
		srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: upstream, Listen: listen,
			Off: off, Recording: filepath.Join(dir, recording),
			ClientTLS: proxyserver.ClientTLS{Use: use}, Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { srv.Stop() })
		return srv
	}
	return start("127.0.0.1:0", "tcp", session.MayTLS), start("unix:"+filepath.Join(dir, "s"), "unix", session.NoTLS)
}

// TestPasswordsCrossFromLegToLeg logs in by each plug-in that shows a password over safe legs only, over
// each combination of legs.
func TestPasswordsCrossFromLegToLeg(t *testing.T) {
	target, err := dsn.Parse(mysqlURL(t))
	if err != nil {
		t.Fatal(err)
	}
	admin := openTarget(t, target)
	var socket string
	if err := admin.QueryRow("SELECT @@socket").Scan(&socket); err != nil {
		t.Fatal(err)
	}
	for user, plugin := range map[string]string{"crossing2": "caching_sha2_password",
		"crossing256": "sha256_password"} {
		for _, s := range []string{"DROP USER IF EXISTS " + user, "CREATE USER " + user + " IDENTIFIED WITH " + plugin +
			" BY 'pa55 wörd'",
			"DROP USER IF EXISTS " + user + "empty", "CREATE USER " + user + "empty IDENTIFIED WITH " + plugin} {
			if _, err := admin.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		t.Cleanup(func() { admin.Exec("DROP USER " + user + ", " + user + "empty") })
	}
	for _, off := range []bool{false, true} {
		for _, server := range serverLegs {
			upstream := target
			upstream.TLS.Mode = server.mode
			if server.unix {
				upstream.Network, upstream.Address = "unix", socket
			}
			tcp, unix := startLegs(t, upstream, off)
			for _, client := range clientLegs {
				t.Run(fmt.Sprintf("off %v, client %s, server %s", off, client.name, server.name), func(t *testing.T) {
					srv := tcp
					if client.unix {
						srv = unix
					}
					for _, user := range []string{"crossing2", "crossing256"} {
						checkLogins(t, admin, srv, client, user)
					}
				})
			}
		}
	}
}

// checkLogins logs in with the right password, twice (the second time the server may remember it), with a
// wrong one, and without one.
func checkLogins(t *testing.T, admin *sql.DB, srv *proxyserver.Server, leg clientLeg, user string) {
	t.Helper()
	if _, err := admin.Exec("FLUSH PRIVILEGES"); err != nil {
		t.Fatal(err)
	}
	login := func(user, password string) error {
		c := mysql.NewConfig()
		c.User, c.Passwd, c.Net, c.Addr = user, password, srv.Addr().Network(), srv.Addr().String()
		if leg.tls {
			c.TLSConfig = "skip-verify"
		}
		return loginAs(t, c)
	}
	for range 2 {
		if err := login(user, "pa55 wörd"); err != nil {
			t.Errorf("%s with the right password: %v", user, err)
		}
	}
	if err := login(user, "another"); err == nil || !strings.Contains(err.Error(), "1045") {
		t.Errorf("%s with a wrong password: %v", user, err)
	}
	if err := login(user, ""); err == nil || !strings.Contains(err.Error(), "1045") {
		t.Errorf("%s without a password: %v", user, err)
	}
	if err := login(user+"empty", ""); err != nil {
		t.Errorf("%sempty without a password: %v", user, err)
	}
}

// loginAs connects and asks who it is.
func loginAs(t *testing.T, c *mysql.Config) error {
	t.Helper()
	c.Timeout, c.ReadTimeout = 10*time.Second, 10*time.Second
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT SUBSTRING_INDEX(USER(), '@', 1)").Scan(&name); err != nil {
		return err
	}
	if name != c.User {
		t.Errorf("%s is %s to the server", c.User, name)
	}
	return nil
}

func openTarget(t *testing.T, target dsn.Target) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = target.User, target.Password, target.Network, target.Address
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// sign makes a certificate.
func sign(t *testing.T, a *testdb.Authority, name string, template *x509.Certificate) {
	t.Helper()
	if err := a.Sign(name, template); err != nil {
		t.Fatal(err)
	}
}

// secureMariaDB starts a server with a certificate for 127.0.0.1, and gives who signed it.
func secureMariaDB(t *testing.T) (*testdb.Server, *testdb.Authority) {
	t.Helper()
	a := testdb.OpenAuthority(t)
	sign(t, a, "address", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	server, err := testdb.Start(t.Context(),
		testdb.Options{Args: []string{"--ssl-ca=" + a.File("ca"), "--ssl-cert=" + a.File("address"),
			"--ssl-key=" + a.KeyFile("address")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	return server, a
}

func TestServerIsLookedAtAsConfigured(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server, a := secureMariaDB(t)
	stranger := testdb.OpenAuthority(t)
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{"CREATE USER secured@'127.0.0.1' REQUIRE SSL",
		"CREATE USER shown@'127.0.0.1' REQUIRE X509"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	sign(t, a, "isotap", &x509.Certificate{})
	_, port, _ := net.SplitHostPort(server.Addr())
	for _, tt := range []struct {
		name, host, user string
		tls              dsn.TLS
		says             string // empty: it works
	}{
		{"disable", "127.0.0.1", "root", dsn.TLS{}, ""},
		{"disable, where the account wants TLS", "127.0.0.1", "secured", dsn.TLS{}, "1045"},
		{"prefer", "127.0.0.1", "secured", dsn.TLS{Mode: dsn.TLSPrefer}, ""},
		{"require", "127.0.0.1", "secured", dsn.TLS{Mode: dsn.TLSRequire}, ""},
		{"verify-ca", "localhost", "secured", dsn.TLS{Mode: dsn.TLSVerifyCA, CA: a.File("ca")}, ""},
		{"verify-ca by another authority", "127.0.0.1", "secured",
			dsn.TLS{Mode: dsn.TLSVerifyCA, CA: stranger.File("ca")}, "--upstream-ca"},
		{"verify-full", "127.0.0.1", "secured", dsn.TLS{Mode: dsn.TLSVerifyFull, CA: a.File("ca")}, ""},
		{"verify-full of another name", "localhost", "secured", dsn.TLS{Mode: dsn.TLSVerifyFull, CA: a.File("ca")},
			"localhost"},
		{"no certificate", "127.0.0.1", "shown", dsn.TLS{Mode: dsn.TLSRequire}, "1045"},
		{"isotap's certificate", "127.0.0.1", "shown", dsn.TLS{Mode: dsn.TLSVerifyCA, CA: a.File("ca"),
			Cert: a.File("isotap"), Key: a.KeyFile("isotap")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			upstream := dsn.Target{Network: "tcp", Address: net.JoinHostPort(tt.host, port), User: tt.user, TLS: tt.tls}
			srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: upstream, Listen: "127.0.0.1:0",
				Off: true, ClientTLS: proxyserver.ClientTLS{Use: session.MayTLS}})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Stop()
			for _, secure := range []string{"", "skip-verify"} {
				c := driverConfig(t, srv, "")
				c.TLSConfig = secure
				err := loginAs(t, c)
				if tt.says == "" && err != nil || tt.says != "" &&
					(err == nil || !strings.Contains(err.Error(), tt.says)) {
					t.Errorf("client TLS %q: %v", secure, err)
				}
			}
			own, err := catalogmysql.Connect(t.Context(), upstream)
			if (err == nil) != (tt.says == "") {
				t.Errorf("isotap's own connection: %v", err)
			}
			if err == nil {
				own.Close()
			}
		})
	}
}

// TestServerWithoutRequiredTLSIsRefused: server without TLS is refused where it is required.
func TestServerWithoutRequiredTLSIsRefused(t *testing.T) {
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	for mode, says := range map[dsn.TLSMode]string{dsn.TLSPrefer: "", dsn.TLSRequire: "--upstream-tls"} {
		target.TLS.Mode = mode
		srv, err := proxyserver.Start(t.Context(),
			proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Off: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Stop()
		err = loginAs(t, driverConfig(t, srv, ""))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestClientsAreOfferedTLSAsConfigured(t *testing.T) {
	a := testdb.OpenAuthority(t)
	sign(t, a, "client", &x509.Certificate{})
	pair, err := a.Pair("client")
	if err != nil {
		t.Fatal(err)
	}
	mysql.RegisterTLSConfig("verified", &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"})
	mysql.RegisterTLSConfig("shown", &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1",
		Certificates: []tls.Certificate{pair}})
	for _, tt := range []struct {
		name, mode, cert, ca string
		says                 map[string]string // by the client's TLS; absent: it works
	}{
		{"off", "", "", "", map[string]string{"verified": "TLS", "shown": "TLS"}},
		{"optional", "", "server", "", nil},
		{"required", "required", "server", "", map[string]string{"": "3159"}},
		{"with certificates", "", "server", "ca", map[string]string{"": "3159", "verified": "invalid connection"}},
		{"made at the start", "optional", "", "", map[string]string{"verified": "unknown authority",
			"shown": "unknown authority"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"": ""}
			for _, n := range []string{"server", "server-key", "ca"} {
				files[n] = a.File(n)
			}
			key := ""
			if tt.cert != "" {
				key = files[tt.cert+"-key"]
			}
			offered, err := proxyserver.ParseClientTLS(tt.mode, files[tt.cert], key, files[tt.ca])
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, func(o *proxyserver.Options) { o.ClientTLS = offered })
			for _, secure := range []string{"", "verified", "shown"} {
				c := driverConfig(t, b.srv, "")
				c.TLSConfig = secure
				err := loginAs(t, c)
				if says, fails := tt.says[secure]; fails && (err == nil || !strings.Contains(err.Error(), says)) ||
					!fails && err != nil {
					t.Errorf("client TLS %q: %v", secure, err)
				}
			}
		})
	}
}
