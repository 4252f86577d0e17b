// Package mysql knows what the tables of a server of the MySQL family look like, and puts isotap's columns on them. Its
// twin is package catalog/postgres.
//
// It speaks to the server over a connection of isotap's own ([Conn]), never over a client's:
//
//   - [Cache] holds what the rewriter must know of every table ([sqlmysql.Schema]), read from
//     information_schema: all of it once, then what changed, by name, when it is asked for.
//   - [ServerFacts] asks the server who it is and which of its settings matter to isotap.
//   - [Instrument] adds the invisible columns isotap_rowid and isotap_wlist to the tables, gives
//     every row its identity, and extends partial privileges to the new columns; [Strip] removes
//     all of it without trace.
//
// conn.go connects. server.go asks about the server, load.go and shown.go read what cache.go holds and change.go
// drops, over the connections of readers.go. recreated.go tells which tables were made anew past isotap. instrument.go
// surveys the tables (survey.go), adds the columns (columns.go) with ids for the rows that are there (backfill.go),
// and follows the rights (grants.go).
//
// The connection is go-mysql's client: one connection whose session settings stay with it, where
// database/sql's pool would have to be talked out of being one, and the same library whose codecs
// the proxy uses.
package mysql

import "slices"

// systemSchemas belong to the server: they are neither cached nor instrumented.
var systemSchemas = []string{"information_schema", "mysql", "performance_schema", "sys"}

// systemSchema reports whether a schema is the server's own. Its name is in lower case, as the server
// spells it.
func systemSchema(name string) bool { return slices.Contains(systemSchemas, name) }
