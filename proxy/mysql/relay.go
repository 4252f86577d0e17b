package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"weak"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

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
		x.ok, err = parseEnd(payload, s.caps)
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
		trimmed, err := s.identities.takeRow(payload, &x.reply, x.hidden, x.stmt.plan.Result.Sources, s.scratch)
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

// masks reports whether isotap's columns can be among those of the exchange's result which the client is to see.
func (s *Session) masks(x *exchange) bool {
	return x.visible && !x.okInstead && (s.dialect == sqlmysql.TiDB || x.stmt != nil && x.stmt.rewritten)
}

// holdHead keeps the output back from here on, until releaseHead or dropHead.
func (s *Session) holdHead(x *exchange) {
	x.mask = columnMask{from: len(s.toClient)}
	s.holdingHead = true
}

// maskDefinition takes a column definition into the mask, and reports whether it goes into the head.
func (s *Session) maskDefinition(x *exchange, definition []byte) bool {
	c := &x.mask
	atEnd := x.left <= x.hidden
	if !atEnd && s.isOwn(x, definition) {
		c.columns = append(c.columns, x.fields-x.left)
		c.wrong = c.wrong || len(c.columns) > x.carries && s.dialect != sqlmysql.TiDB
	}
	if !atEnd || !c.wrong {
		return !atEnd
	}
	// Where the plan is wrong, its columns need not be those at the end.
	if s.isOwn(x, definition) {
		c.columns = append(c.columns, x.fields-x.left)
	} else {
		c.shifted = true
	}
	return true
}

// releaseHead lets the head go on once it is complete, less isotap's columns.
func (s *Session) releaseHead(x *exchange) {
	s.holdingHead = false
	c := &x.mask
	if c.wrong && !c.shifted { // the columns at the end are where the plan has them
		c.columns = slices.DeleteFunc(c.columns, func(i int) bool { return i >= x.fields-x.hidden })
	} else if c.shifted {
		x.hidden = 0
	}
	if len(c.columns) > 0 {
		s.cutHead(x)
	}
	if c.wrong {
		s.misplanned(x.stmt.plan)
	}
}

// cutHead writes the head anew, without the columns that the client does not see.
func (s *Session) cutHead(x *exchange) {
	c := &x.mask
	head := bytes.Clone(s.toClient[c.from:])
	s.toClient = s.toClient[:c.from]
	seq := head[headerBytes-1]
	for i := -1; len(head) >= headerBytes; i++ {
		size := headerBytes + payloadLen(head)
		payload := head[headerBytes:size]
		head = head[size:]
		switch {
		case i < 0:
			payload = appendLenenc(nil, uint64(x.fields-x.hidden-len(c.columns)))
		case c.hides(i) || i >= x.fields-x.hidden:
			continue
		}
		s.toClient, seq = appendPacket(s.toClient, seq, payload)
	}
	x.renumber, x.seq = true, seq
	x.fields -= len(c.columns)
	c.types, x.types = x.types, nil
	for i, t := range c.types {
		if !c.hides(i) {
			x.types = append(x.types, t)
		}
	}
}

// dropHead forgets a head that is not complete, of a session that ends: isotap's columns may stand in it.
func (s *Session) dropHead() {
	if x := s.pending.first(); s.holdingHead && x != nil {
		s.toClient = s.toClient[:x.mask.from]
	}
	s.holdingHead = false
}

// The last line of defense: whatever a plan says, no column that isotap has named reaches the client. Where a rewritten
// statement's result has one that the plan does not hide, the plan is wrong. The column is taken out of the definitions
// and out of the rows, and statements of that shape go as the client wrote them from then on, in all sessions.

// isOwn reports whether a column definition is that of a column that isotap has put into the result. A client may ask
// for isotap's columns by their names: in the result of a statement in whose text they stand they are the client's own.
func (s *Session) isOwn(x *exchange, definition []byte) bool {
	r := reader{b: definition}
	for range 4 { // catalog, schema, table, original table
		r.lenencBytes()
	}
	name, original := r.lenencBytes(), r.lenencBytes()
	if bytes.HasPrefix(name, carriedPrefix) {
		return true
	}
	if s.dialect == sqlmysql.TiDB {
		// Original names may be missing: TiDB leaves them out when it reads a row by its key.
		return string(name) == rewrite.RowIDColumn || string(name) == rewrite.WListColumn
	}
	// An expression's name is its text.
	if !holdsColumn(name) && !(len(original) > 0 && holdsColumn(original)) && !bytes.Contains(name, carriedPrefix) {
		return false
	}
	return !holdsColumn(bytes.ToLower(s.clientText(x)))
}

