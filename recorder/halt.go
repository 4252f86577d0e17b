package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// WhenFull says what becomes of transactions while the disk takes nothing.
type WhenFull uint8

const (
	// Refuse: those who ask [Writer.Err] begin no transaction while there is less than Options.MinFree; half of that is
	// for those that are under way, and what finds no room is kept in memory until there is.
	Refuse WhenFull = iota
	// Pass: transactions go on without being recorded. What is missing is noted as a [history.Gap].
	Pass
)

// ParseWhenFull reads the words of the configuration: "refuse" or "pass".
func ParseWhenFull(s string) (WhenFull, error) {
	switch s {
	case "refuse":
		return Refuse, nil
	case "pass":
		return Pass, nil
	}
	return Refuse, fmt.Errorf("when_full %q is neither refuse nor pass", s)
}

// String returns the word that ParseWhenFull reads.
func (f WhenFull) String() string {
	if f == Pass {
		return "pass"
	}
	return "refuse"
}

const (
	// lookEvery is how often the disk is looked at, traffic or not.
	lookEvery = 250 * time.Millisecond
	// logEvery bounds how often the log tells that recording stops and goes on.
	logEvery = 10 * time.Second
	// closePatience is how long a database may take to close on a disk that fails, and slowPatience on one that does
	// not: the machine may be slow.
	closePatience = 5 * time.Second
	slowPatience  = 30 * time.Second
)

// commitFree is how much must stay free when a batch is written, and lastFree when a run ends.
func (o *Options) commitFree() int64 {
	if o.WhenFull == Pass {
		return o.MinFree
	}
	return o.lastFree()
}

func (o *Options) lastFree() int64 { return o.MinFree / 2 }

// goOnFree is how much must be free again before transactions are recorded again: more than what stopped them, so that
// it does not go back and forth.
func (o *Options) goOnFree() int64 { return o.MinFree + o.MinFree/8 }

// A halt is what a Writer knows of a disk that does not take what is written. It is the writing goroutine's.
type halt struct {
	err    error // why nothing is written; nil while it is
	broken bool  // the database failed, and is opened anew before it is used again
	closed chan error
	gap    history.Gap // what was not recorded since
	gaps   []history.Gap
	// loggedLost says that the gap is one of the server's log, at least.
	loggedLost bool
	logged     time.Time
	quiet      int // what the log did not tell since
}

// stop notes that the disk does not take the batch, which stays.
func (w *Writer) stop(err error) error {
	w.halt.err = fmt.Errorf("%w: %w", ErrHalted, err)
	w.tell(w.halt.err)
	if !errors.Is(err, ErrDiskFull) {
		_, readOnly, failed := diskSpace(w.batch.dir)
		w.halt.broken = failed == nil && !readOnly // what was found before the database was asked leaves it whole
	}
	return w.halt.err
}

// stopUnsynced notes that a sync failed. What was written since the last one is written again, to a database that is
// opened anew.
func (w *Writer) stopUnsynced(err error) error {
	w.halt.err = fmt.Errorf("%w: %w", ErrHalted, err)
	w.tell(w.halt.err)
	w.halt.broken = true
	return w.halt.err
}

// tell changes what Err returns, and logs it.
func (w *Writer) tell(err error) {
	was := w.err.Load()
	if err == nil {
		w.err.Store(nil)
	} else {
		w.err.Store(&err)
	}
	if (was == nil) == (err == nil) {
		return
	}
	h := &w.halt
	if time.Since(h.logged) < logEvery {
		h.quiet++
		return
	}
	h.logged = time.Now()
	fields := []zap.Field{zap.Uint64("transactions_not_recorded", w.lost.Load()),
		zap.Int("changes_not_logged", h.quiet), zap.Stringer("when_full", w.opts.WhenFull)}
	h.quiet = 0
	if err != nil {
		w.opts.Logger.Error("recording stops until the disk takes what is written", append(fields, zap.Error(err))...)
		return
	}
	w.opts.Logger.Warn("recording goes on", fields...)
}

// leave decides what becomes of an item while nothing is written, and reports whether it is done with. Sessions and
// definitions stay, for what comes later rests on them; transactions as long as there is memory for them, unless they
// may pass. What is lost of the server's log makes a gap as a lost transaction does.
func (w *Writer) leave(it *item) (done bool) {
	room := int64(len(w.batch.arena)) < w.opts.QueueBytes
	switch {
	case it.txn != nil && (w.opts.WhenFull == Pass || !room):
		w.halt.lose(it.txn)
		w.lost.Add(1)
		return true
	case it.logged != nil && !room:
		w.halt.loseLogged(it.logged)
		return true
	case it.matches != nil, it.definition != nil:
		return !room
	}
	return false
}

