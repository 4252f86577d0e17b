package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/isotap/isotap/workload"
)

// thinkTime is that of all clients.
const thinkTime = 4 * time.Millisecond

// roster is which program the first clients run, by index into programs. Two clients of a kind use
// different protocols. The order puts the mistakes first, so that the fewest clients show them.
var roster = [DefaultClients]int{0, 1, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9}

// extras is what further clients run, in turn: everything but the approvals, because a department
// has no more than two managers.
var extras = [...]int{0, 2, 3, 4, 5, 6, 7, 8, 9}

// A client runs one program again and again on one connection. It belongs to one goroutine.
type client struct {
	workload.Client
	program    *program
	count      *count
	books      *books
	ordinal    int           // its place among the clients of its program, from 0
	colleagues int           // how many clients run the program
	turns      int           // how many transactions it runs
	turn       int           // the current one, from 0
	mean       time.Duration // between its transactions, at random times; 0: it is in step with the others
	statement  *sql.Stmt     // the program's own, if it prepares one
}

// staff makes the clients and shares the transactions out among them.
func staff(b *books, config Config) []*client {
	clients := make([]*client, config.Clients)
	for i := range clients {
		p := extras[max(i-len(roster), 0)%len(extras)]
		if i < len(roster) {
			p = roster[i]
		}
		n := b.programs[p]
		turns := config.Transactions / config.Clients
		if i < config.Transactions%config.Clients {
			turns++
		}
		clients[i] = &client{
			Client:  workload.Client{Number: i + 1, Random: workload.NewRandom(config.Seed, i), ThinkTime: thinkTime},
			program: n.program, count: n, books: b, ordinal: n.clients, turns: turns,
		}
		n.clients++
	}
	for _, c := range clients {
		c.colleagues = c.count.clients
		if config.Rate > 0 {
			c.ThinkTime, c.mean = 0, time.Duration(float64(config.Clients)/config.Rate*float64(time.Second))
		}
	}
	return clients
}

// enter connects the client; leave gives the connection back to a pool that is closed next.
func (c *client) enter(ctx context.Context, p *pools) (leave func(), err error) {
	pool := p.prepared
	if c.ordinal%2 == 1 {
		pool = p.text
	}
	c.Dialect = p.dialect
	if c.Conn, err = pool.Conn(ctx); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if c.program.statement == "" {
		return func() { c.Conn.Close() }, nil
	}
	if c.statement, err = c.Conn.PrepareContext(ctx, c.Dialect.Text(c.program.statement)); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing a statement: %w", err), c.Conn.Close())
	}
	return func() {
		c.statement.Close()
		c.Conn.Close()
	}, nil
}

// take runs the client's current turn.
func (c *client) take(ctx context.Context) error {
	if err := c.Attempt(ctx, &c.count.Count, func() error { return c.program.run(ctx, c) }); err != nil {
		return err
	}
	c.books.transactionDone()
	return nil
}

// await waits for the time of the client's current turn.
func (c *client) await(ctx context.Context, begin time.Time) error {
	if c.mean > 0 {
		return c.Arrive(ctx, c.mean)
	}
	jitter := time.Duration(c.Random.Int64N(int64(pace / 8)))
	return workload.Pause(ctx, time.Until(begin.Add(time.Duration(c.turn)*pace+jitter)))
}

// work connects the client and runs its turns, each at its time after begin.
func (c *client) work(ctx context.Context, p *pools, begin time.Time) error {
	leave, err := c.enter(ctx, p)
	if err != nil {
		return err
	}
	defer leave()
	for c.turn = range c.turns {
		if err := c.await(ctx, begin); err != nil {
			return err
		}
		if err := c.take(ctx); err != nil {
			return err
		}
	}
	return nil
}
