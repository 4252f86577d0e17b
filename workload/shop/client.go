package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// errDeclined is a program's own decision to end its transaction without effect.
var errDeclined = errors.New("declined")

// roster is which program the first clients run, by index into programs. Two clients of a kind use
// different protocols. The order puts the mistakes first, so that the fewest clients show them.
var roster = [DefaultClients]int{0, 1, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9}

// extras is what further clients run, in turn: everything but the approvals, because a department
// has no more than two managers.
var extras = [...]int{0, 2, 3, 4, 5, 6, 7, 8, 9}

// A client runs one program again and again on one connection. It belongs to one goroutine.
type client struct {
	number     int // from 1
	program    *program
	count      *count
	books      *books
	ordinal    int // its place among the clients of its program, from 0
	colleagues int // how many clients run the program
	turns      int // how many transactions it runs
	turn       int // the current one, from 0
	random     *rand.Rand
	conn       *sql.Conn
	statement  *sql.Stmt // the program's own, if it prepares one
	dialect    *dialect
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
			number: i + 1, program: n.program, count: n, books: b, ordinal: n.clients, turns: turns,
			random: rand.New(rand.NewPCG(config.Seed, uint64(i))),
		}
		n.clients++
	}
	for _, c := range clients {
		c.colleagues = c.count.clients
	}
	return clients
}

// work connects the client and runs its turns, each at its time after begin.
func (c *client) work(ctx context.Context, p *pools, begin time.Time) error {
	pool := p.prepared
	if c.ordinal%2 == 1 {
		pool = p.text
	}
	var err error
	c.dialect = p.dialect
	if c.conn, err = pool.Conn(ctx); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer c.conn.Close() // gives the connection back to a pool that is closed next
	if c.program.statement != "" {
		if c.statement, err = c.conn.PrepareContext(ctx, c.dialect.text(c.program.statement)); err != nil {
			return fmt.Errorf("preparing a statement: %w", err)
		}
		defer c.statement.Close() // as above
	}
	for c.turn = range c.turns {
		jitter := time.Duration(c.random.Int64N(int64(pace / 8)))
		if err := pause(ctx, time.Until(begin.Add(time.Duration(c.turn)*pace+jitter))); err != nil {
			return err
		}
		if err := c.takeTurn(ctx); err != nil {
			return err
		}
		c.books.transactionDone()
	}
	return nil
}

// maxAttempts bounds how often a transaction is tried.
const maxAttempts = 20

// takeTurn runs the program once, again as long as the server ends it for the sake of others.
func (c *client) takeTurn(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := c.program.run(ctx, c)
		switch {
		case err == nil:
			c.count.committed.Add(1)
			return nil
		case errors.Is(err, errDeclined):
			c.count.declined.Add(1)
			return nil
		case !c.dialect.retryable(err) || attempt == maxAttempts:
			return err
		}
		c.count.retried.Add(1)
		if err := c.think(ctx); err != nil {
			return err
		}
	}
}

// alone runs single statements, each a transaction of its own.
func (c *client) alone() handle { return handle{c.conn, c.dialect} }

// transaction runs body in an explicit transaction of the session's level, and rolls back when it
// fails.
func (c *client) transaction(ctx context.Context, body func(tx handle) error) error {
	tx, err := c.conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := body(handle{tx, c.dialect}); err != nil {
		if rollback := tx.Rollback(); rollback != nil && ctx.Err() == nil {
			return fmt.Errorf("%w; rolling back: %w", err, rollback)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}

// think is the time an application takes between reading and writing: 4 to 8 milliseconds.
func (c *client) think(ctx context.Context) error {
	return pause(ctx, 4*time.Millisecond+time.Duration(c.random.Int64N(int64(4*time.Millisecond))))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
