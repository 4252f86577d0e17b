package mysql

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/dbms"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A Cache holds what the rewriter must know of the server's tables and views. It is safe for concurrent use.
//
// [Load] reads the whole catalog. Of a change ([Cache.Changed]) only the names are noted: a table is read again, by its
// name alone, when it is asked for the next time, over a connection of the Cache's own. Whoever asks for other tables
// does not wait. Only a change of which nobody knows what it was about has the whole catalog read again. Changes that
// pass by isotap are found by [Cache.Reload].
//
// A table is never described as it was before a change that the Cache was told of: what cannot be read is not known.
//
// isotap's user must see what the Cache is to know: information_schema leaves out tables without a privilege and,
// without the TRIGGER privilege, triggers.
type Cache struct {
	folds   bool
	quotes  bool // defaults are spelled as SQL has them
	readers readers
	options CacheOptions
	epoch   atomic.Uint64

	mu         sync.RWMutex
	schemas    map[string]*schema
	references references
	clock      uint64 // numbers changes and readings
	unknown    uint64 // the last change of which nobody knows what it was about
	whole      uint64 // when the reading of the whole catalog began that the Cache rests on
	all        entry  // the whole catalog, as far as it is waited for
	untold     bool   // somebody was told that there is no table where it could not be read
	noted      []name // tables that may be read ahead, those changed last at the end
	reads      bool   // they are read now
	worth      int    // above 0, they are read as soon as they are noted

	ahead sync.WaitGroup // what reads, until life ends
	life  context.Context
	die   context.CancelFunc
}

var _ sqlmysql.Schema = (*Cache)(nil)

// CacheOptions are what a [Cache] does for those that rest on it.
type CacheOptions struct {
	// Patience is how long somebody waits for what he asks for; 0: defaultPatience.
	Patience time.Duration
	// Invalidate is called when tables may look different from before, so that what was worked out of them is outdated.
	// It may be called by [Cache.Table].
	Invalidate func()
	// Ahead says that behind the first table that somebody asks for others are read that changed before.
	Ahead bool
	// Failed is called when what somebody asked for cannot be read: its table is not known then.
	Failed func(error)
}

const defaultPatience = 5 * time.Second

// A name of a table or view, folded where the server's names do not differ by case.
type name struct{ schema, table string }

// A schema holds its tables by name.
type schema struct {
	tables map[string]*entry
	// partial says that there may be tables that are not among them: somebody changed the schema as a whole at since.
	partial bool
	since   uint64
}

// An entry is what is known of a name.
type entry struct {
	since   uint64 // when it was changed, or read
	known   bool
	table   *sqlmysql.Table // nil: there is none of that name. Without what foreign keys of others do
	keys    []foreignKey    // its own
	learned *sqlmysql.Table // what a definition told of it, until it is known
	fires   *triggers       // what it has, while the rest is not known; nil: not known either
	reading chan struct{}   // closed when the reading that is under way ends
	retry   time.Time       // it is not read before
	ahead   bool            // it is read before anybody asked for it

	full atomic.Pointer[sqlmysql.Table] // table with what foreign keys of others do; nil: to be worked out
}

// Load reads the whole catalog of the server, apart from its own schemas. The caller closes the Cache, and keeps the
// connection.
func Load(ctx context.Context, c *Conn) (*Cache, error) {
	server, err := ServerFacts(ctx, c)
	if err != nil {
		return nil, err
	}
	cache := &Cache{folds: server.FoldsNames(), quotes: server.Engine == dbms.MariaDB,
		readers: readers{target: c.Target()}}
	cache.life, cache.die = context.WithCancel(context.Background())
	cache.Configure(CacheOptions{})
	return cache, cache.Reload(ctx, c)
}

