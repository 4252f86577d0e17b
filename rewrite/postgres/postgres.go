// Package postgres plans PostgreSQL statements: given a text of one or several statements and what the
// tables look like, a [Script] says what goes upstream in its place and how the replies become those that
// the client expects. It is pure, as package rewrite says.
//
// A row's versions are known by PostgreSQL's own system columns (ADR 23): nothing is added to the
// user's tables, and no value has to be filled in when a statement is sent.
//
// A statement passes two readers (ADR 20). A lexer of the server's own rules cuts the text into tokens: from
// these come the statements, their verbs, the literal-free shape, and every place where text is put in. A
// port of PostgreSQL's grammar reads what selects and writes, and says how it is built; it reads the changed
// statement once more, and unless it finds there what was meant to be added, the client's own text is sent.
// No statement makes [Rewriter.Plan] fail: what cannot be rewritten is opaque, with the reason.
//
// The files follow a statement's way.
//
//   - Known already? cache.go finds the script by its text, or makes it of one whose literals differ.
//   - Reading: package pgtoken cuts the text into tokens, text.go these into statements, and tells what each is; it
//     has the grammar's side as well, and puts pieces into the text. transaction.go tells what a statement does to the
//     transaction and the session's settings, ddl.go which tables a definition changes; shape.go leaves the literals
//     out. proof.go asks the grammar whether what was added is all that changed.
//   - plan.go has what comes out of all this, a plan for each statement and the script that holds them, and what all
//     of them share: the plan in the making, refusals (the reason for being opaque), and what they know of tables;
//     session.go what they know of the session. rewriter.go decides, calls.go knows who calls functions, or may show
//     the client the text that runs. On tables with isotap's columns mask.go, star.go and columnlist.go keep these out
//     of what the client's statement means.
//   - from.go finds the tables that names mean, and those of a FROM clause; identity.go spells what identifies
//     their rows, usage.go looks for what else a statement holds.
//   - Reads: reading.go tries and proves, goes down into queries, counts their columns and adds to them; from.go goes
//     into what stands in FROM and beside views, with.go into common table expressions; place.go finds the queries in
//     the text; aggregate.go and union.go see to rows that stand for several, select.go and shortcut.go to what the
//     server might not have read, and to errors of indexes.
//   - Cursors: cursor.go, whose queries are reads. What SQL prepares: prepared.go.
//   - Writes: write.go has what they share; insert.go, update.go; returning.go adds their RETURNING clause,
//     oldnew.go knows what it calls the versions. writingwith.go is for WITH clauses with parts that write, part.go for
//     such a part.
//   - predicate.go finds, in mode predicates, the condition by which a statement chooses rows, and images of those that
//     it writes.
//
// A [Rewriter] and a [Cache] are safe for concurrent use.
package postgres

// A Schema tells the rewriter what the tables look like. Implementations are safe for concurrent use; the
// tables they return are never changed afterwards.
type Schema interface {
	// Table finds a table or view; nil when there is none of that name. An empty schema name finds nothing: the
	// rewriter goes through the session's search path.
	Table(schema, name string) *Table
	// Reads reports whether a role may read every column of the table, system columns included, without row
	// security coming between: what is added to its statements must not fail, or hide rows.
	Reads(role string, t *Table) bool
	// Tags reports whether a role that reads a table may write isotap_wlist there.
	Tags(role string, t *Table) bool
	// Exposes reports whether any table or view has columns of isotap's.
	Exposes() bool
	// ReadsCursors reports whether a function that the server does not bring along may read a cursor by its name.
	ReadsCursors() bool
	// Functions returns what the functions of a name are that the server does not bring along, in any schema.
	Functions(name string) FunctionKind
}

// FunctionKind says what all functions of one name are.
type FunctionKind byte

// The kinds.
const (
	NoFunction        FunctionKind = iota // there is none
	PlainFunction                         // none aggregates
	AggregateFunction                     // all aggregate, and none is answered from an end of an index
	MixedFunction                         // neither is so
	TellingFunction                       // one may ask for the text of the statement that runs
	FetchingFunction                      // none aggregates, and one may read a cursor by its name
)

// A Splice is a place where the client's text was changed: at byte At, counted in the client's text, Cut
// bytes of it are left out and Added bytes stand there instead.
type Splice struct{ At, Cut, Added int }
