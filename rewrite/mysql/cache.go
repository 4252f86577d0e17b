package mysql

import (
	"sync/atomic"
	"unsafe"

	"github.com/isotap/isotap/rewrite/plancache"
)

// A Cache keeps the plans of the statements that were planned last, by their text and their session's
// settings, and templates for statements that differ from them in their literals only. It is safe for
// concurrent use.
type Cache struct {
	*plancache.Cache[Session, *Plan, *template]
	rewriter atomic.Pointer[Rewriter]
}

// NewCache returns a cache of the rewriter's plans that holds at most so many plans and about so many
// bytes. A statement larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	c := &Cache{Cache: plancache.New[Session, *Plan, *template](maxEntries, maxBytes)}
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

// Plan returns the plan of a statement, and does not keep text. A statement that is found costs no
// allocation.
func (c *Cache) Plan(text []byte, s Session) *Plan {
	p, epoch, ok := c.Get(text, s)
	if !ok {
		p = c.make(string(text), s, epoch)
	}
	return p
}

// make makes and keeps the plan of a statement: from the template of its like, or by the rewriter, which then
// leaves a template for those that follow.
func (c *Cache) make(text string, s Session, epoch plancache.Epoch) *Plan {
	st := scan(text, s.ANSIQuotes, s.NoBackslashEscapes)
	var room [1 << 10]byte
	var likes []byte
	if st.repeats(&s) {
		likes = st.skeleton(room[:0])
		if t, ok := c.Template(likes, s); ok {
			p := t.fill(st, &s)
			c.PutRepeated(text, s, p, planSize(p)+len(text), epoch)
			return p
		}
	}
	pl := c.rewriter.Load().decide(st, &s)
	if len(likes) > 0 && pl.holdsForAll() {
		c.PutTemplate(string(likes), s, newTemplate(pl), epoch)
	}
	p := pl.finish()
	c.Put(text, s, p, planSize(p)+len(text), epoch)
	return p
}

// planSize estimates the memory of a plan. Pieces of the client's share memory with the key; counting
// them again makes up for what the maps take.
func planSize(p *Plan) int {
	n := int(unsafe.Sizeof(*p)) + len(p.Shape)
	if p.Companion != nil {
		n += planSize(p.Companion)
	}
	for _, a := range p.Args {
		n += len(a) + int(unsafe.Sizeof(a))
	}
	for i := range p.Upstream.Pieces {
		n += len(p.Upstream.Pieces[i].Text) + int(unsafe.Sizeof(p.Upstream.Pieces[i]))
	}
	return n + len(p.Upstream.Hidden)*int(unsafe.Sizeof(Hidden{})) + len(p.Result.Sources)*int(unsafe.Sizeof(Source{}))
}
