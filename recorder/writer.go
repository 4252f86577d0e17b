package recorder

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
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
	// stretches become info.Log at the end: info itself does not change while the writing goroutine runs.
	stretches []history.LogStretch
	// views is held by those who read the database, and by the Writer while it opens it anew.
	views sync.RWMutex

	txns, stmts, bytes, syncs, lost atomic.Uint64
	logTxns, logWrites              atomic.Uint64
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
	// LogTxns are transactions of the server's own log that were encoded, and LogWrites the rows that these wrote.
	LogTxns, LogWrites uint64
}

// Analyzed returns how much an analysis of the run has in memory: transactions, and the rows that the log's wrote.
func (s Stats) Analyzed() uint64 { return s.Txns + s.LogTxns + s.LogWrites }

// Create opens the recording in dir for a new run, and makes the recording if dir does not exist or is
// empty. It draws the run's number: info.Run and info.Ended are ignored, and info.Started is now
// unless it is set. The errors are ErrNotRecording, ErrFormat, ErrInUse, ErrCorrupt or the system's.
func Create(dir string, info history.Info, opts Options) (*Writer, error) {
	info.Run, info.Ended, info.Gaps, info.Log = 0, time.Time{}, nil, nil
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
	w.halt.gaps, w.stretches = w.info.Gaps, slices.Clone(w.info.Log)
	for i, s := range w.info.Log {
		w.batch.addStretch(&numberedStretch{uint32(i), s})
	}
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
		case history.Begin, history.Commit, history.Rollback, history.Savepoint:
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
		Lost: w.lost.Load(), LogTxns: w.logTxns.Load(), LogWrites: w.logWrites.Load()}
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

// NothingPutBack says that nobody put rows back ([history.Info].PutBack), which only the run's end can tell. It is
// called before Close.
func (w *Writer) NothingPutBack() { w.info.PutBack = false }

// Untested sets [history.Info].Untested and Beyond, which are known when the run ends. Call it before Close.
func (w *Writer) Untested(conditions, beyond int) {
	w.info.Untested, w.info.Beyond = uint64(conditions), uint64(beyond)
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
	case it.logged != nil:
		w.batch.addLogged(it.logged)
		w.logTxns.Add(1)
		w.logWrites.Add(uint64(len(it.logged.Writes)))
	case it.stretch != nil:
		w.batch.addStretch(it.stretch)
		w.stretches = slices.Grow(w.stretches, 1)[:max(len(w.stretches), int(it.stretch.number)+1)]
		w.stretches[it.stretch.number] = it.stretch.stretch
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
	PutBack           bool        `json:"put_back,omitempty"`
	Untested          uint64      `json:"untested,omitempty"`
	Beyond            uint64      `json:"beyond,omitempty"`
	Damaged           bool        `json:"damaged,omitempty"`    // when it was restored
	Unreadable        uint64      `json:"unreadable,omitempty"` // likewise
}

func encodeInfo(info *history.Info) ([]byte, error) {
	r := runInfo{
		Started: info.Started, Isotap: info.Isotap, Mode: info.Mode,
		Engine: info.Server.Engine, Version: info.Server.Version, SnapshotIsolation: info.Server.SnapshotIsolation,
		System: info.Server.System, Horizon: info.Horizon, RecentFrom: info.Recent.From, RecentTo: info.Recent.To,
		Running: info.Recent.Running, Columns: info.Columns, Rewritten: info.Rewritten,
		PutBack: info.PutBack, Untested: info.Untested, Beyond: info.Beyond, Damaged: info.Damaged, Unreadable: info.Unreadable,
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
		Rewritten: r.Rewritten, PutBack: r.PutBack, Untested: r.Untested, Beyond: r.Beyond,
		Damaged: r.Damaged, Unreadable: r.Unreadable,
		Server: history.Server{Engine: r.Engine, Version: r.Version, SnapshotIsolation: r.SnapshotIsolation,
			System: r.System},
	}
	if r.Ended != nil {
		info.Ended = *r.Ended
	}
	return info, nil
}

// An item waits in the queue to be written: a transaction, a session, what matches a predicate, how a table was
// defined, what the server's log says, or a request to flush.
type item struct {
	txn        *history.Txn
	session    *history.Session
	matches    *history.Matches
	definition *history.Definition
	logged     *history.LoggedTxn
	stretch    *numberedStretch
	flushed    chan<- error // gets one answer once everything before the item is durable
	size       int64
	queued     time.Time // when it was given; put notes it
}