// clientText is the text of the statement as the client wrote it, whose reply the exchange reads.
func (s *Session) clientText(x *exchange) []byte {
	switch {
	case x.prepared != nil:
		return x.prepared.text
	case len(s.original) > 0:
		return s.original[1:]
	}
	return nil
}

// misplanned takes note of a plan that is wrong.
func (s *Session) misplanned(p *sqlmysql.Plan) {
	s.events = append(s.events, session.Event{Misplanned: true})
	if s.watches() && s.cfg.Planner.Misplanned(p.Shape) {
		s.note("a statement was planned wrong, and goes unobserved from now on; the client did not see the columns "+
			"that isotap added: %s", p.Shape)
	}
}

// A server without invisible columns (TiDB) would show isotap's to the client. The rewriter takes the
// stars out of statements (sqlmysql.Upstream.Plain); what it cannot read, the text that EXECUTE runs for one,
// may show the columns all the same, and then they are cut out of the result by their names. So are, on
// every server, the identities that a star of a rewritten statement carries (sqlmysql.Result.Carried), and whatever a
// plan that is wrong would show (see isOwn).

// A columnMask is which columns of a result are isotap's, beyond those at its end that the plan hides. The head of the
// result, the number of columns and their definitions, is held back until that is known: rows may be masked only then.
type columnMask struct {
	from    int    // where the head begins in the session's output
	columns []int  // that the client does not see, in ascending order
	types   []byte // of all columns, for binary rows
	// wrong says that the plan does not know of some of them, shifted that those at the end are not where it has them.
	wrong, shifted bool
}

func (c *columnMask) hides(column int) bool { return slices.Contains(c.columns, column) }

// maskRow returns a row without the columns that the client does not see.
func (c *columnMask) maskRow(row []byte, of *reply) ([]byte, error) {
	if len(c.columns) == 0 {
		return row, nil
	}
	cut := c.maskTextRow
	if of.binary {
		cut = c.maskBinaryRow
	}
	r := reader{b: row}
	out := cut(&r, of.fields+len(c.columns))
	if r.err != nil {
		return nil, fmt.Errorf("parse row: %w", r.err)
	}
	return out, nil
}

func (c *columnMask) maskTextRow(r *reader, fields int) []byte {
	var out []byte
	for i := range fields {
		from := r.pos
		r.lenencBytes()
		if !c.hides(i) && r.err == nil {
			out = append(out, r.b[from:r.pos]...)
		}
	}
	return out
}

func (c *columnMask) maskBinaryRow(r *reader, fields int) []byte {
	r.uint8()
	nulls := r.bytes((fields + 9) / 8)
	if r.err != nil {
		return nil
	}
	out := append([]byte{gomysql.OK_HEADER}, make([]byte, (fields-len(c.columns)+9)/8)...)
	kept := 0
	for i := range fields {
		from := r.pos
		null := isNull(nulls, i)
		if !null {
			skipBinary(r, c.types[i])
		}
		switch {
		case c.hides(i) || r.err != nil:
			continue
		case null:
			out[1+(kept+2)/8] |= 1 << ((kept + 2) % 8)
		default:
			out = append(out, r.b[from:r.pos]...)
		}
		kept++
	}
	return out
}

var carriedPrefix = []byte(rewrite.CarriedPrefix)

// holdsColumn reports whether the name of one of isotap's columns stands in a text.
func holdsColumn(text []byte) bool {
	return bytes.Contains(text, rowIDColumn) || bytes.Contains(text, wListColumn)
}

var rowIDColumn, wListColumn = []byte(rewrite.RowIDColumn), []byte(rewrite.WListColumn)

// isotapColumn reports whether a column definition is that of an auxiliary column.
func isotapColumn(definition []byte) bool {
	r := reader{b: definition}
	for range 5 { // catalog, schema, table, original table, name
		r.lenencBytes()
	}
	name := string(r.lenencBytes())
	return name == rewrite.RowIDColumn || name == rewrite.WListColumn
}

// binaryTail reads the hidden values of a row whose visible part is behind the reader.
type binaryTail struct {
	nulls []byte // the NULL bitmap; nil in a text row
}

