package postgres

import (
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/internal/dsn"
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
	beside  beside        // none where the cache is none of Databases'
	mu      sync.Mutex    // taken by whoever reads, to replace current
	began   time.Time     // when the whole catalog was last looked at
	took    time.Duration // how long that took
	failing failing       // of what is pending
	related bool          // what was last read by names was more than simple tables
	waits   bool          // until somebody asks: nothing is read ahead
	ahead   *time.Timer   // calls readAhead

	// marks is taken, behind mu, by whoever replaces current or pending. What is read stands in current before it is
	// taken out of pending: they are looked at the other way round.
	marks   sync.Mutex
	defined time.Time // when the last definition was noted
	looking bool      // the whole catalog is being looked at
	missed  bool      // a definition was noted meanwhile, by the catalog as it was known before
	moved   moving
	current atomic.Pointer[snapshot]
	pending atomic.Pointer[pending] // nil: nothing
	misled  atomic.Uint64           // readings that had something else than was told
	changed atomic.Pointer[func()]
}

var _ sqlpostgres.Schema = (*Cache)(nil)

// A name of a table or view, as the catalog has it.
type name struct{ schema, table string }

// A snapshot is one state of the catalog. It is never changed once current.
type snapshot struct {
	epoch   uint64
	read    *reading
	graph   *graph // of read
	tables  layers[name, *sqlpostgres.Table]
	rights  map[string]*rights // by role
	exposed int                // tables that have columns of isotap's
	since   difference         // from the snapshot before
}

// Load reads the whole catalog of a database. The cache closes with [Cache.Close].
func Load(ctx context.Context, target dsn.Target, database string) (*Cache, error) {
	conn, err := NewConn(target, database)
	if err != nil {
		return nil, err
	}
	return loadOver(ctx, conn)
}

