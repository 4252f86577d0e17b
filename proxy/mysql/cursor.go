package mysql

import (
	"github.com/isotap/isotap/proxy/txnstate"
)

// A cursor is what COM_STMT_FETCH must know of the statement that opened it.
type cursor struct {
	stmt   *observed
	types  []byte // of the columns
	fields int
	hidden int // of these, at the end
	// conceal tells the columns that a row has beside those.
	conceal concealment
}

// fetch reads on from a cursor: rows until EOF, trimmed like those of the statement.
func (s *Session) fetch(payload []byte) {
	x := &exchange{visible: true, read: (*Session).queryReply, reply: reply{state: stateRows, binary: true}}
	if _, p := s.statementID(payload); p != nil {
		payload = s.readdressed(payload, p)
		if c := p.cursor; c != nil {
			x.stmt, x.prepared, x.done = &observed{plan: p.plan, rewritten: true}, p, (*Session).fetchDone
			x.hidden, x.types, x.fields = c.hidden, c.types, c.fields
			x.conceal = c.conceal
			x.renumber, x.seq, x.begun = true, 1, true
		}
	}
	s.send(x, payload)
}

// fetchDone adds the rows that were fetched to what the cursor's statement read, as long as the
// transaction goes on that it ran in.
func (s *Session) fetchDone(x *exchange) error {
	defer s.seen.forget()
	opened := x.prepared.cursor.stmt
	if x.conceal.wrong || s.txn.open == nil || opened.txn != s.txn.open {
		return nil
	}
	s.takeSeen(x.stmt, x.ok.warnings > 0)
	st := &s.txn.open.Stmts[opened.index]
	st.Accesses = append(st.Accesses, x.stmt.stmt.Accesses...)
	s.txn.unrecorded.Take(txnstate.BytesOf(&x.stmt.stmt))
	st.Rows += x.rows
	return nil
}
