package postgres

import (
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// A transaction that ends by itself has no COMMIT that a question for its id could go before. Where the server's log is
// read, the question goes behind its statement, within the transaction: in the extended protocol, whose messages up to
// a Sync are one, before the client's Sync. A Query is one by itself:
//
//   - Its statement is sent by messages of the extended protocol, with which the server does as with a Query, and the
//     question before the Sync. So CALL and DO are alone in their text, where alone they may commit.
//   - COPY takes its data before anything else can be sent. With it the question is a second statement in the text.
//
// Either way the server ends the statement's result before the transaction. The client gets that end when it is
// committed, or the error that came instead, as of a Query that was not touched. A cancel request that meets the
// question has undone the statement: the client gets the error.

// A behind is how a question for the transaction's id goes behind a Query.
type behind uint8

const (
	notAsked behind = iota
	inText
	inMessages
)

// parameters is what in a Query stands for no parameter, and in a Parse for one.
var parameters = regexp.MustCompile(`\$[0-9]`)

// asksBehind returns how the question goes behind a text that is sent. It has to be one statement, outside of a block,
// that goes as the client wrote it, and nothing before it may be pending.
func (s *Session) asksBehind(m message, f *form) behind {
	if !s.cfg.Logged || f.upstream() != nil || len(f.statements()) != 1 || s.settings.stale || !s.settings.known ||
		!s.pipeline.idle() || s.txn.status != txnIdle || s.speculative.block || s.resending.running || !s.retry.keeping {
		return notAsked
	}
	p := f.plan(0)
	switch p.Kind {
	case history.Select, history.Insert, history.Update, history.Delete, history.Merge, history.Call:
	default:
		return notAsked
	}
	switch {
	case p.Observation != history.Opaque, p.Session.Cursor != nil, p.Session.Prepared != nil, p.Session.ReadsCursors:
		return notAsked
	case p.Reason == history.ReasonCopy:
		return inText
	case s.names.cursorsListed, s.planner.CursorsAreRead(): // they have the portal among them
		return notAsked
	case p.Reason != history.ReasonDoBlock && parameters.Match(m.body):
		return notAsked
	case p.Kind == history.Select && !strings.HasPrefix(p.Shape, "SELECT"): // it may do all of its work before it shows rows
		return notAsked
	}
	return inMessages
}

// asksAmiss takes an error of a text that has the question in it for one that another text may have: where what is
// wrong is its end, it is named otherwise. Nothing has run, and the text is sent again as the client wrote it.
func (s *Session) asksAmiss(x *pendingReply, e *serverError) bool {
	if !x.asks || e.code != syntaxError || !s.retry.mayResend() || s.retry.ran {
		return false
	}
	s.resending = resend{on: true, shown: s.retry.shown, notices: s.resending.notices}
	x.silent = true
	s.result = resultInProgress{}
	return true
}

// describesLate reports whether the client gets a description when the rows come: a Query that is no SELECT does all of
// its work first, and may fail.
func (s *Session) describesLate(x *pendingReply) bool {
	f := x.formIn(s.names.confirmed)
	return x.ofQuery && f != nil && f.plan(0) != nil && f.plan(0).Kind != history.Select
}

// holdDescription keeps back what was sent to the client from a byte on.
func (s *Session) holdDescription(from int) {
	s.unshown = slices.Clone(s.toClient[from:])
	s.toClient = s.toClient[:from]
}

// show gives the client what was kept back of a Query's result.
func (s *Session) show(kept *[]byte) {
	s.toClient = append(s.toClient, *kept...)
	*kept = nil
}

// noTypes is how many parameters' types a Parse declares that declares none.
var noTypes = []byte{0, 0}

// sendAsPortal sends the one statement of a Query by messages of the extended protocol. A Query takes the unnamed
// statement and portal away, too.
func (s *Session) sendAsPortal(text []byte, f *form) {
	st := &statement{text: slices.Clone(text), types: noTypes, form: *f}
	s.expect(pendingReply{kind: pendingParse, silent: true, ofQuery: true, statement: st})
	s.sendParse("", st, f)
	s.expect(pendingReply{kind: pendingBind, silent: true, ofQuery: true, statement: st,
		portal: &portal{form: *f, of: st, plan: f.plan(0)}})
	s.toServer = appendMessage(s.toServer, msgBind, make([]byte, 8)...)
	s.expect(pendingReply{kind: pendingDescribePortal, ofQuery: true})
	s.toServer = appendNamed(s.toServer, msgDescribe, ofPortal, "")
	s.expect(pendingReply{kind: pendingExecute, ofQuery: true})
	s.toServer = appendMessage(s.toServer, msgExecute, make([]byte, 5)...)
	s.askXIDWithin()
	s.closeOwn("")
	delete(s.names.speculative.statements, "")
	s.expect(pendingReply{kind: pendingSync})
	s.toServer = appendMessage(s.toServer, msgSync)
}

// askXIDWithin asks for the id of the transaction within a segment, in which something has run.
func (s *Session) askXIDWithin() {
	s.speculative.hides = false
	s.askWithin(s.askingXID(), s.takeXID)
}

// askWithin asks something of the transaction within a segment. Whatever goes wrong before has the server leave it out.
func (s *Session) askWithin(text string, take func(*answer)) {
	name, st := s.names.ownName(), &statement{text: []byte(text), types: noTypes}
	s.expect(pendingReply{kind: pendingParse, own: true, silent: true, name: name, statement: st})
	s.sendParse(name, st, &st.form)
	s.expect(pendingReply{kind: pendingBind, own: true, silent: true, name: name, from: name, statement: st,
		portal: &portal{of: st, on: name}})
	b, start := beginMessage(s.toServer, msgBind)
	b = append(append(append(b, name...), 0), name...)
	s.toServer = endMessage(append(b, make([]byte, 7)...), start)
	s.expect(pendingReply{kind: pendingExecute, own: true, silent: true, name: name, answer: &answer{take: take}})
	b, start = beginMessage(s.toServer, msgExecute)
	s.toServer = endMessage(append(append(b, name...), make([]byte, 5)...), start)
	s.closeOwn(name)
}

// unasked has a statement of isotap's own closed that a question which failed may have left.
func (s *Session) unasked(x *pendingReply) {
	if x.own && (x.answer != nil || x.kind == pendingBind && x.name == x.from) {
		s.names.orphans = append(s.names.orphans, x.name)
	}
}

// takeBehind takes a message of the reply to the question behind the statements of a Query.
func (s *Session) takeBehind(x *pendingReply, m message) error {
	switch m.kind {
	case msgRowDescription:
	case msgDataRow:
		r := reader{b: m.body}
		r.uint16()
		s.takeXID(&answer{values: [][]byte{r.value()}})
		return r.err
	case msgCommandComplete:
		x.at++
	default:
		return unexpected(m, x)
	}
	return nil
}
