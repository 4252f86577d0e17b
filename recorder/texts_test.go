package recorder

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
)

// TestTextsComeBackByThemselves: analyses read transactions without them.
func TestTextsComeBackByThemselves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := Create(dir, history.Info{}, Options{})
	require.NoError(t, err)
	long := "INSERT INTO t VALUES ('" + strings.Repeat("x", 64<<10) + "')"
	id := history.MakeTxnID(w.Run(), 1)
	require.NoError(t, w.Session(t.Context(), history.Session{Run: w.Run(), ID: 1}))
	require.NoError(t, w.Txn(t.Context(), &history.Txn{ID: id, Session: 1, Status: history.Committed, Stmts: []history.Stmt{
		{Num: 1, Shape: "BEGIN"}, {Num: 2, Shape: "INSERT INTO t VALUES (?)", Text: long}}}))
	require.NoError(t, w.Close())

	r, err := Open(dir)
	require.NoError(t, err)
	defer r.Close()
	var texts []Text
	for text, err := range r.Texts(t.Context(), w.Run()) {
		require.NoError(t, err)
		texts = append(texts, text)
	}
	require.Equal(t, []Text{{id, 2, long}}, texts)
	for x, err := range r.Txns(t.Context()) {
		require.NoError(t, err)
		require.Empty(t, x.Stmts[1].Text)
	}
	checked, err := r.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, checked.Unreadable)
}