// A queue hands items from many goroutines to one, in order, and bounds the memory that they take.
// Who finds it full waits; nothing is dropped.
type queue struct {
	limit int64
	ready chan struct{} // has a token when items may have become non-empty

	mu      sync.Mutex
	items   []item
	bytes   int64         // of the items, and of those that were taken and not released
	room    chan struct{} // closed and replaced when room is made or the queue stops
	err     error         // not nil once the queue takes no more items
	stalls  uint64
	stalled time.Duration
}

func newQueue(limit int64) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{})}
}

// put adds an item, waiting for room if it must. An item larger than the limit goes in when the queue
// is empty.
func (q *queue) put(ctx context.Context, it item) error {
	var since time.Time
	if it.queued.IsZero() {
		it.queued = time.Now()
	}
	for {
		q.mu.Lock()
		if !since.IsZero() {
			now := time.Now()
			q.stalled += now.Sub(since)
			since = now
		}
		if q.err != nil {
			err := q.err
			q.mu.Unlock()
			return err
		}
		if q.bytes == 0 || q.bytes+it.size <= q.limit {
			q.items = append(q.items, it)
			q.bytes += it.size
			q.mu.Unlock()
			q.wake()
			return nil
		}
		if since.IsZero() {
			q.stalls++
			since = time.Now()
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns all items, reusing spare as the queue's next list. They count as queued until they are
// released. It reports whether the queue was stopped: what it gives then is the last.
func (q *queue) take(spare []item) (items []item, stopped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items = q.items, spare[:0]
	return items, q.err != nil
}

// release makes room for others once items of this size are done with.
func (q *queue) release(size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= size
	close(q.room)
	q.room = make(chan struct{})
}

// stop makes put fail with err from now on. The first call's error stays.
func (q *queue) stop(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	close(q.room)
	q.room = make(chan struct{})
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// txnSize estimates the memory that a transaction takes while it waits.
func txnSize(t *history.Txn) int64 {
	const txnBytes, stmtBytes, accessBytes, tagBytes, tupleIDBytes = 120, 280, 104, 16, 48
	size := int64(txnBytes + stmtBytes*len(t.Stmts))
	for i := range t.Stmts {
		s := &t.Stmts[i]
		size += int64(accessBytes*len(s.Accesses) + tupleIDBytes*len(s.TupleIDs))
		for j := range s.Accesses {
			size += int64(tagBytes * len(s.Accesses[j].Prior))
		}
		for _, a := range s.Args {
			size += int64(len(a)) + 16
		}
	}
	return size
}

const (
	// batchBytes and batchEntries fill a batch. With one more value they stay within 15% of
	// memTableSize, and 13,000 entries, which are Badger's bounds for what it writes at once.
	batchBytes   = 512 << 10
	batchEntries = 8 << 10
)

// A batch collects what goes to disk next. What cannot be written stays in it.
type batch struct {
	db          *badger.DB
	dir         string
	run         history.Run
	mark        *mark
	enc         encoder
	packer      packer
	strings     uint32 // of the dictionary, written or in the batch
	matches     uint32 // likewise
	definitions uint32 // likewise
	gaps        uint32 // likewise
	loggeds     uint32 // likewise
	counted     totals // written

	since   time.Time // when the first that is in it was queued
	entries []entry
	done    int    // how many of them are written
	arena   []byte // the keys and values of entries
	record  []byte // the value being encoded
	packed  []byte // the same, compressed
	written uint64 // bytes of keys and values, since the run began

	dirSynced time.Time // the directory's modification time when it was last synced
}

type entry struct{ key, value []byte }

func (b *batch) empty() bool { return len(b.entries) == b.done }
func (b *batch) full() bool  { return len(b.arena) >= batchBytes || len(b.entries) >= batchEntries }

// put adds an entry. The key is what appendKey appends; the value is copied, and sealed.
func (b *batch) put(appendKey func([]byte) []byte, value []byte) {
	// The arena may move when it grows; entries made before go on in the old one.
	at := len(b.arena)
	b.arena = appendKey(b.arena)
	end := len(b.arena)
	b.arena = appendSeal(append(b.arena, value...), at)
	b.entries = append(b.entries, entry{b.arena[at:end:end], b.arena[end:len(b.arena):len(b.arena)]})
	b.written += uint64(len(b.arena) - at)
}

func (b *batch) info(info *history.Info) error {
	value, err := encodeInfo(info)
	if err != nil {
		return err
	}
	b.put(func(k []byte) []byte { return appendRunKey(k, keyRun, b.run) }, append([]byte{sealedRun}, value...))
	return nil
}

func (b *batch) session(s *history.Session) {
	b.record = b.enc.session(b.record[:0], s)
	b.put(func(k []byte) []byte { return appendSessionKey(k, keySession, b.run, s.ID) }, b.record)
}

// txn adds a transaction, behind the strings and the parts that it needs.
func (b *batch) txn(t *history.Txn) {
	b.record = b.enc.txn(b.record[:0], t)
	b.addStrings()
	if len(b.record) <= chunkBytes {
		b.packed = b.packer.pack(b.packed[:0], b.record)
	} else {
		parts := b.parts(t)
		b.packed = binary.AppendUvarint(append(b.packed[:0], packParts), uint64(parts))
		b.packed = binary.AppendUvarint(b.packed, uint64(len(b.record)))
	}
	b.put(func(k []byte) []byte { return appendTxnKey(k, keyTxn, t.ID, t.Session) }, b.packed)
	if cap(b.record) > batchBytes {
		b.record = nil // one huge transaction must not hold its memory for good
	}
}

func (b *batch) addStrings() {
	for _, s := range b.enc.dict.fresh {
		b.put(func(k []byte) []byte { return appendNumberKey(k, keyString, b.run, b.strings) }, []byte(s))
		b.strings++
	}
	b.enc.dict.fresh = b.enc.dict.fresh[:0]
}

// parts adds the record in parts.
func (b *batch) parts(t *history.Txn) (n int) {
	for rest := b.record; len(rest) > 0; n++ {
		part := rest[:min(len(rest), chunkBytes)]
		rest = rest[len(part):]
		b.packed = b.packer.pack(b.packed[:0], part)
		b.put(func(k []byte) []byte { return appendChunkKey(k, t.ID, t.Session, n) }, b.packed)
	}
	return n
}

// commit writes the batch in order and syncs it, as long as so many bytes stay free on the disk. Each piece of it
// reaches the disk whole or not at all.
func (b *batch) commit(minFree int64) error {
	if err := b.checkSpace(minFree); err != nil {
		return err
	}
	for b.done < len(b.entries) {
		n, size := b.done, 0
		for n < len(b.entries) && n-b.done < batchEntries &&
			(n == b.done || size+len(b.entries[n].value) <= batchBytes+chunkBytes) {
			size += len(b.entries[n].value)
			n++
		}
		if err := b.write(b.entries[b.done:n]); err != nil {
			return err
		}
		b.done = n
	}
	clear(b.entries)
	b.entries, b.arena, b.done = b.entries[:0], b.arena[:0], 0
	if cap(b.arena) > 4*batchBytes {
		b.entries, b.arena = nil, nil // what waited for room on the disk must not hold its memory for good
	}
	return nil
}

// write writes entries with the counts that are true with them.
func (b *batch) write(entries []entry) error {
	total := b.counted
	total.entries += uint64(len(entries))
	for _, e := range entries {
		if e.key[0] == keyTxn {
			total.txns++
		}
	}
	txn := b.db.NewTransaction(true)
	defer txn.Discard()
	key := appendRunKey(nil, keyCount, b.run)
	count := appendTotals(append(make([]byte, 0, 64), key...), total)
	var err error
	for i := 0; i < len(entries) && err == nil; i++ {
		err = txn.Set(entries[i].key, entries[i].value)
	}
	if err == nil {
		err = txn.Set(key, appendSeal(count, 0)[len(key):])
	}
	if err == nil {
		err = txn.Commit()
	}
	if err != nil {
		return fmt.Errorf("write to recording %s: %w", b.dir, err)
	}
	if err := b.syncDir(); err != nil {
		return err
	}
	b.counted = total
	return b.mark.write(total)
}

// dirClock is more than the steps in which file systems keep modification times.
const dirClock = 50 * time.Millisecond

// syncDir syncs the directory if a file came or went since it was last synced: Badger syncs a new
// write-ahead log, but not the entry by which the directory knows it.
func (b *batch) syncDir() error {
	now := time.Now()
	info, err := os.Stat(b.dir)
	if err != nil {
		return fmt.Errorf("write to recording: %w", err)
	}
	if info.ModTime().Equal(b.dirSynced) {
		return nil
	}
	// A file that comes in the same step of the clock would leave the time as it is.
	if now.Sub(info.ModTime()) > dirClock {
		b.dirSynced = info.ModTime()
	}
	return errors.Join(makePrivate(b.dir), syncDir(b.dir))
}

// checkSpace fails where less than so much would stay free on the disk, or the disk takes nothing at all.
func (b *batch) checkSpace(minFree int64) error {
	free, readOnly, err := diskSpace(b.dir)
	if err != nil {
		return fmt.Errorf("write to recording: %w", err)
	}
	if readOnly {
		return fmt.Errorf("write to recording %s: the file system is read-only", b.dir)
	}
	if need := minFree + int64(len(b.arena)); free < need {
		return fmt.Errorf("write to recording %s: %w: %d MiB are free, at least %d must be", b.dir, ErrDiskFull,
			free>>20, need>>20)
	}
	return nil
}
