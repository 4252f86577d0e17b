package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/isotap/isotap/proxy/session"
)

// A row that columns of isotap's are taken out of cannot go on as it comes: its length stands before it, and what is
// taken out stands at its end. A long one is held, once, in pieces, and these go to the client without being copied.
// What all sessions hold so is bounded ([session.RowMemory]). Where there is no room the session ends, with an error in
// words: the client has had nothing of the row.

// pieceBytes is how much of a long row stands in one piece.
const pieceBytes = 1 << 20

// rowPieces are pieces that may be used again: those of a row of 1 GiB would be garbage beside those of the next.
var rowPieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}

// errNoRoom is returned where a long row finds no room in session.RowMemory.
var errNoRoom = errors.New("no room for a long row")

// A heldRow is a long row of which not all has come.
type heldRow struct {
	memory *session.RowMemory
	of     *pendingReply
	left   int   // bytes of the message that are still to come
	values int   // of the row
	ends   int   // where the visible ones end
	cut    []int // visible ones that the client does not see either

	value  int    // which one comes; -1: the first has not begun
	length []byte // the beginning of its length
	rest   int    // bytes that are still to come of it

	pieces [][]byte // what the client sees, behind the number of values
	size   int      // of these
	tail   []byte   // the hidden values
	taken  int      // of memory
}

// take holds what p has of the row.
func (h *heldRow) take(p []byte) error {
	h.left -= len(p)
	for len(p) > 0 {
		if h.rest > 0 {
			n := min(h.rest, len(p))
			if err := h.keep(p[:n]); err != nil {
				return err
			}
			p, h.rest = p[n:], h.rest-n
			continue
		}
		n := min(lengthBytes-len(h.length), len(p))
		h.length, p = append(h.length, p[:n]...), p[n:]
		if len(h.length) < lengthBytes {
			return nil
		}
		if h.value++; h.value >= h.values {
			return fmt.Errorf("%w: a row with more than its %d values", errMalformed, h.values)
		}
		if err := h.keep(h.length); err != nil {
			return err
		}
		h.rest = max(int(int32(binary.BigEndian.Uint32(h.length))), 0)
		h.length = h.length[:0]
	}
	return nil
}

// lengthBytes is how long the length before a value is.
const lengthBytes = 4

// keep puts bytes of the value that comes where they belong.
func (h *heldRow) keep(b []byte) error {
	switch {
	case h.value >= h.ends:
		if grown := len(h.tail) + len(b); grown > cap(h.tail) {
			room := max(2*cap(h.tail), grown, longHead)
			if !h.reserve(room) { // beside what there is, which is garbage now
				return errNoRoom
			}
			h.tail = append(make([]byte, 0, room), h.tail...)
		}
		h.tail = append(h.tail, b...)
		return nil
	case slices.Contains(h.cut, h.value):
		return nil
	}
	h.size += len(b)
	for len(b) > 0 {
		last := len(h.pieces) - 1
		if last < 0 || len(h.pieces[last]) == pieceBytes {
			if !h.reserve(pieceBytes) {
				return errNoRoom
			}
			h.pieces = append(h.pieces, rowPieces.Get().(*[pieceBytes]byte)[:0])
			continue
		}
		n := min(len(b), pieceBytes-len(h.pieces[last]))
		h.pieces[last], b = append(h.pieces[last], b[:n]...), b[n:]
	}
	return nil
}

func (h *heldRow) reserve(n int) bool {
	if !h.memory.Take(n) {
		return false
	}
	h.taken += n
	return true
}

// whole reports whether all values have come, with the row's last byte.
func (h *heldRow) whole() bool { return h.value == h.values-1 && h.rest == 0 && len(h.length) == 0 }

// drop lets go of the row.
func (h *heldRow) drop() {
	for _, piece := range h.pieces {
		reusePiece(piece)
	}
	h.memory.Give(h.taken)
	*h = heldRow{}
}

