package postgres

import (
	"slices"
	"strings"
	"unicode/utf8"

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

// Position returns the place in the client's text that a place in the text that went upstream stands for. Both
// count characters from 1, as the fields P of ErrorResponse and NoticeResponse do; multibyte says that
// client_encoding is UTF8, in any other a byte counts as a character. A place in what was added becomes the
// one where it was added.
func (s *Script) Position(upstream int, multibyte bool) int {
	if s.Pieces == nil || upstream < 1 {
		return upstream
	}
	at := offset(s.Append(nil), upstream-1, multibyte)
	return count(s.text[:s.origin(at)], multibyte) + 1
}

// origin returns the byte of the client's text that byte at of the text that went upstream comes from.
func (s *Script) origin(at int) int {
	grown := 0 // by the splices before
	for _, p := range s.Splices {
		from := p.At + grown
		switch {
		case at < from:
			return at - grown
		case at < from+p.Added:
			return p.At
		}
		grown += p.Added - p.Cut
	}
	return min(at-grown, len(s.text))
}

// offset returns the byte at which character n, counted from 0, begins. Behind the end there is one for each.
func offset(text []byte, n int, multibyte bool) int {
	if !multibyte {
		return n
	}
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at + n
}

func count(text string, multibyte bool) int {
	if multibyte {
		return utf8.RuneCountInString(text)
	}
	return len(text)
}
