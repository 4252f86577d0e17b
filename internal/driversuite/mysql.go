package main

import (
	"context"
	"errors"
	"fmt"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// A mysqlHost is a server of the MySQL family.
type mysqlHost struct {
	at       dsn.Target
	tls      proxyserver.ClientTLS
	database string
	stop     func() error
}

func openMySQL(ctx context.Context, url, database string, over road) (host, error) {
	if over != tcp {
		return nil, errors.New("-over is for the suites of PostgreSQL")
	}
	h := &mysqlHost{database: database, stop: func() error { return nil }}
	if url == "" {
		s, err := testdb.Start(ctx, testdb.Options{Args: []string{"--local-infile=1"}})
		if err != nil {
			return nil, err
		}
		url, h.stop = s.URL(), s.Stop
	}
	var err error
	if h.at, err = dsn.Parse(url); err != nil {
		return nil, errors.Join(fmt.Errorf("-server: %w", err), h.stop())
	}
	if err := h.offerTLS(ctx); err != nil {
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

func (h *mysqlHost) target() dsn.Target             { return h.at }
func (h *mysqlHost) clients() proxyserver.ClientTLS { return h.tls }
func (h *mysqlHost) listen(string) string           { return "127.0.0.1:0" }
func (h *mysqlHost) close() error                   { return h.stop() }

// offerTLS has isotap's legs be as those of a direct connection to a server that offers TLS: some of the
// tests use TLS, and ask the server for its cipher.
func (h *mysqlHost) offerTLS(ctx context.Context) error {
	encrypted := h.at
	encrypted.TLS.Mode = max(encrypted.TLS.Mode, dsn.TLSPrefer)
	conn, err := catalogmysql.Connect(ctx, encrypted)
	if err != nil {
		return err
	}
	defer conn.Close()
	rows, err := conn.Query(ctx, catalogmysql.Query{Purpose: "its cipher",
		Text: "SHOW SESSION STATUS LIKE 'Ssl_cipher'", Columns: 2})
	if err != nil {
		return fmt.Errorf("ask the server for its cipher: %w", err)
	}
	if len(rows) == 0 || rows[0][1] == "" {
		return nil
	}
	h.at = encrypted
	h.tls, err = proxyserver.ParseClientTLS("", "auto", "", "")
	return err
}

func (h *mysqlHost) facts(ctx context.Context) (engine, version string, err error) {
	conn, err := catalogmysql.Connect(ctx, h.at)
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	facts, err := catalogmysql.ServerFacts(ctx, conn)
	return facts.Engine.String(), facts.Version, err
}

func (h *mysqlHost) renew(ctx context.Context, setUp []string) error {
	conn, err := catalogmysql.Connect(ctx, h.at)
	if err != nil {
		return err
	}
	defer conn.Close()
	statements := []string{"DROP DATABASE IF EXISTS " + h.database, "CREATE DATABASE " + h.database,
		"SET GLOBAL local_infile = 1"}
	for _, sql := range append(statements, setUp...) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (h *mysqlHost) environment(network, address string) []string {
	return []string{"MYSQL_TEST_USER=" + h.at.User, "MYSQL_TEST_PASS=" + h.at.Password, "MYSQL_TEST_PROT=" + network,
		"MYSQL_TEST_ADDR=" + address, "MYSQL_TEST_DBNAME=" + h.database, "MYSQL_TEST_CONCURRENT=1"}
}
