package postgres

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// appendMapped adds an error or a notice to b whose position is that in the client's text.
func appendMapped(b []byte, m message, e *serverError, script *sqlpostgres.Script, utf8 bool) []byte {
	position := script.Position(e.position, utf8)
	b, start := beginMessage(b, m.kind)
	if position == 0 && e.from > 0 { // without the field, its mark and its end
		return endMessage(append(append(b, m.body[:e.from-1]...), m.body[e.to+1:]...), start)
	}
	b = append(b, m.body[:e.from]...)
	b = strconv.AppendInt(b, int64(position), 10)
	return endMessage(append(b, m.body[e.to:]...), start)
}

// forwardMapped sends an error or a notice to the client as it would read for the client's own text.
func (s *Session) forwardMapped(x *pendingReply, m message, e *serverError) {
	if f := x.formIn(s.names.confirmed); f != nil && e.position > 0 {
		if sent := f.upstream(); sent != nil {
			if m.kind == msgErrorResponse && sent.Repeats(e.position, s.settings.utf8()) {
				s.toClient = append(s.toClient, x.untold...)
			}
			s.toClient = appendMapped(s.toClient, m, e, sent, s.settings.utf8())
			return
		}
	}
	s.toClient = append(s.toClient, m.raw...)
}

// asBound returns the error about a Bind (in any language) as it would read for the client's own statement: with the
// name that the client gave it ("bind message supplies 0 parameters, but prepared statement \"s\" requires 1"), and
// without the hidden columns in its numbers ("bind message has 3 result formats but query has 2 columns").
func (s *Session) asBound(x *pendingReply, m message, e *serverError) message {
	text := e.message
	if x.portal.on != x.from {
		text = strings.Replace(text, x.portal.on, x.from, 1)
	}
	if e.routine == resultFormats {
		text = s.uncounted(x, text)
	}
	if text == e.message {
		return m
	}
	return withText(m, e, text)
}

// uncounted returns the text of an error about a Bind with the wrong number of format codes without the hidden columns.
func (s *Session) uncounted(x *pendingReply, text string) string {
	_, hidden := s.names.confirmed.resultOf(&x.portal.form)
	if f := s.names.confirmed.executed(x.portal.form.plan(0)); f != nil {
		hidden = f.hidden(f.plan(0))
	}
	codes, rest, ok := cutNumber(text)
	columns, end, ok2 := cutNumber(rest.after)
	if !ok || !ok2 {
		return text
	}
	codes, columns = codes-hidden-x.portal.wider, columns-hidden-len(x.portal.cutOf())
	return rest.before + strconv.Itoa(codes) + end.before + strconv.Itoa(columns) + end.after
}

// around is what stands before and behind a part of a text.
type around struct{ before, after string }

// cutNumber finds the first number in a text.
func cutNumber(text string) (n int, rest around, ok bool) {
	from := strings.IndexAny(text, "0123456789")
	if from < 0 {
		return 0, rest, false
	}
	to := from
	for to < len(text) && text[to] >= '0' && text[to] <= '9' {
		to++
	}
	n, err := strconv.Atoi(text[from:to])
	return n, around{text[:from], text[to:]}, err == nil
}

// notice takes a NoticeResponse. Those of isotap's own questions are not for the client, nor are those of what was
// added to its text. The server gives some as it reads a text, before it refuses it: when the text is sent again, the
// client has had these.
func (s *Session) notice(x *pendingReply, m message) {
	if x == nil {
		s.toClient = append(s.toClient, m.raw...)
		return
	}
	e, err := readError(m.body)
	switch {
	case x.answer != nil || x.own:
	case err != nil:
		s.toClient = append(s.toClient, m.raw...)
	case s.isOfAdded(x, m, &e):
	default:
		from := len(s.toClient)
		s.forwardMapped(x, m, &e)
		if hash := maphash.Bytes(noticeSeed, s.toClient[from:]); s.resending.repeats(hash) {
			s.toClient = s.toClient[:from]
		} else {
			s.retry.addNotice(hash)
		}
	}
}

// isOfAdded reports whether a notice is about a place in what was added to the client's text, or about a name there.
func (s *Session) isOfAdded(x *pendingReply, m message, e *serverError) bool {
	f := x.formIn(s.names.confirmed)
	if f == nil || f.upstream() == nil {
		return false
	}
	switch {
	case e.position > 0:
		added := f.upstream().Repeats(e.position, s.settings.utf8())
		if added && e.code != sqlstateNonstandardEscape && len(x.untold)+len(m.raw) <= maxKept {
			x.untold = appendMapped(x.untold, m, e, f.upstream(), s.settings.utf8())
		}
		return added
	case e.code != sqlstateNameTooLong || x.kind != pendingParse && x.kind != pendingQuery:
		return false
	case !x.toldNames:
		x.cutNames, x.toldNames = f.upstream().CutNames(s.settings.env.Backslashes), true
	}
	if len(x.cutNames) == 0 {
		return false // it is none of the text's
	}
	added := x.cutNames[0]
	x.cutNames = x.cutNames[1:]
	return added
}

// noticeSeed is for hashes of notices.
var noticeSeed = maphash.MakeSeed()

// failure takes an ErrorResponse.
func (s *Session) failure(x *pendingReply, m message) error {
	m = s.withoutTags(m)
	e, err := readError(m.body)
	switch {
	case err != nil:
		return err
	case x == nil || e.fatal:
		s.toClient = append(s.toClient, m.raw...) // the server's last words
		return nil
	case x.answer != nil && x.kind == pendingQuery:
		x.answer.failed = &e
		if m.more == 0 && s.txn.status != txnFailed {
			x.answer.words = slices.Clone(m.raw)
		}
		return nil
	}
	s.unshown, s.unended = nil, nil
	if x.halted != nil {
		m = haltedError(x.halted)
		s.txn.erred = true
		s.toClient = append(s.toClient, m.raw...)
		s.endOfFailure(x)
		return nil
	}
	if s.asksAmiss(x, &e) || s.refuse(x, &e) {
		return nil
	}
	s.pipeline.copyIn.ended()
	s.unasked(x)
	s.failed(x, &e)
	switch {
	case x.kind == pendingBind && e.code == sqlstateProtocolViolation && e.position == 0:
		m = s.asBound(x, m, &e)
	case x.kind == pendingQuery && x.form.instead != "":
		m, e = asExecuted(x.form, m, e)
	}
	s.forwardMapped(x, named(x, x.formIn(s.names.confirmed), m, &e), &e)
	s.endOfFailure(x)
	return nil
}

// endOfFailure takes what the server does after an error.
func (s *Session) endOfFailure(x *pendingReply) {
	switch x.kind {
	case pendingQuery, pendingCall, pendingSync: // ReadyForQuery follows
		s.result = resultInProgress{}
	default:
		s.skip()
	}
}
