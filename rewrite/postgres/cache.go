package postgres

import (
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite/plancache"
	"github.com/isotap/isotap/sqltoken/pgtoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// A Cache keeps the scripts of the texts that were planned last, by their text and their session's settings,
// and templates for texts that differ from them in their literals only. It is safe for concurrent use.
type Cache struct {
	*plancache.Cache[Rewriter, Session, *Script, *template]
	drafts sync.Pool // of *draft, whose memory is used again
	// read says that a client has had the server read cursors.
	read atomic.Bool
}

// NewCache returns a cache of the rewriter's scripts that holds at most so many of them and about so many
// bytes. A script larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	return &Cache{Cache: plancache.New[Session, *Script, *template](r, maxEntries, maxBytes)}
}

// SetStrictPlans changes Options.StrictPlans for texts that are planned from now on.
func (c *Cache) SetStrictPlans(on bool) {
	if r := c.Rewriter(); r.options.StrictPlans != on {
		o := r.options
		o.StrictPlans = on
		c.SetRewriter(New(r.schema, o))
	}
}

// Exposes reports whether any table may have columns of isotap's.
func (c *Cache) Exposes() bool { return c.Rewriter().exposes() }

// CursorsAreRead reports whether the server itself may read cursors of clients by their names: a function may, or a
// client has had it do so. ReadCursors notes the latter.
func (c *Cache) CursorsAreRead() bool {
	return c.read.Load() || c.Rewriter().schema.ReadsCursors()
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
		likes = skeleton(room[:0], text, d.statements, c.Rewriter().options.Predicates)
		if t, ok := c.Template(likes, s); ok {
			script := t.fill(d)
			c.reuse(d)
			c.PutRepeated(text, s, script, scriptSize(script), epoch)
			return script
		}
	}
	script := c.Rewriter().decide(d, s).script(nil)
	if len(likes) > 0 && d.holdsForAll() {
		if conditions, ok := c.Rewriter().templatesOf(d, s); ok {
			c.PutTemplate(string(likes), s, newTemplate(d, script, conditions), epoch)
		}
	}
	c.Put(text, s, script, scriptSize(script), epoch)
	return script
}

