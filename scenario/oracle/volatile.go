package oracle

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/sqltoken"
)

// A volatility is what a statement may ask for that is another thing each time it is played, by design.
type volatility struct {
	family dbms.Family
	// calls are functions, bare words that stand without parentheses, first those that statements begin with; all in
	// lower case.
	calls, bare, first string
	// ordered says that it is the same while a session's statements stand in the same order: it matters to [Serial]
	// alone, which puts them into other orders.
	ordered bool
	source  string
}

// volatilities are all that are known.
var volatilities = []volatility{
	{family: dbms.MySQLFamily,
		calls: `curdate current_date current_time current_timestamp curtime localtime localtimestamp now sysdate
			unix_timestamp utc_date utc_time utc_timestamp`,
		bare:   `current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp`,
		source: "the clock: MySQL's manual, Date and Time Functions"},
	{family: dbms.MySQLFamily, calls: `rand random_bytes sys_guid uuid uuid_short uuid_v4 uuid_v7`,
		source: "chance: MySQL's manual, Mathematical Functions and Miscellaneous Functions; MariaDB's, SYS_GUID, UUID_v4"},
	{family: dbms.MySQLFamily, calls: `connection_id tidb_current_tso`,
		bare:   `@@pseudo_thread_id @@timestamp @@tidb_current_ts @@tidb_last_txn_info @@rand_seed1 @@rand_seed2`,
		source: "the session: MySQL's manual, Information Functions and Server System Variables; TiDB's, System Variables"},
	{family: dbms.MySQLFamily, calls: `found_rows get_lock is_free_lock is_used_lock last_insert_id lastval nextval release_lock
			row_count setval`, bare: `@@identity @@last_insert_id`, ordered: true,
		source: "what ran before: MySQL's manual, Information Functions and Locking Functions; MariaDB's, Sequence Functions"},
	{family: dbms.MySQLFamily, first: `alter analyze cache change check checksum create drop flush grant install kill load lock
			optimize purge rename repair reset revoke shutdown start-slave stop truncate uninstall unlock`,
		source: "it commits, or is about the server: MySQL's manual, Statements That Cause an Implicit Commit"},
	{family: dbms.MySQLFamily, bare: `information_schema performance_schema`,
		source: "what the server does, in all databases: MySQL's manual, INFORMATION_SCHEMA Tables and Performance Schema"},
	{family: dbms.MySQLFamily, first: `desc describe explain show`,
		source: "estimates, and what the server does: MySQL's manual, EXPLAIN Statement and SHOW Statements"},
	{family: dbms.PostgreSQLFamily,
		calls: `age clock_timestamp current_time current_timestamp localtime localtimestamp now statement_timestamp timeofday
			transaction_timestamp`,
		bare:   `current_date current_time current_timestamp localtime localtimestamp 'now' 'today' 'tomorrow' 'yesterday'`,
		source: "the clock: PostgreSQL's manual, Current Date/Time, and Date/Time Types, Special Values"},
	{family: dbms.PostgreSQLFamily, calls: `gen_random_bytes gen_random_uuid random random_normal setseed uuid_generate_v1
			uuid_generate_v1mc uuid_generate_v4 uuidv4 uuidv7`, bare: `tablesample`,
		source: "chance: PostgreSQL's manual, Random Functions, UUID Functions and SELECT"},
	{family: dbms.PostgreSQLFamily, calls: `pg_backend_pid pg_current_snapshot pg_current_wal_lsn pg_current_xact_id
			pg_current_xact_id_if_assigned pg_snapshot_xmin pg_snapshot_xmax txid_current txid_current_if_assigned
			txid_current_snapshot`, bare: `cmax cmin ctid tableoid xmax xmin`,
		source: "transactions and places of rows: PostgreSQL's manual, System Information Functions and System Columns"},
	{family: dbms.PostgreSQLFamily, calls: `currval lastval nextval pg_try_advisory_lock pg_try_advisory_xact_lock setval`,
		ordered: true, source: "what ran before: PostgreSQL's manual, Sequence Manipulation Functions and Advisory Lock Functions"},
	{family: dbms.PostgreSQLFamily, first: `alter analyze cluster comment create drop grant load reindex revoke security truncate
			vacuum`, source: "it may not be in a transaction, or is not of its snapshot: PostgreSQL's manual, Caveats of MVCC"},
	{family: dbms.PostgreSQLFamily, bare: `pg_locks pg_prepared_xacts pg_stat_activity`,
		source: "what the server does, in all databases: PostgreSQL's manual, System Views and Monitoring Database Activity"},
	{family: dbms.PostgreSQLFamily, first: `explain`, source: "estimates: PostgreSQL's manual, EXPLAIN"},
}

// volatiles tells statements whose answers are others each time they are played.
type volatiles struct {
	family  dbms.Family
	ordered bool // what depends on the statements' order is such a one
	// names are the tables, views, functions and prepared statements that give something volatile, in lower case; of a
	// table that is what its defaults write.
	names, tables map[string]bool
	// setup says that the set-up writes something volatile.
	setup bool
}

// volatilesOf reads what a script's set-up makes, and what it prepares.
func volatilesOf(family dbms.Family, s *scenario.Scenario, ordered bool) *volatiles {
	v := &volatiles{family: family, ordered: ordered, names: make(map[string]bool), tables: make(map[string]bool)}
	for _, text := range s.Setup {
		if v.define(text) {
			continue
		}
		v.setup = v.setup || v.is(text) && !v.begins(text)
	}
	for _, x := range s.Steps {
		v.define(x.SQL)
	}
	return v
}

