package postgres

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

const (
	// DeclareCursor opens it: its query is planned, and sees its snapshot, but gives no rows yet.
	DeclareCursor CursorVerb = iota
	// FetchCursor reads rows, MoveCursor passes over them.
	FetchCursor
	MoveCursor
	// CloseCursor forgets it.
	CloseCursor
)
