package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A pending is what may look different from the current snapshot: it is read when it is asked for. It is never changed
// once it is stored.
type pending struct {
	any bool // whatever there is
	// tables are names of tables and views: without a table all of a schema, without a schema those in any.
	tables map[name]bool
	// plain are the names of these without a schema, which may also be functions'.
	plain map[string]bool
	// functions says that any function may be gone, or be in another schema.
	functions bool
	// rewrites are the tables whose rows may have been written anew as a whole.
	rewrites map[uint32]bool
	// relates says that there may be more than simple tables among them.
	relates bool
	// exposes says that there may be columns of isotap's where there were none.
	exposes bool
	// told are those of tables that are known by what was said of them.
	told map[name]*told
}

// touches reports whether a table or view is among them. A nil pending is none.
func (p *pending) touches(n name) bool {
	return p != nil && (p.any || p.tables[n] || p.tables[name{table: n.table}] || p.tables[name{schema: n.schema}])
}

// calls reports whether a function is among them.
func (p *pending) calls(function string) bool {
	return p != nil && (p.any || p.functions || p.plain[function])
}

// clone returns a copy to change, which begins with what p has.
func (p *pending) clone() *pending {
	if p == nil {
		return &pending{tables: map[name]bool{}, plain: map[string]bool{}, rewrites: map[uint32]bool{},
			told: map[name]*told{}}
	}
	next := *p
	next.tables, next.plain, next.rewrites = maps.Clone(p.tables), maps.Clone(p.plain), maps.Clone(p.rewrites)
	next.told = maps.Clone(p.told)
	return &next
}

func (p *pending) add(n name) {
	p.tables[n] = true
	p.untell(n)
	if n.table != "" {
		p.plain[n.table] = true
	}
}

// Touch takes note that definitions were changed: what they touched is read when it is asked for. Nil: perhaps anything
// was. It asks the server nothing, and waits for no reading.
func (c *Cache) Touch(changes []rewrite.SchemaChange) {
	if c.touch(changes) {
		c.tell()
		c.soon()
	}
}

const (
	// aheadAfter is how long nobody defines anything until what is pending is read ahead: for who sends one definition
	// behind the other, most would be read for nothing.
	aheadAfter = 2 * time.Millisecond
	// quiet is after how long a definition is the first of others. It is read at once: the server may have to make its
	// plans for that, which takes it longer than the rest, and the client may go on with the others meanwhile.
	quiet = 100 * time.Millisecond
	// maxPending is how many names may be pending until they are read at once: each definition copies them.
	maxPending = 200
)

// soon has what is pending read ahead.
func (c *Cache) soon() {
	c.marks.Lock()
	defer c.marks.Unlock()
	last := c.defined
	c.defined = time.Now()
	wait := aheadAfter
	switch p := c.pending.Load(); {
	case p.isTold() && len(p.tables) <= maxPending:
		wait = quiet // nobody would wait
	case c.defined.Sub(last) > quiet, p != nil && len(p.tables) > maxPending:
		wait = 0
	}
	c.ahead.Reset(wait)
}

// readAhead reads what is pending, so that no statement has to wait for it. What may be anything takes long to read: it
// is left to whoever asks, where that was done just before.
func (c *Cache) readAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending.Load(); p != nil && !c.waits && (!p.any || !c.isFresh()) {
		_ = c.settleThis(p) // whoever asks is told
	}
}

// touch reports whether there is anything to be read.
func (c *Cache) touch(changes []rewrite.SchemaChange) (touched bool) {
	c.marks.Lock()
	defer c.marks.Unlock()
	c.missed = c.looking
	if changes == nil {
		c.touchAnything()
		return true
	}
	p, s := c.pending.Load().clone(), c.current.Load()
	for i := range changes {
		ch := &changes[i]
		switch {
		case ch.Empties:
			for oid := range s.graph.emptied(s.relations(ch), ch.Cascades) {
				c.moved.note(s.tables.get(s.read.relations.get(oid).name))
			}
			c.noteMoved(p.named(ch))
		default:
			var before map[name]*told
			if ch.Rewrites {
				before = maps.Clone(p.told)
			}
			touched = p.take(s, ch) || touched
			c.noteMoved(p.untold(before))
		}
	}
	if touched {
		c.pending.Store(p) // another one than before, also if it has the same names: a reading may have begun
	}
	return touched
}

