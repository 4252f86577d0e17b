package postgres

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A Plan says how one statement of a [Script] is observed. It is immutable once built: plans are cached by text and
// shared between sessions.
type Plan struct {
	rewrite.Statement
	Result  Result
	Txn     TxnEffect
	Session SessionEffect
	Schema  SchemaEffect
}

// HiddenColumns is the number of columns that the plan adds to the result set.
func (p *Plan) HiddenColumns() int { return rewrite.HiddenColumns(p.Result.Reply, p.Result.Sources) }

// Result says how the reply becomes the client's, and which identities it carries. Of a DECLARE it says that of what is
// fetched.
type Result struct {
	Reply rewrite.Reply
	// Sources are the tables behind the identity columns, in their order.
	Sources []Source
	// Tag is what the client's command tag begins with, before the number of rows, where it is another statement that
	// goes upstream: a SELECT that holds the client's. Empty: the server's tag is the client's.
	Tag string
	// AtOnce says that the plan holds only if all rows are fetched at once: for a client that may leave some unfetched
	// the server could read less.
	AtOnce bool
}

// A Source is a base table whose identities a result set carries.
type Source struct {
	Table string // history.Row.Table
	// Array says that a row carries the identities of many rows of the table, in one column: an array, or NULL.
	// Otherwise it carries one identity, in as many columns as Physical has items.
	Array bool
	// Limit is the most identities that an array can hold: one that is full may lack some. 0: no bound.
	Limit int
	// Whole says that whatever row there is carries all of the array: without a row, or with NULLs alone, it is not
	// known what was read.
	Whole bool
	// Joint says, if it is more than 1, that so many sources share the column, this one and those behind it: of an
	// array each element tells of one. They have -1, and take no column.
	Joint int
	// Physical is what identifies a version.
	Physical *Physical
	// Kind is what the part of the statement does that writes the table; Other: what the statement does.
	Kind history.Kind
	// Present says that the source is no table but one column, which is NULL in a row that is none of the client's:
	// there is one where the client's result has none.
	Present bool
}

// Columns is the number of columns that the source takes of a row.
func (s Source) Columns() int {
	switch {
	case s.Joint < 0:
		return 0
	case s.Array, s.Present:
		return 1
	}
	return len(s.Physical.Items)
}

// ElementSeparator stands between the identities in one element of an array, and Lacking in the place of those that
// were not collected.
const (
	ElementSeparator = ";,"
	Lacking          = "*"
)

// A Physical says what identifies a row's version.
type Physical struct {
	// Items are each a column, in this order; of an array each element is a text of them, separated by semicolons, the
	// key's values escaped as in a row's id. An element may hold several such texts, with [ElementSeparator] between
	// them, or none.
	Items []Item
	// Types are those of the columns that are the key's own (ItemKeyInt and its kind), as the server spells them, with
	// their collations: a statement that was prepared with other ones fails.
	Types []string
	// Leaves are the names of tables by oid (ItemTable), where Source.Table alone does not name the row: those that
	// inherit from it. Nil: it does.
	Leaves map[uint32]string
}

// An Item is one column of what identifies a row's version.
type Item uint8

const (
	// ItemTable is tableoid: the table that holds the version.
	ItemTable Item = iota
	// ItemTID and ItemXID are ctid and xmin of the version that was read, or that a DELETE replaced.
	ItemTID
	ItemXID
	// ItemNewTID and ItemNewXID are those of the version that a write left. NULL: it left none.
	ItemNewTID
	ItemNewXID
	// ItemKey and its kind are a column of the primary key: an integer, a text, a uuid, or for any other type the
	// hexadecimal digits of its binary form. There is one item for each of its columns.
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
	// ItemTag is the last tag of isotap_wlist in hexadecimal digits: that of the version that was read, or that a
	// DELETE replaced. ItemNewTags are the last two of them, or the only one: that of the version which a write left,
	// and before it that of the one which it replaced.
	ItemTag
	ItemNewTags
	// ItemImage is the row as a write left it, as the text of its composite type.
	ItemImage
)

