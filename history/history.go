// Package history is the model that every part of isotap shares: what sessions did, which
// transactions they ran, which row versions each statement read and wrote.
//
// The words are Adya's ("Weak Consistency", 1999) and IsoRel's (ISSTA 2025, section 2): a row is
// known by its [Row] for its whole life, a version of it by the [Tag] of the statement that
// installed it, and a statement's effect by its [Access] list. The package holds data and its text
// forms only: it imports nothing of isotap but the names of servers, does no input or output, and every value may be
// read from several goroutines as long as none writes it.
package history

import (
	"strings"
	"time"
	"unicode"

	"github.com/isotap/isotap/dbms"
)

// A SessionID numbers the client connections of one run, from 1, in the order they were accepted.
type SessionID uint32

// A Session is one client connection. Its transactions are totally ordered (session order, so).
type Session struct {
	Run    Run
	ID     SessionID
	Client string // the client's address, for people to recognize it by
	User   string // as the client logged in; empty when it is not known
	// Database is the one whose tables the session's accesses name, where a session is in one for its whole
	// life (PostgreSQL); empty elsewhere.
	Database string
	Start    int64 // nanoseconds since the run's start, on the proxy's monotonic clock
	End      int64 // as Start; 0 while the session is open or when its end was not recorded
}

// Info describes a run: one life of one proxy, writing one stretch of a recording.
type Info struct {
	Run     Run
	Started time.Time // wall clock; every other time of the run counts nanoseconds from here
	Ended   time.Time // zero when the run did not end cleanly: tags past its horizon are then unrecorded
	Isotap  string    // isotap's version
	Mode    string    // items or predicates; of other checkers' histories their format
	Server  Server
	// Horizon is PostgreSQL's 64-bit transaction id below which every transaction had ended when the run
	// began: what these wrote was there before. 0: not known, as on every other engine.
	Horizon uint64
	// Recent tells the same of some from Horizon on.
	Recent Recent
	// Columns says that rows of PostgreSQL's are known by isotap's columns, in the tables that carry them.
	Columns bool
	// Rewritten are the tables of PostgreSQL's that were written anew as a whole during the run (VACUUM FULL,
	// CLUSTER, TRUNCATE), so that a place in them may be that of another version: [Row].Table, an @ and the
	// database. In the MySQL family they are those that somebody past isotap made anew, by [Row].Table: their rows may
	// carry tags of an earlier life. It is known once the run has ended cleanly.
	Rewritten []string
	// PutBack says that rows of the MySQL family's may have been put back past isotap, with the columns of isotap's
	// that they once had: statements that insert rows ran on the server and not through isotap, or it is not known that
	// none did, as while the run goes on.
	PutBack bool
	// Untested is how many conditions, in mode predicates, were not held against all the row versions that they should
	// have been: there was no time, there were too many, or the server could not. It is known once the run has ended
	// cleanly.
	Untested uint64
	// BeyondBound is how many of these there were too many of: more than are kept of a table at a time.
	BeyondBound uint64
	// Gaps are the stretches in which transactions ended that were not recorded.
	Gaps []Gap
	// Log are the stretches during which the server's own log was read, in order; none: nobody was to read it.
	Log []LogStretch
	// Damaged says that the recording is damaged, and Unreadable how many of the run's transactions are known to be
	// missing for that.
	Damaged    bool
	Unreadable uint64
}

// Whole reports whether every transaction of the run is there, and nobody can be missing between two that are.
func (i *Info) Whole() bool { return !i.Ended.IsZero() && !i.Holed() }

// Holed reports whether transactions may be missing between others.
func (i *Info) Holed() bool { return len(i.Gaps) > 0 || i.Damaged }

// A Gap is a stretch of a run in which transactions ended that the recording does not have.
type Gap struct {
	From, To int64  // when the first of them began and the last one ended; nanoseconds since the run's start
	Txns     uint64 // how many they were
	Reason   string // why, as "disk is full"
}

// Recent says which of PostgreSQL's transactions had ended when a run began: those with an id in [From, To), but for
// those in Running, in order. What one that runs for long keeps below the horizon is known by it.
type Recent struct {
	From, To uint64
	Running  []uint64
}

// Server names the database server behind a run.
type Server struct {
	Engine  dbms.Engine
	Version string // as the server gives it
	// System is PostgreSQL's system identifier (pg_control_system()): runs with the same one draw their
	// transaction ids from one counter. 0: not known, as on every other engine.
	System uint64
	// SnapshotIsolation is MariaDB's innodb_snapshot_isolation: REPEATABLE READ then refuses to
	// write a row that changed since the snapshot. It is the global value; see [Txn.Conflicts].
	SnapshotIsolation bool
}

// Status is how a transaction ended.
type Status uint8

