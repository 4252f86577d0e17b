// Package plancache keeps what a rewriter made of the texts that it was given last, by the text and the settings of the
// session that it was read under: the plans themselves, templates for texts that differ from them in their literals
// only, with the places of their pieces (anchor.go), and which shapes of statements read too many rows to collect their
// identities. The rewriters of both protocol families stand on it.
package plancache

import (
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Cache keeps the plans P of a rewriter R, and templates T, by texts and sessions S. It is safe for concurrent use.
// What is put in must not be changed afterwards.
//
// Every plan is made in an epoch, which [Cache.Invalidate] ends: one that is put in after the end of the epoch
// that it was looked up in is not kept, since it may rest on what has changed.
type Cache[R any, S comparable, P, T any] struct {
	rewriter   atomic.Pointer[R]
	maxEntries int
	maxBytes   int

	mu         sync.Mutex
	plans      map[key[S]]*list.Element // of *entry[S, P]
	recent     list.List                // of *entry[S, P], the last used first
	bytes      int
	templates  map[key[S]]T // by skeleton
	doorkeeper doorkeeper
	epoch      Epoch
	stats      Stats
	large      map[uint64]struct{} // hashes of shapes, which may be as long as texts
	subqueries map[uint64]struct{} // likewise
	misplanned map[uint64]struct{} // likewise
}

// An Epoch numbers the states of what plans rest on.
type Epoch uint64

type key[S comparable] struct {
	text    string
	session S
}

type entry[S comparable, P any] struct {
	key  key[S]
	plan P
	size int
}

// New returns a cache of the rewriter's plans that holds at most so many of them and about so many bytes. A plan
// larger than a sixteenth of the bytes is not kept.
func New[S comparable, P, T, R any](r *R, maxEntries, maxBytes int) *Cache[R, S, P, T] {
	c := &Cache[R, S, P, T]{
		maxEntries: maxEntries,
		maxBytes:   maxBytes,
		plans:      make(map[key[S]]*list.Element),
		templates:  make(map[key[S]]T),
		doorkeeper: doorkeeper{seed: maphash.MakeSeed()},
	}
	c.rewriter.Store(r)
	return c
}

// Rewriter returns what makes the plans that are not kept yet.
func (c *Cache[R, S, P, T]) Rewriter() *R { return c.rewriter.Load() }

// SetRewriter has another rewriter make the plans from now on.
func (c *Cache[R, S, P, T]) SetRewriter(r *R) {
	c.rewriter.Store(r)
	c.Invalidate() // after the change: what is being planned by the old rules is not kept
}

// Get finds the plan of a text, without an allocation, or returns the epoch for [Cache.Put].
func (c *Cache[R, S, P, T]) Get(text []byte, s S) (plan P, epoch Epoch, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Lookups++
	e, ok := c.plans[key[S]{string(text), s}] // the compiler spares the conversion
	if !ok {
		return plan, c.epoch, false
	}
	c.stats.Hits++
	c.recent.MoveToFront(e)
	return e.Value.(*entry[S, P]).plan, c.epoch, true
}

// Put keeps a plan of about size bytes that was made in the given epoch, and drops the least recently used
// ones for it.
func (c *Cache[R, S, P, T]) Put(text string, s S, plan P, size int, epoch Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(text, s, plan, size, epoch)
}

// PutRepeated is Put for a plan that a template has made, at little cost: it is kept when its text comes for the
// second time. Texts that hold their values come once, and would drive out those that come again.
func (c *Cache[R, S, P, T]) PutRepeated(text string, s S, plan P, size int, epoch Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doorkeeper.admits(text) {
		c.put(text, s, plan, size, epoch)
	}
}

func (c *Cache[R, S, P, T]) put(text string, s S, plan P, size int, epoch Epoch) {
	n := &entry[S, P]{key[S]{text, s}, plan, size + int(unsafe.Sizeof(entry[S, P]{}))}
	if _, there := c.plans[n.key]; there || epoch != c.epoch || n.size > c.maxBytes/16 {
		return
	}
	c.plans[n.key] = c.recent.PushFront(n)
	c.bytes += n.size
	for c.recent.Len() > c.maxEntries || c.bytes > c.maxBytes {
		last := c.recent.Remove(c.recent.Back()).(*entry[S, P])
		delete(c.plans, last.key)
		c.bytes -= last.size
	}
}

// A doorkeeper tells texts that came before from those that come for the first time, of the last few thousand.
// It is Einziger, Friedman and Manes' (TinyLFU, 2017), with a table of hashes in the place of a Bloom filter.
type doorkeeper struct {
	seed   maphash.Seed
	hashes [4096]uint64
}

// admits reports whether a text came before, and remembers it.
func (d *doorkeeper) admits(text string) bool {
	h := maphash.String(d.seed, text)
	slot := &d.hashes[h%uint64(len(d.hashes))]
	known := *slot == h
	*slot = h
	return known
}

// The templates that are kept: how many, and of skeletons of how many bytes at most.
const (
	maxTemplates = 4096
	maxSkeleton  = 4 << 10
)

// Template finds the template of a skeleton, without an allocation.
func (c *Cache[R, S, P, T]) Template(skeleton []byte, s S) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.templates[key[S]{string(skeleton), s}]
	if ok {
		c.stats.Templated++
	}
	return t, ok
}

