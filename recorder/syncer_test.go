package recorder

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// slowDisk gives a Writer a disk whose syncs of write-ahead logs are what sync makes of them.
func slowDisk(t *testing.T, w *Writer, sync func(*os.File) error) {
	t.Helper()
	flush(t, w) // the syncer sleeps, and sees the change when it is woken
	w.syncer.mu.Lock()
	w.syncer.fsync = sync
	w.syncer.mu.Unlock()
}

// TestRecordingIsWrittenWhileASyncHangs kills a Writer, by copying its files, whose disk has stood still all the time.
func TestRecordingIsWrittenWhileASyncHangs(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{SyncEvery: 10 * time.Millisecond})
	hangs := make(chan struct{})
	slowDisk(t, w, func(f *os.File) error { <-hangs; return f.Sync() })
	const n = 50
	for seq := range uint32(n) {
		record(t, w, plainTxn(w.Run(), 1, seq+1))
		time.Sleep(time.Millisecond)
	}
	eventually(t, "what is acknowledged is in the files", func() bool {
		copied := t.TempDir()
		copyDir(t, dir, copied)
		_, txns := readAll(t, copied)
		return len(txns) == n
	})
	flushed := make(chan error, 1)
	go func() { flushed <- w.Flush(t.Context()) }()
	select {
	case err := <-flushed:
		t.Errorf("Flush returned %v while nothing was synced", err)
	case <-time.After(100 * time.Millisecond):
	}
	if s := w.Stats(); s.Longest < 100*time.Millisecond || s.LongestWrite > s.Longest {
		t.Errorf("the longest sync took %v, the longest write %v", s.Longest, s.LongestWrite)
	}
	close(hangs)
	if err := <-flushed; err != nil {
		t.Error(err)
	}
	closed(t, w)
}

// TestUnsyncedIsBounded has a disk that stands still keep those who record waiting at last.
func TestUnsyncedIsBounded(t *testing.T) {
	w := create(t, t.TempDir(), Options{SyncEvery: time.Millisecond, QueueBytes: 1 << 20})
	hangs := make(chan struct{})
	slowDisk(t, w, func(f *os.File) error { <-hangs; return f.Sync() })
	recorded := make(chan int, 1)
	go func() {
		n := 0
		for ; n*100_000 < 2*maxUnsynced; n++ {
			txn := plainTxn(w.Run(), 1, uint32(n+1))
			txn.Stmts[0].Args = append(txn.Stmts[0].Args, noise(100_000))
			if w.Txn(t.Context(), txn) != nil {
				break
			}
		}
		recorded <- n
	}()
	eventually(t, "the queue fills", func() bool { return w.Stats().Stalls > 0 })
	select {
	case n := <-recorded:
		t.Errorf("%d transactions of 100 kB were taken in while nothing was synced", n)
	case <-time.After(200 * time.Millisecond):
	}
	close(hangs)
	<-recorded
	closed(t, w)
}

// TestWhatFailedToSyncIsWrittenAgain has the disk refuse syncs for a while: nobody is told that something is safe which
// may not be, and all is there in the end.
func TestWhatFailedToSyncIsWrittenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{Durability: Commit})
	record(t, w, plainTxn(w.Run(), 1, 1))
	var fails atomic.Bool
	fails.Store(true)
	slowDisk(t, w, func(f *os.File) error {
		if fails.Load() {
			return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO}
		}
		return f.Sync()
	})
	for seq := range uint32(3) {
		if err := w.Txn(t.Context(), plainTxn(w.Run(), 1, seq+2)); !errors.Is(err, ErrHalted) ||
			seq == 0 && !errors.Is(err, syscall.EIO) {
			t.Errorf("transaction %d on a disk that fails gave %v", seq+2, err)
		}
	}
	before := w.syncer.syncs.Load()
	fails.Store(false)
	eventually(t, "the disk is noticed", func() bool { return w.Err() == nil })
	if w.syncer.syncs.Load() == before {
		t.Error("recording goes on and nothing was synced")
	}
	record(t, w, plainTxn(w.Run(), 1, 5))
	closed(t, w)
	infos, txns := readAll(t, dir)
	if len(txns) != 5 || !infos[0].Whole() {
		t.Errorf("%d transactions of 5 are recorded; %+v", len(txns), infos[0])
	}
}

