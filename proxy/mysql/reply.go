package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
)

// endsRows reports whether a packet that begins with first ends a result set's rows. A row can begin
// with 0xfe too, when its first value is 16 MiB long or longer; it is then longer than any end.
func (s *Session) endsRows(first byte, size int) bool {
	switch first {
	case markErr:
		return true
	case markEOF:
		return s.isEnd(size)
	}
	return false
}

func (s *Session) isEnd(size int) bool {
	if s.caps&gomysql.CLIENT_DEPRECATE_EOF != 0 {
		return size < maxPayload
	}
	return size < 9
}

// endsWithOK reports whether the packet at the end of rows is OK, though it begins as EOF does.
func (s *Session) endsWithOK(payload []byte) bool {
	return s.caps&gomysql.CLIENT_DEPRECATE_EOF != 0 && len(payload) > 5
}

// parseEnd reads the packet that ends rows or definitions: OK or EOF, by what was agreed.
func (s *Session) parseEnd(payload []byte) (okPacket, error) {
	if s.endsWithOK(payload) {
		return parseOK(payload, s.caps)
	}
	return parseEOF(payload)
}

// singleReply reads a reply of one packet: OK, EOF or ERR.
func (s *Session) singleReply(x *exchange, seq byte, payload []byte) (bool, error) {
	s.forward(x, seq, payload)
	var err error
	switch payload[0] {
	case markErr:
		x.failed = true
		x.err, err = parseErr(payload)
	case markOK:
		x.ok, err = parseOK(payload, s.caps)
		s.txn.follow(x.ok.status)
	case markEOF:
		x.ok, err = s.parseEnd(payload)
		s.txn.follow(x.ok.status)
	}
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
	last := payload[0] == markErr || payload[0] == markEOF && s.isEnd(len(payload))
	if last || !s.watches() || !isotapColumn(payload) {
		s.forward(x, seq, payload)
	}
	return last, nil
}

