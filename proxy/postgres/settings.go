package postgres

import (
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// settings is what the session's statements are read under. The server is asked for it at the start and
// after every statement that may have changed it, on the client's own connection.
type settings struct {
	stale    bool // ask before the next statement
	asking   bool
	known    bool
	database string
	planner  Planner
	env      sqlpostgres.Session
	level    history.Level // that transactions have which ask for none
	// unsure says that the server was not asked since the settings may have changed.
	unsure   bool
	calls    calls
	literals history.LiteralSettings
}

// An answer is that to isotap's own question.
type answer struct {
	values [][]byte
	failed *serverError
	// login says that it is the first one, which the client's login waits for.
	login bool
	// prepares is what a PREPARE of isotap's own is for; nil: it was a question about the settings.
	prepares *wish
	// anew are cursors that are to be declared anew, declared that this was the text that does so.
	anew     map[string]*portal
	declared bool
}

// question asks for what takeSettings reads. It calls nothing that a search path could lead elsewhere, and
// reads no table.
const question = "SELECT pg_catalog.current_database(), current_user, " + schemas + ", " +
	"pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.current_setting('transaction_isolation'), " +
	"pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('standard_conforming_strings'), " +
	"pg_catalog.current_setting('client_encoding')"

// schemas are those that unqualified names are looked for in. Where pg_temp is the one that tables are created in, and
// is not there yet, current_schemas would create it: the session's transaction could then not be prepared, as one that
// has operated on temporary objects. So it is asked only where there is such a schema, where the path has no pg_temp,
// or where it names another schema before it that the role may use. Otherwise names are looked for in none (noSchemas).
const schemas = "CASE WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 OR " + searchPath +
	" OPERATOR(pg_catalog.!~*) 'pg_temp' OR " +
	"EXISTS (SELECT FROM pg_catalog.unnest(pg_catalog.string_to_array(pg_catalog.regexp_replace(" + searchPath +
	", 'pg_temp.*$', '', 'i'), ',')) AS item " +
	"WHERE CASE WHEN item OPERATOR(pg_catalog.~*) '^ *(\"[^\"]+\"|[a-z_$][a-z0-9_$]*) *$' THEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace(" +
	"CASE WHEN item OPERATOR(pg_catalog.~) '[$]user' THEN pg_catalog.quote_ident(current_user) ELSE pg_catalog.btrim(item) END)::pg_catalog.oid, 'USAGE') END) " +
	"THEN pg_catalog.current_schemas(true) ELSE '{" + noSchemas + "}' END"

const searchPath = "pg_catalog.current_setting('search_path')"

// noSchemas is the only schema in the path of a session whose temporary schema is not there yet: nobody's tables are in
// it.
const noSchemas = "pg_catalog"

// noPath is the path of such a session.
var noPath = rewrite.ListOf(noSchemas)

const answers = 8

// askSettings asks the server for the session's settings, if it can be asked now, and says whether it did.
// Inside a transaction that has no snapshot yet and keeps its first one the question would take it.
func (s *Session) askSettings() bool {
	switch {
	case s.status == txnIdle:
	case s.status == txnOpen && (s.snapshot || s.blockLevel == history.ReadCommitted):
	default:
		return false
	}
	s.ask(&answer{})
	return true
}

func (s *Session) ask(a *answer) { s.send(a, []byte(question)) }

// send sends a text of isotap's own.
func (s *Session) send(a *answer, text []byte) {
	s.asking = true
	s.owe(owed{kind: owesQuery, form: &form{}, own: true, silent: true, answer: a})
	s.toServer = appendMessage(s.toServer, msgQuery, append(text, 0)...)
}

// takeAnswer takes a message of the reply to isotap's own question.
func (s *Session) takeAnswer(x *owed, m message) error {
	a := x.answer
	switch m.kind {
	case msgDataRow:
		r := reader{b: m.body}
		for range r.uint16() {
			a.values = append(a.values, append([]byte(nil), r.value()...))
		}
		return r.err
	case msgRowDescription, msgCommandComplete:
		return nil
	case msgReadyForQuery:
	default:
		return unexpected(m, x)
	}
	if len(m.body) != 1 {
		return unexpected(m, x)
	}
	s.status = txnStatus(m.body[0])
	s.settled()
	s.asking = false
	if a.prepares != nil {
		s.tookWish(a)
		return nil
	}
	if a.anew != nil {
		s.tookAnew(a)
		return nil
	}
	s.takeSettings(a)
	if a.login {
		s.toClient = append(s.toClient, m.raw...)
		s.loggedIn()
	}
	return nil
}

// takeSettings reads the answer. Without it the session's statements are not rewritten.
func (s *Session) takeSettings(a *answer) {
	s.stale, s.known, s.unsure = false, false, false
	env, level := s.env, s.level
	switch {
	case a.failed != nil:
		s.note("cannot read the session's settings (SQLSTATE %s: %s): its statements go unobserved", a.failed.code,
			a.failed.message)
		return
	case len(a.values) != answers:
		s.note("cannot read the session's settings (%d values): its statements go unobserved", len(a.values))
		return
	}
	version, err := strconv.Atoi(string(a.values[5]))
	path, ok := readArray(a.values[2], 0)
	if err != nil || !ok {
		s.note("cannot read the session's settings (version %q, schemas %q): its statements go unobserved", a.values[5],
			a.values[2])
		return
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = string(name)
	}
	s.env.Version, s.env.Role, s.env.Path = version/10000, string(a.values[1]), rewrite.ListOf(names...)
	s.env.Backslashes, s.env.Encoding = string(a.values[6]) == "off", string(a.values[7])
	s.level = levelNamed(string(a.values[3]))
	if s.status == txnOpen {
		s.blockLevel = levelNamed(string(a.values[4]))
		s.ahead.level = s.blockLevel
		if s.txn != nil {
			s.txn.Level = s.blockLevel
		}
	} else {
		s.ahead = ahead{level: s.level}
	}
	s.calls.answered(env == s.env && level == s.level)
	s.known = true
	s.database = string(a.values[0])
}

// loggedIn begins the session's statements: with a planner for its database, if there is one.
func (s *Session) loggedIn() {
	s.phase = phaseReady
	if !s.known {
		s.copyOn()
		return
	}
	s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.database, Begins: true}})
	s.planning = true
}

// findPlanner finds the planner once the tables have been read that it rests on.
func (s *Session) findPlanner() {
	s.planning = false
	if s.planner = s.cfg.Planners(s.database); s.planner == nil {
		s.note("the tables of database %q are not known: the session goes on unobserved", s.database)
		s.copyOn()
	}
}

// levelNamed reads a level by the name that the server gives it.
func levelNamed(name string) history.Level {
	l, err := history.ParseLevel(strings.ToUpper(name))
	if err != nil {
		return history.LevelUnknown
	}
	return runsAt(l)
}
