package postgres

import (
	"bytes"
	"weak"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// longFromClient says which messages of the client may be long: they are passed on as they come.
func longFromClient(kind byte) bool {
	switch kind {
	case msgQuery, msgParse, msgBind, msgFunctionCall, msgCopyData, msgCopyFail:
		return true
	}
	return false
}

// readyBytes takes one message of the client out of p, or what there is of it.
func (s *Session) readyBytes(p []byte) (int, error) {
	if s.misread {
		s.toServer = append(s.toServer, p...)
		return len(p), nil
	}
	if s.client.passing > 0 {
		part := s.client.pass(p)
		s.toServer = append(s.toServer, part...)
		return len(part), nil
	}
	m, used, err := s.client.next(p, clientLimit, longFromClient)
	switch {
	case err != nil:
		// The server will say what is wrong with it, and end the connection.
		s.misread = true
		s.toServer = append(append(s.toServer, s.client.rest()...), p[used:]...)
		return len(p), nil
	case m.raw == nil:
		return used, nil
	case s.mustWait(m.kind), s.mustDescribe(m), s.mustRedeclare(m):
		m.raw = bytes.Clone(m.raw)
		m.body = m.raw[headBytes:]
		s.held = m
		return used, nil
	}
	return used, s.clientMessage(m)
}

// mustWait reports whether a message of the client cannot be decided on before the server has answered what it
// was sent before. It may ask the server itself.
func (s *Session) mustWait(kind byte) bool {
	switch {
	case s.asking || s.resending.on:
		return true
	case s.pipeline.copyIn.active(), s.pipeline.skipping:
		return false
	case s.pipeline.full():
		return s.pipeline.due > 0
	case !s.retry.open && (kind == msgSync || kind == msgTerminate) && s.retry.trial():
		return !s.pipeline.idle() // it is to come behind what may be sent again
	case s.retry.open || !begins(kind):
		return false
	case !s.pipeline.idle():
		// One that is sent as rewritten for the first time may have to be sent again as it was.
		return s.settings.stale || s.retry.trial()
	}
	s.names.agree()
	return s.settings.stale && s.askSettings() || s.prepares()
}

// begins reports whether a message may begin a segment: what the server answers up to a ReadyForQuery.
func begins(kind byte) bool {
	switch kind {
	case msgQuery, msgParse, msgBind, msgDescribe, msgExecute, msgClose, msgFunctionCall:
		return true
	}
	return false
}

// goOn takes the message that waited, when it need not wait any longer.
func (s *Session) goOn() error {
	if s.held.raw == nil || s.mustWait(s.held.kind) || s.mustDescribe(s.held) || s.mustRedeclare(s.held) {
		return nil
	}
	m := s.held
	s.held = message{}
	return s.clientMessage(m)
}

// clientMessage takes a message of the client.
func (s *Session) clientMessage(m message) error {
	s.client.passing = m.more
	if s.pipeline.skipping && m.kind != msgSync && m.kind != msgTerminate || s.pipeline.copyIn.active() &&
		(m.kind == msgSync || m.kind == msgFlush) {
		s.toServer = append(s.toServer, m.raw...) // the server takes no notice
		return nil
	}
	if m.kind == msgQuery || m.kind == msgFunctionCall {
		s.runsAlone()
	}
	if m.kind == msgQuery || m.kind == msgParse {
		s.mayList(m.body)
	}
	if begins(m.kind) {
		s.beginSegment()
		s.closeOrphans()
	}
	s.keep(m)
	switch m.kind {
	case msgQuery:
		s.query(m)
	case msgParse:
		s.parse(m)
	case msgBind:
		s.bind(m)
	case msgDescribe:
		s.describe(m)
	case msgExecute:
		s.execute(m)
	case msgClose:
		s.closeName(m)
	case msgFunctionCall:
		s.expect(pendingReply{kind: pendingCall})
		s.settings.stale = true // any function may change settings
		s.retry.open = false
		s.toServer = append(s.toServer, m.raw...)
	case msgSync:
		s.sync(m)
	case msgFlush:
		s.pipeline.flush()
		s.toServer = append(s.toServer, m.raw...)
	case msgCopyDone, msgCopyFail:
		s.pipeline.copyIn.sent++
		s.toServer = append(s.toServer, m.raw...)
	default: // CopyData, Terminate, and what only the server knows what to say of
		s.toServer = append(s.toServer, m.raw...)
	}
	return nil
}

// sync takes the Sync that ends a segment.
func (s *Session) sync(m message) {
	s.pipeline.skipping = false
	s.retry.open = false
	s.expect(pendingReply{kind: pendingSync})
	s.toServer = append(s.toServer, m.raw...)
	if !s.speculative.block { // portals end with the implicit transaction
		s.names.rebindable = s.names.rebindable[:0]
	}
	s.implicitTxnEnds()
}

// query takes a text of statements. A long one is passed on as it comes.
func (s *Session) query(m message) {
	x := pendingReply{kind: pendingQuery, form: &form{}}
	s.retry.open = false
	defer s.implicitTxnEnds()
	switch end := len(m.body) - 1; {
	case m.more > 0:
		x.form.reason = history.ReasonSize
		s.anything()
	case end >= 0 && m.body[end] == 0:
		*x.form = s.executing(s.plan(m.body[:end], false), m.body[:end])
	}
	if x.halted = s.halted(x.form); x.halted != nil {
		x.form = &form{}
		s.expect(x)
		s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(noSuchPortal), 0)...)
		return
	}
	s.expect(x)
	if sent := x.form.upstream(); sent == nil {
		s.toServer = append(s.toServer, m.raw...)
	} else {
		b, start := beginMessage(s.toServer, msgQuery)
		s.toServer = endMessage(append(sent.Append(b), 0), start)
	}
	for at := 0; x.form.plan(at) != nil; at++ {
		s.follow(x.form.plan(at))
		if s.names.speculative.follow(x.form, x.form.plan(at), x.form.plan(at)) != nil {
			s.names.declares = true
		}
	}
}

