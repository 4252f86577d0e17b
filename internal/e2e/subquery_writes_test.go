package e2e

import (
	"database/sql"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/testdb"
)

// TestSubqueriesOfWritesAreObserved has writes whose subqueries show what they read, and others.
func TestSubqueriesOfWritesAreObserved(t *testing.T) {
	testdb.Only(t, "others have other forms", "mariadb")
	b := newBench(t, nil, append(notes(), "CREATE TABLE kept (id INT PRIMARY KEY, k INT)")...)
	c := b.conn(b.through)
	cases := []subqueryCase{
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ""},
		{"INSERT INTO doc SELECT 7, k FROM doc d WHERE id = 2 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = d.id AND n.id < 4)",
			"exact, 5 reads"},
		{"INSERT INTO kept SELECT id, k FROM doc WHERE id = 2 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 4)",
			"exact, 5 reads"},
		{"INSERT INTO kept SELECT 10 + id, (SELECT COUNT(*) FROM note n WHERE n.id < 4) FROM doc", "inexact (subquery), 6 reads"},
		{"INSERT INTO kept SELECT 20, 1 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = 7)", "exact, 1 reads"},
		{"INSERT INTO kept SELECT 21, 1 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = 1)", "inexact (subquery), 0 reads"},
		{"INSERT INTO kept SELECT 22, 1 FROM DUAL WHERE (SELECT MAX(n.id) FROM note n WHERE n.doc = 1) < 7", "exact, 2 reads"},
		{"INSERT INTO kept SELECT 23, 1 FROM DUAL WHERE NOT EXISTS (SELECT k FROM kept x WHERE x.id = 23) LIMIT 1", "exact, 1 reads"},
		{"REPLACE INTO kept SELECT 24, (SELECT COUNT(*) FROM note n WHERE n.doc = doc.id) FROM doc WHERE id = 2",
			"inexact (subquery), 66 reads"},
		{"INSERT INTO kept VALUES (25, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2))", "inexact (subquery), 1 reads"},
		{"DELETE FROM kept WHERE id = 25", "exact, 1 reads"},
		{"DELETE FROM kept WHERE k < (SELECT COUNT(*) FROM note n WHERE n.doc = 7)", "inexact (subquery), 0 reads"},
		{"DELETE FROM kept WHERE id = 10 + (SELECT MAX(n.doc) FROM note n WHERE n.id < 4)", "inexact (subquery), 1 reads"},
		{"UPDATE doc SET k = (SELECT MAX(n.id) FROM note n WHERE n.doc = 1) WHERE id = 1", "exact, 2 reads"},
		{"UPDATE doc SET k = (SELECT MAX(n.id) FROM note n WHERE n.doc = 1) WHERE id < 3", "inexact (subquery), 2 reads"},
		{"UPDATE doc SET k = (SELECT COUNT(*) FROM note n WHERE n.id < 5) WHERE id < 3", "exact, 7 reads"},
		{"UPDATE doc SET k = k + 1 WHERE id = 1 AND 4 < (SELECT COUNT(*) FROM note n WHERE n.id < 5)", "exact, 6 reads"},
		{"UPDATE doc SET k = k + 1 WHERE id = 9 AND 4 < (SELECT COUNT(*) FROM note n WHERE n.id < 5)",
			"inexact (subquery), 0 reads"},
		{"UPDATE doc SET k = ABS((SELECT COUNT(*) FROM note n WHERE n.doc = doc.id AND n.id < 9)) + 1 WHERE id = 2", "exact, 9 reads"},
		{"UPDATE doc SET k = (SELECT COUNT(*) FROM note n WHERE n.doc = doc.k)", "inexact (subquery), 3 reads"},
		{"UPDATE doc SET k = 1 WHERE id = 2 AND (SELECT COUNT(*) FROM note n WHERE n.doc = doc.id) > 3", "inexact (subquery), 65 reads"},
		{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", ""},
		{"UPDATE doc SET k = (SELECT MAX(n.id) FROM note n WHERE n.doc = 1) WHERE id = 1",
			"inexact (subquery), 1 reads"}, // the end of an index is all that is read
		{"UPDATE doc SET k = (SELECT SUM(n.id) FROM note n WHERE n.doc = 1) WHERE id = 2", "exact, 2 reads"},
		{"UPDATE doc SET k = 7 WHERE id = 1 AND EXISTS (SELECT 1 FROM note n WHERE n.doc < 3)", "exact, 2 reads"},
		{"UPDATE doc SET k = 8 WHERE id IN (SELECT n.doc FROM note n WHERE n.id > 40)", "exact, 2 reads"},
		{"UPDATE doc SET k = 9 WHERE id NOT IN (SELECT n.doc FROM note n WHERE n.id > 40)", "inexact (subquery), 2 reads"},
		{"INSERT INTO kept SELECT 40, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)", "exact, 3 reads"},
		{"INSERT INTO kept SELECT 41, 2 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = 7)", "exact, 1 reads"},
		{"INSERT INTO kept SELECT id, k FROM doc WHERE id = 1 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 4)",
			"inexact (subquery), 2 reads"},
		{"INSERT INTO kept VALUES (50, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2))", "exact, 3 reads"},
		{"INSERT INTO kept (k, id) VALUES (7, 51 + (SELECT n.doc FROM note n WHERE n.id = 4))", "exact, 2 reads"},
		{"INSERT INTO kept SET id = 52, k = EXISTS (SELECT 1 FROM note n WHERE n.doc < 3)", "exact, 2 reads"},
		{"INSERT INTO kept SET id = 54, k = (SELECT COUNT(*) FROM note n WHERE n.doc = 9)", "exact, 1 reads"},
		{"REPLACE INTO kept VALUES (50, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2))", "inexact (REPLACE), 3 reads"},
		{"INSERT INTO kept VALUES (55, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)), (56, 1)", "exact, 4 reads"},
		{"INSERT INTO kept VALUES (57, (SELECT COUNT(*) FROM note n WHERE n.doc = 2))", "inexact (subquery), 65 reads"},
		{"INSERT INTO kept VALUES (50, 1) ON DUPLICATE KEY UPDATE k = (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)", "exact, 3 reads"},
		{"INSERT INTO kept VALUES (58, 1) ON DUPLICATE KEY UPDATE k = (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)", "exact, 1 reads"},
		{"INSERT INTO kept VALUES (59, 1), (60, 2) ON DUPLICATE KEY UPDATE k = (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)",
			"inexact (subquery), 2 reads"},
		{"INSERT INTO kept SELECT 50, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2) ON DUPLICATE KEY UPDATE k = VALUES(k)", "exact, 3 reads"},
		{"INSERT INTO kept SELECT 50, 2 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = 7) ON DUPLICATE KEY UPDATE k = 3", "exact, 1 reads"},
		{"INSERT INTO kept SELECT 50, 2 ON DUPLICATE KEY UPDATE k = (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)", "exact, 3 reads"},
		{"INSERT INTO kept VALUES (50, 1 IN (SELECT n.doc FROM note n)) ON DUPLICATE KEY UPDATE k = VALUES(k) + 1", "inexact (subquery), 1 reads"},
		{"UPDATE kept SET k = 4 WHERE id = 50 OR id = (SELECT SUM(n.doc) FROM note n WHERE n.id < 15)", "inexact (subquery), 1 reads"},
		{"UPDATE kept SET k = 5 WHERE id = 50 OR id = (SELECT SUM(n.doc) FROM note n WHERE n.id > 2 AND n.id < 30)", "exact, 29 reads"},
		{"DELETE FROM doc WHERE id = 2 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id)", "exact, 2 reads"},
		{"DELETE FROM doc WHERE id IN (SELECT n.doc FROM note n WHERE n.id < 40)", "exact, 2 reads"},
		{"DELETE FROM kept WHERE id NOT IN (SELECT n.doc FROM note n WHERE n.id > 40)", "inexact (subquery), 19 reads"},
	}
	var recorded []subqueryCase
	for _, s := range cases {
		b.exec(c, s.sql)
		if s.want != "" {
			recorded = append(recorded, s)
		}
	}
	deletion, err := c.PrepareContext(t.Context(), "DELETE FROM kept WHERE id IN (SELECT n.doc FROM note n WHERE n.id > ?)")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		before, want string
		arg          any
	}{
		{"UPDATE kept SET k = 99 WHERE id = 2", "exact, 2 reads", 40},
		{"INSERT INTO kept VALUES (2, 6)", "inexact (parameter type), 1 reads", "40"},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "inexact (subquery), 0 reads", 40},
	} {
		b.exec(c, s.before)
		if _, err := deletion.ExecContext(t.Context(), s.arg); err != nil {
			t.Fatal(err)
		}
		if s.before[0] != 'S' {
			recorded = append(recorded, subqueryCase{s.before, "exact, 1 reads"})
		}
		recorded = append(recorded, subqueryCase{"the prepared DELETE", s.want})
	}
	deletion.Close()
	c.Close()
	holdSubqueries(t, b.txns(), recorded)
}

