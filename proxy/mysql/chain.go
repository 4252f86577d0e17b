package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A chain is a text of several statements on its way. A server runs them one after the other until one
// fails; isotap sends them so, each as a command of its own, and makes one reply of their replies. Each
// is thus planned, tagged and recorded as if it had come alone.
type chain struct {
	text []byte // the client's, from some statement on
	ends []int  // where the statements that are not yet done end
	from int    // where the statement under way begins
	seq  byte   // number of the next packet of the reply
	env  sqlmysql.Session
	buf  []byte
}

// begin starts a chain, where the plan knows the text's statements and the server would run them.
func (s *Session) begin(command []byte, ends []int) bool {
	if len(ends) < 2 || s.caps&gomysql.CLIENT_MULTI_STATEMENTS == 0 {
		return false
	}
	s.chain = &chain{text: append([]byte(nil), command[1:]...), ends: ends, seq: packets(len(command)),
		env: s.settings.env}
	s.sendPart()
	return true
}

// last reports whether the statement under way is the text's last.
func (c *chain) last() bool { return len(c.ends) == 1 }

// sendPart sends the statement that is next, or what must be known before it: goOn comes back then.
func (s *Session) sendPart() {
	c := s.chain
	c.buf = append(append(c.buf[:0], gomysql.COM_QUERY), c.text[c.from:c.ends[0]]...)
	if plan := s.plan(c.buf[1:]); !s.restoreConditions(plan) {
		s.run(plan, c.buf)
	}
}

// link makes an exchange's reply a link of the chain's.
func (c *chain) link(x *exchange) {
	x.part, x.more, x.renumber = true, !c.last(), true
}

// partDone takes the end of a statement's reply, and says whether the statement is to be sent again, as
// part of the text that the client wrote: an error in its syntax may come from where it was cut (a
// compound statement has semicolons of its own), and tells the text behind it.
func (s *Session) partDone(x *exchange) (again bool) {
	c := s.chain
	switch {
	case c == nil || !x.part:
	case x.failed && !x.begun:
		c.ends = []int{len(c.text)}
		s.sendPart()
		return true
	case x.failed || c.last():
		s.chain = nil
	default:
		c.from, c.ends, c.seq = c.ends[0]+1, c.ends[1:], x.seq
	}
	return false
}

// nextPart goes on with the chain. What a statement changed may change what the rest means.
func (s *Session) nextPart() {
	c := s.chain
	if s.settings.stale {
		s.askSettings()
		return
	}
	c.env.TempTables = s.settings.env.TempTables
	if !s.settings.known || s.settings.env != c.env {
		c.text, c.from, c.env = c.text[c.from:], 0, s.settings.env
		if c.ends = s.plan(c.text).Upstream.Parts; c.ends == nil {
			c.ends = []int{len(c.text)}
		}
	}
	s.sendPart()
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

// setOption follows COM_SET_OPTION, which turns texts of several statements on and off.
func (s *Session) setOption(payload []byte, x *exchange) {
	if x.failed || len(payload) < 3 {
		return
	}
	switch payload[1] {
	case 0:
		s.caps |= gomysql.CLIENT_MULTI_STATEMENTS
	case 1:
		s.caps &^= gomysql.CLIENT_MULTI_STATEMENTS
	}
}
