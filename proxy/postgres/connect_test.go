package postgres_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/postgres"
	"github.com/isotap/isotap/proxy/session"
)

// access says how each role of the tests may log in. The password of each is its name.
var access = []string{
	"local   all scram                      scram-sha-256",
	"local   all all                        trust",
	"host    all trusted      127.0.0.1/32  trust",
	"host    all clear        127.0.0.1/32  password",
	"host    all md5          127.0.0.1/32  md5",
	"host    all scram        127.0.0.1/32  scram-sha-256",
	"hostssl all encrypted    127.0.0.1/32  scram-sha-256",
	"hostnossl all plain      127.0.0.1/32  scram-sha-256",
	"host    all postgres     127.0.0.1/32  trust",
	"host    all all          all           reject",
}

// A place is a server that takes TLS, with what belongs to it.
type place struct {
	*testdb.PostgreSQLServer
	pair tls.Certificate // the server's own
	ca   string          // the file that vouches for it
}

// secureServer starts a server with TLS and with the roles of access.
func secureServer(t *testing.T) place {
	t.Helper()
	a := testdb.OpenAuthority(t)
	p := place{ca: a.File("ca")}
	var err error
	if p.pair, err = a.Pair("server"); err != nil {
		t.Fatal(err)
	}
	p.PostgreSQLServer, err = testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{HBA: access, Authority: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	db, err := p.DB("postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, role := range []string{"trusted", "clear", "scram", "encrypted", "plain", "md5"} {
		method := "scram-sha-256"
		if role == "md5" {
			method = role
		}
		for _, statement := range []string{"SET password_encryption = '" + method + "'",
			fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", role, role)} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	return p
}

// A nowhere is a recorder that keeps nothing.
type nowhere struct{}

func (nowhere) Session(context.Context, history.Session) error      { return nil }
func (nowhere) Txn(context.Context, *history.Txn) error             { return nil }
func (nowhere) Defined(context.Context, *history.DefiningTxn) error { return nil }

// roads says how a proxy reaches its server, and its clients the proxy.
type roads struct {
	client, server session.TLSUse
	socket         bool // to the server
	direct         bool // to the server
	pair           tls.Certificate
	network        string // of the proxy; empty: tcp
}

// throughProxy starts a proxy that only passes on, and returns its address.
func throughProxy(t *testing.T, p place, r roads, change ...func(*proxy.Config)) string {
	t.Helper()
	if r.pair.Certificate == nil {
		var err error
		if r.pair, err = testdb.OpenAuthority(t).Pair("server"); err != nil {
			t.Fatal(err)
		}
	}
	cfg := proxy.Config{Network: "tcp", Address: p.Addr(), Recorder: nowhere{}, LoginTimeout: testdb.Patience,
		TLS: proxy.TLS{
			Client:    &tls.Config{Certificates: []tls.Certificate{r.pair}, NextProtos: []string{postgres.ALPN}},
			ClientUse: r.client,
			Server:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{postgres.ALPN}}, ServerUse: r.server,
		}}
	if r.socket {
		cfg.Network, cfg.Address = "unix", p.Socket()
	}
	cfg.Protocol = proxy.Protocol{
		NewSession: func(l session.Options) session.Session {
			return postgres.NewSession(postgres.Config{Options: l, ClientTLS: r.client, ServerTLS: r.server,
				DirectTLS: r.direct, Certificate: r.pair.Certificate[0]})
		},
		Refuse:       func(client net.Conn, _ proxy.Refusal, why string) []byte { return postgres.Refuse(client, why) },
		FirstMessage: postgres.FirstMessage,
	}
	for _, f := range change {
		f(&cfg)
	}
	network, address := "tcp", "127.0.0.1:0"
	if r.network == "unix" {
		network, address = r.network, filepath.Join(t.TempDir(), ".s.PGSQL.5432")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- proxy.New(cfg).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// connect logs in with pgx, and asks something.
func connect(t *testing.T, address, role, parameters string) error {
	host, port, _ := net.SplitHostPort(address)
	c, err := pgconn.Connect(t.Context(), fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=postgres %s", host,
		port, role, role, parameters))
	if err != nil {
		return err
	}
	defer c.Close(t.Context())
	r := c.ExecParams(t.Context(), "SELECT current_user", nil, nil, nil, nil).Read()
	if r.Err == nil && string(r.Rows[0][0]) != role {
		return fmt.Errorf("logged in as %s", r.Rows[0][0])
	}
	return r.Err
}

// psql logs in with libpq, and asks something.
func psql(t *testing.T, address, role, parameters string) error {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = filepath.Dir(address), "5432"
	}
	c := exec.CommandContext(t.Context(), "psql", "-XAtc", "SELECT current_user",
		fmt.Sprintf("host=%s port=%s user=%s dbname=postgres %s", host, port, role, parameters))
	c.Env = append(os.Environ(), "PGPASSWORD="+role, fmt.Sprintf("PGCONNECT_TIMEOUT=%.0f", testdb.Patience.Seconds()))
	out, err := c.CombinedOutput()
	if got := strings.TrimSpace(string(out)); got != role {
		return fmt.Errorf("%w: %s", errors.Join(errors.New("psql"), err), got)
	}
	return err
}

const unbindable = "cannot pass on a login that is bound to TLS"

// TestLoginsOverEachPairOfLegs is the table of what can be relayed.
func TestLoginsOverEachPairOfLegs(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	clients := map[string]func(t *testing.T, address, role, parameters string) error{"psql": psql, "pgx": connect}
	servers := map[string]roads{
		"a plain server": {}, "TLS to the server": {server: session.MustTLS}, "a unix socket": {socket: true},
	}
	for serverName, r := range servers {
		for clientName, use := range map[string]session.TLSUse{"plain": session.NoTLS, "TLS": session.MustTLS} {
			r.client = use
			address := throughProxy(t, p, r)
			for role, parameters := range map[string]string{
				"trusted": "", "clear": "", "md5": "", "scram": "", "scram ": "channel_binding=disable",
				"scram  ": "channel_binding=require",
			} {
				role = strings.TrimSpace(role)
				want := ""
				both := r.server == session.MustTLS && use == session.MustTLS
				switch {
				case parameters == "channel_binding=require":
					want = "channel binding" // the client says so itself: no server offers it
				case role == "scram" && both && parameters == "":
					want = unbindable
				}
				mode := " sslmode=disable"
				if use == session.MustTLS {
					mode = " sslmode=require"
				}
				for name, login := range clients {
					t.Run(fmt.Sprintf("%s, %s client, %s as %s %s", serverName, clientName, name, role, parameters),
						func(t *testing.T) {
							checkLogin(t, login(t, address, role, parameters+mode), want)
						})
				}
			}
		}
	}
}

// TestServersLegIsAsLibpqWouldMakeIt logs roles in that the server takes with TLS only or without only.
func TestServersLegIsAsLibpqWouldMakeIt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	plain := testdb.PostgreSQL(t)
	trusted := func(c *proxy.Config) { c.TLS.Server = verifying(t, p.ca) }
	for _, tt := range []struct {
		name         string
		use          session.TLSUse
		role, unlike string // who gets in, and who does not
		change       func(*proxy.Config)
	}{
		{"disable", session.NoTLS, "plain", "encrypted", nil},
		{"allow", session.LastTLS, "plain encrypted", "", nil},
		{"prefer", session.MayTLS, "plain encrypted", "", nil},
		{"require", session.MustTLS, "encrypted", "plain", nil},
		{"verify-full", session.MustTLS, "encrypted", "plain", trusted},
		{"prefer, of a server that nobody vouches for", session.MayTLS, "plain", "encrypted",
			func(c *proxy.Config) { c.TLS.Server = verifying(t, "") }},
		{"prefer, where the server has none", session.MayTLS, "postgres", "",
			func(c *proxy.Config) { c.Address = plain.Addr() }},
		{"allow, where the server has none", session.LastTLS, "postgres", "",
			func(c *proxy.Config) { c.Address = plain.Addr() }},
		{"require, on a socket", session.MustTLS, "postgres", "", func(c *proxy.Config) {
			c.Network, c.Address = "unix", p.Socket()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changes := []func(*proxy.Config){}
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			address := throughProxy(t, p, roads{server: tt.use}, changes...)
			for _, role := range strings.Fields(tt.role) {
				checkLogin(t, connect(t, address, role, "sslmode=disable"), "")
			}
			if tt.unlike != "" {
				checkLogin(t, connect(t, address, tt.unlike, "sslmode=disable"), "pg_hba.conf rejects connection")
			}
		})
	}
	for name, tt := range map[string]struct {
		change func(*proxy.Config)
		want   string
	}{
		"a server without TLS": {func(c *proxy.Config) { c.Address = plain.Addr() },
			"the server does not support TLS"},
		"a server that nobody vouches for": {func(c *proxy.Config) { c.TLS.Server = verifying(t, "") },
			"certificate signed by unknown authority"},
		"a server that is not there any more": {func(c *proxy.Config) { c.Address = "127.0.0.1:1" },
			"cannot reach the server"},
	} {
		t.Run("require, of "+name, func(t *testing.T) {
			checkLogin(t, psql(t, throughProxy(t, p, roads{server: session.MustTLS}, tt.change), "encrypted",
				"sslmode=disable"), tt.want)
		})
	}
}

// verifying looks at servers as verify-full does. The file may be empty: nobody is trusted.
func verifying(t *testing.T, file string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil || !pool.AppendCertsFromPEM(text) {
			t.Fatal(err)
		}
	}
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{postgres.ALPN}}
}

