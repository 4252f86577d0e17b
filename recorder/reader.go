package recorder

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/history"
)

// A Reader reads a recording: what had reached its files when it was opened, whether or not somebody writes to it, or
// what a Writer has put to disk (see [Writer.Snapshot]). Its methods may be called from several goroutines, but not
// after Close; each iterator is for one.
//
// What is damaged is left out: the iterators yield an error for it that is ErrCorrupt and go on if the consumer does,
// [Reader.Damage] returns what was seen so far, and a [MissingError] ends the transactions of a run that has fewer than
// were written.
type Reader struct {
	dir    string
	store  store
	runs   []history.Info
	sealed map[history.Run]bool // runs whose values have a seal: all since format 4
	marks  map[uint32]totals
	own    []Damage // found by the Reader itself, when it was opened
}

// A store is where a Reader finds entries.
type store interface {
	// entries streams what stands under a prefix, in the order of the keys, from a key on that has the prefix. Key and
	// value are valid until the next ones are asked for. What cannot be read is left out, and found.
	entries(prefix, from []byte, yield func(key, value []byte) bool) error
	// find returns the value of a key. The error is errNoKey where there is none.
	find(key []byte) ([]byte, error)
	found() []Damage
	close() error
}

// A MissingError says that transactions of a run cannot be read. It is ErrCorrupt.
type MissingError struct {
	Dir           string
	Run           history.Run
	Written, Read uint64
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%v: %s: run %s has %d readable transactions of %d that were written", ErrCorrupt, e.Dir, e.Run,
		e.Read, e.Written)
}

// Unwrap returns ErrCorrupt.
func (e *MissingError) Unwrap() error { return ErrCorrupt }

// Missing returns the MissingErrors in a tree of errors.
func Missing(err error) (all []*MissingError) {
	switch e := err.(type) {
	case *MissingError:
		return []*MissingError{e}
	case interface{ Unwrap() error }:
		return Missing(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, Missing(err)...)
		}
	}
	return all
}

// Open opens a recording for reading. It changes nothing in the directory, which may be read-only. The recording may be
// one whose writer was killed, or is still writing: then it is read as far as it had reached the files. The errors are
// ErrNotRecording, ErrFormat, ErrCorrupt (no run can be read) or the system's.
func Open(dir string) (*Reader, error) {
	if err := checkMarker(dir); err != nil {
		return nil, err
	}
	// The marks come first: whatever is written from here on, the files have at least as much.
	marks, damage := checkMarks(dir)
	f, err := openFiles(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, store: f, marks: marks, own: damage}
	if err := r.loadRuns(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	r.own = append(r.own, r.lostEnds(f)...)
	return r, nil
}

// lostEnds returns the ends of logs that the marks tell to have been more, and the marks that are missing themselves.
func (r *Reader) lostEnds(f *files) (lost []Damage) {
	for run, mark := range r.marks {
		if total, err := r.totals(history.Run(run)); err != nil && mark.entries > 0 || total.entries < mark.entries ||
			total.txns < mark.txns {
			lost = append(lost, f.torn...)
			lost = append(lost, Damage{marksName, -1,
				fmt.Sprintf("of run %s, %d entries were written and %d are counted", history.Run(run), mark.entries,
					total.entries)})
		}
	}
	for _, info := range r.runs {
		if _, ok := r.marks[uint32(info.Run)]; r.sealed[info.Run] && !ok {
			lost = append(lost, Damage{marksName, -1, fmt.Sprintf("the mark of run %s is missing", info.Run)})
		}
	}
	return lost
}

// Close closes the recording.
func (r *Reader) Close() error {
	if err := r.store.close(); err != nil {
		return fmt.Errorf("close recording %s: %w", r.dir, err)
	}
	return nil
}

// Damage returns what of the files could not be read up to now.
func (r *Reader) Damage() []Damage { return append(slices.Clone(r.own), r.store.found()...) }

// Runs returns the recording's runs in the order in which they started. A zero Ended says that the run
// did not end cleanly: what it did after its last transaction in the recording is not known.
func (r *Reader) Runs() []history.Info { return slices.Clone(r.runs) }

func (r *Reader) loadRuns() error {
	r.sealed = make(map[history.Run]bool)
	var failed error
	for key, value := range r.values(context.Background(), []byte{keyRun}) {
		info, sealed, err := r.describe(key, value)
		if err != nil {
			failed = errors.Join(failed, err)
			r.own = append(r.own, Damage{keyName(key), -1, err.Error()})
			continue
		}
		r.sealed[info.Run] = sealed
		r.runs = append(r.runs, info)
	}
	for i := range r.runs {
		r.loadGaps(&r.runs[i])
		r.loadLog(&r.runs[i])
	}
	if len(r.runs) == 0 {
		for _, d := range r.Damage() {
			failed = errors.Join(failed, errors.New(d.String()))
		}
		if failed == nil {
			failed = fmt.Errorf("it has no %s", badger.ManifestFilename)
		}
		return fmt.Errorf("%w: %s holds no run: %w", ErrCorrupt, r.dir, failed)
	}
	slices.SortStableFunc(r.runs, func(a, b history.Info) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Run, b.Run))
	})
	return nil
}

// sealedRun begins the description of a run whose values have seals. Until format 3 it began with a brace.
const sealedRun = formatVersion

