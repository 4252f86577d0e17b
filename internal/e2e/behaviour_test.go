package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// stmts returns the recorded statements of one shape.
func stmts(txns []*history.Txn, shape string) []history.Stmt {
	var found []history.Stmt
	for _, t := range txns {
		for _, s := range t.Stmts {
			if s.Shape == shape {
				found = append(found, s)
			}
		}
	}
	return found
}

func TestRefusedRewritingRunsTheOriginal(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	admin := testdb.Open(t, "")
	// The grants come after isotap instrument, which would have extended them.
	b.exec(admin, "CREATE USER narrow@localhost IDENTIFIED BY 'pw'",
		"CREATE USER narrow@'127.0.0.1' IDENTIFIED BY 'pw'")
	for _, host := range []string{"localhost", "127.0.0.1"} {
		b.exec(admin, fmt.Sprintf("GRANT SELECT (id, balance), UPDATE (balance), INSERT (id), DELETE "+
			"ON %s.account TO narrow@'%s'", b.database, host))
	}
	t.Cleanup(func() { admin.Exec("DROP USER narrow@localhost, narrow@'127.0.0.1'") })
	for _, parameters := range []string{"", "?interpolateParams=true"} {
		config, err := mysql.ParseDSN(b.srv.DSN(b.database))
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", fmt.Sprintf("narrow:pw@tcp(%s)/%s%s", config.Addr, b.database, parameters))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c := b.conn(db)
		for range 2 {
			var balance int
			if err := c.QueryRowContext(t.Context(), "SELECT balance FROM account WHERE id = ?",
				1).Scan(&balance); err != nil || balance != 10 {
				t.Fatalf("read: %d, %v", balance, err)
			}
			if _, err := c.ExecContext(t.Context(), "UPDATE account SET balance = ? WHERE id = ?", 10, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ExecContext(t.Context(), "INSERT INTO account (id) VALUES (?)", 2); err != nil {
				t.Fatal(err)
			}
			r, err := c.ExecContext(t.Context(), "DELETE FROM account WHERE id = ?", 2)
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := r.RowsAffected(); n != 1 {
				t.Fatalf("%d rows deleted", n)
			}
		}
		_, err = c.ExecContext(t.Context(), "UPDATE account SET owner = 'x' WHERE id = ?", 1)
		if err == nil || !strings.Contains(err.Error(), "'owner'") {
			t.Fatalf("the server's own error is lost: %v", err)
		}
		c.Close()
	}
	for _, s := range stmts(b.txns(), "SELECT balance FROM account WHERE id = ?") {
		if s.Observation != history.Opaque || s.Reason != history.ParseReason("refused with error 1143") &&
			s.Reason != history.ReasonPreparedUnchanged {
			t.Errorf("recorded as %v, reason %q", s.Observation, s.Reason)
		}
	}
}

func TestLevelIsThatOfEachTransaction(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	c := b.conn(b.through)
	const read = "SELECT owner FROM account WHERE id = 1"
	variable := "tx_isolation"
	if testdb.EngineName() == testdb.MySQL.Name {
		variable = "transaction_isolation"
	}
	b.exec(c, read, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", read,
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", read, "COMMIT", read,
		"SET "+variable+" = 'READ-UNCOMMITTED'", read,
		"SET @@session."+variable+" = 'REPEATABLE-READ'", "START TRANSACTION READ ONLY", read, "COMMIT")
	c.Close()
	var levels []string
	for _, txn := range b.txns() {
		levels = append(levels, txn.Level.String())
	}
	want := "REPEATABLE READ,READ COMMITTED,SERIALIZABLE,READ COMMITTED,READ UNCOMMITTED,REPEATABLE READ"
	if got := strings.Join(levels, ","); got != want {
		t.Errorf("levels %s\nwant   %s", got, want)
	}
}

func TestErrorsEndTransactionsAsTheServerSays(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
	one, two := b.conn(b.through), b.conn(b.open(""))
	// A duplicate key undoes the statement, a lock wait time-out too, a deadlock the transaction.
	b.exec(one, "SET innodb_lock_wait_timeout = 1", "BEGIN", "UPDATE account SET balance = 11 WHERE id = 1")
	if _, err := one.ExecContext(t.Context(), "INSERT INTO account VALUES (1,'dup',0)"); err == nil {
		t.Fatal("a duplicate key went in")
	}
	b.exec(two, "BEGIN", "UPDATE account SET balance = 21 WHERE id = 2")
	if _, err := one.ExecContext(t.Context(), "UPDATE account SET balance = 12 WHERE id = 2"); err == nil ||
		!strings.Contains(err.Error(), "1205") {
		t.Fatalf("no time-out: %v", err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := two.ExecContext(context.Background(), "UPDATE account SET balance = 22 WHERE id = 1")
		waits <- err
	}()
	time.Sleep(200 * time.Millisecond)
	_, errOne := one.ExecContext(t.Context(), "UPDATE account SET balance = 13 WHERE id = 2")
	errTwo := <-waits
	if (errOne == nil) == (errTwo == nil) {
		t.Fatalf("no deadlock, or two: %v, %v", errOne, errTwo)
	}
	victim, survivor := one, two
	if errTwo != nil {
		victim, survivor = two, one
	}
	b.exec(victim, "SELECT owner FROM account WHERE id = 1", "COMMIT")
	b.exec(survivor, "COMMIT")
	one.Close()
	two.Close()
	status := make(map[history.Status]int)
	for _, txn := range b.txns() {
		if !txn.Implicit {
			status[txn.Status]++
		}
	}
	if status[history.Aborted] != 1 || status[history.Committed] != 1 {
		t.Errorf("explicit transactions by status: %v; want one aborted (the victim), one committed", status)
	}
}

func TestIndexOnlyReadsGoUnchangedWhereReadsLock(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, c1 INT, c2 INT, KEY (c1))",
		"INSERT INTO t VALUES (1,20,0),(2,30,0)")
	c := b.conn(b.through)
	const covered = "SELECT id FROM t WHERE c1 = 20"
	b.exec(c, covered, covered+" LOCK IN SHARE MODE",
		"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", covered, "BEGIN", covered, "COMMIT")
	// Another session may update what the index alone does not lock.
	b.exec(c, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", covered+" LOCK IN SHARE MODE")
	other := b.conn(b.direct)
	b.exec(other, "SET innodb_lock_wait_timeout = 1", "UPDATE t SET c2 = 1 WHERE id = 1")
	b.exec(c, "COMMIT")
	c.Close()
	var got []string
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			if s.Kind == history.Select {
				got = append(got, strings.TrimSpace(s.Observation.String()+" "+s.Reason.String()))
			}
		}
	}
	if want := "exact,opaque plan,exact,opaque plan,opaque plan"; strings.Join(got, ",") != want {
		t.Errorf("observed %s\nwant     %s", strings.Join(got, ","), want)
	}
}

