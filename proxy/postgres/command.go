package postgres

import (
	"bytes"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// longFromClient reports whether a message of the client may be long: it is passed on as it comes.
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
	case s.holds(m):
		m.raw = bytes.Clone(m.raw)
		m.body = m.raw[headBytes:]
		s.held = m
		return used, nil
	}
	return used, s.clientMessage(m)
}

// holds reports whether a message of the client has to wait, until replies to what was sent before it are there, or to
// what isotap itself asks first: the settings, a description, cursors that are declared anew.
func (s *Session) holds(m message) bool {
	return s.mustWait(m.kind) || s.mustDescribe(m) || s.mustRedeclare(m)
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
	case !s.retry.open && (kind == msgSync || kind == msgTerminate) && s.retry.mayResend():
		return !s.pipeline.idle() // it is to come behind what may be sent again
	case s.retry.open || !begins(kind):
		return false
	case !s.pipeline.idle():
		// One that is sent as rewritten for the first time may have to be sent again as it was.
		return s.settings.stale || s.retry.mayResend()
	}
	s.names.agree()
	return s.settings.stale && s.askSettings() || s.prepares()
}

// goOn takes the message that waited, when it need not wait any longer.
func (s *Session) goOn() error {
	if s.held.raw == nil || s.holds(s.held) {
		return nil
	}
	m := s.held
	s.held = message{}
	return s.clientMessage(m)
}

// beginSegment is called with each message that may begin what the server answers up to a ReadyForQuery.
func (s *Session) beginSegment() {
	if s.retry.open {
		return
	}
	idle := s.pipeline.idle()
	if idle {
		s.pipeline.copyIn = copyIn{}
	}
	s.retry.begin(idle && s.txn.status == txnIdle && !s.resending.running)
}

// clientMessage takes a message of the client: what the server takes no notice of goes by. What has to come before a
// message is sent first. Then it is kept, as it may have to be sent again, and sent in its own way.
func (s *Session) clientMessage(m message) error {
	s.client.passing = m.more
	if s.goesBy(m.kind) {
		s.toServer = append(s.toServer, m.raw...)
		return nil
	}
	s.sendBefore(m)
	s.retry.add(m)
	s.sendMessage(m)
	return nil
}

// goesBy reports whether the server takes no notice of a message: it skips what follows an error, and has use for data
// alone while it copies.
func (s *Session) goesBy(kind byte) bool {
	return s.pipeline.skipping && kind != msgSync && kind != msgTerminate ||
		s.pipeline.copyIn.active() && (kind == msgSync || kind == msgFlush)
}

// sendBefore sends what the server is to have done before a message: portals bound once more that another statement
// would come before, and an end to what isotap prepared for statements that are gone. What answers the message begins
// with its segment.
func (s *Session) sendBefore(m message) {
	if m.kind == msgQuery || m.kind == msgFunctionCall {
		s.runsAlone()
	}
	if m.kind == msgQuery || m.kind == msgParse {
		s.names.mayList(m.body)
	}
	if begins(m.kind) {
		s.beginSegment()
		s.closeOrphans()
	}
}

// sendMessage sends a message as it is planned, and notes the reply that it will have.
func (s *Session) sendMessage(m message) {
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
}

// sync takes the Sync that ends a segment.
func (s *Session) sync(m message) {
	if s.cfg.Logged && s.speculative.hides && !s.speculative.copies && !s.speculative.block && !s.pipeline.skipping &&
		s.pipeline.runsInSegment() {
		s.askXIDWithin()
	}
	if !s.speculative.block && !s.pipeline.skipping {
		s.askMomentsWithin()
	}
	s.pipeline.skipping = false
	s.retry.open = false
	s.expect(pendingReply{kind: pendingSync})
	s.toServer = append(s.toServer, m.raw...)
	if !s.speculative.block { // portals end with the implicit transaction
		s.names.rebindable = s.names.rebindable[:0]
	}
	s.speculative.segmentEnds(s.settings.level)
}

// query takes a text of statements. A long one is passed on as it comes.
func (s *Session) query(m message) {
	x := pendingReply{kind: pendingQuery, form: &form{}}
	s.retry.open = false
	defer s.speculative.segmentEnds(s.settings.level)
	switch end := len(m.body) - 1; {
	case m.more > 0:
		x.form.reason = history.ReasonSize
		s.anything()
	case end >= 0 && m.body[end] == 0:
		*x.form = s.executing(s.plan(m.body[:end], s.planEnv(false)), m.body[:end])
	}
	if x.halted = s.halted(x.form); x.halted != nil {
		x.form = &form{}
		s.expect(x)
		s.toServer = appendMessage(s.toServer, msgQuery, append([]byte(noSuchPortal), 0)...)
		return
	}
	s.mayBeHeld(x.form)
	s.tellSends(x.form, nil)
	s.askBeforeEnd(x.form.plan(0))
	s.sendQuery(m, x)
	for at := 0; x.form.plan(at) != nil; at++ {
		s.follow(x.form.plan(at))
		if s.names.speculative.follow(x.form, x.form.plan(at), x.form.plan(at)) != nil {
			s.names.declares = true
		}
	}
}

// sendQuery sends a text as it is planned.
func (s *Session) sendQuery(m message, x pendingReply) {
	switch asks := s.asksBehind(m, x.form); {
	case asks == inMessages:
		s.sendAsPortal(m.body[:len(m.body)-1], x.form)
		return
	case asks == inText:
		x.asks, s.retry.tried = true, true
	}
	s.expect(x)
	sent := x.form.upstream()
	if sent == nil && !x.asks {
		s.toServer = append(s.toServer, m.raw...)
		return
	}
	b, start := beginMessage(s.toServer, msgQuery)
	if x.asks {
		b = append(append(append(b, m.body[:len(m.body)-1]...), "\n;"...), s.askingXID()...)
	} else {
		b = sent.Append(b)
	}
	s.toServer = endMessage(append(b, 0), start)
}