// objects are what CREATE, ALTER and PREPARE name behind them.
var objects = []string{"TABLE", "VIEW", "FUNCTION", "PROCEDURE", "TRIGGER", "PREPARE"}

// define keeps what a statement defines that is volatile. It reports whether it defines anything.
func (v *volatiles) define(text string) bool {
	tokens, err := sqltoken.Statement(v.family, text)
	if err != nil || len(tokens) == 0 || !slices.ContainsFunc([]string{"CREATE", "ALTER", "PREPARE"}, tokens[0].Is) {
		return false
	}
	at := slices.IndexFunc(tokens, func(t sqltoken.Token) bool { return slices.ContainsFunc(objects, t.Is) })
	if at < 0 {
		return true
	}
	kind, into := tokens[at], v.names
	if !v.asks(tokens) && !(kind.Is("PREPARE") && v.writesTables(tokens)) {
		return true
	}
	switch {
	case kind.Is("TABLE"):
		into = v.tables
	case kind.Is("TRIGGER"): // of the table behind ON
		on := slices.IndexFunc(tokens, func(t sqltoken.Token) bool { return t.Is("ON") })
		at, into = max(at, on), v.tables
	}
	for _, word := range []string{"ONLY", "IF", "NOT", "EXISTS"} {
		if at+1 < len(tokens) && tokens[at+1].Is(word) {
			at++
		}
	}
	for at+3 < len(tokens) && tokens[at+2].Is(".") { // behind its schema
		at += 2
	}
	if at+1 < len(tokens) {
		into[bareName(tokens[at+1])] = true
	}
	return true
}

// bareName returns a name in lower case, without quotes.
func bareName(t sqltoken.Token) string { return strings.ToLower(strings.Trim(t.Text, "`\"")) }

// is reports whether a statement's answer, or what it writes, is another one each time.
func (v *volatiles) is(text string) bool {
	tokens, err := sqltoken.Statement(v.family, text)
	if err != nil || len(tokens) == 0 || reduce.Bounds(text) {
		return false
	}
	return v.begins(text) || v.asks(tokens) || v.writesTables(tokens)
}

// begins reports whether a statement does by its first word.
func (v *volatiles) begins(text string) bool {
	word := strings.ToLower(firstWord(text))
	return slices.ContainsFunc(volatilities, func(x volatility) bool {
		return x.family == v.family && slices.Contains(strings.Fields(x.first), word)
	})
}

// asks reports whether some tokens ask for something volatile. Those of PREPARE stand in a string.
func (v *volatiles) asks(tokens []sqltoken.Token) bool {
	for i, t := range tokens {
		variable := v.ordered && v.family == dbms.MySQLFamily && strings.HasPrefix(t.Text, "@") && !strings.HasPrefix(t.Text, "@@")
		if variable || v.names[bareName(t)] || v.known(t, i+1 < len(tokens) && tokens[i+1].Is("(")) {
			return true
		}
		if tokens[0].Is("PREPARE") && t.Kind == sqltoken.Quoted && len(t.Text) > 2 {
			inner, err := sqltoken.Statement(v.family, t.Text[1:len(t.Text)-1])
			if err == nil && len(inner) > 0 && (v.asks(inner) || v.writesTables(inner)) {
				return true
			}
		}
	}
	return false
}

// known reports whether a token, with a parenthesis behind it or not, is in the table.
func (v *volatiles) known(t sqltoken.Token, called bool) bool {
	word := strings.ToLower(t.Text)
	return slices.ContainsFunc(volatilities, func(x volatility) bool {
		if x.family != v.family || x.ordered && !v.ordered {
			return false
		}
		return called && slices.Contains(strings.Fields(x.calls), word) || slices.Contains(strings.Fields(x.bare), word)
	})
}

// writesTables reports whether a statement writes and names a table that has volatile defaults.
func (v *volatiles) writesTables(tokens []sqltoken.Token) bool {
	if len(v.tables) == 0 || tokens[0].Is("SELECT") || tokens[0].Is("DELETE") {
		return false
	}
	return slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return v.tables[bareName(t)] })
}

// steps returns which steps of a script are such, and why they are not judged. Of a script whose set-up is, all are.
func (v *volatiles) steps(s *scenario.Scenario) map[int]notJudged {
	all := make(map[int]notJudged)
	readOnly := make(map[string]bool) // sessions in a transaction of the kind
	for i, x := range s.Steps {
		switch {
		case reduce.Bounds(x.SQL):
			readOnly[x.Session] = isReadOnly(v.family, x.SQL)
		case readOnly[x.Session] && !strings.EqualFold(firstWord(x.SQL), "SELECT"):
			all[i] = refusedReadOnly
		case v.setup:
			all[i] = volatileSetup
		case v.is(x.SQL):
			all[i] = volatileStep
		}
	}
	return all
}

// isReadOnly reports whether a statement begins a READ ONLY transaction.
func isReadOnly(family dbms.Family, begin string) bool {
	tokens, err := sqltoken.Statement(family, begin)
	if err != nil {
		return false
	}
	at := slices.IndexFunc(tokens, func(t sqltoken.Token) bool { return t.Is("READ") })
	return at >= 0 && slices.ContainsFunc(tokens[at:], func(t sqltoken.Token) bool { return t.Is("ONLY") })
}
