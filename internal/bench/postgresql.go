package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/isotap/isotap/internal/pgbench"
	"github.com/isotap/isotap/internal/testdb"
)

const (
	// postgresqlUser is the throw-away server's superuser.
	postgresqlUser = "postgres"
	// pgbenchScale is the number of branches: with fewer than clients, tpcb-like measures the wait for them.
	pgbenchScale = 16
)

// postgresql is a throw-away PostgreSQL under pgbench.
type postgresql struct {
	*testdb.PostgreSQLServer
	program string  // pgbench
	db      *sql.DB // the bench's own connections, past all proxies
}

func startPostgreSQL(ctx context.Context) (target, error) {
	program, err := pgbench.Find()
	if err != nil {
		return nil, err
	}
	s, err := testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{})
	if err != nil {
		return nil, err
	}
	p := &postgresql{PostgreSQLServer: s, program: program}
	if err := p.fill(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// fill makes the database and pgbench's tables.
func (p *postgresql) fill(ctx context.Context) error {
	if err := createDatabase(ctx, p, database); err != nil {
		return err
	}
	var err error
	if p.db, err = p.DB(database); err != nil {
		return err
	}
	return pgbench.Init(ctx, p.program, p.options(p.Addr()), pgbenchScale)
}

// options of pgbench for an address.
func (p *postgresql) options(address string) pgbench.Options {
	return pgbench.Options{Address: address, User: postgresqlUser, Database: database}
}

// Stop ends the server.
func (p *postgresql) Stop() error {
	var err error
	if p.db != nil {
		err = p.db.Close()
	}
	return errors.Join(err, p.PostgreSQLServer.Stop())
}

func (p *postgresql) upstream() string {
	u := url.URL{Scheme: "postgres", User: url.User(postgresqlUser), Host: p.Addr(), Path: "/" + database,
		RawQuery: "sslmode=disable"}
	return u.String()
}

func (p *postgresql) product() string { return "PostgreSQL " + p.Version() }

// readWrite makes sysbench's tables before it runs: pgbench's are what the server is filled with.
func (p *postgresql) readWrite(ctx context.Context, address, command string, args ...string) ([]byte, error) {
	for _, c := range []string{"cleanup", "prepare"} {
		if _, err := runSysbench(ctx, "pgsql", postgresqlUser, p.Addr(), readWrite, c); err != nil {
			return nil, err
		}
	}
	return runSysbench(ctx, "pgsql", postgresqlUser, address, readWrite, command, args...)
}

func (p *postgresql) relays() []relay { return []relay{pgbouncer, haproxy} }

func (p *postgresql) explain() string {
	return fmt.Sprintf("Latency is of a transaction: of %d statement in select-only, "+
		"%d in simple-update, %d in tpcb-like. pgbouncer pools sessions.",
		pgbench.Statements(pgbench.SelectOnly), pgbench.Statements(pgbench.SimpleUpdate),
		pgbench.Statements(pgbench.TPCBLike))
}

// A pgbenchLoad is what pgbench does in a turn.
type pgbenchLoad struct {
	server   *postgresql
	script   string
	protocol string
	clients  int
}

func (p *postgresql) loads(clients []int) []load {
	var all []load
	l := pgbenchLoad{server: p}
	for _, l.script = range []string{pgbench.SelectOnly, pgbench.SimpleUpdate, pgbench.TPCBLike} {
		for _, l.protocol = range pgbench.Protocols {
			for _, l.clients = range clients {
				all = append(all, l)
			}
		}
	}
	return all
}

func (l pgbenchLoad) String() string { return loadName(l.script, l.protocol, l.clients) }

func (l pgbenchLoad) concurrency() int { return l.clients }

func (l pgbenchLoad) analysed() bool { return l.script == pgbench.TPCBLike }

func (l pgbenchLoad) quick() bool {
	return l.script != pgbench.SimpleUpdate && l.protocol != "extended"
}

func (l pgbenchLoad) turn(ctx context.Context, address string, seconds int) (roundResult, error) {
	if err := pgbench.Tidy(ctx, l.server.db); err != nil {
		return roundResult{}, err
	}
	o := l.server.options(address)
	o.Script, o.Protocol, o.Clients, o.Seconds = l.script, l.protocol, l.clients, seconds
	r, err := pgbench.Run(ctx, l.server.program, o)
	if err != nil {
		return roundResult{}, err
	}
	if r.Failed() > 0 || r.Transactions == 0 {
		return roundResult{}, fmt.Errorf("of %d transactions %d failed", r.Transactions+r.Failed(), r.Failed())
	}
	if err := l.kept(ctx, r.Transactions); err != nil {
		return roundResult{}, err
	}
	n := pgbench.Statements(l.script)
	return roundResult{statements: n * r.Transactions, rate: float64(n) * r.Rate, latency: r.Median,
		tail: r.P99}, nil
}

// kept looks whether each of n transactions is in the database.
func (l pgbenchLoad) kept(ctx context.Context, n int) error {
	if l.script == pgbench.SelectOnly {
		return nil
	}
	written, err := pgbench.Written(ctx, l.server.db)
	if err == nil && written != n {
		err = fmt.Errorf("%d transactions were acknowledged, %d are in the database", n, written)
	}
	return err
}
