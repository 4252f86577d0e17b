package postgres

import (
	"sort"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite/shape"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A template makes the scripts of all texts that differ from one that was planned in the values of their plain
// literals only. Such a text needs to be cut into tokens again; the grammar need not read it. A template is
// immutable.
type template struct {
	model *Script // of the text that was planned
	plans []Plan  // without what depends on the text: Args
	args  []int   // how many of these each statement has
	// plain and edits are those of a draft.
	plain, edits []anchored
	observes     bool
}

// An anchored edit is one whose places are told from tokens.
type anchored struct {
	start, end anchor
	text       string
	from, to   anchor // of a copy
}

// An anchor is a place in a text: so many bytes behind the start of a token or, when it is not inside the
// token, behind its end.
type anchor struct {
	token  int
	inside bool
	bytes  int
}

// newTemplate makes a template of what was decided about a text, and of the script that it became.
func newTemplate(d *draft, model *Script) *template {
	t := &template{model: model, plans: make([]Plan, len(d.plans)), args: make([]int, len(d.plans)),
		observes: d.observes,
		plain:    anchoredAll(d.toks, d.plain), edits: anchoredAll(d.toks, d.edits)}
	for i, p := range d.plans {
		t.plans[i], t.args[i] = *p, len(p.Args)
		t.plans[i].Args, t.plans[i].Origin = nil, ""
	}
	return t
}

func anchoredAll(toks []pgtoken.Token, edits []edit) []anchored {
	out := make([]anchored, len(edits))
	for i, e := range edits {
		out[i] = anchored{anchorOf(toks, e.start), anchorOf(toks, e.end), e.text, anchorOf(toks, e.from),
			anchorOf(toks, e.to)}
	}
	return out
}

// placed appends the edits among the tokens of a text.
func placed(out []edit, toks []pgtoken.Token, edits []anchored) []edit {
	for i := range edits {
		e := &edits[i]
		out = append(out, edit{e.start.place(toks), e.end.place(toks), e.text, e.from.place(toks), e.to.place(toks)})
	}
	return out
}

// fill makes the script of a text with the template's skeleton, as far as it was read. The script shares no memory
// with the draft.
func (t *template) fill(d *draft) *Script {
	d.plans, d.observes = make([]*Plan, len(t.plans)), t.observes
	d.plain, d.edits = placed(d.plain, d.toks, t.plain), placed(d.edits, d.toks, t.edits)
	for i := range t.plans {
		p, st := t.plans[i], &d.statements[i]
		p.Args, p.Origin = st.args(t.args[i]), st.origin()
		d.plans[i] = &p
	}
	return d.script(t.model)
}

// anchorOf finds the last token that begins at or before a place in the text.
func anchorOf(toks []pgtoken.Token, pos int) anchor {
	i := sort.Search(len(toks), func(i int) bool { return toks[i].Start > pos }) - 1
	switch {
	case i < 0:
		return anchor{token: -1, bytes: pos}
	case pos < toks[i].End:
		return anchor{token: i, inside: true, bytes: pos - toks[i].Start}
	}
	return anchor{token: i, bytes: pos - toks[i].End}
}

// place is where the anchor is among these tokens.
func (a anchor) place(toks []pgtoken.Token) int {
	switch {
	case a.token < 0:
		return a.bytes
	case a.inside:
		return toks[a.token].Start + a.bytes
	}
	return toks[a.token].End + a.bytes
}

// skeleton returns the key of a text's skeleton, in the memory of room. Texts with the same skeleton have the same
// script but for Args and for the client's text in Pieces.
func skeleton(room []byte, text string, statements []statement) []byte {
	k := shape.NewSkeleton(room)
	for i := range statements {
		st := &statements[i]
		if !st.is(0, "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "DECLARE") {
			continue // what other statements mean depends on values: SET, PREPARE TRANSACTION
		}
		by := false
		for i, t := range st.toks {
			by = by || st.is(i, "BY") || st.is(i-1, "DISTINCT") && st.is(i, "ON")
			// The number in ORDER BY 2 is not a value but the name of a column.
			if by && (st.is(i-1, "BY") || st.mark(i-1, ",") || st.mark(i-1, "(")) {
				continue
			}
			if mark := st.literalMark(i); mark != shape.NoMark {
				k.Leave(text, t.Start, t.End, mark)
			}
		}
	}
	return k.Key(text)
}

// literalMark returns the mark of a plain literal; NoMark for every other token.
func (st *statement) literalMark(i int) shape.Mark {
	switch st.toks[i].Kind {
	case pgtoken.Number:
		return shape.MarkOfNumber(st.tok(i))
	case pgtoken.String:
		return shape.MarkOfString(st.tok(i))
	}
	return shape.NoMark
}

// holdsForAll reports whether what was decided holds for all texts with the skeleton: that the grammar gave up may
// come from a literal.
func (d *draft) holdsForAll() bool {
	for _, p := range d.plans {
		if p.Observation == history.Opaque && p.Reason == history.ReasonUnparsable || p.Session.Changes &&
			p.Kind == history.Select {
			return false
		}
	}
	return true
}
