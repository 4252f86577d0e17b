package postgres

import (
	"container/list"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/isotap/isotap/rewrite"
)

// A Cache keeps the scripts of the texts that were planned last, by their text and their session's settings,
// and templates for texts that differ from them in their literals only. It is safe for concurrent use.
type Cache struct {
	rewriter   atomic.Pointer[Rewriter]
	maxEntries int
	maxBytes   int

	mu      sync.Mutex
	scripts map[cacheKey]*list.Element // of *cached
	recent  list.List                  // of *cached, the last used first
	bytes   int
	epoch   uint64 // of the schema: a script made before Invalidate must not come in after it
	hits    uint64
	lookups uint64
	// templates are by skeleton.
	templates map[cacheKey]*template
	large     map[string]struct{} // shapes of statements that read too many rows for arrays
}

type cacheKey struct {
	text    string
	session Session
}

type cached struct {
	key    cacheKey
	script *Script
	size   int
}

// NewCache gives a cache of the rewriter's scripts that holds at most so many of them and about so many
// bytes. A script larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	c := &Cache{maxEntries: maxEntries, maxBytes: maxBytes,
		scripts: make(map[cacheKey]*list.Element), templates: make(map[cacheKey]*template)}
	c.rewriter.Store(r)
	return c
}

// SetStrictPlans changes Options.StrictPlans for texts that are planned from now on.
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

// Plan gives the script of a text, and does not keep text. One that is found costs no allocation.
func (c *Cache) Plan(text []byte, s Session) *Script {
	c.mu.Lock()
	c.lookups++
	if e, ok := c.scripts[cacheKey{string(text), s}]; ok { // the compiler spares the conversion
		c.hits++
		c.recent.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cached).script
	}
	epoch := c.epoch
	c.mu.Unlock()

	key := cacheKey{string(text), s}
	script := c.make(key.text, s, epoch)
	c.add(&cached{key: key, script: script, size: scriptSize(script)}, epoch)
	return script
}

// make makes the script of a text: from the template of its like, or by the rewriter, which then leaves a
// template for those that follow.
func (c *Cache) make(text string, s Session, epoch uint64) *Script {
	d := read(text, &s)
	if d.unreadable != "" || strings.ContainsAny(text, "\x01\x02\x03") || len(text) > maxTemplated {
		return c.rewriter.Load().decide(d, s).script()
	}
	key := cacheKey{string(skeleton(nil, text, d.statements)), s}
	c.mu.Lock()
	t := c.templates[key]
	c.mu.Unlock()
	if t != nil {
		return t.fill(text, d.toks)
	}
	c.rewriter.Load().decide(d, s)
	if d.holdsForAll() {
		c.addTemplate(key, newTemplate(d), epoch)
	}
	return d.script()
}

// The templates that are kept: how many, of skeletons of how many bytes and texts of how many at most.
const (
	maxTemplates = 4096
	maxSkeleton  = 4 << 10
	maxTemplated = 64 << 10
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

// add keeps a script that was made in the given epoch, and drops the least recently used ones for it.
func (c *Cache) add(n *cached, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.scripts[n.key]; there || epoch != c.epoch || n.size > c.maxBytes/16 {
		return
	}
	c.scripts[n.key] = c.recent.PushFront(n)
	c.bytes += n.size
	for c.recent.Len() > c.maxEntries || c.bytes > c.maxBytes {
		last := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.scripts, last.key)
		c.bytes -= last.size
	}
}

// Invalidate forgets all scripts: the schema has changed. One that is being made meanwhile is not kept.
func (c *Cache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.bytes = 0
	clear(c.scripts)
	clear(c.templates)
	clear(c.large)
	c.recent.Init()
}

// maxLarge is how many statements the cache remembers as too large.
const maxLarge = 10_000

// TooLarge takes note that a statement of the plan's shape reads too many rows to collect their identities
// in its reply. It holds until the schema changes.
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

// Stats gives how many scripts were asked for so far and how many of them were found.
func (c *Cache) Stats() (lookups, hits uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookups, c.hits
}

// scriptSize estimates the memory of a script with its key.
func scriptSize(s *Script) int {
	n := int(unsafe.Sizeof(*s)+unsafe.Sizeof(cached{})) + 2*len(s.text)
	for _, p := range s.Statements {
		n += int(unsafe.Sizeof(*p)) + len(p.Shape)
		for _, a := range p.Args {
			n += len(a) + int(unsafe.Sizeof(a))
		}
		for i := range p.Sources {
			n += int(unsafe.Sizeof(p.Sources[i]) + unsafe.Sizeof(rewrite.Physical{}))
		}
	}
	for i := range s.Pieces {
		n += len(s.Pieces[i].Text) + int(unsafe.Sizeof(s.Pieces[i]))
	}
	return n
}
