package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// database is what a target's database is called.
const database = "bench"

// A target is a throw-away server with filled tables, and what loads it.
type target interface {
	Addr() string     // "host:port"
	PID() int         // the server's process
	upstream() string // the address that isotap is given, with the database
	product() string  // the server's name and version
	loads(clients []int) []load
	relays() []relay // the other proxies that know the server's protocol
	// explain says for people what the loads' latencies are of.
	explain() string
	// readWrite gives an address sysbench's oltp_read_write, as a command of sysbench's does: "run".
	readWrite(ctx context.Context, address, command string, args ...string) ([]byte, error)
	Stop() error
}

// A load is what a tool does to the server in a turn.
type load interface {
	fmt.Stringer      // its name for people
	concurrency() int // how many clients it has
	// turn gives an address one slice of the load. An error is also one of the load's own statements, or a
	// transaction that was not kept.
	turn(ctx context.Context, address string, seconds int) (roundResult, error)
	// analysed reports whether the recordings of the load are worth an analysis.
	analysed() bool
	// quick reports whether the load is among those of -quick.
	quick() bool
}

// A roundResult is what a tool measured in one slice of time.
type roundResult struct {
	statements int
	rate       float64 // statements per second
	// latency is the median, tail the 99th percentile: of a statement or a transaction, as the load has it.
	latency, tail time.Duration
	used          usage
}

// A starter starts a target. The caller stops it.
type starter func(context.Context) (target, error)

// An engine is a family of servers, by the name that -engine knows it by.
type engine struct {
	name  string
	start starter
	ddl   ddlEngine
}

var engines = []engine{{"mariadb", startMariaDB, mariadbDDL}, {"postgresql", startPostgreSQL, postgresqlDDL}}

// loadName is how all loads are called.
func loadName(words, how string, clients int) string {
	s := "s"
	if clients == 1 {
		s = ""
	}
	return fmt.Sprintf("%s, %s, %d client%s", words, how, clients, s)
}

// createDatabase makes a database that a target's loads use.
func createDatabase(ctx context.Context, on interface {
	DB(name string) (*sql.DB, error)
}, name string) error {
	db, err := on.DB("")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+name)
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	return nil
}
