package e2e

import "testing"

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