// TestWhatASubqueryOfAnUpdateReadsIsNotUpdated has an UPDATE's subquery see what another wrote since its transaction
// read the row: it writes nothing there, and so loses no update.
func TestWhatASubqueryOfAnUpdateReadsIsNotUpdated(t *testing.T) {
	testdb.Only(t, "others' do not show it", "mariadb", testdb.MariaDB118.Name)
	b := newBench(t, nil, notes()...)
	c, other := b.conn(b.through), b.conn(b.through)
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN", "SELECT id FROM note WHERE id = 1")
	b.exec(other, "UPDATE note SET doc = 9 WHERE id = 1")
	b.exec(c, "UPDATE doc SET k = (SELECT n.doc FROM note n WHERE n.id = 1) WHERE id = 1", "COMMIT")
	c.Close()
	other.Close()
	b.stop()
	r, err := analysis.Analyze(t.Context(), []string{b.recording}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.NonRepeatableRead {
		t.Errorf("%d findings: %v", len(r.Findings), r.Findings)
	}
}

// TestAnUpdateThatWaitsShowsTheSnapshotThatItsSubqueriesRead has one wait between two rows, while another transaction
// commits a version of what its subquery reads: at READ COMMITTED that reads the statement's snapshot for both.
func TestAnUpdateThatWaitsShowsTheSnapshotThatItsSubqueriesRead(t *testing.T) {
	testdb.Only(t, "others' do not show it", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	for _, of := range []struct {
		update, shape string
		sum           int
	}{
		{"UPDATE doc SET k = (SELECT COUNT(*) FROM note n WHERE n.id < 3 AND n.id <> doc.id) WHERE id < 3",
			"UPDATE doc SET k = (SELECT COUNT(*) FROM note n WHERE n.id < ? AND n.id <> doc.id) WHERE id < ?", 2 + 2},
		{"UPDATE doc SET k = 5 WHERE EXISTS (SELECT 1 FROM note n WHERE n.id < 3 AND n.doc = doc.id)", // a join
			"UPDATE doc SET k = ? WHERE EXISTS (SELECT ? FROM note n WHERE n.id < ? AND n.doc = doc.id)", 5 + 5},
	} {
		b := newBench(t, nil, notes()...)
		c, holds, other := b.conn(b.through), b.conn(b.direct), b.conn(b.through)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET innodb_lock_wait_timeout = 9")
		b.exec(holds, "BEGIN", "SELECT k FROM doc WHERE id = 2 FOR UPDATE")
		done := make(chan error, 1)
		go func() {
			_, err := c.ExecContext(t.Context(), of.update)
			done <- err
		}()
		b.awaitLock()
		b.exec(other, "UPDATE note SET doc = 50 WHERE id < 3", "INSERT INTO note VALUES (-1, 70)")
		b.exec(holds, "COMMIT")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		var sum int
		if err := b.direct.QueryRow("SELECT SUM(k) FROM doc").Scan(&sum); err != nil || sum != of.sum {
			t.Errorf("the rows' sum is %d, %v", sum, err)
		}
		for _, conn := range []*sql.Conn{c, holds, other} {
			conn.Close()
		}
		updates := stmts(b.txns(), of.shape)
		if len(updates) != 1 || recordedAs(&updates[0]) != "exact, 5 reads" {
			t.Fatalf("recorded is %v", updates)
		}
		for _, a := range updates[0].Accesses {
			if a.Op == history.Read && !a.Version.Initial() || a.Subquery != (a.Op == history.Read) {
				t.Errorf("%+v is not of the snapshot", a)
			}
		}
	}
}

// TestSubqueriesOfJoinedUpdatesAreObserved has UPDATEs of one table of which MySQL, and MariaDB from 11.1 on, make
// joins.
func TestSubqueriesOfJoinedUpdatesAreObserved(t *testing.T) {
	testdb.Only(t, "others' are not looked into", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	b := newBench(t, nil, notes()...)
	c := b.conn(b.through)
	cases := []subqueryCase{
		{"UPDATE doc SET k = 5 WHERE id IN (SELECT n.doc FROM note n WHERE n.id < 3)", "exact, 5 reads"},
		{"UPDATE doc SET k = k + 1 WHERE id = 1 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id)", "exact, 2 reads"},
		{"UPDATE doc SET k = 5 WHERE id = 6 OR EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 3)", "exact, 5 reads"},
		{"UPDATE doc SET k = 7 WHERE id NOT IN (SELECT n.doc FROM note n WHERE n.id < 2 AND n.doc < 2)", "exact, 2 reads"},
		{"UPDATE doc SET k = 7 WHERE EXISTS (SELECT 1 FROM note n WHERE n.id < 2)", "exact, 4 reads"},
		{"UPDATE doc SET k = 8 WHERE EXISTS (SELECT 1 FROM note n WHERE n.id < 0)", "inexact (subquery), 0 reads"},
		{"UPDATE doc SET k = k + 1 WHERE EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id)", "inexact (subquery), 2 reads"},
		{"UPDATE doc SET k = 9 WHERE id IN (SELECT n.doc FROM note n)", "inexact (subquery), 67 reads"},
	}
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	for _, s := range cases {
		b.exec(c, s.sql)
	}
	if testdb.EngineName() != "mariadb" {
		again := subqueryCase{cases[0].sql, "inexact (subquery), 2 reads"}
		cases = append(cases, again)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", again.sql)
	}
	c.Close()
	holdSubqueries(t, b.txns(), cases)
}

// TestSubqueriesOfMySQLsDeletesAreObserved has DELETEs where no RETURNING shows what they read: they collect it with
// the rows that go.
func TestSubqueriesOfMySQLsDeletesAreObserved(t *testing.T) {
	testdb.Only(t, "others return what they delete", testdb.MySQL.Name)
	b := newBench(t, nil, append(notes(), "INSERT INTO doc VALUES (3, 30), (4, 40)")...)
	c := b.conn(b.through)
	const sum = "(SELECT SUM(n.doc) FROM note n WHERE n.id < 2)"
	cases := []subqueryCase{
		{"DELETE FROM doc WHERE k > 30 + " + sum, "exact, 3 reads"},
		{"DELETE FROM doc WHERE id = 9 AND k > " + sum, "inexact (subquery), 0 reads"},
		{"DELETE FROM doc WHERE id = 3 AND EXISTS (SELECT 1 FROM note n WHERE n.id < 2)", "inexact (subquery), 1 reads"},
		{"DELETE FROM doc WHERE k < (SELECT n.doc FROM note n WHERE n.id = 4) * 6 OR k = 20", "inexact (subquery), 2 reads"},
	}
	for _, s := range cases {
		b.exec(c, s.sql)
	}
	committed := subqueryCase{"DELETE FROM doc WHERE k > " + sum, "inexact (subquery), 0 reads"}
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", committed.sql)
	c.Close()
	holdSubqueries(t, b.txns(), append(cases, committed))
}

// TestSubqueriesThatFindNoneAreObserved has NOT EXISTS in the conditions of reads and writes, at all levels: the rows
// that meet it hang on no row that a subquery found.
func TestSubqueriesThatFindNoneAreObserved(t *testing.T) {
	testdb.Only(t, "others have other forms", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	cases := []subqueryCase{
		{"SELECT k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id > 1000)", "exact, 2 reads"},
		{"SELECT COUNT(*) FROM doc WHERE k > 1 AND NOT (EXISTS (SELECT 1 FROM note n LEFT JOIN kept ON kept.id = n.id WHERE n.doc = doc.id + 1 LIMIT 1))",
			"exact, 1 reads"},
		{"UPDATE doc SET k = k + 1 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id + 1)", "exact, 1 reads"},
		{"DELETE FROM kept WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = kept.id)", "exact, 1 reads"},
		{"INSERT INTO kept SELECT 80, 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM kept x WHERE x.id = 80) LIMIT 1", "exact, 1 reads"},
		{"INSERT INTO kept SELECT 80, 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM kept x WHERE x.id = 80) LIMIT 1",
			"inexact (subquery), 0 reads"},
		{"INSERT INTO kept (id, k) SELECT * FROM (SELECT 81 AS a, 2 AS b) AS tmp WHERE NOT EXISTS (SELECT id FROM kept WHERE id = 81) LIMIT 1",
			"exact, 1 reads"},
		{"INSERT INTO kept SELECT id + 90, k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note y WHERE y.doc = doc.id + 90)", "exact, 4 reads"},
		{"INSERT INTO kept SELECT id + 90, k FROM doc WHERE NOT EXISTS (SELECT 1 FROM note y WHERE y.doc = doc.id)", "exact, 0 reads"},
		{"SELECT k FROM doc WHERE id = 9 AND NOT EXISTS (SELECT 1 FROM note n WHERE n.id = 700)", "inexact (subquery), 0 reads"},
	}
	for _, level := range []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		b := newBench(t, nil, append(notes(), "CREATE TABLE kept (id INT PRIMARY KEY, k INT)", "INSERT INTO kept VALUES (2, 1), (70, 1)")...)
		c := b.conn(b.through)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
		for _, s := range cases {
			b.exec(c, s.sql)
		}
		c.Close()
		t.Run(level, func(t *testing.T) { holdSubqueries(t, b.txns(), cases) })
	}
}

// TestSubqueriesOfWritesAreObservedWhereMySQLLocksThem has them at levels at which the server locks what they read.
func TestSubqueriesOfWritesAreObservedWhereMySQLLocksThem(t *testing.T) {
	testdb.Only(t, "others have other forms", testdb.MySQL.Name)
	cases := []subqueryCase{
		{"INSERT INTO kept VALUES (50, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2))", "exact, 3 reads"},
		{"INSERT INTO kept (k, id) VALUES (7, 51 + (SELECT n.doc FROM note n WHERE n.id = 4))", "exact, 2 reads"},
		{"INSERT INTO kept SELECT 40, (SELECT COUNT(*) FROM note n WHERE n.doc = 9)", "exact, 1 reads"},
		{"REPLACE INTO kept SELECT id, (SELECT COUNT(*) FROM note n WHERE n.id IN (1, 7) AND n.doc = 2) FROM doc", "exact, 6 reads"},
		{"UPDATE doc SET k = (SELECT SUM(n.id) FROM note n WHERE n.doc = doc.id) WHERE id = 1", "exact, 2 reads"},
		{"UPDATE doc SET k = k + 1 WHERE id = 2 AND 3 > (SELECT COUNT(*) FROM note n WHERE n.doc = 1)", "exact, 2 reads"},
		{"UPDATE doc SET k = (SELECT COUNT(*) FROM note n WHERE n.doc = doc.id + 5)", "inexact (subquery), 2 reads"},
		{"INSERT INTO kept SET id = 58, k = EXISTS (SELECT 1 FROM note n WHERE n.doc < 3)", "exact, 2 reads"},
		{"INSERT INTO kept SET id = 57, k = (SELECT COUNT(*) FROM note n WHERE n.doc = 2)", "inexact (subquery), 65 reads"},
	}
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		b := newBench(t, nil, append(notes(), "CREATE TABLE kept (id INT PRIMARY KEY, k INT)")...)
		c := b.conn(b.through)
		b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
		for _, s := range cases {
			b.exec(c, s.sql)
		}
		c.Close()
		t.Run(level, func(t *testing.T) { holdSubqueries(t, b.txns(), cases) })
	}
}
