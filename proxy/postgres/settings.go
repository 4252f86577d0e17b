package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// settings is what the session's statements are read under. The server is asked for it at the start and
// after every statement that may have changed it, on the client's own connection.
type settings struct {
	stale    bool // ask before the next statement
	canceled int  // how often in a row the question was canceled
	known    bool
	database string
	env      sqlpostgres.Session
	sender   history.Sender // as application_name says
	level    history.Level  // that transactions have which ask for none
	// unsure says that the server was not asked since the settings may have changed.
	unsure bool
	// readsPath says that the next question reads the search path as it is set.
	readsPath bool
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
	return x.env.Path.Without("pg_catalog").Without(sqlpostgres.TemporarySchema).Texts()
}

// unsettle notes that a definition is sent: until its transaction has ended, the tables may not be what the
// catalog says.
func (x *settings) unsettle(p *sqlpostgres.Plan) {
	x.env.Create(p)
	x.env.TempTables = sqlpostgres.AddTempTables(x.env.TempTables, p)
	x.env.Unsettle(p)
}

// settled notes that what was sent has ended its transaction, which left these temporary tables: the tables are what
// the catalog says, once it has been read again.
func (x *settings) settled(temporaries rewrite.List) {
	x.env.Unsettled, x.env.AllUnsettled, x.env.Created, x.env.TempTables = "", false, "", temporaries
}

// question returns what asks for what takeSettings reads. It calls nothing that a search path could lead elsewhere, and
// reads no table.
func (x *settings) question() string {
	schemas := schemas
	if x.readsPath {
		schemas = schemasOfPath
	}
	return "SELECT pg_catalog.current_database(), current_user, " + schemas + ", " +
		"pg_catalog.current_setting('default_transaction_isolation'), " +
		"pg_catalog.current_setting('transaction_isolation'), pg_catalog.current_setting('server_version_num'), " +
		"pg_catalog.current_setting('standard_conforming_strings'), pg_catalog.current_setting('client_encoding')"
}

const answers = 8

// schemas are those that unqualified names are looked for in. Where pg_temp is the one that tables are created in, and
// is not there yet, current_schemas would create it: the session's transaction could then not be prepared, as one that
// has operated on temporary objects. Where that may be so, none are answered, and the path is read: schemasOfPath takes
// twice as long.
const schemas = "CASE WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 OR " +
	searchPath + " OPERATOR(pg_catalog.!~*) '" + sqlpostgres.TemporarySchema + "' " +
	"THEN pg_catalog.current_schemas(true) ELSE '{}' END"

// schemasOfPath are the same, read from the setting where the temporary schema would be created: they have
// [sqlpostgres.TemporarySchema] in its place.
const schemasOfPath = "(SELECT CASE WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 OR " +
	"COALESCE(path[1] OPERATOR(pg_catalog.<>) '" + sqlpostgres.TemporarySchema + "', true) " +
	"THEN CAST(pg_catalog.current_schemas(true) AS pg_catalog.text[]) " +
	"WHEN 'pg_catalog' OPERATOR(pg_catalog.=) ANY (path) THEN path " +
	"ELSE pg_catalog.array_prepend('pg_catalog', path) END FROM (SELECT " + pathThatCounts + ") AS set(path))"

// pathThatCounts has of the search path's items the schemas that exist and that the role may use, and
// [sqlpostgres.TemporarySchema].
const pathThatCounts = "ARRAY(SELECT name FROM (SELECT " + itemName + ", place FROM pg_catalog.regexp_matches(" +
	searchPath + `, ' *("([^"]|"")*"|[^", ]+) *(,|$)', 'g') WITH ORDINALITY AS read(item, place)) AS named(name, place) ` +
	"WHERE name OPERATOR(pg_catalog.=) '" + sqlpostgres.TemporarySchema + "' OR pg_catalog.has_schema_privilege(" +
	"CAST(pg_catalog.to_regnamespace(pg_catalog.quote_ident(name)) AS pg_catalog.oid), 'USAGE') ORDER BY place)"

const searchPath = "pg_catalog.current_setting('search_path')"

