package postgres

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// parse takes a Parse message: a statement under a name, with the types of some parameters.
func (s *Session) parse(m message) {
	r := reader{b: m.body}
	name := string(r.cString())
	st := &statement{}
	if m.more > 0 {
		st.form.reason = history.ReasonSize
	} else {
		st.text = slices.Clone(r.cString())
		st.types = slices.Clone(r.b[min(r.pos, len(r.b)):])
	}
	if name == "" { // takes the place of another
		s.closeVariants(s.names.speculative.statements[name])
	}
	if st.forgotten = !s.admits(bytesOf(st.text)); st.forgotten {
		*st = statement{form: form{reason: history.ReasonTooManyNames}, forgotten: true}
	}
	if m.more > 0 || r.err != nil || st.forgotten {
		s.toServer = append(s.toServer, m.raw...)
	} else {
		st.env = s.envOf(st)
		st.form = s.plan(st.text, st.env)
		st.env.Narrow = s.narrows(st.form.script)
		s.askBeforeEnd(st.form.plan(0))
		s.sendParse(name, st, &st.form)
	}
	s.expect(pendingReply{kind: pendingParse, name: name, statement: st})
	if st.forgotten {
		delete(s.names.speculative.statements, name)
		return
	}
	s.names.speculative.statements[name] = st
	if st.form.rewritten && name != "" {
		s.original(st, nil)
	}
	if name != "" {
		s.keepStars(st)
	}
}

// envOf is what a text is read under that was prepared, and is to run next. Its types begin with their number.
func (s *Session) envOf(st *statement) sqlpostgres.Session {
	env := s.planEnv(true)
	env.Untyped = !slices.ContainsFunc(st.types[min(2, len(st.types)):], func(b byte) bool { return b != 0 })
	return env
}

// bind takes a Bind message. Its result's format codes are one for each column, or one for all, or none: for
// hidden columns there are more of them.
func (s *Session) bind(m message) {
	b, err := readBind(m.body, s.cfg.Args)
	st := s.names.speculative.statements[b.statement]
	x := pendingReply{kind: pendingBind, name: b.portal, from: b.statement, statement: st,
		portal: &portal{of: st, on: b.statement}}
	p := x.portal
	if p.bytes = bytesOf(nil) + 2*len(m.body); !s.admits(p.bytes) {
		s.bindForgotten(m, &b, x)
		return
	}
	if st == nil || err != nil && m.more == 0 {
		x.portal.reason = history.ReasonUnknownStatement
		s.expect(x)
		s.toServer = append(s.toServer, m.raw...)
		return
	}
	p.bound = s.ran + 1
	if b.statement != "" { // a question would take the unnamed one away; its Parse has asked
		s.askBeforeEnd(st.form.plan(0))
	}
	if p.form = st.form; p.form.script != nil {
		p.on = s.chooseVariant(b.statement, st, p, m.more > 0, s.bindFirst(m, &b, st))
		s.tryStars(m, &b, st)
	}
	if s.cfg.Args && m.more == 0 {
		p.args = appendArgs(nil, &b, st.types)
	}
	if plan := p.form.plan(0); plan != nil && (len(plan.Predicates) > 0 || s.cfg.Texts) && m.more == 0 {
		types := st.types
		if st.parameters != nil {
			types = st.parameters[headBytes:]
		}
		p.literals = literals(&b, types)
	}
	codes := b.codes
	if s.tap != nil {
		p.codes = slices.Clone(b.codes)
	}
	if m.more == 0 {
		f := &p.form
		if e := s.names.confirmed.executed(f.plan(0)); e != nil {
			f = e
		}
		plan, hidden := s.names.speculative.resultOf(f)
		codes = widened(b.codes, p.cutOf())
		p.wider = (len(codes) - len(b.codes)) / 2
		codes = resultCodes(codes, plan, hidden)
	}
	if len(codes) > 0 {
		p.format = codes[len(codes)-1]
	}
	s.expect(x)
	s.names.speculative.portals[b.portal] = p
	s.mayRebind(b.portal, p, m.body)
	s.sendBind(m, &b, p.on, codes)
}

// bindForgotten takes a Bind message of which nothing is remembered: it binds what the client wrote.
func (s *Session) bindForgotten(m message, b *bound, x pendingReply) {
	on := b.statement
	if x.statement != nil && x.statement.form.rewritten && s.txn.status != txnFailed {
		on = s.original(x.statement, s.bindFirst(m, b, x.statement))
	}
	x.portal = &portal{reason: history.ReasonTooManyNames, forgotten: true}
	s.expect(x)
	delete(s.names.speculative.portals, b.portal)
	s.sendBind(m, b, on, b.codes)
}

