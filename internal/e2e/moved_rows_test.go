package e2e

import (
	"testing"

	"github.com/isotap/isotap/analyzer"
)

// TestOldPlaceOfARowThatWasDeletedIsTold has a transaction delete a row under the key that another gave it, and then
// read it where its snapshot has it. InnoDB shows it there, which its makers know as a bug (MySQL 114389): the
// transaction does not see what it did.
func TestOldPlaceOfARowThatWasDeletedIsTold(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0), (2, 0)")
	reader, mover := b.conn(b.through), b.conn(b.through)
	b.updatesCurrentRows(reader)
	b.exec(reader, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", "SELECT v FROM t WHERE id = 1")
	b.exec(mover, "UPDATE t SET id = 12 WHERE id = 2")
	b.exec(reader, "DELETE FROM t WHERE id = 12")
	var id int
	if err := reader.QueryRowContext(t.Context(), "SELECT id FROM t WHERE id > 1").Scan(&id); err != nil || id != 2 {
		t.Fatalf("the snapshot shows the row under %d (%v), want 2", id, err)
	}
	b.exec(reader, "COMMIT")
	reader.Close()
	mover.Close()
	var told []analyzer.Anomaly
	for _, f := range b.analyze().Findings {
		if f.Class == analyzer.Violation {
			told = append(told, f.Anomaly)
		}
	}
	if len(told) != 1 || told[0] != analyzer.Internal {
		t.Errorf("violations %v are told, want %s", told, analyzer.Internal)
	}
}
