package catalog

// Options say how isotap's columns are put on the tables of a server, and taken off again.
type Options struct {
	// Schemas to look at; all but the server's own when there are none.
	Schemas []string
	// WListBytes is the size of isotap_wlist; 0: unbounded. Tables that have the column keep its
	// size. To strip tables it does not matter.
	WListBytes int
	// Progress, when there is one, is called before each table and after each batch of a back-fill,
	// from the caller's goroutine.
	Progress func(Progress)

	// BackFill has the row ids filled in by UPDATE also where the server could do it by itself. The MySQL family's
	// only.
	BackFill bool
	// Batch is the least number of rows of a batch of the back-fill; 0: 10,000. The MySQL family's only.
	Batch int
}

// Progress is how far the work is.
type Progress struct {
	Table        string // schema.table that is worked on
	Done, Tables int    // tables that are finished, and all
	Rows         int    // rows of the table that got their id, where that is a step of its own
}

// A Result is what was done.
type Result struct {
	Changed []string // tables that got or lost the columns, as schema.table
	Already []string // tables that had them before
	LeftOut []LeftOut
	Rights  int      // users and roles, by table, whose column rights were extended or taken back
	Notes   []string // what the caller should tell: sentences without a full stop
}

// LeftOut is a table or view that could not be given the columns, or rid of them, and why.
type LeftOut struct{ Table, Reason string }
