package postgres

import "fmt"

// expect notes that the server owes a reply.
func (s *Session) expect(x pendingReply) {
	x.sent = s.now
	if !x.own && s.resending.shown > 0 {
		x.silent = true
		s.resending.shown--
	}
	s.pipeline.add(x)
}

// sendSync sends a Sync of isotap's own.
func (s *Session) sendSync() {
	s.expect(pendingReply{kind: pendingSync, own: true, silent: true})
	s.toServer = appendMessage(s.toServer, msgSync)
}

// replyEnds takes the reply to the oldest message as complete.
func (s *Session) replyEnds() {
	if x := s.pipeline.head(); !x.own && !x.silent {
		s.retry.shown++
	}
	s.pipeline.pop()
	s.result = resultInProgress{}
}

// skip leaves out the replies up to the next Sync, after an error.
func (s *Session) skip() {
	s.result = resultInProgress{}
	if s.pipeline.skip() {
		s.names.unsure = true
	}
}

// forward sends a reply on to the client, if it is to see it.
func (s *Session) forward(x *pendingReply, m message) {
	s.server.passing = m.more
	if x == nil || !x.silent {
		s.toClient = append(s.toClient, m.raw...)
	} else {
		s.dropping = m.more > 0
	}
}

func unexpected(m message, x *pendingReply) error {
	if x == nil {
		return fmt.Errorf("%w (%q) from the server: nothing was asked", errUnexpected, m.kind)
	}
	return fmt.Errorf("%w (%q) from the server, in the reply %d", errUnexpected, m.kind, x.kind)
}