func TestLoginsAreBoundWhereTheCertificatesAreOne(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	own := throughProxy(t, p, roads{client: session.MustTLS, server: session.MustTLS, pair: p.pair})
	for name, login := range map[string]func(t *testing.T, address, role, parameters string) error{"psql": psql,
		"pgx": connect} {
		checkLogin(t, login(t, own, "scram", "sslmode=require channel_binding=require"), "")
		// Where TLS with the server is only preferred, it gives way.
		preferred := throughProxy(t, p, roads{client: session.MayTLS, server: session.MayTLS})
		t.Log(name)
		checkLogin(t, login(t, preferred, "scram", "sslmode=require"), "")
		checkLogin(t, login(t, preferred, "scram", "sslmode=prefer"), "")
		checkLogin(t, login(t, preferred, "encrypted", "sslmode=require"), unbindable)
		checkLogin(t, login(t, preferred, "encrypted", "sslmode=require channel_binding=disable"), "")
		checkLogin(t, login(t, preferred, "encrypted", "sslmode=disable"), "")
	}
}

func TestClientsLegIsAsTheServersOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	optional, required := throughProxy(t, p, roads{client: session.MayTLS}),
		throughProxy(t, p, roads{client: session.MustTLS})
	off := throughProxy(t, p, roads{})
	socket := throughProxy(t, p, roads{client: session.MustTLS, network: "unix"})
	for _, mode := range []string{"disable", "allow", "prefer", "require"} {
		checkLogin(t, psql(t, optional, "scram", "sslmode="+mode), "")
		checkLogin(t, psql(t, socket, "scram", "sslmode="+mode), "")
		checkLogin(t, psql(t, required, "scram", "sslmode="+mode),
			map[string]string{"disable": "encrypted connections only"}[mode])
		checkLogin(t, psql(t, off, "scram", "sslmode="+mode),
			map[string]string{"require": "server does not support SSL"}[mode])
	}
	checkLogin(t, connect(t, optional, "scram", "sslmode=require sslnegotiation=direct"), "")
	checkLogin(t, connect(t, off, "scram", "sslmode=require sslnegotiation=direct"), "EOF")
	other, err := tls.Dial("tcp", optional, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if b, err := io.ReadAll(other); len(b) > 0 || err != nil {
		t.Errorf("a client without ALPN reads %q, %v", b, err)
	}
}

// TestDirectTLSToTheServer needs a server of version 17 or later, of which an earlier one makes an error.
func TestDirectTLSToTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	p := secureServer(t)
	want := ""
	if p.Major() < 17 {
		want = "isotap cannot use TLS with the server"
	}
	checkLogin(t, connect(t, throughProxy(t, p, roads{server: session.MustTLS, direct: true}),
		"encrypted", "sslmode=disable"), want)
}

// checkLogin compares how a login ended with what is wanted: a part of its error, or success.
func checkLogin(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%v; want %q", err, want)
	}
}