func TestRowsOver16MiBPass(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, nil, "CREATE TABLE big (id INT PRIMARY KEY, b LONGBLOB)")
	b.setGlobal("max_allowed_packet", 128<<20)
	c := b.conn(b.open("maxAllowedPacket=0"))
	// Commands of one packet whose rewritten form takes two: the reply's numbers go on from the client's.
	for _, text := range []string{"INSERT INTO big VALUES (2, '%s')", "DELETE FROM big WHERE id = 2 AND b = '%s'",
		"SELECT id FROM big WHERE b = '%s'"} {
		room := 1<<24 - 2 - (len(text) - len("%s")) - len("\x03")
		if _, err := c.ExecContext(t.Context(), fmt.Sprintf(text, strings.Repeat("x", room))); err != nil {
			t.Fatalf("%s, almost 16 MiB: %v", text, err)
		}
	}
	for parameters, sizes := range map[string][]int{
		"maxAllowedPacket=0":                        {1<<24 - 1 - 200, 1<<24 - 1, 1<<25 + 1},
		"maxAllowedPacket=0&interpolateParams=true": {1 << 24},
	} {
		c := b.conn(b.open(parameters))
		for _, size := range sizes {
			blob := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
			b.exec(c, "DELETE FROM big")
			if _, err := c.ExecContext(t.Context(), "INSERT INTO big VALUES (1, ?)", blob); err != nil {
				t.Fatalf("%s: insert %d bytes: %v", parameters, size, err)
			}
			var back string
			if err := c.QueryRowContext(t.Context(), "SELECT b FROM big WHERE id = ?", 1).Scan(&back); err != nil ||
				back != blob {
				t.Fatalf("%s: %d bytes came back of %d: %v", parameters, len(back), size, err)
			}
			if err := c.QueryRowContext(t.Context(), "SELECT REPEAT('x', ?)", size).Scan(&back); err != nil ||
				len(back) != size {
				t.Fatalf("%s: %d bytes without a table came back of %d: %v", parameters, len(back), size, err)
			}
		}
		c.Close()
	}
}

