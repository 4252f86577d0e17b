package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"fmt"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// readyCaptures sets the variables up, once in a session.
func (s *Session) readyCaptures() {
	if s.captures.ready {
		return
	}
	s.captures.ready = true
	s.counts.rowCountGone = true
	init := sqlmysql.CaptureInit
	if s.cfg.Predicates {
		init += sqlmysql.ImageInit
	}
	s.sendQuery(&exchange{done: func(s *Session, x *exchange) error {
		s.captures.ready = !x.failed
		return nil
	}}, init)
}

// readCaptures asks for the entries that are still unread, and says whether there are any.
func (s *Session) readCaptures() bool {
	batch := s.captures.read()
	if len(batch) == 0 {
		return false
	}
	counts, query := s.counts.ask(), sqlmysql.CaptureRead
	if s.cfg.Predicates {
		query += sqlmysql.ImageRead
	}
	s.sendQuery(&exchange{
		row: func(payload []byte) error {
			r := reader{b: payload}
			if err := s.takeCaptures(batch, &r); err != nil {
				return err
			}
			return counts(&r)
		},
		done: func(s *Session, x *exchange) error {
			if x.failed || x.rows == 0 {
				lowerAll(batch, history.ReasonCaptureUnread)
			}
			s.release(s.captures.answered(s.events))
			return nil
		},
	}, query+askCounts)
	s.captures.wait(batch)
	return true
}

// takeCaptures gives the statements of a batch what a read found of theirs.
func (s *Session) takeCaptures(batch []*observed, r *reader) error {
	before := s.txn.bytesOf(batch)
	collected := r.lenencBytes()
	if r.err != nil {
		return fmt.Errorf("parse captured entries: %w", r.err)
	}
	takeEntries(batch, collected)
	if s.cfg.Predicates {
		if err := takeImages(batch, r.lenencBytes()); err != nil {
			s.note("%v", err)
		}
	}
	s.txn.unrecorded.Take(s.txn.bytesOf(batch) - before)
	return nil
}

// release takes the events that a part of the session had to add. Once no transaction waits for entries any more, the
// client gets what waited for those.
func (s *Session) release(events []session.Event) {
	s.events = events
	if len(s.captures.ended) == 0 {
		s.holding = false
	}
}

// loseCaptures gives up what can no longer be read.
func (s *Session) loseCaptures(reason history.Reason) { s.release(s.captures.giveUp(reason, s.events)) }

// keepConditions fetches the conditions that are about to be lost, when the client can still ask for them.
func (s *Session) keepConditions() {
	if !s.conditions.lose() {
		return
	}
	s.counts.rowCountGone, s.counts.foundRowsGone = true, true
	s.sendQuery(&exchange{row: s.conditions.keep}, "SHOW WARNINGS")
}

// restoreConditions raises on the server what the client's last statement raised there, before a statement
// that asks for it. It says whether the statement has to wait until isotap knows what that is.
func (s *Session) restoreConditions(plan *sqlmysql.Plan) (wait bool) {
	if s.conditions.right(plan) {
		return false
	}
	if !s.conditions.gone {
		s.keepConditions()
		if len(s.exchanges) > 0 {
			return true
		}
	}
	s.counts.rowCountGone, s.counts.foundRowsGone = true, true
	s.sendQuery(&exchange{}, s.conditions.raising())
	return false
}

// askSettings asks the server for the session's settings.
func (s *Session) askSettings() {
	query := settingsQuery{dialect: s.dialect, version: s.version, conflicts: s.cfg.AsksConflicts,
		literals: s.cfg.Predicates}
	s.settings.ask()
	s.keepConditions()
	var unread error
	counts := s.counts.ask()
	s.sendQuery(&exchange{
		row: func(payload []byte) error {
			r := reader{b: payload}
			unread = s.settings.take(&r, query)
			if query.conflicts { // MariaDB goes by the setting of each statement
				s.txn.weaken(s.settings.conflicts)
			}
			if unread == nil {
				unread = counts(&r)
			}
			return nil
		},
		done: func(s *Session, x *exchange) error {
			switch {
			case x.failed && x.err.code == gomysql.ER_UNKNOWN_SYSTEM_VARIABLE && s.cfg.AsksConflicts:
				// Another server answers than the one that was asked what it has.
				s.cfg.AsksConflicts, s.settings.stale = false, true
			case x.failed:
				s.note("cannot read the session's settings (error %d: %s): its statements go unobserved", x.err.code,
					x.err.message)
			case unread != nil:
				s.note("cannot read the session's settings (%v): its statements go unobserved", unread)
			}
			return nil
		},
	}, query.sql()+askCounts)
}
