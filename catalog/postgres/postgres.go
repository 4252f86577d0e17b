// Package postgres knows what a PostgreSQL server's databases look like. Its twin is package catalog/mysql.
//
// A connection of PostgreSQL's is to one database, and so is what it can read of the catalog: [Databases]
// gives a [Cache] for each that clients log in to, which tells the rewriter what the tables look like and
// whose every column a role may read. [ServerFacts] asks the server who it is.
//
// Isotap's own connections (conn.go) are there only while they are used: one that stays would make DROP
// DATABASE fail, and CREATE DATABASE for whom it is the template, where they would not fail without isotap.
// They read the system catalogs alone, each time in one short transaction that locks nothing of the user's:
// no function is called that opens a table.
//
// databases.go finds a database's cache, cache.go keeps it, pending.go has read what definitions touched (graph.go:
// and what is related to that; simple.go: with one question, where it is simple), load.go reads the catalog
// (queries.go: its queries), build.go makes tables of what was read (view.go: of what a view is stored as), rights.go
// knows what roles may do. server.go asks about the server.
package postgres