// loadOver is [Load] over a connection, which becomes the cache's.
func loadOver(ctx context.Context, conn *Conn) (*Cache, error) {
	c := &Cache{conn: conn, moved: moving{}}
	c.ahead = time.AfterFunc(aheadAfter, c.readAhead)
	c.ahead.Stop() // until something is pending
	c.current.Store(&snapshot{read: &reading{}, graph: newGraph(&reading{})})
	if err := c.Reload(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Changed has a function called whenever what was worked out from lookups may be outdated. It must not ask the cache.
func (c *Cache) Changed(f func()) { c.changed.Store(&f) }

func (c *Cache) tell() {
	if f := c.changed.Load(); f != nil {
		(*f)()
	}
}

// unread is what a table is that could not be read since it was touched.
var unread = &sqlpostgres.Table{Unread: true}

// Table finds a table or view by the names that the catalog has; nil when there is none. It is
// [sqlpostgres.Schema]'s.
func (c *Cache) Table(schema, table string) *sqlpostgres.Table {
	n := name{schema, table}
	if t := c.pending.Load().tells(n); t != nil {
		return t
	}
	if c.settle(func(p *pending) bool { return p.touches(n) }) != nil {
		return unread
	}
	return c.current.Load().tables.get(n)
}

// ReadsCursors reports whether a function that the server does not bring along may read a cursor by its name: one that
// fetches, or asks for what runs. It is [sqlpostgres.Schema]'s.
func (c *Cache) ReadsCursors() bool {
	if c.settle(func(p *pending) bool { return p != nil }) != nil {
		return true
	}
	for _, kind := range c.current.Load().read.functions {
		if kind == sqlpostgres.FetchingFunction || kind == sqlpostgres.TellingFunction {
			return true
		}
	}
	return false
}

// Functions returns what the functions of a name are that the server does not bring along. It is
// [sqlpostgres.Schema]'s.
func (c *Cache) Functions(name string) sqlpostgres.FunctionKind {
	if c.settle(func(p *pending) bool { return p.calls(name) }) != nil {
		return sqlpostgres.MixedFunction
	}
	return c.current.Load().read.functions[name]
}

// Exposes reports whether any table or view may have columns of isotap's. It is [sqlpostgres.Schema]'s.
func (c *Cache) Exposes() bool {
	p := c.pending.Load()
	return p != nil && p.exposes || c.current.Load().exposed > 0
}

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

// Arrive returns what a session that begins now calls before it rests on the catalog: a function that waits until that
// was read anew; nil where it was just before. A database may have been dropped and made again since its last session,
// and anything defined past isotap. While it returns an error, the catalog is not known to the session. After an error
// it waits no more for a while, and reports what others have read since.
func (c *Cache) Arrive() (wait func() error) {
	arrived := time.Now()
	fresh := func() bool { return c.began.After(arrived) || arrived.Sub(c.began) < freshShare*c.took }
	if c.mu.TryLock() { // else it is being read
		defer c.mu.Unlock()
		if fresh() {
			return nil
		}
	}
	var failed failing
	return func() error {
		due := failed.due()
		if due {
			c.mu.Lock()
		} else if !c.mu.TryLock() {
			return failed.err
		}
		defer c.mu.Unlock()
		if fresh() {
			return nil
		}
		if due {
			ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
			defer cancel()
			began := time.Now()
			failed.note(began, c.reload(ctx))
		}
		return failed.err
	}
}

// freshenAhead reads the catalog anew for sessions that begin, unless that was done just before. It leaves alone what
// others read.
func (c *Cache) freshenAhead(ctx context.Context) {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	if !c.isFresh() {
		_ = c.reload(ctx) // Arrive's wait does it again
	}
}

// isFresh reports whether the catalog was read just before. It needs c.mu.
func (c *Cache) isFresh() bool { return time.Since(c.began) < freshShare*c.took }

// reload needs c.mu.
func (c *Cache) reload(ctx context.Context) error {
	began := time.Now()
	c.look(true)
	defer c.look(false)
	p := c.pending.Load()
	next, err := c.readAnew(ctx)
	if err != nil {
		return err
	}
	c.replace(next, p)
	c.began, c.took = began, time.Since(began)
	return nil
}

// look notes that the whole catalog is being looked at, or no longer is.
func (c *Cache) look(on bool) {
	c.marks.Lock()
	defer c.marks.Unlock()
	c.looking, c.missed = on, false
}

// readAnew returns what the catalog has come to be: the current snapshot where nothing has changed. It needs c.mu.
func (c *Cache) readAnew(ctx context.Context) (next *snapshot, err error) {
	old := c.current.Load()
	roles, waiting := old.roles()
	if old.read.prints == nil || waiting {
		read, err := readAll(ctx, c.conn, roles)
		if err != nil {
			return nil, err
		}
		return old.followedBy(read), nil
	}
	err = c.conn.transact(ctx, func(t *transaction) (err error) {
		if len(old.read.unprinted) == 0 {
			results, err := t.ask(query{purpose: "the fingerprint of the catalog", text: readFingerprint, columns: 2,
				row: true})
			if err != nil {
				return err
			}
			if r := results[0][0]; (print{r[0], r[1]}) == total(old.read.prints) {
				next = old
				_, err := t.last()
				return err
			}
		}
		next, err = t.readChanges(old, roles)
		return err
	})
	return next, err
}

// readChanges reads what has another print than before.
func (t *transaction) readChanges(old *snapshot, roles []string) (*snapshot, error) {
	results, err := t.ask(askPrints)
	if err != nil {
		return nil, err
	}
	prints := printsOf(results[0])
	var changed []uint32
	what := scope{roles: roles, allFunctions: old.read.unprinted[ofFunctions]}
	for _, oids := range []iter.Seq[uint32]{maps.Keys(old.read.prints), maps.Keys(prints),
		maps.Keys(old.read.unprinted)} {
		for oid := range oids {
			switch {
			case prints[oid] == old.read.prints[oid] && !old.read.unprinted[oid]:
			case oid == ofRoles:
				what.allRights = true
			case oid == ofFunctions:
				what.allFunctions = true
			case oid == ofAdditions:
			case old.read.relations.get(oid) != nil:
				changed = slices.AppendSeq(changed, maps.Keys(old.graph.affected(oid)))
			default:
				changed = append(changed, oid)
			}
		}
	}
	slices.Sort(changed)
	part, err := t.readScope(touchedNames{known: slices.Compact(changed)}, &what)
	if err != nil {
		return nil, err
	}
	next := old.over(part, &what)
	next.read.prints, next.read.unprinted = prints, nil
	return next, nil
}

// Refresh reads some tables or views anew, which may be gone or new, with those that belong to them as
// partitions or by inheritance. A name without a schema stands for the tables of that name in all schemas.
func (c *Cache) Refresh(tables []rewrite.TableName) error {
	c.touch([]rewrite.SchemaChange{{Made: tables}})
	return c.settle(func(p *pending) bool { return p != nil })
}

// A difference is what a snapshot has otherwise than the one before.
type difference struct {
	whole     bool // anything
	tables    []name
	functions []string
	touched   map[uint32]bool // the relations that were read; nil: all
}

// any reports whether there is any difference.
func (d *difference) any() bool { return d.whole || len(d.tables) > 0 || len(d.functions) > 0 }

// among reports whether all that differs was pending.
func (d *difference) among(p *pending) bool {
	if p == nil || d.whole {
		return !d.any() || p != nil && p.any
	}
	return !slices.ContainsFunc(d.tables, func(n name) bool { return !p.touches(n) }) &&
		!slices.ContainsFunc(d.functions, func(f string) bool { return !p.calls(f) })
}

// followedBy returns the snapshot of a reading of everything.
func (s *snapshot) followedBy(read *reading) *snapshot {
	next := &snapshot{read: read, graph: newGraph(read), tables: layers[name, *sqlpostgres.Table]{base: read.tables()},
		rights: read.rights}
	for _, t := range next.tables.base {
		next.count(t, 1)
	}
	next.since.whole = !reflect.DeepEqual(next.tables.base, maps.Collect(s.tables.all())) ||
		!maps.EqualFunc(next.rights, s.rights, (*rights).equal) || !maps.Equal(read.functions, s.read.functions)
	return next.after(s)
}

// over returns the snapshot once some of it was read anew.
func (s *snapshot) over(part *reading, what *scope) *snapshot {
	touched := make(map[uint32]bool, len(what.relations))
	for _, oid := range what.relations {
		touched[oid] = true
	}
	read := part.over(s.read, touched, what)
	next := &snapshot{read: read, graph: s.graph.over(read, touched), tables: s.tables, exposed: s.exposed,
		rights: maps.Clone(s.rights),
		since:  difference{touched: touched}}
	next.rebuild(s)
	for role, r := range part.rights {
		if next.rights[role] = r; !what.allRights {
			next.rights[role] = r.over(s.rights[role], touched)
		}
	}
	next.since.whole = what.allRights && !maps.EqualFunc(next.rights, s.rights, (*rights).equal)
	next.since.tables = append(next.since.tables, next.regranted(s)...)
	if what.allFunctions {
		what.functions = slices.Concat(slices.Collect(maps.Keys(read.functions)),
			slices.Collect(maps.Keys(s.read.functions)))
	}
	next.since.functions = slices.DeleteFunc(slices.Clone(what.functions),
		func(f string) bool { return read.functions[f] == s.read.functions[f] })
	return next.after(s)
}

// rebuild makes the tables anew that were touched, and those that look different because of them.
func (s *snapshot) rebuild(old *snapshot) {
	rebuilt, tables := map[uint32]bool{}, old.tables.edit()
	for oid := range s.since.touched {
		if r := old.read.relations.get(oid); r != nil {
			tables.remove(r.name)
			maps.Copy(rebuilt, old.graph.affected(oid))
		}
		maps.Copy(rebuilt, s.graph.affected(oid))
	}
	for oid := range rebuilt {
		r := s.read.relations.get(oid)
		if r == nil {
			continue
		}
		t := s.graph.table(oid, r)
		if was := old.tables.get(r.name); was != nil && reflect.DeepEqual(was, t) {
			t = was
		}
		tables.set(r.name, t)
	}
	s.tables = tables.done()
	names := map[name]bool{}
	for oid := range rebuilt {
		for _, read := range []*reading{old.read, s.read} {
			if r := read.relations.get(oid); r != nil && s.tables.get(r.name) != old.tables.get(r.name) {
				names[r.name] = true
			}
		}
	}
	for n := range names {
		s.since.tables = append(s.since.tables, n)
		s.count(old.tables.get(n), -1)
		s.count(s.tables.get(n), 1)
	}
}

// count counts a table, which may be none, where it has columns of isotap's.
func (s *snapshot) count(t *sqlpostgres.Table, n int) {
	if t != nil && t.Exposed {
		s.exposed += n
	}
}

// regranted returns the tables touched that roles may do other things with.
func (s *snapshot) regranted(old *snapshot) (tables []name) {
	for oid := range s.since.touched {
		r := s.read.relations.get(oid)
		if r == nil {
			continue
		}
		for role, known := range s.rights {
			if known.of(oid) != old.rights[role].of(oid) {
				tables = append(tables, r.name)
			}
		}
	}
	return tables
}

// after numbers the snapshot behind another one.
func (s *snapshot) after(old *snapshot) *snapshot {
	if s.epoch = old.epoch; s.since.any() {
		s.epoch++
	}
	return s
}

// replace makes a snapshot the current one, in which all has been read that was pending. It needs c.mu.
func (c *Cache) replace(next *snapshot, p *pending) {
	old := c.current.Load()
	c.marks.Lock()
	if next != old {
		c.moved.compare(old, next, p)
	}
	c.current.Store(next)
	misled := c.pending.CompareAndSwap(p, nil) && p.misled(next)
	surprised := next.epoch != old.epoch && !next.since.among(p)
	if surprised && c.missed {
		c.touchAnything() // what that definition touched was not known
	}
	c.marks.Unlock()
	if misled {
		c.misled.Add(1)
	}
	if misled || surprised {
		c.tell()
	}
}

// A moving is a set of tables, by history.Row.Table, that were seen to be in another file than before.
type moving map[string]bool

// compare adds what is in another file, and what is gone that may have been.
func (m moving) compare(old, next *snapshot, p *pending) {
	touched := next.since.touched
	if touched == nil {
		touched = make(map[uint32]bool)
		for oid := range old.read.relations.all() {
			touched[oid] = true
		}
	}
	for oid := range touched {
		before, after := old.read.relations.get(oid), next.read.relations.get(oid)
		switch {
		case before == nil:
		case after != nil && after.filenode != before.filenode:
			m.note(old.tables.get(before.name))
			m.note(next.tables.get(after.name))
		case after == nil && p != nil && p.rewrites[oid]:
			m.note(old.tables.get(before.name))
		}
	}
}

// note adds a table, under the name that it has.
func (m moving) note(t *sqlpostgres.Table) {
	if t == nil {
		return
	}
	if t.Root != "" {
		m[t.Root] = true
	}
	m[t.Name] = true
}

// Rewritten returns the tables, by history.Row.Table, that were written anew as a whole between two readings:
// places in them are those of other versions since.
func (c *Cache) Rewritten() []string {
	c.marks.Lock()
	defer c.marks.Unlock()
	return slices.Sorted(maps.Keys(c.moved))
}

// Misled counts the readings that had a table otherwise than the statements told that had defined it.
func (c *Cache) Misled() uint64 { return c.misled.Load() }

// Close ends the connection that the cache may have; it can still be asked.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = true
	c.ahead.Stop()
	err := c.conn.Close()
	for _, conn := range c.beside.all() {
		err = errors.Join(err, conn.Close())
	}
	return err
}
