package mysql

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
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
	s.sendQuery(&exchange{done: func(x *exchange) error {
		s.captures.ready = !x.failed
		return nil
	}}, init)
}

// readCaptures asks for the entries that are still unread, and reports whether there are any.
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
		done: func(x *exchange) error {
			if x.failed || x.rows == 0 {
				downgradeAll(batch, history.ReasonCaptureUnread)
			}
			s.release(s.captures.answered(s.events))
			return nil
		},
	}, query+askCounts)
	s.captures.wait(batch)
	return true
}

// takeCaptures gives the statements of a batch what a read found of theirs.
func (s *Session) takeCaptures(batch []*pendingStatement, r *reader) error {
	before := s.txn.bytesOf(batch)
	collected := r.lenencBytes()
	if r.err != nil {
		return fmt.Errorf("parse captured entries: %w", r.err)
	}
	takeEntries(batch, collected)
	for _, o := range batch {
		if o.tooMuchBeside && !o.withheld {
			s.cfg.Planner.SubqueriesTooLarge(o.plan.Shape)
		}
		if o.uncollected && o.plan.Result.Collects {
			s.cfg.Planner.TooLarge(o.plan.Shape)
		}
	}
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
	s.counts.rowCountGone = true // SHOW WARNINGS leaves FOUND_ROWS() as it is
	s.sendQuery(&exchange{row: s.conditions.keep}, "SHOW WARNINGS")
}

// restoreConditions raises on the server what the client's last statement raised there, before a statement
// that asks for it. It reports whether the statement has to wait until isotap knows what that is.
func (s *Session) restoreConditions(plan *sqlmysql.Plan) (wait bool) {
	if s.conditions.right(plan) {
		return false
	}
	if !s.conditions.gone {
		s.keepConditions()
		if s.counts.foundRowsUnknown {
			s.askFoundRows()
		}
		if !s.pending.none() {
			return true
		}
	}
	s.counts.rowCountGone, s.counts.foundRowsGone = true, true
	s.sendQuery(&exchange{}, s.conditions.raising(plan.Session.Conditions))
	return false
}

// askSettings asks the server for the session's settings.
func (s *Session) askSettings() {
	query := settingsQuery{dialect: s.dialect, version: s.version, conflicts: s.cfg.AsksConflicts,
		literals: s.cfg.Predicates, binlog: s.dialect == sqlmysql.MariaDB, joins: s.dialect == sqlmysql.MariaDB}
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
		done: func(x *exchange) error {
			switch {
			case x.failed && x.err.code == gomysql.ER_UNKNOWN_SYSTEM_VARIABLE && s.cfg.AsksConflicts:
				// Another server answers than the one that was asked what it has.
				s.cfg.AsksConflicts, s.settings.stale = false, true
			case x.failed && s.settings.failed(x.err.code):
			case x.failed:
				s.note("cannot read the session's settings (error %d: %s): its statements go unobserved",
					x.err.code, x.err.message)
			case unread != nil:
				s.note("cannot read the session's settings (%v): its statements go unobserved", unread)
			}
			return nil
		},
	}, query.sql()+askCounts)
}

// runCompanion runs the companion of a statement that has just been answered, where it reads the same
// snapshot and locks nothing. The client's next command waits for it.
func (s *Session) runCompanion(o *pendingStatement, x *exchange) {
	plan := s.companion(o, x)
	if plan == nil {
		return
	}
	s.keepConditions()
	if plan.Reason == history.ReasonLimit {
		s.askFoundRows() // it may be more than the rows that came
	}
	c := &exchange{grammar: resultReply, purpose: companionPurpose, hidden: plan.HiddenColumns(), companionOf: o,
		stmt: &pendingStatement{plan: plan, rewritten: true,
			stmt: history.Stmt{Observation: plan.Observation, Reason: plan.Reason}}}
	s.counts.foundRowsGone = true
	if x.prepared == nil {
		s.send(c, plan.Append([]byte{gomysql.COM_QUERY}, sqlmysql.AppendPlaceholder))
		return
	}
	c.binary, c.prepared = true, x.prepared
	if with := x.prepared.companion; with != nil && slices.Equal(with.plan.Upstream.Pieces, plan.Upstream.Pieces) {
		s.executeCompanion(c)
		return
	}
	s.prepareCompanion(c)
}

