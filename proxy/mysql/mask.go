package mysql

import (
	"bytes"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

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
	if !atEnd && (s.isOwn(x, definition) || x.wasMasked()) {
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
// for isotap's columns by their names, and give such names: in the result of a statement in whose text they stand they
// are the client's own.
func (s *Session) isOwn(x *exchange, definition []byte) bool {
	r := reader{b: definition}
	for range 4 { // catalog, schema, table, original table
		r.lenencBytes()
	}
	name, original := r.lenencBytes(), r.lenencBytes()
	// An expression's name is its text.
	if bytes.Contains(name, carriedPrefix) && !sqlmysql.MentionsCarried(string(s.clientText(x))) {
		return true
	}
	if s.dialect == sqlmysql.TiDB {
		// Original names may be missing: TiDB leaves them out when it reads a row by its key.
		return string(name) == rewrite.RowIDColumn || string(name) == rewrite.WListColumn
	}
	return (holdsColumn(name) || holdsColumn(original)) && !holdsColumn(bytes.ToLower(s.clientText(x)))
}

// wasMasked reports whether the definition at hand is that of a column which was isotap's when the statement was
// prepared. The result that a cursor opens comes from a temporary table: the names that its columns had may be gone.
func (x *exchange) wasMasked() bool {
	return x.cursor && x.stmt != nil && x.stmt.rewritten && slices.Contains(x.prepared.masked, x.fields-x.left)
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

var carriedPrefix = []byte(rewrite.CarriedPrefix)

var rowIDColumn, wListColumn = []byte(rewrite.RowIDColumn), []byte(rewrite.WListColumn)

// holdsColumn reports whether the name of one of isotap's columns stands in a text.
func holdsColumn(text []byte) bool {
	return bytes.Contains(text, rowIDColumn) || bytes.Contains(text, wListColumn)
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