func (t binaryTail) value(r *reader, column int) []byte {
	if t.nulls != nil && isNull(t.nulls, column) {
		return nil
	}
	return r.lenencBytes()
}

// isNull reads the NULL bitmap of a binary row, whose first two bits mean nothing.
func isNull(nulls []byte, column int) bool {
	return nulls[(column+2)/8]&(1<<((column+2)%8)) != 0
}

// trimBinary appends the first columns of a binary row to row as a row of their own, with the NULL
// bitmap that belongs to their number, and leaves r at the value behind them.
func trimBinary(row []byte, r *reader, types []byte, columns int) ([]byte, binaryTail, error) {
	r.uint8()
	nulls := r.bytes((len(types) + 9) / 8)
	if r.err != nil {
		return nil, binaryTail{}, fmt.Errorf("parse binary row: %w", r.err)
	}
	start := r.pos
	for i := range columns {
		if !isNull(nulls, i) {
			skipBinary(r, types[i])
		}
	}
	if r.err != nil {
		return nil, binaryTail{}, fmt.Errorf("parse binary row: %w", r.err)
	}
	size := (columns + 9) / 8
	row = append(row, markOK)
	row = append(row, nulls[:size]...)
	// Bits of hidden columns can stand in the bitmap's last byte.
	if used := uint(columns+2) % 8; used != 0 {
		row[len(row)-1] &= 1<<used - 1
	}
	return append(row, r.b[start:r.pos]...), binaryTail{nulls: nulls}, nil
}

// maskDescription returns a row of a statement that describes tables as the client is to see it, without
// isotap's columns; nil for a row that the client does not see. kind is what the statement describes.
func maskDescription(row []byte, kind rewrite.Reply, of *reply) ([]byte, error) {
	if kind == rewrite.Listing {
		named, err := namesColumn(row, of)
		if named {
			row = nil
		}
		return row, err
	}
	if of.fields < 2 {
		return row, nil
	}
	value, from, to, err := secondText(row, of.binary, of.fields)
	if err != nil {
		return nil, err
	}
	text := string(value)
	cut := withoutColumns(text)
	if cut == text {
		return row, nil
	}
	b := append([]byte(nil), row[:from]...)
	b = append(appendLenenc(b, uint64(len(cut))), cut...)
	return append(b, row[to:]...), nil
}

// namesColumn reports whether a value of the row is the name of an auxiliary column.
func namesColumn(row []byte, of *reply) (bool, error) {
	r := reader{b: row}
	var nulls []byte
	if of.binary {
		r.uint8()
		nulls = r.bytes((of.fields + 9) / 8)
	}
	named := false
	for i := 0; i < of.fields && r.err == nil; i++ {
		if nulls != nil && isNull(nulls, i) {
			continue
		}
		start := r.pos
		if nulls == nil {
			r.lenencBytes()
		} else {
			skipBinary(&r, of.types[i])
		}
		if r.pos-start == 1+len(rewrite.RowIDColumn) { // both names are equally long
			value := string(row[start+1 : r.pos])
			named = named || value == rewrite.RowIDColumn || value == rewrite.WListColumn
		}
	}
	if r.err != nil {
		return false, fmt.Errorf("parse row: %w", r.err)
	}
	return named, nil
}

// secondText reads the second value of a row whose first two are strings, and returns where it lies. A
// binary row begins with a zero and the NULL bitmap of all fields.
func secondText(row []byte, binary bool, fields int) (value []byte, from, to int, err error) {
	r := reader{b: row}
	var nulls []byte
	if binary {
		r.uint8()
		nulls = r.bytes((fields + 9) / 8)
	}
	for i := range 2 {
		from, value = r.pos, nil
		if nulls == nil || !isNull(nulls, i) {
			value = r.lenencBytes()
		}
	}
	if r.err != nil {
		return nil, 0, 0, fmt.Errorf("parse row: %w", r.err)
	}
	return value, from, r.pos, nil
}

