// Package rewrite is what the SQL rewriters of both protocol families (rewrite/mysql and rewrite/postgres) have in
// common: what they know of names ([TableName], [List]) and of tables ([Table]), and what their plans say of a
// statement ([Statement]). A plan says how one statement of a client is observed; each family has its own.
//
// The rewriters are pure: no sockets, no clock, no global state. A plan is immutable once built, so it is cached by
// text and shared between sessions.
//
// Statements are spliced, never printed: what goes upstream is the client's own bytes with pieces put between them.
package rewrite
