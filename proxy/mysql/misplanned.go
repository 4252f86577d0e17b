package mysql

import (
	"bytes"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

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
	if s.dialect == sqlmysql.TiDB { // original names may be missing: TiDB leaves them out when it reads a row by its key
		return string(name) == rewrite.RowIDColumn || string(name) == rewrite.WListColumn
	}
	// An expression's name is its text.
	if !holdsColumn(name) && !(len(original) > 0 && holdsColumn(original)) && !bytes.Contains(name, carriedPrefix) {
		return false
	}
	return !holdsColumn(bytes.ToLower(s.clientText(x)))
}

var carriedPrefix = []byte(rewrite.CarriedPrefix)

// holdsColumn reports whether the name of one of isotap's columns stands in a text.
func holdsColumn(text []byte) bool {
	return bytes.Contains(text, rowIDColumn) || bytes.Contains(text, wListColumn)
}

var rowIDColumn, wListColumn = []byte(rewrite.RowIDColumn), []byte(rewrite.WListColumn)

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
		s.note("a statement was planned wrong, and goes unobserved from now on; the client did not see the columns that isotap added: %s", p.Shape)
	}
}

// doubt takes away what a statement has shown whose plan is wrong.
func (o *observed) doubt(x *exchange) {
	if x.conceal.wrong {
		o.lower(history.Opaque, history.ReasonMisplanned)
		o.stmt.Accesses, o.stmt.Predicates = nil, nil
	}
}

// exposed reports whether a definition of a prepared statement's column is of one that the client does not see, and
// takes note of a plan that does not know of it. seen is how many there were before.
func (s *Session) exposed(x *exchange, definition []byte) bool {
	if !x.prepared.rewritten || !s.isOwn(x, definition) {
		return false
	}
	x.exposed++
	if x.exposed == x.carries+1 && s.dialect != sqlmysql.TiDB {
		s.misplanned(x.prepared.plan)
	}
	return true
}