// touchAnything notes that anything may look different. It needs c.marks.
func (c *Cache) touchAnything() {
	p := c.pending.Load().clone()
	c.noteMoved(slices.Collect(maps.Values(p.told)))
	p.any, p.exposes = true, true
	clear(p.told)
	c.pending.Store(p)
}

// noteMoved notes tables that are told whose rows may have come into other files. It needs c.marks.
func (c *Cache) noteMoved(tables []*told) {
	for _, t := range tables {
		c.moved.note(t.table)
	}
}

// take adds what a change touches. It reports whether there is anything.
func (p *pending) take(s *snapshot, ch *rewrite.SchemaChange) (touched bool) {
	if ch.Tells != nil {
		if t := p.tell(s, ch.Tells); t != nil {
			defer func() { p.told[name{ch.Tells.Table.Schema, ch.Tells.Table.Table}] = t }()
		}
	}
	relations := s.relations(ch)
	p.relates = p.relates || ch.Relates
	p.functions = p.functions || ch.Cascades ||
		slices.ContainsFunc(ch.Made, func(t rewrite.TableName) bool { return t.Table == "" })
	if ch.Cascades {
		relations = append(relations, s.graph.uses(ch)...)
	}
	for _, oid := range relations {
		touched = true
		for other := range s.graph.affected(oid) {
			p.add(s.read.relations.get(other).name)
		}
		if ch.Rewrites {
			for _, member := range s.graph.family(oid) {
				p.rewrites[member] = true
			}
		}
	}
	for _, t := range ch.Made {
		touched = true
		p.add(name{t.Schema, t.Table})
	}
	for _, t := range ch.Named {
		n := name{t.Schema, t.Table}
		p.exposes = p.exposes || isotapsTypes[t.Table] != ""
		if s.read.functions[t.Table] != sqlpostgres.NoFunction || p.touches(n) || n.schema == "" && p.plain[n.table] {
			touched = true
			p.add(n)
		}
	}
	return touched
}

// relations returns the relations of the snapshot that a change names, and the tables of the indexes that it names.
func (s *snapshot) relations(ch *rewrite.SchemaChange) (oids []uint32) {
	for _, names := range [][]rewrite.TableName{ch.Made, ch.Named} {
		for _, t := range names {
			n := name{t.Schema, t.Table}
			oids = append(oids, s.named(n)...)
			if ch.Indexes {
				oids = append(oids, s.graph.indexed(n)...)
			}
		}
	}
	return oids
}

// named returns the relations that a name means as [pending] has it.
func (s *snapshot) named(n name) []uint32 {
	switch {
	case n.schema != "" && n.table != "":
		if t := s.tables.get(n); t != nil {
			return []uint32{t.OID}
		}
		return nil
	case n.table != "":
		return s.graph.plain.get(n.table)
	}
	var oids []uint32
	for oid, r := range s.read.relations.all() {
		if r.name.schema == n.schema {
			oids = append(oids, oid)
		}
	}
	return oids
}

const (
	// settleLimit bounds how long a statement waits for the tables to be read that it names.
	settleLimit = 5 * time.Second
	// settleAgain is how long a reading that failed is not tried again at most.
	settleAgain = time.Second
)

// A failing is how the last of some readings failed, if it did. It says when to try again: soon after one that failed
// at once, as where the connection was lost, so that little goes unobserved.
type failing struct {
	err  error
	next time.Time
}

// due reports whether a reading may be tried.
func (f *failing) due() bool { return f.err == nil || !time.Now().Before(f.next) }

