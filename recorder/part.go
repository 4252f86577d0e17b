package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/isotap/isotap/history"
)

// A Part is some of a run, as if no more had been recorded: a few transactions, and from some point on what is known
// later than these, the server's log and what conditions match.
type Part struct {
	Run  history.Run
	Txns []TxnKey
	From Mark
}

// A Mark is how far the server's log was recorded, and what conditions match. The zero Mark is a run's beginning.
type Mark struct {
	logged, matches uint32 // the numbers of the next ones
}

// Part returns a Reader of a part of the recording. It takes the place of r, which is not used any more: closing it
// closes r. A transaction that the recording does not have is not read.
func (r *Reader) Part(p Part) (*Reader, error) {
	keys := slices.Clone(p.Txns)
	slices.SortFunc(keys, func(a, b TxnKey) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.ID, b.ID))
	})
	s := &partStore{store: r.store, run: p.Run, txns: keys, from: p.From}
	err := s.each(func(_, _ []byte) bool { s.count++; return true }, s.txnKeys()...)
	part := &Reader{dir: r.dir, store: s}
	if err := errors.Join(err, part.loadRuns()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return part, nil
}

// Mark returns how far a run is recorded, from an earlier Mark on.
func (r *Reader) Mark(ctx context.Context, run history.Run, from Mark) (Mark, error) {
	for space, next := range map[byte]*uint32{keyLogged: &from.logged, keyMatches: &from.matches} {
		prefix := appendRunKey(nil, space, run)
		err := r.guard(prefix, func() error {
			return r.store.entries(prefix, appendNumberKey(nil, space, run, *next), func(key, _ []byte) bool {
				if numbers, err := keyNumbers(key, 2); err == nil {
					*next = numbers[1] + 1
				}
				return ctx.Err() == nil
			})
		})
		if err := errors.Join(err, ctx.Err()); err != nil {
			return Mark{}, err
		}
	}
	return from, nil
}

// A partStore has of a store what a Part has.
type partStore struct {
	store
	run  history.Run
	txns []TxnKey // by session and number
	from Mark
	// count is how many of the transactions there are.
	count uint64
}

func (s *partStore) entries(prefix, from []byte, yield func(key, value []byte) bool) error {
	switch {
	case bytes.Equal(prefix, []byte{keyRun}):
		return s.each(yield, appendRunKey(nil, keyRun, s.run))
	case bytes.Equal(prefix, []byte{keySession}):
		return s.each(yield, s.sessionKeys()...)
	case bytes.Equal(prefix, appendRunKey(nil, keyTxn, s.run)):
		return s.each(yield, s.txnKeys()...)
	case bytes.Equal(prefix, appendRunKey(nil, keyLogged, s.run)):
		from = appendNumberKey(nil, keyLogged, s.run, s.from.logged)
	case bytes.Equal(prefix, appendRunKey(nil, keyMatches, s.run)):
		from = appendNumberKey(nil, keyMatches, s.run, s.from.matches)
	}
	return s.store.entries(prefix, from, yield)
}

func (s *partStore) sessionKeys() (keys [][]byte) {
	for i, t := range s.txns {
		if i == 0 || t.Session != s.txns[i-1].Session {
			keys = append(keys, appendSessionKey(nil, keySession, s.run, t.Session))
		}
	}
	return keys
}

func (s *partStore) txnKeys() (keys [][]byte) {
	for _, t := range s.txns {
		keys = append(keys, appendTxnKey(nil, keyTxn, t.ID, t.Session))
	}
	return keys
}

// each streams the entries under the keys that there are.
func (s *partStore) each(yield func(key, value []byte) bool, keys ...[]byte) error {
	for _, key := range keys {
		value, err := s.store.find(key)
		if errors.Is(err, errNoKey) {
			continue
		}
		if err != nil {
			return err
		}
		if !yield(key, value) {
			return nil
		}
	}
	return nil
}

// find returns the value of a key. That of the run's count is how many transactions the part has.
func (s *partStore) find(key []byte) ([]byte, error) {
	value, err := s.store.find(key)
	if err != nil || !bytes.Equal(key, appendRunKey(nil, keyCount, s.run)) {
		return value, err
	}
	hasSeal := sealed(key, value)
	value = appendTotals(slices.Clone(key), totals{txns: s.count})
	if hasSeal {
		value = appendSeal(value, 0)
	}
	return value[len(key):], nil
}
