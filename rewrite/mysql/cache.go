package mysql

import (
	"unsafe"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite/plancache"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
	"github.com/isotap/isotap/sqltoken/shape"
)

// A Cache keeps the plans of the statements that were planned last, by their text and their session's
// settings, and templates for statements that differ from them in their literals only. It is safe for
// concurrent use.
type Cache struct {
	*plancache.Cache[Rewriter, Session, *Plan, *template]
}

// NewCache returns a cache of the rewriter's plans that holds at most so many plans and about so many
// bytes. A statement larger than a sixteenth of the bytes is not kept.
func NewCache(r *Rewriter, maxEntries, maxBytes int) *Cache {
	return &Cache{Cache: plancache.New[Session, *Plan, *template](r, maxEntries, maxBytes)}
}

// SetStrictPlans changes Options.StrictPlans for statements that are planned from now on.
func (c *Cache) SetStrictPlans(on bool) {
	if r := c.Rewriter(); r.options.StrictPlans != on {
		o := r.options
		o.StrictPlans = on
		c.SetRewriter(New(r.schema, o))
	}
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
	pl := c.Rewriter().decide(st, &s)
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

// A template makes the plans of all statements that differ from one that was planned in the values of
// their plain literals only. What such a statement needs is to be cut into tokens again; the parser
// need not read it. A template is immutable.
type template struct {
	plan  Plan // without what depends on the text: Args, Text, Pieces, Hidden
	args  int  // how many of these there are
	edits []anchored
	// chosen is the planner's: tokens have the same places in all statements.
	chosen []choice
	// constant and numbered are likewise the planner's.
	constant []constant
	numbered string
	// companion makes the plans' companions; nil when they have none.
	companion *template
}

// An anchored edit is one whose places are told from tokens.
type anchored struct {
	start, end plancache.Anchor
	pieces     []Piece
	plain      bool
}

// newTemplate makes a template of what a planner decided, before it assembles the plan.
func newTemplate(pl *planner) *template {
	t := &template{plan: *pl.plan, args: len(pl.plan.Args), edits: make([]anchored, len(pl.edits)), chosen: pl.chosen,
		constant: pl.constant, numbered: pl.numbered}
	t.plan.Args, t.plan.Text, t.plan.Sender = nil, "", history.Sender{}
	for i, e := range pl.edits {
		t.edits[i] = anchored{pl.st.anchor(e.start), pl.st.anchor(e.end), e.pieces, e.plain}
	}
	if pl.companion != nil {
		t.companion = newTemplate(pl.companion)
	}
	return t
}

// fill makes the plan of a statement with the template's skeleton.
func (t *template) fill(st *statement, s *Session) *Plan {
	pl := t.planner(st, s)
	pl.plan.Args, pl.plan.Text = st.args(t.args), st.written()
	pl.plan.Sender = st.sender()
	return pl.finish()
}

// planner returns what decided about the template's statement for this one.
func (t *template) planner(st *statement, s *Session) *planner {
	p := t.plan
	pl := &planner{session: s, st: st, plan: &p, edits: make([]edit, len(t.edits)), chosen: t.chosen,
		constant: t.constant, numbered: t.numbered}
	for i, e := range t.edits {
		pl.edits[i] = edit{st.place(e.start), st.place(e.end), e.pieces, e.plain}
	}
	if t.companion != nil {
		pl.companion = t.companion.planner(st, s)
	}
	return pl
}

func (st *statement) anchor(pos int) plancache.Anchor { return plancache.AnchorOf(st.Tokens, pos) }

func (st *statement) place(a plancache.Anchor) int { return plancache.PlaceOf(st.Tokens, a) }

// skeleton returns the key of the statement's skeleton, in the memory of room. Statements with the same
// skeleton have the same plan but for Args and for the client's text in Pieces.
func (st *statement) skeleton(room []byte) []byte {
	k, by := shape.NewSkeleton(room), false
	for i, t := range st.Tokens {
		by = by || st.is(i, "BY")
		// The number in ORDER BY 2 is not a value but the name of a column.
		if by && (st.is(i-1, "BY") || st.mark(i-1, ",")) {
			continue
		}
		if mark := st.literalMark(i); mark != shape.NoMark {
			k.Leave(st.SQL, t.Start, t.End, mark)
		}
	}
	return k.Key(st.SQL)
}

func (st *statement) literalMark(i int) shape.Mark {
	switch st.Tokens[i].Kind {
	case mysqltoken.Number:
		return shape.MarkOfNumber(st.tok(i))
	case mysqltoken.String:
		return shape.MarkOfString(st.tok(i))
	}
	return shape.NoMark
}

// repeats reports whether statements like this one are planned from templates.
func (st *statement) repeats(s *Session) bool {
	return st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH") && st.refusal(s).IsZero()
}

// holdsForAll reports whether what the planner decided holds for all statements with the skeleton. That
// the parser gave up may come from a literal; ROW_COUNT() and its kind are rare.
func (pl *planner) holdsForAll() bool {
	p := pl.plan
	return !p.Upstream.Counts && !pl.literal &&
		(p.Observation != history.Opaque || p.Reason != history.ReasonUnparsable)
}
