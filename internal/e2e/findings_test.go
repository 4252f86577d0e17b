package e2e

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
)

// The traps of in-statement capture that were measured before isotap was written, each as a test:
// capture under lock waits, deadlocks and errors half-way, and what a wider read may lock.

// later runs a statement that has to wait, and returns a channel on which its error comes.
func later(c *sql.Conn, statement string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.ExecContext(context.Background(), statement)
		done <- err
	}()
	time.Sleep(200 * time.Millisecond) // it waits for its lock by now
	return done
}

// TestUpdateThatWaitedIsCapturedOnce has an UPDATE wait for a row in its middle: it goes on with the row's
// newest version, and no row is tagged or collected twice.
func TestUpdateThatWaitedIsCapturedOnce(t *testing.T) {
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		t.Run(level, func(t *testing.T) {
			b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20),(3,'cid',30)")
			one, two := b.conn(b.through), b.conn(b.open(""))
			b.exec(two, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
			b.exec(one, "BEGIN", "UPDATE account SET balance = balance + 1 WHERE id = 2")
			done := later(two, "UPDATE account SET balance = balance * 2 WHERE balance > 5")
			b.exec(one, "COMMIT")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			one.Close()
			two.Close()
			txns := b.txns()
			waited := stmts(txns, "UPDATE account SET balance = balance * ? WHERE balance > ?")
			if len(waited) != 1 || waited[0].Observation != history.Exact || len(waited[0].Accesses) != 3 {
				t.Fatalf("the UPDATE that waited: %+v", waited)
			}
			met := 0
			for _, a := range waited[0].Accesses {
				if !a.Version.Initial() {
					met++
				}
			}
			if met != 1 {
				t.Errorf("%d of 3 versions are the other transaction's, want 1", met)
			}
			for id, list := range b.lists("account") {
				if tags, err := history.ParseWList(list); err != nil || hasTwice(tags) {
					t.Errorf("row %s has the list %s, %v", id, list, err)
				}
			}
			holdAgainst(t, txns, b.lists("account"))
		})
	}
}

func hasTwice(tags []history.Tag) bool {
	seen := make(map[history.Tag]bool)
	for _, tag := range tags {
		if seen[tag] {
			return true
		}
		seen[tag] = true
	}
	return false
}

// TestDeadlockVoidsTheVictimAndKeepsTheSurvivor lets two updates meet head-on: the survivor's entries are
// exact, the victim left nothing.
func TestDeadlockVoidsTheVictimAndKeepsTheSurvivor(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
	one, two := b.conn(b.through), b.conn(b.open(""))
	b.exec(one, "BEGIN", "UPDATE account SET balance = 11 WHERE id = 1")
	b.exec(two, "BEGIN", "UPDATE account SET balance = 22 WHERE id = 2")
	done := later(two, "UPDATE account SET balance = 12 WHERE id = 1")
	_, errOne := one.ExecContext(t.Context(), "UPDATE account SET balance = 21 WHERE id = 2")
	errTwo := <-done
	if (errOne == nil) == (errTwo == nil) {
		t.Fatalf("no deadlock, or two: %v, %v", errOne, errTwo)
	}
	for _, c := range []*sql.Conn{one, two} {
		b.exec(c, "COMMIT")
		c.Close()
	}
	writes := make(map[history.Status]int)
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			if s.Kind != history.Update {
				continue
			}
			if s.Observation != history.Exact && !s.Void {
				t.Errorf("%s is %v %s", s.Shape, s.Observation, s.Reason)
			}
			writes[txn.Status] += len(s.Accesses)
		}
	}
	if writes[history.Committed] != 2 || writes[history.Aborted] > 1 {
		t.Errorf("writes by outcome: %v; want two committed, at most the first of the victim", writes)
	}
	holdAgainst(t, b.txns(), b.lists("account"))
}

