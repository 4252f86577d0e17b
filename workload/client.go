package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// ErrDeclined is a program's own decision to end its transaction without effect.
var ErrDeclined = errors.New("declined")

// A Client works on a connection of its own. It belongs to one goroutine.
type Client struct {
	Number    int // from 1
	Random    *rand.Rand
	Conn      *sql.Conn
	Dialect   *Dialect
	ThinkTime time.Duration // see Think
}

// NewRandom is the source of a client's random numbers: the same for the same seed and number.
func NewRandom(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number)))
}

// A Count is how often a program ran and how that ended. It is safe for concurrent use.
type Count struct {
	committed, declined, retried atomic.Int64
}

// Of returns the numbers under the program's name.
func (n *Count) Of(name string, clients int) ProgramCount {
	return ProgramCount{Name: name, Clients: clients, Committed: n.committed.Load(), Declined: n.declined.Load(),
		Retried: n.retried.Load()}
}

// maxAttempts bounds how often a transaction is tried.
const maxAttempts = 100

// Attempt has a program run once, and again as long as the server refuses it for the sake of others.
func (c *Client) Attempt(ctx context.Context, count *Count, program func() error) error {
	for attempt := 1; ; attempt++ {
		err := program()
		if err == nil {
			count.committed.Add(1)
			return nil
		}
		if errors.Is(err, ErrDeclined) {
			count.declined.Add(1)
			return nil
		}
		if refused, _ := Refused(err); !refused || attempt == maxAttempts {
			return err
		}
		count.retried.Add(1)
		if err := c.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// backOff pauses before a further attempt, the longer the more there were, so that of many who want the same row each
// comes to it.
func (c *Client) backOff(ctx context.Context, attempts int) error {
	most := 4 * time.Millisecond << min(attempts, 5)
	return Pause(ctx, time.Duration(c.Random.Int64N(int64(most))))
}

// Alone runs single statements, each a transaction of its own.
func (c *Client) Alone() Handle { return Handle{c.Conn, c.Dialect} }

// Transaction runs body in an explicit transaction of the session's level, and rolls back when it fails.
func (c *Client) Transaction(ctx context.Context, body func(tx Handle) error) error {
	tx, err := c.Conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := body(Handle{tx, c.Dialect}); err != nil {
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

// Think is the time an application takes between reading and writing: ThinkTime and up to as much again.
func (c *Client) Think(ctx context.Context) error {
	if c.ThinkTime <= 0 {
		return nil
	}
	return Pause(ctx, c.ThinkTime+time.Duration(c.Random.Int64N(int64(c.ThinkTime))))
}

// Arrive pauses for a time that is drawn at random, as between requests that know nothing of each other: mean is how
// long that takes on average.
func (c *Client) Arrive(ctx context.Context, mean time.Duration) error {
	return Pause(ctx, time.Duration(c.Random.ExpFloat64()*float64(mean)))
}

// Pause waits; it ends early, with the context's cause, when the context does.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
