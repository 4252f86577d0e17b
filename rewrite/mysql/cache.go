package mysql

import (
	"container/list"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/isotap/isotap/rewrite"
)

// A Cache keeps the plans of the statements that were planned last, by their text and their session's
// settings, and templates for statements that differ from them in their literals only. It is safe for
// concurrent use.
type Cache struct {
	rewriter   atomic.Pointer[Rewriter]
	maxEntries int
	maxBytes   int

	mu        sync.Mutex
	plans     map[cacheKey]*list.Element // of *cached
	recent    list.List                  // of *cached, the last used first
	bytes     int
	templates map[cacheKey]*template // by skeleton
	epoch     uint64                 // of the schema: a plan made before Invalidate must not come in after it
	hits      uint64
	lookups   uint64
	large     map[string]struct{} // shapes of statements that read too many rows for arrays
}

type cacheKey struct {
	text    string
	session Session
}

type cached struct {
	key  cacheKey
	plan *rewrite.Plan
	size int
}

// NewCache gives a cache of the rewriter's plans that holds at most so many plans and about so many
// bytes. A statement larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	c := &Cache{maxEntries: maxEntries, maxBytes: maxBytes,
		plans: make(map[cacheKey]*list.Element), templates: make(map[cacheKey]*template)}
	c.rewriter.Store(r)
	return c
}

// SetStrictPlans changes Options.StrictPlans for statements that are planned from now on.
func (c *Cache) SetStrictPlans(on bool) {
	r := c.rewriter.Load()
	o := r.options
	if o.StrictPlans == on {
		return
	}
	o.StrictPlans = on
	c.rewriter.Store(New(r.schema, o))
	c.Invalidate() // after the change: what is being planned by the old rules is not kept
}

// Plan gives the plan of a statement, and does not keep text. A statement that is found costs no
// allocation.
func (c *Cache) Plan(text []byte, s Session) *rewrite.Plan {
	c.mu.Lock()
	c.lookups++
	if e, ok := c.plans[cacheKey{string(text), s}]; ok { // the compiler spares the conversion
		c.hits++
		c.recent.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cached).plan
	}
	epoch := c.epoch
	c.mu.Unlock()

	key := cacheKey{string(text), s}
	p := c.make(key.text, s, epoch)
	c.add(&cached{key: key, plan: p, size: planSize(p) + len(text)}, epoch)
	return p
}

// make makes the plan of a statement: from the template of its like, or by the rewriter, which then
// leaves a template for those that follow.
func (c *Cache) make(text string, s Session, epoch uint64) *rewrite.Plan {
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	if !st.repeats(&s) {
		return c.rewriter.Load().decide(st, &s).finish()
	}
	key := cacheKey{string(st.skeleton(nil)), s}
	c.mu.Lock()
	t := c.templates[key]
	c.mu.Unlock()
	if t != nil {
		return t.fill(st, &s)
	}
	pl := c.rewriter.Load().decide(st, &s)
	if pl.holdsForAll() {
		c.addTemplate(key, newTemplate(pl), epoch)
	}
	return pl.finish()
}

// The templates that are kept: how many, and of skeletons of how many bytes at most.
const (
	maxTemplates = 4096
	maxSkeleton  = 4 << 10
)

// addTemplate keeps a template that was made in the given epoch.
func (c *Cache) addTemplate(key cacheKey, t *template, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch || len(key.text) > maxSkeleton {
		return
	}
	if len(c.templates) >= maxTemplates {
		clear(c.templates)
	}
	c.templates[key] = t
}

// add keeps a plan that was made in the given epoch, and drops the least recently used ones for it.
func (c *Cache) add(n *cached, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.plans[n.key]; there || epoch != c.epoch || n.size > c.maxBytes/16 {
		return
	}
	c.plans[n.key] = c.recent.PushFront(n)
	c.bytes += n.size
	for c.recent.Len() > c.maxEntries || c.bytes > c.maxBytes {
		last := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.plans, last.key)
		c.bytes -= last.size
	}
}

// Invalidate forgets all plans: the schema has changed. A plan that is being made meanwhile is not
// kept.
func (c *Cache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.bytes = 0
	clear(c.plans)
	clear(c.templates)
	clear(c.large)
	c.recent.Init()
}

// maxLarge is how many statements the cache remembers as too large.
const maxLarge = 10_000

// TooLarge takes note that a statement of the plan's shape reads too many rows to collect their
// identities in its reply. It holds until the schema changes.
func (c *Cache) TooLarge(p *rewrite.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large == nil || len(c.large) >= maxLarge {
		c.large = make(map[string]struct{})
	}
	c.large[p.Shape] = struct{}{}
}

// IsTooLarge says whether TooLarge was told of a plan of the same shape.
func (c *Cache) IsTooLarge(p *rewrite.Plan) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, large := c.large[p.Shape]
	return large
}

// Stats gives how many plans were asked for so far and how many of them were found.
func (c *Cache) Stats() (lookups, hits uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookups, c.hits
}

// planSize estimates the memory of a plan. Pieces of the client's share memory with the key; counting
// them again makes up for what the maps take.
func planSize(p *rewrite.Plan) int {
	n := int(unsafe.Sizeof(*p)+unsafe.Sizeof(cached{})) + len(p.Shape)
	if p.Companion != nil {
		n += planSize(p.Companion)
	}
	for _, a := range p.Args {
		n += len(a) + int(unsafe.Sizeof(a))
	}
	for i := range p.Pieces {
		n += len(p.Pieces[i].Text) + int(unsafe.Sizeof(p.Pieces[i]))
	}
	return n + len(p.Hidden)*int(unsafe.Sizeof(rewrite.Hidden{})) + len(p.Sources)*int(unsafe.Sizeof(rewrite.Source{}))
}
