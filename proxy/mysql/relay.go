package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
)

// singleReply reads a reply of one packet: OK, EOF or ERR.
func (s *Session) singleReply(x *exchange, seq byte, payload []byte) (bool, error) {
	var err error
	switch payload[0] {
	case markErr:
		x.failed = true
		x.err, err = parseErr(payload)
	case markOK:
		x.ok, err = parseOK(payload, s.caps)
		if err == nil && x.added.Sum() > 0 {
			payload = withoutAdded(payload, &x.ok, x.added.Sum())
		}
		s.txn.follow(x.ok.status)
	case markEOF:
		x.ok, err = parseEnd(payload, s.caps)
		s.txn.follow(x.ok.status)
	}
	s.forward(x, seq, payload)
	return true, err
}

// stringReply reads the reply of COM_STATISTICS: a packet that is a text.
func (s *Session) stringReply(x *exchange, seq byte, payload []byte) (bool, error) {
	s.forward(x, seq, payload)
	return true, nil
}

// fieldListReply reads the reply of COM_FIELD_LIST: definitions until EOF. It lists invisible columns
// too; isotap's are left out.
func (s *Session) fieldListReply(x *exchange, seq byte, payload []byte) (bool, error) {
	if !x.renumber {
		x.renumber, x.seq = true, seq
	}
	last := payload[0] == markErr || payload[0] == markEOF && isEnd(len(payload), s.caps)
	if last || !s.watches() || !isotapColumn(payload) {
		s.forward(x, seq, payload)
	}
	return last, nil
}

// queryReply reads the reply of COM_QUERY and COM_STMT_EXECUTE: OK, ERR, a request for a file, or
// result sets, one after the other while the status says that more follow.
func (s *Session) queryReply(x *exchange, seq byte, payload []byte) (bool, error) {
	switch x.state {
	case stateFirst:
		return s.firstPacket(x, seq, payload)
	case stateFields:
		return s.fieldPacket(x, seq, payload)
	case stateFieldsEnd:
		return s.fieldsEnd(x, seq, payload)
	default:
		return s.rowPacket(x, seq, payload)
	}
}

func (s *Session) firstPacket(x *exchange, seq byte, payload []byte) (bool, error) {
	switch payload[0] {
	case markErr:
		return true, s.replyError(x, seq, payload)
	case markOK:
		ok, err := parseOK(payload, s.caps)
		if err != nil {
			return false, err
		}
		if x.added.Sum() > 0 {
			payload = withoutAdded(payload, &ok, x.added.Sum())
		}
		s.forward(x, seq, x.continued(payload, true))
		return s.resultEnd(x, ok), nil
	case markInfile:
		s.forward(x, seq, payload)
		switch {
		case s.phase == phaseClosing: // there is nobody left who has the file
			s.lostServer()
			s.phase = phaseClosed
		case x.visible:
			s.phase = phaseInfile
		}
		return false, nil
	}
	r := reader{b: payload}
	n, _ := r.lenenc()
	if r.err != nil || n == 0 || n > 1<<16 {
		return false, fmt.Errorf("parse column count: %w", errMalformed)
	}
	if int(n) < x.hidden+x.carries || x.okInstead && int(n) != x.hidden {
		return false, fmt.Errorf("%w: %d columns where isotap alone asked for %d", errUnexpected, n, x.hidden)
	}
	x.fields, x.left, x.state, x.types = int(n), int(n), stateFields, x.types[:0]
	x.mask = columnMask{}
	if s.masks(x) {
		s.holdHead(x)
	}
	if !x.okInstead {
		s.forward(x, seq, appendLenenc(nil, n-uint64(x.hidden)))
	}
	return false, nil
}

func (s *Session) fieldPacket(x *exchange, seq byte, payload []byte) (bool, error) {
	masked := s.masks(x)
	shown := x.left > x.hidden
	if masked {
		shown = s.maskDefinition(x, payload)
	}
	switch {
	case !shown:
		x.renumber = true
	case !x.okInstead:
		s.forward(x, seq, payload)
		if !x.renumber {
			x.seq = seq + 1
		}
	}
	if x.binary && (x.hidden > 0 || masked || x.describes == rewrite.Listing) {
		typ, err := columnType(payload)
		if err != nil {
			return false, err
		}
		x.types = append(x.types, typ)
	}
	if x.left--; x.left > 0 {
		return false, nil
	}
	if masked {
		s.releaseHead(x)
	}
	x.state = stateFieldsEnd
	if s.caps&gomysql.CLIENT_DEPRECATE_EOF != 0 {
		x.state = stateRows
	}
	return false, nil
}

