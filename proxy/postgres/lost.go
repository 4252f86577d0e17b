package postgres

import (
	"github.com/isotap/isotap/history"
)

// lostServer settles what was open when the server went away: what waited for an answer may have been done,
// everything else was rolled back.
func (s *Session) lostServer() {
	status := history.Aborted
	for i, x := range s.pipeline.pending {
		switch x.kind {
		case pendingQuery:
			if x.answer == nil && s.mayEnd(x.form, x.at) {
				status = history.Indeterminate
			}
		case pendingExecute:
			if p := s.names.confirmed.portals[x.name]; !s.txn.block || p == nil || s.mayEnd(&p.form, 0) {
				status = history.Indeterminate
			}
		case pendingSync:
			if !s.txn.block {
				status = history.Indeterminate
			}
		}
		if i == 0 && s.result.set {
			s.recordLost()
		}
	}
	s.pipeline.clear()
	s.endTxn(status)
}

// mayEnd reports whether a text may end the transaction, from one of its statements on.
func (s *Session) mayEnd(f *form, at int) bool {
	if !s.txn.block || f.script == nil {
		return true
	}
	for ; f.plan(at) != nil; at++ {
		if f.plan(at).Txn.Ends {
			return true
		}
	}
	return false
}

// recordLost records the statement whose result was coming in.
func (s *Session) recordLost() {
	st := s.observe(&s.result)
	st.Rows = s.result.rows
	downgrade(&st, history.Inexact, history.ReasonServerLost)
	s.takeIdentities(&s.result, &st, true)
	for i := range st.Accesses {
		st.Accesses[i].Inexact = true
	}
	s.fetched(&s.result, &st)
	s.record(&st)
}

// close ends the session, with what was under way.
func (s *Session) close() {
	s.lostServer()
	s.dropLong()
	s.phase = phaseClosed
}
