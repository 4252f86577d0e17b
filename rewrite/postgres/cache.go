package postgres

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/isotap/isotap/rewrite/plancache"
)

// A Cache keeps the scripts of the texts that were planned last, by their text and their session's settings,
// and templates for texts that differ from them in their literals only. It is safe for concurrent use.
type Cache struct {
	*plancache.Cache[Session, *Script, *template]
	rewriter atomic.Pointer[Rewriter]
	drafts   sync.Pool // of *draft, whose memory is used again
	// read says that a client has had the server read cursors.
	read atomic.Bool
}

// NewCache returns a cache of the rewriter's scripts that holds at most so many of them and about so many
// bytes. A script larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	c := &Cache{Cache: plancache.New[Session, *Script, *template](maxEntries, maxBytes)}
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

// Exposes reports whether any table may have columns of isotap's.
func (c *Cache) Exposes() bool { return c.rewriter.Load().exposes() }

// CursorsAreRead reports whether the server itself may read cursors of clients by their names: a function may, or a
// client has had it do so. ReadCursors notes the latter.
func (c *Cache) CursorsAreRead() bool {
	return c.read.Load() || c.rewriter.Load().schema.ReadsCursors()
}

// ReadCursors notes that a client had the server read a cursor by its name: see [Cache.CursorsAreRead].
func (c *Cache) ReadCursors() { c.read.Store(true) }

// Plan returns the script of a text, and does not keep text. One that is found costs no allocation.
func (c *Cache) Plan(text []byte, s Session) *Script {
	script, epoch, ok := c.Get(text, s)
	if !ok {
		script = c.make(string(text), s, epoch)
	}
	return script
}

// maxTemplated is the length of the longest text that templates are made of, in bytes.
const maxTemplated = 64 << 10

// make makes and keeps the script of a text: from the template of its like, or by the rewriter, which then leaves
// a template for those that follow.
func (c *Cache) make(text string, s Session, epoch plancache.Epoch) *Script {
	d, ok := c.drafts.Get().(*draft)
	if !ok {
		d = new(draft)
	}
	d.read(text, &s)
	var room [1 << 10]byte
	var likes []byte
	if c.templates(d) {
		likes = skeleton(room[:0], text, d.statements)
		if t, ok := c.Template(likes, s); ok {
			script := t.fill(d)
			c.reuse(d)
			c.PutRepeated(text, s, script, scriptSize(script), epoch)
			return script
		}
	}
	script := c.rewriter.Load().decide(d, s).script(nil)
	if len(likes) > 0 && d.holdsForAll() {
		c.PutTemplate(string(likes), s, newTemplate(d, script), epoch)
	}
	c.Put(text, s, script, scriptSize(script), epoch)
	return script
}

// templates reports whether scripts of texts like this are made from templates.
func (c *Cache) templates(d *draft) bool {
	if c.rewriter.Load().options.Predicates { // which hold literals
		return false
	}
	return d.unreadable.IsZero() && len(d.text) <= maxTemplated
}

// maxReused bounds the tokens that a draft keeps memory for.
const maxReused = 1 << 10

// reuse keeps the memory of a draft that nothing refers to any more.
func (c *Cache) reuse(d *draft) {
	if cap(d.toks) <= maxReused {
		clear(d.statements)
		clear(d.edits)
		clear(d.plain)
		d.text, d.plans = "", nil
		c.drafts.Put(d)
	}
}

// scriptSize estimates the memory of a script with its key.
func scriptSize(s *Script) int {
	n := int(unsafe.Sizeof(*s)) + 2*len(s.text)
	for _, p := range s.Statements {
		n += int(unsafe.Sizeof(*p)) + len(p.Shape)
		for _, a := range p.Args {
			n += len(a) + int(unsafe.Sizeof(a))
		}
		for i := range p.Result.Sources {
			n += int(unsafe.Sizeof(p.Result.Sources[i]) + unsafe.Sizeof(Physical{}))
		}
	}
	for i := range s.Pieces {
		n += len(s.Pieces[i]) + int(unsafe.Sizeof(s.Pieces[i]))
	}
	return n
}
