package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// added returns what the edit puts into a text. A copy shares no memory with the place that it was taken from.
func (e *edit) added(text string) string {
	if e.from < e.to {
		return strings.Clone(text[e.from:e.to])
	}
	return e.text
}

// insertAfter puts text right behind token i, with a blank behind it where it would run into what follows.
func (pl *planner) insertAfter(i int, s string) {
	at := pl.st.toks[i].End
	if at < len(pl.st.text) {
		switch c := pl.st.text[at]; {
		case pgtoken.IsSpace(c), c == ';', c == ')', c == ',':
		default:
			s += " "
		}
	}
	pl.edits = append(pl.edits, edit{start: at, end: at, text: s})
}

// pieces returns text[from:to] with its edits.
func pieces(text string, from, to int, edits []edit) []string {
	out := make([]string, 0, 2*len(edits)+1)
	for _, e := range edits {
		if from < e.start {
			out = append(out, text[from:e.start])
		}
		if added := e.added(text); added != "" {
			out = append(out, added)
		}
		from = e.end
	}
	if from < to {
		out = append(out, text[from:to])
	}
	return out
}

// spliced returns text[from:to] with its edits, as one text.
func spliced(text string, from, to int, edits []edit) string {
	return strings.Join(pieces(text, from, to, edits), "")
}

// sorted returns the planner's edits in the order of their places.
func (pl *planner) sorted() []edit {
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	return pl.edits
}

// script makes the edits of all statements the pieces of a script, after a model or none.
func (d *draft) script(model *Script) *Script {
	s := &Script{Statements: d.plans, text: d.text, model: model}
	if d.observes {
		s.splice(d.edits)
	}
	if len(d.plain) > 0 {
		s.Plain = &Script{Statements: d.plans, text: d.text}
		if model != nil {
			s.Plain.model = model.Plain
		}
		s.Plain.splice(d.plain)
	}
	return s
}

// splice makes the pieces of the script's text with edits.
func (s *Script) splice(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	s.Pieces = pieces(s.text, 0, len(s.text), edits)
	s.Splices = make([]Splice, 0, len(edits))
	for _, e := range edits {
		s.Splices = append(s.Splices, Splice{At: e.start, Cut: e.end - e.start, Added: max(len(e.text), e.to-e.from)})
	}
}
