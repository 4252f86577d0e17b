package main

import (
	"context"
	"errors"
	"os/exec"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// mariadb is a throw-away MariaDB under sysbench.
type mariadb struct{ *testdb.Server }

// startMariaDB starts a server whose tables carry isotap's columns.
func startMariaDB(ctx context.Context) (target, error) {
	if _, err := exec.LookPath("sysbench"); err != nil {
		return nil, errNoSysbench
	}
	s, err := testdb.Start(ctx, testdb.Options{})
	if err != nil {
		return nil, err
	}
	m := mariadb{s}
	if err := m.fill(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return m, nil
}

func (m mariadb) fill(ctx context.Context) error {
	if err := createDatabase(ctx, m, database); err != nil {
		return err
	}
	if _, err := m.readWrite(ctx, m.Addr(), "prepare"); err != nil {
		return err
	}
	return m.instrument(ctx)
}

func (m mariadb) instrument(ctx context.Context) error {
	target, err := dsn.Parse(m.upstream())
	if err != nil {
		return err
	}
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return err
	}
	_, err = catalogmysql.Instrument(ctx, conn, catalog.Options{Schemas: []string{database},
		WListBytes: sqlmysql.DefaultWListBytes})
	return errors.Join(err, conn.Close())
}

func (m mariadb) upstream() string { return m.URL() + database }

func (m mariadb) product() string { return "MariaDB " + m.Version() }

func (mariadb) loads(clients []int) []load { return sysbenchLoads(clients) }

func (mariadb) readWrite(ctx context.Context, address, command string, args ...string) ([]byte, error) {
	return sysbench(ctx, address, readWrite, command, args...)
}

func (mariadb) relays() []relay { return []relay{haproxy} }

func (mariadb) explain() string {
	return "Latency is of a statement in point selects, of a transaction of 20 statements in read-write."
}