func TestDrainLetsATransactionFinish(t *testing.T) {
	b := newBench(t, func(o *proxyserver.Options) { o.Drain = 20 * time.Second }, account,
		"INSERT INTO account VALUES (1,'ann',10)")
	idle, busy := b.conn(b.through), b.conn(b.open(""))
	b.exec(idle, "DO 1")
	b.exec(busy, "BEGIN", "UPDATE account SET balance = 1 WHERE id = 1")
	stopped := make(chan error, 1)
	b.stopped = true
	go func() { stopped <- b.srv.Stop() }()
	time.Sleep(100 * time.Millisecond)
	if _, err := net.DialTimeout("tcp", b.srv.Addr().String(), time.Second); err == nil {
		t.Error("a draining isotap takes new clients")
	}
	b.exec(busy, "UPDATE account SET balance = 2 WHERE id = 1", "COMMIT")
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(testdb.Patience):
		t.Fatal("isotap goes on although its last transaction has ended")
	}
	txns := b.txns()
	if len(txns) != 1 || txns[0].Status != history.Committed || len(txns[0].Stmts) != 4 {
		t.Errorf("recorded:\n%s", story(txns))
	}
}

func TestLostServerLeavesTransactionsIndeterminateOrAborted(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	c := b.conn(b.through)
	var id int
	if err := c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	b.exec(c, "BEGIN", "UPDATE account SET balance = 1 WHERE id = 1")
	b.exec(b.direct, fmt.Sprintf("KILL CONNECTION %d", id))
	if _, err := c.ExecContext(t.Context(), "SELECT owner FROM account"); err == nil {
		t.Fatal("the client did not notice")
	}
	txns := b.txns()
	if len(txns) == 0 || txns[0].Status != history.Aborted {
		t.Errorf("recorded:\n%s", story(txns))
	}
}

func TestConnectionsLeaveNothingBehind(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	b.exec(b.conn(b.through), "DO 1")
	before := runtime.NumGoroutine()
	for range 200 {
		db := b.open("")
		b.exec(db, "UPDATE account SET balance = balance + 1 WHERE id = 1")
		db.Close()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+5 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines, %d before 200 connections", after, before)
	}
	if n := len(stmts(b.txns(), "UPDATE account SET balance = balance + ? WHERE id = ?")); n != 200 {
		t.Errorf("%d updates recorded of 200", n)
	}
}

func TestOffPassesBytesAndRecordsNothing(t *testing.T) {
	b := newBench(t, func(o *proxyserver.Options) { o.Off, o.Recording = true, "" }, account,
		"INSERT INTO account VALUES (1,'ann',10)")
	c := b.conn(b.through)
	b.exec(c, "UPDATE account SET balance = 12 WHERE id = 1")
	var wList string
	if err := c.QueryRowContext(t.Context(), "SELECT isotap_wlist FROM account").Scan(&wList); err != nil ||
		wList != "0" {
		t.Errorf("wList %q, %v", wList, err)
	}
}

func TestUnreachableServerIsToldToTheClient(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	nowhere := dsn.Target{Network: "tcp", Address: closed.Addr().String(), User: "root"}
	srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: nowhere, Listen: "127.0.0.1:0", Off: true})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	db, err := sql.Open("mysql", srv.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Ping(); err == nil || !strings.Contains(err.Error(), "isotap cannot reach the server at "+
		nowhere.Address) {
		t.Errorf("the client is told: %v", err)
	}
}

