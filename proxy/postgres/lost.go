package postgres

import (
	"github.com/isotap/isotap/history"
)

// lostServer settles what was open when the server went away: what waited for an answer may have been done,
// everything else was rolled back.
func (s *Session) lostServer() {
	status := history.Aborted
	for i, x := range s.queue {
		switch x.kind {
		case owesQuery:
			if x.answer == nil && s.mayEnd(x.form, x.at) {
				status = history.Indeterminate
			}
		case owesExecute:
			if p := s.names.real.portals[x.name]; !s.block || p == nil || s.mayEnd(&p.form, 0) {
				status = history.Indeterminate
			}
		case owesSync:
			if !s.block {
				status = history.Indeterminate
			}
		}
		if i == 0 && s.current.set {
			s.recordLost()
		}
	}
	s.queue, s.due = nil, 0
	s.endOpen(status)
}

// mayEnd reports whether a text may end the transaction, from one of its statements on.
func (s *Session) mayEnd(f *form, at int) bool {
	if !s.block || f.script == nil {
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
	st := s.observe(&s.current)
	st.Rows = s.current.rows
	lower(&st, history.Inexact, history.ReasonServerLost)
	s.takeSightings(&s.current, &st, true)
	for i := range st.Accesses {
		st.Accesses[i].Inexact = true
	}
	s.fetched(&s.current, &st)
	s.record(st)
}

// withhold keeps the end of a statement's result back that ended a transaction, until the server's next
// message: the transaction is to be stored before the client hears of it. Only a Query ends one so; in
// the extended protocol the Sync does.
func (s *Session) withhold(x *owed) {
	if s.cfg.Durable && x.kind == owesQuery && !s.block {
		s.withheld = true
	}
}

// release gives free what was withheld.
func (s *Session) release() { s.withheld = false }