// companion returns the companion that shows what a statement read; nil when there is none, or it could
// read another snapshot, change what the client can ask about the statement, or lock.
func (s *Session) companion(o *pendingStatement, x *exchange) *sqlmysql.Plan {
	plan := o.plan.Companion
	switch {
	case plan == nil, x.failed, s.phase != phaseCommand, s.txn.unrecorded.Full():
		return nil
	case !s.txn.inTrans, o.txn == nil, o.txn != s.txn.open, o.txn.Level != history.RepeatableRead:
		return nil // no snapshot that lasts, or reads that lock
	case x.ok.warnings > 0, x.opens(x.ok), s.settings.selectLimit:
		return nil
	}
	if x.prepared != nil {
		if x.prepared.companionCommand == nil {
			return nil
		}
		// It may have been planned for another schema.
		if plan = s.plan(x.prepared.text).Companion; plan == nil {
			return nil
		}
	}
	if !s.refused[weak.Make(plan)].IsZero() {
		return nil
	}
	return plan
}

// askFoundRows asks for FOUND_ROWS() while it is still that of the client's statement.
func (s *Session) askFoundRows() {
	counts := s.counts.ask()
	s.sendQuery(&exchange{row: func(payload []byte) error {
		r := reader{b: payload}
		r.lenencBytes()
		return counts(&r)
	}}, "SELECT 1"+askCounts)
}

// prepareCompanion prepares the companion of a prepared statement, a variant that the client does not see, and
// then executes it.
func (s *Session) prepareCompanion(c *exchange) {
	p, plan := c.prepared, c.stmt.plan
	if p.companion != nil {
		s.closeVariant(p, p.companion.id)
		p.companion = nil
	}
	hidden := &prepared{plan: plan}
	s.send(&exchange{prepared: hidden, grammar: prepareReply, done: func(x *exchange) error {
		if x.failed {
			s.counts.rowCountGone = true
			s.refuse(c.stmt, x.err)
			s.companionFailed(c, x.err)
			return nil
		}
		p.companion = hidden
		s.executeCompanion(c)
		return nil
	}}, plan.Append([]byte{gomysql.COM_STMT_PREPARE}, sqlmysql.AppendPlaceholder))
}

// executeCompanion executes a prepared companion with the parameters of the client's statement.
func (s *Session) executeCompanion(c *exchange) {
	command := c.prepared.companionCommand
	binary.LittleEndian.PutUint32(command[1:], c.prepared.companion.id)
	command[5] = 0 // no cursor
	s.send(c, command)
}

// companionDone gives the statement what its companion saw.
func (s *Session) companionDone(x *exchange) error {
	defer s.identities.forget()
	if x.failed {
		if x.retry {
			s.refuse(x.stmt, x.err)
		}
		s.companionFailed(x, x.err)
		return nil
	}
	if x.ok.warnings > 0 {
		s.clearDiagnostics()
	}
	if x.rows > sqlmysql.MaxCompanionRows {
		x.stmt.downgrade(history.Inexact, history.ReasonTooManyRows)
	}
	s.addSeen(x.companionOf, x.stmt)
	return nil
}

// addSeen gives a recorded statement what a query of isotap's own saw for it, and how well.
func (s *Session) addSeen(o, companion *pendingStatement) {
	s.takeIdentities(companion, false)
	st, saw := o.recorded(), &companion.stmt
	st.Accesses = append(st.Accesses, saw.Accesses...)
	s.txn.unrecorded.Take(txnstate.BytesOf(saw))
	st.Observation, st.Reason = saw.Observation, saw.Reason
}

