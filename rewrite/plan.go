// Package rewrite is what the SQL rewriters of both protocol families produce: a [Plan] that says
// how one statement of a client is observed. The rewriters (rewrite/mysql and rewrite/postgres)
// are pure: no sockets, no clock, no global state. A Plan is immutable once built, so it is cached
// by text and shared between sessions.
//
// Statements are spliced, never printed: a plan is the client's own bytes with pieces put between
// them.
package rewrite

import (
	"strings"

	"github.com/isotap/isotap/history"
)

// The auxiliary columns, and the session variables that collect an UPDATE's before-images.
const (
	RowIDColumn = "isotap_rowid"
	WListColumn = "isotap_wlist"
)

// CarriedPrefix begins the names under which queries in a FROM clause pass identities outwards. A star
// may carry such columns into the result.
const CarriedPrefix = "isotap_carried_"

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
	// CopyHole is the value of one of the client's own parameters; see [Plan.Copies].
	CopyHole
)

// A Piece of the statement that goes upstream: text as it stands, or a hole. In a text statement a
// hole becomes a literal, in a prepared one a ? with a hidden parameter.
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

// Reply says how the reply to the rewritten statement becomes the reply the client expects.
type Reply uint8

const (
	// Unchanged: the reply goes to the client as it is.
	Unchanged Reply = iota
	// Trimmed: the result set's last columns are the identities, [Plan.HiddenColumns] of them; the
	// client does not see them.
	Trimmed
	// Returning: the result set holds only identities; the client gets an OK packet that counts its rows.
	Returning
	// Listing: each row describes a column of a table (SHOW COLUMNS, information_schema.COLUMNS). The
	// client does not see those in which a value is the name of a column of isotap's. The statement
	// itself stays as it is.
	Listing
	// Definition: the second value of the row is a CREATE TABLE statement (SHOW CREATE TABLE), out of
	// which isotap's columns are cut. The statement itself stays as it is.
	Definition
)

// ElementSeparator stands between the identities in one element of an array on PostgreSQL, and Lacking in the place
// of those that were not collected.
const (
	ElementSeparator = ";,"
	Lacking          = "*"
)

// A Source is a base table whose identities a result set carries.
type Source struct {
	Table string // history.Row.Table
	// Array says that a row carries the identities of many rows of the table, in one column: a JSON
	// array of texts "rowid=wlist", NULLs among them, or NULL. The wlist is the end of the row's.
	// Otherwise it carries one identity, in two columns: rowid and wlist.
	Array bool
	// Limit is the most identities that an array can hold: one that is full may lack some. 0: no bound.
	Limit int
	// Whole says that whatever row there is carries all of the array: without a row, or with NULLs alone, it is
	// not known what was read. PostgreSQL only.
	Whole bool
	// Joint says, if it is more than 1, that so many sources share the column, this one and those behind it: of an
	// array each element tells of one. They have -1, and take no column. PostgreSQL only.
	Joint int
	// Physical is what identifies a version on PostgreSQL; nil on every other engine.
	Physical *Physical
	// Kind is what the part of the statement does that writes the table; Other: what the statement does.
	Kind history.Kind
	// Present says that the source is no table but one column, which is NULL in a row that is none of the client's:
	// there is one where the client's result has none. PostgreSQL only.
	Present bool
}

// A Physical says what identifies a row's version on PostgreSQL.
type Physical struct {
	// Items are each a column, in this order; of an array each element is a text of them, separated by
	// semicolons, the key's values escaped as in a row's id. An element may hold several such texts, with
	// [ElementSeparator] between them, or none.
	Items []Item
	// Types are those of the columns that are the key's own (ItemKeyInt and its kind), as the server spells them, with
	// their collations: a statement that was prepared with other ones fails.
	Types []string
	// Leaves are the names of tables by oid (ItemTable), where Source.Table alone does not name the row:
	// those that inherit from it. Nil: it does.
	Leaves map[uint32]string
}

// An Item is one column of what identifies a row's version on PostgreSQL.
type Item uint8

