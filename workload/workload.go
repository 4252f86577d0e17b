// Package workload is what isotap's own clients have in common: applications over database/sql that work on a server of
// the MySQL family or PostgreSQL, several clients at the same time, each on a connection of its own. They keep their
// own books, so that what they say of a run needs no recording: whether the workload's invariants hold is an
// independent witness for what the analyzer finds.
//
// workload.go runs a Workload, client.go is one of its clients, handle.go its statements, refused.go the errors after
// which it tries again, dialect.go what differs between the families, isolation.go what their transactions run under,
// setup.go makes tables, outcome.go what came of it.
package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Workload is an application: its tables, its programs, and what must be so when they have run. It remembers what its
// programs did, so each run has one of its own.
type Workload interface {
	// Setup returns the tables, as CREATE TABLE in standard SQL, and the statements that fill them.
	Setup() (tables, statements []string)
	Programs() []Program
	// Check reads the database when nobody works on it, and holds it against what the programs did.
	Check(ctx context.Context, h Handle) ([]Check, error)
}

// A Program is one thing that an application does: a transaction.
type Program struct {
	Name   string
	Weight int // how often it runs, relative to the others
	// Run does it once. It is called by all clients at the same time.
	Run func(ctx context.Context, c *Client) error
}

// The defaults of Config.
const (
	DefaultClients  = 8
	DefaultDuration = 10 * time.Second
	DefaultThink    = time.Millisecond
)

// Config says how a workload is run.
type Config struct {
	Clients int // 0: DefaultClients
	// Duration is how long transactions are begun. 0: DefaultDuration, or no bound if Transactions is one.
	Duration time.Duration
	// Transactions is how many the clients run together, declined ones counted and retries not; 0: no bound.
	Transactions int
	Rate         float64       // transactions a second, of all clients together; 0: as many as they can
	Irregular    bool          // with Rate: they begin at random times, and not one after the other
	Think        time.Duration // see [Client.Think]
	Seed         uint64        // chooses what the clients do
	Isolation    Isolation     // the zero Isolation is the server's default
}

func (c Config) withDefaults() (Config, error) {
	if c.Clients == 0 {
		c.Clients = DefaultClients
	}
	if c.Duration == 0 && c.Transactions == 0 {
		c.Duration = DefaultDuration
	}
	if c.Clients < 0 || c.Duration < 0 || c.Transactions < 0 || c.Rate < 0 || c.Think < 0 {
		return c, errors.New("clients, duration, transactions, rate and think time cannot be negative")
	}
	return c, nil
}

// Run has clients work on a database that was set up for w, and holds their books against it. What the server refuses
// for the sake of other transactions is tried again; any other error ends the run.
func Run(ctx context.Context, dsn string, w Workload, config Config) (*Outcome, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	dialect := DialectOf(dsn)
	db, err := dialect.Open(dsn, false)
	if err != nil {
		return nil, fmt.Errorf("the workload's data source: %w", err)
	}
	defer db.Close()
	r := &run{config: config, dialect: dialect, db: db, programs: w.Programs()}
	r.counts = make([]Count, len(r.programs))
	began := time.Now()
	if err := r.work(ctx); err != nil {
		return nil, err
	}
	o := &Outcome{Clients: config.Clients, Elapsed: time.Since(began)}
	for i, p := range r.programs {
		o.Programs = append(o.Programs, r.counts[i].Of(p.Name, config.Clients))
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to check the invariants: %w", err)
	}
	defer conn.Close()
	if o.Checks, err = w.Check(ctx, Handle{conn, dialect}); err != nil {
		return nil, fmt.Errorf("checking the invariants: %w", err)
	}
	return o, nil
}

// A run is what the clients share.
type run struct {
	config   Config
	dialect  *Dialect
	db       *sql.DB
	programs []Program
	counts   []Count // parallel to programs
}

// work runs the clients to their end. The first that fails ends the others.
func (r *run) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	began := time.Now()
	for i := range r.config.Clients {
		c := &Client{Number: i + 1, Random: NewRandom(r.config.Seed, i), Dialect: r.dialect, ThinkTime: r.config.Think}
		all.Go(func() {
			if err := r.client(ctx, c, began); err != nil {
				cancel(fmt.Errorf("client %d: %w", c.Number, err))
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// client connects a client and runs its transactions.
func (r *run) client(ctx context.Context, c *Client, began time.Time) (err error) {
	if c.Conn, err = r.db.Conn(ctx); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer c.Conn.Close() // gives the connection back to a pool that is closed next
	for _, text := range r.dialect.Isolate(r.config.Isolation) {
		if err := c.Alone().Exec(ctx, text); err != nil {
			return err
		}
	}
	for turn := 0; r.goesOn(c, turn, began); turn++ {
		if err := r.await(ctx, c, turn, began); err != nil {
			return err
		}
		p := r.choose(c)
		if err := c.Attempt(ctx, &r.counts[p], func() error { return r.programs[p].Run(ctx, c) }); err != nil {
			return fmt.Errorf("%s: %w", r.programs[p].Name, err)
		}
	}
	return nil
}

// goesOn reports whether a client runs a further transaction. Each has its share of them from the beginning, so that a
// seed gives each client the same.
func (r *run) goesOn(c *Client, turn int, began time.Time) bool {
	n := r.config.Transactions
	share := n / r.config.Clients
	if c.Number <= n%r.config.Clients {
		share++
	}
	return (n == 0 || turn < share) && (r.config.Duration == 0 || time.Since(began) < r.config.Duration)
}

// await waits for a turn's time, if there is a rate.
func (r *run) await(ctx context.Context, c *Client, turn int, began time.Time) error {
	if r.config.Rate == 0 {
		return nil
	}
	if r.config.Irregular {
		return c.Arrive(ctx, time.Duration(float64(r.config.Clients)/r.config.Rate*float64(time.Second)))
	}
	place := float64(turn*r.config.Clients + c.Number - 1)
	return Pause(ctx, time.Until(began.Add(time.Duration(place/r.config.Rate*float64(time.Second)))))
}

// choose draws a program by its weight.
func (r *run) choose(c *Client) int {
	sum := 0
	for _, p := range r.programs {
		sum += p.Weight
	}
	n := c.Random.IntN(sum)
	for i, p := range r.programs {
		if n -= p.Weight; n < 0 {
			return i
		}
	}
	return len(r.programs) - 1
}
