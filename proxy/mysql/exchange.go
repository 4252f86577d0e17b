package mysql

import (
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// An exchange is one command sent to the server and the reply that is due. Pending exchanges are answered in order.
//
// What the client is to get is set before it is sent, and what is hidden from it before the first row; state, fields
// and the like follow the reply.
type exchange struct {
	grammar grammar
	purpose purpose
	// done runs after the last packet. It may send further exchanges.
	done func(x *exchange) error
	// row is given the rows of an exchange that is isotap's own.
	row func(payload []byte) error

	visible bool // the client gets the reply
	// stmt is the client's statement that the exchange runs; nil for everything else.
	stmt *pendingStatement

	reply

	hidden  int // columns at the end that the client does not see
	carries int // columns before these that the client does not see either, known by their names
	// describes is the kind of reply of a statement that describes tables; rewrite.Unchanged for all others.
	describes rewrite.Reply
	mask      columnMask
	masked    int  // COM_STMT_PREPARE: columns of isotap's among those that the plan shows
	okInstead bool // the client gets an OK packet, not the result set
	// renumber says that the client gets the reply under other packet numbers than the server sent it;
	// seq is then the number of the client's next one.
	renumber bool
	seq      byte
	// first is the number that the client expects on the reply's first packet. It goes on from those of
	// the command, which may have taken another number of packets than what went upstream.
	first byte
	// added is how many warnings of isotap's the server counts in the reply.
	added sqlmysql.Deprecated
	// rowsInstead are the rows that the client gets, not the server's; nil: it gets the server's.
	rowsInstead [][]byte
	// part says that the statement is one of several of a text, and more that the client gets other replies behind it.
	part, more bool
	// retry says that the statement as rewritten was refused, and the original is to be run.
	retry bool
	// begun says that something of the reply has gone to the client.
	begun bool
	// companionOf is the client's statement that the exchange is the companion of.
	companionOf *pendingStatement
	// refusal is what the client gets in the place of the reply, under refusedReply.
	refusal *serverError
	// settles is the plan of the failed statement whose effect on the transaction the exchange finds out.
	settles *sqlmysql.Plan
	// hasLongData says that a parameter came by COM_STMT_SEND_LONG_DATA: the statement cannot be run again.
	hasLongData bool
	// prepared is the statement that COM_STMT_PREPARE makes or that is executed or fetched from.
	prepared *prepared
}

// A grammar is how a reply is read ("Command Phase" in the protocol's documentation).
type grammar uint8

const (
	okReply        grammar = iota // one packet: OK, EOF or ERR
	textReply                     // one packet, a text: COM_STATISTICS
	fieldListReply                // definitions until EOF: COM_FIELD_LIST
	resultReply                   // OK, ERR, a request for a file, or results: COM_QUERY, COM_STMT_EXECUTE
	prepareReply                  // PREPARE_OK and definitions: COM_STMT_PREPARE
	refusedReply                  // one packet, in whose place the client gets an error
)

// A purpose is what an exchange is for, and says what follows on the last packet of its reply.
type purpose uint8

const (
	otherPurpose     purpose = iota // what done says
	statementPurpose                // it runs a statement of the client's
	preparePurpose                  // it prepares one
	fetchPurpose                    // it reads on from a cursor
	companionPurpose                // it runs a companion of isotap's own
	commandPurpose                  // it runs a command that is no statement
)

// pending are the exchanges whose replies are due, oldest first. A server answers in that order: only the first one's
// reply can be under way.
type pending struct{ queue []*exchange }

// add adds an exchange that is sent.
func (p *pending) add(x *exchange) { p.queue = append(p.queue, x) }

// none reports whether no reply is due.
func (p *pending) none() bool { return len(p.queue) == 0 }

// first returns the exchange whose reply comes next; nil when none is due.
func (p *pending) first() *exchange {
	if len(p.queue) == 0 {
		return nil
	}
	return p.queue[0]
}

// answered is called when the first one's reply is over.
func (p *pending) answered() { p.queue = slices.Delete(p.queue, 0, 1) }

// drop forgets all of them: no reply will come.
func (p *pending) drop() { p.queue = nil }

// nextSeq returns the number of the packet that a client expects next, 0 where it waits for no reply. within says that
// some of a reply has gone to the client.
func (p *pending) nextSeq() (seq byte, within bool) {
	for _, x := range p.queue {
		if x.visible && x.begun {
			return 0, true
		}
		if x.visible {
			seq = max(x.first, 1)
		}
	}
	return seq, false
}

// passesRows reports whether the exchange's rows go to the client as they are.
func (x *exchange) passesRows() bool {
	return x.state == stateRows && x.visible && x.hidden == 0 && !x.okInstead && !x.renumber && x.rowsInstead == nil
}

// show makes rows the exchange's answer; nil leaves the server's.
func (x *exchange) show(rows [][]byte) {
	if rows != nil {
		x.rowsInstead, x.renumber = rows, true
	}
}

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
		gomysql.ER_MIX_OF_GROUP_FUNC_AND_FIELDS, gomysql.ER_SP_DOES_NOT_EXIST, gomysql.ER_INVALID_CHARACTER_STRING,
		gomysql.ER_TABLE_NOT_LOCKED: // under LOCK TABLES that isotap did not see
		return true
	}
	return false
}

