package proxyserver

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/workload"
)

// TestTheRecordingHoldsTheTables has a test suite make a database, use it and drop it again.
func TestTheRecordingHoldsTheTables(t *testing.T) {
	for family, server := range map[string]func(t *testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(family, func(t *testing.T) {
			target, err := dsn.Parse(server(t))
			require.NoError(t, err)
			recording := filepath.Join(t.TempDir(), "rec")
			srv, err := Start(t.Context(), Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording,
				Definitions: true, Drain: time.Second, Logger: zaptest.NewLogger(t)})
			require.NoError(t, err)
			const database = "isotap_defined"
			do := func(database string, statements ...string) {
				dsn := srv.DSN(database)
				db, err := workload.DialectOf(dsn).Open(dsn, false)
				require.NoError(t, err)
				defer db.Close()
				for _, s := range statements {
					_, err := db.Exec(s)
					require.NoError(t, err, s)
				}
			}
			admin := target.Database
			do(admin, "DROP DATABASE IF EXISTS "+database, "CREATE DATABASE "+database)
			do(database, "CREATE TABLE shop (id INT PRIMARY KEY, owner INT NOT NULL UNIQUE)",
				"CREATE TABLE item (no INT PRIMARY KEY, shop INT, FOREIGN KEY (shop) REFERENCES shop (id) ON DELETE CASCADE)",
				"CREATE VIEW wares AS SELECT no FROM item WHERE shop > 5", "INSERT INTO shop VALUES (1, 1)")
			await(t, srv.writer, "CREATE VIEW")
			do(database, "ALTER TABLE shop ADD area INT")
			await(t, srv.writer, "area")
			do(admin, "DROP DATABASE "+database)
			require.NoError(t, srv.Stop())

			r, err := recorder.Open(recording)
			require.NoError(t, err)
			defer r.Close()
			text := recorded(t, r, srv.Run(), database)
			require.Contains(t, text, "FOREIGN KEY")
			require.Contains(t, text, "ON DELETE CASCADE")
			require.Contains(t, text, "UNIQUE")
			require.NotContains(t, text, "missing")
			require.NotContains(t, text, "isotap_rowid")
		})
	}
}

// await waits until what is recorded of definitions has a text.
func await(t *testing.T, w *recorder.Writer, text string) {
	t.Helper()
	for deadline := time.Now().Add(testdb.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		require.NoError(t, w.Flush(t.Context()))
		r, err := w.Snapshot()
		require.NoError(t, err)
		have := recorded(t, r, w.Run(), "isotap_defined")
		require.NoError(t, r.Close())
		if strings.Contains(have, text) {
			return
		}
	}
	t.Fatalf("no definition has %s", text)
}

// recorded writes what is recorded of a database's tables.
func recorded(t *testing.T, r *recorder.Reader, run history.Run, database string) string {
	t.Helper()
	var b strings.Builder
	for d, err := range r.Definitions(t.Context(), run) {
		require.NoError(t, err)
		if d.Database != database {
			continue
		}
		b.WriteString(d.SQL + d.References)
		if d.Missing != "" {
			b.WriteString("missing: " + d.Missing + "\n")
		}
	}
	return b.String()
}
