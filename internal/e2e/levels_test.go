package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestRecordedLevelIsNeverStrongerThanTheTransactions marks each transaction by a statement of its own and
// looks at what the recording says of it. What the server makes of SET TRANSACTION was measured: COMMIT
// and ROLLBACK use it up, a statement that fails does not, and one in a procedure outlives the CALL.
func TestRecordedLevelIsNeverStrongerThanTheTransactions(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE mark (id INT PRIMARY KEY, v INT)", "INSERT INTO mark VALUES (1,0)",
		"CREATE PROCEDURE once() SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
		"CREATE PROCEDURE weak() SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	variable := "tx_isolation"
	if testdb.EngineName() == testdb.MySQL.Name {
		variable = "transaction_isolation"
	}
	const once = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
	tests := []struct {
		before []string
		want   history.Level
	}{
		{nil, history.RepeatableRead},
		{[]string{once}, history.ReadCommitted},
		{[]string{once, "SET NAMES utf8mb4"}, history.ReadCommitted},
		{[]string{once, "COMMIT"}, history.LevelUnknown},
		{[]string{once, "ROLLBACK"}, history.LevelUnknown},
		{[]string{once, "!SELECT * FROM nowhere"}, history.LevelUnknown},
		{[]string{once, "BEGIN", "SELECT 1", "COMMIT"}, history.RepeatableRead},
		{[]string{"SET @@" + variable + " = CONCAT('READ-', 'UNCOMMITTED')"}, history.LevelUnknown},
		{[]string{"CALL once()"}, history.LevelUnknown},
		{[]string{"CALL weak()", "BEGIN", "SELECT v FROM mark", "COMMIT"}, history.ReadUncommitted},
		{[]string{"PREPARE p FROM '" + once + "'", "EXECUTE p"}, history.LevelUnknown},
		{[]string{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"}, history.Serializable},
	}
	for i, c := range tests {
		conn := b.conn(b.through)
		for _, s := range c.before {
			if s[0] == '!' {
				if _, err := conn.ExecContext(t.Context(), s[1:]); err == nil {
					t.Errorf("%s does not fail", s[1:])
				}
				continue
			}
			b.exec(conn, s)
		}
		b.exec(conn, "BEGIN", fmt.Sprintf("SELECT v AS m%d FROM mark WHERE id = 1", i), "COMMIT")
		conn.Close()
	}
	txns := b.txns()
	for i, c := range tests {
		got := find(t, txns, fmt.Sprintf("SELECT v AS m%d FROM mark WHERE id = ?", i))
		if got.Level != c.want {
			t.Errorf("after %q the transaction is recorded at %s, want %s", c.before, got.Level, c.want)
		}
	}
}

// TestSnapshotIsolationIsTheSessions has sessions on one server that differ in innodb_snapshot_isolation.
func TestSnapshotIsolationIsTheSessions(t *testing.T) {
	testdb.Only(t, "has no innodb_snapshot_isolation", "mariadb", testdb.MariaDB118.Name)
	b := newBench(t, nil, "CREATE TABLE mark (id INT PRIMARY KEY, v INT)", "INSERT INTO mark VALUES (1,0)")
	tests := []struct {
		before, inside []string
		want           history.Conflicts
	}{
		{[]string{"SET innodb_snapshot_isolation = OFF"}, nil, history.ConflictsAccepted},
		{[]string{"SET innodb_snapshot_isolation = ON"}, nil, history.ConflictsRefused},
		{[]string{"SET innodb_snapshot_isolation = ON"}, []string{"SET innodb_snapshot_isolation = OFF"},
			history.ConflictsAccepted},
		{[]string{"SET innodb_snapshot_isolation = OFF"}, []string{"SET innodb_snapshot_isolation = ON"},
			history.ConflictsAccepted},
	}
	for i, c := range tests {
		conn := b.conn(b.through)
		b.exec(conn, append(slices.Clone(c.before), "BEGIN",
			fmt.Sprintf("SELECT v AS m%d FROM mark WHERE id = 1", i))...)
		b.exec(conn, append(slices.Clone(c.inside), "UPDATE mark SET v = v + 1 WHERE id = 1", "COMMIT")...)
		conn.Close()
	}
	txns := b.txns()
	for i, c := range tests {
		if got := find(t, txns, fmt.Sprintf("SELECT v AS m%d FROM mark WHERE id = ?", i)); got.Conflicts != c.want {
			t.Errorf("%q, then %q inside: conflicts are %s, want %s", c.before, c.inside, got.Conflicts, c.want)
		}
	}
}

// find returns the transaction that has a statement of the given shape.
func find(t *testing.T, txns []*history.Txn, shape string) *history.Txn {
	t.Helper()
	for _, txn := range txns {
		if slices.ContainsFunc(txn.Stmts, func(s history.Stmt) bool { return s.Shape == shape }) {
			return txn
		}
	}
	t.Fatalf("no transaction has %s", shape)
	return nil
}

// TestTiDBsTransactionModeIsTheSessions has sessions that differ in tidb_txn_mode.
func TestTiDBsTransactionModeIsTheSessions(t *testing.T) {
	b := newTiDBBench(t, nil, "CREATE TABLE mark (id INT PRIMARY KEY, v INT)", "INSERT INTO mark VALUES (1,0)")
	modes := map[string]history.Conflicts{"pessimistic": history.ConflictsAccepted,
		"optimistic": history.ConflictsAtCommit}
	for mode := range modes {
		conn := b.conn(b.through)
		b.exec(conn, "SET tidb_txn_mode = '"+mode+"'", "BEGIN", "SELECT v AS "+mode+" FROM mark WHERE id = 1", "COMMIT")
		conn.Close()
	}
	txns := b.txns()
	for mode, want := range modes {
		if got := find(t, txns, "SELECT v AS "+mode+" FROM mark WHERE id = ?"); got.Conflicts != want {
			t.Errorf("%s: conflicts are %s, want %s", mode, got.Conflicts, want)
		}
	}
}
