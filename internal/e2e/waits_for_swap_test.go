package e2e

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestWhoWaitsForASwapOfTablesReadsTheOther has a statement wait for the lock of two renames. It was planned by the
// names as they were, and reads the table that has the name then.
func TestWhoWaitsForASwapOfTablesReadsTheOther(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec,
		pgx.QueryExecModeCacheStatement} {
		for _, begun := range []bool{false, true} {
			b := newPostgresBench(t, "CREATE TABLE a (id int PRIMARY KEY, v int)",
				"CREATE TABLE b (id int PRIMARY KEY, v int)", "INSERT INTO a VALUES (1, 0), (2, 0)",
				"INSERT INTO b VALUES (1, 7), (2, 7)")
			definer := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			waiter := b.connect(b.through(), mode, "default_transaction_isolation", "repeatable read")
			b.exec(definer, "UPDATE a SET v = v + 1 WHERE id = 1")
			b.exec(waiter, "SELECT v FROM a WHERE id = 1")
			if begun {
				b.exec(waiter, "BEGIN")
			}
			b.exec(definer, "BEGIN", "ALTER TABLE a RENAME TO z", "ALTER TABLE b RENAME TO a", "ALTER TABLE z RENAME TO b")
			read := make(chan struct{})
			go func() {
				defer close(read)
				b.exec(waiter, "SELECT v FROM a WHERE id = 1", "SELECT v FROM a WHERE id = 2")
			}()
			b.awaitLock()
			b.exec(definer, "COMMIT")
			<-read
			if begun {
				b.exec(waiter, "COMMIT")
			}
			b.exec(waiter, "SELECT v FROM b", "UPDATE b SET v = v + 1 WHERE id = 1", "SELECT v FROM a",
				"UPDATE a SET v = v + 1 WHERE id = 1", "SELECT v FROM b")
			for _, f := range b.analyze().Findings {
				t.Errorf("mode %s, in a transaction %t: %s %s: %v", mode, begun, f.Class, f.Anomaly, f.Explanation)
			}
		}
	}
}
