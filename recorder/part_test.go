package recorder

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
)

// TestPartHasWhatItNames reads a part of a run that is being recorded, and of the same once it has ended.
func TestPartHasWhatItNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w := create(t, dir, Options{})
	var keys []TxnKey
	for i := range uint32(6) {
		session := history.SessionID(1 + i%3)
		if i < 3 {
			require.NoError(t, w.Session(t.Context(), history.Session{Run: w.Run(), ID: session}))
		}
		txn := &history.Txn{ID: history.MakeTxnID(w.Run(), 1+i), Session: session, Start: int64(i), End: int64(i) + 1}
		record(t, w, txn)
		keys = append(keys, TxnKey{txn.ID, session})
	}
	tell := func(position uint64) {
		require.NoError(t, w.Logged(t.Context(), &history.LoggedTxn{Status: history.Committed, Position: position}))
		require.NoError(t, w.Matches(t.Context(), history.Matches{Database: string(rune('a' + position))}))
		flush(t, w)
	}
	tell(1)
	first, err := w.Snapshot()
	require.NoError(t, err)
	mark, err := first.Mark(t.Context(), w.Run(), Mark{})
	require.NoError(t, err)
	closed(t, first)
	tell(2)
	tell(3)
	missing := TxnKey{history.MakeTxnID(w.Run(), 99), 1}
	part := Part{Run: w.Run(), Txns: []TxnKey{keys[4], keys[1], keys[3], missing}, From: mark}
	hold := func(r *Reader) {
		p, err := r.Part(part)
		require.NoError(t, err)
		defer closed(t, p)
		var txns []history.TxnID
		for x, err := range p.Txns(t.Context()) {
			require.NoError(t, err)
			txns = append(txns, x.ID)
		}
		require.Equal(t, []history.TxnID{keys[3].ID, keys[1].ID, keys[4].ID}, txns)
		var sessions []history.SessionID
		for s, err := range p.Sessions(t.Context()) {
			require.NoError(t, err)
			sessions = append(sessions, s.ID)
		}
		require.Equal(t, []history.SessionID{1, 2}, sessions)
		n, err := p.Count(w.Run())
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		var told []uint64
		var numbers []uint32 // as in the whole
		for l, err := range p.Logged(t.Context(), w.Run()) {
			require.NoError(t, err)
			told, numbers = append(told, l.Position), append(numbers, l.Number)
		}
		require.Equal(t, []uint64{2, 3}, told)
		require.Equal(t, []uint32{2, 3}, numbers)
		var matches []string
		for m, err := range p.Matches(t.Context(), w.Run()) {
			require.NoError(t, err)
			matches = append(matches, m.Database)
		}
		require.Equal(t, []string{"c", "d"}, matches)
	}
	now, err := w.Snapshot()
	require.NoError(t, err)
	hold(now)
	closed(t, w)
	after, err := Open(dir)
	require.NoError(t, err)
	hold(after)
}
