package e2e

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// The bodies of procedures that come to row 2, after the client has written row 1 in its transaction. Those of
// commitBodies may commit that.
var (
	quietBodies = map[string]string{
		"plain": "UPDATE c SET v = v + 1 WHERE id = 2",
		"branches": "DECLARE n INT DEFAULT 0; SET n = 1; IF n = 1 THEN INSERT INTO c (id, v) VALUES (50, 0); END IF; " +
			"DELETE FROM c WHERE id = 50; REPLACE INTO c (id, v) VALUES (51, 1); SELECT v FROM c WHERE id = 51; " +
			"UPDATE c SET v = v + 1 WHERE id = 2",
		"nests": "UPDATE c SET v = v + 1 WHERE id = 3; CALL plain()",
		"saves": "SAVEPOINT a; UPDATE c SET v = v + 1 WHERE id = 3; ROLLBACK TO a; UPDATE c SET v = v + 1 WHERE id = 2",
		"goes_on": "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; UPDATE c SET v = v + 1 WHERE id = 2; " +
			"UPDATE c SET v = v + 100 WHERE id = 3",
		"notes": "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO c (v) VALUES (7); RESIGNAL; END; " +
			"UPDATE c SET v = v + 1 WHERE id = 2",
		"rolls_back": "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; " +
			"UPDATE c SET v = v + 1 WHERE id = 2",
		"triggers": "INSERT INTO hooked (id) VALUES (NULL)",
	}
	commitBodies = map[string]string{
		"commits":  "COMMIT; UPDATE c SET v = v + 1 WHERE id = 2",
		"starts":   "START TRANSACTION; UPDATE c SET v = v + 1 WHERE id = 3; UPDATE c SET v = v + 1 WHERE id = 2",
		"prepares": "PREPARE w FROM 'COMMIT'; EXECUTE w; UPDATE c SET v = v + 1 WHERE id = 2",
		"analyzes": "ANALYZE TABLE c; UPDATE c SET v = v + 1 WHERE id = 2",
		"defines":  "CREATE TABLE IF NOT EXISTS made (x INT); UPDATE c SET v = v + 1 WHERE id = 2",
		"sets": "SET autocommit = 0; SET autocommit = 1; START TRANSACTION; UPDATE c SET v = v + 1 WHERE id = 3; " +
			"UPDATE c SET v = v + 1 WHERE id = 2",
		"flushes": "COMMIT; FLUSH STATUS; UPDATE c SET v = v + 1 WHERE id = 2",
		"pretends": "UPDATE c SET v = v + 1 WHERE id = 2; COMMIT; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, " +
			"MESSAGE_TEXT = 'Deadlock found'",
	}
)

// A mishap is what meets a procedure.
type mishap string

const (
	deadlocked  mishap = "deadlocked"
	killed      mishap = "killed"
	timedOut    mishap = "timed out"
	undisturbed mishap = "undisturbed"
)

// A callPlay is a transaction with a CALL.
type callPlay struct {
	procedure  string
	commits    bool // the procedure may
	meets      mishap
	autocommit int
	prepared   bool
	ending     string

	thread int  // the client's, on the server
	lasts  bool // what it wrote before the CALL was there afterwards
}

// known reports whether isotap has to know how the transaction ended: whatever the procedure ran, it committed nothing.
// Without autocommit another transaction may have begun by itself behind what failed.
func (p *callPlay) known() bool {
	switch {
	case p.commits:
		return false
	case p.autocommit == 1, p.meets == undisturbed:
		return true
	}
	return p.meets == deadlocked && p.procedure != "goes_on" && p.procedure != "notes" && p.procedure != "rolls_back"
}

// callPlays are all of them; with -short only half of the ways to call.
func callPlays() (plays []*callPlay) {
	ways := []callPlay{{autocommit: 1, ending: "ROLLBACK"}, {autocommit: 0, prepared: true, ending: "COMMIT"},
		{autocommit: 1, prepared: true, ending: "COMMIT"}, {autocommit: 0, ending: "ROLLBACK"}}
	if testing.Short() {
		ways = ways[:2]
	}
	for _, how := range ways {
		for _, meets := range []mishap{deadlocked, killed, undisturbed, timedOut} {
			for _, bodies := range []map[string]string{quietBodies, commitBodies} {
				for name := range bodies {
					if meets == timedOut && (testing.Short() || name != "plain" && name != "goes_on") {
						continue // it takes a second
					}
					p := how
					p.procedure, p.meets, p.commits = name, meets, commitBodies[name] != ""
					plays = append(plays, &p)
				}
			}
		}
	}
	return plays
}