// send queues an exchange whose command is payload.
func (s *Session) send(x *exchange, payload []byte) {
	s.toServer, _ = appendPacket(s.toServer, 0, payload)
	s.pending.add(x)
}

// sendFor queues an exchange whose command is payload where the client sent one of asked bytes.
func (s *Session) sendFor(x *exchange, payload []byte, asked int) {
	x.first = packets(asked)
	if x.part {
		x.first = s.multi.seq
	}
	if x.renumber || packets(len(payload)) != x.first {
		x.renumber, x.seq = true, x.first
	}
	s.send(x, payload)
}

// sendQuery queues a query of isotap's own.
func (s *Session) sendQuery(x *exchange, sql string) {
	x.grammar = resultReply
	s.send(x, append([]byte{gomysql.COM_QUERY}, sql...))
}

// replyPacket gives a packet to the exchange that it answers, and goes on with the waiting command
// when that was the last one.
func (s *Session) replyPacket(seq byte, payload []byte) error {
	x := s.pending.first()
	if x == nil {
		return s.unsolicited(seq, payload)
	}
	done, err := s.readReply(x, seq, payload)
	if err != nil || !done {
		return err
	}
	s.keepLastError(x, payload)
	s.pending.answered()
	if err := s.replyDone(x); err != nil {
		return err
	}
	return s.goOn()
}

// readReply takes one packet of a reply, and reports whether it was the last.
func (s *Session) readReply(x *exchange, seq byte, payload []byte) (done bool, err error) {
	switch x.grammar {
	case okReply:
		return s.singleReply(x, seq, payload)
	case textReply:
		return s.stringReply(x, seq, payload)
	case fieldListReply:
		return s.fieldListReply(x, seq, payload)
	case prepareReply:
		return s.prepareReply(x, seq, payload)
	case refusedReply:
		return true, s.replyError(x, 1, appendErr(nil, *x.refusal))
	}
	return s.queryReply(x, seq, payload)
}

// replyDone does what follows on a reply.
func (s *Session) replyDone(x *exchange) error {
	switch x.purpose {
	case statementPurpose:
		return s.statementDone(x)
	case preparePurpose:
		return s.prepareDone(x)
	case fetchPurpose:
		return s.fetchDone(x)
	case companionPurpose:
		return s.companionDone(x)
	case commandPurpose:
		return s.commandDone(x)
	}
	if x.done != nil {
		return x.done(x)
	}
	return nil
}

// goOn continues when no exchange is in flight: with the command that waited for them, or with the
// end of a session whose client is gone.
func (s *Session) goOn() error {
	if !s.pending.none() {
		return nil
	}
	if s.multi != nil {
		s.nextPart()
		return nil
	}
	if s.phase == phaseClosing {
		s.close()
		return nil
	}
	if s.command == nil {
		return nil
	}
	payload := s.command
	s.command = nil
	return s.dispatch(payload)
}

// unsolicited is a packet that answers nothing: the server says why it ends the session.
func (s *Session) unsolicited(seq byte, payload []byte) error {
	if payload[0] != markErr {
		return fmt.Errorf("%w from the server: nothing was asked (it begins with 0x%02x)", errUnexpected, payload[0])
	}
	s.toClient, _ = appendPacket(s.toClient, seq, payload)
	return nil
}
