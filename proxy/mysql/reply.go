package mysql

import (
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// A reply is what is known of a command's reply, as far as that has come. While state is at definitions, left of fields
// are still to come; ok, err and failed hold once the reply is over, and of several results for the last one.
type reply struct {
	state   replyState
	fields  int    // how many definitions of the current kind there are in all
	left    int    // and how many are still to come
	columns int    // COM_STMT_PREPARE: how many column definitions follow those of the parameters
	binary  bool   // rows are binary
	types   []byte // of the columns, where values of binary rows are looked at
	// cursor says that the client asks for a cursor, so that the rows may come by COM_STMT_FETCH.
	cursor bool
	rows   uint64
	ok     okPacket // the latest OK or EOF
	err    serverError
	failed bool
	// leftTxn says that the transaction was over before the last result of several.
	leftTxn bool
}

// replyState is where a reply with columns and rows stands.
type replyState uint8

const (
	stateFirst replyState = iota
	stateFields
	stateFieldsEnd
	stateParams
	stateParamsEnd
	stateRows
)

// opens reports whether a result is over where its rows would begin, since the client is to fetch them.
// The status alone does not tell: while a cursor of a procedure's own is open, the procedure's results
// have it too, and rows; they never are the last result.
func (r *reply) opens(end okPacket) bool {
	const both = gomysql.SERVER_STATUS_CURSOR_EXISTS | gomysql.SERVER_MORE_RESULTS_EXISTS
	return r.cursor && end.status&both == gomysql.SERVER_STATUS_CURSOR_EXISTS
}

// endsRows reports whether a packet that begins with first ends a result set's rows. A row can begin
// with 0xfe too, when its first value is 16 MiB long or longer; it is then longer than any end.
func endsRows(first byte, size int, caps uint32) bool {
	switch first {
	case markErr:
		return true
	case markEOF:
		return isEnd(size, caps)
	}
	return false
}

func isEnd(size int, caps uint32) bool {
	if caps&gomysql.CLIENT_DEPRECATE_EOF != 0 {
		return size < maxPayload
	}
	return size < 9
}

// endsWithOK reports whether the packet at the end of rows is OK, though it begins as EOF does.
func endsWithOK(payload []byte, caps uint32) bool {
	return caps&gomysql.CLIENT_DEPRECATE_EOF != 0 && len(payload) > 5
}

// parseEnd reads the packet that ends rows or definitions: OK or EOF, by what was agreed.
func parseEnd(payload []byte, caps uint32) (okPacket, error) {
	if endsWithOK(payload, caps) {
		return parseOK(payload, caps)
	}
	return parseEOF(payload)
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
