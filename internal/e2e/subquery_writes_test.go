package e2e

import (
	"testing"

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
		{"DELETE FROM kept WHERE k < (SELECT COUNT(*) FROM note n WHERE n.doc = 7)", "inexact (subquery), 0 reads"},
		{"DELETE FROM kept WHERE id = 10 + (SELECT MAX(n.doc) FROM note n WHERE n.id < 4)", "inexact (subquery), 1 reads"},
		{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", ""},
		{"INSERT INTO kept SELECT 40, (SELECT SUM(n.doc) FROM note n WHERE n.id < 2)", "exact, 3 reads"},
		{"INSERT INTO kept SELECT 41, 2 WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.doc = 7)", "exact, 1 reads"},
		{"INSERT INTO kept SELECT id, k FROM doc WHERE id = 1 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id AND n.id < 4)",
			"inexact (subquery), 2 reads"},
		{"DELETE FROM doc WHERE id = 2 AND EXISTS (SELECT 1 FROM note n WHERE n.doc = doc.id)", "exact, 2 reads"},
		{"DELETE FROM doc WHERE id IN (SELECT n.doc FROM note n WHERE n.id < 40)", "exact, 2 reads"},
		{"DELETE FROM kept WHERE id NOT IN (SELECT n.doc FROM note n WHERE n.id > 40)", "inexact (subquery), 9 reads"},
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
