package postgres

import (
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// longFromServer says which messages of the server may be long and are passed on as they come: rows that stay as they
// are, or are trimmed as they come (longrow.go).
func longFromServer(kind byte) bool { return kind == msgDataRow || kind == msgCopyData }

// passes returns the part of p that is rows to be passed on as they are.
func (s *Session) passes(p []byte) int {
	x := s.pipeline.head()
	if x == nil || x.answer != nil || x.silent || len(s.server.buf) > 0 && !s.server.taken {
		return 0
	}
	n := 0
	for len(p)-n >= headBytes {
		kind := p[n]
		if kind != msgCopyData && (kind != msgDataRow || !s.result.set || s.result.trims()) {
			break
		}
		size, err := sizeOf(p[n:], serverLimit)
		if err != nil {
			break
		}
		if kind == msgDataRow {
			s.result.rows++
		}
		if size > len(p)-n {
			s.server.passing = size - (len(p) - n)
			n = len(p)
			break
		}
		n += size
	}
	s.toClient = append(s.toClient, p[:n]...)
	return n
}

// replyBytes takes one message of the server out of p, or what there is of it.
func (s *Session) replyBytes(p []byte) (int, error) {
	if s.server.passing > 0 {
		part := s.server.pass(p)
		if !s.dropping {
			s.toClient = append(s.toClient, part...)
		}
		s.dropping = s.dropping && s.server.passing > 0
		return len(part), nil
	}
	if s.row != nil {
		n := min(s.row.left, len(p))
		return n, s.takeRow(p[:n])
	}
	if n := s.passes(p); n > 0 {
		return n, nil
	}
	m, used, err := s.server.next(p, serverLimit, longFromServer)
	if err == nil && !s.reserveMessage() {
		s.refuseLong()
		return used, nil
	}
	if m.raw == nil || err != nil {
		return used, err
	}
	s.release()
	s.replyAt = len(s.toClient)
	if err := s.reply(m); err != nil {
		return used, err
	}
	if err := s.goOn(); err != nil {
		return used, err
	}
	if s.phase == phaseClosing && s.pipeline.due == 0 && s.held.raw == nil {
		s.close()
	}
	return used, nil
}

// reply takes one message of the server.
func (s *Session) reply(m message) error {
	x := s.pipeline.head()
	switch m.kind {
	case msgErrorResponse:
		return s.failure(x, m)
	case msgNoticeResponse:
		s.notice(x, m)
		return nil
	case msgParameterStatus:
		s.settings.parameter(m.body)
		s.toClient = append(s.toClient, m.raw...)
		return nil
	case msgNotificationResponse:
		s.listens = true
		s.toClient = append(s.toClient, m.raw...)
		return nil
	}
	switch {
	case x == nil:
		return unexpected(m, x)
	case x.answer != nil:
		return s.takeAnswer(x, m)
	case m.kind == msgReadyForQuery:
		return s.ready(x, m)
	}
	switch x.kind {
	case pendingQuery, pendingExecute:
		return s.resultMessage(x, m)
	case pendingDescribeStatement, pendingDescribePortal:
		return s.description(x, m)
	case pendingCall:
		s.forward(x, m)
		return nil
	}
	return s.acknowledged(x, m)
}

// acknowledged takes the replies that say no more than that it was done.
func (s *Session) acknowledged(x *pendingReply, m message) error {
	real := &s.names.confirmed
	switch {
	case x.kind == pendingParse && m.kind == msgParseComplete:
		if real.statements[x.name] = x.statement; x.statement.forgotten {
			delete(real.statements, x.name)
		}
		s.retry.addParsed(x.name)
	case x.kind == pendingBind && m.kind == msgBindComplete:
		if x.portal.forgotten {
			delete(real.portals, x.name)
			break
		}
		if st := real.statements[x.from]; !x.own && st != x.statement && st != nil {
			*x.portal = portal{form: st.form, plan: st.form.plan(0), format: x.portal.format,
				reason: history.ReasonNotFollowed}
		}
		real.portals[x.name] = x.portal
	case x.kind == pendingClose && m.kind == msgCloseComplete:
		if x.closes == ofPortal {
			delete(real.portals, x.name)
		} else {
			delete(real.statements, x.name)
		}
	default:
		return unexpected(m, x)
	}
	s.txn.mayBegin(x.sent)
	s.forward(x, m)
	s.replyEnds()
	return nil
}

// description takes the reply to a Describe. Where the client's statement gives no rows it says so.
func (s *Session) description(x *pendingReply, m message) error {
	var plan *sqlpostgres.Plan
	f := x.formIn(s.names.confirmed)
	if f != nil {
		plan = f.plan(0)
	}
	switch m.kind {
	case msgParameterDescription:
		s.described(x, m)
		s.forward(x, m)
		return nil
	case msgNoData:
		s.clear(f)
		if !x.ofQuery { // a Query says nothing of rows that there are not
			s.forward(x, m)
		}
	case msgRowDescription:
		if e := s.names.confirmed.executed(plan); e != nil {
			f, plan = e, e.plan(0)
		}
		if s.describesLate(x) {
			defer s.holdDescription(len(s.toClient))
		}
		from, hidden := len(s.toClient), f.hiddenOrNone(plan)
		if hidden == 0 || plan.Session.Cursor != nil {
			hidden = s.names.hiddenFields(plan, m.body)
		}
		c := resultInProgress{hidden: hidden, cut: s.describedCut(x, m.body, hidden)}
		c.swallow = hidden > 0 && plan != nil && plan.Result.Reply == rewrite.Returning
		c.applyLayout(s.laidOut(x, f, plan, m.body, hidden))
		switch {
		case c.swallow:
			s.forward(x, message{raw: noData})
		case !c.trims():
			s.forward(x, m)
		default:
			if err := s.trimDescription(x, m, c.hidden, c.cut); err != nil {
				return err
			}
		}
		s.keepDescription(x, s.toClient[from:])
	default:
		return unexpected(m, x)
	}
	s.replyEnds()
	return nil
}

func (f *form) hiddenOrNone(plan *sqlpostgres.Plan) int {
	if f == nil {
		return 0
	}
	return f.hidden(plan)
}

// resultMessage takes a message of the result of a statement.
func (s *Session) resultMessage(x *pendingReply, m message) error {
	if x.asks && x.at == len(x.form.statements()) {
		return s.takeBehind(x, m)
	}
	s.begin(x)
	s.show(&s.unshown)
	s.retry.ran = true
	switch c := &s.result; m.kind {
	case msgRowDescription:
		s.findHiddenFields(c, m.body)
		if s.exposes(c.form) && len(m.body) > 1 {
			c.cut = s.descriptions.exposed(m.body, c.hidden)
		}
		f, plan := s.names.confirmed.shownForm(c.form, c.form.plan(x.at))
		c.applyLayout(s.defend(f, plan, m.body, c.hidden))
		switch {
		case c.swallow:
		case s.result.trims():
			return s.trimDescription(x, m, c.hidden, c.cut)
		default:
			s.forward(x, m)
		}
	case msgDataRow:
		c.rows++
		switch {
		case s.result.trims() && m.more > 0:
			return s.holdRow(x, m)
		case s.result.trims():
			return s.trimRow(x, m)
		}
		s.forward(x, m)
	case msgCommandComplete, msgEmptyQueryResponse:
		return s.resultEnd(x, m)
	case msgPortalSuspended:
		if x.kind != pendingExecute {
			return unexpected(m, x)
		}
		return s.resultEnd(x, m)
	case msgCopyInResponse:
		s.retry.tried = s.retry.tried && !x.asks // the text was read
		if s.pipeline.copyBegins() {
			s.retry.open = len(s.pipeline.pending) == 1
		}
		s.forward(x, m)
	case msgCopyOutResponse, msgCopyData, msgCopyDone:
		s.forward(x, m)
	case msgCopyBothResponse:
		s.note("COPY in both directions: the session goes on unobserved")
		s.forward(x, m)
		s.endTxn(history.Indeterminate)
		s.copyOn()
	default:
		return unexpected(m, x)
	}
	return nil
}

// resultEnd takes the message that ends a statement's result.
func (s *Session) resultEnd(x *pendingReply, m message) error {
	s.pipeline.copyIn.ended()
	m = s.result.retagged(m, s.seen.absent)
	if x.asks || x.ofQuery {
		s.unended = slices.Clone(m.raw)
	} else {
		s.forward(x, s.uncommitted(x, m))
	}
	switch m.kind {
	case msgCommandComplete:
		tag := tagOf(m)
		s.listens = s.listens || tag == "LISTEN"
		if !x.own {
			s.completed(x, tag)
		}
	case msgPortalSuspended:
		s.suspended()
	}
	if x.kind == pendingQuery {
		x.at++
		s.result = resultInProgress{}
		return nil
	}
	s.replyEnds()
	return nil
}

// ready takes a ReadyForQuery, in stages: the transaction may have ended, the client hears of it, and what was expected
// of the messages up to here is known now. A segment that is to be sent again is sent once nothing else is pending.
func (s *Session) ready(x *pendingReply, m message) error {
	switch x.kind {
	case pendingQuery, pendingCall, pendingSync:
	default:
		return unexpected(m, x)
	}
	if len(m.body) != 1 {
		return unexpected(m, x)
	}
	s.txn.status = txnStatus(m.body[0])
	if x.kind == pendingCall {
		s.names.unsettleCursors()
		s.settings.changed()
	}
	s.pipeline.copyIn.ended()
	if how, ended := s.txn.segmentEnds(); ended {
		s.endTxn(how)
	}
	s.show(&s.unended)
	s.forward(x, m)
	s.replyEnds()
	s.speculationEnds()
	s.resending.notices = nil
	if s.resending.on && s.pipeline.idle() {
		return s.resend()
	}
	return nil
}

// speculationEnds takes what is so now for what will be once everything sent has been done, if it has. Portals end with
// the transaction that they were made in.
func (s *Session) speculationEnds() {
	quiet := s.pipeline.idle() && !s.retry.open
	if s.txn.status == txnIdle {
		s.names.confirmed.end()
		if quiet {
			s.names.speculative.end()
		}
	}
	if !quiet {
		return
	}
	s.speculative = speculativeTxn{block: s.txn.block, level: s.settings.level, nested: s.txn.savepoints.Open(),
		hides: s.cfg.Logged && s.txn.hidesXID()}
	if s.txn.block {
		s.speculative.level = s.txn.level
	} else {
		s.settings.settled(s.schema.temporaries.kept)
	}
}
