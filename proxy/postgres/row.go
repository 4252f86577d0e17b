package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// trimDescription passes a RowDescription on without its last fields, and without those that are cut.
func (s *Session) trimDescription(x *pendingReply, m message, hidden int, cut []int) error {
	r := reader{b: m.body}
	visible := r.uint16() - hidden
	if visible < 0 {
		return fmt.Errorf("%w: %d fields where isotap alone asked for %d", errUnexpected, visible+hidden, hidden)
	}
	for range visible {
		skipField(&r)
	}
	if r.err != nil {
		return fmt.Errorf("parse a description: %w", r.err)
	}
	if len(cut) > 0 {
		s.forwardWithout(x, m, visible, cut, skipField)
	} else {
		s.forwardCut(x, m, visible, r.pos)
	}
	return nil
}

// forwardCut passes on what a message says of its first columns, which ends at byte end of its body.
func (s *Session) forwardCut(x *pendingReply, m message, columns, end int) {
	if x.silent {
		return
	}
	b, start := beginMessage(s.toClient, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(columns))
	s.toClient = endMessage(append(b, m.body[2:end]...), start)
}

// trimRow takes the identities out of a row, and passes on the rest of it.
func (s *Session) trimRow(x *pendingReply, m message) error {
	c := &s.result
	r := reader{b: m.body}
	visible := r.uint16() - c.hidden
	if visible < 0 {
		return fmt.Errorf("%w: a row of %d values where isotap alone asked for %d", errUnexpected, visible+c.hidden,
			c.hidden)
	}
	for range visible {
		skipValue(&r)
	}
	end := r.pos
	if c.hidden > 0 {
		s.seen.row(&r, c.plan, c.format)
	}
	switch {
	case r.err != nil:
		return fmt.Errorf("parse a row: %w", r.err)
	case s.seen.absent:
		c.rows--
	case c.swallow:
	case len(c.cut) > 0:
		s.forwardWithout(x, m, visible, c.cut, skipValue)
	default:
		s.forwardCut(x, m, visible, end)
	}
	return nil
}

// findHiddenFields looks for such columns in the result of a statement that was sent as the client wrote it.
func (s *Session) findHiddenFields(c *resultInProgress, description []byte) {
	switch {
	case c.cursor != nil:
		s.compare(c, description)
		return
	case c.hidden > 0:
		return
	}
	if f := s.names.confirmed.executed(c.plan); f != nil {
		c.hidden = f.hidden(f.plan(0))
	} else {
		c.hidden = s.names.hiddenFields(c.plan, description)
	}
	if c.hidden > 0 {
		c.swallow = len(description) > 1 && c.hidden == int(binary.BigEndian.Uint16(description))
		c.plan = withoutSources(c.plan)
	}
}

// compare reports whether a description has the hidden columns of the cursor that is read. A function may have
// opened another one under its name.
func (s *Session) compare(c *resultInProgress, description []byte) {
	if c.hidden == 0 { // a column so named is the client's own
		return
	}
	if n := s.names.hiddenFields(c.plan, description); n != c.hidden {
		c.hidden, c.cursor, c.plan = n, nil,
			&sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Opaque,
				Reason: history.ReasonCursor, Shape: c.plan.Shape}}
	}
}

// A statement with parts that write goes upstream within a SELECT. Its reply is made what the statement's own would be.

// named returns an error about a form that names the SELECT as one that names the client's statement: "cannot execute
// SELECT in a read-only transaction".
func named(x *pendingReply, f *form, m message, e *serverError) message {
	if f == nil || e.code != sqlstateReadOnlyTransaction {
		return m
	}
	p := f.plan(x.at)
	if p == nil || f.hidden(p) == 0 || p.Result.Tag == "" {
		return m
	}
	verb, _, _ := strings.Cut(p.Result.Tag, " ")
	text := strings.Replace(e.message, "SELECT", verb, 1)
	return withText(m, e, text)
}
