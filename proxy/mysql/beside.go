package mysql

import (
	"encoding/binary"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// prepareOriginal prepares the client's own text beside the rewritten one, unseen by the client.
func (s *Session) prepareOriginal(p *prepared) {
	now := s.plan(p.text)
	hidden := &prepared{text: p.text, plan: now}
	s.closeHidden(p, p.original)
	p.plain = now.Upstream.Plain
	s.counts.rowCountGone = true
	s.send(&exchange{prepared: hidden, read: (*Session).prepareReply, done: func(s *Session, x *exchange) error {
		p.original, p.refusal = hidden.id, nil
		if x.failed {
			p.original, p.refusal = p.id, &x.err
		}
		return nil
	}}, append([]byte{gomysql.COM_STMT_PREPARE}, hidden.ownText()...))
}

// prepareFilled prepares the client's text with the values that ROW_COUNT() and FOUND_ROWS() have for the
// client, unseen by it.
func (s *Session) prepareFilled(p *prepared) {
	s.closeHidden(p, p.filled)
	var values sqlmysql.Values
	s.counts.fill(&values)
	values.Deprecates = s.conditions.cleared
	hidden := &prepared{plan: p.plan}
	s.send(&exchange{prepared: hidden, read: (*Session).prepareReply, done: func(s *Session, x *exchange) error {
		p.fresh, p.filled = true, hidden.id
		if x.failed {
			p.filled = p.id
		}
		return nil
	}}, p.plan.Append([]byte{gomysql.COM_STMT_PREPARE}, func(b []byte, h sqlmysql.Hole, ordinal int) []byte {
		return sqlmysql.AppendHole(b, h, ordinal, &values)
	}))
}

// closeHidden closes what isotap prepared beside p, if there is such a statement.
func (s *Session) closeHidden(p *prepared, id uint32) {
	if id != 0 && id != p.id {
		s.toServer, _ = appendPacket(s.toServer, 0, binary.LittleEndian.AppendUint32([]byte{gomysql.COM_STMT_CLOSE},
			id))
	}
}

// answer gives the client an error for a statement that could not even be prepared. The server is pinged
// in its place, so that commands go on in their order.
func (s *Session) answer(o *observed, e serverError) {
	x := s.statement(o)
	x.read = func(s *Session, x *exchange, _ byte, _ []byte) (bool, error) {
		return true, s.replyError(x, 1, appendErr(nil, e))
	}
	s.send(x, []byte{gomysql.COM_PING})
}

// leavesPrepared says why a prepared statement runs unchanged although its plan would change it; empty
// when it does not.
func (s *Session) leavesPrepared(p *prepared) history.Reason {
	switch reason := s.leavesAlone(p.plan); {
	case !reason.IsZero():
		return reason
	case p.malformed:
		return history.ReasonMalformedParameters
	case !p.rewritten && splices(p.plan):
		return history.ReasonPreparedUnchanged
	case p.rewritten && len(p.plan.Upstream.Copies) > 0 && slices.Contains(p.long, true):
		return history.ReasonLongData
	case p.rewritten && !s.stillMeans(p):
		return history.ReasonPreparedBefore
	}
	return history.Reason{}
}

// stillMeans reports whether the statement would be rewritten today as it was when it was prepared: since
// then a temporary table may have taken a table's name, or the table another column.
func (s *Session) stillMeans(p *prepared) bool {
	if p.env == s.settings.env && !p.plan.Upstream.ListsColumns {
		return true
	}
	now := s.plan(p.text)
	if now != p.plan && (now.Target != p.plan.Target || now.Upstream.Plain != p.plan.Upstream.Plain ||
		!slices.Equal(now.Upstream.Pieces, p.plan.Upstream.Pieces) ||
		!slices.Equal(now.Result.Sources, p.plan.Result.Sources)) {
		return false
	}
	p.env, p.plan = s.settings.env, now
	return true
}

// fits reports whether the parameters are of the types for which the rewritten statement does what the
// client's would. What cannot be read does not fit either, but is told elsewhere.
func (p *prepared) fits(payload []byte) bool {
	if len(p.plan.Upstream.Copies) == 0 {
		return true
	}
	r := reader{b: payload}
	r.bytes(executeHead)
	nulls := r.bytes((p.params + 7) / 8)
	types := p.types
	if r.uint8() != 0 {
		types = r.bytes(2 * p.params)
	}
	if r.err != nil || len(types) != 2*p.params {
		return true
	}
	return !slices.ContainsFunc(p.plan.Upstream.Copies, func(c sqlmysql.Copy) bool {
		return nulls[c.Param/8]&(1<<(c.Param%8)) == 0 && !copies(types[2*c.Param], c.Integer)
	})
}

// copies reports whether a parameter of that type may be copied as an integer, or as a string.
func copies(typ byte, integer bool) bool {
	switch typ {
	case gomysql.MYSQL_TYPE_NULL:
		return true
	case gomysql.MYSQL_TYPE_TINY, gomysql.MYSQL_TYPE_SHORT, gomysql.MYSQL_TYPE_INT24, gomysql.MYSQL_TYPE_LONG,
		gomysql.MYSQL_TYPE_LONGLONG:
		return integer
	case gomysql.MYSQL_TYPE_STRING, gomysql.MYSQL_TYPE_VAR_STRING, gomysql.MYSQL_TYPE_VARCHAR:
		return !integer
	}
	return false
}
