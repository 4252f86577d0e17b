package recorder

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
)

func TestLoggedTransactionsComeBackWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := Create(dir, history.Info{}, Options{})
	require.NoError(t, err)
	huge := &history.LoggedTxn{Status: history.Committed, Position: 1 << 40, To: 7, Database: "shop",
		XIDs: []uint32{700, 702}, Cut: true}
	for i := range uint64(2*maxLoggedWrites + 1) {
		huge.Writes = append(huge.Writes, history.LoggedWrite{Op: history.UpdateRow, Storage: 16400,
			Row: history.Row{Table: "public.t"}, TupleID: history.TupleID{CTID: i, NewXID: 702, NewID: i + 1, LSN: i, Leaf: 16384}})
	}
	tag := history.Tag{Txn: history.MakeTxnID(w.Run(), 3), Stmt: 2}
	was := []*history.LoggedTxn{
		{Status: history.Aborted, Position: 5, To: 6, XIDs: []uint32{699}},
		huge,
		{Status: history.Committed, File: "bin.000001", Position: 9, From: 1, To: 8, Seen: 9, Thread: 12, GTID: "0-1-5",
			Unlogged: []string{"shop.child"}, Writes: []history.LoggedWrite{{Op: history.UpdateRow,
				Row: history.Row{Table: "shop.t", ID: "x"}, Old: tag, New: tag}}},
	}
	for _, l := range was {
		require.NoError(t, w.Logged(t.Context(), l))
	}
	for _, s := range []history.LogStretch{{From: 3}, {From: 3, To: 9, Reason: "the connection was lost"}} {
		require.NoError(t, w.LogStretch(t.Context(), 0, s))
	}
	require.NoError(t, w.LogStretch(t.Context(), 1, history.LogStretch{From: 11}))
	require.Eventually(t, func() bool { return w.Stats().Waiting == 0 }, time.Minute, time.Millisecond)
	// Not require.Never: its last question may still be under way when it returns.
	for until := time.Now().Add(50 * time.Millisecond); time.Now().Before(until); time.Sleep(time.Millisecond) {
		require.Empty(t, w.Info().Log, "before the end, while the writer writes")
	}
	require.NoError(t, w.Close())

	r, err := Open(dir)
	require.NoError(t, err)
	defer r.Close()
	var is []*history.LoggedTxn
	for l, err := range r.Logged(t.Context(), w.Run()) {
		require.NoError(t, err)
		is = append(is, l)
	}
	was[0].Number, was[1].Number, was[2].Number = 1, 4, 5 // the huge one takes three
	require.Equal(t, was, is)
	require.Equal(t, []history.LogStretch{{From: 3, To: 9, Reason: "the connection was lost"}, {From: 11}}, r.Runs()[0].Log)
}