const (
	// ItemTable is tableoid: the table that holds the version.
	ItemTable Item = iota
	// ItemPlace and ItemXID are ctid and xmin of the version that was read, or that a DELETE replaced.
	ItemPlace
	ItemXID
	// ItemNewPlace and ItemNewXID are those of the version that a write left. NULL: it left none.
	ItemNewPlace
	ItemNewXID
	// ItemKey and its kind are a column of the primary key: an integer, a text, a uuid, or for any other
	// type the hexadecimal digits of its binary form. There is one item for each of its columns.
	ItemKeyInt
	ItemKeyText
	ItemKeyUUID
	ItemKeyHex
	// ItemOldKeyChanged is true where an UPDATE gave the row another key.
	ItemOldKeyChanged
	// ItemInserted is true where INSERT ... ON CONFLICT inserted the row, and false where it updated it.
	ItemInserted
	// ItemAction is what MERGE did to the row: INSERT, UPDATE or DELETE.
	ItemAction
	// ItemLSN is the write-ahead log's position after the write.
	ItemLSN
	// ItemTag is the last tag of isotap_wlist in hexadecimal digits: that of the version that was read, or that
	// a DELETE replaced. ItemNewTags are the last two of them, or the only one: that of the version which a write
	// left, and before it that of the one which it replaced.
	ItemTag
	ItemNewTags
	// ItemImage is the row as a write left it, as the text of its composite type.
	ItemImage
)

// A Predicate is a [history.Predicate] whose parameters are open: parameter Params[i], counted from 0, stands
// between Where[i] and Where[i+1].
type Predicate struct {
	Table, Of, As string
	Where         []string
	Params        []int
}

// Close returns the condition with literals in the places of its parameters; false where one of them is empty or not
// there: its value is not known.
func (p *Predicate) Close(literals []string) (string, bool) {
	if len(p.Params) == 0 {
		return p.Where[0], true
	}
	var b strings.Builder
	for i, n := range p.Params {
		if n < 0 || n >= len(literals) || literals[n] == "" {
			return "", false
		}
		b.WriteString(p.Where[i])
		b.WriteString(literals[n])
	}
	b.WriteString(p.Where[len(p.Params)])
	return b.String(), true
}

// ImageValues stands in an image of the MySQL family between the columns and their values, which end with the
// parenthesis.
const ImageValues = " VALUES ("

// A Picture says of which columns the images hold values that a statement of the MySQL family collects of the rows
// which it writes.
type Picture struct {
	// Inserted are those of rows that it inserts, Updated of rows that it updates: lists of names as SQL spells
	// them, in parentheses; empty where it collects no such images.
	Inserted, Updated string
	// Counted says that the first of Inserted is the column that the server numbers (AUTO_INCREMENT): it is collected
	// as 0 where the server does. Consecutive says that then the numbers of its rows follow one another.
	Counted, Consecutive bool
}

// Empty says that no images are collected.
func (p Picture) Empty() bool { return p.Inserted == "" && p.Updated == "" }

// Columns is the number of columns that the source takes of a row.
func (s Source) Columns() int {
	switch {
	case s.Joint < 0:
		return 0
	case s.Array, s.Present:
		return 1
	case s.Physical != nil:
		return len(s.Physical.Items)
	}
	return 2
}

// Conditions says how a statement asks for the conditions (errors and warnings) that the one before it
// raised.
type Conditions uint8

const (
	// NoConditions: it does not.
	NoConditions Conditions = iota
	// CountsConditions: in an expression, such as @@warning_count. Like any other statement it then leaves
	// conditions of its own.
	CountsConditions
	// KeepsConditions: a statement that leaves them as they are, such as GET DIAGNOSTICS.
	KeepsConditions
	// ListsConditions: likewise, and its rows are the conditions: SHOW WARNINGS, SHOW ERRORS.
	ListsConditions
)

// Numbered is what Plan.Inserts says when the server numbers the rows: their ids are made as those from
// RowIDHole, but how many there are only its reply can tell.
const Numbered = -1