// TxnEffect is what the statement does to the transaction.
type TxnEffect struct {
	// Ends says that the statement ends an open transaction (COMMIT, ROLLBACK) or may (CALL, DO).
	Ends bool
	// MayRestart says that the statement may end an open transaction and begin the next one, without a trace in the
	// server's reply.
	MayRestart bool
	// Level is the level that the statement gives to the transaction that it begins or runs in: BEGIN ISOLATION LEVEL
	// and SET TRANSACTION.
	Level history.Level
	// Chains says that the statement, where it ends a transaction, begins the next one with the same level: AND CHAIN.
	Chains bool
	// Global is the name of a prepared transaction: PREPARE TRANSACTION (Kind Other) gives the session's own
	// transaction that name, COMMIT PREPARED and ROLLBACK PREPARED (Kind Commit and Rollback, without Ends) end the one
	// that has it.
	Global string
	// Savepoint is the name in SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO, folded to lower case; Kind tells them
	// apart: Savepoint, Other, Rollback.
	Savepoint string
}

// SessionEffect is what the statement does to the session's state, or asks of it.
type SessionEffect struct {
	// Changes says that the statement may change what the session's own tracking rests on (isolation level, search
	// path, role, ...): ask the server again.
	Changes bool
	// Calls says that the statement may run functions of the database's own, by name or by triggers, which may do what
	// Changes says: ask the server again when one like it has run for the first time.
	Calls bool
	// Cursor is what the statement does with a cursor; nil: nothing.
	Cursor *Cursor
	// ReadsCursors says that the statement, or a function that it makes, may read a cursor by its name on the server.
	ReadsCursors bool
	// Prepared is what the statement prepares or executes by SQL; nil: nothing, or it cannot be told.
	Prepared *Prepared
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

// SchemaEffect is what the statement does to tables.
type SchemaEffect struct {
	// Changes says that tables may look different afterwards: read the schema again. Changed are those that the
	// transaction itself may see otherwise until it ends.
	Changes bool
	Changed []rewrite.TableName
	// Change is what there is to be read again once the statement's transaction has ended; nil: perhaps anything.
	Change *rewrite.SchemaChange
	// Created is the table that the statement creates with isotap's columns behind the client's, and these; nil where
	// they cannot be told, or where isotap's do not show.
	Created []string
	// Open says that a star stands for columns which are not known, isotap's perhaps among them.
	Open bool
	// CreatesTemp are the temporary tables that the statement creates, folded names without a schema: from then on
	// these names may not mean the base tables.
	CreatesTemp []rewrite.TableName
	// DropsTemp are the tables that the statement drops, spelled as in CreatesTemp: if it succeeds, no temporary table
	// has such a name any more. A rollback may bring it back.
	DropsTemp []rewrite.TableName
}

// A Cursor is what a statement does with a cursor of SQL. A cursor's rows carry the identities that the plan of
// the statement tells that declared it.
type Cursor struct {
	Verb CursorVerb
	Name string // folded; empty where CLOSE means all of them
	// Binary and Hold say that the rows are in binary unless asked for otherwise, and that the cursor
	// outlives its transaction.
	Binary, Hold bool
	// Forward says that a FETCH or a MOVE goes forward: by one row, by as many as its only argument says, or, as All
	// says, to the end.
	Forward, All bool
}

// CursorVerb is what a statement does with a cursor.
type CursorVerb uint8

// The verbs.
const (
	// DeclareCursor opens it: its query is planned, and sees its snapshot, but gives no rows yet.
	DeclareCursor CursorVerb = iota
	// FetchCursor reads rows, MoveCursor passes over them.
	FetchCursor
	MoveCursor
	// CloseCursor forgets it.
	CloseCursor
)
