package postgres

import (
	"encoding/binary"
	"regexp"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// Where tables carry isotap's columns, what the rewriter cannot read (what a function returns, a table that the
// transaction itself has changed) may give the client all of a table's columns. Isotap's are taken out of such
// results by their names and types.

// exposes reports whether the rows of a text may have columns of isotap's that the client did not name.
func (s *Session) exposes(f *form) bool {
	return f != nil && !f.namesOurs && s.planner != nil && s.planner.Exposes()
}

// exposed returns the places of isotap's columns in a description of as many visible columns.
func exposed(description []byte, visible int) (places []int) {
	r := reader{b: description}
	r.uint16()
	for i := range visible {
		name := string(r.cString())
		field := r.bytes(fieldBytes)
		if r.err != nil {
			return nil
		}
		switch oid := binary.BigEndian.Uint32(field[6:]); {
		case name == rewrite.RowIDColumn && oid == oidUUID, name == rewrite.WListColumn && oid == oidBytea:
			places = append(places, i)
		}
	}
	return places
}

// forwardWithout passes on what a message says of its first columns but for some; skip passes over a column.
func (s *Session) forwardWithout(x *pendingReply, m message, columns int, cut []int, skip func(*reader)) {
	if x.silent {
		return
	}
	b, start := beginMessage(s.toClient, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(columns-len(cut)))
	r := reader{b: m.body, pos: 2}
	for i := range columns {
		from := r.pos
		if skip(&r); !slices.Contains(cut, i) {
			b = append(b, m.body[from:r.pos]...)
		}
	}
	s.toClient = endMessage(b, start)
}

// skipField passes over a field of a description, skipValue over a value of a row.
func skipField(r *reader) {
	r.cString()
	r.bytes(fieldBytes)
}

func skipValue(r *reader) {
	if n := int32(r.uint32()); n > 0 {
		r.bytes(int(n))
	}
}

// widened returns format codes for all columns of a result of which the client knows those that are not cut.
func widened(codes []byte, cut []int) []byte {
	if len(codes) <= 2 || len(cut) == 0 {
		return codes
	}
	codes = slices.Clone(codes)
	for _, at := range cut {
		if 2*at > len(codes) {
			break
		}
		codes = slices.Insert(codes, 2*at, 0, 0)
	}
	return codes
}

// mustDescribe reports whether a Bind must wait for a description of its statement: it has a format code for each column,
// and its rows may have columns of isotap's between them.
func (s *Session) mustDescribe(m message) bool {
	if m.kind != msgBind || m.more > 0 || s.pipeline.skipping || s.txn.status == txnFailed || s.planner == nil ||
		!s.planner.Exposes() {
		s.describing = false
		return false
	}
	b, err := readBind(m.body, false)
	st := s.names.speculative.statements[b.statement]
	switch {
	case err != nil, len(b.codes) <= 2, st == nil, st.shown, !s.unfolded(&st.form):
	case s.describing && !s.pipeline.idle():
		return true
	case !st.described:
		st.described, s.describing = true, true
		s.expect(pendingReply{kind: pendingDescribeStatement, own: true, silent: true, name: b.statement})
		s.toServer = appendMessage(appendNamed(s.toServer, msgDescribe, ofStatement, b.statement), msgFlush)
		s.pipeline.flush()
		return true
	}
	s.describing = false
	return false
}

// unfolded reports whether a form's rows may have columns of isotap's that the client does not see.
func (s *Session) unfolded(f *form) bool {
	plan := f.plan(0)
	if !s.exposes(f) || plan == nil || plan.Observation != history.Opaque && !plan.Schema.Open {
		return false
	}
	switch plan.Kind {
	case history.Select, history.Insert, history.Update, history.Delete:
		return true
	}
	return false
}

// describePortalFirst has the server describe a portal that may show isotap's columns, or whose plan no description has borne out
// yet, and that the client has not asked about, before its rows come.
func (s *Session) describePortalFirst(name string, p *portal) {
	exposes := p.of != nil && !p.of.asked && !p.of.shown && s.unfolded(&p.form)
	if unseen := s.txn.status != txnFailed && !p.describesRows() && !s.isCleared(s.speculativeForm(p)); !p.sent &&
		(exposes || unseen) {
		s.expect(pendingReply{kind: pendingDescribePortal, own: true, silent: true, name: name})
		s.toServer = appendNamed(s.toServer, msgDescribe, ofPortal, name)
	}
}

// tags is isotap_rowid and isotap_wlist as the server prints them among the values of a row, cut or not: the list
// begins with the upper bytes of a transaction's id.
var tags = regexp.MustCompile(`, [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}, \\x0000[0-9a-f]{28,}(?:\.\.\.)?`)

// withoutTags takes isotap's columns out of an error that prints a row ("Failing row contains (...)").
func (s *Session) withoutTags(m message) message {
	if s.planner == nil || !s.planner.Exposes() || !tags.Match(m.body) {
		return m
	}
	body := tags.ReplaceAll(m.body, nil)
	return message{kind: m.kind, body: body, raw: appendMessage(nil, m.kind, body...)}
}

// describes returns the statement whose rows a Describe is about; nil where none is known.
func (s *Session) describes(x *pendingReply) *statement {
	if x.kind == pendingDescribeStatement {
		return s.names.speculative.statements[x.name]
	}
	if p := s.names.speculative.portals[x.name]; p != nil {
		return p.of
	}
	return nil
}

// describedCut returns the columns to be taken out of a description, and out of the rows of the statement that it is
// of.
func (s *Session) describedCut(x *pendingReply, description []byte, hidden int) []int {
	f := s.formOf(x)
	if !s.exposes(f) || len(description) < 2 {
		return nil
	}
	cut := exposed(description, int(binary.BigEndian.Uint16(description))-hidden)
	st := s.names.confirmed.statements[x.name]
	if x.kind == pendingDescribePortal {
		if p := s.names.confirmed.portals[x.name]; p != nil {
			st = p.of
		}
	}
	if st != nil {
		st.cut, st.shown = cut, true
	}
	return cut
}

// cutOf are the columns that are taken out of the rows of a portal, as its statement was described.
func (p *portal) cutOf() []int {
	if p.of == nil {
		return nil
	}
	return p.of.cut
}
