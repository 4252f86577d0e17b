package recorder

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// A Reader reads a recording that nobody writes to, or what a Writer has put to disk (see [Writer.Snapshot]). Its methods may be called from several
// goroutines, but not after Close; each iterator is for one.
type Reader struct {
	dir  string
	db   *badger.DB
	runs []history.Info
	view *badger.Txn // what a [Writer.Snapshot] reads in; nil for a recording that nobody writes to
}

// Open opens a recording. One whose writer was killed is first brought into order, which replays the
// writer's log. Several Readers may share a recording, but not with a Writer. The directory must be
// writable, for Badger keeps files there. The errors are ErrNotRecording, ErrFormat, ErrInUse,
// ErrCorrupt or the system's.
func Open(dir string) (*Reader, error) {
	if err := checkMarker(dir); err != nil {
		return nil, err
	}
	if err := probeLock(dir, true); err != nil {
		return nil, err
	}
	o := badgerOptions(dir, zap.NewNop())
	clean, err := checkFiles(dir, o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, badger.ManifestFilename)); err != nil {
		return nil, fmt.Errorf("%w: %s holds no run: %w", ErrCorrupt, dir, err)
	}
	if err := checkWritable(dir); err != nil {
		return nil, err
	}
	if !clean {
		if err := replayLog(dir, o); err != nil {
			return nil, err
		}
	}
	db, err := openBadger(dir, o.WithReadOnly(true))
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, db: db}
	if err := r.loadRuns(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

// checkWritable finds out what Badger would end the process for: it opens this file for writing even
// in a database that it only reads.
func checkWritable(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "DISCARD"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open recording: its directory must be writable: %w", err)
	}
	return f.Close()
}

// replayLog turns what a killed writer left in its write-ahead log into a table.
func replayLog(dir string, o badger.Options) error {
	if err := probeLock(dir, false); err != nil {
		return err
	}
	// Without compaction, which nobody needs for reading, no number of tables may make it wait.
	o = o.WithNumCompactors(0).WithNumLevelZeroTables(1 << 20).WithNumLevelZeroTablesStall(1 << 21)
	db, err := openBadger(dir, o)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("recover recording %s: %w", dir, err)
	}
	return nil
}

// Close closes the recording.
func (r *Reader) Close() error {
	if r.view != nil {
		r.view.Discard()
		return nil
	}
	if err := r.db.Close(); err != nil {
		return fmt.Errorf("close recording %s: %w", r.dir, err)
	}
	return nil
}

// Runs gives the recording's runs in the order in which they started. A zero Ended says that the run
// did not end cleanly: what it did after its last transaction in the recording is not known.
func (r *Reader) Runs() []history.Info { return slices.Clone(r.runs) }

func (r *Reader) loadRuns() error {
	for key, value := range r.values(context.Background(), []byte{keyRun}) {
		if value.err != nil {
			return value.err
		}
		numbers, err := keyNumbers(key, 1)
		if err != nil {
			return r.corrupt(key, err)
		}
		info, err := decodeInfo(history.Run(numbers[0]), value.bytes)
		if err != nil {
			return r.corrupt(key, err)
		}
		r.runs = append(r.runs, info)
	}
	if len(r.runs) == 0 {
		return fmt.Errorf("%w: %s holds no run", ErrCorrupt, r.dir)
	}
	slices.SortStableFunc(r.runs, func(a, b history.Info) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Run, b.Run))
	})
	return nil
}

// Sessions streams the sessions, by run and number. After an error the stream goes on with what
// follows if the consumer does.
func (r *Reader) Sessions(ctx context.Context) iter.Seq2[history.Session, error] {
	return func(yield func(history.Session, error) bool) {
		var d decoder
		for key, value := range r.values(ctx, []byte{keySession}) {
			s, err := r.session(&d, key, value)
			if !yield(s, err) {
				return
			}
		}
	}
}

func (r *Reader) session(d *decoder, key []byte, value value) (history.Session, error) {
	if value.err != nil {
		return history.Session{}, value.err
	}
	numbers, err := keyNumbers(key, 2)
	if err != nil {
		return history.Session{}, r.corrupt(key, err)
	}
	s := history.Session{Run: history.Run(numbers[0]), ID: history.SessionID(numbers[1])}
	if err := d.session(&s, value.bytes); err != nil {
		return history.Session{}, r.corrupt(key, err)
	}
	return s, nil
}

// Txns streams the transactions, by run (the run's number, not its start), session and time. They
// are the consumer's to keep. Equal row ids often share their memory; text of one transaction does
// not keep another one's alive.
//
// An error names the transaction that cannot be read; the stream goes on with the next one if the
// consumer does. A run that holds fewer transactions than its writer counted ends with an error.
func (r *Reader) Txns(ctx context.Context) iter.Seq2[*history.Txn, error] {
	return r.stream(ctx, decoder{})
}

// Outlines streams what Txns does but for the statements' Args, which takes less time. Before each transaction it asks for
// the arena to read it into; where arena is nil they are the consumer's to keep.
func (r *Reader) Outlines(ctx context.Context, arena func() *Arena) iter.Seq2[*history.Txn, error] {
	return r.stream(ctx, decoder{outline: true, arena: arena})
}

// stream streams what a decoder, whose options are set, makes of the transactions.
func (r *Reader) stream(ctx context.Context, d decoder) iter.Seq2[*history.Txn, error] {
	return func(yield func(*history.Txn, error) bool) {
		u, err := newUnpacker()
		if err != nil {
			yield(nil, err)
			return
		}
		defer u.close()
		d := d
		d.intern, d.unpacker = newInterner(internedIDs), u
		for _, info := range r.runsByNumber() {
			if !r.runTxns(ctx, &d, info.Run, yield) {
				return
			}
		}
	}
}

