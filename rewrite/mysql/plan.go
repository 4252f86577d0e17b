package mysql

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A Plan says how one statement is observed. It is immutable once built: plans are cached by text and shared between
// sessions.
type Plan struct {
	rewrite.Statement
	Upstream Upstream
	Result   Result
	Writes   Writes
	Txn      TxnEffect
	Session  SessionEffect
	Schema   SchemaEffect
	// Companion is the statement that shows what this one read, where its own result cannot (DISTINCT, UNION, ...): the
	// same text in another form, with the same parameters and Reply Trimmed. Isotap runs it right after the statement,
	// in the same snapshot, and the client sees nothing of it. Of its own fields Upstream.Pieces, Params,
	// Result.Sources, Observation and Reason count; the last two are the statement's once it was read, and until then
	// the statement is opaque. Nil: there is none.
	Companion *Plan
}

// HiddenColumns is the number of columns that the plan adds to the result set.
func (p *Plan) HiddenColumns() int { return rewrite.HiddenColumns(p.Result.Reply, p.Result.Sources) }

// Append adds the text that goes upstream to b, with its holes filled as literals by fill. It must not be called when
// Upstream.Pieces is nil.
func (p *Plan) Append(b []byte, fill func(b []byte, h Hole, ordinal int) []byte) []byte {
	for i := range p.Upstream.Pieces {
		if piece := &p.Upstream.Pieces[i]; piece.Hole == NoHole {
			b = append(b, piece.Text...)
		} else {
			b = fill(b, piece.Hole, piece.Ordinal)
		}
	}
	return b
}

// Upstream is what goes to the server in the place of the client's text.
type Upstream struct {
	// Pieces of the statement that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []Piece
	// Plain is the statement without what isotap wants to see, on a server where SELECT * shows isotap's columns: it
	// means what the client's text would mean if they were not there. Where Pieces do not go upstream, it does in the
	// place of the client's text. Empty: there is no need.
	Plain string
	// Hidden are in order of Index; empty for a text without TagHole and RowIDHole.
	Hidden []Hidden
	// Copies are the client's parameters that Hidden ones repeat. What isotap adds holds for values of their types
	// only: with others the statement must go upstream as the client wrote it.
	Copies []Copy
	// Parts are the places in the text where its statements end, of which there are several, each before its semicolon,
	// the last at the end of the text. Every statement can be sent to the server by itself. Nil: the text is one
	// statement, or must not be cut.
	Parts []int
	// Substitutes says that Pieces give ROW_COUNT() and FOUND_ROWS() as values. They are for a text statement only, and
	// only when isotap's own statements came between this one and the client's statement before it; otherwise the
	// original must go upstream.
	Substitutes bool
	// ListsColumns says that Pieces name the table's columns where the client left that to the server: when the table
	// changes, a statement prepared before must not go on meaning the old ones.
	ListsColumns bool
	// MayHideLocks says that the wider statement could lock more than the original where its reads lock (a locking
	// clause, or SERIALIZABLE inside a transaction): an index might cover the original. Such a statement must go
	// upstream unchanged, for the reason "plan".
	MayHideLocks bool
	// Deprecated is how many assignments to variables Pieces add to the text's expressions: MySQL warns of each of them
	// (1287) when it reads the statement.
	Deprecated int
}

// A Hole is a value that is filled in when the statement is sent.
type Hole uint8

const (
	// NoHole: the piece is text.
	NoHole Hole = iota
	// TagHole is the statement's tag, as text of type VARBINARY.
	TagHole
	// RowIDHole is the id of an inserted row: the tag, a colon and the row's ordinal in base 36.
	RowIDHole
	// RowCountHole is ROW_COUNT() as the client's previous statement left it.
	RowCountHole
	// FoundRowsHole is FOUND_ROWS() as the client's previous statement left it.
	FoundRowsHole
	// CopyHole is the value of one of the client's own parameters; see [Upstream].Copies.
	CopyHole
)

// A Piece of the statement that goes upstream: text as it stands, or a hole. In a text statement a hole becomes a
// literal, in a prepared one a ? with a hidden parameter.
type Piece struct {
	Text    string // client's bytes or inserted text; empty for a hole
	Hole    Hole
	Ordinal int // RowIDHole: the row's ordinal; CopyHole: the client's parameter; both from 0
}

// A Hidden parameter is a ? that the plan added to a prepared statement.
type Hidden struct {
	Index   int // its position among all parameters of the statement that goes upstream
	Hole    Hole
	Ordinal int
}

// A Copy is a parameter of the client's that occurs in what a plan adds. NULL is of every type.
type Copy struct {
	Param   int  // its position among the client's own
	Integer bool // it must be an integer; otherwise a string that is sent with the rest
}

// Result says how the reply becomes the client's, and which identities it carries.
type Result struct {
	Reply rewrite.Reply
	// Sources are the tables behind the identity columns, in their order, or those that captured entries are of.
	Sources []Source
	// Carried is the number of columns, beside those of Sources, that stars carry into the result set: their names
	// begin with rewrite.CarriedPrefix, and the client does not see them.
	Carried int
	// Variables is the number of session variables in which a SELECT ... INTO leaves the identities of its row: those
	// of Sources, in their order. Isotap asks for them right after a statement that found one.
	Variables int
}

