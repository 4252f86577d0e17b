package recorder

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/history"
)

// Snapshot returns a Reader of what is on disk now: of the Writer's own run, and of those before it. (See
// [Writer.Flush] for what is not on disk yet.) It is used by one goroutine, and closed before the Writer is.
func (w *Writer) Snapshot() (*Reader, error) {
	w.views.RLock()
	r := &Reader{dir: w.batch.dir, store: view{w.batch.db.NewTransaction(false), w.views.RUnlock}}
	if err := r.loadRuns(); err != nil {
		return nil, errors.Join(err, r.store.close())
	}
	return r, nil
}

// A view is what a transaction of Badger's sees.
type view struct {
	txn  *badger.Txn
	done func()
}

func (v view) entries(prefix, from []byte, yield func(key, value []byte) bool) error {
	o := badger.DefaultIteratorOptions
	o.Prefix = prefix
	// Values lie beside their keys: fetching them ahead would only cost a goroutine each.
	o.PrefetchValues = false
	it := v.txn.NewIterator(o)
	defer it.Close()
	var buf []byte
	for it.Seek(from); it.ValidForPrefix(prefix); it.Next() {
		var err error
		if buf, err = it.Item().ValueCopy(buf); err != nil {
			return err
		}
		if !yield(it.Item().Key(), buf) {
			return nil
		}
	}
	return nil
}

func (v view) find(key []byte) ([]byte, error) {
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

func (v view) found() []Damage { return nil }

func (v view) close() error {
	v.txn.Discard()
	v.done()
	return nil
}

// Info describes the Writer's run as it was when it began; once the Writer is closed, also how it ended. It is called
// before Close and Rewritten are, or behind them.
func (w *Writer) Info() history.Info { return w.info }

// InOrder streams a run's transactions in the order in which they began, but for those whose counters skip accepts.
// They are the consumer's to keep. It keeps 16 bytes for each, and looks them up one by one. The first error ends it.
func (r *Reader) InOrder(ctx context.Context, run history.Run, skip func(seq uint32) bool) iter.Seq2[*history.Txn,
	error] {
	return func(yield func(*history.Txn, error) bool) {
		keys, err := r.txnKeys(ctx, run, skip)
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
		for _, p := range keys {
			t, err := l.Txn(ctx, p.ID, p.Session)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// A TxnKey says under which key a transaction is stored.
type TxnKey struct {
	ID      history.TxnID
	Session history.SessionID
}

// txnKeys finds the transactions of a run that are not skipped, in the order of their counters.
func (r *Reader) txnKeys(ctx context.Context, run history.Run, skip func(seq uint32) bool) ([]TxnKey, error) {
	var keys []TxnKey
	for key, value := range r.values(ctx, appendRunKey(nil, keyTxn, run)) {
		if value.err != nil {
			return nil, value.err
		}
		numbers, err := keyNumbers(key, 3)
		if err != nil {
			return nil, r.corrupt(key, err)
		}
		if !skip(numbers[2]) {
			keys = append(keys, TxnKey{history.MakeTxnID(run, numbers[2]), history.SessionID(numbers[1])})
		}
	}
	slices.SortFunc(keys, func(a, b TxnKey) int { return cmp.Compare(a.ID.Seq(), b.ID.Seq()) })
	return keys, nil
}