// plan makes the form in which a text goes upstream.
func (s *Session) plan(text []byte, extended bool) form {
	if s.planner == nil {
		return form{}
	}
	env := s.planEnv(extended)
	script, ok := s.planSafely(text, env)
	f := form{script: script}
	if !ok {
		f.reason = history.ReasonFault
		s.anything()
	}
	if f.script == nil {
		return f
	}
	switch {
	case f.script.Pieces == nil:
	case s.settings.stale || !s.settings.known:
		f.reason = history.ReasonSettingsNotKnown
	case !s.scripts.refused[weak.Make(f.script.Model())].IsZero():
		f.reason = s.scripts.refused[weak.Make(f.script.Model())]
	case s.isMisplanned(f.script.Statements):
		f.reason = history.ReasonMisplanned
	case s.mayBeRead(f.script.Statements):
		f.reason = history.ReasonReadOnServer
	case s.tooLarge(f.script.Statements):
		f.reason = history.ReasonLargeAggregate
	default:
		f.rewritten = true
	}
	f.bare = !f.rewritten && !s.scripts.refused[weak.Make(f.script.Plain.Model())].IsZero()
	f.namesOurs = s.planner.Exposes() && bytes.Contains(text, []byte(rewrite.NamePrefix))
	s.try(f.upstream())
	return f
}

// planSafely asks the planner. A panic there is isotap's fault and must not be the client's: ok is then false, there
// is no script, and the text goes as it is, unobserved.
func (s *Session) planSafely(text []byte, env sqlpostgres.Session) (script *sqlpostgres.Script, ok bool) {
	defer func() {
		if fault := session.Caught(recover()); fault != nil {
			s.events = append(s.events, session.Event{Fault: fault})
			script, ok = nil, false
		}
	}()
	return s.planner.Plan(text, env), true
}

// planEnv is what a text is read under that is sent next.
func (s *Session) planEnv(extended bool) sqlpostgres.Session {
	env := s.settings.env
	env.Extended, env.Nested = extended, s.speculative.nested
	env.Serializable = s.speculative.level == history.Serializable || s.speculative.level == history.LevelUnknown
	return env
}

// speculativeTxn is what the session is in once everything sent has been done.
type speculativeTxn struct {
	block bool          // a transaction block
	level history.Level // of the next statement
	// nested says that a savepoint may be open.
	nested bool
}

// follow takes what a statement that is sent will change for those after it.
func (s *Session) follow(p *sqlpostgres.Plan) {
	if p.Session.Changes || p.Schema.Changes && s.settings.env.Path == noPath { // it may have made the temporary schema
		s.settings.stale = true
	}
	if p.Session.ReadsCursors && s.planner != nil {
		s.planner.ReadCursors()
	}
	if p.Schema.Changes || len(p.Schema.CreatesTemp) > 0 {
		s.settings.unsettle(p)
	}
	switch {
	case p.Kind == history.Savepoint:
		s.speculative.nested = true
	case p.Kind == history.Begin:
		if !s.speculative.block {
			s.speculative = speculativeTxn{block: true, level: s.levelOr(p.Txn.Level)}
		}
	case p.Txn.Ends && p.Kind != history.Call && !p.Txn.Chains:
		s.speculative = speculativeTxn{level: s.settings.level}
	case p.Txn.Level != history.LevelUnknown:
		s.speculative.level = runsAt(p.Txn.Level)
	}
}

// implicitTxnEnds ends what is no transaction block: an implicit transaction lasts as long as its segment.
func (s *Session) implicitTxnEnds() {
	if !s.speculative.block {
		s.speculative.level = s.settings.level
	}
}

// anything is what a text that nobody reads may do to the session.
func (s *Session) anything() {
	s.settings.stale = true
	s.settings.unsettle(&sqlpostgres.Plan{Schema: sqlpostgres.SchemaEffect{Changes: true}})
}

// levelOr is the level of a transaction that asks for l: the session's default where it does not.
func (s *Session) levelOr(l history.Level) history.Level {
	if l == history.LevelUnknown {
		return s.settings.level
	}
	return runsAt(l)
}