// withoutColumns cuts the lines of isotap's columns out of a CREATE TABLE statement as SHOW CREATE TABLE
// prints it: one definition a line, with a comma behind all but the last.
func withoutColumns(definition string) string {
	lines := strings.Split(definition, "\n")
	kept := lines[:0]
	for _, line := range lines {
		if strings.HasPrefix(line, "  `"+rewrite.RowIDColumn+"` ") ||
			strings.HasPrefix(line, "  `"+rewrite.WListColumn+"` ") {
			continue
		}
		if n := len(kept); strings.HasPrefix(line, ")") && n > 1 {
			kept[n-1] = strings.TrimSuffix(kept[n-1], ",")
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// statementDone takes the end of a statement's reply, stage by stage. Each stage needs what those before it have left.
func (s *Session) statementDone(x *exchange) error {
	defer s.identities.forget() // its rows are the statement's by then
	o := x.stmt
	if x.retry {
		s.refuse(o, x.err)
		return s.runOriginal(o, x)
	}
	if s.partDone(x) {
		return nil
	}

	// What the reply says of the statement. The plan is judged last: where it is wrong, nothing of that holds.
	s.takeResult(o, x)
	s.access(o, x)
	if x.mask.wrong {
		o.misplanned()
	}
	widen(&o.stmt)

	// What the client may ask about the statement, before anything of isotap's own runs and changes the answer.
	s.counts.take(&x.reply, x.okInstead, o.plan.Session.Conditions == sqlmysql.ListsConditions)
	s.conditions.take(&x.reply, o.plan, x.added)

	// The statement goes into its transaction. What comes later of it is added to it there.
	s.txn.record(o, s.now)
	s.captures.await(o, x.failed, x.ok.lastInsertID, s.settings.literals.increment)
	s.effects(o, x)

	// The transaction may end with the statement. It must know by then which answers it has to wait for.
	s.readVariables(o, x)
	s.readMoment(o, x)
	s.settle(o, x)

	// Queries of isotap's own: a companion runs only where the transaction goes on, captures are read only once it
	// has ended.
	s.runCompanion(o, x)
	s.holdForRecording()
	return nil
}

// takeResult takes how many rows the statement had, and its error.
func (s *Session) takeResult(o *pendingStatement, x *exchange) {
	o.stmt.Rows, o.stmt.Affected = x.rows, x.ok.affected
	if x.okInstead {
		o.stmt.Rows, o.stmt.Affected = 0, x.rows
	}
	o.found = o.rowsFound(x)
	o.stmt.Predicates = s.settings.predicates(o, s.identities.ordered(), moments{})
	if x.opens(x.ok) {
		// The client need not fetch all of it, nor in this transaction.
		o.downgrade(history.Inexact, history.ReasonCursor)
		o.stmt.Predicates = nil
		if x.hidden+len(x.mask.columns) > 0 {
			x.prepared.cursor = &cursor{o, x.types, x.fields, x.hidden, x.mask}
		}
	}
	if x.failed {
		o.stmt.Error = history.Error{Code: x.err.code, SQLState: x.err.state}
		if s.cfg.Args { // the server quotes values: Duplicate entry 'ann@example.com' for key 'email'
			o.stmt.Error.Message = x.err.message
		}
		o.stmt.Void = true
	}
}

// access derives from a reply what the statement read or wrote.
func (s *Session) access(o *pendingStatement, x *exchange) {
	if !o.rewritten {
		return
	}
	switch {
	case o.plan.Result.Reply == rewrite.Unchanged:
	case o.plan.Writes.Inserts != 0:
		s.identities.tellNumbers(o)
	default:
		// A DELETE that failed deleted nothing, whatever it had returned by then.
		if o.plan.Kind != history.Delete || !x.failed {
			s.takeIdentities(o, x.ok.warnings > 0)
		}
		return
	}
	if x.failed {
		return
	}
	o.takeCounts(&x.reply, s.caps&gomysql.CLIENT_FOUND_ROWS != 0)
	o.constant, o.insertID = s.settings.constant(o), x.ok.lastInsertID
	o.addInserted(&s.txn.unrecorded)
}

// takeIdentities gives a statement the rows whose identities came out of its reply. Those of its kind that read too
// much for an array are left alone from then on.
func (s *Session) takeIdentities(o *pendingStatement, warned bool) {
	if s.identities.cut {
		s.cfg.Planner.SubqueriesTooLarge(o.plan.Shape)
	}
	if s.identities.judgeArrays(o, warned) {
		s.cfg.Planner.TooLarge(o.plan.Shape)
	}
	s.identities.take(o)
}

// effects takes what a statement changed for those after it.
func (s *Session) effects(o *pendingStatement, x *exchange) {
	plan := o.plan
	if plan.Session.Changes {
		s.settings.stale = true
	}
	s.txn.followNext(o, x.failed)
	s.settings.tempTables = sqlmysql.AddTempTables(s.settings.tempTables, plan.Schema.CreatesTemp)
	if !x.failed {
		s.settings.tempTables = sqlmysql.DropTempTables(s.settings.tempTables, plan.Schema.DropsTemp)
	}
	s.settings.env.TempTables = s.settings.tempTables
	if plan.Schema.Changes {
		changed := &session.Schema{Tables: plan.Schema.Changed, References: plan.Schema.References,
			Triggers: plan.Schema.Triggers}
		if o.rewritten && !x.failed && len(plan.Schema.Created) > 0 {
			// CREATE TABLE IF NOT EXISTS warns where there is a table, which may look different.
			if changed.MayHaveStayed = x.ok.warnings > 0; !changed.MayHaveStayed {
				changed.Created = plan.Schema.Created[1:]
			}
		}
		s.events = append(s.events, session.Event{Schema: changed})
	}
}

// settle has the transaction take a finished statement's end, and does what follows.
func (s *Session) settle(o *pendingStatement, x *exchange) {
	if !s.watches() {
		return
	}
	ended, then := s.txn.settle(o, &x.reply, s.now)
	s.handOver(ended)
	switch then {
	case askCommands:
		s.askCommands(o, x)
	case askServer:
		ask := &transactionQuestion{o.plan, func() { s.handOver(s.txn.settleError(o, &x.reply, s.now)) }}
		if x.failed && endsConnection(x.err.code) { // what is sent to a server that closes makes it reset the connection
			s.postponed = ask
			return
		}
		s.ask(ask)
	case giveUpCaptures:
		s.loseCaptures(history.ReasonLostSavepoint)
	}
}

// A transactionQuestion is whether the server still has a transaction open.
type transactionQuestion struct {
	settles *sqlmysql.Plan // of the statement whose error is the reason to ask; nil when there is none
	then    func()         // takes the answer, which the session then knows
}

// ask asks the server by a ping.
func (s *Session) ask(q *transactionQuestion) {
	s.send(&exchange{grammar: okReply, settles: q.settles, done: func(*exchange) error {
		s.counts.rowCountGone = true
		q.then()
		return nil
	}}, []byte{gomysql.COM_PING})
}

// endOpen ends the session's transaction, if there is one.
func (s *Session) endOpen(status history.Status) { s.handOver(s.txn.end(status, s.now)) }

// handOver has a transaction recorded that has ended, once the entries of its statements are read. Nil is none.
func (s *Session) handOver(t *history.Txn) {
	if t != nil {
		s.events = s.captures.handOver(t, s.events)
	}
}

// holdForRecording keeps the reply back that ends a transaction, where all that the transaction wrote is to be stored
// before the client hears of it.
func (s *Session) holdForRecording() {
	if !s.cfg.Durable || len(s.captures.ended) == 0 {
		return
	}
	s.holding = true
	if len(s.captures.unread) > 0 {
		s.keepConditions()
	}
	s.readCaptures()
}

const maxRefused = 1000

// refuse remembers that the server does not take the statement as rewritten.
func (s *Session) refuse(o *pendingStatement, e serverError) {
	if s.refused == nil || len(s.refused) >= maxRefused {
		s.refused = make(map[weak.Pointer[sqlmysql.Plan]]history.Reason)
	}
	s.refused[weak.Make(o.plan)] = history.ReasonRefused.With(strconv.Itoa(int(e.code)))
}

// runUnpictured runs a statement without the images that the server refused to collect, where it has such a form.
func (s *Session) runUnpictured(o *pendingStatement, x *exchange) bool {
	if x.prepared != nil || o.plan.Writes.Images.Empty() {
		return false
	}
	plan := s.plan(s.original[1:])
	if plan.Upstream.Pieces == nil || plan.Observation != o.plan.Observation || !s.leavesAlone(plan).IsZero() {
		return false
	}
	o.plan = plan
	s.sendFor(s.statement(o), s.rewritten(o), len(s.original))
	return true
}

// runOriginal runs the statement as the client wrote it, after the server refused the rewritten one.
func (s *Session) runOriginal(o *pendingStatement, x *exchange) error {
	if s.runUnpictured(o, x) {
		return nil
	}
	o.rewritten = false
	o.downgrade(history.Opaque, s.refused[weak.Make(o.plan)])
	if x.prepared != nil {
		s.command = bytes.Clone(s.original)
		s.resumed = o
		return nil
	}
	s.sendFor(s.statement(o), s.original, len(s.original))
	return nil
}
