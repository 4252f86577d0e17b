package mysql

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// insertAt puts pieces into the text.
func (pl *planner) insertAt(pos int, pieces ...Piece) {
	pl.edits = append(pl.edits, edit{start: pos, end: pos, pieces: pieces})
}

func text(s string) Piece { return Piece{Text: s} }

var tagPiece = Piece{Hole: TagHole}

// after returns the place right behind token i, and the gap that pieces put there need at their end: a blank where the
// next byte would run into them, otherwise nothing.
func (pl *planner) after(i int) (pos int, gap string) {
	pos = pl.st.Tokens[i].End
	if pos < len(pl.st.SQL) && mysqltoken.IsWord(pl.st.SQL[pos]) {
		gap = " "
	}
	return pos, gap
}

// assemble turns the edits into the plan's pieces, or makes the plan opaque when the result would be
// more than the server takes.
func (pl *planner) assemble() {
	if len(pl.edits) == 0 {
		return
	}
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	p, src := pl.plan, pl.st.SQL
	if pl.assemblePlain(); !slices.ContainsFunc(pl.edits, func(e edit) bool { return !e.plain }) {
		return
	}
	pos, size := 0, len(src)
	for _, e := range pl.edits {
		if pos < e.start {
			p.Upstream.Pieces = append(p.Upstream.Pieces, text(src[pos:e.start]))
		}
		p.Upstream.Deprecated -= strings.Count(src[e.start:e.end], ":=")
		for _, piece := range e.pieces {
			p.Upstream.Deprecated += strings.Count(piece.Text, ":=")
			p.Upstream.Pieces = append(p.Upstream.Pieces, piece)
			size += len(piece.Text)
			if piece.Hole != NoHole {
				size += holeSize
			}
		}
		pos = e.end
	}
	if pos < len(src) {
		p.Upstream.Pieces = append(p.Upstream.Pieces, text(src[pos:]))
	}
	pl.hide()
	switch {
	case p.Params+len(p.Upstream.Hidden) > maxParams:
		opaque(p, history.ReasonParameters)
	case size >= pl.session.maxPacket() && !p.Upstream.Substitutes:
		opaque(p, history.ReasonMaxPacket)
	}
}

// assemblePlain makes the plan's plain form of the edits that belong to it.
func (pl *planner) assemblePlain() {
	var b strings.Builder
	pos := 0
	for _, e := range pl.edits {
		if !e.plain {
			continue
		}
		b.WriteString(pl.st.SQL[pos:e.start])
		for _, piece := range e.pieces {
			b.WriteString(piece.Text)
		}
		pos = e.end
	}
	if b.Len() > 0 && b.Len()+len(pl.st.SQL)-pos < pl.session.maxPacket() {
		b.WriteString(pl.st.SQL[pos:])
		pl.plan.Upstream.Plain = b.String()
	}
}

// hide numbers the parameters that the holes become in a prepared statement.
func (pl *planner) hide() {
	if pl.plan.Upstream.Substitutes {
		return
	}
	tok, before, hidden := 0, 0, 0
	for _, e := range pl.edits {
		for ; tok < len(pl.st.Tokens) && pl.st.Tokens[tok].Start < e.start; tok++ {
			if pl.st.Tokens[tok].Kind == mysqltoken.Placeholder {
				before++
			}
		}
		for _, piece := range e.pieces {
			if piece.Hole == TagHole || piece.Hole == RowIDHole || piece.Hole == CopyHole {
				pl.plan.Upstream.Hidden = append(pl.plan.Upstream.Hidden,
					Hidden{Index: before + hidden, Hole: piece.Hole, Ordinal: piece.Ordinal})
				hidden++
			}
		}
	}
}
