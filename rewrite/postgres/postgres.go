// Package postgres plans PostgreSQL statements: given a text of one or several statements and what the
// tables look like, a [Script] says what goes upstream in its place and how the replies become those that
// the client expects. It is pure, as package rewrite says.
//
// A row's versions are known by PostgreSQL's own system columns (DESIGN 4.2): nothing is added to the
// user's tables, and no value has to be filled in when a statement is sent.
package postgres

import "github.com/isotap/isotap/rewrite"

// Session is what the meaning of a text depends on beside the text itself. It is comparable, so that plans
// are cached by it.
type Session struct {
	Version int    // the server's major version: 12 ... 18
	Role    string // current_user
	// Path is current_schemas(true), separated by NULs: where unqualified names are looked for, in order.
	Path string
	// Serializable says that the statement runs at SERIALIZABLE, where a wider read takes more predicate
	// locks: one that an index alone might answer goes unchanged (reason "plan").
	Serializable bool
	// Backslashes says that standard_conforming_strings is off.
	Backslashes bool
	// Extended says that the text is that of a Parse message: one statement, perhaps with parameters.
	Extended bool
}

// A Schema tells the rewriter what the tables look like. Implementations are safe for concurrent use; the
// tables they return are never changed afterwards.
type Schema interface {
	rewrite.Schema
	// Reads says whether a role may read every column of the table, system columns included, without row
	// security coming between: what is added to its statements must not fail, or hide rows.
	Reads(role string, t *rewrite.Table) bool
}

// A Script is the plan of one text.
type Script struct {
	// Statements are the plans of the text's statements in the order of their replies. Their Pieces are nil.
	Statements []*rewrite.Plan
	// Pieces of the text that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []rewrite.Piece
	// Splices tell where Pieces depart from the client's text, in order.
	Splices []Splice
}

// A Splice is a place where the client's text was changed: at byte At, counted in the client's text, Cut
// bytes of it are left out and Added bytes stand there instead.
type Splice struct{ At, Cut, Added int }
