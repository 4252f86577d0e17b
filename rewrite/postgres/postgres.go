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
//   - Reading: package pgtoken cuts the text into tokens, statement.go these into statements; classify.go tells what
//     each is, with verb.go, transaction.go what it does to the transaction and the session's settings, ddl.go which
//     tables a definition changes; shape.go leaves the literals out. tree.go has the grammar's side, proof.go asks it
//     whether what was added is all that changed.
//   - plan.go has what comes out of all this, a plan for each statement; postgres.go the script that holds them.
//     planner.go has what all of them share: the plan in the making, and refusals (the reason for being opaque);
//     session.go and table.go what they know of the session and of tables. rewriter.go decides, calls.go knows who
//     calls functions, or may show the client the text that runs. On tables with isotap's columns mask.go, star.go and
//     columnlist.go keep these out of what the client's statement means.
//   - tables.go finds the tables that names mean, and those of a FROM clause; identity.go spells what identifies
//     their rows, usage.go looks for what else a statement holds.
//   - Reads: block.go has what is known of a query; reading.go tries and proves, place.go finds the queries in the
//     text, query.go and from.go go down into them and beside views, with.go into common table expressions;
//     columns.go counts their columns and adds to them; aggregate.go and union.go see to rows that stand for several,
//     select.go and shortcut.go to what the server might not have read, and to errors of indexes.
//   - Cursors: cursor.go, whose queries are reads. What SQL prepares: prepared.go.
//   - Writes: write.go has what they share; insert.go, update.go; returning.go adds their RETURNING clause,
//     oldnew.go knows what it calls the versions. writingwith.go is for WITH clauses with parts that write, part.go for
//     such a part.
//   - predicate.go finds, in mode predicates, the condition by which a statement chooses rows, and images of those that
//     it writes.
//   - splice.go puts the pieces into the text, and finds places of the one text in the other.
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

// A Script is the plan of one text. Scripts are shared and must not be changed.
type Script struct {
	// Statements are the plans of the text's statements in the order of their replies. Their Pieces are nil.
	Statements []*Plan
	// Pieces of the text that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []string
	// Splices tell where Pieces depart from the client's text, in order.
	Splices []Splice

	// Plain is what goes upstream where Pieces do not, in the place of the client's text, which would show
	// isotap's columns. Nil: the client's text does.
	Plain *Script

	text  string // the client's
	model *Script
}

// Model is the script after which this one was made: their texts differ in plain literals only, so that what the
// server takes or refuses of one it does of the other. Of a script that was made after none it is the script itself.
func (s *Script) Model() *Script {
	if s == nil || s.model == nil {
		return s
	}
	return s.model
}

// A Splice is a place where the client's text was changed: at byte At, counted in the client's text, Cut
// bytes of it are left out and Added bytes stand there instead.
type Splice struct{ At, Cut, Added int }

// AppendWritten adds the client's text to b, without what would show isotap's columns.
func (s *Script) AppendWritten(b []byte) []byte {
	if s.Plain != nil {
		return s.Plain.Append(b)
	}
	return append(b, s.text...)
}

// Append adds the text that goes upstream to b.
func (s *Script) Append(b []byte) []byte {
	if s.Pieces == nil {
		return append(b, s.text...)
	}
	for _, piece := range s.Pieces {
		b = append(b, piece...)
	}
	return b
}