func TestLoginsAreRelayed(t *testing.T) {
	testdb.Only(t, "its plug-ins are other ones: see TestLoginsOfMySQLAreRelayed", "mariadb", testdb.MariaDB118.Name)
	b := newBench(t, nil, account)
	admin := testdb.Open(t, "")
	b.exec(admin, "INSTALL SONAME 'auth_ed25519'",
		"CREATE USER native@'127.0.0.1' IDENTIFIED VIA mysql_native_password USING PASSWORD('n-secret')",
		"CREATE USER modern@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('m-secret')")
	t.Cleanup(func() {
		admin.Exec("DROP USER native@'127.0.0.1', modern@'127.0.0.1'")
		admin.Exec("UNINSTALL SONAME 'auth_ed25519'")
	})
	for user, password := range map[string]string{"native": "n-secret", "modern": "m-secret"} {
		for _, given := range []string{password, "wrong"} {
			db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/", user, given, b.srv.Addr()))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var name string
			err = db.QueryRowContext(t.Context(), "SELECT USER()").Scan(&name)
			switch {
			case given == password && (err != nil || name != user+"@127.0.0.1"):
				t.Errorf("%s with the right password: %q, %v", user, name, err)
			case given != password && (err == nil || !strings.Contains(err.Error(), "1045")):
				t.Errorf("%s with a wrong password: %v", user, err)
			}
		}
	}
}

func TestTablesChangedWithoutTheProxyAreNoticed(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE t (a INT, b INT)")
	c := b.conn(b.through)
	b.exec(c, "INSERT INTO t VALUES (1, 2)")
	b.exec(b.direct, "ALTER TABLE t MODIFY b INT FIRST")
	epoch := b.srv.SchemaEpoch()
	for deadline := time.Now().Add(20 * time.Second); b.srv.SchemaEpoch() == epoch; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the catalog is as it was 20 s ago")
		}
	}
	b.exec(c, "INSERT INTO t VALUES (1, 2)")
	var rows string
	if err := c.QueryRowContext(t.Context(),
		"SELECT GROUP_CONCAT(a, '/', b ORDER BY a) FROM t").Scan(&rows); err != nil || rows != "1/2,2/1" {
		t.Errorf("rows %s, %v", rows, err)
	}
}

// TestFailingMultiStatementsTellNoOutcome has a text that cannot be cut end the transaction and then fail:
// what became of the transaction is not known, and it must not be taken for committed, nor for the one that such a text
// began after it.
func TestFailingMultiStatementsTellNoOutcome(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10)")
	c := b.conn(b.open("multiStatements=true"))
	// The last text fails with an error that rolls transactions back, behind a COMMIT.
	holder := b.conn(b.direct)
	b.exec(c, "PREPARE waits FROM 'UPDATE account SET balance = 22 WHERE id = 2'")
	b.exec(holder, "INSERT INTO account VALUES (2,'bob',20)", "BEGIN", "UPDATE account SET balance = 21 WHERE id = 2")
	for _, text := range []string{"ROLLBACK; EXECUTE nothing", "ROLLBACK; BEGIN; EXECUTE nothing",
		"COMMIT; EXECUTE waits"} {
		b.exec(c, "SET innodb_lock_wait_timeout = 1", "BEGIN", "UPDATE account SET balance = balance + 1 WHERE id = 1")
		if _, err := c.ExecContext(t.Context(), text); err == nil {
			t.Fatalf("%s worked", text)
		}
		b.exec(c, "SELECT owner FROM account WHERE id = 1", "ROLLBACK")
	}
	c.Close()
	for i, txn := range b.txns() {
		if txn.Stmts[len(txn.Stmts)-1].Error.Code != 0 && txn.Status != history.Indeterminate {
			t.Errorf("transaction %d, which such a text ended, is %v", i+1, txn.Status)
		}
		if len(txn.Stmts) > 3 {
			t.Errorf("transaction %d goes on behind the text:\n%s", i+1, story([]*history.Txn{txn}))
		}
	}
}
