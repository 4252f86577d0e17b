package analyzer

import (
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Cell is one of the things that a [Promise] may hold.
type Cell string

// The cells of the engine table, by the fields of [Promise].
const (
	CellForbids     Cell = "forbids"
	CellSnapshot    Cell = "snapshot"
	CellStatement   Cell = "statement"
	CellFresh       Cell = "fresh"
	CellFixedByRead Cell = "fixed by read"
	CellFirstWins   Cell = "first committer wins"
	CellTogether    Cell = "together"
	CellRowLocks    Cell = "row locks"
	CellRefused     Cell = "refused"
)

// A Ground is where cells of the engine table come from: a page, and what it says in our words.
type Ground struct {
	Engine dbms.Engine
	Level  history.Level // LevelUnknown: all that have the cell
	Cell   Cell
	Page   string
	URL    string
	Says   string
}

// Grounds holds the sources of every cell of [Promises].
var Grounds = []Ground{
	{dbms.MariaDB, history.ReadUncommitted, CellForbids, mariadbSet, mariadbSetURL,
		"plain SELECTs may show what is not committed; otherwise it works like READ COMMITTED"},
	{dbms.MariaDB, history.ReadCommitted, CellForbids, mariadbSet, mariadbSetURL,
		"reads are consistent reads, which show what is committed"},
	{dbms.MariaDB, history.RepeatableRead, CellForbids, mariadbSet, mariadbSetURL,
		"reads are consistent reads of the first one's snapshot"},
	{dbms.MariaDB, history.Serializable, CellForbids, mariadbSet, mariadbSetURL,
		"as REPEATABLE READ, and plain SELECTs become LOCK IN SHARE MODE unless autocommitted"},
	{dbms.MariaDB, history.LevelUnknown, CellSnapshot, mariadbSet, mariadbSetURL,
		"all consistent reads of a transaction read the snapshot that the first one established"},
	{dbms.MariaDB, history.LevelUnknown, CellStatement, mariadbSet, mariadbSetURL,
		"each consistent read, within a transaction too, sets and reads its own snapshot"},
	{dbms.MariaDB, history.LevelUnknown, CellFresh, mariadbSet, mariadbSetURL,
		"the snapshot that a consistent read sets is a fresh one"},
	{dbms.MariaDB, history.LevelUnknown, CellFixedByRead, mariadbSet, mariadbSetURL,
		"the first consistent read establishes the snapshot"},
	{dbms.MariaDB, history.RepeatableRead, CellFirstWins, mariadbSnapshot, mariadbSnapshotURL,
		"with innodb_snapshot_isolation, locking a row that is not in the snapshot fails with ER_CHECKREAD"},
	{dbms.MariaDB, history.LevelUnknown, CellRowLocks, mariadbSet, mariadbSetURL,
		"locking reads, UPDATE and DELETE lock the rows or index entries that they use"},

	{dbms.MySQL, history.ReadUncommitted, CellForbids, mysqlLevels, mysqlLevelsURL,
		"plain SELECTs may show an earlier version of a row; otherwise it works like READ COMMITTED"},
	{dbms.MySQL, history.ReadCommitted, CellForbids, mysqlReads, mysqlReadsURL,
		"a consistent read sees what was committed before its point in time, and nothing later or uncommitted"},
	{dbms.MySQL, history.RepeatableRead, CellForbids, mysqlReads, mysqlReadsURL,
		"a consistent read sees what was committed before its point in time, and nothing later or uncommitted"},
	{dbms.MySQL, history.Serializable, CellForbids, mysqlLevels, mysqlLevelsURL,
		"as REPEATABLE READ, and plain SELECTs become FOR SHARE unless autocommitted"},
	{dbms.MySQL, history.LevelUnknown, CellSnapshot, mysqlReads, mysqlReadsURL,
		"all consistent reads of a transaction read the snapshot that the first one established"},
	{dbms.MySQL, history.LevelUnknown, CellStatement, mysqlReads, mysqlReadsURL,
		"each consistent read of a transaction sets and reads its own fresh snapshot"},
	{dbms.MySQL, history.LevelUnknown, CellFresh, mysqlReads, mysqlReadsURL,
		"a consistent read sees the changes of transactions that committed before its point in time"},
	{dbms.MySQL, history.LevelUnknown, CellFixedByRead, mysqlReads, mysqlReadsURL,
		"the first consistent read establishes the snapshot"},
	{dbms.MySQL, history.LevelUnknown, CellRowLocks, mysqlLevels, mysqlLevelsURL,
		"locking reads, UPDATE and DELETE lock the rows or index entries that they use"},

	{dbms.TiDB, history.LevelUnknown, CellForbids, tidbPessimistic, tidbPessimisticURL,
		"reads see what is committed; locks are kept until COMMIT or ROLLBACK"},
	{dbms.TiDB, history.LevelUnknown, CellSnapshot, tidbLevels, tidbLevelsURL,
		"a transaction reads what was committed before it began, as of its start timestamp"},
	{dbms.TiDB, history.LevelUnknown, CellStatement, tidbPessimistic, tidbPessimisticURL,
		"at READ COMMITTED each statement reads as of a timestamp of its own"},
	{dbms.TiDB, history.LevelUnknown, CellFirstWins, tidbLevels, tidbLevelsURL,
		"an optimistic transaction whose rows another changed since it began fails at COMMIT"},
	{dbms.TiDB, history.LevelUnknown, CellRowLocks, tidbPessimistic, tidbPessimisticURL,
		"UPDATE, DELETE, INSERT and SELECT FOR UPDATE lock their rows and read the newest committed version"},
	{dbms.TiDB, history.LevelUnknown, CellRefused, tidbLevels, tidbLevelsURL,
		"READ UNCOMMITTED and SERIALIZABLE are not supported"},

	{dbms.PostgreSQL, history.LevelUnknown, CellForbids, postgresLevels, postgresLevelsURL,
		"no level shows uncommitted data; whoever updates a row waits for the one that did before to end; " +
			"SERIALIZABLE gives what some serial order gives"},
	{dbms.PostgreSQL, history.LevelUnknown, CellSnapshot, postgresLevels, postgresLevelsURL,
		"at REPEATABLE READ and above a transaction sees a snapshot as of its first statement"},
	{dbms.PostgreSQL, history.LevelUnknown, CellStatement, postgresLevels, postgresLevelsURL,
		"a SELECT sees a snapshot of the database as of when it begins to run"},
	{dbms.PostgreSQL, history.LevelUnknown, CellFresh, postgresLevels, postgresLevelsURL,
		"the snapshot is of the instant at which it is taken"},
	{dbms.PostgreSQL, history.LevelUnknown, CellFirstWins, postgresLevels, postgresLevelsURL,
		"a transaction cannot change or lock rows that others changed since it began: could not serialize access"},
	{dbms.PostgreSQL, history.Serializable, CellTogether, postgresLevels, postgresLevelsURL,
		"it monitors for conditions among serializable transactions"},
	{dbms.PostgreSQL, history.LevelUnknown, CellRowLocks, postgresLevels, postgresLevelsURL,
		"UPDATE, DELETE, MERGE and locking SELECTs wait for whoever changed the row, until that transaction ends"},
}

// cells returns what a promise holds.
func (p *Promise) cells() []Cell {
	var cells []Cell
	for _, c := range []struct {
		holds bool
		cell  Cell
	}{
		{len(p.Forbids) > 0, CellForbids}, {p.Snapshot, CellSnapshot}, {p.Statement, CellStatement},
		{p.Fresh, CellFresh},
		{p.FixedByRead, CellFixedByRead}, {p.FirstCommitterWins, CellFirstWins}, {p.Together, CellTogether},
		{p.RowLocks, CellRowLocks}, {p.Refused, CellRefused},
	} {
		if c.holds {
			cells = append(cells, c.cell)
		}
	}
	return cells
}

// GroundOf returns where a cell of a promise comes from; nil where it has none.
func (p *Promise) GroundOf(c Cell) *Ground {
	for i := range Grounds {
		if g := &Grounds[i]; g.Engine == p.Engine && g.Cell == c &&
			(g.Level == history.LevelUnknown || g.Level == p.Level) {
			return g
		}
	}
	return nil
}
