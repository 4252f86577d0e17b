package postgres

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A serverError is what an ErrorResponse says, as far as a session follows it.
type serverError struct {
	fatal    bool
	code     string
	message  string
	routine  string // of the server's source, in any language
	position int    // in the text that went upstream, in characters from 1; 0: none
	// places of the position's digits in the body
	from, to int
}

// readError reads the fields of an ErrorResponse or NoticeResponse.
func readError(body []byte) (serverError, error) {
	var e serverError
	r := reader{b: body}
	for {
		field := r.uint8()
		if field == 0 || r.err != nil {
			break
		}
		from := r.pos
		value := r.cString()
		switch field {
		case fieldSeverity:
			e.fatal = string(value) == "FATAL" || string(value) == "PANIC"
		case fieldCode:
			e.code = string(value)
		case fieldMessage:
			e.message = string(value)
		case fieldRoutine:
			e.routine = string(value)
		case fieldPosition:
			e.position, _ = strconv.Atoi(string(value))
			e.from, e.to = from, from+len(value)
		}
	}
	if r.err != nil {
		return e, fmt.Errorf("parse an error: %w", r.err)
	}
	return e, nil
}

// appendMapped adds an error or a notice to b whose position is that in the client's text.
func appendMapped(b []byte, m message, e *serverError, script *sqlpostgres.Script, utf8 bool) []byte {
	position := script.Position(e.position, utf8)
	b, start := beginMessage(b, m.kind)
	b = append(b, m.body[:e.from]...)
	b = strconv.AppendInt(b, int64(position), 10)
	return endMessage(append(b, m.body[e.to:]...), start)
}

func (s *Session) utf8() bool {
	return s.settings.env.Encoding == "" || s.settings.env.Encoding == "UTF8"
}

// forwardMapped sends an error or a notice to the client as it would read for the client's own text.
func (s *Session) forwardMapped(x *pendingReply, m message, e *serverError) {
	if f := s.formOf(x); f != nil && e.position > 0 {
		if sent := f.upstream(); sent != nil {
			s.toClient = appendMapped(s.toClient, m, e, sent, s.utf8())
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

// withText returns an error or a notice with another text.
func withText(m message, e *serverError, text string) message {
	body := bytes.Replace(m.body, appendField(nil, fieldMessage, e.message), appendField(nil, fieldMessage, text), 1)
	return message{kind: m.kind, body: body, raw: appendMessage(nil, m.kind, body...)}
}

// appendField adds a field of an error or a notice to b.
func appendField(b []byte, field byte, value string) []byte {
	return append(append(append(b, field), value...), 0)
}

// resultFormats is the routine of the server that refuses a Bind with the wrong number of format codes.
const resultFormats = "PortalSetResultFormat"

// uncounted returns the text of an error about a Bind with the wrong number of format codes without the hidden columns.
func (s *Session) uncounted(x *pendingReply, text string) string {
	_, hidden := s.names.confirmed.resultOf(&x.portal.form)
	if f := s.executed(x.portal.form.plan(0)); f != nil {
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

// notice takes a NoticeResponse. Those of isotap's own questions are not for the client. The server gives some as it
// reads a text, before it refuses it: when the text is sent again, the client has had these.
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
	default:
		from := len(s.toClient)
		s.forwardMapped(x, m, &e)
		switch told := maphash.Bytes(noticeSeed, s.toClient[from:]); {
		case len(s.noticesShown) > 0 && s.noticesShown[0] == told:
			s.toClient, s.noticesShown = s.toClient[:from], s.noticesShown[1:]
		case len(s.retry.notices) == maxNotices:
			s.retry.keeping = false
		case s.retry.trial():
			s.retry.notices = append(s.retry.notices, told)
		}
	}
}

// maxNotices is how many notices of a segment are remembered: with more it is not sent again.
const maxNotices = 10_000

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
	case x.answer != nil:
		x.answer.failed = &e
		return nil
	}
	if x.halted != nil {
		m = haltedError(x.halted)
		s.txn.erred = true
		s.toClient = append(s.toClient, m.raw...)
		s.endOfFailure(x)
		return nil
	}
	if s.refuse(x, &e) {
		return nil
	}
	s.pipeline.copyIn.ended()
	s.failed(x, &e)
	switch {
	case x.kind == pendingBind && e.code == sqlstateProtocolViolation && e.position == 0:
		m = s.asBound(x, m, &e)
	case x.kind == pendingQuery && x.form.instead != "":
		m, e = asExecuted(x.form, m, e)
	}
	s.forwardMapped(x, s.named(x, m, &e), &e)
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
