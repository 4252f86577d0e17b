package analyzer

import (
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// An Anomaly is a proscribed phenomenon by its Adya / Elle name, or one of the classic names for a
// special case of it.
type Anomaly string

// The anomalies that this package finds. A cycle is reported under its most telling name only:
// LostUpdate, OTV, GMonotonic, NonRepeatableRead, ReadSkew and ReadWriteSkew are cases of GSingle; WriteSkew of
// G2Item; PMP of Phantom; that one, PhantomNonadjacent and PhantomSkew of G2; DirtyUpdate of G1a.
const (
	G0           Anomaly = "G0"            // dirty write: a cycle of ww
	G1a          Anomaly = "G1a"           // aborted read
	G1b          Anomaly = "G1b"           // intermediate read (Adya's, not IsoRel's)
	G1c          Anomaly = "G1c"           // circular information flow: a cycle of ww and wr
	GSingle      Anomaly = "G-single"      // a cycle with exactly one rw
	GNonadjacent Anomaly = "G-nonadjacent" // a cycle with two or more rw, of which no two follow each other
	G2Item       Anomaly = "G2-item"       // a cycle with two or more rw, through rows
	LostUpdate   Anomaly = "lost update"
	// A transaction saw what another did, and later something else as it was before the other.
	OTV               Anomaly = "OTV"         // observed transaction vanishes: that was the other's write, too (Bailis)
	GMonotonic        Anomaly = "G-monotonic" // it was the write of whoever came before the other (Adya)
	NonRepeatableRead Anomaly = "non-repeatable read"
	ReadSkew          Anomaly = "read skew"
	ReadWriteSkew     Anomaly = "read-write skew"
	WriteSkew         Anomaly = "write skew"
	// Through the rows that a condition did not find (Adya's predicate anti-dependencies).
	Phantom            Anomaly = "phantom"               // a cycle with one rw
	PMP                Anomaly = "PMP"                   // predicate-many-preceders (Bailis): the row was found after that
	PhantomNonadjacent Anomaly = "phantom G-nonadjacent" // two or more rw, of which no two follow each other
	PhantomSkew        Anomaly = "phantom write skew"    // of two transactions, with two rw
	DirtyUpdate        Anomaly = "dirty update"          // an aborted version was overwritten, and that write committed
	// Phenomena that levels forbid and of which the above are cases; no finding has such a name, but G2 where a
	// longer cycle goes through a predicate.
	GCursor Anomaly = "G-cursor" // one rw and one or more ww through one row (Adya): lost update
	// A transaction read another and missed a write of that one, of the same row or another (Bailis et al. 2014).
	FracturedRead Anomaly = "fractured read"
	// A transaction missed a write of one that happened before it, by wr and the order of sessions (Biswas and Enea).
	GCausal Anomaly = "G-causal"
	GSIb    Anomaly = "G-SIb" // one rw, and the order in which transactions start after others' commits (Adya)
	G2      Anomaly = "G2"    // a cycle with one or more rw, through rows or predicates
	// Findings that are no cycle.
	GarbageRead       Anomaly = "garbage read"
	IncompatibleOrder Anomaly = "incompatible order"
	LostWrite         Anomaly = "lost write"
	Internal          Anomaly = "internal inconsistency" // a transaction does not see what it wrote itself
	FutureRead        Anomaly = "future read"            // a transaction sees what it writes later
	GSIa              Anomaly = "G-SIa"                  // interference (Adya): a dependency from outside the snapshot
	// Between the transactions of one request ([Scope]): a row that it read is written over what another one did to it
	// meanwhile.
	StaleOverwrite Anomaly = "stale overwrite"
	// Between them, too: it takes an amount from what it read, of which another one has left less meanwhile.
	StaleDecision Anomaly = "stale decision"
	// Between two requests: one sets a column back to what it was before the other's change, and changes another one.
	SilentRevert Anomaly = "silent revert"
	// Between them, too: two requests looked for one thing, found none, and each inserted it.
	DoubleInsert Anomaly = "double insert"
	// Between them, too: two requests looked for one thing, found none, and then two rows are that thing: one of them
	// at least was there before, and was set to it.
	DoubleSet Anomaly = "double set"
	// Findings in other checkers' histories only (package interop).
	DuplicateElements Anomaly = "duplicate elements" // a list holds an element twice that was appended once
	CyclicVersions    Anomaly = "cyclic versions"    // what was seen of a register puts its versions in a circle
)

// Class says whose problem an anomaly is.
type Class string

const (
	// Violation: the level that the transactions ran at, as the engine documents it, forbids it.
	Violation Class = "violation"
	// Hazard: the level permits it; the application must cope.
	Hazard Class = "hazard"
	// Unprotected: it is between transactions of one request, which no level protects.
	Unprotected Class = "unprotected"
)

// DepKind is the kind of a dependency.
type DepKind string

// The dependency kinds (Adya, section 4; IsoRel 2.3).
const (
	SO DepKind = "so" // session order
	WR DepKind = "wr" // To read what From wrote
	WW DepKind = "ww" // To overwrote what From wrote
	RW DepKind = "rw" // To overwrote what From read (anti-dependency)
	RT DepKind = "rt" // From had ended before To began
	RQ DepKind = "rq" // both are of one request ([Scope])
)

// An Edge is one dependency: To depends on From. For so, rt and rq, Row, the statements and the version are
// empty.
type Edge struct {
	From, To         *history.Txn
	Kind             DepKind
	Row              history.Row
	FromStmt, ToStmt *history.Stmt
	Version          history.Tag // wr, rw: the version that was read; ww: the version that was overwritten
	Next             history.Tag // ww, rw: the version that overwrote it
	// Current marks an edge whose read is a current read: a locking SELECT or a write.
	Current bool
	// Inexact edges rest on an inexact access.
	Inexact bool
	// NotFound marks an edge whose read looked for rows by a condition and did not find this one. Of an rw, Version is
	// the last that it can have seen of the row, which does not match, and Next does; of a wr, Version is the first
	// that it can have seen.
	NotFound bool
	// Wide marks such an edge whose condition is wider than what the statement hangs on ([history.Predicate].Wide).
	Wide bool
	// Kept marks a wr of an UPDATE that found its new values in the row already, and so wrote nothing.
	Kept bool
	// BegunAgain marks an edge whose access came before a ROLLBACK TO SAVEPOINT that began the server's transaction
	// again: its locks and its snapshot were given back, though the application may go by what it read.
	BegunAgain bool
}

// beganAgain returns the transaction of an edge that is BegunAgain.
func (e *Edge) beganAgain() *history.Txn {
	if e.Kind == RW {
		return e.From
	}
	return e.To
}

// A Program is a transaction's shape: what its statements are with the literals removed. Two runs
// of the same code are one program when they took the same path.
type Program struct {
	Name   string   // its action, or what it writes first, "UPDATE stock" (package programname)
	Action string   // the only one that its transactions named in comments; empty: none, or several
	Stmts  []string // shapes, in order, repetitions folded to one
	Level  history.Level
	Count  int // transactions of this program in the recording
}

// A Finding is one anomaly that one set of statements makes.
type Finding struct {
	ID      string // stable for the same statements and anomaly: for baselines and links
	Anomaly Anomaly
	Class   Class
	Family  dbms.Family // whose SQL its statements are
	Rule    string      // why it is a violation or a hazard, with the document the engine table cites
	Summary string      // one sentence a tired developer understands
	// Lost says of the witness, in values and keys, what came of it: "stock where id = 7: two transactions read it, and
	// both set qty = 3. One of the two changes (-1) is gone." It is empty where the statements do not tell.
	Lost string
	// Slight says of a lost update that the two writes share no column, or only the time of the change, or that the row
	// was read again, with a lock, before the second.
	Slight   bool
	Programs []*Program // those of the witness
	// ProgramSets is in how many combinations of programs it was seen, at most 10,000.
	ProgramSets int
	// Patterns is by how many sets of statements it was made: 1, unless these were too many to be
	// told apart.
	Patterns int
	// Parts are the IDs that its sets of statements have where they are few enough to be told apart; none where there
	// is one set.
	Parts []string
	// Tables are those of its rows. # stands for a number where several tables differ in that alone.
	Tables []string
	// Count is how often it was seen: every time, but G0, G1c and longer cycles as the package comment says.
	Count int
	// AtLeast is whether others like it may not have been counted: a cycle of several rw, one by the order of sessions
	// or of time, and a G-SIa are not, where a graver or a shorter cycle explains them (see the package comment,
	// Minimal explanations). So a longer history may tell fewer of these.
	AtLeast bool
	First   int64 // when the first and the last of them ended; nanoseconds since the run's start
	Last    int64
	// Covers are the anomalies that this finding tells along with its own.
	Covers []Covered
	// Witness is the shortest cycle among them: each edge's To is the next one's From. A finding
	// that is no cycle has the one edge that shows it, or none.
	Witness []Edge
	// Explanation walks the witness in English, one sentence an edge, in Elle's manner.
	Explanation []string
	Advice      []string // what to change, the smallest fix first
	Suggested   []string // the statements in Advice that no client sent
	Known       bool     // a baseline accepts it (package baseline)
}

// rank is where a finding stands among others: violations, then hazards, then what is unprotected, then what is slight.
func (f *Finding) rank() int {
	switch {
	case f.Class == Violation:
		return 0
	case f.Slight:
		return 3
	case f.Class == Unprotected:
		return 2
	}
	return 1
}

// Txns returns the witness's transactions in the order of the cycle, each once.
func (f *Finding) Txns() []*history.Txn {
	var txns []*history.Txn
	seen := make(map[*history.Txn]bool)
	for _, e := range f.Witness {
		for _, t := range []*history.Txn{e.From, e.To} {
			if t != nil && !seen[t] {
				seen[t] = true
				txns = append(txns, t)
			}
		}
	}
	return txns
}

// Coverage counts how well the recording's statements were observed. "No anomaly" means nothing
// without it.
type Coverage struct {
	Sessions      int
	Txns          int
	Committed     int
	Aborted       int
	Indeterminate int
	Statements    int // that read or write rows: Exact + Inexact + Opaque
	Exact         int
	Inexact       int
	Opaque        int
	// Reasons counts the statements that are not exact by reason, and Causes how well these were observed.
	Reasons map[history.Reason]int
	Causes  map[history.Reason]Observed
	Kinds   map[history.Kind]Observed // statements by kind
	Reads   int                       // row reads
	Writes  int                       // row writes
	// UnseenOrigins are those Reads that saw a version which no recorded transaction wrote, although it was not there
	// when the recording began: what its writer did is in no finding.
	UnseenOrigins int
	// OldTags are statements of the MySQL family's that isotap did not observe, and whose rows kept the tags that they
	// had: what is read of these rows later is told as the version before, as long as nobody else writes them.
	OldTags int
	// Cascades are statements that changed rows by foreign keys, where neither they nor the server's log tell which.
	Cascades int
	// PutBack are the rows of the MySQL family's of which a version came back that had been replaced: somebody put
	// them back past isotap, or the server lost what replaced it. What was there before is held against nothing behind
	// it.
	PutBack int
	Several int // transactions of two statements or more that read or write rows
	// Looked are the statements that looked for rows in mode predicates, and Conditions those of them that left a
	// condition. Without counts the others, by why they left none.
	Looked, Conditions int
	Without            map[NoCondition]int
	// Wide are those of the Conditions that are wider than what their statements hang on, all of a statement's.
	Wide int
	// Widened are those of the Wide of which a part was left out because of what it calls.
	Widened map[NoCondition]int
	// Untested are the conditions that were not held against all the versions that they should have been
	// ([history.Info].Untested).
	Untested int
	// Imageless are the versions of rows, of tables that conditions are about, whose values are not known, so that no
	// condition was held against them.
	Imageless int
	// BeyondBound are those of the Untested that there were too many of ([history.Info].BeyondBound).
	BeyondBound int
	// LookedAndInserted are the transactions of other modes that inserted a row after a SELECT had found none: what it
	// did not find is not known.
	LookedAndInserted int
	Levels            map[history.Level]int // transactions by isolation level
	// Unrecorded and Unreadable count transactions that are not among these: they ended while the disk took nothing, or
	// the recording is Damaged.
	Unrecorded, Unreadable int
	Damaged                bool
	// Log is what the server's own log told.
	Log LogCoverage
}

// LogCoverage says what was known from the server's own log.
type LogCoverage struct {
	// Stretches are when it was read, and why not, run by run; none: nobody was to read it.
	Stretches []history.LogStretch
	Txns      int // of the log
	Past      int // of these, that went past isotap and wrote rows that its clients saw or wrote
	Either    int // as Past, of those that a recorded transaction which showed nothing may be as well
	Effects   int // writes of recorded transactions that the proxy did not see
	Told      int // of these, that are among the transactions' writes all the same
	Ends      int // recorded transactions of which the log alone knows how they ended
	// Unlogged are transactions past isotap that changed rows of which the log does not say which: by the action of a
	// foreign key of MariaDB's.
	Unlogged int
	// Left are transactions of the log that were not looked at: there was too much for the analysis at the end of a run
	// that was watched.
	Left int
	// Disputed are versions that recorded statements saw themselves leave and that the log lacks: there is a fault of
	// isotap's. Example names one.
	Disputed int
	Example  string
}

// Observed counts statements by how well they were observed.
type Observed struct{ Exact, Inexact, Opaque int }

// Statements is the number of them.
func (o Observed) Statements() int { return o.Exact + o.Inexact + o.Opaque }
