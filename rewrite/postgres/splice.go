package postgres

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A Splice is a place where the client's text was changed: at byte At, counted in the client's text, Cut
// bytes of it are left out and Added bytes stand there instead. These are isotap's, or, if it Copies, the client's own
// from byte From on.
type Splice struct {
	At, Cut, Added int
	Copies         bool
	From           int
}

// splice makes the pieces of the script's text with edits.
func (s *Script) splice(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	s.Pieces = pieces(s.text, 0, len(s.text), edits)
	s.Splices = make([]Splice, 0, len(edits))
	for _, e := range edits {
		sp := Splice{At: e.start, Cut: e.end - e.start, Added: len(e.text)}
		if e.from < e.to {
			sp.Added, sp.Copies, sp.From = e.to-e.from, true, e.from
		}
		s.Splices = append(s.Splices, sp)
	}
}

// An origin is what a byte of the text that went upstream comes from.
type origin struct {
	at    int     // in the client's text
	added *Splice // that put it there; nil: the client did
}

// Position returns the place in the client's text that a place in the text that went upstream stands for, 0 for none.
// Both count characters from 1, as the fields P of ErrorResponse and NoticeResponse do; multibyte says that
// client_encoding is UTF8, in any other a byte counts as a character. A place in a copy becomes the one that it was
// copied from, and one in what isotap added itself the one where that was added.
func (s *Script) Position(upstream int, multibyte bool) int {
	if s.Pieces == nil || upstream < 1 {
		return upstream
	}
	from := s.originOf(s.upstreamByte(upstream, multibyte))
	if from.added != nil && s.isTable(from.added) {
		return 0
	}
	return count(s.text[:from.at], multibyte) + 1
}

// isTable reports whether a splice puts columns in the place of TABLE: the server knows no place of these.
func (s *Script) isTable(p *Splice) bool {
	return strings.EqualFold(s.text[p.At:p.At+p.Cut], "TABLE")
}

// Repeats reports whether a place in the text that went upstream, counted as for Position, was added to the client's,
// and all that the client wrote is there besides: what the server says of that place it says of the client's, too, or
// the client is not to hear it.
func (s *Script) Repeats(upstream int, multibyte bool) bool {
	if s.Pieces == nil || upstream < 1 {
		return false
	}
	return s.isAdded(s.upstreamByte(upstream, multibyte))
}

// isAdded reports whether a byte of the text that went upstream was added to what the client wrote.
func (s *Script) isAdded(at int) bool {
	from := s.originOf(at)
	return from.added != nil && !slices.ContainsFunc(s.Splices, func(p Splice) bool {
		return p.Cut > 0 && from.added.Copies && p.At <= from.at && from.at < p.At+p.Cut
	})
}

// CutNames returns, for each name that the server cuts as it reads the text that went upstream, whether it was added to
// what the client wrote. The server tells of each in the order of the text, without a place. Backslashes says how it
// reads strings.
func (s *Script) CutNames(backslashes bool) (added []bool) {
	text := string(s.Append(nil))
	toks, _ := pgtoken.Scan(nil, text, backslashes)
	for _, t := range toks {
		name := text[t.Start:t.End]
		if len(name) > maxName && t.Kind == pgtoken.Name && name[0] == '"' {
			name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
		}
		if len(name) > maxName && (t.Kind == pgtoken.Name || t.Kind == pgtoken.Word) {
			added = append(added, s.isAdded(t.Start))
		}
	}
	return added
}

// upstreamByte returns the byte of the text that went upstream that a place in it is.
func (s *Script) upstreamByte(place int, multibyte bool) int {
	return offset(s.Append(nil), place-1, multibyte)
}

// originOf returns what byte at of the text that went upstream comes from.
func (s *Script) originOf(at int) origin {
	grown := 0 // by the splices before
	for i := range s.Splices {
		p := &s.Splices[i]
		from := p.At + grown
		switch {
		case at < from:
			return origin{at: at - grown}
		case at < from+p.Added && p.Copies:
			return origin{p.From + at - from, p}
		case at < from+p.Added:
			return origin{p.At, p}
		}
		grown += p.Added - p.Cut
	}
	return origin{at: min(at-grown, len(s.text))}
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
