//go:build linux

package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/isotap/isotap/history"
)

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}

// smallDisk mounts a file system of 120 MiB and fills it on demand, up to what is left.
type smallDisk struct {
	t      *testing.T
	dir    string
	fill   string
	filled []string
}

func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	mount(t, "-t", "tmpfs", "-o", "size=120m", "tmpfs", dir)
	return &smallDisk{t, filepath.Join(dir, "rec"), filepath.Join(dir, "fill"), nil}
}

// leave fills the disk so that so many MiB are left.
func (d *smallDisk) leave(mib int64) {
	d.t.Helper()
	free, _, err := diskSpace(filepath.Dir(d.fill))
	if err != nil {
		d.t.Fatal(err)
	}
	d.filled = append(d.filled, fmt.Sprint(d.fill, len(d.filled)))
	if err := os.WriteFile(d.filled[len(d.filled)-1], make([]byte, max(0, free-mib<<20)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *smallDisk) clear() {
	d.t.Helper()
	for _, name := range d.filled {
		if err := os.Remove(name); err != nil {
			d.t.Fatal(err)
		}
	}
}

// minFree is what the tests' writers leave free.
const minFree = 40 << 20

func TestRecordingHaltsAndGoesOnWithTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, durability := range []Durability{Relaxed, Commit} {
		for _, whenFull := range []WhenFull{Refuse, Pass} {
			t.Run(durability.String()+" "+whenFull.String(), func(t *testing.T) {
				disk := newSmallDisk(t)
				core, logs := observer.New(zap.WarnLevel)
				w := create(t, disk.dir, Options{Durability: durability, WhenFull: whenFull,
					MinFree: minFree, Logger: zap.New(core)})
				record(t, w, plainTxn(w.Run(), 1, 1))
				flush(t, w)    // else it may be what the disk does not take first
				disk.leave(30) // less than minFree, more than half of it
				eventually(t, "a disk with little room is noticed",
					func() bool { return errors.Is(w.Err(), ErrDiskFull) && errors.Is(w.Err(), ErrHalted) })
				// What is under way is recorded still if it may not pass.
				err := w.Txn(t.Context(), plainTxn(w.Run(), 1, 2))
				if (err != nil) != (durability == Commit && whenFull == Pass) {
					t.Errorf("a transaction that was under way: %v", err)
				}
				if err := w.Flush(t.Context()); (err != nil) != (whenFull == Pass) {
					t.Errorf("Flush with room for what is under way gave %v", err)
				}
				disk.leave(5)
				for seq := uint32(3); seq < 6; seq++ {
					if err := w.Txn(t.Context(), plainTxn(w.Run(), 1, seq)); durability == Commit &&
						!errors.Is(err, ErrHalted) || durability == Relaxed && err != nil {
						t.Errorf("a transaction on a full disk gave %v", err)
					}
				}
				if err := w.Flush(t.Context()); !errors.Is(err, ErrHalted) {
					t.Errorf("Flush on a full disk gave %v", err)
				}
				if err := w.Session(t.Context(), history.Session{ID: 1, Client: "who came meanwhile"}); err != nil {
					t.Error(err)
				}
				disk.clear()
				eventually(t, "room is noticed", func() bool { return w.Err() == nil })
				record(t, w, plainTxn(w.Run(), 1, 6))
				closed(t, w)

				infos, txns := readAll(t, disk.dir)
				want := []uint32{1, 2, 3, 4, 5, 6}
				if whenFull == Pass {
					// The first one that the disk did not take waited in memory for it.
					want = want[:2:2]
					want = append(want, 6)
				}
				var got []uint32
				for _, txn := range txns {
					got = append(got, txn.ID.Seq())
				}
				lost := uint64(6 - len(want))
				if len(got) != len(want) || got[len(got)-1] != 6 || w.Stats().Lost != lost {
					t.Errorf("transactions %v are recorded, want %v; %d are counted as lost", got, want, w.Stats().Lost)
				}
				if gaps := infos[0].Gaps; whenFull == Refuse && len(gaps) > 0 || whenFull == Pass &&
					(len(gaps) != 1 || gaps[0].Txns != lost || gaps[0].From != 3000 || gaps[0].To < 5000 ||
						gaps[0].Reason != "disk is full") {
					t.Errorf("gaps are %+v, want one of %d transactions", gaps, lost)
				}
				if infos[0].Ended.IsZero() || infos[0].Whole() != (lost == 0) {
					t.Errorf("the run is %+v", infos[0])
				}
				if n := logs.FilterMessageSnippet("recording stops").Len(); n != 1 || logs.Len() > 2 {
					t.Errorf("the log tells %v", logs.All())
				}
			})
		}
	}
}

// TestDirectoryThatGoesAwayComesBack takes the whole directory away, as a network file system may.
func TestDirectoryThatGoesAwayComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{Durability: Commit})
	record(t, w, plainTxn(w.Run(), 1, 1))
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := w.Txn(t.Context(), plainTxn(w.Run(), 1, 2)); !errors.Is(err, ErrHalted) || errors.Is(err, ErrDiskFull) {
		t.Errorf("a transaction without the directory gave %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the directory is noticed", func() bool { return w.Err() == nil })
	record(t, w, plainTxn(w.Run(), 1, 3))
	closed(t, w)
	if infos, txns := readAll(t, dir); len(txns) != 3 || !infos[0].Whole() {
		t.Errorf("%d transactions are recorded of 3, in %+v", len(txns), infos)
	}
}

