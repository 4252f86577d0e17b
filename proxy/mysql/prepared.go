package mysql

import (
	"encoding/binary"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// executeHead is the length of COM_STMT_EXECUTE up to its NULL bitmap: command, statement id, flags
// and iteration count (https://mariadb.com/kb/en/com_stmt_execute/).
const executeHead = 1 + 4 + 1 + 4

// directExecute is the statement id by which MariaDB's clients mean the one prepared last.
const directExecute = 0xffffffff

// A prepared is a statement that the client prepared. Its id is the server's own.
type prepared struct {
	id        uint32
	text      []byte // as the client wrote it
	plan      *sqlmysql.Plan
	env       sqlmysql.Session // that the plan holds for
	rewritten bool
	params    int    // that the client knows of
	types     []byte // of the client's parameters, two bytes each, as last bound
	long      []bool // parameters that came by COM_STMT_SEND_LONG_DATA
	// original is the id of the client's own text, prepared beside the rewritten one once that had to
	// be left alone; 0 until then.
	original uint32
	// plain is the plan's form of the client's own text that was prepared last, if it has one.
	plain string
	// refusal is why that could not be prepared: it is the answer to the client's next execution.
	refusal *serverError
	// filled is the id of the text with values in the place of ROW_COUNT() and FOUND_ROWS(), prepared
	// for one execution; fresh until that.
	filled uint32
	fresh  bool
	// malformed says that the execution under way has parameters that isotap cannot read.
	malformed bool
	// companion is the statement beside this one that shows what it read, and executed the command of
	// this one's last execution, for it; nil when there is none.
	companion *prepared
	executed  []byte

	runs   uint32  // the id that was executed last
	cursor *cursor // that this left open over trimmed rows
}

// prepare sends COM_STMT_PREPARE, of the rewritten text where the plan has one.
func (s *Session) prepare(payload []byte) {
	plan := s.plan(payload[1:])
	p := &prepared{text: append([]byte(nil), payload[1:]...), plan: plan, env: s.settings.env}
	p.rewritten = splices(plan) && s.leavesAlone(plan).IsZero()
	s.sendPrepare(p)
}

// splices reports whether a prepared statement is rewritten.
func splices(plan *sqlmysql.Plan) bool {
	return plan.Upstream.Pieces != nil && !plan.Upstream.Substitutes
}

func (s *Session) sendPrepare(p *prepared) {
	s.scratch = append(s.scratch[:0], gomysql.COM_STMT_PREPARE)
	if p.rewritten {
		s.scratch = p.plan.Append(s.scratch, sqlmysql.AppendPlaceholder)
	} else {
		p.plain = p.plan.Upstream.Plain
		s.scratch = append(s.scratch, p.ownText()...)
	}
	x := &exchange{visible: true, prepared: p, read: (*Session).prepareReply, done: (*Session).prepareDone}
	s.sendFor(x, s.scratch, 1+len(p.text))
}

// executeUnknown executes a statement that the server alone may know.
func (s *Session) executeUnknown(id uint32, payload []byte) {
	plan, asked := unknownSettings, len(payload)
	if s.forgets && asked >= executeHead { // it may be one of too many
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

// maxPrepared is how many bytes the prepared statements of a session may take: of others nothing is kept, and they go
// unobserved.
const maxPrepared = 32 << 20

// unknownStatement is the plan of a prepared statement of which nothing is kept. It may be anything.
var unknownStatement = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque,
	Reason: history.ReasonTooManyPrepared}, Txn: sqlmysql.TxnEffect{Ends: true},
	Session: sqlmysql.SessionEffect{Changes: true}, Schema: sqlmysql.SchemaEffect{Changes: true}}

// bytes returns about how much memory the statement takes, with its plan, and its parameters' types once they are
// known.
func (p *prepared) bytes() int { return 1<<10 + 4*len(p.text) + 4*p.params }

// unprepared forgets a statement.
func (s *Session) unprepared(id uint32) {
	if p := s.stmts[id]; p != nil {
		s.stmtBytes -= p.bytes()
		delete(s.stmts, id)
	}
}

// prepareReply reads the reply of COM_STMT_PREPARE: PREPARE_OK, then the definitions of parameters and
// of columns (https://mariadb.com/kb/en/com_stmt_prepare/). What isotap added is left out.
func (s *Session) prepareReply(x *exchange, seq byte, payload []byte) (bool, error) {
	deprecated := s.caps&gomysql.CLIENT_DEPRECATE_EOF != 0
	switch x.state {
	case stateFirst:
		return s.prepareOK(x, seq, payload)
	case stateParams:
		if index := x.fields - x.left; !x.hides(index) {
			s.forward(x, 0, payload)
		}
		if x.left--; x.left == 0 {
			x.state = stateParamsEnd
		}
		if deprecated && x.state == stateParamsEnd {
			return x.columnsNext(), nil
		}
		return false, nil
	case stateParamsEnd:
		if x.prepared.params > 0 {
			s.forward(x, 0, endWithoutAdded(payload, x.added))
		}
		return x.columnsNext(), nil
	case stateFields:
		if x.left > x.hidden && !s.exposed(x, payload) {
			s.forward(x, 0, payload)
		}
		if x.left--; x.left > 0 {
			return false, nil
		}
		s.releasePrepared(x)
		x.state = stateFieldsEnd
		return deprecated, nil
	default:
		if x.fields > x.hidden+x.exposed {
			s.forward(x, 0, endWithoutAdded(payload, x.added))
		}
		return true, nil
	}
}

// releasePrepared lets the reply of COM_STMT_PREPARE go on once its columns are known, with their number.
func (s *Session) releasePrepared(x *exchange) {
	if s.holdingHead {
		shown := s.toClient[x.conceal.from+headerBytes+5:]
		binary.LittleEndian.PutUint16(shown, uint16(x.columns-x.hidden-x.exposed))
	}
	s.holdingHead = false
}

// hides reports whether the parameter at that index is one of isotap's.
func (x *exchange) hides(index int) bool {
	if !x.prepared.rewritten {
		return false
	}
	_, hidden := slices.BinarySearchFunc(x.prepared.plan.Upstream.Hidden, index,
		func(h sqlmysql.Hidden, i int) int { return h.Index - i })
	return hidden
}

// columnsNext turns to the column definitions, whose number prepareOK left in x.columns, and says
// whether there are none.
func (x *exchange) columnsNext() bool {
	x.fields, x.left, x.state = x.columns, x.columns, stateFields
	return x.columns == 0
}

func (s *Session) prepareOK(x *exchange, seq byte, payload []byte) (bool, error) {
	p := x.prepared
	if payload[0] == markErr {
		var err error
		x.failed = true
		if x.err, err = parseErr(payload); err != nil {
			return false, err
		}
		if p.rewritten {
			x.retry = true
			return true, nil
		}
		s.forward(x, seq, payload)
		return true, nil
	}
	if len(payload) < 12 {
		return false, fmt.Errorf("parse PREPARE_OK: %w: %d bytes", errMalformed, len(payload))
	}
	b := append([]byte(nil), payload...)
	p.id = binary.LittleEndian.Uint32(b[1:])
	x.columns = int(binary.LittleEndian.Uint16(b[5:]))
	params := int(binary.LittleEndian.Uint16(b[7:]))
	p.params = params
	if p.rewritten {
		x.hidden, x.carries = p.plan.HiddenColumns(), p.plan.Result.Carried
		if p.plan.Result.Reply == rewrite.Returning || x.columns == 0 {
			// MariaDB announces no columns for DELETE ... RETURNING.
			x.hidden = x.columns
		}
		p.params -= len(p.plan.Upstream.Hidden)
	}
	if p.params < 0 || x.hidden+x.carries > x.columns {
		return false, fmt.Errorf("%w: a prepared statement with %d parameters and %d columns", errUnexpected, params,
			x.columns)
	}
	p.long = make([]bool, p.params)
	binary.LittleEndian.PutUint16(b[5:], uint16(x.columns-x.hidden))
	binary.LittleEndian.PutUint16(b[7:], uint16(p.params))
	x.added = s.conditions.addedBy(p.plan, p.rewritten)
	x.ok.warnings = binary.LittleEndian.Uint16(b[10:])
	x.ok.warnings -= min(uint16(x.added), x.ok.warnings)
	binary.LittleEndian.PutUint16(b[10:], x.ok.warnings)
	x.renumber, x.seq = true, x.first
	if x.visible && p.rewritten && x.columns > 0 {
		s.holdHead(x)
	}
	s.forward(x, 0, b)
	if params > 0 {
		x.fields, x.left, x.state = params, params, stateParams
		return false, nil
	}
	return x.columnsNext(), nil
}

func (s *Session) prepareDone(x *exchange) error {
	p := x.prepared
	switch {
	case x.retry:
		s.refuse(&observed{plan: p.plan}, x.err)
		p.rewritten = false
		s.sendPrepare(p)
	case x.failed:
		s.lastPrepared = 0
		s.conditions.take(&x.reply, nil, x.added)
	default:
		s.lastPrepared = p.id
		if s.unprepared(p.id); s.stmtBytes+p.bytes() <= maxPrepared {
			s.stmts[p.id], s.stmtBytes = p, s.stmtBytes+p.bytes()
		} else {
			s.forgets = true
		}
		s.conditions.take(&x.reply, nil, x.added)
	}
	s.counts.rowCountGone = true
	return nil
}

// statementID reads the id that stands behind the command byte.
func (s *Session) statementID(payload []byte) (uint32, *prepared) {
	if len(payload) < 5 {
		return 0, nil
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	if id == directExecute && s.dialect == sqlmysql.MariaDB {
		id = s.lastPrepared
	}
	return id, s.stmts[id]
}

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
		p.executed = nil
		return nil
	}
	o.rewritten = p.rewritten && reason.IsZero()
	if !reason.IsZero() {
		o.lower(history.Opaque, reason)
	}
	if !o.rewritten && p.refusal != nil {
		s.answer(o, *p.refusal)
		p.original, p.refusal = 0, nil
		return nil
	}

	// Binding takes the long data, and leaves what the companion is executed with.
	x := s.statement(o)
	x.binary, x.prepared, x.long = true, p, slices.Contains(p.long, true)
	x.cursor = len(payload) >= executeHead && payload[5] != 0
	p.executed = nil
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
	s.sendFor(x, command, len(payload))
	return nil
}

