package mysql

import (
	"bytes"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A server without invisible columns (TiDB) would show isotap's to the client. The rewriter takes the
// stars out of statements (sqlmysql.Plan.Plain); what it cannot read, the text that EXECUTE runs for one,
// may show the columns all the same, and then they are cut out of the result by their names. So are, on
// every server, the identities that a star of a rewritten statement carries (sqlmysql.Plan.Carried), and whatever a
// plan that is wrong would show (misplanned.go).

// plain returns a statement's command in the form that stands for the client's own text. It is valid until
// the next command.
func (s *Session) plain(plan *sqlmysql.Plan, payload []byte) []byte {
	if plan.Upstream.Plain == "" {
		return payload
	}
	s.original = append(append(s.original[:0], payload[0]), plan.Upstream.Plain...)
	return s.original
}

// ownText is the text that goes upstream for a statement that the client prepares, where isotap leaves it
// alone.
func (p *prepared) ownText() []byte {
	if p.plan.Upstream.Plain != "" {
		return []byte(p.plan.Upstream.Plain)
	}
	return p.text
}

// outlived reports whether a statement that was prepared as the client's own text would mean another by
// now: the columns that stars stand for are not those that they were.
func (s *Session) outlived(p *prepared) bool {
	return p.plain != "" && s.plan(p.text).Upstream.Plain != p.plain
}

// A concealment is which columns of a result are isotap's, beyond those at its end that the plan hides. The head of the
// result, the number of columns and their definitions, is held back until that is known.
type concealment struct {
	from    int    // where the head begins in the session's output
	columns []int  // that the client does not see, in ascending order
	types   []byte // of all columns, for binary rows
	// wrong says that the plan does not know of some of them, shifted that those at the end are not where it has them.
	wrong, shifted bool
}

// conceals reports whether isotap's columns can be among those of the exchange's result which the client is to see.
func (s *Session) conceals(x *exchange) bool {
	return x.visible && !x.swallow && (s.dialect == sqlmysql.TiDB || x.stmt != nil && x.stmt.rewritten)
}

// holdHead keeps the output back from here on, until releaseHead or dropHead.
func (s *Session) holdHead(x *exchange) {
	x.conceal = concealment{from: len(s.toClient)}
	s.holdingHead = true
}

// look takes a column definition into the concealment, and reports whether it goes into the head.
func (s *Session) look(x *exchange, definition []byte) bool {
	c := &x.conceal
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
	c := &x.conceal
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
	c := &x.conceal
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
		case c.drops(i) || i >= x.fields-x.hidden:
			continue
		}
		s.toClient, seq = appendPacket(s.toClient, seq, payload)
	}
	x.renumber, x.seq = true, seq
	x.fields -= len(c.columns)
	c.types, x.types = x.types, nil
	for i, t := range c.types {
		if !c.drops(i) {
			x.types = append(x.types, t)
		}
	}
}

// dropHead forgets a head that is not complete, of a session that ends: isotap's columns may stand in it.
func (s *Session) dropHead() {
	if s.holdingHead && len(s.exchanges) > 0 {
		s.toClient = s.toClient[:s.exchanges[0].conceal.from]
	}
	s.holdingHead = false
}

func (c *concealment) drops(column int) bool { return slices.Contains(c.columns, column) }

// cut returns a row without the columns that the client does not see.
func (c *concealment) cut(x *exchange, row []byte) ([]byte, error) {
	if len(c.columns) == 0 {
		return row, nil
	}
	cut := c.cutText
	if x.binary {
		cut = c.cutBinary
	}
	r := reader{b: row}
	out := cut(&r, x.fields+len(c.columns))
	if r.err != nil {
		return nil, fmt.Errorf("parse row: %w", r.err)
	}
	return out, nil
}

func (c *concealment) cutText(r *reader, fields int) []byte {
	var out []byte
	for i := range fields {
		from := r.pos
		r.lenencBytes()
		if !c.drops(i) && r.err == nil {
			out = append(out, r.b[from:r.pos]...)
		}
	}
	return out
}

func (c *concealment) cutBinary(r *reader, fields int) []byte {
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
		case c.drops(i) || r.err != nil:
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