func reusePiece(piece []byte) {
	if cap(piece) == pieceBytes {
		rowPieces.Put((*[pieceBytes]byte)(piece[:pieceBytes]))
	}
}

// holdRow begins to hold a long row, of which m is the beginning.
func (s *Session) holdRow(x *pendingReply, m message) error {
	c := &s.result
	r := reader{b: m.body}
	values := r.uint16()
	if values < c.hidden {
		return fmt.Errorf("%w: a row of %d values where isotap alone asked for %d", errUnexpected, values, c.hidden)
	}
	s.row = &heldRow{memory: s.cfg.RowMemory, of: x, left: m.more + len(m.body) - r.pos, values: values,
		ends: values - c.hidden, cut: c.cut, value: -1}
	return s.takeRow(m.body[r.pos:])
}

// takeRow takes bytes of the row that is held.
func (s *Session) takeRow(p []byte) error {
	h := s.row
	switch err := h.take(p); {
	case errors.Is(err, errNoRoom):
		s.refuseLong()
		return nil
	case err != nil:
		return err
	case h.left > 0:
		return nil
	case !h.whole():
		return fmt.Errorf("%w: a row that ends in value %d of %d", errMalformed, h.value+1, h.values)
	}
	return s.rowHeld(h)
}

// rowHeld takes the identities out of a long row that has come, and passes on the rest of it.
func (s *Session) rowHeld(h *heldRow) error {
	s.row = nil
	c := &s.result
	r := reader{b: h.tail}
	if c.hidden > 0 {
		s.seen.row(&r, c.plan, c.format)
	}
	switch {
	case r.err != nil:
		h.drop()
		return fmt.Errorf("parse a row: %w", r.err)
	case s.seen.absent:
		c.rows--
	case c.swallow, h.of.silent:
	default:
		head, start := beginMessage(s.toClient, msgDataRow)
		head = binary.BigEndian.AppendUint16(head, uint16(h.ends-len(h.cut)))
		binary.BigEndian.PutUint32(head[start+1:], uint32(lengthBytes+2+h.size))
		s.toClient = nil
		s.long.add(h, head)
	}
	h.drop()
	return nil
}

// A longOutput is what goes to the client before a session's other output.
type longOutput struct {
	memory *session.RowMemory
	parts  [][]byte
	lent   []byte // the last one that was handed out
}

// add takes a row's pieces over, behind what comes before them.
func (o *longOutput) add(h *heldRow, before []byte) {
	o.memory = h.memory
	o.parts = append(append(o.parts, before), h.pieces...)
	h.taken -= pieceBytes * len(h.pieces)
	h.pieces = nil
}

// next returns the next part; nil: there is none.
func (o *longOutput) next() []byte {
	reusePiece(o.lent)
	if o.lent = nil; len(o.parts) == 0 {
		return nil
	}
	part := o.parts[0]
	o.parts[0] = nil
	if o.parts = o.parts[1:]; cap(part) == pieceBytes {
		o.lent = part
		o.memory.Give(pieceBytes)
	}
	return part
}

// refuseLong ends the session: there is no room for what the server sends.
func (s *Session) refuseLong() {
	s.toClient = append(s.toClient, fatal(sqlstateOutOfMemory, "isotap has no room for a row or message this long",
		"What isotap holds of long rows is bounded for all clients together (max_row_memory).")...)
	s.close()
}

// reserveMessage counts what an incomplete message of the server takes that is no row: up to three times its buffer,
// as it grows and is copied. It reports whether there is room.
func (s *Session) reserveMessage() bool {
	want := 0
	if room := cap(s.server.buf); room > wholeMessage {
		want = 3 * room
	}
	return s.cfg.RowMemory.Resize(&s.reserved, want)
}

// dropLong lets go of what is held of long rows and messages that have not come whole.
func (s *Session) dropLong() {
	if s.row != nil {
		s.row.drop()
		s.row = nil
	}
	s.server.buf = nil
	s.reserveMessage()
}
