package recorder

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/dbms"
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
	// views is held by those who read the database, and by the Writer while it opens it anew.
	views sync.RWMutex

	txns, stmts, bytes, syncs, lost atomic.Uint64
	lastSync                        atomic.Int64 // Unix time in nanoseconds; 0: none yet
	syncBegan                       atomic.Int64 // likewise, of the one under way; 0: none is
	syncTime, longestSync           atomic.Int64 // nanoseconds

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
	Syncs   uint64        // batches written and synced
	Synced  time.Time     // when the last of them was; zero before the first
	Syncing time.Duration // the time that they took, in sum
	Longest time.Duration // the time that the longest took, or the one under way has taken, if that is more
	Waiting int           // transactions and sessions that wait to be encoded now
	Queued  int64         // bytes, as estimated, that they take
	Stalls  uint64        // calls that found the queue full
	Stalled time.Duration // the time that such calls waited, in sum
	Lost    uint64        // transactions that were not recorded, as the disk took nothing
}

// Create opens the recording in dir for a new run, and makes the recording if dir does not exist or is
// empty. It draws the run's number: info.Run and info.Ended are ignored, and info.Started is now
// unless it is set. The errors are ErrNotRecording, ErrFormat, ErrInUse, ErrCorrupt or the system's.
func Create(dir string, info history.Info, opts Options) (*Writer, error) {
	info.Run, info.Ended, info.Gaps = 0, time.Time{}, nil
	return open(dir, info, opts)
}

// Restore is Create for a run that was recorded before, elsewhere: it keeps info.Run, info.Started, info.Gaps and
// info.Ended, also a zero one. A run that the recording has already is an error.
func Restore(dir string, info history.Info, opts Options) (*Writer, error) {
	if info.Run == 0 || info.Run >= history.MaxRun {
		return nil, fmt.Errorf("restore run %d: there is no such run", info.Run)
	}
	return open(dir, info, opts)
}

// open opens the recording for the run info.Run, or for a new one when that is 0.
func open(dir string, info history.Info, opts Options) (*Writer, error) {
	opts = opts.withDefaults()
	if err := createMarker(dir); err != nil {
		return nil, err
	}
	if err := probeLock(dir, false); err != nil {
		return nil, err
	}
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	if err := checkLogs(dir); err != nil {
		return nil, err
	}
	o := writingOptions(dir, &opts)
	if _, err := checkFiles(dir, o); err != nil {
		return nil, err
	}
	db, err := openBadger(dir, o)
	if err != nil {
		return nil, err
	}
	if err := raiseMarker(dir); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w, err := newWriter(dir, db, info, opts)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	go w.write()
	return w, nil
}

// writingOptions are Badger's. SyncWrites rather than DB.Sync after writing: Sync reaches only the write-ahead log that
// is current, not one that a batch before it has filled and that is not a table yet.
func writingOptions(dir string, opts *Options) badger.Options {
	return badgerOptions(dir, opts.Logger).WithSyncWrites(true)
}

func newWriter(dir string, db *badger.DB, info history.Info, opts Options) (*Writer, error) {
	run, err := runFor(db, info.Run)
	if err != nil {
		return nil, err
	}
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	owned, ended := info.Run == 0, info.Ended
	info.Run, info.Ended = run, time.Time{}
	if info.Started.IsZero() {
		info.Started = time.Now()
	}
	w := &Writer{
		opts: opts,
		run:  run,
		info: info, ended: ended, owned: owned,
		batch: &batch{
			db: db, dir: dir, run: run,
			enc: encoder{priors: newPriorSet()}, packer: packer,
		},
		queue: newQueue(opts.QueueBytes),
		done:  make(chan struct{}),
	}
	for i := range w.info.Gaps {
		w.batch.addGap(&w.info.Gaps[i])
	}
	w.halt.gaps = w.info.Gaps
	if w.batch.mark, err = openMark(dir, uint32(run)); err != nil {
		return nil, err
	}
	err = w.batch.info(&w.info)
	if err == nil {
		err = w.batch.commit(opts.MinFree)
	}
	if err == nil {
		err = makePrivate(dir)
	}
	if err != nil {
		return nil, errors.Join(err, w.batch.mark.file.Close())
	}
	return w, nil
}