// A Source is a base table whose identities a result set carries.
type Source struct {
	Table string // history.Row.Table
	// Array says that a row carries the identities of many rows of the table, in one column: a JSON array of texts
	// "rowid=wlist", NULLs among them, or NULL. The wlist is the end of the row's. Otherwise it carries one identity,
	// in two columns: rowid and wlist.
	Array bool
	// Limit is the most identities that an array can hold: one that is full may lack some. 0: no bound.
	Limit int
}

// Columns is the number of columns that the source takes of a row.
func (s Source) Columns() int {
	if s.Array {
		return 1
	}
	return 2
}

// Writes says how the rows are known that the statement writes.
type Writes struct {
	// Captured says that the statement collects entries in the session variables (see [CaptureInit]).
	Captured bool
	// Images says which images the statement collects in session variables, in mode predicates.
	Images ImageSpec
	// Inserts is the number of rows that an INSERT writes under ids made from RowIDHole, or [Numbered].
	Inserts int
}

// Numbered is what Writes.Inserts says when the server numbers the rows: their ids are made as those from RowIDHole,
// but how many there are only its reply can tell.
const Numbered = -1

// An ImageSpec says of which columns the images hold values that a statement collects of the rows which it writes.
type ImageSpec struct {
	// Inserted are those of rows that it inserts, Updated of rows that it updates: lists of names as SQL spells them,
	// in parentheses; empty where it collects no such images.
	Inserted, Updated string
	// Counted says that the first of Inserted is the column that the server numbers (AUTO_INCREMENT): it is collected
	// as 0 where the server does. Consecutive says that then the numbers of its rows follow one another.
	Counted, Consecutive bool
}

// Empty reports whether no images are collected.
func (p ImageSpec) Empty() bool { return p.Inserted == "" && p.Updated == "" }

// ImageValues stands in an image between the columns and their values, which end with the parenthesis.
const ImageValues = " VALUES ("

// TxnEffect is what the statement does to the transaction.
type TxnEffect struct {
	// Ends says that the statement ends an open transaction (COMMIT, ROLLBACK, BEGIN, DDL) or may (CALL, SET): captured
	// entries must be read before it is sent.
	Ends bool
	// Commits says that the statement, if it ends an open transaction, commits it (LOCK TABLES, GRANT, ...). Of Kind
	// Other and Call it is not known otherwise.
	Commits bool
	// MayRestart says that the statement may end an open transaction and begin the next one, without a trace in the
	// server's reply: several statements in one text.
	MayRestart bool
	// NextLevel is the level that SET TRANSACTION gives to the next transaction only.
	NextLevel history.Level
	// SetsNext says that the statement may give the next transaction a level that is not known.
	SetsNext bool
	// Savepoint is the name in SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO, folded to lower case; Kind tells them
	// apart: Savepoint, Other, Rollback.
	Savepoint string
}

// SessionEffect is what the statement does to the session's state, or asks of it.
type SessionEffect struct {
	// Changes says that the statement may change what the session's own tracking rests on (isolation level, sql_mode,
	// character set, default schema): ask the server again.
	Changes bool
	// ReadsDiagnostics says that the statement asks about the one before it (ROW_COUNT(), FOUND_ROWS(), SHOW WARNINGS,
	// ...): nothing of isotap's may run between the two.
	ReadsDiagnostics bool
	Conditions       Conditions
}

// Conditions says how a statement asks for the conditions (errors and warnings) that the one before it raised.
type Conditions uint8

const (
	// NoConditions: it does not.
	NoConditions Conditions = iota
	// CountsConditions: in an expression, such as @@warning_count. Like any other statement it then leaves conditions
	// of its own.
	CountsConditions
	// KeepsConditions: a statement that leaves them as they are, such as GET DIAGNOSTICS.
	KeepsConditions
	// ListsConditions: likewise, and its rows are the conditions: SHOW WARNINGS, SHOW ERRORS.
	ListsConditions
)

// SchemaEffect is what the statement does to tables.
type SchemaEffect struct {
	// Changes says that tables may look different afterwards: read the schema again, of Changed alone when it names any
	// tables. One with a schema alone stands for all tables of that schema.
	Changes bool
	Changed []rewrite.TableName
	// References are tables to which those of Changed may have foreign keys from now on: what these do to others when
	// they are written may have changed.
	References []rewrite.TableName
	// Triggers says what became of the triggers of Changed.
	Triggers rewrite.TriggerFate
	// Created is the table that the statement creates with isotap's columns behind the client's, and these; nil where
	// they cannot be told, or where isotap's do not show.
	Created []string
	// CreatesTemp are the temporary tables that the statement creates, in lower case: from then on these names may not
	// mean the base tables.
	CreatesTemp []rewrite.TableName
	// DropsTemp are the tables that the statement drops, spelled as in CreatesTemp: if it succeeds, no temporary table
	// has such a name any more.
	DropsTemp []rewrite.TableName
}
