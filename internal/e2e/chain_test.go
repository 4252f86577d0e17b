package e2e

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
)

func TestTextsOfSeveralStatementsAreObserved(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, test := range []struct {
		name, want string
		fails      bool
		steps      []string
	}{
		{"a transaction in a text", `T1 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 SELECT exact SELECT balance FROM account WHERE id = ? read(r1,0)
  3 UPDATE exact UPDATE account SET balance = balance + ? WHERE id = ? update(r1,0)
  4 COMMIT nothing COMMIT
T2 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,T1.3)
T3 committed REPEATABLE READ implicit
  1 INSERT exact INSERT INTO account VALUES (?, ?, ?) insert(r2,0)
`, false, []string{"BEGIN; SELECT balance FROM account WHERE id = 1; UPDATE account SET balance = balance + 1 " +
			"WHERE id = 1; COMMIT; " +
			"UPDATE account SET balance = 5 WHERE id = 1; INSERT INTO account VALUES (3, 'eve', 1)"}},
		{"a transaction that a text ends", `T1 aborted REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
  3 ROLLBACK nothing ROLLBACK
T2 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 DELETE exact DELETE FROM account WHERE id = ? delete(r1,0)
  3 COMMIT nothing COMMIT
`, false, []string{"BEGIN", "UPDATE account SET balance = 5 WHERE id = 1; ROLLBACK; BEGIN; " +
			"DELETE FROM account WHERE id = 1", "COMMIT"}},
		{"an error", `T1 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
T2 aborted REPEATABLE READ implicit
  1 INSERT exact INSERT INTO account VALUES (?, ?, ?) void
`, true, []string{"UPDATE account SET balance = 5 WHERE id = 1; INSERT INTO account VALUES (1, 'dup', 1); DELETE FROM account"}},
		{"an error in a transaction", `T1 aborted REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
  3 SELECT opaque SELECT nothing FROM account (refused with error 1054) void
  4 ROLLBACK nothing ROLLBACK
`, true, []string{"BEGIN; UPDATE account SET balance = 5 WHERE id = 1; SELECT nothing FROM account; COMMIT", "ROLLBACK"}},
		{"a compound statement", `T1 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
T2 committed REPEATABLE READ implicit
  1 OTHER opaque BEGIN NOT ATOMIC SELECT ?; SELECT ?; END; SELECT ? (multi-statement)
`, false, []string{"UPDATE account SET balance = 5 WHERE id = 1; BEGIN NOT ATOMIC SELECT 1; SELECT 2; END; SELECT 3"}},
		{"levels", `T1 committed SERIALIZABLE
  1 BEGIN nothing BEGIN
  2 SELECT exact SELECT owner FROM account WHERE id = ? read(r1,0)
  3 COMMIT nothing COMMIT
T2 committed READ COMMITTED implicit
  1 SELECT exact SELECT owner FROM account WHERE id = ? read(r1,0)
`, false, []string{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN; SELECT owner FROM account WHERE id = 1; COMMIT; " +
			"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT owner FROM account WHERE id = 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(test.want, "NOT ATOMIC") {
				testdb.Only(t, "compound statements are MariaDB's", "mariadb", "mariadb118")
			}
			b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
			c := b.conn(b.open("multiStatements=true"))
			failed := false
			for _, s := range test.steps {
				_, err := c.ExecContext(t.Context(), s)
				failed = failed || err != nil
			}
			if failed != test.fails {
				t.Fatalf("failed: %t", failed)
			}
			c.Close()
			if got := story(b.txns()); got != test.want {
				t.Errorf("recorded:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestMultiStatementIsObservedToItsEnd: text of many statements is observed to its end.
func TestMultiStatementIsObservedToItsEnd(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',0)")
	c := b.conn(b.open("multiStatements=true"))
	// More packets than one byte counts.
	b.exec(c, "BEGIN; "+strings.Repeat("UPDATE account SET balance = balance + 1 WHERE id = 1; ", 400)+"COMMIT")
	var balance int
	if err := c.QueryRowContext(t.Context(), "SELECT balance FROM account").Scan(&balance); err != nil ||
		balance != 400 {
		t.Fatalf("balance %d, %v", balance, err)
	}
	c.Close()
	writes := 0
	for _, s := range stmts(b.txns(), "UPDATE account SET balance = balance + ? WHERE id = ?") {
		writes += len(s.Accesses)
	}
	if writes != 400 {
		t.Errorf("%d writes recorded of 400", writes)
	}
}