func (r *Reader) runsByNumber() []history.Info {
	runs := r.Runs()
	slices.SortFunc(runs, func(a, b history.Info) int { return cmp.Compare(a.Run, b.Run) })
	return runs
}

// runTxns streams a run's transactions; false ends the stream.
func (r *Reader) runTxns(ctx context.Context, d *decoder, run history.Run, yield func(*history.Txn, error) bool) bool {
	var err error
	if d.dict, err = r.dictionary(ctx, run); err != nil {
		return yield(nil, err) && ctx.Err() == nil
	}
	read := uint64(0)
	for key, value := range r.values(ctx, appendRunKey(nil, keyTxn, run)) {
		t, err := r.txn(d, key, value)
		if err == nil {
			read++
		}
		if !yield(t, err) || ctx.Err() != nil {
			return false
		}
	}
	if err := r.checkCount(run, read); err != nil {
		return yield(nil, err)
	}
	return true
}

func (r *Reader) txn(d *decoder, key []byte, value value) (*history.Txn, error) {
	if value.err != nil {
		return nil, value.err
	}
	numbers, err := keyNumbers(key, 3)
	if err != nil {
		return nil, r.corrupt(key, err)
	}
	into := d.memory()
	t := &taken(&into.txns, 1)[0]
	t.ID, t.Session = history.MakeTxnID(history.Run(numbers[0]), numbers[2]), history.SessionID(numbers[1])
	record, err := r.whole(d.unpacker, t, value.bytes)
	if err == nil {
		err = d.txn(t, into, record)
	}
	if err != nil {
		return nil, r.corrupt(key, err)
	}
	return t, nil
}

// whole gives a transaction's record, put together from its parts if it is long.
func (r *Reader) whole(u *unpacker, t *history.Txn, value []byte) ([]byte, error) {
	if len(value) == 0 || value[0] != packParts {
		return u.unpack(value)
	}
	parts, size, err := decodeParts(value[1:])
	if err != nil {
		return nil, err
	}
	var record []byte
	for i := range parts {
		packed, err := r.get(appendChunkKey(nil, t.ID, t.Session, i))
		if err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i+1, parts, err)
		}
		part, err := u.unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i+1, parts, err)
		}
		record = append(record, part...)
	}
	if uint64(len(record)) != size {
		return nil, fmt.Errorf("parts have %d bytes instead of %d", len(record), size)
	}
	return record, nil
}

// dictionary loads the strings of a run. The writer bounds them to a few megabytes.
func (r *Reader) dictionary(ctx context.Context, run history.Run) ([]string, error) {
	var dict []string
	for key, value := range r.values(ctx, appendRunKey(nil, keyString, run)) {
		if value.err != nil {
			return nil, value.err
		}
		numbers, err := keyNumbers(key, 2)
		if err == nil && numbers[1] != uint32(len(dict)) {
			err = fmt.Errorf("string %d is missing", len(dict))
		}
		if err != nil {
			return nil, r.corrupt(key, err)
		}
		dict = append(dict, string(value.bytes))
	}
	return dict, nil
}

// Count gives the number of a run's transactions, as its writer counted them.
func (r *Reader) Count(run history.Run) (uint64, error) {
	key := appendRunKey(nil, keyCount, run)
	value, err := r.get(key)
	if err != nil {
		return 0, r.corrupt(key, err)
	}
	written, n := binary.Uvarint(value)
	if n <= 0 || n != len(value) {
		return 0, r.corrupt(key, errShort)
	}
	return written, nil
}

// checkCount compares what was read of a run with what its writer counted.
func (r *Reader) checkCount(run history.Run, read uint64) error {
	written, err := r.Count(run)
	if err != nil {
		return err
	}
	if read != written {
		return fmt.Errorf("%w: %s: run %s has %d readable transactions of %d that were written", ErrCorrupt, r.dir, run, read, written)
	}
	return nil
}

func (r *Reader) corrupt(key []byte, err error) error {
	return fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, r.dir, keyName(key), err)
}

// A value is a value of the database, or the error met instead. The bytes are valid until the next
// one is read.
type value struct {
	bytes []byte
	err   error
}

// values streams the entries under a prefix, in order. Badger may panic on damaged blocks; that ends
// the stream with an error.
func (r *Reader) values(ctx context.Context, prefix []byte) iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		txn, end := r.begin()
		defer end()
		o := badger.DefaultIteratorOptions
		o.Prefix = prefix
		// Values lie beside their keys: fetching them ahead would only cost a goroutine each.
		o.PrefetchValues = false
		it := txn.NewIterator(o)
		defer it.Close()
		var buf []byte
		advance := it.Rewind
		for {
			var key []byte
			err := ctx.Err()
			if err == nil {
				err = r.guard(prefix, func() (err error) {
					advance()
					if it.ValidForPrefix(prefix) {
						key = it.Item().Key()
						buf, err = it.Item().ValueCopy(buf)
					}
					return err
				})
			}
			if err != nil {
				yield(key, value{err: err})
				return
			}
			if key == nil || !yield(key, value{bytes: buf}) {
				return
			}
			advance = it.Next
		}
	}
}

// get reads one value.
func (r *Reader) get(key []byte) (value []byte, err error) {
	err = r.guard(key, func() error {
		txn, end := r.begin()
		defer end()
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		value, err = item.ValueCopy(nil)
		return err
	})
	return value, err
}

// guard runs a call to Badger and turns its panic into an error.
func (r *Reader) guard(key []byte, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.corrupt(key, fmt.Errorf("badger: %v", p))
		}
	}()
	return call()
}
