package e2e

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// plainServers are servers without TLS, by family, and what logs a client in through isotap.
func plainServers(t *testing.T) map[string]func(o proxyserver.Options) *proxyserver.Server {
	t.Helper()
	_, maria := ownServer(t, nil)
	return map[string]func(o proxyserver.Options) *proxyserver.Server{
		"MariaDB": func(o proxyserver.Options) *proxyserver.Server {
			o.Upstream.Family, o.Upstream.Network, o.Upstream.Address = maria.Family, maria.Network, maria.Address
			o.Upstream.User, o.Upstream.Database = maria.User, maria.Database
			srv := startProxy(t, o)
			secure := "false"
			if o.ClientTLS.Use != 0 {
				secure = "skip-verify"
			}
			c, err := mysql.ParseDSN("root@tcp(" + srv.Addr().String() + ")/d?tls=" + secure)
			if err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("mysql", c.FormatDSN())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.PingContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			return srv
		},
		"PostgreSQL": func(o proxyserver.Options) *proxyserver.Server {
			own := postgresOptions(t).Upstream
			own.TLS = o.Upstream.TLS
			o.Upstream = own
			srv := startProxy(t, o)
			mode := "disable"
			if o.ClientTLS.Use != 0 {
				mode = "require"
			}
			c, err := postgresConn(t.Context(), srv, mode)
			if err != nil {
				t.Fatal(err)
			}
			c.Close(t.Context())
			return srv
		},
	}
}

func TestPreferredTLSIsNeverGivenUpInSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "the servers are the distribution's, where it ran", "mariadb", "postgresql")
	for name, login := range plainServers(t) {
		for _, off := range []bool{false, true} {
			core, logs := observer.New(zap.WarnLevel)
			srv := login(proxyserver.Options{Off: off, Logger: zap.New(core),
				Upstream: dsn.Target{TLS: dsn.TLS{Mode: dsn.TLSPrefer}}})
			checkLogged(t, name, logs, "TLS with the server is preferred, not required", 1)
			checkLogged(t, name, logs, "the connection to the server is not encrypted, although TLS is preferred", 1)
			if n := metric(srv, "isotap_tls_downgrades_total"); n != "1" {
				t.Errorf("%s, off %v: %s downgrades are counted", name, off, n)
			}
			if n := metric(srv, `isotap_logins_total{client="plain",server="plain"}`); n != "1" {
				t.Errorf("%s, off %v: %s plain logins are counted", name, off, n)
			}
		}
	}
}

func TestRequiredTLSOverAPlainServerIsSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "the servers are the distribution's, where it ran", "mariadb", "postgresql")
	required, err := proxyserver.ParseClientTLS("required", "auto", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, login := range plainServers(t) {
		core, logs := observer.New(zap.WarnLevel)
		srv := login(proxyserver.Options{ClientTLS: required, Logger: zap.New(core)})
		checkLogged(t, name, logs, "clients must use TLS, and isotap's connections to the server are not encrypted", 1)
		checkLogged(t, name, logs, "a client logged in over TLS, and isotap's connection to the server is not encrypted", 1)
		if n := metric(srv, `isotap_logins_total{client="tls",server="plain"}`); n != "1" {
			t.Errorf("%s: %s such logins are counted", name, n)
		}
	}
}

// checkLogged counts the messages that begin so.
func checkLogged(t *testing.T, name string, logs *observer.ObservedLogs, begins string, want int) {
	t.Helper()
	if n := logs.Filter(func(e observer.LoggedEntry) bool {
		return strings.HasPrefix(e.Message, begins)
	}).Len(); n != want {
		t.Errorf("%s: %q is logged %d times, want %d", name, begins, n, want)
	}
}
