package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
)

// A postgresqlHost is a PostgreSQL, reached over TCP without TLS, or a throw-away one, reached over any road.
type postgresqlHost struct {
	at        dsn.Target
	database  string
	over      road
	args      []string          // of a throw-away server
	authority *testdb.Authority // of the server's certificate; nil: it has none
	stop      func() error
}

func openPostgreSQL(ctx context.Context, url, database string, over road) (host, error) {
	return openPostgreSQLWith()(ctx, url, database, over)
}

// openPostgreSQLWith is openPostgreSQL, with options for the command line of a throw-away server.
func openPostgreSQLWith(args ...string) func(ctx context.Context, url, database string, over road) (host, error) {
	return func(ctx context.Context, url, database string, over road) (host, error) {
		h := &postgresqlHost{database: database, over: over, args: args, stop: func() error { return nil }}
		if err := h.open(ctx, url); err != nil {
			return nil, errors.Join(err, h.stop())
		}
		return h, nil
	}
}

// open finds the server at the URL, or starts one.
func (h *postgresqlHost) open(ctx context.Context, url string) (err error) {
	switch {
	case !slices.Contains([]road{tcp, overTLS, socket}, h.over):
		err = fmt.Errorf("-over: there is no %q: tcp, tls or socket", h.over)
	case url == "":
		err = h.start(ctx)
	case h.over != tcp:
		err = errors.New("-over needs a throw-away server: leave -server out")
	default:
		h.at, err = dsn.Parse(url)
	}
	if err == nil && (h.at.Family != dbms.PostgreSQLFamily || url != "" && h.at.Network != "tcp") {
		err = errors.New("-server: the suite needs a PostgreSQL over TCP: write postgres://postgres@127.0.0.1:5432/")
	}
	h.at.Database = h.database
	return err
}

// start starts a throw-away server. Over TLS isotap shows clients the server's own certificate, so that logins
// can be bound to it.
func (h *postgresqlHost) start(ctx context.Context) (err error) {
	options := testdb.PostgreSQLOptions{Args: h.args, HBA: askForPasswords}
	if h.over == overTLS {
		if h.authority, err = testdb.NewAuthority(); err != nil {
			return err
		}
		h.stop = h.authority.Close
		options.Authority = h.authority
	}
	s, err := testdb.StartPostgreSQL(ctx, options)
	if err != nil {
		return err
	}
	files := h.stop
	h.stop = func() error { return errors.Join(s.Stop(), files()) }
	if h.at, err = dsn.Parse(s.URL()); err != nil {
		return err
	}
	switch h.over {
	case overTLS:
		h.at.TLS.Mode = dsn.TLSRequire
	case socket:
		h.at.Network, h.at.Address = "unix", s.Socket()
	}
	return nil
}

// askForPasswords makes the throw-away server ask the roles of pgx's suite for their passwords, each in its
// way.
var askForPasswords = []string{
	"host all pgx_md5 127.0.0.1/32 md5", "local all pgx_md5 md5",
	"host all pgx_scram 127.0.0.1/32 scram-sha-256", "local all pgx_scram scram-sha-256",
	"host all pgx_pw 127.0.0.1/32 password", "local all pgx_pw password",
}

// roles are those of pgx's suite, with the encryption of their passwords.
var roles = []struct{ name, encryption string }{
	{"pgx_md5", "md5"}, {"pgx_pw", "scram-sha-256"}, {"pgx_scram", "scram-sha-256"},
	{` tricky, ' } " \ test user `, "scram-sha-256"},
}

const rolePassword = "secret"

func (h *postgresqlHost) target() dsn.Target { return h.at }
func (h *postgresqlHost) close() error       { return h.stop() }

func (h *postgresqlHost) clients() proxyserver.ClientTLS {
	if h.authority == nil {
		return proxyserver.ClientTLS{}
	}
	return proxyserver.ClientTLS{Use: session.MayTLS, Cert: h.authority.File("server"),
		Key: h.authority.KeyFile("server")}
}