// Configure sets the options. It is called before the Cache is shared.
func (c *Cache) Configure(o CacheOptions) {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Invalidate == nil {
		o.Invalidate = func() {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	c.options = o
}

// Close ends the connections that the Cache opened.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.noted, c.options.Ahead = nil, false
	c.die() // nothing more is begun
	c.mu.Unlock()
	c.ahead.Wait()
	return c.readers.close()
}

// Ping has the server answer over one of the Cache's connections.
func (c *Cache) Ping(ctx context.Context) error {
	return c.readers.use(ctx, func(conn *Conn) error {
		_, err := conn.Query(ctx, Query{Purpose: "a sign of life", Text: "SELECT 1", Columns: 1})
		return err
	})
}

// Epoch numbers the states of the catalog: it grows whenever a table may look different from before,
// so what was worked out from an earlier epoch may be outdated.
func (c *Cache) Epoch() uint64 { return c.epoch.Load() }

func (c *Cache) outdate() {
	c.epoch.Add(1)
	c.options.Invalidate()
}

// Table finds a table or view; nil when there is none, or it cannot be read. It asks the server when the table was
// changed since it was read last. It is [sqlmysql.Schema]'s.
func (c *Cache) Table(schema, table string) *sqlmysql.Table {
	n := c.name(schema, table)
	if n.schema == "" || systemSchema(strings.ToLower(n.schema)) {
		return nil
	}
	c.mu.RLock()
	t, _, known := c.find(n)
	c.mu.RUnlock()
	if !known {
		c.expects(n)
		t = c.await(n)
		c.readAhead()
	}
	return t
}

// everything is the name that stands for the whole catalog.
var everything name

// find looks a table up. What has to be read first it returns as unread. It needs c.mu, for reading, as entry and
// partial do.
func (c *Cache) find(n name) (t *sqlmysql.Table, unread name, known bool) {
	if c.unknown > c.whole {
		return nil, everything, false
	}
	e := c.entry(n)
	switch {
	case e == nil:
		return nil, n, !c.partial(n.schema)
	case !e.known:
		return nil, n, false
	case e.table == nil:
		return nil, n, true
	}
	if full := e.full.Load(); full != nil {
		return full, n, true
	}
	var keys []foreignKey
	for child := range c.references.children[n] {
		switch from := c.entry(child); {
		case from != nil && from.known:
			keys = append(keys, from.keys...)
		case from != nil || c.partial(child.schema):
			return nil, child, false
		}
	}
	full := withCascades(n, e.table, keys)
	e.full.Store(full)
	return full, n, true
}

func (c *Cache) entry(n name) *entry {
	if s := c.schemas[n.schema]; s != nil {
		return s.tables[n.table]
	}
	return nil
}

// partial reports whether a schema may have tables of which the Cache has no entry.
func (c *Cache) partial(name string) bool {
	s := c.schemas[name]
	return s != nil && s.partial
}

// withCascades returns a table with what foreign keys to it, which are among the given ones, do to others when it is
// written.
func withCascades(n name, table *sqlmysql.Table, keys []foreignKey) *sqlmysql.Table {
	full := *table
	for _, k := range keys {
		if k.parent != n {
			continue
		}
		if k.cascadesUpdate {
			full.CascadesUpdate = append(full.CascadesUpdate, k.reactsTo(table)...)
		}
		full.CascadesDelete = full.CascadesDelete || k.cascadesDelete
	}
	slices.Sort(full.CascadesUpdate)
	full.CascadesUpdate = slices.Compact(full.CascadesUpdate)
	return &full
}

// await has read what is missing of a table, and waits as long as patience lasts. A reading that takes longer goes on:
// what it finds is known to those who ask later.
func (c *Cache) await(n name) *sqlmysql.Table {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Patience)
	defer cancel()
	for {
		c.mu.Lock()
		t, unread, known := c.find(n)
		if known {
			c.mu.Unlock()
			return t
		}
		e := c.wanted(unread)
		if time.Now().Before(e.retry) || c.life.Err() != nil {
			c.mu.Unlock()
			return c.told(n)
		}
		if e.reading == nil {
			e.reading = make(chan struct{})
			c.ahead.Go(func() {
				c.readEntry(unread, e)
			})
		}
		under := e.reading
		c.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
			return c.goWithout(n, unread, e)
		}
	}
}

// goWithout returns what is told of a table whose reading takes longer than anybody waits. Nobody else waits for that
// reading for a while.
func (c *Cache) goWithout(n, unread name, e *entry) *sqlmysql.Table {
	c.mu.Lock()
	e.retry = time.Now().Add(c.options.Patience)
	c.mu.Unlock()
	c.options.Failed(unread.unreadable(fmt.Errorf("it takes longer than %v", c.options.Patience)))
	return c.told(n)
}

// unreadable says why a name could not be read.
func (n name) unreadable(err error) error {
	if n == everything {
		return err
	}
	return fmt.Errorf("reading the catalog's entry of %s.%s: %w", n.schema, n.table, err)
}

// maxReading bounds a reading, whether somebody waits for it or not: a server may be gone without a word.
const maxReading = time.Minute

// wanted returns the entry of a name that is to be read. It needs c.mu, as all do that change something.
func (c *Cache) wanted(n name) *entry {
	if n == everything {
		return &c.all
	}
	e := c.entry(n)
	if e == nil {
		e = &entry{since: c.clock}
		c.schemas[n.schema].tables[n.table] = e
	}
	return e
}

// readEntry reads what an entry is to hold, unless it was changed meanwhile.
func (c *Cache) readEntry(n name, e *entry) {
	ctx, cancel := context.WithTimeout(c.life, max(maxReading, c.options.Patience))
	defer cancel()
	var r *reading
	err := c.readers.use(ctx, func(conn *Conn) (err error) {
		if n == everything {
			return c.Reload(ctx, conn)
		}
		r, err = c.read(ctx, conn, &n, e.fires) // which does not change
		return err
	})
	c.mu.Lock()
	close(e.reading)
	e.reading = nil
	switch {
	case err != nil:
		e.retry = time.Now().Add(c.options.Patience)
	case n != everything && c.entry(n) == e:
		c.take(n, e, r)
	default:
		e.retry = time.Time{}
	}
	again := err == nil && c.untold
	c.mu.Unlock()
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // else the cache closes
		c.options.Failed(n.unreadable(err))
	}
	if again {
		c.outdate()
	}
}

