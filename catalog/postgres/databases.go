package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/internal/dsn"
)

// openAgain is how long a database that isotap could not read is not tried again.
const openAgain = 10 * time.Second

// Databases returns the cache of each database of a server that clients log in to, read with the login of the
// target. It is safe for concurrent use.
type Databases struct {
	target  dsn.Target
	closing context.Context // ends with Close
	end     context.CancelFunc
	opening sync.WaitGroup
	mu      sync.Mutex
	known   map[string]*database
	guests  map[string]int // sessions of clients, by database
}

// A database is one that was asked for.
type database struct {
	opened  chan struct{} // closed once cache and err are there
	cache   *Cache        // nil: it cannot be read, for the reason err
	err     error
	refused time.Time // when err was found
}

// NewDatabases returns the databases of a server. It asks for none yet.
func NewDatabases(target dsn.Target) *Databases {
	d := &Databases{target: target, known: map[string]*database{}, guests: map[string]int{}}
	d.closing, d.end = context.WithCancel(context.Background())
	return d
}

// Enter notes that a session of a client's is in a database. As long as one is, isotap's connection stays there, too:
// nobody can drop or copy the database anyway.
func (d *Databases) Enter(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests[name]++
}

// Leave notes that a session that [Databases.Enter] noted has ended. Isotap's connection goes with the last one.
func (d *Databases) Leave(name string) {
	d.mu.Lock()
	if d.guests[name]--; d.guests[name] <= 0 {
		delete(d.guests, name)
	}
	alone := d.guests[name] == 0
	d.mu.Unlock()
	if entry := d.readable()[name]; alone && entry != nil {
		entry.cache.conn.leave.Reset(0)
		for _, conn := range entry.cache.beside.all() {
			conn.leave.Reset(0)
		}
	}
}

// hasGuests reports whether a session is in a database.
func (d *Databases) hasGuests(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.guests[name] > 0
}

// Expect notes that a client asks to be let in to a database. Where isotap is there already, it begins to read what the
// session may wait for ([Cache.Arrive]), while the server makes one.
func (d *Databases) Expect(name string) {
	if entry := d.readable()[name]; entry != nil && entry.cache.conn.connected() {
		d.opening.Go(func() { entry.cache.freshenAhead(d.closing) })
	}
}

// Open returns a database's cache to a session that begins in it, which sees by [Cache.Arrive] that it is fresh. An
// error says why isotap cannot read the database, or not before ctx ended: the session is to go unobserved. A catalog
// that takes longer to read is there for later sessions.
func (d *Databases) Open(ctx context.Context, name string) (*Cache, error) {
	entry := d.entry(name)
	select {
	case <-entry.opened:
	case <-ctx.Done():
		return nil, fmt.Errorf("reading the catalog of database %s: %w", name, ctx.Err())
	}
	if entry.cache != nil {
		d.opening.Go(func() { entry.cache.freshenAhead(d.closing) })
	}
	return entry.cache, entry.err
}

// entry finds what is known of a database, or begins to read it.
func (d *Databases) entry(name string) *database {
	d.mu.Lock()
	defer d.mu.Unlock()
	if entry := d.known[name]; entry != nil && !entry.overdue() {
		return entry
	}
	entry := &database{opened: make(chan struct{})}
	d.known[name] = entry
	d.opening.Go(func() {
		defer close(entry.opened)
		entry.cache, entry.err = d.load(name)
		entry.refused = time.Now()
		if IsGone(entry.err) { // it may be made any moment
			d.forget(name, entry)
		}
	})
	return entry
}

// load reads a database over a connection that stays while clients are in it.
func (d *Databases) load(name string) (*Cache, error) {
	var conns [3]*Conn
	for i := range conns {
		conn, err := NewConn(d.target, name)
		if err != nil {
			return nil, err
		}
		conn.stays = func() bool { return d.hasGuests(name) }
		conns[i] = conn
	}
	cache, err := loadOver(d.closing, conns[0])
	if err == nil {
		cache.beside = beside{asking: conns[1], testing: conns[2]}
	}
	return cache, err
}

// A beside holds connections to a database for what takes its time, beside the one that the catalog is read over:
// statements wait for that, a few seconds at most.
type beside struct {
	asking  *Conn // for [Databases.Ask]
	testing *Conn // for [Databases.Test]
}

func (b beside) all() []*Conn {
	if b.asking == nil {
		return nil
	}
	return []*Conn{b.asking, b.testing}
}

// overdue reports whether a database that could not be read is to be tried again.
func (e *database) overdue() bool {
	select {
	case <-e.opened:
		return e.cache == nil && time.Since(e.refused) > openAgain
	default:
		return false
	}
}

func (d *Databases) forget(name string, entry *database) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[name] == entry {
		delete(d.known, name)
	}
}

// Reload reads the catalogs anew that were opened. A database that is gone is forgotten.
func (d *Databases) Reload(ctx context.Context) error {
	var errs []error
	for name, entry := range d.readable() {
		err := entry.cache.Reload(ctx)
		if IsGone(err) {
			d.forget(name, entry)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readable returns the databases that have a cache.
func (d *Databases) readable() map[string]*database {
	d.mu.Lock()
	defer d.mu.Unlock()
	readable := maps.Clone(d.known)
	maps.DeleteFunc(readable, func(_ string, entry *database) bool {
		select {
		case <-entry.opened:
			return entry.cache == nil
		default:
			return true
		}
	})
	return readable
}

// IsGone reports whether an error is the server's refusal of a connection to a database that is not there.
func IsGone(err error) bool {
	const invalidCatalogName = "3D000"
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == invalidCatalogName
}

// Caches returns the databases that were opened, by name.
func (d *Databases) Caches() map[string]*Cache {
	caches := map[string]*Cache{}
	for name, entry := range d.readable() {
		caches[name] = entry.cache
	}
	return caches
}

// Close ends isotap's connections. Nothing may be opened any more.
func (d *Databases) Close() error {
	d.end()
	d.opening.Wait()
	var errs []error
	for _, entry := range d.readable() {
		errs = append(errs, entry.cache.Close())
	}
	return errors.Join(errs...)
}
