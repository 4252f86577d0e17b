package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// fieldBytes is how long a field of a RowDescription is behind its name.
const fieldBytes = 4 + 2 + 4 + 2 + 4 + 2

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

// hiddenFields says how many of the last fields of a description are hidden columns of a statement that the client
// prepared by the protocol and runs by EXECUTE, or FETCHes from. Nothing else shows the rows of another statement.
func (s *Session) hiddenFields(p *sqlpostgres.Plan, description []byte) int {
	switch {
	case p != nil && p.Session.Prepared == nil && p.Session.Cursor == nil && p.Reason != history.ReasonExecute:
		return 0
	case p != nil && p.Session.Prepared != nil &&
		s.names.bySQL[p.Session.Prepared.Name] != nil: // the client's own text
		return 0
	case len(s.names.confirmed.statements) == 0 && len(s.names.confirmed.portals) == 0:
		return 0
	}
	r := reader{b: description}
	n := 0
	for range r.uint16() {
		if n++; !rewrite.IsColumn(string(r.cString())) {
			n = 0
		}
		r.bytes(fieldBytes)
	}
	return n
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
	if f := s.executed(c.plan); f != nil {
		c.hidden = f.hidden(f.plan(0))
	} else {
		c.hidden = s.hiddenFields(c.plan, description)
	}
	if c.hidden > 0 {
		c.swallow = len(description) > 1 && c.hidden == int(binary.BigEndian.Uint16(description))
		c.plan = withoutSources(c.plan)
	}
}

// executed returns the form of the statement that an EXECUTE runs which the client prepared by the protocol; nil
// where the plan is none of that.
func (s *Session) executed(p *sqlpostgres.Plan) *form {
	if p == nil || p.Reason != history.ReasonExecute || len(p.Shape) < len("EXECUTE ") {
		return nil
	}
	name := p.Shape[len("EXECUTE "):]
	if quoted, _, ok := strings.Cut(strings.TrimPrefix(name, `"`), `"`); ok && name[0] == '"' {
		name = quoted
	} else {
		end := strings.IndexAny(name, " (;")
		if end >= 0 {
			name = name[:end]
		}
		name = strings.ToLower(name)
	}
	if st := s.names.confirmed.statements[name]; st != nil {
		return &st.form
	}
	return nil
}

// withoutSources returns the plan by which nothing is understood of a statement's rows.
func withoutSources(p *sqlpostgres.Plan) *sqlpostgres.Plan {
	if p == nil || len(p.Result.Sources) == 0 {
		return p
	}
	q := *p
	q.Result.Sources = nil
	return &q
}

// writes reports whether a source of a plan is the table that the statement writes: only writes know where they
// stand in the write-ahead log.
func writes(source *sqlpostgres.Source) bool {
	if source.Physical == nil {
		return false
	}
	for _, item := range source.Physical.Items {
		if item == sqlpostgres.ItemLSN {
			return true
		}
	}
	return false
}