// lose takes in a transaction that is not recorded.
func (h *halt) lose(t *history.Txn) {
	if h.gap.Txns == 0 && !h.loggedLost {
		h.gap.From, h.gap.To = t.Start, t.End
	}
	h.gap.From, h.gap.To = min(h.gap.From, t.Start), max(h.gap.To, t.End)
	h.gap.Txns++
}

// loseLogged takes in a transaction of the server's log that is not recorded.
func (h *halt) loseLogged(t *history.LoggedTxn) {
	if h.gap.Txns == 0 && !h.loggedLost {
		h.gap.From, h.gap.To = t.To, t.To
	}
	h.gap.From, h.gap.To = min(h.gap.From, t.To), max(h.gap.To, t.To)
	h.loggedLost = true
}

// note adds what was not recorded to the batch.
func (h *halt) note(b *batch, why error) {
	if h.gap.Txns == 0 && !h.loggedLost {
		return
	}
	h.gap.Reason = "write error"
	if errors.Is(why, syscall.ENOSPC) {
		h.gap.Reason = ErrDiskFull.Error()
	}
	b.addGap(&h.gap)
	h.gaps, h.gap, h.loggedLost = append(h.gaps, h.gap), history.Gap{}, false
}

// lookAtDisk notices that the disk fills up although nothing is written, and goes on recording when it is well again.
func (w *Writer) lookAtDisk() {
	if w.Err() == nil {
		if err := w.batch.checkSpace(w.opts.MinFree); err != nil {
			w.tell(fmt.Errorf("%w: %w", ErrHalted, err))
		}
		return
	}
	if w.batch.checkSpace(w.opts.goOnFree()) != nil {
		return
	}
	if w.halt.broken {
		if err := w.reopen(); err != nil {
			w.opts.Logger.Debug("the recording cannot be opened again", zap.Error(err))
			return
		}
		w.halt.broken = false
	}
	why := w.Err()
	w.halt.note(w.batch, why)
	w.halt.err = nil
	if w.commit() == nil && w.sync() == nil && w.settle() == nil {
		w.tell(nil)
	}
}

// reopen opens the database anew after it has failed: what state it is in nobody knows, but what reached its files is
// there. It is tried again and again.
func (w *Writer) reopen() error {
	if err := tryDisk(w.batch.dir); err != nil {
		return err
	}
	synced := w.syncer.resume()
	w.views.Lock() // those who read have a few seconds for it
	defer w.views.Unlock()
	if err := w.closeDatabase(); err != nil {
		return err
	}
	o := badgerOptions(w.batch.dir, w.opts.Logger)
	if _, err := checkFiles(w.batch.dir, o); err != nil {
		return err
	}
	db, err := openBadger(w.batch.dir, o)
	if err != nil {
		return err
	}
	w.batch.db, w.halt.closed = db, nil
	w.batch.synced(synced.batch)
	w.batch.again(synced.total)
	return nil
}

// tryDisk writes a file as large as those that a database begins with, and takes it away.
func tryDisk(dir string) error {
	path := filepath.Join(dir, markerName+".try")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, privateFile)
	if err != nil {
		return fmt.Errorf("try the disk: %w", err)
	}
	err = f.Truncate(2 * memTableSize)
	for at := int64(0); at < 2*memTableSize && err == nil; at += 1 << 20 {
		_, err = f.WriteAt(make([]byte, 1<<20), at)
	}
	err = errors.Join(err, f.Sync(), f.Close(), os.Remove(path))
	if err != nil {
		return fmt.Errorf("try the disk: %w", err)
	}
	return nil
}

// closeDatabase closes the database, which may take long where the disk does not take what it has in memory. What it
// returned once it returns again.
func (w *Writer) closeDatabase() error {
	if w.halt.closed == nil {
		closed := make(chan error, 1)
		w.halt.closed = closed
		go func(db interface{ Close() error }) { closed <- db.Close() }(w.batch.db)
	}
	limit := w.patience()
	select {
	case err := <-w.halt.closed:
		w.halt.closed <- err
		if w.halt.broken {
			return nil // what it could not write is lost with it, and counted by the marks
		}
		return err
	case <-time.After(limit):
		return fmt.Errorf("the database does not close within %v: the disk takes nothing, or the machine is slow",
			limit)
	}
}

// patience is how long the database may take to close.
func (w *Writer) patience() time.Duration {
	if w.Err() != nil {
		return closePatience
	}
	return slowPatience
}

// closeFiles closes all that the Writer has open.
func (w *Writer) closeFiles() error {
	err := w.closeDatabase()
	if !w.syncer.close(w.patience()) {
		err = errors.Join(err, errors.New("a sync of the disk does not end"))
	}
	if err != nil {
		err = fmt.Errorf("close recording: %w", err)
	}
	return errors.Join(err, w.syncer.mark.file.Close(), makePrivate(w.batch.dir))
}
