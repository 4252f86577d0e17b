package mysql

import (
	"encoding/binary"
	"slices"
	"strconv"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// accompany runs the companion of a statement that has just been answered, where it reads the same
// snapshot and locks nothing. The client's next command waits for it.
func (s *Session) accompany(o *observed, x *exchange) {
	plan := s.companion(o, x)
	if plan == nil {
		return
	}
	s.keepConditions()
	if plan.Reason == history.ReasonLimit {
		s.askFoundRows() // it may be more than the rows that came
	}
	c := &exchange{read: (*Session).queryReply, done: (*Session).companionDone, hidden: plan.HiddenColumns(), beside: o,
		stmt: &observed{plan: plan, rewritten: true, stmt: history.Stmt{Observation: plan.Observation,
			Reason: plan.Reason}}}
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
func (s *Session) companion(o *observed, x *exchange) *sqlmysql.Plan {
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
		if x.prepared.executed == nil {
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

// prepareCompanion prepares the companion of a prepared statement beside it, unseen by the client, and
// then executes it.
func (s *Session) prepareCompanion(c *exchange) {
	p, plan := c.prepared, c.stmt.plan
	if p.companion != nil {
		s.closeHidden(p, p.companion.id)
		p.companion = nil
	}
	hidden := &prepared{plan: plan}
	s.send(&exchange{prepared: hidden, read: (*Session).prepareReply, done: func(s *Session, x *exchange) error {
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
	command := c.prepared.executed
	binary.LittleEndian.PutUint32(command[1:], c.prepared.companion.id)
	command[5] = 0 // no cursor
	s.send(c, command)
}

// companionDone gives the statement what its companion saw.
func (s *Session) companionDone(x *exchange) error {
	defer s.seen.forget()
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
		x.stmt.lower(history.Inexact, history.ReasonTooManyRows)
	}
	s.takeBeside(x.beside, x.stmt)
	return nil
}

// takeBeside gives a recorded statement what a query of isotap's beside it saw, and how well.
func (s *Session) takeBeside(o, beside *observed) {
	s.takeSeen(beside, false)
	st, saw := o.recorded(), &beside.stmt
	st.Accesses = append(st.Accesses, saw.Accesses...)
	s.txn.unrecorded.Take(txnstate.BytesOf(saw))
	st.Observation, st.Reason = saw.Observation, saw.Reason
}

// companionFailed says why a statement stays unobserved, and hides the error from SHOW WARNINGS.
func (s *Session) companionFailed(x *exchange, e serverError) {
	x.beside.recorded().Reason = history.ReasonCompanionFailed.With(strconv.Itoa(int(e.code)))
	s.clearDiagnostics()
}

// clearDiagnostics empties the server's list of warnings, which the client's statement left empty: any
// statement with a table in it does, and this one needs no right. Its status tells whether the
// transaction lives on.
func (s *Session) clearDiagnostics() {
	s.counts.foundRowsGone = true
	s.sendQuery(&exchange{done: func(s *Session, x *exchange) error {
		if !x.failed && !s.txn.inTrans && s.txn.open != nil {
			s.note("the transaction ended in a read of isotap's own")
			s.endOpen(history.Aborted)
		}
		return nil
	}}, "SELECT 1 FROM (SELECT 1) AS isotap LIMIT 1")
}
