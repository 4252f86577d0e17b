package e2e

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestSubqueriesOfUpdatesTellTheVersionThatTheyReadOnTiDB has UPDATEs wait for each other and be tried again, at both
// levels, while another session changes what their subqueries read. Outside of a transaction that somebody began TiDB
// may plan a statement anew, so that nothing is told there. Which rows an UPDATE changed tells the value that
// its subquery had, and the version that it is recorded to have read must be of that value.
func TestSubqueriesOfUpdatesTellTheVersionThatTheyReadOnTiDB(t *testing.T) {
	b := newTiDBBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)", "CREATE TABLE u (id INT PRIMARY KEY, v INT, n VARCHAR(9))",
		"INSERT INTO t VALUES (1, 5, 0), (2, 5000, 0)", "INSERT INTO u VALUES (1, 3, 'x'), (2, 4, 'y'), (3, 1, 'x')")
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			c, r := b.conn(b.through), rand.New(rand.NewPCG(7, uint64(i)))
			run := func(text string) { // some conflict
				if prepared, err := c.PrepareContext(t.Context(), text); err == nil && r.IntN(2) == 0 {
					prepared.ExecContext(t.Context())
					prepared.Close()
					return
				}
				c.ExecContext(t.Context(), text)
			}
			for range 120 {
				if i == 0 {
					run([]string{"UPDATE u SET v = 3 WHERE id = 1", "UPDATE u SET v = 900 + 100 WHERE id = 1"}[r.IntN(2)])
					continue
				}
				run("SET SESSION TRANSACTION ISOLATION LEVEL " + []string{"READ COMMITTED", "REPEATABLE READ"}[r.IntN(2)])
				run([]string{"BEGIN PESSIMISTIC", "BEGIN OPTIMISTIC", "COMMIT"}[r.IntN(3)])
				run([]string{"SELECT id FROM t WHERE id = 9", "UPDATE t SET w = w + 1 WHERE id = 2", "DO SLEEP(0.002)"}[r.IntN(3)])
				run("UPDATE t SET w = w + 2 WHERE v > " + []string{"(SELECT MAX(v) FROM u WHERE n = 'x')", "(SELECT v FROM u WHERE id = 1)",
					"(SELECT SUM(v) FROM u WHERE n = 'x' AND id < 9)"}[r.IntN(3)])
				run("COMMIT")
			}
		})
	}
	clients.Wait()
	txns, told := b.txns(), 0
	small := map[history.Tag]bool{{}: true} // versions with a value under which both rows change
	for _, txn := range txns {
		for _, s := range txn.Stmts {
			if s.Kind == history.Update && len(s.Accesses) > 0 && strings.HasPrefix(s.Shape, "UPDATE u SET v = ? WHERE") {
				small[history.Tag{Txn: txn.ID, Stmt: s.Num}] = true
			}
		}
	}
	for _, txn := range txns {
		for _, s := range txn.Stmts {
			if !strings.Contains(s.Shape, "(SELECT") || s.Observation != history.Exact {
				continue
			}
			changed, of := 0, history.Tag{}
			for _, a := range s.Accesses {
				switch {
				case a.Op == history.UpdateRow:
					changed++
				case a.Version != (history.Tag{}):
					of = a.Version
				}
			}
			if told++; txn.Implicit {
				t.Errorf("%s is exact outside of a transaction", s.Shape)
			}
			if (changed == 2) != (small[of]) {
				t.Errorf("%v: %s changed %d rows, and read version %v of u", txn.Level, s.Shape, changed, of)
			}
		}
	}
	if t.Logf("%d UPDATEs told what their subqueries read", told); told < 60 {
		t.Errorf("only %d", told)
	}
}
