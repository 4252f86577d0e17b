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
	case s.mustWait(m.kind), s.mustLook(m), s.mustDeclareAnew(m):
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
	case s.asking || s.replay.on:
		return true
	case s.copyingIn(), s.skipping:
		return false
	case len(s.queue) >= maxOwed:
		return s.due > 0
	case !s.segment.open && (kind == msgSync || kind == msgTerminate) && s.segment.trial():
		return len(s.queue) > 0 // it is to come behind what may be sent again
	case s.segment.open || !begins(kind):
		return false
	case len(s.queue) > 0:
		// One that is sent as rewritten for the first time may have to be sent again as it was.
		return s.stale || s.segment.trial()
	}
	s.names.agree()
	return s.stale && s.askSettings() || s.prepares()
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
	if s.held.raw == nil || s.mustWait(s.held.kind) || s.mustLook(s.held) || s.mustDeclareAnew(s.held) {
		return nil
	}
	m := s.held
	s.held = message{}
	return s.clientMessage(m)
}

// clientMessage takes a message of the client.
func (s *Session) clientMessage(m message) error {
	s.client.passing = m.more
	if s.skipping && m.kind != msgSync && m.kind != msgTerminate || s.copyingIn() &&
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
		s.owe(owed{kind: owesCall})
		s.stale = true // any function may change settings
		s.segment.open = false
		s.toServer = append(s.toServer, m.raw...)
	case msgSync:
		s.sync(m)
	case msgFlush:
		s.due = len(s.queue)
		s.toServer = append(s.toServer, m.raw...)
	case msgCopyDone, msgCopyFail:
		s.copiesSent++
		s.toServer = append(s.toServer, m.raw...)
	default: // CopyData, Terminate, and what only the server knows what to say of
		s.toServer = append(s.toServer, m.raw...)
	}
	return nil
}

// sync takes the Sync that ends a segment.
func (s *Session) sync(m message) {
	s.skipping = false
	s.segment.open = false
	s.owe(owed{kind: owesSync})
	s.toServer = append(s.toServer, m.raw...)
	if !s.ahead.block { // portals end with the implicit transaction
		s.names.rebindable = s.names.rebindable[:0]
	}
	s.aheadEnds()
}

// query takes a text of statements. A long one is passed on as it comes.
func (s *Session) query(m message) {
	x := owed{kind: owesQuery, form: &form{}}
	s.segment.open = false
	defer s.aheadEnds()
	switch end := len(m.body) - 1; {
	case m.more > 0:
		x.form.reason = history.ReasonSize
		s.anything()
	case end >= 0 && m.body[end] == 0:
		*x.form = s.executing(s.plan(m.body[:end], false), m.body[:end])
	}
	if x.halted = s.halted(x.form); x.halted != nil {
		x.form = &form{}
		s.owe(x)
		s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(noSuchPortal), 0)...)
		return
	}
	s.owe(x)
	if sent := x.form.upstream(); sent == nil {
		s.toServer = append(s.toServer, m.raw...)
	} else {
		b, start := beginMessage(s.toServer, msgQuery)
		s.toServer = endMessage(append(sent.Append(b), 0), start)
	}
	for at := 0; x.form.plan(at) != nil; at++ {
		s.follow(x.form.plan(at))
		if s.names.sent.follow(x.form, x.form.plan(at), x.form.plan(at)) != nil {
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
	case s.stale || !s.known:
		f.reason = history.ReasonSettingsNotKnown
	case !s.refused[weak.Make(f.script.Model())].IsZero():
		f.reason = s.refused[weak.Make(f.script.Model())]
	case s.isMisplanned(f.script.Statements):
		f.reason = history.ReasonMisplanned
	case s.mayBeRead(f.script.Statements):
		f.reason = history.ReasonReadOnServer
	case s.tooLarge(f.script.Statements):
		f.reason = history.ReasonLargeAggregate
	default:
		f.rewritten = true
	}
	f.bare = !f.rewritten && !s.refused[weak.Make(f.script.Plain.Model())].IsZero()
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
	env := s.env
	env.Extended, env.Nested = extended, s.ahead.nested
	env.Serializable = s.ahead.level == history.Serializable || s.ahead.level == history.LevelUnknown
	return env
}

// ahead is what the session is in once everything sent has been done.
type ahead struct {
	block bool          // a transaction block
	level history.Level // of the next statement
	// nested says that a savepoint may be open.
	nested bool
}

// follow takes what a statement that is sent will change for those after it.
func (s *Session) follow(p *sqlpostgres.Plan) {
	if p.Session.Changes || p.Schema.Changes && s.env.Path == noPath { // it may have made the temporary schema
		s.stale = true
	}
	if p.Session.ReadsCursors && s.planner != nil {
		s.planner.ReadCursors()
	}
	if p.Schema.Changes || len(p.Schema.CreatesTemp) > 0 {
		s.unsettle(p)
	}
	switch {
	case p.Kind == history.Savepoint:
		s.ahead.nested = true
	case p.Kind == history.Begin:
		if !s.ahead.block {
			s.ahead = ahead{block: true, level: s.levelOr(p.Txn.Level)}
		}
	case p.Txn.Ends && p.Kind != history.Call && !p.Txn.Chains:
		s.ahead = ahead{level: s.level}
	case p.Txn.Level != history.LevelUnknown:
		s.ahead.level = runsAt(p.Txn.Level)
	}
}

// aheadEnds ends what is no transaction block: an implicit transaction lasts as long as its segment.
func (s *Session) aheadEnds() {
	if !s.ahead.block {
		s.ahead.level = s.level
	}
}

// anything is what a text that nobody reads may do to the session.
func (s *Session) anything() {
	s.stale = true
	s.unsettle(&sqlpostgres.Plan{Schema: sqlpostgres.SchemaEffect{Changes: true}})
}

// levelOr is the level of a transaction that asks for l: the session's default where it does not.
func (s *Session) levelOr(l history.Level) history.Level {
	if l == history.LevelUnknown {
		return s.level
	}
	return runsAt(l)
}

// runsAt is the level that PostgreSQL runs a level as.
func runsAt(l history.Level) history.Level {
	if l == history.ReadUncommitted {
		return history.ReadCommitted
	}
	return l
}
