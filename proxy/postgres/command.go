package postgres

import (
	"bytes"

	"github.com/isotap/isotap/history"
)

// longFromClient reports whether a message of the client may be long: it is passed on as it comes.
func longFromClient(kind byte) bool {
	switch kind {
	case msgQuery, msgParse, msgBind, msgFunctionCall, msgCopyData, msgCopyFail:
		return true
	}
	return false
}

// readyBytes takes one message of the client out of p, or what there is of it.
func (s *Session) readyBytes(p []byte) (int, error) {
	if s.misread {
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	}
	if s.client.passing > 0 {
		part := s.client.pass(p)
		s.toServer = append(s.toServer, part...)
		return len(part), nil
	}
	m, used, err := s.client.next(p, clientLimit, longFromClient)
	switch {
	case err != nil:
		// The server will say what is wrong with it, and end the connection.
		s.misread = true
		s.toServer = append(append(s.toServer, s.client.rest()...), p[used:]...)
		return len(p), nil
	case m.raw == nil:
		return used, nil
	case s.holds(m):
		m.raw = bytes.Clone(m.raw)
		m.body = m.raw[headBytes:]
		s.held = m
		return used, nil
	}
	return used, s.clientMessage(m)
}

// holds reports whether a message of the client has to wait, until replies to what was sent before it are there, or to
// what isotap itself asks first: the settings, a description, cursors that are declared anew.
func (s *Session) holds(m message) bool {
	return s.mustWait(m.kind) || s.mustDescribe(m) || s.mustRedeclare(m)
}

// mustWait reports whether a message of the client cannot be decided on before the server has answered what it
// was sent before. It may ask the server itself.
func (s *Session) mustWait(kind byte) bool {
	switch {
	case s.asking || s.resending.on:
		return true
	case s.pipeline.copyIn.active(), s.pipeline.skipping:
		return false
	case s.pipeline.full():
		return s.pipeline.due > 0
	case !s.retry.open && (kind == msgSync || kind == msgTerminate) && s.retry.mayResend():
		return !s.pipeline.idle() // it is to come behind what may be sent again
	case s.retry.open || !begins(kind):
		return false
	case !s.pipeline.idle():
		// One that is sent as rewritten for the first time may have to be sent again as it was.
		return s.settings.stale || s.retry.mayResend()
	}
	s.names.agree()
	return s.settings.stale && s.askSettings() || s.prepares()
}

// goOn takes the message that waited, when it need not wait any longer.
func (s *Session) goOn() error {
	if s.held.raw == nil || s.holds(s.held) {
		return nil
	}
	m := s.held
	s.held = message{}
	return s.clientMessage(m)
}

// beginSegment is called with each message that may begin what the server answers up to a ReadyForQuery.
func (s *Session) beginSegment() {
	if s.retry.open {
		return
	}
	idle := s.pipeline.idle()
	if idle {
		s.pipeline.copyIn = copyIn{}
	}
	s.retry.begin(idle && s.txn.status == txnIdle && !s.resending.running)
}

// clientMessage takes a message of the client: what the server takes no notice of goes by. What has to come before a
// message is sent first. Then it is kept, as it may have to be sent again, and sent in its own way.
func (s *Session) clientMessage(m message) error {
	s.client.passing = m.more
	if s.goesBy(m.kind) {
		s.toServer = append(s.toServer, m.raw...)
		return nil
	}
	s.sendBefore(m)
	s.retry.add(m)
	s.sendMessage(m)
	return nil
}

// goesBy reports whether the server takes no notice of a message: it skips what follows an error, and has use for data
// alone while it copies.
func (s *Session) goesBy(kind byte) bool {
	return s.pipeline.skipping && kind != msgSync && kind != msgTerminate ||
		s.pipeline.copyIn.active() && (kind == msgSync || kind == msgFlush)
}

// sendBefore sends what the server is to have done before a message: portals bound once more that another statement
// would come before, and an end to what isotap prepared for statements that are gone. What answers the message begins
// with its segment.
func (s *Session) sendBefore(m message) {
	if m.kind == msgQuery || m.kind == msgFunctionCall {
		s.runsAlone()
	}
	if m.kind == msgQuery || m.kind == msgParse {
		s.names.mayList(m.body)
	}
	if begins(m.kind) {
		s.beginSegment()
		s.closeOrphans()
	}
}

// sendMessage sends a message as it is planned, and notes the reply that it will have.
func (s *Session) sendMessage(m message) {
	switch m.kind {
	case msgQuery:
		s.query(m)
	case msgParse:
		s.parse(m)
	case msgBind:
		s.bind(m)
	case msgDescribe:
		s.describe(m)
	case msgExecute:
		s.execute(m)
	case msgClose:
		s.closeName(m)
	case msgFunctionCall:
		s.expect(pendingReply{kind: pendingCall})
		s.settings.stale = true // any function may change settings
		s.retry.open = false
		s.toServer = append(s.toServer, m.raw...)
	case msgSync:
		s.sync(m)
	case msgFlush:
		s.pipeline.flush()
		s.toServer = append(s.toServer, m.raw...)
	case msgCopyDone, msgCopyFail:
		s.pipeline.copyIn.sent++
		s.toServer = append(s.toServer, m.raw...)
	default: // CopyData, Terminate, and what only the server knows what to say of
		s.toServer = append(s.toServer, m.raw...)
	}
}

// sync takes the Sync that ends a segment.
func (s *Session) sync(m message) {
	s.pipeline.skipping = false
	s.retry.open = false
	s.expect(pendingReply{kind: pendingSync})
	s.toServer = append(s.toServer, m.raw...)
	if !s.speculative.block { // portals end with the implicit transaction
		s.names.rebindable = s.names.rebindable[:0]
	}
	s.speculative.segmentEnds(s.settings.level)
}

// query takes a text of statements. A long one is passed on as it comes.
func (s *Session) query(m message) {
	x := pendingReply{kind: pendingQuery, form: &form{}}
	s.retry.open = false
	defer s.speculative.segmentEnds(s.settings.level)
	switch end := len(m.body) - 1; {
	case m.more > 0:
		x.form.reason = history.ReasonSize
		s.anything()
	case end >= 0 && m.body[end] == 0:
		*x.form = s.executing(s.plan(m.body[:end], false), m.body[:end])
	}
	if x.halted = s.halted(x.form); x.halted != nil {
		x.form = &form{}
		s.expect(x)
		s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(noSuchPortal), 0)...)
		return
	}
	s.expect(x)
	if sent := x.form.upstream(); sent == nil {
		s.toServer = append(s.toServer, m.raw...)
	} else {
		b, start := beginMessage(s.toServer, msgQuery)
		s.toServer = endMessage(append(sent.Append(b), 0), start)
	}
	for at := 0; x.form.plan(at) != nil; at++ {
		s.follow(x.form.plan(at))
		if s.names.speculative.follow(x.form, x.form.plan(at), x.form.plan(at)) != nil {
			s.names.declares = true
		}
	}
}