// mayBeHeld tells the provoker which text is about to be run. It does not where earlier texts are not answered yet,
// since the client has not seen what they read, nor for a client that listens: these are not held back.
func (s *Session) mayBeHeld(f *form) {
	if s.cfg.Provoke == nil || s.listens || f.plan(0) == nil || s.pipeline.runs() {
		return
	}
	p := f.plan(0)
	s.cfg.Provoke.Sends(provoke.Statement{Kind: p.Kind, Locking: p.Locking, Shape: p.Shape, Target: p.Target,
		Level: s.txn.levelNow(s.settings.txnLevel())})
}

// plan makes the form in which a text goes upstream.
func (s *Session) plan(text []byte, env sqlpostgres.Session) form {
	if s.planner == nil {
		return form{}
	}
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
	case !s.scripts.refusal(f.script).IsZero():
		f.reason = s.scripts.refusal(f.script)
	case s.isMisplanned(f.script.Statements):
		f.reason = history.ReasonMisplanned
	case s.mayBeRead(f.script.Statements):
		f.reason = history.ReasonReadOnServer
	case s.tooLarge(f.script.Statements):
		f.reason = history.ReasonLargeAggregate
	default:
		f.rewritten = true
	}
	f.bare = !f.rewritten && !s.scripts.refusal(f.script.Plain).IsZero()
	f.namesOurs = (f.rewritten || s.planner.Exposes()) && bytes.Contains(text, []byte(rewrite.NamePrefix))
	s.tries(f.upstream())
	return f
}

// tries notes that a script is sent as rewritten; nil is none.
func (s *Session) tries(script *sqlpostgres.Script) {
	if script != nil && !s.scripts.isProven(script) {
		s.retry.tried = true
	}
}

// planSafely plans a text; where its subqueries read too much, by a script that does not look into them.
func (s *Session) planSafely(text []byte, env sqlpostgres.Session) (script *sqlpostgres.Script, ok bool) {
	script, ok = s.planUnder(text, env)
	if s.narrows(script) && !env.Narrow {
		env.Narrow = true
		return s.planUnder(text, env)
	}
	return script, ok
}

// planUnder asks the planner. A panic there is isotap's fault and must not be the client's: ok is then false, there
// is no script, and the text goes as it is, unobserved.
func (s *Session) planUnder(text []byte, env sqlpostgres.Session) (script *sqlpostgres.Script, ok bool) {
	defer func() {
		if fault := session.Caught(recover()); fault != nil {
			s.events = append(s.events, session.Event{Fault: fault})
			script, ok = nil, false
		}
	}()
	return s.planner.Plan(text, env), true
}

// narrows reports whether the subqueries of one of a script's statements read too many rows to show their identities.
func (s *Session) narrows(script *sqlpostgres.Script) bool {
	return script != nil && slices.ContainsFunc(script.Statements,
		func(p *sqlpostgres.Plan) bool { return s.planner.AreSubqueriesTooLarge(p.Shape) })
}

// planEnv is what a text is read under that is sent next.
func (s *Session) planEnv(extended bool) sqlpostgres.Session {
	env := s.settings.env
	env.Extended, env.Nested, env.Logged = extended, s.speculative.nested, s.cfg.Logged
	env.Serializable = s.speculative.level == history.Serializable || s.speculative.level == history.LevelUnknown
	return env
}

// follow takes what a statement that is sent will change for those after it.
func (s *Session) follow(p *sqlpostgres.Plan) {
	if p.Session.Changes || p.Schema.Changes && s.settings.env.Path.Has(sqlpostgres.TemporarySchema) { // it may be there now
		s.settings.stale = true
	}
	if p.Session.ReadsCursors && s.planner != nil {
		s.planner.ReadCursors()
	}
	if p.Schema.Changes || len(p.Schema.CreatesTemp) > 0 {
		s.settings.unsettle(p)
	}
	s.speculative.follow(p, s.settings.level)
}

// anything is what a text that nobody reads may do to the session.
func (s *Session) anything() {
	s.settings.stale = true
	s.settings.unsettle(&sqlpostgres.Plan{Schema: sqlpostgres.SchemaEffect{Changes: true}})
}

// isMisplanned reports whether one of a text's statements has a shape that was once planned wrong.
func (s *Session) isMisplanned(plans []*sqlpostgres.Plan) bool {
	return slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool { return s.planner.IsMisplanned(p.Shape) })
}

// tooLarge reports whether one of a text's statements reads too many rows to collect their identities.
func (s *Session) tooLarge(plans []*sqlpostgres.Plan) bool {
	for _, p := range plans {
		if slices.ContainsFunc(p.Result.Sources, func(src sqlpostgres.Source) bool { return src.Array }) &&
			s.planner.IsTooLarge(p.Shape) {
			return true
		}
	}
	return false
}

// mayBeRead reports whether one of a text's statements declares a cursor that the server may read by its name, or show
// to the client in pg_cursors.
func (s *Session) mayBeRead(plans []*sqlpostgres.Plan) bool {
	if !slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool {
		return p.Session.Cursor != nil &&
			p.Session.Cursor.Verb == sqlpostgres.DeclareCursor
	}) {
		return false
	}
	return len(s.names.speculative.portals) >= maxCursors || s.names.cursorsListed || s.planner.CursorsAreRead() ||
		slices.ContainsFunc(plans, func(p *sqlpostgres.Plan) bool { return p.Session.ReadsCursors })
}
