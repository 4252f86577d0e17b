package postgres

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A Cache holds what the rewriter must know of the tables and views of one database, those of the system and
// temporary ones left out. Lookups take no lock and do no input or output, save for [Cache.Reads]' first
// question about a role; [Cache.Reload] and [Cache.Refresh] ask the server again. It is safe for concurrent
// use.
//
// A table's name is its schema's, a dot and its own, with nothing quoted: two tables of which a name has a
// dot itself may have the same one. A column's type is the name in pg_type, of the type beneath where it is a
// domain, and with its schema and a dot before it where that is not pg_catalog. A unique index with a
// condition does not count as one.
type Cache struct {
	conn    *Conn
	mu      sync.Mutex      // taken by whoever replaces current
	began   time.Time       // when the last reading of the whole catalog did
	took    time.Duration   // how long it took
	moved   map[string]bool // tables that were seen to be in another file than before, by history.Row.Table
	current atomic.Pointer[snapshot]
}

var _ sqlpostgres.Schema = (*Cache)(nil)

// A name of a table or view, as the catalog has it.
type name struct{ schema, table string }

// A snapshot is one state of the catalog. It is never changed once current.
type snapshot struct {
	epoch  uint64
	read   *reading
	tables map[name]*rewrite.Table
	rights map[string]rights // by role
	// exposes says that some tables have columns of isotap's.
	exposes bool
}

// Load reads the whole catalog of a database. The cache closes with [Cache.Close].
func Load(ctx context.Context, target catalog.Target, database string) (*Cache, error) {
	conn, err := NewConn(target, database)
	if err != nil {
		return nil, err
	}
	c := &Cache{conn: conn, moved: map[string]bool{}}
	c.current.Store(&snapshot{read: &reading{}})
	if err := c.Reload(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Table finds a table or view by the names that the catalog has; nil when there is none. It is
// [rewrite.Schema]'s.
func (c *Cache) Table(schema, table string) *rewrite.Table {
	return c.current.Load().tables[name{schema, table}]
}

// Functions says what the functions of a name are that the server does not bring along. It is
// [sqlpostgres.Schema]'s.
func (c *Cache) Functions(name string) sqlpostgres.FunctionKind {
	return c.current.Load().read.functions[name]
}

// Exposes says whether any table or view has columns of isotap's. It is [sqlpostgres.Schema]'s.
func (c *Cache) Exposes() bool { return c.current.Load().exposes }

// Epoch numbers the states of the catalog: it grows whenever a table or function looks different from before, or a
// role may read others, so what was worked out from an earlier epoch may be outdated.
func (c *Cache) Epoch() uint64 { return c.current.Load().epoch }

// Reload reads the catalog anew. One that is as it was costs the server one query, and those who ask while
// it is read wait for one more reading together.
func (c *Cache) Reload(ctx context.Context) error {
	asked := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.After(asked) {
		return nil
	}
	return c.reload(ctx)
}

// freshShare bounds what sessions that begin make isotap read: one part of the time.
const freshShare = 20

// freshen reads the catalog anew for a session that begins, unless that was done just before. A database may
// have been dropped and made again since its last session.
func (c *Cache) freshen(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.began) < freshShare*c.took {
		return nil
	}
	return c.reload(ctx)
}

// reload needs c.mu.
func (c *Cache) reload(ctx context.Context) error {
	began := time.Now()
	if err := c.readAnew(ctx); err != nil {
		return err
	}
	c.began, c.took = began, time.Since(began)
	return nil
}

// readAnew needs c.mu.
func (c *Cache) readAnew(ctx context.Context) error {
	old := c.current.Load()
	roles, waiting := old.roles()
	if old.read.fingerprint != "" && !waiting {
		results, err := c.conn.read(ctx, query{text: readFingerprint})
		if err != nil {
			return err
		}
		if results[0][0][0] == old.read.fingerprint {
			return nil
		}
	}
	read, err := readAll(ctx, c.conn, roles)
	if err != nil {
		return err
	}
	c.replace(read)
	return nil
}

// Refresh reads some tables or views anew, which may be gone or new, with those that belong to them as
// partitions or by inheritance. A name without a schema stands for the tables of that name in all schemas.
func (c *Cache) Refresh(ctx context.Context, tables []rewrite.TableName) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	roles, _ := old.roles()
	read, err := readSome(ctx, c.conn, tables, old.read, roles)
	if err != nil {
		return err
	}
	c.replace(read.over(old.read, tables))
	return nil
}

// replace makes what was read the current snapshot. It needs c.mu.
func (c *Cache) replace(read *reading) {
	old := c.current.Load()
	next := &snapshot{epoch: old.epoch, read: read, tables: read.tables(), rights: read.rights}
	for _, t := range next.tables {
		next.exposes = next.exposes || t.Exposed
	}
	for oid, before := range old.read.relations {
		if after := read.relations[oid]; after != nil && after.filenode != before.filenode {
			c.note(next.tables[after.name])
		}
	}
	if !reflect.DeepEqual(next.tables, old.tables) || !reflect.DeepEqual(next.rights, old.rights) ||
		!maps.Equal(read.functions, old.read.functions) {
		next.epoch++
	}
	c.current.Store(next)
}

// note takes note that a table's rows are in another file than before. It needs c.mu.
func (c *Cache) note(t *rewrite.Table) {
	if t.Root != "" {
		c.moved[t.Root] = true
	}
	c.moved[t.Name] = true
}

// Rewritten gives the tables, by history.Row.Table, that were written anew as a whole between two readings:
// places in them are those of other versions since.
func (c *Cache) Rewritten() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.moved))
}

// Close ends the connection that the cache may have; it can still be asked.
func (c *Cache) Close() error { return c.conn.Close() }
