package e2e

import (
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/testdb"
)

// TestMySQLSnapshotBeforeTheFirstReadIsNoStaleRead is [TestSnapshotBeforeTheFirstReadIsNoStaleRead] on MariaDB. EXPLAIN
// and CHECKSUM TABLE take the snapshot, the others might.
func TestMySQLSnapshotBeforeTheFirstReadIsNoStaleRead(t *testing.T) {
	const read = "SELECT v FROM t WHERE id = 1"
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0)")
	db := b.open("")
	db.SetMaxIdleConns(0) // autocommit would stay off
	for _, begin := range [][]string{{"SET autocommit = 0"}, {"BEGIN", read, "COMMIT AND CHAIN"}} {
		for _, early := range []string{"SELECT 1", "EXPLAIN " + read, "SHOW TABLE STATUS", "DESCRIBE t", "CHECKSUM TABLE t",
			"PREPARE s FROM '" + read + "'"} {
			reader := b.conn(db)
			b.exec(reader, begin...)
			b.exec(reader, early)
			b.exec(db, "UPDATE t SET v = v + 1 WHERE id = 1")
			b.exec(reader, read, "COMMIT")
			reader.Close()
		}
	}
	holdHealthy(t, b.analyze(), true)
}

// TestSnapshotOfWhatReadsNoRowIsTheTransactions has transactions whose snapshot is older than the row that they lock
// before their first plain read, which does not see it.
func TestSnapshotOfWhatReadsNoRowIsTheTransactions(t *testing.T) {
	const read = "SELECT v FROM t WHERE id = 1"
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0), (2, 0)")
	db := b.open("")
	early := []string{"EXPLAIN " + read, "DESC FORMAT=JSON " + read, "CHECKSUM TABLE t"}
	if testdb.EngineName() != testdb.MySQL.Name {
		early = append(early, "EXPLAIN EXTENDED "+read) // an error there, from 8.0 on
	}
	for _, early := range early {
		reader := b.conn(db)
		b.updatesCurrentRows(reader)
		b.exec(reader, "BEGIN", early)
		b.exec(db, "UPDATE t SET v = v + 1")
		b.exec(reader, "SELECT v FROM t WHERE id = 2 LOCK IN SHARE MODE", read, "COMMIT")
		reader.Close()
	}
	for _, f := range b.analyze().Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("%s: %v%s", f.Anomaly, f.Explanation, transactionsOf(f))
		}
	}
}
