package mysql

import (
	"fmt"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/twin"
)

// What the session tells of its transactions to who plays twins (package proxy/twin). Nothing is, where nobody does.

// wideCollations are those of utf8mb4 and utf8mb3 that clients log in with: the charset of a session that is another's
// twin.
var wideCollations = map[byte]bool{33: true, 45: true, 46: true, 83: true, 192: true, 223: true, 224: true, 255: true}

// tellLogin tells who the client is, once that is settled.
func (s *Session) tellLogin() {
	if s.cfg.Twin == nil {
		return
	}
	s.cfg.Twin.LoggedIn(twin.Login{User: s.user, Connection: s.connection, Strange: !wideCollations[s.collation]})
}

// tellSends tells which statement is about to be sent.
func (s *Session) tellSends(o *pendingStatement) {
	if s.cfg.Twin != nil {
		s.tap.Reply(s.toClient) // what answered other commands
		st := twin.Statement{Kind: o.plan.Kind, Database: s.settings.env.Schema, Alone: s.multi == nil, Stmt: o.stmt,
			Autocommit: !s.txn.inTrans && s.txn.autocommit}
		if o.txn != nil {
			st.Level = o.txn.Level
		}
		if s.txn.inTrans {
			st.Txn = o.txn
		}
		s.cfg.Twin.Sends(st)
	}
}

// tellAnswered tells what a statement was answered.
func (s *Session) tellAnswered(o *pendingStatement, x *exchange) {
	raw := s.tap.Reply(s.toClient)
	if s.cfg.Twin == nil {
		return
	}
	st := o.stmt
	st.Kind = o.plan.RecordedKind() // also of one that is not recorded
	a := twin.Answer{Stmt: &st, Text: o.stmt.Text, Block: s.txn.inTrans,
		Changes: !x.failed && o.plan.Session.Changes}
	if o.txn != nil {
		a.Txn = o.txn.ID
	}
	if a.Text == "" && o.plan.Params == 0 {
		a.Text = o.plan.Text
	}
	if !x.failed && raw != nil && s.multi == nil {
		a.Reply = s.replyOf(raw, x.binary)
	}
	s.cfg.Twin.Answered(a)
}

// tellEnd tells that a transaction is over by a statement, and how.
func (s *Session) tellEnd(o *pendingStatement, x *exchange, ended *history.Txn) {
	switch {
	case s.cfg.Twin == nil:
	case ended != nil:
		s.cfg.Twin.Ended(ended.Status)
	case o.plan.Kind == history.Commit && x.failed:
		s.cfg.Twin.Ended(history.Indeterminate) // the server is asked, and then the client hears of it
	case o.wasInTrans && !s.txn.inTrans:
		s.cfg.Twin.Ended(history.Indeterminate)
	}
}

// replyOf reads what the client got, packet by packet; nil where it cannot be read.
func (s *Session) replyOf(raw []byte, binary bool) *twin.Reply {
	var packets [][]byte
	for len(raw) >= headerBytes {
		n := payloadLen(raw)
		if n == maxPayload || len(raw) < headerBytes+n || n == 0 {
			return nil
		}
		packets, raw = append(packets, raw[headerBytes:headerBytes+n]), raw[headerBytes+n:]
	}
	if len(packets) == 0 {
		return nil
	}
	if packets[0][0] == markOK {
		ok, err := parseOK(packets[0], s.caps)
		if err != nil || len(packets) > 1 {
			return nil
		}
		reply := &twin.Reply{Affected: ok.affected, InsertID: ok.lastInsertID}
		if matched, _, known := matchedRows(ok.info); known {
			reply.Affected = matched
		}
		return reply
	}
	reply, err := readResult(packets, binary, s.caps)
	if err != nil {
		return nil
	}
	return reply
}