// The three statuses. A transaction whose COMMIT was sent but never answered, or whose proxy died
// before it ended, is Indeterminate.
const (
	Indeterminate Status = iota
	Committed
	Aborted
)

// WriteConflicts returns what becomes of its writes of rows that others have changed: TiDB's BEGIN OPTIMISTIC and BEGIN
// PESSIMISTIC count more than the session's setting.
func (t *Txn) WriteConflicts() Conflicts {
	if len(t.Stmts) == 0 || t.Stmts[0].Kind != Begin || len(t.Stmts[0].Shape) == len("BEGIN") {
		return t.Conflicts
	}
	isOther := func(r rune) bool { return !unicode.IsLetter(r) } // TiDB's comments, too: BEGIN /*T! OPTIMISTIC */
	for word := range strings.FieldsFuncSeq(t.Stmts[0].Shape, isOther) {
		switch {
		case strings.EqualFold(word, "OPTIMISTIC"):
			return ConflictsAtCommit
		case strings.EqualFold(word, "PESSIMISTIC"):
			return ConflictsAccepted
		}
	}
	return t.Conflicts
}

// OnlyDefines reports whether the transaction came to no rows, as far as is known: it made, altered or dropped tables
// and the like. Recordings have such transactions by themselves, and no analysis has them.
func (t *Txn) OnlyDefines() bool {
	for i := range t.Stmts {
		if t.Stmts[i].Observation != Nothing {
			return false
		}
	}
	return true
}

// A DefiningTxn is a transaction that [Txn.OnlyDefines].
type DefiningTxn struct {
	Txn
	// Database is the schema of names that have none, in the MySQL family; empty: it is not known. On PostgreSQL it is
	// the session's.
	Database string
}

// Level is the isolation level that a transaction ran at, by its SQL name.
type Level uint8

// The four levels of SQL, and LevelUnknown where the proxy could not learn it.
const (
	LevelUnknown Level = iota
	ReadUncommitted
	ReadCommitted
	RepeatableRead
	Serializable
)

// Conflicts says what a session's setting makes of a row that has changed since the transaction's
// snapshot: the same level promises more where the transaction cannot write or lock it.
type Conflicts uint8

const (
	// ConflictsUnknown: the proxy did not ask, or the engine has no such setting; [Server] may tell.
	ConflictsUnknown Conflicts = iota
	// ConflictsAccepted: it is written all the same. MariaDB without innodb_snapshot_isolation, TiDB's
	// pessimistic transactions.
	ConflictsAccepted
	// ConflictsRefused: the statement fails. MariaDB with innodb_snapshot_isolation.
	ConflictsRefused
	// ConflictsAtCommit: the transaction fails when it commits. TiDB's optimistic transactions.
	ConflictsAtCommit
)

// A Txn is one transaction: explicit, or the implicit one of an autocommitted statement.
type Txn struct {
	ID      TxnID
	Session SessionID
	Status  Status
	Level   Level
	// Conflicts is the session's setting while the transaction ran; the weaker one where it changed.
	// [Txn.WriteConflicts] has the transaction's own.
	Conflicts Conflicts
	Implicit  bool // an autocommitted statement
	// StaleRead reports whether its client had it read as of a moment before it began: PostgreSQL's SET TRANSACTION
	// SNAPSHOT. Such a transaction may miss what had ended before it.
	StaleRead bool
	// Fresh says that the client had its session reset before (RESET CONNECTION, CHANGE USER; DISCARD ALL, RESET ALL),
	// as a pool does before it gives a connection to somebody else.
	Fresh bool
	// Start is no later than when it began: when its first statement was sent, or prepared; nanoseconds since the run's
	// start.
	Start int64
	End   int64 // when the reply that ended it arrived; as Start
	Stmts []Stmt
	// Runner is of no recorded transaction: an analysis makes others of what the server's log says.
	Runner Runner
}

// A Runner says who ran a transaction.
type Runner uint8

const (
	// AClient of isotap's ran it, in Session.
	AClient Runner = iota
	// PastIsotap somebody else did: the server's log alone has it.
	PastIsotap
	// PastOrUnseen is either of them: a client's statement that showed nothing may have run it.
	PastOrUnseen
)

// String returns the runner as reports tell it; empty for a client, who has a session.
func (r Runner) String() string {
	return [...]string{"", "past isotap", "within a statement that showed nothing, or past isotap"}[min(r, PastOrUnseen)]
}

// A VersionRef names a row version by the access that wrote it: the place of it among the statement's.
type VersionRef struct {
	Txn    TxnID
	Stmt   uint32
	Access int
}

// Matches names versions that match a predicate, as the server said when it was asked. Of versions that no Matches
// of the run names it is not known.
type Matches struct {
	Database  string    // as Session.Database
	Predicate Predicate // as [Predicate.Condition] returns it
	Versions  []VersionRef
}