// isotapColumn reports whether a column definition is that of an auxiliary column.
func isotapColumn(definition []byte) bool {
	r := reader{b: definition}
	for range 5 { // catalog, schema, table, original table, name
		r.lenencBytes()
	}
	name := string(r.lenencBytes())
	return name == rewrite.RowIDColumn || name == rewrite.WListColumn
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
		if x.added > 0 {
			payload = withoutAdded(payload, &ok, x.added)
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
	if int(n) < x.hidden+x.carries || x.swallow && int(n) != x.hidden {
		return false, fmt.Errorf("%w: %d columns where isotap alone asked for %d", errUnexpected, n, x.hidden)
	}
	x.fields, x.left, x.state, x.types = int(n), int(n), stateFields, x.types[:0]
	x.conceal = concealment{}
	if s.conceals(x) {
		s.holdHead(x)
	}
	if !x.swallow {
		s.forward(x, seq, appendLenenc(nil, n-uint64(x.hidden)))
	}
	return false, nil
}

func (s *Session) fieldPacket(x *exchange, seq byte, payload []byte) (bool, error) {
	conceals := s.conceals(x)
	shown := x.left > x.hidden
	if conceals {
		shown = s.look(x, payload)
	}
	switch {
	case !shown:
		x.renumber = true
	case !x.swallow:
		s.forward(x, seq, payload)
		if !x.renumber {
			x.seq = seq + 1
		}
	}
	if x.binary && (x.hidden > 0 || conceals || x.disguise == rewrite.Listing) {
		typ, err := columnType(payload)
		if err != nil {
			return false, err
		}
		x.types = append(x.types, typ)
	}
	if x.left--; x.left > 0 {
		return false, nil
	}
	if conceals {
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
	if !x.swallow {
		s.forward(x, seq, x.continued(payload, false))
	}
	x.state = stateRows
	if x.opens(end) {
		return s.resultEnd(x, end), nil
	}
	return false, nil
}

// opens reports whether a result is over where its rows would begin, since the client is to fetch them.
// The status alone does not tell: while a cursor of a procedure's own is open, the procedure's results
// have it too, and rows; they never are the last result.
func (x *exchange) opens(end okPacket) bool {
	const both = gomysql.SERVER_STATUS_CURSOR_EXISTS | gomysql.SERVER_MORE_RESULTS_EXISTS
	return x.cursor && end.status&both == gomysql.SERVER_STATUS_CURSOR_EXISTS
}

func (s *Session) rowPacket(x *exchange, seq byte, payload []byte) (bool, error) {
	switch {
	case payload[0] == markErr:
		return true, s.replyError(x, seq, payload)
	case payload[0] == markEOF && s.isEnd(len(payload)):
		end, err := s.parseEnd(payload)
		if err != nil {
			return false, err
		}
		for _, row := range x.instead {
			s.forward(x, seq, row)
		}
		if x.swallow {
			s.forwardCount(x, end)
		} else {
			s.forward(x, seq, x.continued(payload, s.endsWithOK(payload)))
		}
		return s.resultEnd(x, end), nil
	}
	x.rows++
	if x.instead != nil {
		return false, nil
	}
	payload, err := x.conceal.cut(x, payload)
	if err != nil {
		return false, err
	}
	switch {
	case x.row != nil:
		return false, x.row(payload)
	case x.hidden > 0:
		return false, s.trimRow(x, payload)
	case x.disguise != rewrite.Unchanged:
		row, err := x.disguised(payload)
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

// resultEnd takes the status at the end of a result, and says whether the reply is over.
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
	if x.stmt != nil && x.stmt.rewritten && !x.begun && !x.long && refusesRewriting(x.err.code) {
		x.retry = true
		return nil
	}
	if x.more && !x.begun && x.err.code == gomysql.ER_PARSE_ERROR {
		return nil // see partDone
	}
	if x.swallow && !x.begun {
		x.renumber, x.seq = true, x.first
	}
	s.forward(x, seq, payload)
	return nil
}

// columnType reads a column's type out of its definition
// (https://mariadb.com/kb/en/result-set-packets/#column-definition-packet).
func columnType(payload []byte) (byte, error) {
	r := reader{b: payload}
	for range 6 { // catalog, schema, table, original table, name, original name
		r.lenencBytes()
	}
	fixed := r.lenencBytes()
	if len(fixed) < 10 {
		// MariaDB's extended metadata stands before the fixed part.
		fixed = r.lenencBytes()
	}
	if r.err != nil || len(fixed) < 7 {
		return 0, fmt.Errorf("parse column definition: %w", errMalformed)
	}
	return fixed[6], nil
}

// refusesRewriting reports whether an error can come from what isotap added to a statement rather than
// from the statement itself. The server finds all of these before it touches a row.
func refusesRewriting(code uint16) bool {
	switch code {
	case gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_PARSE_ERROR, gomysql.ER_WRONG_VALUE_COUNT_ON_ROW,
		gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_PS_MANY_PARAM,
		gomysql.ER_NON_UNIQ_ERROR, gomysql.ER_UNKNOWN_TABLE, gomysql.ER_BAD_TABLE_ERROR, gomysql.ER_TOO_BIG_SELECT,
		gomysql.ER_CANT_AGGREGATE_2COLLATIONS, gomysql.ER_CANT_AGGREGATE_NCOLLATIONS, gomysql.ER_TOO_BIG_ROWSIZE,
		gomysql.ER_TOO_MANY_FIELDS, gomysql.ER_FIELD_SPECIFIED_TWICE, gomysql.ER_DUP_FIELDNAME,
		gomysql.ER_NOT_SUPPORTED_YET, gomysql.ER_ILLEGAL_HA, gomysql.ER_UNSUPPORTED_EXTENSION, gomysql.ER_SYNTAX_ERROR,
		gomysql.ER_VIEW_INVALID, gomysql.ER_NONUPDATEABLE_COLUMN, gomysql.ER_WRONG_FIELD_WITH_GROUP,
		gomysql.ER_MIX_OF_GROUP_FUNC_AND_FIELDS, gomysql.ER_SP_DOES_NOT_EXIST, gomysql.ER_INVALID_CHARACTER_STRING:
		return true
	}
	return false
}
