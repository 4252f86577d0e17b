// Package wal decodes PostgreSQL's write-ahead log, versions 12 to 18, as far as it tells which rows were written by
// whom: the stream of bytes that START_REPLICATION PHYSICAL gives becomes [Event]s. It has neither socket nor clock.
//
// The formats are those of the server's sources: src/include/access/xlog_internal.h (pages), xlogrecord.h (records),
// heapam_xlog.h (rows) and xact.h (ends of transactions). Every page's header and every used record's checksum is
// compared. What is not as the version has it is an error, and the Decoder of no more use: there is no guessing.
//
// pages.go takes the stream apart into records, records.go a record into its header, blocks and data, heap.go and
// xact.go say what those of rows and of transactions mean.
package wal

import "fmt"

// The kinds of events.
const (
	// Insert: a version was written at New.
	Insert Kind = iota
	// Update: the version at Old was replaced by that at New.
	Update
	// Delete: the version at Old was deleted.
	Delete
	// Retract: the version that the transaction itself inserted at Old was never there (INSERT ... ON CONFLICT that met
	// another one).
	Retract
	// Commit and Abort: transaction XID ended with its subtransactions Subs. A subtransaction that is rolled back has
	// an Abort of its own.
	Commit
	Abort
)

// A Kind says what an [Event] is.
type Kind uint8

// A File names where a table's rows are: of the server's tablespaces, databases and files (relfilenode).
type File struct {
	Space, Database, Node uint32
}

// An Event is what a record says of a row or of a transaction.
type Event struct {
	Kind Kind
	// XID is the (sub)transaction that wrote, or the transaction that ended.
	XID  uint32
	File File
	// Old and New are places, as [github.com/isotap/isotap/history.TupleID] has them.
	Old, New uint64
	// End is the position right after the record.
	End uint64
	// Subs are, of a Commit, the subtransactions that stayed.
	Subs []uint32
	// Time is when a transaction ended by the server's clock: microseconds since 2000-01-01 UTC.
	Time int64
}

// A format is what versions do not have in common.
type format struct {
	magic uint16
	// compressed are the flags of a page image that say that it is compressed.
	compressed byte
	// topXID: records may name the transaction above theirs.
	topXID bool
	// droppedStats is the size of what a transaction's end says of each statistics object that goes; 0: nothing.
	droppedStats int
}

var formats = map[int]format{
	12: {magic: 0xD101, compressed: 0x02},
	13: {magic: 0xD106, compressed: 0x02},
	14: {magic: 0xD10D, compressed: 0x02, topXID: true},
	15: {magic: 0xD110, compressed: 0x1c, topXID: true, droppedStats: 12},
	16: {magic: 0xD113, compressed: 0x1c, topXID: true, droppedStats: 12},
	17: {magic: 0xD116, compressed: 0x1c, topXID: true, droppedStats: 12},
	18: {magic: 0xD118, compressed: 0x1c, topXID: true, droppedStats: 16},
}

// Known reports whether the log of a major version of PostgreSQL is one that the package knows.
func Known(major int) bool {
	_, ok := formats[major]
	return ok
}

// PageBytes is the size of a page of the log; a server that was built with another one is not for this package.
const PageBytes = 8192

// A FormatError says that the log is not as it must be.
type FormatError struct {
	At   uint64 // the position in the log
	What string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("the write-ahead log at %X/%X is not as isotap knows it: %s", e.At>>32, uint32(e.At), e.What)
}
