package mysql

import (
	"encoding/binary"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// execute sends COM_STMT_EXECUTE, stage by stage.
func (s *Session) execute(payload []byte) error {
	id, p := s.statementID(payload)
	if p == nil {
		s.executeUnknown(id, payload)
		return nil
	}

	// What must be on the server first. The command waits for it, and then comes here again.
	if s.preparesAnswers(p) {
		s.wait(payload)
		return nil
	}
	reason := s.leavesExecution(p, payload)
	if s.lacksOriginal(p, reason) {
		s.wait(payload)
		s.prepareOriginal(p)
		return nil
	}

	// The record begins once nothing can make the command wait any more, and before the parameters are bound: among
	// them is the statement's tag.
	o, why := s.recordExecution(p)
	if why != nil {
		s.refuseTxn(packets(len(payload)), why)
		p.companionCommand = nil
		return nil
	}
	o.rewritten = p.rewritten && reason.IsZero()
	if !reason.IsZero() {
		o.downgrade(history.Opaque, reason)
	}
	if !o.rewritten && p.refusal != nil {
		s.answer(o, p.refusal)
		p.originalID, p.refusal = 0, nil
		return nil
	}

	// Binding takes the long data, and leaves what the companion is executed with.
	x := s.statement(o)
	x.binary, x.prepared, x.hasLongData = true, p, slices.Contains(p.long, true)
	x.cursor = len(payload) >= executeHead && payload[5] != 0
	p.companionCommand = nil
	command, err := s.bind(o, p, payload)
	if err != nil && o.rewritten {
		// What the server makes of it is between the client and the server.
		p.malformed, s.resumed = true, o
		return s.execute(payload)
	}
	p.malformed = false

	// The form of the statement that runs is the address of all commands that follow for it.
	command = s.addressed(o, p, payload, command, err != nil)
	if o.rewritten {
		s.original = append(s.original[:0], payload...)
	}
	x.show(s.conditions.listed(p.plan, p.text, &s.settings.env, true))
	s.tellSends(o)
	s.sendFor(x, command, len(payload))
	return nil
}

// preparesAnswers puts what a statement asks about the one before it on the server, where isotap's own have changed it.
// It reports whether the statement has to wait for that.
func (s *Session) preparesAnswers(p *prepared) (wait bool) {
	if p.plan.Upstream.Counts && (p.rewritten || p.plan.Upstream.Substitutes) && !slices.Contains(p.long, true) &&
		(s.counts.rowCountGone || s.counts.foundRowsGone) && !p.filledUnused {
		s.prepareFilled(p)
		return true
	}
	return s.resumed == nil && s.restoreConditions(p.plan)
}

// leavesExecution returns why an execution runs the client's own text although the plan would change it; empty when it
// does not.
func (s *Session) leavesExecution(p *prepared, payload []byte) history.Reason {
	reason := s.leavesPrepared(p)
	if reason.IsZero() && p.rewritten && !p.fits(payload) {
		return history.ReasonParameterType
	}
	return reason
}

// lacksOriginal reports whether the client's own text is to run, for that reason or because it has no other form, and
// is not prepared, or not as it would be today.
func (s *Session) lacksOriginal(p *prepared, reason history.Reason) bool {
	if p.rewritten && reason.IsZero() {
		return false
	}
	return p.rewritten && p.originalID == 0 || s.plainChanged(p)
}

// recordExecution begins the record of an execution, or goes on with that of one whose first form was refused. An error
// is why it is not to run.
func (s *Session) recordExecution(p *prepared) (*pendingStatement, error) {
	if o := s.resumed; o != nil {
		s.resumed = nil
		return o, nil
	}
	if why := s.halted(p.plan); why != nil {
		return nil, why
	}
	call := s.beforeStatement(p.plan)
	o := s.txn.observe(p.plan, &s.settings, s.now)
	o.call = call
	s.mayBeHeld(o)
	return o, nil
}

// addressed returns an execution's command under the id of the form that runs, and takes note of that. command is what
// bind made of payload, unless that is malformed.
func (s *Session) addressed(o *pendingStatement, p *prepared, payload, command []byte, malformed bool) []byte {
	if malformed {
		p.executedID = p.originalID
		command = s.readdressed(payload, p)
	}
	filled := p.filledUnused
	p.cursor, p.executedID, p.filledUnused = nil, p.id, false
	switch {
	case p.rewritten && !o.rewritten:
		p.executedID = p.originalID
	case !p.rewritten && p.originalID != 0:
		p.executedID = p.originalID
		command = s.readdressed(command, p)
	case filled:
		p.executedID = p.filledID
		command = s.readdressed(command, p)
	}
	return command
}

// bind makes the COM_STMT_EXECUTE that goes upstream. For a rewritten statement the types are always
// bound anew, since the server may have seen none for it, and hidden parameters are put in at their
// places.
func (s *Session) bind(o *pendingStatement, p *prepared, payload []byte) ([]byte, error) {
	r := reader{b: payload}
	head := r.bytes(executeHead)
	nulls := r.bytes((p.params + 7) / 8)
	bound := p.params == 0
	if p.params > 0 && r.uint8() != 0 {
		bound = true
		p.types = append(p.types[:0], r.bytes(2*p.params)...)
	}
	if r.err != nil || len(p.types) != 2*p.params {
		return nil, fmt.Errorf("parse COM_STMT_EXECUTE: %w", errMalformed)
	}
	values, err := p.values(&r, nulls)
	if err != nil {
		return nil, err
	}
	if p.executedID != 0 {
		o.stmt.Sender.Request = s.settings.sender.Request // its text names the request that prepared it
	}
	if s.cfg.Args {
		o.stmt.Args = inPlaces(o.plan.Args, p.args(values, nulls))
	}
	if len(o.plan.Predicates) > 0 || s.cfg.Texts || o.plan.Result.Limit != nil {
		o.literals = p.literals(values, nulls, s.settings.env.NoBackslashEscapes)
	}
	if s.cfg.Texts {
		o.stmt.Text = session.BoundedText(dbms.MySQLFamily, o.plan.Text, o.literals)
	}
	if !p.rewritten {
		if o.plan.Companion != nil && !slices.Contains(p.long, true) {
			p.companionCommand = p.appendParams(slices.Clone(head), nulls, values, nil, sqlmysql.Values{}, false)
		}
		if p.filledUnused { // which has no types yet
			s.scratch = p.appendParams(append(s.scratch[:0], head...), nulls, values, nil, sqlmysql.Values{}, false)
			payload = s.scratch
		} else if bound {
			payload = p.named(payload)
		}
		clear(p.long)
		return payload, nil
	}
	id, hidden := p.id, p.plan.Upstream.Hidden
	if !o.rewritten {
		id, hidden = p.originalID, nil
	}
	why := s.withholds(o)
	if up := &p.plan.Upstream; o.rewritten && (up.Repeats || up.Shows) && !p.readsFit(values, nulls) {
		why = history.ReasonParameterType
	}
	o.withhold(why)
	b := append(s.scratch[:0], head...)
	binary.LittleEndian.PutUint32(b[1:], id)
	s.scratch = p.appendParams(b, nulls, values, hidden, s.values(o), o.withheld)
	clear(p.long)
	return s.scratch, nil
}

// leavesPrepared returns why a prepared statement runs unchanged although its plan would change it; empty
// when it does not.
func (s *Session) leavesPrepared(p *prepared) history.Reason {
	switch reason := s.leavesAlone(p.plan); {
	case !reason.IsZero():
		return reason
	case p.malformed:
		return history.ReasonMalformedParameters
	case !p.rewritten && splices(p.plan):
		return history.ReasonPreparedUnchanged
	case p.rewritten && p.mustFit() && slices.Contains(p.long, true):
		return history.ReasonLongData
	case p.rewritten && !s.planHolds(p):
		return history.ReasonPreparedBefore
	}
	return history.Reason{}
}

// planHolds reports whether the statement would be rewritten today as it was when it was prepared: since
// then a temporary table may have taken a table's name, or the table another column.
func (s *Session) planHolds(p *prepared) bool {
	if p.env == s.settings.env && !p.plan.Upstream.ListsColumns {
		return true
	}
	now := s.plan(p.text)
	if now != p.plan && (now.Target != p.plan.Target || now.Upstream.Plain != p.plan.Upstream.Plain ||
		!slices.Equal(now.Upstream.Pieces, p.plan.Upstream.Pieces) ||
		!slices.Equal(now.Result.Sources, p.plan.Result.Sources)) {
		return false
	}
	p.env, p.plan = s.settings.env, now
	return true
}

// answer gives the client an error for a statement that could not even be prepared. The server is pinged
// in its place, so that commands go on in their order.
func (s *Session) answer(o *pendingStatement, e *serverError) {
	x := s.statement(o)
	x.grammar, x.refusal = refusedReply, e
	s.send(x, []byte{gomysql.COM_PING})
}

// readdressed returns a command under the id of the statement that was executed last in the place of p.
func (s *Session) readdressed(payload []byte, p *prepared) []byte {
	if p.executedID == 0 {
		return payload
	}
	s.scratch = append(s.scratch[:0], payload...)
	binary.LittleEndian.PutUint32(s.scratch[1:], p.executedID)
	return s.scratch
}

// executeUnknown executes a statement that the server alone may know.
func (s *Session) executeUnknown(id uint32, payload []byte) {
	plan, asked := unknownSettings, len(payload)
	if s.prepared.incomplete && asked >= executeHead { // it may be one of too many
		if plan = unknownStatement; !s.watches() {
			plan = passedOn
		}
		s.scratch = append(s.scratch[:0], payload...)
		payload = s.scratch
		binary.LittleEndian.PutUint32(payload[1:], id) // isotap may have prepared another last
		payload[5] = 0                                 // no cursor, whose rows could not be told from others
	}
	s.beforeStatement(plan)
	x := s.statement(s.txn.observe(plan, &s.settings, s.now))
	x.binary = true
	x.added = s.conditions.added // where it fails it adds its error to what is listed already
	s.sendFor(x, payload, asked)
}

// statementID reads the id that stands behind the command byte.
func (s *Session) statementID(payload []byte) (uint32, *prepared) {
	if len(payload) < 5 {
		return 0, nil
	}
	return s.prepared.find(binary.LittleEndian.Uint32(payload[1:]), s.dialect == sqlmysql.MariaDB)
}

// sendLongData passes a piece of a parameter on, to the statement that will be executed and under the
// index that the parameter has there.
func (s *Session) sendLongData(payload []byte) {
	s.scratch = append(s.scratch[:0], payload...)
	if !s.addressLongData(s.scratch) {
		_, p := s.statementID(payload)
		s.wait(payload)
		s.prepareOriginal(p)
		return
	}
	s.toServer, _ = appendPacket(s.toServer, 0, s.scratch)
}

// addressLongData changes a COM_STMT_SEND_LONG_DATA, or its beginning, to name the statement that will
// run, and the parameter as it has it. It reports whether there is such a statement yet.
func (s *Session) addressLongData(payload []byte) bool {
	_, p := s.statementID(payload)
	if p == nil || len(payload) < 7 {
		return true // the server knows what to say about it
	}
	index := int(binary.LittleEndian.Uint16(payload[5:]))
	if index < len(p.long) {
		p.long[index] = true
	}
	id := p.id
	switch {
	case !p.rewritten && p.originalID != 0:
		id = p.originalID
	case !p.rewritten:
	case s.leavesPrepared(p).IsZero():
		for _, h := range p.plan.Upstream.Hidden {
			if h.Index <= index {
				index++
			}
		}
	case p.originalID == 0:
		return false
	default:
		id = p.originalID
	}
	binary.LittleEndian.PutUint32(payload[1:], id)
	binary.LittleEndian.PutUint16(payload[5:], uint16(index))
	return true
}

func (s *Session) resetStatement(payload []byte) {
	_, p := s.statementID(payload)
	if p != nil {
		clear(p.long)
		payload = s.readdressed(payload, p)
	}
	s.send(&exchange{visible: true, grammar: okReply}, payload)
}

// fetch reads on from a cursor: rows until EOF, trimmed like those of the statement.
func (s *Session) fetch(payload []byte) {
	x := &exchange{visible: true, grammar: resultReply, reply: reply{state: stateRows, binary: true}}
	if _, p := s.statementID(payload); p != nil {
		payload = s.readdressed(payload, p)
		if c := p.cursor; c != nil {
			x.stmt, x.prepared, x.purpose = &pendingStatement{plan: p.plan, rewritten: true}, p, fetchPurpose
			x.hidden, x.types, x.fields = c.hidden, c.types, c.fields
			x.mask = c.mask
			x.renumber, x.seq, x.begun = true, 1, true
		}
	}
	s.send(x, payload)
}

// fetchDone adds the rows that were fetched to what the cursor's statement read, as long as the
// transaction goes on that it ran in.
func (s *Session) fetchDone(x *exchange) error {
	defer s.identities.forget()
	opened := x.prepared.cursor.stmt
	if x.mask.wrong || s.txn.open == nil || opened.txn != s.txn.open {
		return nil
	}
	s.takeIdentities(x.stmt, x.ok.warnings > 0)
	st := &s.txn.open.Stmts[opened.index]
	st.Accesses = append(st.Accesses, x.stmt.stmt.Accesses...)
	s.txn.unrecorded.Take(txnstate.BytesOf(&x.stmt.stmt))
	st.Rows += x.rows
	return nil
}