// PutTemplate keeps a template that was made in the given epoch.
func (c *Cache[R, S, P, T]) PutTemplate(skeleton string, s S, t T, epoch Epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch || len(skeleton) > maxSkeleton {
		return
	}
	if len(c.templates) >= maxTemplates {
		clear(c.templates)
	}
	c.templates[key[S]{skeleton, s}] = t
}

// Invalidate forgets everything and begins another epoch: the schema has changed.
func (c *Cache[R, S, P, T]) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.bytes = 0
	clear(c.plans)
	clear(c.templates)
	clear(c.large)
	clear(c.subqueries)
	c.recent.Init()
}

func (c *Cache[R, S, P, T]) hash(shape string) uint64 {
	return maphash.String(c.doorkeeper.seed, shape)
}

// maxLarge is how many shapes the cache remembers as too large.
const maxLarge = 10_000

// TooLarge takes note that a statement of a shape reads too many rows to collect their identities in
// its reply. It holds until the schema changes.
func (c *Cache[R, S, P, T]) TooLarge(shape string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large == nil || len(c.large) >= maxLarge {
		c.large = make(map[uint64]struct{})
	}
	c.large[c.hash(shape)] = struct{}{}
}

// IsTooLarge reports whether TooLarge was told of the shape.
func (c *Cache[R, S, P, T]) IsTooLarge(shape string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, large := c.large[c.hash(shape)]
	return large
}

// SubqueriesTooLarge takes note that the subqueries of a statement of a shape read too many rows to show their
// identities in its reply. It holds until the schema changes.
func (c *Cache[R, S, P, T]) SubqueriesTooLarge(shape string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subqueries == nil || len(c.subqueries) >= maxLarge {
		c.subqueries = make(map[uint64]struct{})
	}
	c.subqueries[c.hash(shape)] = struct{}{}
}

// AreSubqueriesTooLarge reports whether SubqueriesTooLarge was told of the shape.
func (c *Cache[R, S, P, T]) AreSubqueriesTooLarge(shape string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, large := c.subqueries[c.hash(shape)]
	return large
}

// maxMisplanned is how many shapes the cache remembers as misplanned.
const maxMisplanned = 10_000

// Misplanned takes note that a statement of a shape, as it was rewritten, has shown columns of isotap's where
// none were expected. It holds as long as the cache does. It reports whether this is the first that is told of the
// shape.
func (c *Cache[R, S, P, T]) Misplanned(shape string) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.misplanned[c.hash(shape)]; known {
		return false
	}
	if c.misplanned == nil {
		c.misplanned = make(map[uint64]struct{})
	}
	if len(c.misplanned) >= maxMisplanned {
		clear(c.misplanned)
	}
	c.misplanned[c.hash(shape)] = struct{}{}
	return true
}

// IsMisplanned reports whether Misplanned was told of the shape.
func (c *Cache[R, S, P, T]) IsMisplanned(shape string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.misplanned) == 0 {
		return false
	}
	_, misplanned := c.misplanned[c.hash(shape)]
	return misplanned
}

// Stats are how many plans were asked for: of them Hits were there, and for Templated the template of another text was.
type Stats struct {
	Lookups, Hits, Templated uint64
}

// Misses returns how many plans the rewriter had to make.
func (s Stats) Misses() uint64 { return s.Lookups - s.Hits - s.Templated }

// Add returns the sums of two.
func (s Stats) Add(other Stats) Stats {
	return Stats{s.Lookups + other.Lookups, s.Hits + other.Hits, s.Templated + other.Templated}
}

// Stats returns what was asked for so far.
func (c *Cache[R, S, P, T]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Held returns how many plans and templates there are, and about how many bytes the plans take.
func (c *Cache[R, S, P, T]) Held() (plans, templates, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len(), len(c.templates), c.bytes
}