// A Definition is how a table or view was defined at some time of a run, as the server's catalog said: SQL as package
// robust/footprint reads it. Of several for one name the last counts, also if the table has gone since.
type Definition struct {
	Database string // of PostgreSQL: as Session.Database; of the MySQL family: the schema
	Name     string // as SQL spells it
	At       int64  // when it was read; nanoseconds since the run's start
	SQL      string // the table with its keys; empty for a view
	// References is what names other tables, to be read once they are all there: foreign keys and triggers, or the
	// view.
	References string
	// Missing says why the definitions of Database could not be read; Name, SQL and References are then empty.
	Missing string
}

// Kind is a statement's verb, as far as the analysis cares.
type Kind uint8

// The statement kinds. Other is everything that touches no row that isotap could know of.
const (
	Other Kind = iota
	Select
	Insert
	Update
	Delete
	Replace
	Begin
	Commit
	Rollback
	Savepoint
	DDL
	Set
	Call
	Merge
	Copy
	Release // of a savepoint
	Lock    // PostgreSQL's LOCK
	// NamedLock touches no row, and takes or releases locks that have a name: see package namedlock.
	NamedLock
)

// Locking reports whether a statement's reads are current reads: a plain SELECT reads its snapshot, a
// locking one and every write reads the newest committed version and locks it.
type Locking uint8

// The locking clauses of SELECT. Writes (UPDATE, DELETE) always lock for update.
const (
	NoLock Locking = iota
	LockShare
	LockUpdate
)

// Observation says how well a statement was observed.
type Observation uint8

const (
	// Nothing: the statement reads and writes no row, so there was nothing to observe.
	Nothing Observation = iota
	// Exact: the versions came out of the statement itself.
	Exact
	// Inexact: some versions may be missing or not be the ones the statement saw.
	Inexact
	// Opaque: not observed; the statement ran as the client wrote it.
	Opaque
)

// A Stmt is one statement of a transaction, as it was sent and answered.
type Stmt struct {
	Num         uint32 // the STMT of its tag: its place in the transaction, from 1
	Kind        Kind
	Locking     Locking
	Observation Observation
	// Void statements left nothing behind: they failed, or a ROLLBACK TO SAVEPOINT undid them. What
	// a void statement read stays read; what it wrote was never there for others.
	Void bool
	// Unseen says that no client sent it: it stands for what the server's own log says that its transaction wrote, and
	// no statement told. Recordings have none.
	Unseen bool
	// Recorded is the number that the recording has for the statement, where that is another: unseen ones stand before
	// it. 0: it is Num.
	Recorded uint32
	// Reason says in a few words why the observation is not Exact: "view", "trigger", "plan", ...
	Reason Reason
	Shape  string // the statement with its literals replaced by ?
	// Args are the literals or parameters that Shape leaves out, in order, as SQL would print them; they may be cut, or
	// left out.
	Args []string
	// Text is the statement with all of its values, as a client may send it once more: where that is asked for, and
	// while it is recorded. Readers of recordings give it by itself.
	Text     string
	Sender   Sender
	Start    int64 // when it was sent; nanoseconds since the run's start
	End      int64 // when its reply was complete; as Start
	Error    Error
	Rows     uint64 // rows that the client got
	Affected uint64 // rows that the server said it changed
	Accesses []Access
	// TupleIDs stands beside Accesses, one for one, where versions are known by where PostgreSQL keeps them
	// and not yet by their tags (see package analyzer/pgversions); nil otherwise.
	TupleIDs []TupleID
	// XID is the id that PostgreSQL gave the statement's transaction, where that was told and not only the versions
	// that it left: never that of a subtransaction. NoXID: behind the statement it had none, so it had written nothing.
	// 0: it was not told.
	XID uint32
	// Predicates are the conditions by which the statement chose the rows among Accesses, in mode predicates.
	Predicates []Predicate
	// Images stands beside Accesses, one for one, in mode predicates: the values of the row as a write left it,
	// in a form that the server reads again; empty for a read and a deletion. Nil: there are none.
	Images []string
}

// NoXID is [Stmt].XID where the transaction has no id. No client's transaction has this one (BootstrapTransactionId).
const NoXID = 1

// A Predicate is a condition over the rows of one table, closed: it holds no parameters. Adya's predicate read
// r(P: Vset(P)) is one, and all rows of the table that match it are among the statement's accesses, unless it is Wide.
type Predicate struct {
	Table string // Row.Table
	// Of is how the statement names the table, spelled as the server reads it anywhere: "public"."item".
	Of string
	// As is the name by which Where refers to it, likewise.
	As string
	// Where is the condition; empty for all rows.
	Where string
	// Told is what the statement's text asks for and Where has as the value that it got.
	Told Asked
	// Settings are those of the session that the meaning of Where's literals hangs on.
	Settings LiteralSettings
	// Wide says that more than Where decided which rows of the table the statement chose, as in a join. Rows that match
	// are then not all among its accesses, and one that begins to match may change nothing for it.
	Wide bool
}

