package e2e

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
)

// TestHealthyServerIsNotBlamed has transactions do what their levels permit, in ways that look like what the
// levels forbid: a read without locks in a statement that elsewhere locks, and a row of the transaction's
// own that still has the tag of another.
func TestHealthyServerIsNotBlamed(t *testing.T) {
	for _, c := range []struct {
		name, level string
		reads       []string // of the one at the level, the other's writes in between
		writes      []string
		more        []string
	}{
		{"INSERT ... SELECT reads what is rolled back", "READ UNCOMMITTED", nil,
			[]string{"UPDATE account SET balance = 11 WHERE id = 1"},
			[]string{"INSERT INTO copy SELECT id, owner, balance FROM account WHERE id = 1"}},
		{"INSERT ... SELECT leaves its rows to others", "READ COMMITTED",
			[]string{"INSERT INTO copy SELECT id, owner, balance FROM account WHERE id = 1"},
			[]string{"UPDATE account SET balance = 11 WHERE id = 1", "UPDATE account SET balance = 22 WHERE id = 2",
				"COMMIT"},
			[]string{"SELECT balance FROM account WHERE id = 2"}},
		{"a row that an UPDATE of two tables changed", "REPEATABLE READ",
			[]string{"SELECT balance FROM account WHERE id = 2"},
			[]string{"UPDATE account SET balance = 11 WHERE id = 1", "UPDATE account SET balance = 22 WHERE id = 2",
				"COMMIT"},
			[]string{"UPDATE account a JOIN copy c ON c.id = a.id + 6 SET a.balance = a.balance + 1, c.balance = 1 WHERE a.id = 1",
				"SELECT balance FROM account WHERE id IN (1, 2)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil, account, strings.Replace(account, "account", "copy", 1),
				"INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)", "INSERT INTO copy VALUES (7,'ann',10)")
			reader, writer := b.conn(b.through), b.conn(b.through)
			b.updatesCurrentRows(reader)
			b.exec(reader, "SET SESSION TRANSACTION ISOLATION LEVEL "+c.level, "BEGIN")
			b.exec(reader, c.reads...)
			b.exec(writer, append([]string{"BEGIN"}, c.writes...)...)
			b.exec(reader, c.more...)
			b.exec(reader, "COMMIT")
			b.exec(writer, "ROLLBACK")
			reader.Close()
			writer.Close()
			txns := b.txns()
			r, err := analyzer.Analyze(b.runs(), txns)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) == 0 {
				t.Error("nothing was found: the test shows nothing")
			}
			for _, f := range r.Findings {
				if f.Class != analyzer.Hazard {
					t.Errorf("%v %v at %s", f.Class, f.Anomaly, c.level)
				}
			}
		})
	}
}
