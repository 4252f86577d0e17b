package proxyserver

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// TestPostgreSQLsLogIsRecordedBesideTheTraffic: the recording has the writes of a client and of somebody past isotap.
func TestPostgreSQLsLogIsRecordedBesideTheTraffic(t *testing.T) {
	u, err := url.Parse(testdb.PostgreSQL(t).URL())
	require.NoError(t, err)
	u.Path = "/" + testdb.NewPostgreSQLDatabase(t)
	target, err := dsn.Parse(u.String())
	require.NoError(t, err)
	past := testdb.OpenPostgreSQL(t, target.Database)
	testdb.Exec(t, past, "CREATE TABLE item (id int PRIMARY KEY, v int)", "INSERT INTO item VALUES (1, 0)")
	// What a server that commits asynchronously has not flushed yet is read, as if it came after isotap's start.
	testdb.Exec(t, past, "SET synchronous_commit = on; CREATE TABLE flushed ()")
	dir := filepath.Join(t.TempDir(), "rec")
	srv, err := Start(t.Context(), Options{Upstream: target, URL: u.String(), Listen: "127.0.0.1:0", Recording: dir,
		ServerLog: serverlog.Require, AllowLocal: true})
	require.NoError(t, err)
	u.Host = srv.Addr().String()
	client, err := sql.Open("pgx", u.String())
	require.NoError(t, err)
	testdb.Exec(t, client, "UPDATE item SET v = 1 WHERE id = 1")
	testdb.Exec(t, past, "UPDATE item SET v = 2 WHERE id = 1")
	testdb.Exec(t, client, "DO $$ BEGIN UPDATE item SET v = 3; END $$")
	require.NoError(t, client.Close())
	require.NoError(t, srv.Stop())

	r, err := recorder.Open(dir)
	require.NoError(t, err)
	defer r.Close()
	info := r.Runs()[0]
	require.Len(t, info.Log, 1)
	require.Empty(t, info.Log[0].Reason)
	require.Greater(t, info.Log[0].To, info.Log[0].From)
	var chain []uint64
	for l, err := range r.Logged(t.Context(), info.Run) {
		require.NoError(t, err)
		require.Equal(t, history.Committed, l.Status)
		require.Equal(t, target.Database, l.Database)
		require.Len(t, l.Writes, 1)
		w := &l.Writes[0]
		require.Equal(t, "public.item", w.Row.Table)
		if len(chain) > 0 {
			require.Equal(t, chain[len(chain)-1], w.TupleID.CTID)
		}
		chain = append(chain, w.TupleID.NewID)
	}
	require.Len(t, chain, 3)
}