// Condition returns the predicate alone that rows are held against, as [Matches] names it.
func (p Predicate) Condition() Predicate {
	p.Wide, p.Told = false, 0
	return p
}

// Asked says what else than rows the meaning of a condition hangs on. Values of it can be joined by |.
type Asked uint8

const (
	// AskedTime: it asks for the time.
	AskedTime Asked = 1 << iota
	// AskedUser: it asks for the user.
	AskedUser
)

// Has reports whether all that another value says is asked for.
func (a Asked) Has(b Asked) bool { return a&b == b }

// LiteralSettings are the session's settings by which a condition's literals are read.
type LiteralSettings struct {
	TimeZone string
	// DateStyle and IntervalStyle are PostgreSQL's.
	DateStyle, IntervalStyle string
	// SQLMode and Collation (collation_connection) are the MySQL family's.
	SQLMode, Collation string
}

// Texts returns the settings in an order that stays.
func (s *LiteralSettings) Texts() []*string {
	return []*string{&s.TimeZone, &s.DateStyle, &s.IntervalStyle, &s.SQLMode, &s.Collation}
}

// Error is the server's own error; zero for success.
type Error struct {
	Code     uint16 // MySQL's error number; 0 for PostgreSQL
	SQLState string
	Message  string
}

// Op is what an access did to its row.
type Op uint8

// The four operations. An UPDATE and a DELETE replace the version that their Access names; their
// own version has the tag of their statement.
const (
	Read Op = iota
	InsertRow
	UpdateRow
	DeleteRow
)

// An Access is one row that one statement read or wrote.
type Access struct {
	Row Row
	Op  Op
	// Inexact accesses may be incomplete or wrong and are never the sole evidence of a violation.
	Inexact bool
	// Version is the version read (Read) or replaced (UpdateRow, DeleteRow); for InsertRow it is
	// the initial tag, or the version of the predecessor that the row continues.
	Version Tag
	// Absent says that the statement looked for rows by a predicate and did not find this one: what it saw of it was
	// Version, or an earlier one, which does not match. No recording has such accesses (see package
	// analyzer/predicate).
	Absent bool
	// Wide says that the predicate of an Absent access was ([Predicate].Wide): a cycle through it need not be one for a
	// server that follows what was really read, and never makes a violation.
	Wide bool
	// Gone says of such a statement that what it saw of the row was Version, or a later one: it would have found every
	// version below that which it can have seen. No recording has such accesses either.
	Gone bool
	// Subquery says of a read of an UPDATE, INSERT, REPLACE or DELETE in the MySQL family that one of its subqueries
	// made it. Any other read of an UPDATE there is of a row that it matched and left as it was.
	Subquery bool
	// Prior holds the tags below Version in the row's wList, oldest first, as far as the list
	// reached back. It is left out (nil) where the recording has it with the same version already.
	Prior []Tag
}

// A Row names one row for its whole life.
type Row struct {
	// Table is schema.table; where another table, or an earlier life of it, has a row of that ID, with an @ and what
	// tells it from that one.
	Table string
	// ID is isotap_rowid; on PostgreSQL the values of the primary key, and empty where the table has none.
	ID string
}

// A TupleID says where PostgreSQL keeps the version that an access read or replaced, and the one that it
// left. A version is known by the table that holds it, its place there (ctid) and the transaction that
// wrote it (xmin), until the table is rewritten. Zeros stand for what is not known: until
// version 18 an UPDATE does not tell what it replaced.
type TupleID struct {
	XID    uint32 // the (sub)transaction that wrote the version read or replaced: xmin
	CTID   uint64 // and where it stands: the block above 16 bits of offset
	NewXID uint32 // as XID, of the version that an INSERT or UPDATE left
	NewID  uint64 // as CTID
	// LSN is the position of the write-ahead log right after a write, while its row was still locked: of
	// two writes of one row the later one has the larger.
	LSN uint64
	// Leaf is the oid of the table that holds the version: Row.Table is the name that it, or its partitioned parent,
	// had then. 0: not known, as for tables without partitions in recordings of older versions of isotap.
	Leaf uint32
	// Tagged says that the row carries isotap's columns. Its ID is then isotap_rowid, and CTID and NewID are no
	// places but the log positions of the last tags in isotap_wlist; the XID that an UPDATE replaced is the
	// transaction in the tag, never a subtransaction's.
	Tagged bool
}
