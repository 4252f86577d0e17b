package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/isotap/isotap/rewrite"
)

// fieldBytes is how long a field of a RowDescription is behind its name.
const fieldBytes = 4 + 2 + 4 + 2 + 4 + 2

// trimDescription passes a RowDescription on without its last fields.
func (s *Session) trimDescription(x *owed, m message, hidden int) error {
	r := reader{b: m.body}
	visible := r.uint16() - hidden
	if visible < 0 {
		return fmt.Errorf("%w: %d fields where isotap alone asked for %d", errUnexpected, visible+hidden, hidden)
	}
	for range visible {
		r.cString()
		r.bytes(fieldBytes)
	}
	if r.err != nil {
		return fmt.Errorf("parse a description: %w", r.err)
	}
	s.forwardCut(x, m, visible, r.pos)
	return nil
}

// forwardCut passes on what a message says of its first columns, which ends at byte end of its body.
func (s *Session) forwardCut(x *owed, m message, columns, end int) {
	if x.silent {
		return
	}
	b, start := beginMessage(s.toClient, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(columns))
	s.toClient = endMessage(append(b, m.body[2:end]...), start)
}

// trimRow takes the identities out of a row, and passes on the rest of it.
func (s *Session) trimRow(x *owed, m message) error {
	c := &s.current
	r := reader{b: m.body}
	visible := r.uint16() - c.hidden
	if visible < 0 {
		return fmt.Errorf("%w: a row of %d values where isotap alone asked for %d", errUnexpected, visible+c.hidden, c.hidden)
	}
	for range visible {
		if n := int32(r.uint32()); n > 0 {
			r.bytes(int(n))
		}
	}
	end := r.pos
	s.seen.row(&r, c.plan, c.format)
	if r.err != nil {
		return fmt.Errorf("parse a row: %w", r.err)
	}
	if !c.swallow {
		s.forwardCut(x, m, visible, end)
	}
	return nil
}

// writes says whether a source of a plan is the table that the statement writes: only writes know where they
// stand in the write-ahead log.
func writes(source *rewrite.Source) bool {
	if source.Physical == nil {
		return false
	}
	for _, item := range source.Physical.Items {
		if item == rewrite.ItemLSN {
			return true
		}
	}
	return false
}
