package analyzer

import (
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Promise is what an engine documents for one of its isolation levels.
//
// Plain SELECTs are reads of a snapshot where the level has one. Locking SELECTs and all writes are
// current reads: they wait for the row's lock and see the newest committed version. A promise about a
// snapshot therefore binds only where what contradicts the read that missed a version (rw) was seen no later than
// the snapshot was taken: by a read of the same snapshot, or by an earlier statement than the one that took it.
// (IsoRel, Figure 5, exempts a SELECT ... FOR UPDATE after a plain SELECT: that is one case of this rule, an
// UPDATE or DELETE in its place another. In the opposite order there is no exemption.)
type Promise struct {
	Engine            dbms.Engine // history.Server.Engine
	Level             history.Level
	SnapshotIsolation bool // MariaDB: with innodb_snapshot_isolation
	Optimistic        bool // TiDB: an optimistic transaction
	// Forbids are the phenomena that no transaction at this level takes part in, however it reads.
	Forbids []Anomaly
	// Snapshot: the plain reads of a transaction see one snapshot.
	Snapshot bool
	// Statement: the plain reads of one statement see one snapshot.
	Statement bool
	// Fresh: a snapshot shows all that had been committed by when it was taken.
	Fresh bool
	// FixedByRead: the transaction's first plain SELECT takes its snapshot, no statement before does.
	FixedByRead bool
	// FirstCommitterWins: a transaction cannot lock or write a row that changed since its snapshot.
	FirstCommitterWins bool
	// Together: what it forbids beyond snapshot isolation it forbids only where all transactions of the
	// cycle run at this level. The others keep no account of what they read.
	Together bool
	// RowLocks: locking reads and writes lock their rows until the transaction ends.
	RowLocks bool
	// Refused: the engine does not run transactions at this level, so it promises nothing there.
	Refused bool
	Source  string // the page that says so
	URL     string
	// Silent says what of the above the page does not say in so many words, and what it follows from.
	Silent string
}

// The pages of documentation, by title and address.
const (
	mariadbSet         = "MariaDB Knowledge Base: SET TRANSACTION, Isolation Levels"
	mariadbSetURL      = "https://mariadb.com/kb/en/set-transaction/"
	mariadbSnapshot    = "MariaDB Knowledge Base: InnoDB System Variables, innodb_snapshot_isolation"
	mariadbSnapshotURL = "https://mariadb.com/kb/en/innodb-system-variables/"
	mysqlLevels        = "MySQL Reference Manual: InnoDB Transaction Isolation Levels"
	mysqlLevelsURL     = "https://dev.mysql.com/doc/refman/en/innodb-transaction-isolation-levels.html"
	mysqlReads         = "MySQL Reference Manual: InnoDB Consistent Nonlocking Reads"
	mysqlReadsURL      = "https://dev.mysql.com/doc/refman/en/innodb-consistent-read.html"
	tidbLevels         = "TiDB Docs: Transaction Isolation Levels"
	tidbLevelsURL      = "https://docs.pingcap.com/tidb/stable/transaction-isolation-levels"
	tidbPessimistic    = "TiDB Docs: Pessimistic Transaction Mode"
	tidbPessimisticURL = "https://docs.pingcap.com/tidb/stable/pessimistic-transaction"
	postgresLevels     = "PostgreSQL Documentation: Transaction Isolation"
	postgresLevelsURL  = "https://www.postgresql.org/docs/current/transaction-iso.html"
)

// What the pages are silent about.
const (
	silentWrites = "no page names G0: READ UNCOMMITTED works like READ COMMITTED but for plain SELECTs, " +
		"so writes lock their rows until the end"
	silentCycles = "no page names G1b and G1c: a read that sees only what was committed before it " +
		"began can be part of neither"
	silentBoth = "the page does not name G0: whoever updates a row waits for the one that did before it to end; and " +
		silentCycles
	silentLocks = "the page names the locks (plain SELECTs take shared ones, unless autocommitted), " +
		"not serializability, which follows from them"
)

var (
	onlyDirtyWrites = []Anomaly{G0}
	readCommitted   = []Anomaly{G0, G1a, G1b, G1c}
	everything      = []Anomaly{G0, G1a, G1b, G1c, GSingle, GNonadjacent, G2Item}
)

// Promises is the engine table. An engine that is not in it promises nothing: what is found there
// are hazards. At SERIALIZABLE an autocommitted plain SELECT reads a snapshot without locks, as of
// which it can be put into the serial order, so that it needs no row of its own.
//
// Where it is not known whether a transaction of TiDB's is pessimistic, it counts as that, which promises
// less. Its SERIALIZABLE and READ UNCOMMITTED are refused with error 8048.
//
// PostgreSQL's SERIALIZABLE is the same for READ ONLY and DEFERRABLE transactions.
var Promises = []Promise{
	{Engine: dbms.MariaDB, Level: history.ReadUncommitted, Forbids: onlyDirtyWrites, RowLocks: true,
		Source: mariadbSet, URL: mariadbSetURL, Silent: silentWrites},
	{Engine: dbms.MariaDB, Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, Fresh: true,
		RowLocks: true,
		Source:   mariadbSet, URL: mariadbSetURL, Silent: silentCycles},
	{Engine: dbms.MariaDB, Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true,
		Fresh: true, FixedByRead: true, RowLocks: true,
		Source: mariadbSet, URL: mariadbSetURL, Silent: silentCycles},
	{Engine: dbms.MariaDB, Level: history.Serializable, Forbids: everything, RowLocks: true,
		Source: mariadbSet, URL: mariadbSetURL, Silent: silentLocks},
	{Engine: dbms.MariaDB, Level: history.RepeatableRead, SnapshotIsolation: true, Forbids: readCommitted,
		Snapshot: true, Statement: true, Fresh: true, FixedByRead: true,
		FirstCommitterWins: true, RowLocks: true, Source: mariadbSnapshot, URL: mariadbSnapshotURL,
		Silent: silentCycles},
	{Engine: dbms.MySQL, Level: history.ReadUncommitted, Forbids: onlyDirtyWrites, RowLocks: true,
		Source: mysqlLevels, URL: mysqlLevelsURL, Silent: silentWrites},
	{Engine: dbms.MySQL, Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, Fresh: true,
		RowLocks: true,
		Source:   mysqlReads, URL: mysqlReadsURL, Silent: silentCycles},
	{Engine: dbms.MySQL, Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true,
		Fresh: true, FixedByRead: true, RowLocks: true,
		Source: mysqlReads, URL: mysqlReadsURL, Silent: silentCycles},
	{Engine: dbms.MySQL, Level: history.Serializable, Forbids: everything, RowLocks: true,
		Source: mysqlLevels, URL: mysqlLevelsURL, Silent: silentLocks},
	{Engine: dbms.TiDB, Level: history.ReadUncommitted, Refused: true, Source: tidbLevels, URL: tidbLevelsURL},
	{Engine: dbms.TiDB, Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, RowLocks: true,
		Source: tidbPessimistic, URL: tidbPessimisticURL, Silent: silentCycles},
	{Engine: dbms.TiDB, Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true,
		RowLocks: true,
		Source:   tidbPessimistic, URL: tidbPessimisticURL, Silent: silentCycles},
	{Engine: dbms.TiDB, Level: history.RepeatableRead, Optimistic: true, Forbids: readCommitted, Snapshot: true,
		Statement:          true,
		FirstCommitterWins: true, Source: tidbLevels, URL: tidbLevelsURL, Silent: silentCycles},
	{Engine: dbms.TiDB, Level: history.ReadCommitted, Optimistic: true, Forbids: readCommitted, Snapshot: true,
		Statement:          true,
		FirstCommitterWins: true, Source: tidbLevels, URL: tidbLevelsURL,
		Silent: "in optimistic mode READ COMMITTED has no effect: " + silentCycles},
	{Engine: dbms.TiDB, Level: history.Serializable, Refused: true, Source: tidbLevels, URL: tidbLevelsURL},
	{Engine: dbms.PostgreSQL, Level: history.ReadUncommitted, Forbids: readCommitted, Statement: true, Fresh: true,
		RowLocks: true,
		Source:   postgresLevels, URL: postgresLevelsURL, Silent: "READ UNCOMMITTED is READ COMMITTED; " + silentBoth},
	{Engine: dbms.PostgreSQL, Level: history.ReadCommitted, Forbids: readCommitted, Statement: true, Fresh: true,
		RowLocks: true,
		Source:   postgresLevels, URL: postgresLevelsURL, Silent: silentBoth},
	{Engine: dbms.PostgreSQL, Level: history.RepeatableRead, Forbids: readCommitted, Snapshot: true, Statement: true,
		Fresh: true, FirstCommitterWins: true,
		RowLocks: true, Source: postgresLevels, URL: postgresLevelsURL, Silent: silentBoth},
	{Engine: dbms.PostgreSQL, Level: history.Serializable, Forbids: everything, Snapshot: true, Statement: true,
		Fresh: true, FirstCommitterWins: true,
		Together: true, RowLocks: true, Source: postgresLevels, URL: postgresLevelsURL,
		Silent: "that transactions at weaker levels are not watched: " +
			"the page speaks of serializable transactions among themselves"},
}

var noPromise Promise

// PromiseOf finds what a server documents for a level; the zero Promise when nothing is known. The
// transaction's conflicts count more than the server's global setting.
func PromiseOf(s history.Server, l history.Level, c history.Conflicts) *Promise {
	si := s.SnapshotIsolation
	if c != history.ConflictsUnknown {
		si = c == history.ConflictsRefused
	}
	si = si && s.Engine == dbms.MariaDB && l == history.RepeatableRead
	optimistic := c == history.ConflictsAtCommit && s.Engine == dbms.TiDB &&
		(l == history.RepeatableRead || l == history.ReadCommitted)
	for i := range Promises {
		if p := &Promises[i]; p.Engine == s.Engine && p.Level == l && p.SnapshotIsolation == si &&
			p.Optimistic == optimistic {
			return p
		}
	}
	return &noPromise
}

// cite names the page that a promise rests on.
func (p *Promise) cite() string {
	if p.URL == "" {
		return p.Source
	}
	return p.Source + ", " + p.URL
}
