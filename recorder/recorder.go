// Package recorder writes what a proxy observed to a recording on disk, and reads it back.
//
// A recording is one directory that holds a Badger database and a marker file. Each life of a proxy
// adds one run to it: a [Writer] draws a fresh [history.Run], takes sessions and ended transactions
// off the client's path through a bounded queue, and writes them in batches. A [Reader] streams the
// transactions in the order of their keys: by run, session and time.
//
// # What survives
//
// One value is one whole transaction, and a batch reaches the disk whole or not at all: after a
// crash or kill -9 a recording opens and holds whole transactions only. What the queue held then is
// missing, and so is every transaction that had not ended. That shows: the run's [history.Info] has
// a zero Ended, so tags past the run's last transaction are unrecorded rather than garbage. How much a crash can lose
// is stated by [Options.SyncEvery]; [Writer.Flush] makes everything before it durable.
//
// Every value has a checksum, and every batch is counted beside the database: a reader gives the transactions that are
// intact and says how many are missing, whatever was damaged. While the disk takes nothing, transactions wait or are
// lost; those make a [history.Gap].
//
// # The files
//
// Writing: create.go opens a recording for a new run and makes its Writer. writer.go is what callers ask of one: what
// they give goes through the queue of queue.go to one goroutine (writing.go), which puts it to disk in the batches of
// batch.go, under the keys of keys.go and counted in marks.go. encode.go (with dictionary.go, rowid.go and
// tupleids.go) makes values, info.go that of the run itself; pack.go compresses them, seal.go gives them checksums.
// halt.go waits for a disk that takes nothing, gap.go notes what is lost for that. store.go opens Badger, after
// tables.go has seen that its files are whole; disk_unix.go asks for free space, private.go keeps others out.
//
// Reading: files.go and tablefile.go read Badger's files without it and without changing them; reader.go streams and
// lookup.go finds single transactions, both through decode.go, into the memory of arena.go and with the row ids of
// intern.go. part.go reads some of a run, check.go says what is damaged, snapshot.go lets the process that writes read
// through Badger.
//
// Both: matches.go, definitions.go and serverlog.go have what is there beside transactions.
//
// # Format
//
// FORMAT.md describes the keys and the encoding of the values; the marker file names the version.
// Statement shapes, table names and other repeated strings go to a dictionary of the run; row ids,
// tags and times are stored as differences; a wList is stored once for each version of a row, as
// [history.Access.Prior] says.
package recorder

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// Errors that callers tell apart with [errors.Is]. The error's text names the directory and the
// cause.
var (
	// ErrNotRecording: the directory does not exist or holds something else.
	ErrNotRecording = errors.New("not a recording")
	// ErrFormat: the recording has a format version that this isotap does not read.
	ErrFormat = errors.New("unsupported recording format")
	// ErrInUse: another process, or another Writer of this one, writes the recording.
	ErrInUse = errors.New("recording is in use")
	// ErrCorrupt: files or values of the recording are missing, cut or damaged.
	ErrCorrupt = errors.New("recording is damaged")
	// ErrClosed: the Writer was closed before the call.
	ErrClosed = errors.New("recording is closed")
	// ErrDiskFull: less than Options.MinFree is left where the recording is kept.
	ErrDiskFull error = diskFull{}
	// ErrHalted: the disk does not take what is written. The Writer goes on when it does.
	ErrHalted = errors.New("not recorded")
)

// diskFull is the error of a disk on which too little is left. It is [syscall.ENOSPC] as well, for those who do not
// know this package.
type diskFull struct{}

func (diskFull) Error() string        { return "disk is full" }
func (diskFull) Is(target error) bool { return target == syscall.ENOSPC }

// Durability says when a transaction is safe from a crash of the machine.
type Durability uint8

const (
	// Relaxed: a process that is killed loses what was queued in the last Options.SyncEvery, a machine that crashes
	// what two syncs took as well.
	Relaxed Durability = iota
	// Commit: [Writer.Txn] returns for a committed transaction only once it is on disk, so that the
	// proxy may acknowledge the COMMIT.
	Commit
)

// ParseDurability reads the words of the configuration: "relaxed" or "commit".
func ParseDurability(s string) (Durability, error) {
	switch s {
	case "relaxed":
		return Relaxed, nil
	case "commit":
		return Commit, nil
	}
	return Relaxed, fmt.Errorf("durability %q is neither relaxed nor commit", s)
}

// String returns the word that ParseDurability reads.
func (d Durability) String() string {
	if d == Commit {
		return "commit"
	}
	return "relaxed"
}

// The defaults of Options.
const (
	DefaultSyncEvery  = 100 * time.Millisecond
	DefaultQueueBytes = 32 << 20
	DefaultMinFree    = 256 << 20
)

// RelaxedLoss is the age of the oldest acknowledged transaction that a killed proxy may lose with durability relaxed.
// SyncEvery is part of it; the rest is for the proxy, which learns what a statement wrote when its client goes on or
// falls quiet, by a query. A crash of the machine may lose what two syncs of the disk took besides ([Stats].Longest).
const RelaxedLoss = 200 * time.Millisecond

// Options of a Writer. The zero value of a field means its default.
type Options struct {
	Durability Durability
	// SyncEvery is how long a transaction may wait in queue and memory before it is written, and its sync begins: the
	// most that a killed process loses in durability relaxed.
	SyncEvery time.Duration
	// QueueBytes bounds the memory, as estimated, of what waits to be written. Callers of a full
	// queue wait.
	QueueBytes int64
	// MinFree is the space in bytes to leave free on the disk. Recording halts with ErrDiskFull
	// before it is used up: Badger writes through memory maps, and a full disk would kill the
	// process (SIGBUS) rather than give an error.
	MinFree int64
	// WhenFull says what becomes of transactions then, and while the disk takes nothing for other reasons.
	WhenFull WhenFull
	// Logger receives that recording stops and goes on, and Badger's messages: its errors as errors, all others at
	// level debug.
	Logger *zap.Logger
}

func (o Options) withDefaults() Options {
	if o.SyncEvery <= 0 {
		o.SyncEvery = DefaultSyncEvery
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.MinFree <= 0 {
		o.MinFree = DefaultMinFree
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}
