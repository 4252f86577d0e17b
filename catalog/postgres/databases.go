package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/catalog"
)

// openAgain is how long a database that isotap could not read is not tried again.
const openAgain = 10 * time.Second

// Databases gives the cache of each database of a server that clients log in to, read with the login of the
// target. It is safe for concurrent use.
type Databases struct {
	target catalog.Target
	mu     sync.Mutex
	known  map[string]*database
}

// A database is one that was asked for.
type database struct {
	opened  chan struct{} // closed once cache and err are there
	cache   *Cache        // nil: it cannot be read, for the reason err
	err     error
	refused time.Time // when that was found
}

// NewDatabases gives the databases of a server. It asks for none yet.
func NewDatabases(target catalog.Target) *Databases {
	return &Databases{target: target, known: map[string]*database{}}
}

// Open gives a database's cache to a session that begins in it, and sees that it is fresh. An error says why
// isotap cannot read the database: its sessions are to go unobserved.
func (d *Databases) Open(ctx context.Context, name string) (*Cache, error) {
	for {
		entry, first := d.entry(name)
		if first {
			d.open(ctx, name, entry)
		}
		select {
		case <-entry.opened:
		case <-ctx.Done():
			return nil, fmt.Errorf("reading the catalog of database %s: %w", name, ctx.Err())
		}
		if first || entry.cache == nil && !errors.Is(entry.err, context.Canceled) {
			return entry.cache, entry.err
		}
		if entry.cache == nil {
			continue // whoever was first gave up, which says nothing of the database
		}
		err := entry.cache.freshen(ctx)
		if err == nil {
			return entry.cache, nil
		}
		if IsGone(err) {
			d.forget(name, entry)
		}
		return nil, err
	}
}

// entry finds what is known of a database; first says that the caller is to open it.
func (d *Databases) entry(name string) (entry *database, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if entry = d.known[name]; entry != nil && !entry.overdue() {
		return entry, false
	}
	entry = &database{opened: make(chan struct{})}
	d.known[name] = entry
	return entry, true
}

// overdue says whether a database that could not be read is to be tried again.
func (e *database) overdue() bool {
	select {
	case <-e.opened:
		return e.cache == nil && time.Since(e.refused) > openAgain
	default:
		return false
	}
}

func (d *Databases) open(ctx context.Context, name string, entry *database) {
	defer close(entry.opened)
	cache, err := Load(ctx, d.target, name)
	if err == nil {
		entry.cache = cache
		return
	}
	entry.err, entry.refused = err, time.Now()
	if ctx.Err() != nil {
		entry.err = context.Canceled
		d.forget(name, entry)
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

// readable gives the databases that have a cache.
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

// IsGone says whether an error is the server's refusal of a connection to a database that is not there.
func IsGone(err error) bool {
	const invalidCatalogName = "3D000"
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == invalidCatalogName
}

// Caches gives the databases that were opened, by name.
func (d *Databases) Caches() map[string]*Cache {
	caches := map[string]*Cache{}
	for name, entry := range d.readable() {
		caches[name] = entry.cache
	}
	return caches
}

// Close ends isotap's connections.
func (d *Databases) Close() error {
	var errs []error
	for _, entry := range d.readable() {
		errs = append(errs, entry.cache.Close())
	}
	return errors.Join(errs...)
}
