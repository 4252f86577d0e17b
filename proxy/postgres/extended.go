package postgres

import (
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
		st.env = s.planEnv(true)
		st.form = s.plan(st.text, true)
		s.sendParse(name, st, &st.form)
	}
	s.expect(pendingReply{kind: pendingParse, name: name, statement: st})
	if st.forgotten {
		delete(s.names.speculative.statements, name)
		return
	}
	s.names.speculative.statements[name] = st
	if st.form.rewritten && name != "" {
		s.original(st)
	}
	if name != "" {
		s.keepStars(st)
	}
}

// sendParse sends the statement's text in that form under a name.
func (s *Session) sendParse(name string, st *statement, f *form) {
	b, start := beginMessage(s.toServer, msgParse)
	b = append(append(b, name...), 0)
	if sent := f.upstream(); sent != nil {
		b = sent.Append(b)
	} else {
		b = append(b, st.text...)
	}
	s.toServer = endMessage(append(append(b, 0), st.types...), start)
}

// A bound is what a Bind message says, as places in its body.
type bound struct {
	portal, statement string
	head              int // where the parameters' format codes begin
	params            [][]byte
	formats           []byte // of the parameters, two bytes each
	results           int    // where the count of the result's format codes stands
	codes             []byte // the result's format codes, two bytes each
}

// readBind reads the body of a Bind message, with its parameters if they are to be read.
func readBind(body []byte, params bool) (bound, error) {
	r := reader{b: body}
	b := bound{portal: string(r.cString()), statement: string(r.cString())}
	b.head = r.pos
	b.formats = r.bytes(2 * r.uint16())
	n := r.uint16()
	for range n {
		v := r.value()
		if params {
			b.params = append(b.params, v)
		}
		if r.err != nil {
			return b, r.err
		}
	}
	b.results = r.pos
	b.codes = r.bytes(2 * r.uint16())
	if r.err == nil && r.pos != len(body) {
		r.fail("more than a Bind")
	}
	return b, r.err
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
	if p.form = st.form; p.form.script != nil {
		p.on = s.chooseVariant(b.statement, st, p, m.more > 0)
		s.tryStars(m, &b, st)
	}
	if s.cfg.Args && m.more == 0 {
		p.args = appendArgs(nil, &b, st.types)
	}
	if plan := p.form.plan(0); plan != nil && len(plan.Predicates) > 0 && m.more == 0 {
		types := st.types
		if st.parameters != nil {
			types = st.parameters[headBytes:]
		}
		p.literals = literals(&b, types)
	}
	codes := b.codes
	if m.more == 0 {
		f := &p.form
		if e := s.executed(f.plan(0)); e != nil {
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
		on = s.original(x.statement)
	}
	x.portal = &portal{reason: history.ReasonTooManyNames, forgotten: true}
	s.expect(x)
	delete(s.names.speculative.portals, b.portal)
	s.sendBind(m, b, on, b.codes)
}

// resultCodes returns the format codes for the result that the form gives under its plan. Of a statement that
// gives the client no rows the server takes any number of codes, and any codes.
func resultCodes(codes []byte, plan *sqlpostgres.Plan, hidden int) []byte {
	switch {
	case hidden == 0:
		return codes
	case plan.Result.Reply == rewrite.Returning:
		if len(codes) == 2 && codes[0] == 0 && codes[1] <= 1 {
			return codes
		}
		return nil
	case len(codes) <= 2:
		return codes
	}
	codes = slices.Clone(codes)
	for range hidden {
		codes = append(codes, 0, 1) // binary
	}
	return codes
}

// sendBind sends a Bind message for the statement of that name with these codes.
func (s *Session) sendBind(m message, b *bound, on string, codes []byte) {
	if on == b.statement && len(codes) == len(b.codes) {
		s.toServer = append(s.toServer, m.raw...)
		return
	}
	out, start := beginMessage(s.toServer, msgBind)
	out = append(append(out, b.portal...), 0)
	out = append(append(out, on...), 0)
	if m.more > 0 {
		out = append(out, m.body[b.head:]...)
		binary.BigEndian.PutUint32(out[start+1:], uint32(len(out)-start-1+m.more))
		s.toServer = out
		return
	}
	out = append(out, m.body[b.head:b.results]...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(codes)/2))
	s.toServer = endMessage(append(out, codes...), start)
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
	if st := s.describes(&x); st != nil {
		st.asked = true
	}
	if p := s.names.speculative.portals[x.name]; x.kind == pendingDescribePortal && p != nil {
		p.asked = true
	}
	on := x.name
	if st := s.names.speculative.statements[x.name]; x.kind == pendingDescribeStatement && st != nil && st.form.rewritten {
		p := portal{form: st.form}
		if on = s.chooseVariant(x.name, st, &p, false); on != x.name {
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
		s.rerun(x.name, p)
		s.describePortalFirst(x.name, p)
		p.early = p.early || !p.sent && p.bound != 0 && p.bound != s.ran
		p.sent, p.kept = true, nil
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

// closeName takes a Close message, and closes what isotap prepared beside the statement.
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
