package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/namedlock"
)

// A reach is how far what a statement does goes, and with it who may play it again.
type reach int

const (
	// withinRows: a ROLLBACK takes all of it back, so that a twin may play it.
	withinRows reach = iota
	// withinDatabase: it leaves something in the copy, or other sessions meet it. The transaction itself may play it.
	withinDatabase
	// beyond: it would do something on the server, or elsewhere, once more; or the recording does not have all of it.
	// It is not played.
	beyond
)

// reachesOut are functions and words by which a statement reaches out of the database.
var reachesOut = words(`dblink dblink_exec dblink_connect lo_import lo_export outfile dumpfile program load_file
	pg_terminate_backend pg_cancel_backend pg_reload_conf pg_rotate_logfile pg_promote pg_switch_wal sys_exec sys_eval
	http http_get http_post`)

// staysBehind are functions whose effects no ROLLBACK takes back, or that other sessions meet before it.
var staysBehind = words(`pg_notify pg_sleep sleep setval`)

// serverWide are what SET may change of more than its session.
var serverWide = words(`global persist persist_only password`)

// definesWithin are what CREATE, ALTER and DROP may make in a database.
var definesWithin = words(`table index view sequence type domain function procedure trigger aggregate schema extension policy`)

func words(text string) []string { return strings.Fields(text) }

// reachOf returns the reach of a statement.
func reachOf(family dbms.Family, kind history.Kind, tokens []sqltoken.Token) reach {
	has := func(words []string) bool { return hasWord(tokens, words) }
	switch kind {
	case history.Select, history.Insert, history.Update, history.Delete, history.Replace, history.Merge,
		history.Savepoint, history.Release, history.Rollback:
	case history.Set:
		if has(serverWide) || slices.ContainsFunc(tokens, func(t sqltoken.Token) bool {
			name := strings.ToLower(t.Text)
			return strings.HasPrefix(name, "@@global") || strings.HasPrefix(name, "@@persist")
		}) {
			return beyond
		}
	case history.Call:
		return withinDatabase
	case history.DDL:
		return reachOfDefinition(family, tokens)
	default:
		if family != dbms.PostgreSQLFamily || len(tokens) == 0 || !tokens[0].Is("LOCK") {
			return beyond
		}
	}
	named := namedlock.Called(tokens)
	switch {
	case has(reachesOut), named && family == dbms.MySQLFamily: // whose names are the whole server's
		return beyond
	case has(staysBehind), named:
		return withinDatabase
	}
	return withinRows
}

func hasWord(tokens []sqltoken.Token, words []string) bool {
	return slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return slices.Contains(words, strings.ToLower(t.Text)) })
}

// reachOfDefinition returns that of a definition: of a MySQL server's, a schema is a database.
func reachOfDefinition(family dbms.Family, tokens []sqltoken.Token) reach {
	if len(tokens) == 0 || !slices.ContainsFunc(words("CREATE ALTER DROP TRUNCATE"), tokens[0].Is) {
		return beyond
	}
	for _, t := range tokens[1:min(len(tokens), 6)] {
		name := strings.ToLower(t.Text)
		if slices.Contains(definesWithin, name) && (name != "schema" || family == dbms.PostgreSQLFamily) {
			return withinDatabase
		}
	}
	if tokens[0].Is("TRUNCATE") {
		return withinDatabase
	}
	return beyond
}

// namesDatabase reports whether one of the instance's statements does.
func (in *instance) namesDatabase(databases map[string]bool) bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool { return s.namesDatabase(databases) })
}

// namesDatabase reports whether a statement names a database of a server: played again, it would use that one. On
// PostgreSQL no statement leaves its database.
func (s *statement) namesDatabase(databases map[string]bool) bool {
	for i, t := range s.tokens {
		name, _, ok := t.Name()
		if ok && i+1 < len(s.tokens) && s.tokens[i+1].Is(".") && databases[strings.ToLower(name)] {
			return true
		}
	}
	return false
}