// describe takes a Describe message.
func (s *Session) describe(m message) {
	r := reader{b: m.body}
	x := pendingReply{kind: pendingDescribePortal}
	if objectKind(r.uint8()) == ofStatement {
		x.kind = pendingDescribeStatement
	}
	x.name = string(r.cString())
	if s.describesNothing(&x) {
		return
	}
	if st := x.describedIn(s.names.speculative); st != nil {
		st.asked = true
	}
	if p := s.names.speculative.portals[x.name]; x.kind == pendingDescribePortal && p != nil {
		p.asked = true
	}
	on := x.name
	if st := s.names.speculative.statements[x.name]; x.kind == pendingDescribeStatement && st != nil &&
		st.form.rewritten {
		p := portal{form: st.form}
		if on = s.chooseVariant(x.name, st, &p, false, s.describeFirst(m, x.name)); on != x.name {
			x.form = &p.form
		}
	}
	s.expect(x)
	if on == x.name {
		s.toServer = append(s.toServer, m.raw...)
	} else {
		s.toServer = appendNamed(s.toServer, msgDescribe, ofStatement, on)
	}
}

// execute takes an Execute message. One that writes and returns what only isotap sees runs to its end, as it
// does without that.
func (s *Session) execute(m message) {
	r := reader{b: m.body}
	x := pendingReply{kind: pendingExecute, name: string(r.cString())}
	rows := r.uint32()
	s.runs(x.name)
	p := s.names.speculative.portals[x.name]
	if p != nil {
		if x.halted = s.halted(&p.form); x.halted != nil {
			s.expect(x)
			s.toServer = appendMessage(s.toServer, msgExecute, append([]byte(noSuchPortal), 0, 0, 0, 0, 0)...)
			return
		}
		if rows != 0 {
			p = s.rebind(x.name, history.ReasonRowLimit)
		}
		s.mayBeHeld(&p.form)
		s.tellSends(&p.form, p)
		s.rerun(x.name, p)
		s.describePortalFirst(x.name, p)
		p.early = p.early || !p.sent && p.bound != 0 && p.bound != s.ran
		p.sent, p.kept = true, nil
	}
	if p != nil && s.cfg.Logged && s.speculative.hides && !s.speculative.copies && s.pipeline.runsInSegment() &&
		p.form.plan(0) != nil && p.form.plan(0).Commits() {
		s.askXIDWithin()
	}
	s.expect(x)
	from := len(s.toServer)
	s.toServer = append(s.toServer, m.raw...)
	if p == nil || r.err != nil {
		s.anything()
		return
	}
	plan := p.form.plan(0)
	if plan == nil {
		s.anything()
		return
	}
	if rows != 0 && p.form.rewritten && plan.Result.Reply == rewrite.Returning {
		binary.BigEndian.PutUint32(s.toServer[from+headBytes+len(x.name)+1:], 0)
	}
	s.follow(plan)
	if p.cursor == nil {
		if s.names.speculative.follow(&p.form, plan, plan) != nil {
			s.names.declares = true
		}
	}
}

// closeName takes a Close message, and closes the statement's variants.
func (s *Session) closeName(m message) {
	r := reader{b: m.body}
	x := pendingReply{kind: pendingClose, closes: objectKind(r.uint8())}
	x.name = string(r.cString())
	s.expect(x)
	s.toServer = append(s.toServer, m.raw...)
	if x.closes == ofPortal {
		delete(s.names.speculative.portals, x.name)
		return
	}
	s.closeVariants(s.names.speculative.statements[x.name])
	delete(s.names.speculative.statements, x.name)
	s.names.forget(x.name)
}

// describesNothing answers a Describe of a write that gives the client no rows, in a transaction that has failed:
// the server then describes only what gives none, and the rewritten write gives isotap's. It reports whether it did.
// What is pending goes first, and parameters that the server never told it alone can tell.
func (s *Session) describesNothing(x *pendingReply) bool {
	f := x.formIn(s.names.confirmed)
	if s.txn.status != txnFailed || !s.pipeline.idle() || f == nil || !f.rewritten {
		return false
	}
	if plan := f.plan(0); plan == nil || plan.Result.Reply != rewrite.Returning {
		return false
	}
	if x.kind == pendingDescribeStatement {
		st := s.names.confirmed.statements[x.name]
		if st.parameters == nil {
			return false
		}
		s.toClient = append(s.toClient, st.parameters...)
	}
	s.toClient = append(s.toClient, noData...)
	return true
}

// noData is the message that says that a statement gives no rows.
var noData = []byte{msgNoData, 0, 0, 0, 4}

// described keeps what the server said of a statement's parameters.
func (s *Session) described(x *pendingReply, m message) {
	if st := s.names.confirmed.statements[x.name]; x.kind == pendingDescribeStatement && st != nil {
		st.parameters = bytes.Clone(m.raw)
	}
}

// admits reports whether a name may be remembered that takes so many bytes.
func (s *Session) admits(bytes int) bool {
	if s.names.mustCount(bytes) {
		s.names.count(len(s.pipeline.pending), s.pipeline.bytesBeyond(s.names.speculative))
	}
	return s.names.admit(bytes)
}
