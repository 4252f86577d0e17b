package recorder

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/history"
)

// Snapshot gives a Reader of what is on disk now: of the Writer's own run, and of those before it. (See [Writer.Flush] for
// what is not on disk yet.) It is used by one goroutine, and closed before the Writer is.
func (w *Writer) Snapshot() (*Reader, error) {
	r := &Reader{dir: w.batch.dir, db: w.batch.db, view: w.batch.db.NewTransaction(false)}
	if err := r.loadRuns(); err != nil {
		r.view.Discard()
		return nil, err
	}
	return r, nil
}

// Info describes the Writer's run. It is called before the Writer is given anything, or once it is closed: then it says how the run
// ended, too.
func (w *Writer) Info() history.Info { return w.info }

// begin gives a transaction of Badger's to read in, and what ends it.
func (r *Reader) begin() (txn *badger.Txn, end func()) {
	if r.view != nil {
		return r.view, func() {}
	}
	txn = r.db.NewTransaction(false)
	return txn, txn.Discard
}

// InOrder streams a run's transactions in the order in which they began, but for those whose counters skip accepts.
// They are the consumer's to keep. It keeps 8 bytes for each, and looks them up one by one. The first error ends it.
func (r *Reader) InOrder(ctx context.Context, run history.Run, skip func(seq uint32) bool) iter.Seq2[*history.Txn, error] {
	return func(yield func(*history.Txn, error) bool) {
		places, err := r.places(ctx, run, skip)
		if err != nil {
			yield(nil, err)
			return
		}
		l, err := r.Lookup()
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.Close()
		for _, p := range places {
			t, err := l.Txn(ctx, history.MakeTxnID(run, p.seq), p.session)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// A place is where a transaction of a run is.
type place struct {
	session history.SessionID
	seq     uint32
}

// places finds the transactions of a run that are not skipped, in the order of their counters.
func (r *Reader) places(ctx context.Context, run history.Run, skip func(seq uint32) bool) ([]place, error) {
	var places []place
	for key, value := range r.values(ctx, appendRunKey(nil, keyTxn, run)) {
		if value.err != nil {
			return nil, value.err
		}
		numbers, err := keyNumbers(key, 3)
		if err != nil {
			return nil, r.corrupt(key, err)
		}
		if !skip(numbers[2]) {
			places = append(places, place{history.SessionID(numbers[1]), numbers[2]})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	return places, nil
}