// TestCallsThatFailAreAborted has procedures fail inside of the client's transaction. What the client wrote before the
// CALL is aborted where nothing in the procedure can have committed it, and that is what the tables say.
func TestCallsThatFailAreAborted(t *testing.T) {
	t.Parallel() // much of its time is waiting
	testdb.Only(t, "procedures in MySQL's language", "mariadb", "mysql")
	setup := []string{"CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
		"INSERT INTO c (v) VALUES (1), (2), (3)", "CREATE TABLE ballast (id INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE TABLE hooked (id INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE TRIGGER hook AFTER INSERT ON hooked FOR EACH ROW UPDATE c SET v = v + 1 WHERE id = 2"}
	for _, bodies := range []map[string]string{quietBodies, commitBodies} {
		for name, body := range bodies {
			setup = append(setup, "CREATE PROCEDURE "+name+"() BEGIN "+body+"; END")
		}
	}
	b := newBench(t, nil, setup...)
	plays := callPlays()
	for _, p := range plays {
		b.playCall(p)
	}
	var told []*history.Txn
	for _, txn := range b.txns() {
		for i, s := range txn.Stmts {
			if s.Kind == history.Call && i > 0 && txn.Stmts[i-1].Kind == history.Update {
				told = append(told, txn)
			}
		}
	}
	if len(told) != len(plays) {
		t.Fatalf("%d of %d transactions are recorded", len(told), len(plays))
	}
	for i, p := range plays {
		want := history.Aborted
		if p.lasts {
			want = history.Committed
		}
		switch got := told[i].Status; {
		case got == history.Indeterminate && p.known(), got != history.Indeterminate && got != want:
			t.Errorf("%+v: %v instead of %v", *p, got, want)
		}
	}
}

// playCall has a client write row 1 and call a procedure, while a rival holds row 2.
func (b *bench) playCall(p *callPlay) {
	b.t.Helper()
	c, rival := b.conn(b.through), b.conn(b.direct)
	defer c.Close()
	defer rival.Close()
	b.exec(rival, "SET innodb_lock_wait_timeout = 1")
	b.exec(c, fmt.Sprint("SET autocommit = ", p.autocommit), "SET innodb_lock_wait_timeout = 1")
	if err := c.QueryRowContext(b.t.Context(), "SELECT CONNECTION_ID()").Scan(&p.thread); err != nil {
		b.t.Fatal(err)
	}
	before := b.valueOf(1)
	if p.autocommit == 1 {
		b.exec(c, "BEGIN")
	}
	b.exec(c, "UPDATE c SET v = v + 1 WHERE id = 1")
	if p.meets != undisturbed {
		b.exec(rival, "BEGIN")
		for range 40 { // the server lets the lighter one fail
			b.exec(rival, "INSERT INTO ballast () VALUES ()")
		}
		b.exec(rival, "SELECT v FROM c WHERE id = 2 FOR UPDATE")
	}
	done := make(chan error, 1)
	go func() { done <- p.call(b, c) }()
	b.disturb(p, rival, done)
	rival.ExecContext(b.t.Context(), "ROLLBACK")
	c.ExecContext(b.t.Context(), p.ending)
	p.lasts = b.valueOf(1) != before
	c.ExecContext(b.t.Context(), "ROLLBACK")
}

// call runs the CALL. Most fail.
func (p *callPlay) call(b *bench, c *sql.Conn) error {
	text := "CALL " + p.procedure + "()"
	if !p.prepared {
		_, err := c.ExecContext(b.t.Context(), text)
		return err
	}
	st, err := c.PrepareContext(b.t.Context(), text)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = st.ExecContext(b.t.Context())
	return err
}

// disturb lets the procedure meet its mishap, and waits until it is over.
func (b *bench) disturb(p *callPlay, rival *sql.Conn, done chan error) {
	b.t.Helper()
	select {
	case <-done:
		return
	case <-time.After(40 * time.Millisecond):
	}
	switch p.meets {
	case deadlocked:
		rival.ExecContext(b.t.Context(), "SELECT v FROM c WHERE id IN (1, 3) FOR UPDATE")
	case killed:
		b.exec(rival, fmt.Sprint("KILL QUERY ", p.thread))
	}
	<-done
}

// valueOf returns what is committed of a row.
func (b *bench) valueOf(id int) (v int) {
	b.t.Helper()
	if err := b.direct.QueryRow("SELECT v FROM c WHERE id = ?", id).Scan(&v); err != nil {
		b.t.Fatal(err)
	}
	return v
}