// TestErrorHalfWayLeavesNoWrite has statements fail behind rows that they changed already: what they
// collected is void, and the next statement of the transaction is exact all the same.
func TestErrorHalfWayLeavesNoWrite(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20),(3,'cid',30),(4,'dan',40)")
	one, two := b.conn(b.through), b.conn(b.direct)
	b.exec(one, "SET innodb_lock_wait_timeout = 1", "BEGIN")
	if _, err := one.ExecContext(t.Context(),
		"UPDATE account SET id = id + 1 WHERE id < 3 ORDER BY id DESC, balance LIMIT 2"); err == nil ||
		!strings.Contains(err.Error(), "1062") {
		t.Fatalf("no duplicate key: %v", err)
	}
	b.exec(two, "BEGIN", "UPDATE account SET owner = 'dot' WHERE id = 4")
	if _, err := one.ExecContext(t.Context(), "UPDATE account SET balance = balance + 1"); err == nil ||
		!strings.Contains(err.Error(), "1205") {
		t.Fatalf("no time-out: %v", err)
	}
	b.exec(two, "ROLLBACK")
	b.exec(one, "UPDATE account SET balance = balance + 5 WHERE id = 1", "COMMIT")
	one.Close()
	two.Close()
	want := []string{"void 0", "void 0", "exact 1"}
	var got []string
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			if s.Kind != history.Update {
				continue
			}
			how := s.Observation.String()
			if s.Void {
				how = "void"
			}
			got = append(got, how+" "+string(rune('0'+len(s.Accesses))))
		}
	}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("updates are %v, want %v", got, want)
	}
	holdAgainst(t, b.txns(), b.lists("account"))
}

// TestCaptureReadDoesNotConsumeTheNextLevel lets isotap read what an update collected between SET
// TRANSACTION and the transaction that it is for.
func TestCaptureReadDoesNotConsumeTheNextLevel(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	one, two := b.conn(b.through), b.conn(b.direct)
	b.exec(one, "UPDATE account SET balance = 11 WHERE id = 1", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
	time.Sleep(500 * time.Millisecond) // an idle session: the entries are read now
	b.exec(one, "BEGIN")
	var before, after int
	read := func(into *int) {
		if err := one.QueryRowContext(t.Context(), "SELECT balance FROM account WHERE id = 1").Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	b.exec(two, "UPDATE account SET balance = 12 WHERE id = 1")
	read(&after)
	b.exec(one, "COMMIT")
	if before != 11 || after != 12 {
		t.Errorf("reads %d, then %d: the transaction did not run at READ COMMITTED", before, after)
	}
}

// TestSerializableReadsLockWhatTheyWouldHaveLocked compares what others may still do: MAX(id) and reads of a
// covering index lock as little through isotap as without it, and SELECT ... LIMIT gives the same rows
// under strict plans.
func TestSerializableReadsLockWhatTheyWouldHaveLocked(t *testing.T) {
	setup := []string{"CREATE TABLE o (id INT PRIMARY KEY, c1 INT, c2 INT, KEY (c1))",
		"INSERT INTO o VALUES (1,30,0),(2,20,0),(3,10,0)"}
	b := newBench(t, func(o *proxyserver.Options) { o.StrictPlans = true }, setup...)
	for _, c := range []struct{ read, write string }{
		{"SELECT MAX(id) FROM o", "UPDATE o SET c2 = 1 WHERE id = 1"},
		{"SELECT id FROM o WHERE c1 = 20", "UPDATE o SET c2 = 2 WHERE id = 2"},
		{"SELECT COUNT(c1) FROM o WHERE c1 = 10", "UPDATE o SET c2 = 3 WHERE id = 3"},
	} {
		for _, db := range []*sql.DB{b.direct, b.through} {
			reader, writer := b.conn(db), b.conn(b.direct)
			b.exec(reader, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", c.read)
			b.exec(writer, "SET innodb_lock_wait_timeout = 1")
			if _, err := writer.ExecContext(t.Context(), c.write); err != nil {
				t.Errorf("through isotap: %t, while %s is open, %s gives %v", db == b.through, c.read, c.write, err)
			}
			b.exec(reader, "COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
			reader.Close()
			writer.Close()
		}
	}
	const limited = "SELECT id FROM o LIMIT 2"
	if direct, through := answer(t.Context(), b.direct, limited), answer(t.Context(), b.through,
		limited); direct != through {
		t.Errorf("%s gives %s through isotap, %s directly", limited, through, direct)
	}
}
