package analyzer

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A NoCondition is a cause, read from a statement's shape: it looked for rows and left no condition, or a wide one.
type NoCondition uint8

// The causes, as they are asked for: the first that fits counts.
const (
	// SkipsLocked: it passes over rows that others have locked.
	SkipsLocked NoCondition = iota
	// AnyRows: it took any rows up to a LIMIT, and got as many. It hangs on these alone.
	AnyRows
	// Limited: it has a LIMIT that it reached, and an order that isotap cannot tell, or a query in it has.
	Limited
	// Volatile: it calls a function that may return another value at each call.
	Volatile
	// Timed: it asks for the time.
	Timed
	// OfSession: it asks for something of its session: a variable, a user, a setting.
	OfSession
	// Unobserved: isotap did not observe it.
	Unobserved
	// AllRows: it looks for all rows of a table, beside others or for more than to show them.
	AllRows
	// OtherCause: its tables or what it asks of them are none that conditions are tested of.
	OtherCause
	noConditions int = iota
)

var noConditionNames = [...]string{"skipped locked rows", "took any rows up to a LIMIT", "had LIMIT",
	"called a volatile function", "asked for the time", "asked for something of the session", "went unobserved",
	"looked for all rows of a table", "looked in another way"}

// String returns what statements did of which the cause is true.
func (c NoCondition) String() string { return noConditionNames[c] }

// What functions are called by which shapes tell. A word is followed by a parenthesis, or SQL has it without.
var (
	volatileCalls = setOf(`random random_normal setseed gen_random_uuid uuidv4 uuidv7 uuid_generate_v1 uuid_generate_v4 nextval
		currval lastval clock_timestamp timeofday txid_current pg_current_xact_id rand uuid uuid_short sys_guid sysdate sleep
		random_bytes last_insert_id row_count found_rows`)
	timeCalls = setOf(`now current_timestamp current_date current_time localtime localtimestamp transaction_timestamp
		statement_timestamp age curdate curtime utc_timestamp utc_date utc_time unix_timestamp`)
	sessionCalls = setOf(`current_user session_user current_role system_user user current_schema current_schemas
		current_database current_catalog current_setting pg_backend_pid database schema connection_id version`)
	bareCalls = setOf(`current_timestamp current_date current_time localtime localtimestamp utc_timestamp utc_date utc_time
		current_user session_user current_role system_user current_catalog current_schema`)
)

func setOf(names string) map[string]bool {
	set := make(map[string]bool)
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// noConditionOf returns the cause that a statement's shape tells.
func noConditionOf(family dbms.Family, shape string, observation history.Observation) NoCondition {
	words := wordsOf(family, shape)
	has := func(keyword string) bool {
		return slices.ContainsFunc(words, func(w word) bool { return w.keyword(keyword) })
	}
	calls := func(set map[string]bool) bool { return callsOneOf(words, set) }
	switch limit := has("LIMIT") || has("FETCH"); {
	case has("SKIP") && has("LOCKED"):
		return SkipsLocked
	case limit && observation != history.Opaque && !has("ORDER") && countOf(words, "SELECT") <= 1:
		return AnyRows
	case limit:
		return Limited
	case calls(volatileCalls):
		return Volatile
	case calls(timeCalls):
		return Timed
	case calls(sessionCalls), slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(w.text, "@") }):
		return OfSession
	case observation == history.Opaque:
		return Unobserved
	case !has("WHERE"):
		return AllRows
	}
	return OtherCause
}

// callsOneOf reports whether one of the words is the name of a function in a set.
func callsOneOf(words []word, set map[string]bool) bool {
	for i := range words {
		name := strings.ToLower(words[i].text)
		called := i+1 < len(words) && words[i+1].text == "(" || !words[i].quoted && bareCalls[name]
		if called && words[i].name && set[name] {
			return true
		}
	}
	return false
}

func countOf(words []word, keyword string) (n int) {
	for i := range words {
		if words[i].keyword(keyword) {
			n++
		}
	}
	return n
}
