package proxyserver

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// TestTiDBHasNoLogOfItsOwn: require refuses to start, auto says so in the recording, and so does doctor.
func TestTiDBHasNoLogOfItsOwn(t *testing.T) {
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	const says = "TiDB keeps no binary log: TiCDC, or Pump and Drainer, read its changes, and are programs of their " +
		"own that isotap does not read"
	target, err := dsn.Parse(server.URL() + server.NewDatabase(t))
	require.NoError(t, err)
	start := func(use serverlog.Use, dir string) (*Server, error) {
		return Start(t.Context(), Options{Upstream: target, Listen: "127.0.0.1:0", Recording: dir, ServerLog: use})
	}
	_, err = start(serverlog.Require, filepath.Join(t.TempDir(), "rec"))
	require.ErrorContains(t, err, says)

	dir := filepath.Join(t.TempDir(), "rec")
	srv, err := start(serverlog.Auto, dir)
	require.NoError(t, err)
	require.NoError(t, srv.Stop())
	r, err := recorder.Open(dir)
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.Runs()[0].Log, 1)
	require.Contains(t, r.Runs()[0].Log[0].Reason, says)

	all, err := Examine(t.Context(), target)
	require.NoError(t, err)
	var found, conditions bool
	for _, e := range all {
		found = found || !e.There && e.Says == says
		conditions = conditions || e.There && e.What == "conditions"
	}
	require.True(t, found, "%+v", all)
	require.True(t, conditions, "%+v", all)
}
