// Package shop is a small web shop: an ordinary client of a server of the MySQL family or PostgreSQL over
// database/sql, as the application that "isotap demo" watches. Several clients work at the same time, each
// on a connection of its own, with text and prepared statements.
//
// It has two mistakes that many real shops have, both harmless at SERIALIZABLE and both invisible to
// a test with one client (mistakes.go): the checkout reads the stock, computes and writes it back (a
// lost update), and two managers approve expenses against one budget by reading all of it and
// writing different lines (write skew). Each family's default level, REPEATABLE READ of InnoDB and READ
// COMMITTED of PostgreSQL, permits both; PostgreSQL's REPEATABLE READ forbids the first. Everything else
// (programs.go) is correct at these levels, and touches other rows than the mistakes do.
//
// The shop keeps its own books, so its [Outcome] tells what the mistakes did without looking at any
// recording.
package shop

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/workload"
)

// The defaults of [Config]. With them a run takes about three seconds.
const (
	DefaultClients      = 13
	DefaultTransactions = 2000
)

// minClients is how many it takes for both mistakes to show: two checkouts and two managers.
const minClients = 4

// pace is the time between the starts of a client's transactions. It bounds the load, and it keeps
// the clients in step, so that those that could meet do.
const pace = 20 * time.Millisecond

// Config says how much the shop has to do.
type Config struct {
	// Clients is the number of concurrent clients, at least 4; 0 means DefaultClients, one or two for
	// every program. Fewer leave programs out, more repeat them.
	Clients int
	// Transactions is how many the clients run together, declined ones counted and retries not; 0
	// means DefaultTransactions. Under about 500 a mistake may go without effect.
	Transactions int
	// Seed chooses quantities, amounts, products and pauses.
	Seed uint64
	// Rate has transactions begin at random times, so many a second of all clients together, and gives clients no time
	// to think: mistakes show by chance alone. 0: the clients are in step, and those meet that can.
	Rate float64
	// Serial has the clients take turns, as a test suite does: each transaction ends before the next one begins.
	Serial bool
	// Progress, if not nil, is called after each transaction with how many are done, by one
	// goroutine at a time.
	Progress func(done, total int)
}

func (c Config) withDefaults() (Config, error) {
	if c.Clients == 0 {
		c.Clients = DefaultClients
	}
	if c.Transactions == 0 {
		c.Transactions = DefaultTransactions
	}
	if c.Clients < minClients {
		return c, fmt.Errorf("the shop needs %d clients or more, not %d", minClients, c.Clients)
	}
	if c.Transactions < c.Clients {
		return c, fmt.Errorf("%d transactions are too few for %d clients", c.Transactions, c.Clients)
	}
	return c, nil
}

// Run opens the shop: it connects the clients to the data source (go-sql-driver's DSN, or PostgreSQL's
// connection URI, postgres://…, with a database that [Setup] filled), lets them work, and returns the
// outcome. Deadlocks, lock wait time-outs and serialization failures are retried, as applications do; any
// other error ends the run.
func Run(ctx context.Context, dsn string, config Config) (Outcome, error) {
	config, err := config.withDefaults()
	if err != nil {
		return Outcome{}, err
	}
	pools, err := openPools(dsn, config.Clients)
	if err != nil {
		return Outcome{}, err
	}
	defer pools.close()
	before, err := takeStock(ctx, pools.prepared)
	if err != nil {
		return Outcome{}, fmt.Errorf("before opening the shop: %w", err)
	}
	b := newBooks(config)
	begin := time.Now()
	run := work
	if config.Serial {
		run = workInTurns
	}
	if err := run(ctx, pools, b, config); err != nil {
		return Outcome{}, err
	}
	elapsed := time.Since(begin)
	after, err := takeStock(ctx, pools.prepared)
	if err != nil {
		return Outcome{}, fmt.Errorf("after closing the shop: %w", err)
	}
	return b.outcome(before, after, elapsed), nil
}

// work runs the clients to their end. The first that fails ends the others.
func work(ctx context.Context, pools *pools, b *books, config Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	begin := time.Now()
	for _, c := range staff(b, config) {
		all.Go(func() {
			if err := c.work(ctx, pools, begin); err != nil {
				cancel(fmt.Errorf("client %d (%s): %w", c.Number, c.program.name, err))
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// pools are the two ways in which the clients talk to the server.
type pools struct {
	dialect  *workload.Dialect
	prepared *sql.DB // arguments are sent as parameters of prepared statements
	text     *sql.DB // arguments are written into the statement by the driver
}

// workInTurns runs the clients' transactions one after the other.
func workInTurns(ctx context.Context, pools *pools, b *books, config Config) error {
	clients := staff(b, config)
	for _, c := range clients {
		leave, err := c.enter(ctx, pools)
		if err != nil {
			return err
		}
		defer leave()
		c.ThinkTime = 0
	}
	for turn := range config.Transactions {
		c := clients[turn%len(clients)]
		if err := c.take(ctx); err != nil {
			return fmt.Errorf("client %d (%s): %w", c.Number, c.program.name, err)
		}
		c.turn++
	}
	return nil
}

func openPools(dsn string, clients int) (p *pools, err error) {
	p = &pools{dialect: workload.DialectOf(dsn)}
	for _, pool := range []struct {
		inline bool
		into   **sql.DB
	}{{false, &p.prepared}, {true, &p.text}} {
		db, err := p.dialect.Open(dsn, pool.inline)
		if err != nil {
			return nil, fmt.Errorf("the shop's data source: %w", err)
		}
		db.SetMaxOpenConns(clients + 1)
		*pool.into = db
	}
	return p, nil
}

// close ends the connections. The driver's goodbyes may fail; nobody is there to mind.
func (p *pools) close() {
	_ = p.prepared.Close()
	_ = p.text.Close()
}

// books are what the clients write down of their own work, outside the database.
type books struct {
	config   Config
	programs []*count // one for each program that has a client, in the order of programs
	sold     atomic.Int64
	reserved atomic.Int64
	lines    atomic.Int64 // order lines
	torn     atomic.Int64 // balance reads that did not add up
	newest   atomic.Int64 // id of an order that was committed lately
	progress sync.Mutex
	done     int
}

// count is how often a program ran and how that ended.
type count struct {
	workload.Count
	program *program
	clients int
}

func newBooks(config Config) *books {
	b := &books{config: config}
	for i := range programs {
		b.programs = append(b.programs, &count{program: &programs[i]})
	}
	return b
}

func (b *books) transactionDone() {
	b.progress.Lock()
	defer b.progress.Unlock()
	b.done++
	if b.config.Progress != nil {
		b.config.Progress(b.done, b.config.Transactions)
	}
}