// companionFailed says why a statement stays unobserved, and hides the error from SHOW WARNINGS.
func (s *Session) companionFailed(x *exchange, e serverError) {
	x.companionOf.recorded().Reason = history.ReasonCompanionFailed.With(strconv.Itoa(int(e.code)))
	s.clearDiagnostics()
}

// clearDiagnostics empties the server's list of warnings, which the client's statement left empty: any
// statement with a table in it does, and this one needs no right. Its status tells whether the
// transaction lives on.
func (s *Session) clearDiagnostics() {
	s.counts.foundRowsGone = true
	s.sendQuery(&exchange{done: func(x *exchange) error {
		if !x.failed && !s.txn.inTrans && s.txn.open != nil {
			s.note("the transaction ended in a read of isotap's own")
			s.endOpen(history.Aborted)
		}
		return nil
	}}, "SELECT 1 FROM (SELECT 1) AS isotap LIMIT 1")
}

// readVariables asks for the identities that a SELECT ... INTO left in variables, where it found its row.
// The statement's transaction waits for the answer.
func (s *Session) readVariables(o *pendingStatement, x *exchange) {
	if x.failed || !o.rewritten || o.plan.Result.Variables == 0 || x.ok.affected != 1 {
		return
	}
	s.keepConditions()
	// The query changes ROW_COUNT(), and FOUND_ROWS() to what it is already.
	s.counts.rowCountGone = true
	s.counts.foundRows, s.counts.foundRowsGone = 1, false
	s.sendQuery(&exchange{hidden: o.plan.Result.Variables,
		stmt: &pendingStatement{plan: o.plan, rewritten: true, stmt: history.Stmt{Observation: o.stmt.Observation,
			Reason: o.stmt.Reason}},
		done: func(x *exchange) error {
			defer s.identities.forget()
			if x.failed || x.rows != 1 {
				o.downgradeRecorded(history.ReasonVariablesUnread)
			} else {
				s.addSeen(o, x.stmt)
			}
			s.release(s.captures.answered(s.events))
			return nil
		},
	}, sqlmysql.IntoRead(o.plan.Result.Variables))
	s.captures.wait([]*pendingStatement{o})
}

// readMoment asks when a statement began whose conditions ask for the time, right behind it. The statement's
// transaction waits for the answer.
func (s *Session) readMoment(o *pendingStatement, x *exchange) {
	if !s.asksForTime(o, x) {
		return
	}
	last, settings := s.identities.ordered(), s.settings.literals
	s.keepConditions()
	counts, query := s.counts.ask(), momentQuery
	clock := rewrite.AsksWithin(o.plan.Predicates)
	if clock {
		query = clockQuery
	}
	s.sendQuery(&exchange{
		row: func(payload []byte) error {
			r := reader{b: payload}
			at := s.settings.takeMoments(&r, s.now-o.stmt.Start, clock)
			if at != (moments{}) && settings == s.settings.literals {
				st := o.recorded()
				if st.Observation != history.Exact { // its conditions become wide
					at.since, at.until = "", ""
				}
				before := txnstate.BytesOf(st)
				st.Predicates = s.settings.predicates(o, last, at)
				widen(st)
				s.txn.unrecorded.Take(txnstate.BytesOf(st) - before)
			}
			return counts(&r)
		},
		done: func(*exchange) error {
			s.release(s.captures.answered(s.events))
			return nil
		},
	}, query+askCounts)
	s.captures.wait([]*pendingStatement{o})
}

// asksForTime reports whether it matters when a statement began that has been answered, and the server can tell.
func (s *Session) asksForTime(o *pendingStatement, x *exchange) bool {
	return !x.failed && !x.mask.wrong && !x.opens(x.ok) && s.phase == phaseCommand && o.txn != nil &&
		rewrite.AsksForTime(o.plan.Predicates) && !s.settings.selectLimit && !s.txn.unrecorded.Full()
}