// readResult reads a result with rows.
func readResult(packets [][]byte, binary bool, caps uint32) (*twin.Reply, error) {
	r := reader{b: packets[0]}
	n, _ := r.lenenc()
	columns := int(n)
	if r.err != nil || columns == 0 || columns > len(packets)-1 {
		return nil, errMalformed
	}
	result := &twin.Reply{}
	defined := make([]definedColumn, columns)
	for i := range defined {
		if err := defined[i].read(packets[1+i]); err != nil {
			return nil, err
		}
		result.Columns = append(result.Columns, defined[i].Column)
	}
	rows := packets[1+columns:]
	if caps&gomysql.CLIENT_DEPRECATE_EOF == 0 && len(rows) > 0 {
		rows = rows[1:] // the EOF behind the definitions
	}
	for i, payload := range rows {
		if endsRows(payload[0], len(payload), caps) {
			if i != len(rows)-1 || payload[0] == markErr {
				return nil, errMalformed // several results
			}
			return result, nil
		}
		row, err := readRow(payload, defined, binary)
		if err != nil {
			return nil, err
		}
		result.Rows = append(result.Rows, row)
	}
	return nil, errMalformed
}

// A definedColumn is a column as a result defines it.
type definedColumn struct {
	twin.Column
	unsigned bool
}

// read reads a column's definition (https://mariadb.com/kb/en/result-set-packets/#column-definition-packet).
func (c *definedColumn) read(payload []byte) error {
	r := reader{b: payload}
	r.lenencBytes() // catalog
	r.lenencBytes() // schema
	r.lenencBytes() // the table's alias
	c.Table, c.Name = string(r.lenencBytes()), string(r.lenencBytes())
	c.Origin = string(r.lenencBytes())
	fixed := r.lenencBytes()
	if len(fixed) < 10 { // MariaDB's extended metadata stands before it
		fixed = r.lenencBytes()
	}
	if r.err != nil || len(fixed) < 9 {
		return fmt.Errorf("parse column definition: %w", errMalformed)
	}
	c.Type = uint32(fixed[6])
	c.unsigned = fixed[7]&gomysql.UNSIGNED_FLAG != 0
	return nil
}

// readRow reads a row of either protocol.
func readRow(payload []byte, columns []definedColumn, binary bool) ([]twin.Value, error) {
	r := reader{b: payload}
	var nulls []byte
	if binary {
		r.uint8()
		nulls = r.bytes((len(columns) + 9) / 8)
		if r.err != nil {
			return nil, r.err
		}
	}
	row := make([]twin.Value, len(columns))
	for i := range columns {
		c := &columns[i]
		switch {
		case binary && isNull(nulls, i), !binary && r.pos < len(r.b) && r.b[r.pos] == lenencNull:
			row[i].Null = true
			if !binary {
				r.uint8()
			}
		case binary:
			row[i].Text = textOf(&r, byte(c.Type), c.unsigned)
		default:
			row[i].Text = string(r.lenencBytes())
		}
	}
	return row, r.err
}

// textOf reads a value of the binary protocol as the text protocol has it.
func textOf(r *reader, typ byte, unsigned bool) string {
	switch typ {
	case gomysql.MYSQL_TYPE_TINY, gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_YEAR, gomysql.MYSQL_TYPE_LONG,
		gomysql.MYSQL_TYPE_INT24, gomysql.MYSQL_TYPE_LONGLONG, gomysql.MYSQL_TYPE_FLOAT, gomysql.MYSQL_TYPE_DOUBLE:
		return formatBinary(r, typ, unsigned)
	case gomysql.MYSQL_TYPE_DATETIME, gomysql.MYSQL_TYPE_TIMESTAMP:
		text := strings.Trim(formatBinary(r, typ, unsigned), "'")
		if len(text) == len("0000-00-00") {
			text += " 00:00:00"
		}
		return text
	case gomysql.MYSQL_TYPE_DATE, gomysql.MYSQL_TYPE_TIME:
		return strings.Trim(formatBinary(r, typ, unsigned), "'")
	}
	return string(r.lenencBytes())
}
