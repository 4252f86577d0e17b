package tap

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestCrashedPostgreSQLHasWhatTheRecordingSays kills one of a server's processes under load, at which PostgreSQL ends all
// sessions and recovers: what is recorded as committed is there then, and what is recorded as aborted is not.
func TestCrashedPostgreSQLHasWhatTheRecordingSays(t *testing.T) {
	server, err := testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	makeDoomedPostgresTables(t, db)
	target, err := catalog.ParseTarget(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(t.TempDir(), "rec")
	tap, err := Start(context.Background(), Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording, Args: true})
	if err != nil {
		t.Fatal(err)
	}
	client := &doomed{t: t, addr: tap.Addr().String(), open: openPgx("postgres")}
	var clients sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	for i := range postgresWorks {
		clients.Go(func() {
			client.load(t.Context(), &postgresWorks[i], i+1, 0, func(marker string) {
				mu.Lock()
				defer mu.Unlock()
				acknowledged = append(acknowledged, marker)
			})
		})
	}
	time.Sleep(400 * time.Millisecond)
	var pid int
	if err := db.QueryRow("SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	if err := tap.Stop(); err != nil {
		t.Error(err)
	}
	for db.Ping() != nil { // it recovers
		time.Sleep(10 * time.Millisecond)
	}
	recorded, _ := recordedTxns(t, recording)
	var there []string
	for _, e := range readStoredOnPostgres(t, db) {
		there = append(there, e.marker)
	}
	indeterminate := 0
	for marker, txn := range recorded {
		inserts := slices.ContainsFunc(txn.Stmts, func(s history.Stmt) bool { return s.Kind == history.Insert })
		if txn.Status == history.Indeterminate {
			indeterminate++
		} else if is := slices.Contains(there, marker); inserts && is != (txn.Status == history.Committed) {
			t.Errorf("%s is recorded as %s; in the table: %t", marker, txn.Status, is)
		}
	}
	for _, marker := range acknowledged {
		if txn := recorded[marker]; txn == nil || txn.Status != history.Committed {
			t.Errorf("%s was acknowledged and is recorded as %+v", marker, txn)
		}
	}
	t.Logf("%d acknowledged, %d recorded, %d of them indeterminate", len(acknowledged), len(recorded), indeterminate)
}