// preparesAnswers puts what a statement asks about the one before it on the server, where isotap's own have changed it.
// It says whether the statement has to wait for that.
func (s *Session) preparesAnswers(p *prepared) (wait bool) {
	if p.plan.Upstream.Substitutes && p.params == 0 && (s.counts.rowCountGone || s.counts.foundRowsGone) && !p.fresh {
		s.prepareFilled(p)
		return true
	}
	return s.resumed == nil && s.restoreConditions(p.plan)
}

// leavesExecution says why an execution runs the client's own text although the plan would change it; empty when it
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
	return p.rewritten && p.original == 0 || s.outlived(p)
}

// recordExecution begins the record of an execution, or goes on with that of one whose first form was refused. An error
// is why it is not to run.
func (s *Session) recordExecution(p *prepared) (*observed, error) {
	if o := s.resumed; o != nil {
		s.resumed = nil
		return o, nil
	}
	if why := s.halted(p.plan); why != nil {
		return nil, why
	}
	s.beforeStatement(p.plan)
	return s.txn.observe(p.plan, &s.settings, s.now), nil
}

// addressed returns an execution's command under the id of the form that runs, and takes note of that. command is what
// bind made of payload, unless that is malformed.
func (s *Session) addressed(o *observed, p *prepared, payload, command []byte, malformed bool) []byte {
	if malformed {
		p.runs = p.original
		command = s.readdressed(payload, p)
	}
	p.cursor, p.runs = nil, p.id
	switch {
	case p.rewritten && !o.rewritten:
		p.runs = p.original
	case !p.rewritten && p.original != 0:
		p.runs = p.original
		command = s.readdressed(command, p)
	case p.fresh:
		p.fresh, p.runs = false, p.filled
		command = s.readdressed(payload, p)
	}
	return command
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
// run, and the parameter as it has it. It says whether there is such a statement yet.
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
	case !p.rewritten && p.original != 0:
		id = p.original
	case !p.rewritten:
	case s.leavesPrepared(p).IsZero():
		for _, h := range p.plan.Upstream.Hidden {
			if h.Index <= index {
				index++
			}
		}
	case p.original == 0:
		return false
	default:
		id = p.original
	}
	binary.LittleEndian.PutUint32(payload[1:], id)
	binary.LittleEndian.PutUint16(payload[5:], uint16(index))
	return true
}

func (s *Session) closeStatement(payload []byte) {
	id, p := s.statementID(payload)
	if p != nil {
		s.unprepared(id)
		s.closeHidden(p, p.original)
		s.closeHidden(p, p.filled)
		if p.companion != nil {
			s.closeHidden(p, p.companion.id)
		}
	}
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
}

func (s *Session) resetStatement(payload []byte) {
	_, p := s.statementID(payload)
	if p != nil {
		clear(p.long)
		payload = s.readdressed(payload, p)
	}
	s.send(&exchange{visible: true, read: (*Session).singleReply}, payload)
}

// readdressed returns a command under the id of the statement that was executed last in the place of p.
func (s *Session) readdressed(payload []byte, p *prepared) []byte {
	if p.runs == 0 {
		return payload
	}
	s.scratch = append(s.scratch[:0], payload...)
	binary.LittleEndian.PutUint32(s.scratch[1:], p.runs)
	return s.scratch
}
