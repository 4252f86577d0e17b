package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestLockWaitTimeoutsRollBackWhatTheServerSays has a client run into a lock wait timeout. With
// innodb_rollback_on_timeout, which only a server's start can set, it undoes the transaction, otherwise the statement.
func TestLockWaitTimeoutsRollBackWhatTheServerSays(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for locks")
	}
	timeout := 0
	if testdb.EngineName() == testdb.MySQL.Name {
		timeout = 1 // as short as it can be
	}
	const write, locked = "@write", "UPDATE t SET v = v + 1 WHERE id IN (2, 9)"
	plays := []struct {
		steps          []string
		statement, all string // how the transactions ended, where it undoes the one or the other
	}{
		{[]string{"BEGIN", write, locked, write, "COMMIT"}, "committed", "aborted committed"},
		{[]string{"BEGIN", write, locked, write, "ROLLBACK"}, "aborted", "aborted committed"},
		{[]string{"SET autocommit = 0", write, locked, write, "COMMIT"}, "committed", "aborted committed"},
		{[]string{"SET autocommit = 0", write, locked, write, "ROLLBACK"}, "aborted", "aborted aborted"},
		{[]string{"BEGIN", write, "SAVEPOINT s", write, locked, "ROLLBACK TO s", write, "COMMIT"},
			"committed", "aborted committed"},
		{[]string{"BEGIN", write, "CALL waits()", write, "COMMIT"}, "committed", "aborted committed"},
		{[]string{"BEGIN", write, "CALL takes()", write, "COMMIT"}, "committed", "aborted committed"},
		{[]string{"BEGIN", write, "SELECT v FROM t WHERE id = 9 FOR UPDATE", write, "COMMIT"},
			"committed", "aborted committed"},
		{[]string{"BEGIN", write, locked}, "aborted", "aborted"},
		{[]string{write, locked, write}, "committed aborted committed", "committed aborted committed"},
		{[]string{"XA START '@x'", write, locked, "XA END '@x'", "XA PREPARE '@x'", "XA ROLLBACK '@x'", write},
			"aborted committed", "aborted committed"},
	}
	setup := []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (9, 1)",
		"CREATE PROCEDURE waits() BEGIN UPDATE t SET v = v + 1 WHERE id IN (2, 9); END",
		"CREATE PROCEDURE takes() BEGIN DECLARE CONTINUE HANDLER FOR 1205 BEGIN END; " +
			"UPDATE t SET v = v + 1 WHERE id IN (2, 9); END"}
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprint("rolls all back: ", all), func(t *testing.T) {
			var b *bench
			if all {
				testdb.Only(t, "the option is one of a server's start", "mariadb")
				server, err := testdb.Start(t.Context(), testdb.Options{Args: slices.Concat(testdb.BinaryLog,
					[]string{"--innodb-rollback-on-timeout", "--innodb-lock-wait-timeout=0"})})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { server.Stop() })
				b = newBinlogBench(t, server, "timeouts", setup...)
			} else {
				b = newBench(t, nil, setup...)
				b.setGlobal("innodb_lock_wait_timeout", timeout)
				// A server of another engine may have been started with it.
				if err := b.direct.QueryRow("SELECT @@innodb_rollback_on_timeout").Scan(&all); err != nil {
					t.Fatal(err)
				}
			}
			holder := b.conn(b.direct)
			b.exec(holder, "BEGIN", "SELECT * FROM t WHERE id = 9 FOR UPDATE")
			for _, p := range plays {
				b.sayFarewell(p.steps)
			}
			b.exec(holder, "ROLLBACK")
			txns := b.txns()
			holdAgainst(t, txns, b.lists("t"))
			got := make(map[history.SessionID]string)
			for _, x := range txns {
				got[x.Session] += x.Status.String() + " "
			}
			for i, session := range slices.Sorted(maps.Keys(got)) {
				want := plays[i].statement
				if all {
					want = plays[i].all
				}
				if got := strings.TrimSpace(got[session]); got != want {
					t.Errorf("%q: %s, want %s", plays[i].steps, got, want)
				}
			}
		})
	}
}
