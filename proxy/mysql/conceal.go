package mysql

import (
	"fmt"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A server without invisible columns (TiDB) would show isotap's to the client. The rewriter takes the
// stars out of statements (rewrite.Plan.Plain); what it cannot read, the text that EXECUTE runs for one,
// may show the columns all the same, and then they are cut out of the result by their names. So are, on
// every server, the identities that a star of a rewritten statement carries (rewrite.Plan.Carried).

// plain gives a statement's command in the form that stands for the client's own text. It is valid until
// the next command.
func (s *Session) plain(plan *rewrite.Plan, payload []byte) []byte {
	if plan.Plain == "" {
		return payload
	}
	s.original = append(append(s.original[:0], payload[0]), plan.Plain...)
	return s.original
}

// ownText is the text that goes upstream for a statement that the client prepares, where isotap leaves it
// alone.
func (p *prepared) ownText() []byte {
	if p.plan.Plain != "" {
		return []byte(p.plan.Plain)
	}
	return p.text
}

// outlived says whether a statement that was prepared as the client's own text would mean another by
// now: the columns that stars stand for are not those that they were.
func (s *Session) outlived(p *prepared) bool {
	return p.plain != "" && s.plan(p.text).Plain != p.plain
}

// A concealment keeps the head of a result set until it is known which of its columns are isotap's.
type concealment struct {
	head    [][]byte
	columns []int  // that the client does not see, in ascending order
	types   []byte // of all columns, for binary rows
}

// conceals says whether isotap's columns can be among those of the exchange's result.
func (s *Session) conceals(x *exchange) bool {
	return (s.dialect == sqlmysql.TiDB || x.carries > 0) && x.visible && !x.swallow
}

// keepHead keeps a packet of the result set's head: the number of columns, then the definitions of those
// that the rewriter did not ask for.
func (s *Session) keepHead(x *exchange, payload []byte) {
	if isColumn := len(x.conceal.head) > 0; isColumn && s.exposed(payload) {
		x.conceal.columns = append(x.conceal.columns, len(x.conceal.head)-1)
	}
	x.conceal.head = append(x.conceal.head, append([]byte(nil), payload...))
}

// exposed says whether a column definition is that of an auxiliary column that the server should not show,
// or of one that a star carries. Its original name may be missing: TiDB leaves it out when it reads a row
// by its key.
func (s *Session) exposed(definition []byte) bool {
	r := reader{b: definition}
	for range 4 { // catalog, schema, table, original table
		r.lenencBytes()
	}
	name := string(r.lenencBytes())
	return strings.HasPrefix(name, rewrite.CarriedPrefix) ||
		s.dialect == sqlmysql.TiDB && (name == rewrite.RowIDColumn || name == rewrite.WListColumn)
}

// releaseHead sends the head on once it is complete, less isotap's columns.
func (s *Session) releaseHead(x *exchange, seq byte) {
	c := &x.conceal
	first := seq - byte(x.fields) // the number of the packet that counts the columns
	if !x.renumber && x.hidden+len(c.columns) > 0 {
		x.renumber, x.seq = true, first
	}
	for i, packet := range c.head {
		switch {
		case i == 0:
			packet = appendLenenc(nil, uint64(len(c.head)-1-len(c.columns)))
		case c.drops(i - 1):
			continue
		}
		s.forward(x, first+byte(i), packet)
	}
	c.head = nil
	if len(c.columns) == 0 {
		return
	}
	x.fields -= len(c.columns)
	c.types, x.types = x.types, nil
	for i, t := range c.types {
		if !c.drops(i) {
			x.types = append(x.types, t)
		}
	}
}

func (c *concealment) drops(column int) bool { return slices.Contains(c.columns, column) }

// cut gives a row without the columns that the client does not see.
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
