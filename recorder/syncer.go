package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A syncer brings to the disk what the writing goroutine gave to Badger, in a goroutine of its own: a busy disk takes
// hundreds of milliseconds for a sync, in which a write to Badger's mapped write-ahead log takes some ten. So a process
// that is killed loses only what was not written, however long a sync takes.
//
// Badger's SyncWrites would have all writes wait for the sync under way. Its DB.Sync reaches only the write-ahead log
// that is current, not one that a batch before has filled and that is not a table yet.
//
// After a sync has failed nobody knows what the disk has (the system may have dropped it, and call the next sync a
// success): all that is asked for fails, until resume is called.
type syncer struct {
	dir   string
	mark  *mark
	fsync func(*os.File) error // of a write-ahead log: [os.File.Sync], but in tests
	watch stopwatch
	syncs atomic.Uint64
	last  atomic.Int64  // Unix time in nanoseconds of the end of the last sync; 0: none yet
	wake  chan struct{} // of capacity 1: there is something to do
	news  chan struct{} // of capacity 1: a sync has ended, for the writing goroutine
	ended chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	written position // what is to be synced
	synced  position
	waiting []chan<- error // for written to be synced
	err     error          // why nothing is synced any more
	closed  bool

	// busy is held while something is synced.
	busy sync.Mutex
	// The goroutine's own.
	logs      []string  // the write-ahead logs
	dirSynced time.Time // the directory's modification time when it was last synced
}

// A position is how far a Writer came: the batches, which it numbers from 1, and the counts that are true with them.
type position struct {
	batch uint64
	total totals
}

func startSyncer(dir string, mark *mark) *syncer {
	s := &syncer{dir: dir, mark: mark, fsync: (*os.File).Sync, wake: make(chan struct{}, 1), news: make(chan struct{}, 1),
		ended: make(chan struct{})}
	go s.run()
	return s
}

// run is the goroutine. It ends when the syncer is closed and all that was asked for before is synced, or failed.
func (s *syncer) run() {
	defer close(s.ended)
	for range s.wake {
		s.mu.Lock()
		to, waiting, err := s.written, s.waiting, s.err
		from, closed := s.synced, s.closed
		s.waiting = nil
		s.mu.Unlock()
		if err == nil && to.batch > from.batch {
			err = s.syncTo(to)
			signal(s.news)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrHalted, err)
		}
		answer(waiting, err)
		if closed {
			return
		}
	}
}

// syncTo syncs what was written, and notes that.
func (s *syncer) syncTo(to position) error {
	s.busy.Lock()
	defer s.busy.Unlock()
	err := s.sync(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.synced = to
	}
	return err
}

// signal wakes who waits for c, now or next.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// want asks for a sync of what was written, and of who waits for it answers each when it is there or has failed. It
// does not wait itself.
func (s *syncer) want(written position, waiting ...chan<- error) {
	s.mu.Lock()
	s.written = written
	s.waiting = append(s.waiting, waiting...)
	s.mu.Unlock()
	signal(s.wake)
}

// state returns the number of the last batch that is synced, and why no more are.
func (s *syncer) state() (batch uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced.batch, s.err
}

// resume lets syncs begin anew after one or a write has failed, when all that was not synced is to be written again. It
// waits for the sync under way, and returns what is synced.
func (s *syncer) resume() position {
	s.busy.Lock()
	defer s.busy.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.written = nil, s.synced
	return s.synced
}

// close ends the goroutine, when what was asked for is synced. It reports whether it ended in time: a disk that stands
// still may never answer.
func (s *syncer) close(patience time.Duration) bool {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.wake)
	select {
	case <-s.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// sync syncs the files that have what was written, and then marks it.
func (s *syncer) sync(to position) error {
	s.watch.start()
	defer s.watch.stop()
	err := s.syncFiles()
	for began := time.Now(); tooManyFiles(err) && time.Since(began) < filesPatience; err = s.syncFiles() {
		time.Sleep(lookEvery / 10)
	}
	if err == nil {
		err = s.mark.write(to.total)
	}
	if err != nil {
		return fmt.Errorf("sync recording: %w", err)
	}
	s.syncs.Add(1)
	s.last.Store(time.Now().UnixNano())
	return nil
}

// filesPatience is how long a sync waits for files that may be opened: a proxy with as many clients as there may be
// files has some again when one leaves.
const filesPatience = 30 * time.Second

// tooManyFiles reports whether an error is that no more files may be open, which says nothing of the disk.
func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// syncFiles syncs what the recording is made of.
func (s *syncer) syncFiles() error {
	if err := s.lookAtDir(); err != nil {
		return err
	}
	return s.syncLogs()
}

// syncLogs syncs the write-ahead logs. One that is gone has become a table, which Badger syncs before it removes the
// log.
func (s *syncer) syncLogs() error {
	for _, path := range s.logs {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(s.fsync(f), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return s.lookAtDir() // a table may have come instead
}

// dirClock is more than the steps in which file systems keep modification times.
const dirClock = 50 * time.Millisecond

// lookAtDir finds the write-ahead logs, and syncs the directory, if a file came or went since: Badger syncs its files,
// but not the entries by which the directory knows them.
func (s *syncer) lookAtDir() error {
	now := time.Now()
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if info.ModTime().Equal(s.dirSynced) {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	s.logs = s.logs[:0]
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), logSuffix) {
			s.logs = append(s.logs, filepath.Join(s.dir, e.Name()))
		}
	}
	if err := errors.Join(makePrivate(s.dir), syncDir(s.dir)); err != nil {
		return err
	}
	// A file that comes in the same step of the clock would leave the time as it is.
	if now.Sub(info.ModTime()) > dirClock {
		s.dirSynced = info.ModTime()
	}
	return nil
}

// A stopwatch takes the time of something that is done again and again. One goroutine starts and stops it; others may
// read it meanwhile.
type stopwatch struct {
	began        atomic.Int64 // Unix time in nanoseconds; 0: it does not run
	sum, longest atomic.Int64 // nanoseconds
}

func (w *stopwatch) start() { w.began.Store(time.Now().UnixNano()) }

func (w *stopwatch) stop() {
	took := time.Now().UnixNano() - w.began.Swap(0)
	w.sum.Add(took)
	w.longest.Store(max(w.longest.Load(), took))
}

// longestYet is the longest time that it took, or the one under way if that is longer.
func (w *stopwatch) longestYet() time.Duration {
	longest := time.Duration(w.longest.Load())
	if began := w.began.Load(); began != 0 {
		longest = max(longest, time.Since(time.Unix(0, began)))
	}
	return longest
}