func (s *Session) fieldsEnd(x *exchange, seq byte, payload []byte) (bool, error) {
	end, err := parseEOF(payload)
	if err != nil {
		return false, err
	}
	if x.added.Sum() > 0 {
		payload = endRowsWithoutAdded(payload, &end, x.added.Sum(), s.caps)
	}
	if !x.okInstead {
		s.forward(x, seq, x.continued(payload, false))
	}
	x.state = stateRows
	if x.opens(end) {
		return s.resultEnd(x, end), nil
	}
	return false, nil
}

func (s *Session) rowPacket(x *exchange, seq byte, payload []byte) (bool, error) {
	switch {
	case payload[0] == markErr:
		return true, s.replyError(x, seq, payload)
	case payload[0] == markEOF && isEnd(len(payload), s.caps):
		end, err := parseEnd(payload, s.caps)
		if err != nil {
			return false, err
		}
		if x.added.Sum() > 0 {
			payload = endRowsWithoutAdded(payload, &end, x.added.Sum(), s.caps)
		}
		for _, row := range x.rowsInstead {
			s.forward(x, seq, row)
		}
		if x.okInstead {
			s.forwardCount(x, end)
		} else {
			s.forward(x, seq, x.continued(payload, endsWithOK(payload, s.caps)))
		}
		return s.resultEnd(x, end), nil
	}
	x.rows++
	if x.rowsInstead != nil {
		return false, nil
	}
	payload, err := x.mask.maskRow(payload, &x.reply)
	if err != nil {
		return false, err
	}
	switch {
	case x.row != nil:
		return false, x.row(payload)
	case x.hidden > 0:
		trimmed, err := s.identities.takeRow(payload, &x.reply, x.hidden, x.stmt.plan.Result.Shown(), s.scratch)
		if err != nil {
			return false, err
		}
		if x.binary {
			s.scratch = trimmed
		}
		if x.okInstead {
			return false, nil
		}
		payload = trimmed
	case x.describes != rewrite.Unchanged:
		row, err := maskDescription(payload, x.describes, &x.reply)
		if row == nil {
			return false, err
		}
		payload = row
	}
	s.forward(x, seq, payload)
	return false, nil
}

// forwardCount gives the client the OK packet that it expects where the result set was isotap's own.
// Behind the counts stands what the server wrote at the end of the rows.
func (s *Session) forwardCount(x *exchange, end okPacket) {
	b := appendLenenc([]byte{markOK}, x.rows)
	b = append(b, 0, byte(end.status), byte(end.status>>8), byte(end.warnings), byte(end.warnings>>8))
	x.renumber, x.seq = true, x.first
	s.forward(x, 0, x.continued(append(b, end.tail...), true))
}

// resultEnd takes the status at the end of a result, and reports whether the reply is over.
func (s *Session) resultEnd(x *exchange, ok okPacket) bool {
	x.ok = ok
	if ok.status&gomysql.SERVER_MORE_RESULTS_EXISTS == 0 {
		s.txn.follow(ok.status)
		return true
	}
	if s.txn.inTrans && ok.status&gomysql.SERVER_STATUS_IN_TRANS == 0 {
		x.leftTxn = true
	}
	x.state = stateFirst
	return false
}

// replyError takes the error that ends a reply. An error that only the rewriting can have caused does
// not reach the client: the original statement runs instead.
func (s *Session) replyError(x *exchange, seq byte, payload []byte) error {
	var err error
	x.failed = true
	x.err, err = parseErr(payload)
	if err != nil {
		return err
	}
	if x.stmt != nil && x.stmt.rewritten && !x.begun && !x.hasLongData && refusesRewriting(x.err.code) {
		x.retry = true
		return nil
	}
	if x.more && !x.begun && x.err.code == gomysql.ER_PARSE_ERROR {
		return nil // see partDone
	}
	if x.okInstead && !x.begun {
		x.renumber, x.seq = true, x.first
	}
	s.forward(x, seq, payload)
	return nil
}

// forward sends a reply packet on to the client, if the client is to see the reply.
func (s *Session) forward(x *exchange, seq byte, payload []byte) {
	if !x.visible {
		return
	}
	x.begun = true
	s.final = finalPacket{at: len(s.toClient), seq: seq, set: true}
	if x.renumber {
		s.final.seq = x.seq
		s.toClient, x.seq = appendPacket(s.toClient, x.seq, payload)
		return
	}
	s.toClient, _ = appendPacket(s.toClient, seq, payload)
}