// runFor draws a run, or sees to it that the recording does not have the given one yet.
func runFor(db *badger.DB, given history.Run) (history.Run, error) {
	if given == 0 {
		return drawRun(db)
	}
	err := db.View(func(txn *badger.Txn) error {
		_, err := txn.Get(appendRunKey(nil, keyRun, given))
		return err
	})
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return given, nil
	case err == nil:
		err = errors.New("the recording has it already")
	}
	return 0, fmt.Errorf("restore run %s: %w", given, err)
}

// drawRun draws a run that the recording does not have.
func drawRun(db *badger.DB) (run history.Run, err error) {
	err = db.View(func(txn *badger.Txn) error {
		for {
			var b [4]byte
			if _, err := rand.Read(b[:]); err != nil {
				return fmt.Errorf("draw a run: %w", err)
			}
			run = history.Run(binary.BigEndian.Uint32(b[:]) % history.MaxRun)
			if run == 0 {
				continue
			}
			_, err := txn.Get(appendRunKey(nil, keyRun, run))
			if errors.Is(err, badger.ErrKeyNotFound) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("draw a run: %w", err)
			}
		}
	})
	return run, err
}

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

// harmless reports whether a transaction is an autocommitted statement that only reads.
func harmless(t *history.Txn) bool {
	if !t.Implicit {
		return false
	}
	for i := range t.Stmts {
		switch t.Stmts[i].Kind {
		case history.Select, history.Set, history.Begin, history.Commit, history.Rollback, history.Savepoint:
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
	s := Stats{Txns: w.txns.Load(), Stmts: w.stmts.Load(), Bytes: w.bytes.Load(), Syncs: w.syncs.Load(),
		Lost: w.lost.Load()}
	s.Syncing, s.Longest = time.Duration(w.syncTime.Load()), time.Duration(w.longestSync.Load())
	if began := w.syncBegan.Load(); began != 0 {
		s.Longest = max(s.Longest, time.Since(time.Unix(0, began)))
	}
	if at := w.lastSync.Load(); at != 0 {
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
	w.info.Gaps = w.halt.gaps
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
	return w.batch.mark.file.Sync()
}

// write is the writing goroutine. It ends when the queue is stopped.
func (w *Writer) write() {
	defer close(w.done)
	linger := time.NewTimer(w.opts.SyncEvery)
	linger.Stop()
	defer linger.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var items []item
	var waiting []chan<- error
	var lingers time.Time // the age of the batch that linger is set for
	for {
		due := false
		select {
		case <-w.queue.ready:
		case <-linger.C:
			due = true
		case <-look.C:
			w.lookAtDisk()
		}
		var stopped bool
		items, stopped = w.queue.take(items)
		for i := range items {
			if items[i].flushed != nil {
				waiting = append(waiting, items[i].flushed)
			}
		}
		err := w.add(items)
		if due || stopped || len(waiting) > 0 {
			err = w.commit()
			linger.Stop()
		} else if !w.batch.empty() && !w.batch.since.Equal(lingers) {
			// From when it was queued: it may have waited for the sync of an earlier batch.
			lingers = w.batch.since
			linger.Reset(w.opts.SyncEvery - time.Since(lingers))
		}
		waiting = answer(waiting, err)
		if stopped {
			return
		}
	}
}

func answer(waiting []chan<- error, err error) []chan<- error {
	for _, c := range waiting {
		c <- err
	}
	clear(waiting)
	return waiting[:0]
}

// add encodes items into the batch, writing it whenever it is full, and lets go of them. The error is that of the last
// writing: what could not be written stays in the batch.
func (w *Writer) add(items []item) (err error) {
	var size int64
	for i := range items {
		w.addOne(&items[i])
		if w.batch.full() {
			err = w.commit()
		}
		size += items[i].size
		items[i] = item{}
		// Not after each: every release wakes all who wait.
		if size > w.opts.QueueBytes/8 {
			w.queue.release(size)
			size = 0
		}
	}
	if size > 0 {
		w.queue.release(size)
	}
	return err
}

func (w *Writer) addOne(it *item) {
	if w.halt.err != nil && w.leave(it) {
		return
	}
	if w.batch.empty() {
		w.batch.since = it.queued
	}
	switch {
	case it.txn != nil:
		w.batch.txn(it.txn)
		w.txns.Add(1)
		w.stmts.Add(uint64(len(it.txn.Stmts)))
	case it.session != nil:
		w.batch.session(it.session)
	case it.matches != nil:
		w.batch.addMatches(it.matches)
	case it.definition != nil:
		w.batch.addDefinition(it.definition)
	}
	w.bytes.Store(w.batch.written)
}

// commit writes the batch, unless that failed and the disk has not been seen to be better since.
func (w *Writer) commit() error {
	if w.halt.err != nil {
		return w.halt.err
	}
	if w.batch.empty() {
		return nil
	}
	began := time.Now()
	w.syncBegan.Store(began.UnixNano())
	err := w.batch.commit(w.opts.commitFree())
	took := time.Since(began)
	w.longestSync.Store(max(w.longestSync.Load(), int64(took)))
	w.syncBegan.Store(0)
	if err != nil {
		return w.stop(err)
	}
	w.syncs.Add(1)
	w.syncTime.Add(int64(took))
	w.lastSync.Store(began.Add(took).UnixNano())
	return nil
}

// runInfo is history.Info as the recording holds it.
type runInfo struct {
	Started           time.Time   `json:"started"`
	Ended             *time.Time  `json:"ended,omitempty"`
	Isotap            string      `json:"isotap"`
	Mode              string      `json:"mode"`
	Engine            dbms.Engine `json:"engine"`
	Version           string      `json:"version"`
	SnapshotIsolation bool        `json:"snapshot_isolation"`
	System            uint64      `json:"system,omitempty"`
	Horizon           uint64      `json:"horizon,omitempty"`
	RecentFrom        uint64      `json:"recent_from,omitempty"`
	RecentTo          uint64      `json:"recent_to,omitempty"`
	Running           []uint64    `json:"running,omitempty"`
	Columns           bool        `json:"columns,omitempty"`
	Rewritten         []string    `json:"rewritten,omitempty"`
	Damaged           bool        `json:"damaged,omitempty"`    // when it was restored
	Unreadable        uint64      `json:"unreadable,omitempty"` // likewise
}

func encodeInfo(info *history.Info) ([]byte, error) {
	r := runInfo{
		Started: info.Started, Isotap: info.Isotap, Mode: info.Mode,
		Engine: info.Server.Engine, Version: info.Server.Version, SnapshotIsolation: info.Server.SnapshotIsolation,
		System: info.Server.System, Horizon: info.Horizon, RecentFrom: info.Recent.From, RecentTo: info.Recent.To,
		Running: info.Recent.Running, Columns: info.Columns, Rewritten: info.Rewritten,
		Damaged: info.Damaged, Unreadable: info.Unreadable,
	}
	if !info.Ended.IsZero() {
		r.Ended = &info.Ended
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("describe run: %w", err)
	}
	return b, nil
}

func decodeInfo(run history.Run, b []byte) (history.Info, error) {
	var r runInfo
	if err := json.Unmarshal(b, &r); err != nil {
		return history.Info{}, fmt.Errorf("description of run %s: %w", run, err)
	}
	info := history.Info{
		Run: run, Started: r.Started, Isotap: r.Isotap, Mode: r.Mode, Horizon: r.Horizon,
		Recent: history.Recent{From: r.RecentFrom, To: r.RecentTo, Running: r.Running}, Columns: r.Columns,
		Rewritten: r.Rewritten,
		Damaged:   r.Damaged, Unreadable: r.Unreadable,
		Server: history.Server{Engine: r.Engine, Version: r.Version, SnapshotIsolation: r.SnapshotIsolation,
			System: r.System},
	}
	if r.Ended != nil {
		info.Ended = *r.Ended
	}
	return info, nil
}
