package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A multiStatement is a text of several statements on its way. A server runs them one after the other until one
// fails; isotap sends them so, each as a command of its own, and makes one reply of their replies. Each
// is thus planned, tagged and recorded as if it had come alone.
//
// The statement under way is text[from:ends[0]]: there always is one. The text was cut under env.
type multiStatement struct {
	text []byte // the client's, from some statement on
	ends []int  // where the statements that are not yet done end
	from int    // where the statement under way begins
	seq  byte   // number of the next packet of the reply
	env  sqlmysql.Session
	buf  []byte
}

// A partEnd is what follows on the end of a statement's reply.
type partEnd uint8

const (
	anotherPart   partEnd = iota // the next statement
	lastPart                     // nothing: the text is done, or the rest of it does not run
	partSentAgain                // the same statement, with all that stands behind it
)

// newMultiStatement returns the text of a COM_QUERY, whose statements end there.
func newMultiStatement(command []byte, ends []int, env sqlmysql.Session) *multiStatement {
	return &multiStatement{text: append([]byte(nil), command[1:]...), ends: ends, seq: packets(len(command)), env: env}
}

// last reports whether the statement under way is the text's last.
func (m *multiStatement) last() bool { return len(m.ends) == 1 }

// command returns the statement under way as a command. It is valid until the next call.
func (m *multiStatement) command() []byte {
	m.buf = append(append(m.buf[:0], gomysql.COM_QUERY), m.text[m.from:m.ends[0]]...)
	return m.buf
}

// rest returns the text from the statement under way on.
func (m *multiStatement) rest() []byte { return m.text[m.from:] }

// link makes an exchange's reply a part of the text's reply.
func (m *multiStatement) link(x *exchange) {
	x.part, x.more, x.renumber = true, !m.last(), true
}

// done takes the end of the reply of the statement under way. It is to be sent again, as part of the text that the
// client wrote, where that tells the client more: an error in its syntax may come from where it was cut (a
// compound statement has semicolons of its own), and tells the text behind it.
func (m *multiStatement) done(x *exchange) partEnd {
	switch {
	case x.failed && !x.begun:
		m.ends = []int{len(m.text)}
		return partSentAgain
	case x.failed || m.last():
		return lastPart
	}
	m.from, m.ends, m.seq = m.ends[0]+1, m.ends[1:], x.seq
	return anotherPart
}

// outdated reports whether the rest may have to be cut otherwise in a session with those settings. Temporary tables do
// not change where statements end.
func (m *multiStatement) outdated(in *settings) bool {
	m.env.TempTables = in.env.TempTables
	return !in.known || in.env != m.env
}

// cutAgain takes where the statements of the rest end under env; nil where that cannot be told.
func (m *multiStatement) cutAgain(ends []int, env sqlmysql.Session) {
	m.text, m.from, m.env = m.rest(), 0, env
	if m.ends = ends; ends == nil {
		m.ends = []int{len(m.text)}
	}
}

// continued returns the packet at the end of a part's result, or of its column definitions, with the flag
// that says that more results follow. okFormat says that it is an OK packet, whatever it begins with.
func (x *exchange) continued(payload []byte, okFormat bool) []byte {
	if !x.more {
		return payload
	}
	status := 3
	if okFormat {
		r := reader{b: payload, pos: 1}
		r.lenenc()
		r.lenenc()
		status = r.pos
	}
	if status >= len(payload) {
		return payload
	}
	payload = append([]byte(nil), payload...)
	payload[status] |= byte(gomysql.SERVER_MORE_RESULTS_EXISTS)
	return payload
}