// take has an entry hold what was read.
func (c *Cache) take(n name, e *entry, r *reading) {
	c.clock++
	e.since, e.known, e.table, e.keys, e.learned = c.clock, true, r.tables[n], r.foreignKeys, nil
	for _, k := range e.keys {
		c.mayReference(n, k.parent)
	}
	c.recompose(n)
}

// told returns what a definition told of a table that cannot be read; nil: nothing.
func (c *Cache) told(n name) *sqlmysql.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.untold = true
	if e := c.entry(n); e != nil {
		return e.learned
	}
	return nil
}

func newReferences() references {
	return references{make(map[name]map[name]bool), make(map[name]map[name]bool)}
}

func (r references) add(child, parent name) {
	for _, side := range []struct {
		of       map[name]map[name]bool
		from, to name
	}{{r.children, parent, child}, {r.parents, child, parent}} {
		if side.of[side.from] == nil {
			side.of[side.from] = make(map[name]bool)
		}
		side.of[side.from][side.to] = true
	}
}

// Reload reads the whole catalog anew, over a connection of the caller's. Nobody waits for it: what changes, or is read
// by name, meanwhile stays as it is then.
func (c *Cache) Reload(ctx context.Context, conn *Conn) error {
	c.mu.Lock()
	c.clock++
	began := c.clock
	c.mu.Unlock()
	r, err := c.read(ctx, conn, nil, nil)
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	c.mu.Lock()
	if c.unknown > began || c.whole > began { // it may be outdated already
		c.mu.Unlock()
		return nil
	}
	next := newMerger(r, began)
	next.merge(c)
	c.schemas, c.references, c.whole = next.schemas, next.references, began
	differs := next.differs || c.untold
	c.untold = false
	c.mu.Unlock()
	if differs {
		c.outdate()
	}
	return nil
}

// A merger makes the next state of a Cache of a reading of the whole catalog that began at a time, and of what came
// since.
type merger struct {
	began      uint64
	schemas    map[string]*schema
	references references
	differs    bool // what somebody may have been told is no longer so
}

func newMerger(r *reading, began uint64) *merger {
	m := &merger{began: began, schemas: make(map[string]*schema), references: newReferences()}
	for n, t := range r.tables {
		m.put(n, &entry{since: began, known: true, table: t})
	}
	for _, k := range r.foreignKeys {
		if s := m.schemas[k.child.schema]; s != nil && s.tables[k.child.table] != nil {
			e := s.tables[k.child.table]
			e.keys = append(e.keys, k)
		}
		m.references.add(k.child, k.parent)
	}
	return m
}

func (m *merger) put(n name, e *entry) {
	s := m.schemas[n.schema]
	if s == nil {
		s = &schema{tables: make(map[string]*entry)}
		m.schemas[n.schema] = s
	}
	s.tables[n.table] = e
}

// merge takes over what the Cache learned since the reading began.
func (m *merger) merge(c *Cache) {
	for schemaName, s := range m.schemas {
		for table := range s.tables {
			m.differs = m.differs || c.entry(name{schemaName, table}) == nil
		}
	}
	for schemaName, s := range c.schemas {
		if s.partial && s.since > m.began {
			m.schemas[schemaName] = s
			for _, e := range s.tables {
				e.full.Store(nil)
			}
			continue
		}
		for table, e := range s.tables {
			n := name{schemaName, table}
			if e.since > m.began {
				e.full.Store(nil)
				m.put(n, e)
				continue
			}
			var fresh *entry
			if s := m.schemas[schemaName]; s != nil {
				fresh = s.tables[table]
			}
			m.differs = m.differs || e.differs(fresh)
		}
	}
	for child, parents := range c.references.parents {
		e, s := c.entry(child), c.schemas[child.schema]
		if e != nil && e.since > m.began || s != nil && s.partial && s.since > m.began {
			for parent := range parents {
				m.references.add(child, parent)
			}
		}
	}
}

// differs reports whether somebody was told something of the entry that is not so by another; nil: there is no such
// table.
func (e *entry) differs(other *entry) bool {
	switch {
	case !e.known:
		return false
	case other == nil:
		return e.table != nil
	}
	return !reflect.DeepEqual(e.table, other.table) || !reflect.DeepEqual(e.keys, other.keys)
}

// name folds a table's name as the server does.
func (c *Cache) name(schema, table string) name {
	if c.folds {
		return name{strings.ToLower(schema), strings.ToLower(table)}
	}
	return name{schema, table}
}