// A Plan says how one statement is observed. Plans are shared and must not be changed.
type Plan struct {
	Kind    history.Kind
	Locking history.Locking
	// Observation is what the plan promises (Nothing, Exact, Inexact, Opaque) and Reason why it is
	// not Exact. The session lowers it when the reply contradicts the plan.
	Observation history.Observation
	Reason      history.Reason
	Shape       string   // the statement with its literals replaced by ?
	Args        []string // the literals that Shape leaves out, cut to a few bytes each; on PostgreSQL its parameters, too, as $1
	Origin      string   // see [Origin]
	// Pieces of the statement that goes upstream. Nil: it goes byte for byte as the client wrote it.
	Pieces []Piece
	// Plain is the statement without what isotap wants to see, on a server where SELECT * shows isotap's
	// columns: it means what the client's text would mean if they were not there. Where Pieces do not go
	// upstream, it does in the place of the client's text. Empty: there is no need.
	Plain  string
	Params int      // placeholders in the client's own text
	Hidden []Hidden // in order of Index; empty for a text without TagHole and RowIDHole
	// Copies are the client's parameters that Hidden ones repeat. What isotap adds holds for values of
	// their types only: with others the statement is to go upstream as the client wrote it.
	Copies []Copy
	Reply  Reply
	// Sources are the tables behind the identity columns, in their order, or those that captured entries
	// are of.
	Sources []Source
	// Carried is the number of columns, beside those of Sources, that stars carry into the result set:
	// their names begin with CarriedPrefix, and the client does not see them.
	Carried int
	// Variables is the number of session variables in which a SELECT ... INTO leaves the identities of its
	// row: those of Sources, in their order. Isotap asks for them right after a statement that found one.
	Variables int
	// Companion is the statement that shows what this one read, where its own result cannot (DISTINCT,
	// UNION, ...): the same text in another form, with the same parameters and Reply Trimmed. Isotap runs
	// it right after the statement, in the same snapshot, and the client sees nothing of it. Of its own
	// fields Pieces, Params, Sources, Observation and Reason count; the last two are the statement's once
	// it was read, and until then the statement is opaque. Nil: there is none.
	Companion *Plan
	// Parts are the places in the text where its statements end, of which there are several, each before
	// its semicolon, the last at the end of the text. Every statement can be sent to the server by itself.
	// Nil: the text is one statement, or must not be cut.
	Parts []int
	// AtOnce says that the plan holds only if all rows are fetched at once: for a client that may leave some
	// unfetched the server could read less. PostgreSQL only.
	AtOnce bool
	// Tag is what the client's command tag begins with, before the number of rows, where it is another statement that
	// goes upstream: a SELECT that holds the client's. Empty: the server's tag is the client's. PostgreSQL only.
	Tag string
	// Predicates are the conditions by which the statement chooses the rows of a table that it tells, all of
	// them, in mode predicates.
	Predicates []Predicate
	// Picture says which images the statement collects in session variables, in mode predicates. MySQL's family only.
	Picture Picture
	// Target is the history.Row.Table that an INSERT, UPDATE or DELETE writes; empty when not known.
	Target string
	// Inserts is the number of rows that an INSERT writes under ids made from RowIDHole, or [Numbered].
	Inserts int
	// ListsColumns says that Pieces name the table's columns where the client left that to the server:
	// when the table changes, a statement prepared before must not go on meaning the old ones.
	ListsColumns bool
	// Capture says that the statement collects entries in the session variables (see [CaptureInit]).
	Capture bool
	// EndsTxn says that the statement ends an open transaction (COMMIT, ROLLBACK, BEGIN, DDL) or may
	// (CALL, SET): captured entries are read before it is sent.
	EndsTxn bool
	// Commits says that the statement, if it ends an open transaction, commits it (LOCK TABLES, GRANT,
	// ...). Of Kind Other and Call it is not known otherwise.
	Commits bool
	// MayRestart says that the statement may end an open transaction and begin the next one, without a
	// trace in the server's reply: several statements in one text.
	MayRestart bool
	// MayHideLocks says that the wider statement could lock more than the original where its reads
	// lock (a locking clause, or SERIALIZABLE inside a transaction): an index might cover the
	// original. Such a statement then goes unchanged, for the reason "plan".
	MayHideLocks bool
	// ReadsDiagnostics says that the statement asks about the one before it (ROW_COUNT(),
	// FOUND_ROWS(), SHOW WARNINGS, ...): nothing of isotap's may run between the two.
	ReadsDiagnostics bool
	Conditions       Conditions
	// Deprecated is how many assignments to variables Pieces add to the text's expressions: MySQL warns of
	// each of them (1287) when it reads the statement.
	Deprecated int
	// ChangesSession says that the statement may change what the session's own tracking rests on
	// (isolation level, sql_mode, character set, default schema): ask the server again.
	ChangesSession bool
	// Calls says that the statement may run functions of the database's own, by name or by triggers, which may
	// do what ChangesSession says: ask the server again when one like it has run for the first time. PostgreSQL
	// only.
	Calls bool
	// NextLevel is the level that SET TRANSACTION gives to the next transaction only.
	NextLevel history.Level
	// SetsNext says that the statement may give the next transaction a level that is not known.
	SetsNext bool
	// TxnLevel is the level that a statement gives to the transaction that it begins or runs in: PostgreSQL's
	// BEGIN ISOLATION LEVEL and SET TRANSACTION.
	TxnLevel history.Level
	// Chains says that the statement, where it ends a transaction, begins the next one with the same level:
	// AND CHAIN. PostgreSQL only: MySQL's servers tell.
	Chains bool
	// Global is the name of a prepared transaction: PREPARE TRANSACTION (Kind Other) gives the session's own
	// transaction that name, COMMIT PREPARED and ROLLBACK PREPARED (Kind Commit and Rollback, without
	// EndsTxn) end the one that has it.
	Global string
	// Cursor is what the statement does with a cursor; nil: nothing. PostgreSQL only. Of a DECLARE, Reply and
	// Sources are those of what is fetched.
	Cursor *Cursor
	// ReadsCursors reports whether the statement, or a function that it makes, may read a cursor by its name on the
	// server. PostgreSQL only.
	ReadsCursors bool
	// Prepared is what the statement prepares or executes by SQL; nil: nothing, or it cannot be told. PostgreSQL only.
	Prepared *Prepared
	// Savepoint is the name in SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO, folded to lower case; Kind
	// tells them apart: Savepoint, Other, Rollback.
	Savepoint string
	// ChangesSchema says that tables may look different afterwards: read the schema again, of Changed
	// alone when it names any tables. One with a schema alone stands for all tables of that schema (MySQL's family
	// only).
	ChangesSchema bool
	Changed       []TableName
	// Change is what there is to be read again once the statement's transaction has ended; nil: perhaps anything.
	// PostgreSQL only, where Changed is what the transaction itself may see otherwise until then.
	Change *SchemaChange
	// References are tables to which those of Changed may have foreign keys from now on: what these do to others when
	// they are written may have changed. MySQL's family only.
	References []TableName
	// Triggers says what became of the triggers of Changed. MySQL's family only.
	Triggers TriggerFate
	// Substitutes says that Pieces give ROW_COUNT() and FOUND_ROWS() as values. They are for a text
	// statement only, and only when isotap's own statements came between this one and the client's
	// statement before it; otherwise the original goes upstream.
	Substitutes bool
	// Created is the table that the statement creates with isotap's columns behind the client's, and these; nil where
	// they cannot be told, or where isotap's do not show.
	Created []string
	// Open says that a star stands for columns which are not known, isotap's perhaps among them.
	Open bool
	// Shadows are the temporary tables that the statement creates, in lower case: from then on these names may
	// not mean the base tables. PostgreSQL's are folded names without a schema.
	Shadows []TableName
	// Reveals are the tables that the statement drops, as in Shadows: if it succeeds, no temporary table
	// has such a name any more. On PostgreSQL a rollback may bring it back.
	Reveals []TableName
}

