package postgres

import (
	"bytes"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

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
	f.namesOurs = s.planner.Exposes() && bytes.Contains(text, []byte(rewrite.NamePrefix))
	s.tries(f.upstream())
	return f
}

// tries notes that a script is sent as rewritten; nil is none.
func (s *Session) tries(script *sqlpostgres.Script) {
	if script != nil && !s.scripts.isProven(script) {
		s.retry.tried = true
	}
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
