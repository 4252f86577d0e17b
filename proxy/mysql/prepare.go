package mysql

import (
	"encoding/binary"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

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
	x := &exchange{visible: true, prepared: p, grammar: prepareReply, purpose: preparePurpose}
	s.sendFor(x, s.scratch, 1+len(p.text))
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
			s.forward(x, 0, endWithoutAdded(payload, x.added.Sum()))
		}
		return x.columnsNext(), nil
	case stateFields:
		if x.left > x.hidden && !s.maskPrepared(x, payload) {
			s.forward(x, 0, payload)
		}
		if x.left--; x.left > 0 {
			return false, nil
		}
		s.releasePrepared(x)
		x.state = stateFieldsEnd
		return deprecated, nil
	default:
		if x.fields > x.hidden+x.masked {
			s.forward(x, 0, endWithoutAdded(payload, x.added.Sum()))
		}
		return true, nil
	}
}

// releasePrepared lets the reply of COM_STMT_PREPARE go on once its columns are known, with their number.
func (s *Session) releasePrepared(x *exchange) {
	if s.holdingHead {
		shown := s.toClient[x.mask.from+headerBytes+5:]
		binary.LittleEndian.PutUint16(shown, uint16(x.columns-x.hidden-x.masked))
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
		return false, fmt.Errorf("%w: a prepared statement with %d parameters and %d columns",
			errUnexpected, params, x.columns)
	}
	p.long = make([]bool, p.params)
	binary.LittleEndian.PutUint16(b[5:], uint16(x.columns-x.hidden))
	binary.LittleEndian.PutUint16(b[7:], uint16(p.params))
	x.added = s.conditions.addedBy(p.plan, p.rewritten)
	x.ok.warnings = binary.LittleEndian.Uint16(b[10:])
	x.ok.warnings -= min(uint16(x.added.Sum()), x.ok.warnings)
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

// maskPrepared reports whether a definition of a prepared statement's column is of one that the client does not see,
// and takes note of a plan that does not know of it. seen is how many there were before.
func (s *Session) maskPrepared(x *exchange, definition []byte) bool {
	if !x.prepared.rewritten || !s.isOwn(x, definition) {
		return false
	}
	x.masked++
	x.prepared.masked = append(x.prepared.masked, x.fields-x.left)
	if x.masked == x.carries+1 && s.dialect != sqlmysql.TiDB {
		s.misplanned(x.prepared.plan)
	}
	return true
}

func (s *Session) prepareDone(x *exchange) error {
	p := x.prepared
	switch {
	case x.retry:
		s.refuse(&pendingStatement{plan: p.plan}, x.err)
		p.rewritten = false
		s.sendPrepare(p)
	case x.failed:
		s.prepared.last = 0
		s.conditions.take(&x.reply, nil, x.added)
	default:
		s.prepared.add(p)
		s.conditions.take(&x.reply, nil, x.added)
	}
	s.counts.rowCountGone = true
	return nil
}

// prepareOriginal prepares the client's own text as a variant of the rewritten one, which the client does not see.
func (s *Session) prepareOriginal(p *prepared) {
	now := s.plan(p.text)
	hidden := &prepared{text: p.text, plan: now}
	s.closeVariant(p, p.originalID)
	p.plain = now.Upstream.Plain
	s.counts.rowCountGone = true
	s.send(&exchange{prepared: hidden, grammar: prepareReply, done: func(x *exchange) error {
		p.originalID, p.refusal = hidden.id, nil
		if x.failed {
			p.originalID, p.refusal = p.id, &x.err
		}
		return nil
	}}, append([]byte{gomysql.COM_STMT_PREPARE}, hidden.ownText()...))
}

// prepareFilled prepares the client's text with the values that ROW_COUNT() and FOUND_ROWS() have for the
// client, unseen by it.
func (s *Session) prepareFilled(p *prepared) {
	s.closeVariant(p, p.filledID)
	var values sqlmysql.Values
	s.counts.fill(&values)
	values.Casts = s.dialect == sqlmysql.TiDB
	hidden := &prepared{plan: p.plan}
	s.send(&exchange{prepared: hidden, grammar: prepareReply, done: func(x *exchange) error {
		p.filledUnused, p.filledID = true, hidden.id
		if x.failed {
			p.filledID = p.id
		}
		return nil
	}}, p.plan.Append([]byte{gomysql.COM_STMT_PREPARE}, func(b []byte, h sqlmysql.Hole, ordinal int) []byte {
		if h != sqlmysql.RowCountHole && h != sqlmysql.FoundRowsHole {
			return sqlmysql.AppendPlaceholder(b, h, ordinal)
		}
		return sqlmysql.AppendHole(b, h, ordinal, &values)
	}))
}

// closeVariant closes a variant of p, if there is one.
func (s *Session) closeVariant(p *prepared, id uint32) {
	if id != 0 && id != p.id {
		s.toServer, _ = appendPacket(s.toServer, 0,
			binary.LittleEndian.AppendUint32([]byte{gomysql.COM_STMT_CLOSE}, id))
	}
}

// plainChanged reports whether a statement that was prepared as the client's own text would mean another by
// now: the columns that stars stand for are not those that they were.
func (s *Session) plainChanged(p *prepared) bool {
	return p.plain != "" && s.plan(p.text).Upstream.Plain != p.plain
}

func (s *Session) closeStatement(payload []byte) {
	id, p := s.statementID(payload)
	if p != nil {
		s.prepared.remove(id)
		s.closeVariant(p, p.originalID)
		s.closeVariant(p, p.filledID)
		if p.companion != nil {
			s.closeVariant(p, p.companion.id)
		}
	}
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
}