// templates reports whether scripts of texts like this are made from templates.
func (c *Cache) templates(d *draft) bool {
	if !d.unreadable.IsZero() || len(d.text) > maxTemplated {
		return false
	}
	return !c.Rewriter().options.Predicates || !slices.ContainsFunc(d.statements, func(st statement) bool {
		return st.tellsTime(0, len(st.toks)) // whether that is a condition's hangs on the literal
	})
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

// A template makes the scripts of all texts that differ from one that was planned in the values of their plain
// literals only. Such a text needs to be cut into tokens again; the grammar need not read it. A template is
// immutable.
type template struct {
	model *Script // of the text that was planned
	plans []Plan  // without what depends on the text: Args, Text
	args  []int   // how many of these each statement has
	// plain and edits are those of a draft.
	plain, edits []anchored
	observes     bool
	// conditions are those of each statement's predicates; nil without any.
	conditions [][]condition
}

// An anchored edit is one whose places are told from tokens.
type anchored struct {
	start, end plancache.Anchor
	text       string
	from, to   plancache.Anchor // of a copy
}

// newTemplate makes a template of what was decided about a text, of the script that it became, and of the conditions of
// its predicates.
func newTemplate(d *draft, model *Script, conditions [][]condition) *template {
	t := &template{model: model, plans: make([]Plan, len(d.plans)), args: make([]int, len(d.plans)),
		observes: d.observes, conditions: conditions,
		plain: anchoredAll(d.toks, d.plain), edits: anchoredAll(d.toks, d.edits)}
	for i, p := range d.plans {
		t.plans[i], t.args[i] = *p, len(p.Args)
		t.plans[i].Args, t.plans[i].Text, t.plans[i].Sender = nil, "", history.Sender{}
	}
	return t
}

func anchoredAll(toks []pgtoken.Token, edits []edit) []anchored {
	of := func(pos int) plancache.Anchor { return plancache.AnchorOf(toks, pos) }
	out := make([]anchored, len(edits))
	for i, e := range edits {
		out[i] = anchored{of(e.start), of(e.end), e.text, of(e.from), of(e.to)}
	}
	return out
}

// placed appends the edits among the tokens of a text.
func placed(out []edit, toks []pgtoken.Token, edits []anchored) []edit {
	place := func(a plancache.Anchor) int { return plancache.PlaceOf(toks, a) }
	for i := range edits {
		e := &edits[i]
		out = append(out, edit{place(e.start), place(e.end), e.text, place(e.from), place(e.to)})
	}
	return out
}

// fill makes the script of a text with the template's skeleton, as far as it was read. The script shares no memory
// with the draft.
func (t *template) fill(d *draft) *Script {
	d.plans, d.observes = make([]*Plan, len(t.plans)), t.observes
	d.plain, d.edits = placed(d.plain, d.toks, t.plain), placed(d.edits, d.toks, t.edits)
	var literals []string
	if t.conditions != nil {
		literals = d.plainLiterals()
	}
	for i := range t.plans {
		p, st := t.plans[i], &d.statements[i]
		p.Args, p.Text, p.Sender = st.args(t.args[i]), st.written(), st.sender()
		if t.conditions != nil {
			p.Predicates = filled(p.Predicates, t.conditions[i], literals)
		}
		d.plans[i] = &p
	}
	return d.script(t.model)
}

// skeleton returns the key of a text's skeleton, in the memory of room. Texts with the same skeleton have the same
// script but for Args, for the literals in Predicates, and for the client's text in Pieces. With predicates the number
// of rows that a query shows is a part of it.
func skeleton(room []byte, text string, statements []statement, predicates bool) []byte {
	k := shape.NewSkeleton(room)
	for t, mark := range leftOut(statements) {
		st, i := &statements[t.statement], t.token
		if predicates && st.is(i-1, "LIMIT", "OFFSET", "FIRST", "NEXT") {
			continue
		}
		k.Leave(text, st.toks[i].Start, st.toks[i].End, mark)
	}
	return k.Key(text)
}

// A literalPlace is where a plain literal stands: which token of which statement it is.
type literalPlace struct{ statement, token int }

// leftOut gives the plain literals of a text that may be other ones in another text with the same script.
func leftOut(statements []statement) iter.Seq2[literalPlace, shape.Mark] {
	return func(yield func(literalPlace, shape.Mark) bool) {
		for n := range statements {
			st := &statements[n]
			if !st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "DECLARE") {
				continue // what other statements mean depends on values: SET, PREPARE TRANSACTION
			}
			by := false
			for i := range st.toks {
				by = by || st.is(i, "BY") || st.is(i-1, "DISTINCT") && st.is(i, "ON")
				// The number in ORDER BY 2 is not a value but the name of a column.
				if by && (st.is(i-1, "BY") || st.mark(i-1, ",") || st.mark(i-1, "(")) {
					continue
				}
				// What asks for the time is known up to the server's precision only.
				if st.mark(i-1, "(") && st.is(i-2, "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME") {
					continue
				}
				if mark := st.literalMark(i); mark != shape.NoMark && !yield(literalPlace{n, i}, mark) {
					return
				}
			}
		}
	}
}

// literalMark returns the mark of a plain literal; NoMark for every other token.
func (st *statement) literalMark(i int) shape.Mark {
	switch st.toks[i].Kind {
	case pgtoken.Number:
		mark := shape.MarkOfNumber(st.tok(i))
		if mark == shape.IntegerMark {
			if _, err := strconv.ParseInt(st.tok(i), 10, 32); err != nil {
				return shape.LargeMark // the grammar has integers where it does not take others: float(24), timestamp(3)
			}
		}
		return mark
	case pgtoken.String:
		return shape.MarkOfString(st.tok(i))
	}
	return shape.NoMark
}

// holdsForAll reports whether what was decided holds for all texts with the skeleton: that the grammar gave up may
// come from a literal.
func (d *draft) holdsForAll() bool {
	for _, p := range d.plans {
		if p.ofLiterals || p.Observation == history.Opaque && p.Reason == history.ReasonUnparsable || p.Session.Changes &&
			p.Kind == history.Select {
			return false
		}
	}
	return true
}