// TestDatabaseThatFailsIsOpenedAnew has the system refuse Badger's next files, as a quota or a failing disk does:
// Badger cannot go on after that.
func TestDatabaseThatFailsIsOpenedAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{Durability: Commit})
	limit := func(bytes uint64) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: ^uint64(0)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { limit(^uint64(0)) })
	seq, acknowledged := uint32(0), 0
	next := func() error {
		seq++
		txn := plainTxn(w.Run(), 1, seq)
		txn.Stmts[0].Args = append(txn.Stmts[0].Args, noise(100_000))
		err := w.Txn(t.Context(), txn)
		if err == nil {
			acknowledged++
		}
		return err
	}
	for range 3 {
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}
	limit(1 << 20) // a write-ahead log has 16 MiB
	var err error
	for err == nil && seq < 400 {
		err = next()
	}
	if !errors.Is(err, ErrHalted) {
		t.Fatalf("after %d transactions: %v", seq, err)
	}
	t.Logf("transaction %d: %v", seq, err)
	for range 3 {
		if err := next(); !errors.Is(err, ErrHalted) {
			t.Errorf("a transaction meanwhile gave %v", err)
		}
	}
	limit(^uint64(0))
	eventually(t, "the disk is noticed", func() bool { return w.Err() == nil })
	for range 200 {
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, w)
	infos, txns := readAll(t, dir)
	if len(txns) != int(seq) || !infos[0].Whole() {
		t.Errorf("%d transactions of %d are recorded, %d were acknowledged; %+v", len(txns),
			seq, acknowledged, infos[0])
	}
}

func TestDiskThatStaysFullEndsWithoutAnEnd(t *testing.T) {
	disk := newSmallDisk(t)
	w := create(t, disk.dir, Options{WhenFull: Pass, MinFree: minFree})
	record(t, w, plainTxn(w.Run(), 1, 1))
	flush(t, w)
	disk.leave(5)
	for seq := uint32(2); seq < 9; seq++ {
		record(t, w, plainTxn(w.Run(), 1, seq))
	}
	if err := w.Close(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Close on a full disk gave %v", err)
	}
	infos, txns := readAll(t, disk.dir)
	if len(txns) != 1 || infos[0].Whole() || !infos[0].Ended.IsZero() {
		t.Errorf("%d transactions are recorded, in %+v", len(txns), infos)
	}
}

// TestSlowDatabaseIsWaitedFor has a database that closes later than one may on a disk that fails.
func TestSlowDatabaseIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel()
	w := &Writer{}
	w.halt.closed = make(chan error, 1)
	time.AfterFunc(closePatience+500*time.Millisecond, func() { w.halt.closed <- nil })
	if err := w.closeDatabase(); err != nil {
		t.Errorf("a slow machine: %v", err)
	}
	failed := errors.New("no space left")
	w.err.Store(&failed)
	if got := w.patience(); got != closePatience {
		t.Errorf("a disk that fails is waited for %v", got)
	}
}

func TestRecordingIsPrivateWhateverTheUmask(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	was := syscall.Umask(0)
	defer syscall.Umask(was)
	existing := filepath.Join(t.TempDir(), "there")
	if err := os.Mkdir(existing, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a directory that was there": existing,
		"a new one": filepath.Join(t.TempDir(), "new")} {
		t.Run(name, func(t *testing.T) {
			w := create(t, dir, Options{})
			// Enough for tables of several levels.
			for seq := uint32(1); seq < 60; seq++ {
				txn := plainTxn(w.Run(), 1, seq)
				txn.Stmts[0].Args = append(txn.Stmts[0].Args, noise(400_000))
				record(t, w, txn)
			}
			flush(t, w)
			private(t, dir)
			closed(t, w)
			private(t, dir)
		})
	}
}

// private checks the modes in a directory. A writer's file may go while it looks.
func private(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		info := fs.FileInfo(nil)
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if path == dir {
			want = fs.ModeDir | 0o700
		}
		if files++; info.Mode() != want {
			t.Errorf("%s: %v, want %v", path, info.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 5 {
		t.Errorf("the directory has %d files", files)
	}
}