// A Prepared is a statement that SQL prepares (PREPARE) or runs (EXECUTE).
type Prepared struct {
	Name string
	// Text is what is prepared, empty where a statement is run; Types its list of types, with its parentheses.
	Text, Types string
	From, To    int // the bytes of the client's text where the name stands
	// Within says that the statement does not run it for its rows: CREATE TABLE ... AS EXECUTE, EXPLAIN EXECUTE.
	Within bool
}

// Append adds the text that goes upstream to b, with its holes filled as literals by fill. It must
// not be called when Pieces is nil.
func (p *Plan) Append(b []byte, fill func(b []byte, h Hole, ordinal int) []byte) []byte {
	for i := range p.Pieces {
		if piece := &p.Pieces[i]; piece.Hole == NoHole {
			b = append(b, piece.Text...)
		} else {
			b = fill(b, piece.Hole, piece.Ordinal)
		}
	}
	return b
}

// AppendPieces adds the text of pieces without holes to b.
func AppendPieces(b []byte, pieces []Piece) []byte {
	for i := range pieces {
		b = append(b, pieces[i].Text...)
	}
	return b
}

// HiddenColumns is the number of columns that the plan adds to the result set.
func (p *Plan) HiddenColumns() int {
	if p.Reply != Trimmed && p.Reply != Returning {
		return 0
	}
	n := 0
	for _, s := range p.Sources {
		n += s.Columns()
	}
	return n
}