// TestWhatIsSyncedWhileAWriteFailsIsCountedOnce has a write fail beside a sync that then ends well.
func TestWhatIsSyncedWhileAWriteFailsIsCountedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{SyncEvery: 5 * time.Millisecond})
	db := w.batch.db
	var hang atomic.Bool
	hang.Store(true)
	hangs, began := make(chan struct{}), make(chan struct{}, 1)
	slowDisk(t, w, func(f *os.File) error {
		if hang.Load() {
			signal(began)
			<-hangs
		}
		return f.Sync()
	})
	record(t, w, plainTxn(w.Run(), 1, 1))
	<-began
	if err := db.Close(); err != nil { // Badger takes nothing any more
		t.Fatal(err)
	}
	record(t, w, plainTxn(w.Run(), 1, 2))
	eventually(t, "the failed write is noticed", func() bool { return w.Err() != nil })
	hang.Store(false)
	close(hangs)
	eventually(t, "recording goes on", func() bool { return w.Err() == nil })
	record(t, w, plainTxn(w.Run(), 1, 3))
	closed(t, w)
	infos, txns := readAll(t, dir)
	if len(txns) != 3 || !infos[0].Whole() {
		t.Errorf("%d transactions of 3 are recorded; %+v", len(txns), infos[0])
	}
}

// TestASyncWaitsForFiles has no more files be open for a while: the disk has not failed.
func TestASyncWaitsForFiles(t *testing.T) {
	w := create(t, filepath.Join(t.TempDir(), "rec"), Options{Durability: Commit})
	defer closed(t, w)
	failed := 0
	slowDisk(t, w, func(f *os.File) error {
		if failed++; failed < 3 {
			return &os.PathError{Op: "open", Path: f.Name(), Err: syscall.EMFILE}
		}
		return f.Sync()
	})
	record(t, w, plainTxn(w.Run(), 1, 1))
	if err := w.Err(); err != nil || failed < 3 {
		t.Errorf("after %d errors: %v", failed, err)
	}
}

// usedBytes returns how far the write-ahead log of a recording is filled.
func usedBytes(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "00001.mem"))
	if err != nil {
		t.Fatal(err)
	}
	return len(bytes.TrimRight(text, "\x00"))
}

// TestRecordingsGoOnBehindACrashOfTheMachine takes a page out of a log, as a machine leaves it that crashes before it
// wrote all that stands behind: pages reach the disk in any order.
func TestRecordingsGoOnBehindACrashOfTheMachine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{SyncEvery: time.Millisecond})
	long := func(seq uint32) {
		txn := plainTxn(w.Run(), 1, seq)
		txn.Stmts[0].Args = append(txn.Stmts[0].Args, noise(20_000))
		record(t, w, txn)
	}
	long(1)
	flush(t, w)
	synced := usedBytes(t, dir)
	hangs := make(chan struct{})
	slowDisk(t, w, func(f *os.File) error { <-hangs; return f.Sync() })
	for seq := range uint32(5) {
		long(seq + 2)
		eventually(t, "it is written", func() bool { return usedBytes(t, dir) > synced+15_000*int(seq+1) })
	}
	crashed := func(page int) string {
		copied := t.TempDir()
		copyDir(t, dir, copied)
		f, err := os.OpenFile(filepath.Join(copied, "00001.mem"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(make([]byte, pageBytes), int64(page*pageBytes)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	behind, before := crashed(synced/pageBytes+7), crashed(1)
	close(hangs)
	closed(t, w)

	again := create(t, behind, Options{})
	record(t, again, plainTxn(again.Run(), 1, 1))
	closed(t, again)
	if _, txns := readAll(t, behind); len(txns) < 2 || len(txns) > 5 {
		t.Errorf("%d transactions are there, want what was synced, what came before the page, and a new one", len(txns))
	}
	if w, err := Create(before, history.Info{}, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a page of what was synced is gone, and adding gave %v", err)
		closed(t, w)
	}
}