// itemName is the schema that an item of the search path names.
const itemName = `CASE WHEN item[1] OPERATOR(pg_catalog.~) '^"?[$]user"?$' THEN CAST(current_user AS pg_catalog.text) ` +
	`WHEN item[1] OPERATOR(pg_catalog.~) '^"' THEN pg_catalog.replace(pg_catalog.substr(item[1], 2, ` +
	`pg_catalog.length(item[1]) OPERATOR(pg_catalog.-) 2), '""', '"') ELSE pg_catalog.lower(item[1]) END`

// read takes the answer to the question. It gives the level of the transaction at hand, and says what is wrong with the
// answer, if something is: the settings are not known then.
func (x *settings) read(a *answer) (txn history.Level, problem string) {
	x.stale, x.known, x.unsure = false, false, false
	switch {
	case a.failed != nil:
		x.failed(a.failed.code)
		return txn, fmt.Sprintf("SQLSTATE %s: %s", a.failed.code, a.failed.message)
	case len(a.values) != answers:
		return txn, fmt.Sprintf("%d values", len(a.values))
	}
	version, err := strconv.Atoi(string(a.values[5]))
	path, ok := readArray(a.values[2], formatText)
	if err != nil || !ok {
		return txn, fmt.Sprintf("version %q, schemas %q", a.values[5], a.values[2])
	}
	if x.readsPath = len(path) == 0 && !x.readsPath; x.readsPath {
		x.stale = true
		return levelNamed(string(a.values[4])), ""
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = string(name)
	}
	env, level := x.env, x.level
	x.env.Version, x.env.Role, x.env.Path = version/10000, string(a.values[1]), rewrite.ListOf(names...)
	x.env.Backslashes, x.env.Encoding = string(a.values[6]) == "off", string(a.values[7])
	x.level = levelNamed(string(a.values[3]))
	x.calls.answered(env == x.env && level == x.level)
	x.known, x.canceled = true, 0
	x.database = string(a.values[0])
	return levelNamed(string(a.values[4])), ""
}

// maxCanceled is how often in a row a canceled question is asked again: a client's statement_timeout may end each.
const maxCanceled = 3

// failed takes an error in the answer's place. The server is asked again where a cancel request, which may have come
// too late for the client's statement, or a timeout of the client's ended the question.
func (x *settings) failed(code string) {
	if code != sqlstateQueryCanceled {
		return
	}
	x.canceled++
	x.stale = x.canceled <= maxCanceled
}

// levelNamed reads a level by the name that the server gives it.
func levelNamed(name string) history.Level {
	l, err := history.ParseLevel(strings.ToUpper(name))
	if err != nil {
		return history.LevelUnknown
	}
	return runsAt(l)
}

// calls is what a session knows of the statements that run functions of the database's own. Any may change
// settings as SET does, by set_config. To ask after each run would cost a round trip each; one that changed
// nothing when it ran first is trusted to go on so.
type calls struct {
	harmless map[string]struct{} // by their shapes, in a transaction block and outside of one
	ran      []string            // since the settings were asked for
}

// answered takes the settings that were asked for after those statements ran.
func (c *calls) answered(unchanged bool) {
	if unchanged && len(c.ran) > 0 {
		if c.harmless == nil || len(c.harmless) >= maxScripts {
			c.harmless = make(map[string]struct{})
		}
		for _, shape := range c.ran {
			c.harmless[shape] = struct{}{}
		}
	}
	c.ran = c.ran[:0]
}

// parameter takes a ParameterStatus: some of them matter to how texts are read.
func (x *settings) parameter(body []byte) {
	r := reader{b: body}
	name, value := string(r.cString()), string(r.cString())
	if r.err != nil {
		return
	}
	switch name {
	case "client_encoding":
		x.env.Encoding = value
	case "application_name":
		x.sender = rewrite.SenderOfApplication(value)
	case "standard_conforming_strings":
		x.env.Backslashes = value == "off"
	case "TimeZone":
		x.literals.TimeZone = value
	case "DateStyle":
		x.literals.DateStyle = value
	case "IntervalStyle":
		x.literals.IntervalStyle = value
	case "session_authorization", "is_superuser", "search_path": // a function or a procedure may have set it
		x.stale = true
	}
}

// utf8 reports whether the client's texts are in UTF-8.
func (x *settings) utf8() bool { return x.env.Encoding == "" || x.env.Encoding == "UTF8" }