// note takes in how a reading went that began at a time. Readings that fail take a fifth of the time at most.
func (f *failing) note(began time.Time, err error) {
	const soonest, share = 20 * time.Millisecond, 4
	now := time.Now()
	f.err, f.next = err, now.Add(min(settleAgain, max(soonest, share*now.Sub(began))))
}

// settle sees that what is pending has been read, if it is as the condition says. An error: it has not.
func (c *Cache) settle(matters func(*pending) bool) error {
	if !matters(c.pending.Load()) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending.Load()
	if !matters(p) { // somebody else has read it
		return nil
	}
	return c.settleThis(p)
}

// settleThis reads what is pending, unless that has just failed. It needs c.mu.
func (c *Cache) settleThis(p *pending) error {
	if !c.failing.due() {
		return c.failing.err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	read := c.readPending
	if p.any {
		read = func(ctx context.Context, _ *pending) error { return c.reload(ctx) }
	}
	c.failing.note(began, read(ctx, p))
	return c.failing.err
}

// readPending reads what is known to have been touched. It needs c.mu.
func (c *Cache) readPending(ctx context.Context, p *pending) error {
	old := c.current.Load()
	roles, _ := old.roles()
	var names touchedNames
	for n := range p.tables {
		names.known = append(names.known, old.named(n)...)
		switch {
		case n.table == "":
			names.whole = append(names.whole, n.schema)
		case n.schema == "":
			names.anywhere = append(names.anywhere, n.table)
		default:
			names.schemas, names.tables = append(names.schemas, n.schema), append(names.tables, n.table)
		}
	}
	what := scope{roles: roles, functions: slices.Collect(maps.Keys(p.plain)), allFunctions: p.functions}
	part, err := c.readNamed(ctx, names, &what, !p.relates && old.graph.maySimplify(names.known))
	if err != nil {
		return err
	}
	c.replace(old.over(part, &what), p)
	return nil
}

// readNamed reads what belongs to the relations of the names, which become those of the scope. Where these may be
// simple tables, and were when it last read, it asks for that alone. It needs c.mu.
func (c *Cache) readNamed(ctx context.Context, names touchedNames, s *scope, maybeSimple bool) (r *reading, err error) {
	if maybeSimple && !c.related && len(names.anywhere) == 0 {
		err = c.conn.transact(ctx, func(t *transaction) (err error) {
			var simple bool
			r, simple, err = t.readSimple(names, s)
			c.related = !simple
			return err
		})
		if err != nil || !c.related {
			return r, err
		}
	}
	err = c.conn.transact(ctx, func(t *transaction) (err error) {
		r, err = t.readScope(names, s)
		return err
	})
	if err == nil {
		c.related = !r.isSimple()
	}
	return r, err
}

// A touchedNames is what a reading by names begins with, as [noteTouched] has it.
type touchedNames struct {
	schemas, tables []string // in pairs
	anywhere, whole []string // names in any schema, schemas
	known           []uint32
}

// query finds the relations.
func (n touchedNames) query() query {
	q := query{purpose: "the changed relations", columns: 2, row: true,
		args: []string{array(n.schemas), array(n.tables), array(n.anywhere), numbers(n.known)}}
	further := ""
	if len(n.whole) > 0 {
		further, q.args = ofSchemas, append(q.args, array(n.whole))
	}
	q.text = strings.Replace(noteTouched, "%s", further, 1)
	return q
}

// readScope reads what belongs to the relations of the names, which become those of the scope. A statement waits for
// it, so that all is asked in one round trip.
func (t *transaction) readScope(names touchedNames, s *scope) (*reading, error) {
	relations := names.query()
	t.byIndexes()
	results, err := t.last(append([]query{relations}, s.queries()...)...)
	if err != nil {
		return nil, err
	}
	if s.relations, err = numbersOf(results[0][0][0]); err != nil {
		return nil, relations.unexpected("%v", err)
	}
	return readingOf(results[1:], s.roles), nil
}
