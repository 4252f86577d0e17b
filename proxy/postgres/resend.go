package postgres

import (
	"github.com/isotap/isotap/proxy/session"
)

// refuse takes an error as the answer to what isotap made of a text, if it may be that: the text is not
// rewritten again. It reports whether the segment is sent again as the client wrote it, unseen by the client.
func (s *Session) refuse(x *pendingReply, e *serverError) bool {
	f := x.formIn(s.names.confirmed)
	if f == nil || f.upstream() == nil || !doubtful(e.code) && !(e.routine == resultFormats && !s.isCleared(f)) {
		return false
	}
	sent := f.upstream().Model()
	if !f.rewritten && !outdated(e.code) {
		return false
	}
	late := outlived(x, s.names.confirmed, e.code)
	if s.scripts.isProven(sent) && !late {
		return false
	}
	if f.rewritten {
		s.scripts.refuse(sent, e.code)
	}
	if late && !s.retry.tried {
		s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.settings.database}})
	}
	if !s.retry.keeping || !s.retry.tried && !(late && s.pipeline.oneSegment()) || s.retry.ran ||
		s.txn.status != txnIdle {
		return false
	}
	s.resending = resend{on: true, shown: s.retry.shown, notices: s.resending.notices}
	if plain := f.script.Plain.Model(); plain != nil && outdated(e.code) {
		s.scripts.refuse(plain, e.code)
		s.resending.plain = plain
	}
	if x.kind == pendingQuery {
		x.silent = true
		s.result = resultInProgress{}
		return true
	}
	s.skip()
	if s.pipeline.skipping {
		s.pipeline.skipping = false
		s.sendSync()
	}
	s.pipeline.head().silent = true
	return true
}

// outlived reports whether an error is about a prepared statement of which the client's own text is a variant: what
// isotap added to it may rest on what is not there any more. A privilege can be missed as late as when it runs.
func outlived(x *pendingReply, confirmed namespace, code string) bool {
	switch x.kind {
	case pendingExecute:
		p := confirmed.portals[x.name]
		return code == sqlstateInsufficientPrivilege && p != nil && p.of != nil && p.of.hasOriginal()
	case pendingBind:
		return x.statement != nil && x.statement.hasOriginal()
	case pendingDescribeStatement:
		st := confirmed.statements[x.name]
		return st != nil && st.hasOriginal()
	}
	return false
}

// resend sends the segment again. Statements that it prepared stand on the server already: unlike all else
// they outlive the error.
func (s *Session) resend() error {
	again := s.retry
	defer s.scripts.forgetRefusal(s.resending.plain)
	s.retry = retryBuffer{}
	s.resending = resend{running: true, shown: s.resending.shown, notices: again.notices}
	s.names.unsure = true
	s.names.agree()
	s.speculative = speculativeTxn{level: s.settings.level}
	s.settings.settled(s.schema.temporaries.kept) // nothing of what might have changed tables has run
	for _, name := range again.parsed {
		s.closeOwn(name)
	}
	var in frameReader
	for kept := again.kept; len(kept) > 0; {
		m, used, err := in.next(kept, serverLimit, never)
		if err != nil {
			return err
		}
		kept = kept[used:]
		if err := s.clientMessage(m); err != nil {
			return err
		}
	}
	s.resending = resend{notices: s.resending.notices}
	return nil
}
