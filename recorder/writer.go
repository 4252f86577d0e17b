package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/history"
)

// A Writer adds one run to a recording. Its methods may be called from several goroutines; calls for
// one session are written in the order in which they were made.
//
// One goroutine encodes and writes. Where the disk does not take what is written it keeps trying (halt.go):
// [Writer.Err] says so until it does.
type Writer struct {
	opts  Options
	run   history.Run
	info  history.Info
	ended time.Time // of a run that is restored: its end as it was
	owned bool      // the run is the Writer's own: it ends when the Writer is closed
	batch *batch
	queue *queue
	halt  halt
	// syncer brings to the disk what the writing goroutine wrote, and writing takes that one's time.
	syncer  *syncer
	writing stopwatch
	// stretches become info.Log at the end: info itself does not change while the writing goroutine runs.
	stretches []history.LogStretch
	// views is held by those who read the database, and by the Writer while it opens it anew.
	views sync.RWMutex

	txns, stmts, bytes, lost atomic.Uint64
	logTxns, logWrites       atomic.Uint64

	done      chan struct{} // closed when the writing goroutine has ended
	err       atomic.Pointer[error]
	closeOnce sync.Once
	closeErr  error
}

// Stats counts what a Writer has done so far.
type Stats struct {
	Txns    uint64        // transactions encoded
	Stmts   uint64        // statements in them
	Bytes   uint64        // of all keys and values, before Badger's own overhead
	Syncs   uint64        // syncs of what was written
	Synced  time.Time     // when the last of them was; zero before the first
	Syncing time.Duration // the time that they took, in sum
	Longest time.Duration // the time that the longest took, or the one under way has taken, if that is more
	// LongestWrite is the same of writing to files, without a sync.
	LongestWrite time.Duration
	Waiting      int           // transactions and sessions that wait to be encoded now
	Queued       int64         // bytes, as estimated, that they take
	Stalls       uint64        // calls that found the queue full
	Stalled      time.Duration // the time that such calls waited, in sum
	Lost         uint64        // transactions that were not recorded, as the disk took nothing
	// LogTxns are transactions of the server's own log that were encoded, and LogWrites the rows that these wrote.
	LogTxns, LogWrites uint64
}

// Analyzed returns how much an analysis of the run has in memory: transactions, and the rows that the log's wrote.
func (s Stats) Analyzed() uint64 { return s.Txns + s.LogTxns + s.LogWrites }

// Run is the run that the Writer drew: the prefix of the transaction ids that the proxy hands out.
func (w *Writer) Run() history.Run { return w.run }

// Session queues a session, to be called when it starts and again when it ended: the later call
// replaces what the earlier one said. Session.Run is ignored. It waits while the queue is full.
func (w *Writer) Session(ctx context.Context, s history.Session) error {
	size := int64(128 + len(s.Client) + len(s.User))
	return w.queue.put(ctx, item{session: &s, size: size})
}

// Txn queues an ended transaction and takes ownership of it: the caller must not change it any more.
// It waits while the queue is full; if ctx ends first the transaction is not recorded. Every
// transaction is given once, with an id of this run.
//
// With durability commit, Txn returns for a committed transaction only when it is on disk, unless it
// is an autocommitted statement that cannot have written anything. If ctx ends during that wait, the
// transaction is recorded all the same. An error that is ErrHalted says that it is not on disk; it may still get there.
//
// With durability relaxed a transaction that is not recorded, since the disk takes nothing, is no error: it is part of
// a [history.Gap].
func (w *Writer) Txn(ctx context.Context, t *history.Txn) error {
	if t.ID.Run() != w.run || t.ID.Seq() == 0 {
		return fmt.Errorf("record transaction %s: it is not of run %s", t.ID, w.run)
	}
	// Once queued, the transaction is the writing goroutine's.
	wait := w.opts.Durability == Commit && t.Status == history.Committed && !harmless(t)
	if err := w.queue.put(ctx, item{txn: t, size: txnSize(t)}); err != nil {
		return err
	}
	if wait {
		return w.Flush(ctx)
	}
	return nil
}

// harmless reports whether a transaction is an autocommitted statement that only reads or sets variables. SELECT and
// SET may call a function that writes, unless all that they did was observed.
func harmless(t *history.Txn) bool {
	if !t.Implicit {
		return false
	}
	for i := range t.Stmts {
		switch s := &t.Stmts[i]; s.Kind {
		case history.Select, history.Set:
			if s.Observation != history.Exact && s.Observation != history.Nothing {
				return false
			}
		case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.Release, history.DDL, history.Lock,
			history.NamedLock:
		default:
			return false
		}
	}
	return true
}

// Flush waits until everything queued before it is on disk. Calls at the same time share one sync.
func (w *Writer) Flush(ctx context.Context) error {
	flushed := make(chan error, 1)
	if err := w.queue.put(ctx, item{flushed: flushed}); err != nil {
		return err
	}
	select {
	case err := <-flushed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err returns why transactions that begin now are not recorded; nil as long as they are. It is ErrHalted.
func (w *Writer) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats returns the Writer's counters.
func (w *Writer) Stats() Stats {
	s := Stats{Txns: w.txns.Load(), Stmts: w.stmts.Load(), Bytes: w.bytes.Load(), Syncs: w.syncer.syncs.Load(),
		Lost: w.lost.Load(), LogTxns: w.logTxns.Load(), LogWrites: w.logWrites.Load()}
	s.Syncing, s.Longest = time.Duration(w.syncer.watch.sum.Load()), w.syncer.watch.longestYet()
	s.LongestWrite = w.writing.longestYet()
	if at := w.syncer.last.Load(); at != 0 {
		s.Synced = time.Unix(0, at)
	}
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	s.Waiting = len(w.queue.items)
	s.Queued, s.Stalls, s.Stalled = w.queue.bytes, w.queue.stalls, w.queue.stalled
	return s
}

// Rewritten gives [history.Info].Rewritten, which only the run's end can tell. It is called before Close.
func (w *Writer) Rewritten(tables []string) { w.info.Rewritten = tables }

// NothingPutBack says that nobody put rows back ([history.Info].PutBack), which only the run's end can tell. It is
// called before Close.
func (w *Writer) NothingPutBack() { w.info.PutBack = false }

// Untested sets [history.Info].Untested and BeyondBound, which are known when the run ends. Call it before Close.
func (w *Writer) Untested(conditions, beyond int) {
	w.info.Untested, w.info.BeyondBound = uint64(conditions), uint64(beyond)
}

// Close writes what is queued, marks the run's clean end and closes the recording. Calls that come
// after it give ErrClosed. Where the disk takes nothing it returns why; the run then
// has no clean end. Further calls return the same.
func (w *Writer) Close() error {
	w.closeOnce.Do(func() {
		w.queue.stop(ErrClosed)
		<-w.done
		w.closeErr = w.end()
		w.closeErr = errors.Join(w.closeErr, w.closeFiles())
		if w.closeErr != nil {
			w.info.Ended = time.Time{}
		}
	})
	return w.closeErr
}

// end writes what is left, and the run's end.
func (w *Writer) end() error {
	if w.halt.broken {
		return w.Err()
	}
	w.halt.note(w.batch, w.Err())
	w.info.Gaps, w.info.Log = w.halt.gaps, w.stretches
	w.info.Ended = w.ended
	if w.owned {
		w.info.Ended = time.Now()
	}
	if err := w.batch.info(&w.info); err != nil {
		return err
	}
	if err := w.batch.commit(w.opts.lastFree()); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	return w.syncer.mark.file.Sync()
}
