package catalog

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/isotap/isotap/rewrite"
)

// A Cache holds what the rewriter must know of the server's tables and views. Lookups take no lock
// and do no input or output; [Cache.Reload] and [Cache.Refresh] ask the server again. It is safe for
// concurrent use.
//
// isotap's user must see what the cache is to know: information_schema leaves out tables without a
// privilege and, without the TRIGGER privilege, triggers.
type Cache struct {
	folds   bool
	quotes  bool       // defaults are spelled as SQL has them
	mu      sync.Mutex // taken by whoever replaces current
	current atomic.Pointer[snapshot]
}

var _ rewrite.Schema = (*Cache)(nil)

// A name of a table or view, folded where the server's names do not differ by case.
type name struct{ schema, table string }

// A snapshot is one state of the catalog. It is never changed once current.
type snapshot struct {
	epoch       uint64
	tables      map[name]*rewrite.Table
	foreignKeys []foreignKey
}

// Load reads the whole catalog of the server, apart from its own schemas.
func Load(ctx context.Context, c *Conn) (*Cache, error) {
	server, err := ServerFacts(ctx, c)
	if err != nil {
		return nil, err
	}
	cache := &Cache{folds: server.FoldsNames(), quotes: server.Engine == "mariadb"}
	cache.current.Store(&snapshot{})
	return cache, cache.Reload(ctx, c)
}

// Table finds a table or view; nil when there is none. It is [rewrite.Schema]'s.
func (c *Cache) Table(schema, table string) *rewrite.Table {
	return c.current.Load().tables[c.name(schema, table)]
}

// Epoch numbers the states of the catalog: it grows whenever a table looks different from before,
// so what was worked out from an earlier epoch may be outdated.
func (c *Cache) Epoch() uint64 { return c.current.Load().epoch }

// Reload reads the whole catalog anew.
func (c *Cache) Reload(ctx context.Context, conn *Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	read, err := c.read(ctx, conn, nil)
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	c.replace(&snapshot{tables: read.tables, foreignKeys: read.foreignKeys})
	return nil
}

// Refresh reads one table or view anew, which may be gone or new.
func (c *Cache) Refresh(ctx context.Context, conn *Conn, schema, table string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	only := c.name(schema, table)
	read, err := c.read(ctx, conn, &only)
	if err != nil {
		return fmt.Errorf("reading the catalog's entry of %s.%s: %w", schema, table, err)
	}
	old := c.current.Load()
	next := &snapshot{tables: maps.Clone(old.tables), foreignKeys: read.foreignKeys}
	delete(next.tables, only)
	maps.Copy(next.tables, read.tables)
	for _, k := range old.foreignKeys {
		if k.child != only && k.parent != only {
			next.foreignKeys = append(next.foreignKeys, k)
		}
	}
	c.replace(next)
	return nil
}

// Learn takes in what a table's definition told of it, until the table is read. It is one that shows isotap's columns, and
// no statement on it is observed before.
func (c *Cache) Learn(table rewrite.TableName, columns []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &rewrite.Table{Name: table.Schema + "." + table.Table, Exposed: true}
	for _, name := range columns {
		t.Columns = append(t.Columns, rewrite.Column{Name: name})
	}
	old := c.current.Load()
	next := &snapshot{tables: maps.Clone(old.tables), foreignKeys: old.foreignKeys}
	next.tables[c.name(table.Schema, table.Table)] = t
	c.replace(next)
}

// replace makes next the current snapshot, if it differs from it: with what foreign keys do to others
// when a table is written. It needs c.mu, and next's map must be next's own.
func (c *Cache) replace(next *snapshot) {
	cascadesUpdate, cascadesDelete := map[name][]string{}, map[name]bool{}
	for _, k := range next.foreignKeys {
		if k.cascadesUpdate {
			cascadesUpdate[k.parent] = append(cascadesUpdate[k.parent], k.reactsTo(next.tables[k.parent])...)
		}
		cascadesDelete[k.parent] = cascadesDelete[k.parent] || k.cascadesDelete
	}
	for n, t := range next.tables {
		changed := *t
		slices.Sort(cascadesUpdate[n])
		changed.CascadesUpdate, changed.CascadesDelete = slices.Compact(cascadesUpdate[n]), cascadesDelete[n]
		next.tables[n] = &changed
	}
	current := c.current.Load()
	if reflect.DeepEqual(next.tables, current.tables) {
		next.epoch = current.epoch
	} else {
		next.epoch = current.epoch + 1
	}
	c.current.Store(next)
}

// name folds a table's name as the server does.
func (c *Cache) name(schema, table string) name {
	if c.folds {
		return name{strings.ToLower(schema), strings.ToLower(table)}
	}
	return name{schema, table}
}
