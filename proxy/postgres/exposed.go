package postgres

import (
	"encoding/binary"
	"regexp"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// Where tables carry isotap's columns, what the rewriter cannot read (what a function returns, a table that the
// transaction itself has changed) may give the client all of a table's columns. Isotap's are taken out of such
// results by their names and types.

// exposes reports whether the rows of a text may have columns of isotap's that the client did not name.
func (s *Session) exposes(f *form) bool {
	return f != nil && !f.namesOurs && s.planner != nil && s.planner.Exposes()
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

// mustDescribe reports whether a Bind must wait for a description of its statement: it has a format code for each
// column, and its rows may have columns of isotap's between them.
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

// describePortalFirst has the server describe a portal that may show isotap's columns, or whose plan no description has
// borne out yet, and that the client has not asked about, before its rows come.
func (s *Session) describePortalFirst(name string, p *portal) {
	shown, _ := s.names.speculative.shownForm(&p.form, p.form.plan(0))
	exposes := p.of != nil && !p.of.asked && !p.of.shown && s.unfolded(&p.form)
	if unseen := s.txn.status != txnFailed && !p.describesRows() && !s.isCleared(shown); !p.sent &&
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

// describedCut returns the columns to be taken out of a description, and out of the rows of the statement that it is
// of.
func (s *Session) describedCut(x *pendingReply, description []byte, hidden int) []int {
	f := x.formIn(s.names.confirmed)
	if !s.exposes(f) || len(description) < 2 {
		return nil
	}
	cut := s.descriptions.exposed(description, hidden)
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

// The last line of defense: whatever a plan says, no column that isotap has named reaches the client. Where a
// description has one that the plan does not count among those to be hidden, the plan is wrong. The column is taken out
// of the description and out of the rows, and statements of that shape go as the client wrote them from then on, in all
// sessions.

// guards reports whether a result has been given columns by isotap: what a form reads under its plan.
func guards(f *form, plan *sqlpostgres.Plan, hidden int) bool {
	return hidden > 0 || f != nil && f.rewritten && plan != nil && plan.Result.Reply != rewrite.Unchanged
}

// clear notes that a script shows nothing but what its plan has.
func (s *Session) clear(f *form) {
	if f != nil && f.upstream() != nil {
		s.scripts.clear(f.upstream())
	}
}

// isCleared reports whether rows of the form can be told from isotap's columns by its plan: it gives none of these, or
// the session has seen a description of its result.
func (s *Session) isCleared(f *form) bool {
	if f == nil || !f.rewritten {
		return true
	}
	if plan := f.plan(0); plan == nil || plan.Result.Reply != rewrite.Trimmed {
		return true
	}
	return s.scripts.isCleared(f.upstream())
}

// laidOut returns the layout of the rows that a Describe is about, and keeps it for them.
func (s *Session) laidOut(x *pendingReply, f *form, plan *sqlpostgres.Plan, description []byte, hidden int) layout {
	shown, by := s.names.confirmed.shownForm(f, plan)
	l := s.defend(shown, by, description, hidden)
	if !l.known {
		return l
	}
	if st := s.names.confirmed.statements[x.name]; x.kind == pendingDescribeStatement && st != nil && x.form == nil {
		st.layout = l
	}
	if p := s.names.confirmed.portals[x.name]; x.kind == pendingDescribePortal && p != nil {
		p.layout = l
	}
	if c := s.names.confirmed.read(plan); c != nil {
		c.layout = l
	}
	return l
}
