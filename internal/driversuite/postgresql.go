package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/tap"
	"github.com/isotap/isotap/internal/testdb"
)

// A postgresqlHost is a PostgreSQL, reached over TCP without TLS.
type postgresqlHost struct {
	at       catalog.Target
	database string
	stop     func() error
}

func openPostgreSQL(ctx context.Context, url, database string) (host, error) {
	h := &postgresqlHost{database: database, stop: func() error { return nil }}
	if url == "" {
		s, err := testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{HBA: askForPasswords})
		if err != nil {
			return nil, err
		}
		url, h.stop = s.URL(), s.Stop
	}
	var err error
	if h.at, err = catalog.ParseTarget(url); err == nil && (h.at.Family != catalog.PostgreSQL || h.at.Network != "tcp") {
		err = errors.New("the suite needs a PostgreSQL over TCP: write postgres://postgres@127.0.0.1:5432/")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-server: %w", err), h.stop())
	}
	h.at.Database = database
	return h, nil
}

// askForPasswords makes the throw-away server ask the roles of pgx's suite for their passwords, each in its
// way.
var askForPasswords = []string{
	"host all pgx_md5 127.0.0.1/32 md5",
	"host all pgx_scram 127.0.0.1/32 scram-sha-256",
	"host all pgx_pw 127.0.0.1/32 password",
}

// roles are those of pgx's suite, with the encryption of their passwords.
var roles = []struct{ name, encryption string }{
	{"pgx_md5", "md5"}, {"pgx_pw", "scram-sha-256"}, {"pgx_scram", "scram-sha-256"},
	{` tricky, ' } " \ test user `, "scram-sha-256"},
}

const rolePassword = "secret"

func (h *postgresqlHost) target() catalog.Target { return h.at }
func (h *postgresqlHost) clients() tap.ClientTLS { return tap.ClientTLS{} }
func (h *postgresqlHost) close() error           { return h.stop() }

func (h *postgresqlHost) facts(ctx context.Context) (engine, version string, err error) {
	conn, err := h.connect(ctx, "postgres")
	if err != nil {
		return "", "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return "postgresql", version, err
}

// renew makes the database with the extensions, types and roles that the suites expect.
func (h *postgresqlHost) renew(ctx context.Context) error {
	setUp := []string{
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + h.database + "'",
		"DROP DATABASE IF EXISTS " + h.database,
		"CREATE DATABASE " + h.database,
	}
	for _, r := range roles {
		name := pgx.Identifier{r.name}.Sanitize()
		setUp = append(setUp, "SET password_encryption = '"+r.encryption+"'", "DROP ROLE IF EXISTS "+name,
			"CREATE ROLE "+name+" SUPERUSER LOGIN PASSWORD '"+rolePassword+"'")
	}
	if err := h.execute(ctx, "postgres", setUp...); err != nil {
		return err
	}
	return h.execute(ctx, h.database, "CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE DOMAIN uint64 AS numeric(20,0)")
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
	host, port, _ := net.SplitHostPort(address) // it was put together
	text := fmt.Sprintf("host=%s port=%s dbname=%s sslmode=disable user=%s", host, port, database, quote(user))
	if password != "" {
		text += " password=" + quote(password)
	}
	return text
}

// quote writes a value of a connection string.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(value) + "'"
}

// environment has the variables of pgx's suite and those of libpq, which lib/pq reads.
func (h *postgresqlHost) environment(_, address string) []string {
	login := h.keywords(address, h.database, h.at.User, h.at.Password)
	host, port, _ := net.SplitHostPort(address) // as above
	env := []string{
		"PGX_TEST_DATABASE=" + login,
		"PGX_TEST_TCP_CONN_STRING=" + login,
		"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + h.at.User, "PGPASSWORD=" + h.at.Password, "PGDATABASE=" + h.database, "PGSSLMODE=disable",
	}
	for variable, role := range map[string]string{"MD5": "pgx_md5", "PLAIN": "pgx_pw", "SCRAM": "pgx_scram"} {
		env = append(env, "PGX_TEST_"+variable+"_PASSWORD_CONN_STRING="+h.keywords(address, h.database, role, rolePassword))
	}
	return env
}
