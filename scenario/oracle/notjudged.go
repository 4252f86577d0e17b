package oracle

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A notJudged is why an oracle leaves statements of a script out.
type notJudged uint8

// The reasons.
const (
	unread          notJudged = iota // what tables they look at cannot be told
	undetermined                     // they may answer one thing or another: SKIP LOCKED, numbers that the server gives
	undoing                          // savepoints of their transaction
	endedByOthers                    // the server ended their transaction for what others did, or they waited without end
	alwaysWaits                      // in each order that was tried some step waited for another session
	disturbed                        // isotap's reads beside them changed what was answered
	unseen                           // isotap did not see what they wrote
	readUndone                       // they went by what was undone
	unplaced                         // the order of a row's versions could not be told
	newestWritten                    // by the engine's design they wrote what their transaction did not see
	committedRead                    // by the engine's design they went by committed versions, beside others that are seen
	inCycle                          // they depend on each other: no order has all of them
	failsInOneForm                   // they fail, or one of their forms does
	notUndone                        // they stand behind a form that was not undone
	volatileStep                     // by design they answer or write another thing each time
	volatileSetup                    // so does the script's set-up
	refusedReadOnly                  // they may write, in a READ ONLY transaction
	numNotJudged
)

var reasonsNotJudged = [numNotJudged]string{
	"it cannot be told which tables they look at",
	"they may answer one thing or another (SKIP LOCKED, NOWAIT, numbers that the server gives)",
	"their transactions have savepoints",
	"the server ended their transactions for what others did, or they waited without end",
	"in each order that was tried one of them waits for another session",
	"isotap's reads beside them changed what was answered",
	"what they looked at or wrote was not seen",
	"they went by what was undone",
	"the order of a row's versions could not be told",
	"by the engine's design they go by newer versions than their transactions see",
	"by the engine's design they go by committed versions, where reads of their transactions see others",
	"they depend on each other: no order has all of them",
	"they fail, or one of their forms does: which part of a condition the server comes to first is its own",
	"behind a form that was not undone, since the transaction had ended",
	"by design they answer otherwise each time: they hang on the clock, chance, or the server's state, or define tables",
	"the set-up writes what is another value each time: of the clock, or chance",
	"they may write, which their READ ONLY transaction refuses and autocommit does not",
}

// leaveOut counts statements that are not judged.
func (v *Verdict) leaveOut(why notJudged, n int) {
	if n == 0 {
		return
	}
	if v.NotJudged == nil {
		v.NotJudged = make(map[string]int)
	}
	v.NotJudged[reasonsNotJudged[why]] += n
}

// A newestRule is an engine's level at which writes and locking reads go by the newest committed versions, and plain
// reads by a snapshot.
type newestRule struct {
	engine dbms.Engine
	level  history.Level
	source string
}

// committing are the levels at which an UPDATE leaves out rows that another transaction has just made, and does not
// wait for them, though a read sees them: it goes by committed versions (a semi-consistent read).
var committing = []newestRule{
	{dbms.MariaDB, history.ReadUncommitted, "as MySQL: the code is InnoDB's"},
	{dbms.MySQL, history.ReadUncommitted, "MySQL's manual, 17.7.2.1: semi-consistent reads at READ COMMITTED; READ UNCOMMITTED works " +
		"like that beside its plain reads"},
}

// A disguise is an error by which an engine tells that it ended a transaction for what others did, and that says
// something else: [Serial] would take it for the statement's own.
type disguise struct {
	engine dbms.Engine
	code   string
	why    string
}

// disguises are all that are known. TiDB has the code for numbers that have run out: that is the statement's.
var disguises = []disguise{
	{dbms.MariaDB, "1467/HY000", "a deadlock over the lock of AUTO_INCREMENT (docs/fuzz.md, A deadlock that is told as another error)"},
	{dbms.MySQL, "1467/HY000", "the same code: ha_innobase::get_auto_increment tells each error of the lock so"},
}

// isEndedByOthers reports whether an error says that the server ended a transaction for what others did.
func isEndedByOthers(engine dbms.Engine, code string) bool {
	return clashOf(engine.Family(), code) != nil ||
		slices.ContainsFunc(disguises, func(d disguise) bool { return d.engine == engine && d.code == code })
}

// newestElsewhere is what is known of writes whose subqueries go by the newest versions of tables that they do not
// write: no manual says so of them.
const newestElsewhere = "a write's subquery reads newer versions than its transaction sees: MDEV-29565, MySQL bug 108528"

// newest are all such levels. InnoDB's READ COMMITTED is none: there both see the newest versions.
var newest = []newestRule{
	{dbms.MariaDB, history.RepeatableRead, "MariaDB's manual, InnoDB Lock Modes and SET TRANSACTION; innodb_snapshot_isolation " +
		"refuses such writes"},
	{dbms.MySQL, history.RepeatableRead, "MySQL's manual, 17.7.2.3 Consistent Nonlocking Reads"},
	{dbms.TiDB, history.RepeatableRead, "TiDB's manual, TiDB Pessimistic Transaction Mode"},
}
