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
// a zero Ended, so tags past the run's last transaction are unrecorded rather than garbage
// (DESIGN 6.1). How much a crash can lose is stated by [Options.SyncEvery]; [Writer.Flush] makes
// everything before it durable.
//
// Every batch also carries the number of transactions written so far, so a reader notices when the
// recording holds fewer than were written, whether or not the run ended cleanly.
//
// # The files
//
// Writing: writer.go takes events through queue.go, encode.go (with dictionary.go, rowid.go and place.go) makes
// values of them, pack.go compresses these, batch.go puts them to disk under the keys of keys.go. store.go
// opens Badger, after tables.go has seen that its files are whole; disk_unix.go asks for free space. Reading: reader.go streams and lookup.go
// finds single transactions, both through decode.go; snapshot.go lets others read what is being written. matches.go and
// definitions.go do both for what is there beside transactions.
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
	// ErrInUse: another process, or another Writer or Reader of this one, has the recording open.
	ErrInUse = errors.New("recording is in use")
	// ErrCorrupt: files or values of the recording are missing, cut or damaged.
	ErrCorrupt = errors.New("recording is damaged")
	// ErrClosed: the Writer was closed before the call.
	ErrClosed = errors.New("recording is closed")
	// ErrDiskFull: less than Options.MinFree is left where the recording is kept.
	ErrDiskFull = errors.New("disk is full")
)

// Durability says when a transaction is safe from a crash of the machine.
type Durability uint8

const (
	// Relaxed bounds the loss to Options.SyncEvery.
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

// String gives the word that ParseDurability reads.
func (d Durability) String() string {
	if d == Commit {
		return "commit"
	}
	return "relaxed"
}

// The defaults of Options.
const (
	DefaultSyncEvery  = 200 * time.Millisecond
	DefaultQueueBytes = 32 << 20
	DefaultMinFree    = 256 << 20
)

// Options of a Writer. The zero value of a field means its default.
type Options struct {
	Durability Durability
	// SyncEvery is how long a transaction may wait in memory before it is written and synced: the
	// most that a crash loses in durability relaxed, besides the time that the disk takes.
	SyncEvery time.Duration
	// QueueBytes bounds the memory, as estimated, of what waits to be written. Callers of a full
	// queue wait.
	QueueBytes int64
	// MinFree is the space in bytes to leave free on the disk. Recording stops with ErrDiskFull
	// before it is used up: Badger writes through memory maps, and a full disk would kill the
	// process (SIGBUS) rather than give an error.
	MinFree int64
	// Logger receives Badger's messages: its errors as errors, all others at level debug.
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
