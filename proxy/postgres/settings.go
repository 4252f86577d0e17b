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
	known    bool
	database string
	env      sqlpostgres.Session
	level    history.Level // that transactions have which ask for none
	// unsure says that the server was not asked since the settings may have changed.
	unsure bool
	// resets says that settings were changed in the transaction, which a rollback takes back.
	resets   bool
	calls    calls
	literals history.LiteralSettings
}

// txnLevel is the level of a transaction that asks for none; unknown where the server has not been asked since it may
// have changed.
func (x *settings) txnLevel() history.Level {
	if x.unsure {
		return history.LevelUnknown
	}
	return x.level
}

// changed notes that the settings may have changed, in a way that a rollback takes back.
func (x *settings) changed() { x.resets, x.unsure = true, true }

// txnEnds notes that the transaction has ended: the settings may be those from before it.
func (x *settings) txnEnds() {
	if x.resets {
		x.stale, x.unsure, x.resets = true, true, false
	}
}

// searchPath returns the schemas that an unqualified name can mean; nil where these may be any.
func (x *settings) searchPath() []string {
	if !x.known || x.unsure {
		return nil
	}
	return x.env.Path.Without(noSchemas).Texts()
}

// unsettle notes that a definition is sent: until its transaction has ended, the tables may not be what the
// catalog says.
func (x *settings) unsettle(p *sqlpostgres.Plan) {
	x.env.Create(p)
	x.env.TempTables = sqlpostgres.AddTempTables(x.env.TempTables, p)
	x.env.Unsettle(p)
}

// settled notes that what was sent has ended its transaction, which left these temporary tables: the tables are what the
// catalog says, once it has been read again.
func (x *settings) settled(temporaries rewrite.List) {
	x.env.Unsettled, x.env.AllUnsettled, x.env.Created, x.env.TempTables = "", false, "", temporaries
}

// An answer is that to isotap's own question.
type answer struct {
	values [][]byte
	failed *serverError
	// login says that it is the first one, which the client's login waits for.
	login bool
	// prepares is what a PREPARE of isotap's own is for; nil: it was a question about the settings.
	prepares *variantRequest
	// redeclare are cursors that are to be declared anew, declared that this was the text that does so.
	redeclare map[string]*portal
	declared  bool
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
	case s.txn.status == txnIdle:
	case s.txn.status == txnOpen && (s.txn.snapshot || s.txn.level == history.ReadCommitted):
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
	s.expect(pendingReply{kind: pendingQuery, form: &form{}, own: true, silent: true, answer: a})
	s.toServer = appendMessage(s.toServer, msgQuery, append(text, 0)...)
}

// takeAnswer takes a message of the reply to isotap's own question.
func (s *Session) takeAnswer(x *pendingReply, m message) error {
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
	s.txn.status = txnStatus(m.body[0])
	s.replyEnds()
	s.asking = false
	if a.prepares != nil {
		s.variantPrepared(a)
		return nil
	}
	if a.redeclare != nil {
		s.redeclared(a)
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
	s.settings.stale, s.settings.known, s.settings.unsure = false, false, false
	env, level := s.settings.env, s.settings.level
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
	s.settings.env.Version, s.settings.env.Role, s.settings.env.Path = version/10000, string(a.values[1]), rewrite.ListOf(names...)
	s.settings.env.Backslashes, s.settings.env.Encoding = string(a.values[6]) == "off", string(a.values[7])
	s.settings.level = levelNamed(string(a.values[3]))
	if s.txn.status == txnOpen {
		s.txn.readLevel(levelNamed(string(a.values[4])))
		s.speculative.level = s.txn.level
	} else {
		s.speculative = speculativeTxn{level: s.settings.level}
	}
	s.settings.calls.answered(env == s.settings.env && level == s.settings.level)
	s.settings.known = true
	s.settings.database = string(a.values[0])
}

// loggedIn begins the session's statements: with a planner for its database, if there is one.
func (s *Session) loggedIn() {
	s.phase = phaseReady
	if !s.settings.known {
		s.copyOn()
		return
	}
	s.events = append(s.events, session.Event{Schema: &session.Schema{Database: s.settings.database, Begins: true}})
	s.planning = true
}

// findPlanner finds the planner once the tables have been read that it rests on.
func (s *Session) findPlanner() {
	s.planning = false
	if s.planner = s.cfg.Planners(s.settings.database); s.planner == nil {
		s.note("the tables of database %q are not known: the session goes on unobserved", s.settings.database)
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
