package history

// A LoggedTxn is a transaction as the server's own log has it (PostgreSQL's write-ahead log, the MySQL family's binary
// log): what it wrote and how it ended, whoever ran it. What it read no log tells.
//
// It is a second witness: it adds writers and versions to what the proxy saw, and takes none away. Positions order the
// writes of one row; the order in which transactions stand in a log is not that in which others came to see them.
type LoggedTxn struct {
	// Number is its place in a recording of the log of one run, from 1: the same whatever part of that is read. One of
	// many writes takes several, of which it has the last. The recorder gives it.
	Number uint32
	// Status is Committed or Aborted. What had not ended when the log was last read is not recorded.
	Status Status
	// Position is where the log says how it ended: on PostgreSQL the position (LSN) right after that record, in the
	// MySQL family the position in File.
	Position uint64
	File     string // of the binary log; empty on PostgreSQL
	// From and To are times between which it ended, in nanoseconds since the run's start: it had not before From (0:
	// not known), and had when the log gave it to isotap, which is To.
	From, To int64
	// Seen is, in the MySQL family, a time from which on every new snapshot had what it wrote: its end in the log, and
	// To with it, come before that. 0: not known.
	Seen     int64
	Database string // PostgreSQL: the one whose tables it wrote

	// XIDs, Thread and GTID say whose it is, by what the sessions of a run know of their own transactions.

	// XIDs are PostgreSQL's: that of the transaction, and those of its subtransactions that it kept.
	XIDs []uint32
	// Thread is the id of MySQL's connection; 0: not known.
	Thread uint64
	GTID   string // MariaDB's and MySQL's, where there is one

	// Unlogged are the tables of which the log says that the transaction wrote rows, without saying which: children of
	// MariaDB's foreign keys with a cascade.
	Unlogged []string
	// Writes are in the log's order.
	Writes []LoggedWrite
	// Cut says that there were more of them than isotap keeps of one transaction.
	Cut bool
}

// A LoggedWrite is a row that a transaction inserted, updated or deleted, as the server's log has it.
type LoggedWrite struct {
	Op Op
	// Row's Table is schema.table as the server's catalog had it when the log was read; empty where it no longer had
	// it. Its ID is isotap_rowid, and empty on PostgreSQL, whose log does not say which row a version is of: that is
	// known by the versions before and after it.
	Row Row
	// TupleID is where PostgreSQL keeps the versions: CTID of the one replaced, NewXID and NewID of the one left, the
	// LSN right after the write, and the Leaf.
	TupleID TupleID
	// Storage is PostgreSQL's relfilenode: places of one table are told apart by it when the table was written anew.
	Storage uint32
	// Old and New are, in the MySQL family, the last tags of isotap_wlist before and after. They are equal where
	// somebody wrote the row without isotap.
	Old, New Tag
}

// A LogStretch is a part of a run during which the server's log was read without a gap. What ended between two
// stretches, before the first and after the last is not known from the log, and proves nothing.
type LogStretch struct {
	// From and To are when it began and ended, in nanoseconds since the run's start. One that has no length says why
	// the log was not read. To is 0 while it is being read, and where the run had no clean end.
	From, To int64
	// Reason is why it ended, or never began; empty at the end of the run.
	Reason string
}

// Empty reports whether the stretch only says why there is none.
func (s *LogStretch) Empty() bool { return s.From == s.To }

// Covers reports whether the stretch holds all that ended between two times.
func (s *LogStretch) Covers(from, to int64) bool { return s.From <= from && to <= s.To }