// describe decodes the description of a run.
func (r *Reader) describe(key []byte, v value) (info history.Info, isSealed bool, err error) {
	if v.err != nil {
		return info, false, v.err
	}
	numbers, err := keyNumbers(key, 1)
	text := v.bytes
	if isSealed = len(text) > 0 && text[0] == sealedRun; err == nil && isSealed {
		if text, err = unseal(key, text); err == nil {
			text = text[1:]
		}
	}
	if err == nil {
		info, err = decodeInfo(history.Run(numbers[0]), text)
	}
	if err != nil {
		return info, false, r.corrupt(key, err)
	}
	return info, isSealed, nil
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

// Outlines streams what Txns does but for the statements' Args, which takes less time. Before each transaction it asks
// for the arena to read it into; where arena is nil they are the consumer's to keep.
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
		if err := r.rest(); err != nil {
			yield(nil, err)
		}
	}
}

// errDamage is the ErrCorrupt of what [Reader.Damage] returns.
var errDamage = fmt.Errorf("%w", ErrCorrupt)

// rest is the error of what is damaged beside the transactions of the runs that can be read.
func (r *Reader) rest() error {
	var errs []error
	for run, mark := range r.marks {
		if _, ok := r.sealed[history.Run(run)]; !ok && mark.entries > 0 {
			errs = append(errs, &MissingError{r.dir, history.Run(run), mark.txns, 0})
		}
	}
	if damage := r.Damage(); len(damage) > 0 {
		errs = append(errs, fmt.Errorf("%w: %s: %s (and %d places more)", errDamage, r.dir, damage[0], len(damage)-1))
	}
	return errors.Join(errs...)
}

func (r *Reader) runsByNumber() []history.Info {
	runs := r.Runs()
	slices.SortFunc(runs, func(a, b history.Info) int { return cmp.Compare(a.Run, b.Run) })
	return runs
}

// runTxns streams a run's transactions; false ends the stream.
func (r *Reader) runTxns(ctx context.Context, d *decoder, run history.Run, yield func(*history.Txn, error) bool) bool {
	var err error
	if d.dict, err = r.dictionary(ctx, run); err != nil && (!yield(nil, err) || ctx.Err() != nil) {
		return false
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

// whole returns a transaction's record, put together from its parts if it is long.
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

// A dict is the strings of a run by their numbers. Those that are missing are nil.
type dict []*string

// dictionary loads the strings of a run. The writer bounds them to a few megabytes. Of strings that are missing it
// returns an error, and the others.
func (r *Reader) dictionary(ctx context.Context, run history.Run) (d dict, failed error) {
	for key, value := range r.values(ctx, appendRunKey(nil, keyString, run)) {
		if ctx.Err() != nil {
			return d, ctx.Err()
		}
		if value.err != nil {
			failed = errors.Join(failed, value.err)
			continue
		}
		numbers, err := keyNumbers(key, 2)
		if err == nil && numbers[1] >= maxDictEntries {
			err = fmt.Errorf("there are no more than %d", maxDictEntries)
		}
		if err != nil {
			failed = errors.Join(failed, r.corrupt(key, err))
			continue
		}
		for len(d) < int(numbers[1]) {
			failed = errors.Join(failed, r.corrupt(key, fmt.Errorf("string %d is missing", len(d))))
			d = append(d, nil)
		}
		text := string(value.bytes)
		d = append(d, &text)
	}
	return d, failed
}

// Count returns the number of a run's transactions, as its writer counted them.
func (r *Reader) Count(run history.Run) (uint64, error) {
	total, err := r.totals(run)
	mark, ok := r.marks[uint32(run)]
	if err != nil && !ok {
		return 0, err
	}
	return max(total.txns, mark.txns), nil
}

// totals returns the writer's counts as the database has them.
func (r *Reader) totals(run history.Run) (t totals, err error) {
	key := appendRunKey(nil, keyCount, run)
	value, err := r.get(key)
	if err == nil {
		t, err = decodeTotals(value)
	}
	if err != nil {
		return totals{}, r.corrupt(key, err)
	}
	return t, nil
}

// checkCount compares what was read of a run with what its writer counted.
func (r *Reader) checkCount(run history.Run, read uint64) error {
	written, err := r.Count(run)
	if err != nil {
		return err
	}
	if read != written {
		return &MissingError{r.dir, run, written, read}
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

// values streams the entries under a prefix, in order. One that does not have its seal comes with an error; the end of
// ctx is the last.
func (r *Reader) values(ctx context.Context, prefix []byte) iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, value{err: err})
			return
		}
		stopped := false
		failed := r.guard(prefix, func() error {
			return r.store.entries(prefix, prefix, func(key, bytes []byte) bool {
				v := value{err: ctx.Err()}
				if v.err == nil {
					v.bytes, v.err = r.unsealed(key, bytes)
				}
				stopped = !yield(key, v) || ctx.Err() != nil
				return !stopped
			})
		})
		if failed != nil && !stopped {
			yield(prefix, value{err: failed})
		}
	}
}

// unsealed returns a value without its seal, if it has one.
func (r *Reader) unsealed(key, bytes []byte) ([]byte, error) {
	if key[0] == keyRun || len(key) < 5 || !r.sealed[history.Run(binary.BigEndian.Uint32(key[1:]))] {
		return bytes, nil
	}
	bytes, err := unseal(key, bytes)
	if err != nil {
		return nil, r.corrupt(key, err)
	}
	return bytes, nil
}

// get reads one value.
func (r *Reader) get(key []byte) (value []byte, err error) {
	err = r.guard(key, func() error {
		found, err := r.store.find(key)
		if err == nil {
			value, err = r.unsealed(key, found)
		}
		return err
	})
	return value, err
}

// guard runs a call to the store. Badger may panic on damaged blocks; that becomes an error.
func (r *Reader) guard(key []byte, call func() error) (err error) {
	if _, ours := r.store.(*files); ours {
		return call()
	}
	defer func() {
		if p := recover(); p != nil {
			err = r.corrupt(key, fmt.Errorf("badger: %v", p))
		}
	}()
	return call()
}