// listen is where drivers look for a server's socket, or any port.
func (h *postgresqlHost) listen(dir string) string {
	if h.over == socket {
		return "unix:" + filepath.Join(dir, ".s.PGSQL.5432")
	}
	return "127.0.0.1:0"
}

func (h *postgresqlHost) facts(ctx context.Context) (engine, version string, err error) {
	conn, err := h.connect(ctx, "postgres")
	if err != nil {
		return "", "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return dbms.PostgreSQL.String(), version, err
}

// pgxSetUp makes the extensions and types that the suites of pgx and pq expect.
var pgxSetUp = []string{"CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE DOMAIN uint64 AS numeric(20,0)"}

// renew makes the roles of pgx's suite, too.
func (h *postgresqlHost) renew(ctx context.Context, setUp []string) error {
	anew := []string{
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + h.database + "'",
		"DROP DATABASE IF EXISTS " + h.database,
		"CREATE DATABASE " + h.database,
	}
	for _, r := range roles {
		name := pgx.Identifier{r.name}.Sanitize()
		anew = append(anew, "SET password_encryption = '"+r.encryption+"'", "DROP ROLE IF EXISTS "+name,
			"CREATE ROLE "+name+" SUPERUSER LOGIN PASSWORD '"+rolePassword+"'")
	}
	if err := h.execute(ctx, "postgres", anew...); err != nil {
		return err
	}
	return h.execute(ctx, h.database, setUp...)
}

// execute runs statements in a database.
func (h *postgresqlHost) execute(ctx context.Context, database string, statements ...string) error {
	conn, err := h.connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (h *postgresqlHost) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, h.keywords(h.at.Address, database, h.at.User, h.at.Password))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", h.at.Address, err)
	}
	return conn, nil
}

// keywords is libpq's connection string of keywords and values.
func (h *postgresqlHost) keywords(address, database, user, password string) string {
	host, port := split(address)
	text := fmt.Sprintf("host=%s port=%s dbname=%s sslmode=%s user=%s", host, port, database, h.sslmode(), quote(user))
	if password != "" {
		text += " password=" + quote(password)
	}
	return text
}

func (h *postgresqlHost) sslmode() string {
	if h.over == overTLS {
		return "require"
	}
	return "disable"
}

// split returns the host and the port of an address, of a socket as libpq has them: its directory, and the number
// in its name.
func split(address string) (host, port string) {
	if dir, name := filepath.Split(address); dir != "" {
		return dir, strings.TrimPrefix(name, ".s.PGSQL.")
	}
	host, port, _ = net.SplitHostPort(address) // it was put together
	return host, port
}

// quote writes a value of a connection string.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(value) + "'"
}

// environment has the variables of pgx's suite and those of libpq, which lib/pq reads.
func (h *postgresqlHost) environment(_, address string) []string {
	login := h.keywords(address, h.database, h.at.User, h.at.Password)
	host, port := split(address)
	env := []string{
		"PGX_TEST_DATABASE=" + login,
		"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + h.at.User, "PGPASSWORD=" + h.at.Password, "PGDATABASE=" +
			h.database, "PGSSLMODE=" + h.sslmode(),
	}
	scram := h.keywords(address, h.database, "pgx_scram", rolePassword)
	switch h.over {
	case socket:
		env = append(env, "PGX_TEST_UNIX_SOCKET_CONN_STRING="+login)
	case overTLS:
		env = append(env, "PGX_TEST_TLS_CONN_STRING="+scram+" channel_binding=disable",
			"PGX_TEST_SCRAM_PLUS_CONN_STRING="+scram+" channel_binding=require")
	}
	if h.over != socket {
		env = append(env, "PGX_TEST_TCP_CONN_STRING="+login)
	}
	for variable, role := range map[string]string{"MD5": "pgx_md5", "PLAIN": "pgx_pw", "SCRAM": "pgx_scram"} {
		env = append(env, "PGX_TEST_"+variable+"_PASSWORD_CONN_STRING="+
			h.keywords(address, h.database, role, rolePassword))
	}
	return env
}
