package recorder

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/history"
)

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
	o := badgerOptions(dir, opts.Logger)
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
	mark, err := openMark(dir, uint32(run))
	if err != nil {
		return nil, err
	}
	w.syncer = startSyncer(dir, mark)
	err = w.batch.info(&w.info)
	if err == nil {
		err = w.batch.commit(opts.MinFree)
	}
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		w.syncer.close(slowPatience)
		return nil, errors.Join(err, mark.file.Close())
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
