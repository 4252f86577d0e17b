package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/cases"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/replay"
)

// newTiDBBench starts isotap over a database of the TiDB server in which setup has run.
func newTiDBBench(t *testing.T, change func(*proxyserver.Options), setup ...string) *bench {
	t.Helper()
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	database := server.NewDatabase(t)
	b := &bench{t: t, database: database, recording: filepath.Join(t.TempDir(), "rec"),
		direct: server.Open(t, database)}
	b.exec(b.direct, setup...)
	target, err := dsn.Parse(server.URL() + database)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := catalogmysql.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := catalogmysql.Instrument(t.Context(), conn, catalog.Options{Schemas: []string{database}}); err != nil {
		t.Fatal(err)
	}
	o := proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: b.recording, Args: true,
		Drain:  time.Second,
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}
	if change != nil {
		change(&o)
	}
	if b.srv, err = proxyserver.Start(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	b.through = b.open("")
	t.Cleanup(func() { b.stop() })
	return b
}

var tidbSetup = []string{
	"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(20))",
	"CREATE TABLE u (id INT PRIMARY KEY, v INT, w DECIMAL(10,2), KEY (v))",
	"CREATE TABLE f (x INT)",
	"INSERT INTO t VALUES (1, 10, 'one'), (2, 20, NULL), (3, 30, 'three')",
	"INSERT INTO u VALUES (1, 10, 1.5), (2, 21, 2.5)",
	"CREATE VIEW seen AS SELECT * FROM t",
}

// tidbConversation is what a session on TiDB says: statements that would show isotap's columns if they
// went upstream as they are, and those of every other kind. Three differences are known and left out: the
// original names of columns, which TiDB leaves out where a star reads a row by its key; the display width
// of what SHOW and DESCRIBE give, which is that of the widest row; REPLACE with the row that is there
// already, which natively changes nothing.
func tidbConversation() []command {
	var c []command
	for _, text := range []string{
		"SELECT * FROM t ORDER BY id", "SELECT t.*, 1 AS one FROM t ORDER BY id DESC",
		"SELECT DISTINCT * FROM t ORDER BY id",
		"SELECT * FROM t a LEFT JOIN u b ON b.id = a.id ORDER BY a.id",
		"SELECT b.*, a.* FROM t a, u b ORDER BY a.id, b.id",
		"SELECT * FROM t JOIN u USING (id) ORDER BY id", "SELECT * FROM t RIGHT JOIN u USING (id, v) ORDER BY id",
		"SELECT * FROM t NATURAL JOIN u", "SELECT * FROM t NATURAL LEFT JOIN u ORDER BY id",
		"SELECT w FROM t x NATURAL RIGHT JOIN u y ORDER BY w",
		"SELECT * FROM (SELECT * FROM t) d ORDER BY id",
		"SELECT * FROM (SELECT * FROM t) d JOIN u USING (id) ORDER BY id",
		"SELECT * FROM t UNION SELECT * FROM t ORDER BY id",
		"(SELECT * FROM u) UNION ALL (SELECT * FROM u) ORDER BY id",
		"WITH c AS (SELECT * FROM t) SELECT * FROM c NATURAL JOIN u",
		"WITH t AS (SELECT * FROM u) SELECT * FROM t ORDER BY id",
		"SELECT *, RANK() OVER (ORDER BY v) AS r FROM t ORDER BY r", "TABLE u", "TABLE u ORDER BY id LIMIT 1",
		"SELECT COUNT(*), MAX(v) FROM t", "SELECT v FROM t WHERE (id, v, s) IN (SELECT * FROM t)",
		"SELECT * FROM seen ORDER BY id",
		"SELECT * FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.id) ORDER BY id", "SELECT /*! * */ FROM f",
		"SELECT @@version_comment",
		"EXPLAIN FORMAT='brief' SELECT v FROM t", "DESCRIBE t", "SHOW FULL FIELDS FROM t",
		"SHOW COLUMNS FROM t LIKE 's'", "SHOW CREATE TABLE t", "SHOW CREATE TABLE f",
		"SHOW CREATE VIEW seen",
		"SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't' " +
			"ORDER BY ordinal_position",
		"INSERT INTO t VALUES (50, 1, 'a'), (51, 2, 'b')", "INSERT INTO t (v, s) VALUES (1, 'auto'), (2, 'inc')",
		"INSERT INTO t () VALUES ()",
		"INSERT INTO t SELECT id + 100, v, 'sel' FROM u",
		"INSERT INTO u SELECT * FROM u ON DUPLICATE KEY UPDATE v = VALUES(v)",
		"INSERT INTO u TABLE u", "INSERT IGNORE INTO t VALUES (1, 1, 'dup'), (60, 2, 'new')", "SHOW WARNINGS",
		"INSERT INTO t VALUES (1, 1, 'dup')", "INSERT INTO t VALUES (1)", "INSERT INTO t SET id = 61, v = 7",
		"REPLACE INTO u VALUES (1, 11, 1.25)", "REPLACE u SELECT id, v + 1, w FROM u WHERE id = 2",
		"INSERT INTO u VALUES (1, 11, 9), (3, 30, 9) ON DUPLICATE KEY UPDATE w = 8.5",
		"UPDATE t SET v = v WHERE id < 3", "UPDATE t SET v = v + 1 WHERE id < 3",
		"UPDATE t SET v = 12, s = 'x' WHERE id = 1",
		"UPDATE t SET v = 12, s = 'x' WHERE id = 1", "UPDATE t SET v = 1, v = v + 1 WHERE id = 1",
		"UPDATE t SET v = s WHERE id = 1",
		"UPDATE t SET v = 99999999999 WHERE id = 1", "UPDATE t SET s = 'this is far too long for it' WHERE id = 1",
		"UPDATE t SET s = 'x ' WHERE id = 1",
		"UPDATE u SET w = 1.254, v = NULL WHERE id = 1", "UPDATE u SET w = 1.25, v = NULL WHERE id = 1",
		"UPDATE u SET v = v - 1, w = v ORDER BY id LIMIT 1",
		"UPDATE t, u SET t.v = 5, u.v = 6 WHERE t.id = u.id", "UPDATE t SET v = (SELECT MAX(v) FROM u) WHERE id = 2",
		"SELECT ROW_COUNT()",
		"DELETE FROM t WHERE id = 3", "DELETE FROM t WHERE id = 3", "DELETE FROM t WHERE id > 100 ORDER BY id LIMIT 1",
		"DELETE t FROM t JOIN u ON u.id = t.id - 100",
		"SELECT * FORM t", "SELECT missing FROM t WHERE x = 1", "UPDATE t SET missing = 1",
		"SELECT 1; SELECT * FROM t WHERE id < 2; UPDATE t SET v = 9 WHERE id = 1",
		"BEGIN", "UPDATE t SET s = 'tx' WHERE id = 2", "SELECT s FROM t WHERE id = 2 FOR UPDATE", "SAVEPOINT here",
		"DELETE FROM t WHERE id = 1",
		"ROLLBACK TO here", "SELECT * FROM t ORDER BY id", "ROLLBACK", "BEGIN OPTIMISTIC",
		"UPDATE t SET v = 77 WHERE id = 2", "SELECT v FROM t WHERE id = 2", "COMMIT",
		"SET autocommit = 0", "UPDATE t SET v = 78 WHERE id = 2", "SELECT * FROM t WHERE id < 3", "SET autocommit = 1",
		"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT * FROM u ORDER BY id",
		"PREPARE p FROM 'SELECT * FROM u WHERE id < 2'", "EXECUTE p", "DEALLOCATE PREPARE p",
		"SET @text = 'SELECT * FROM u WHERE id = 2'", "PREPARE p FROM @text", "EXECUTE p",
		"CREATE TABLE made (id INT PRIMARY KEY, v INT)", "INSERT INTO made VALUES (1, 2)", "SELECT * FROM made",
		"SHOW CREATE TABLE made", "ALTER TABLE made ADD COLUMN w INT DEFAULT 5",
		"SELECT * FROM made", "INSERT INTO made VALUES (2, 3, 4)", "CREATE TABLE likewise LIKE made", "DESC likewise",
		"INSERT INTO likewise TABLE made", "SELECT * FROM likewise ORDER BY id",
		"CREATE VIEW made_seen AS SELECT * FROM made", "SELECT * FROM made_seen ORDER BY id",
		"SHOW CREATE VIEW made_seen",
		"CREATE TEMPORARY TABLE t (x INT)", "INSERT INTO t VALUES (1)", "SELECT * FROM t", "DROP TEMPORARY TABLE t",
		"SELECT * FROM t ORDER BY id",
	} {
		c = append(c, command{name: text, bytes: query(text)})
	}
	text := "text"
	return append(c,
		command{name: "file", bytes: query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ','"),
			file: "90,1,f\n91,2,g\n"},
		command{name: "field list", bytes: append([]byte{gomysql.COM_FIELD_LIST}, "f\x00"...)},
		command{name: "prepare select", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT * FROM t WHERE id <= ? ORDER BY id"...)},
		command{name: "execute", bytes: execute(1, false, true, 2)},
		command{name: "execute again without types", bytes: execute(1, false, false, 1)},
		command{name: "prepare union", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT * FROM made WHERE id <= ? UNION SELECT * FROM made ORDER BY id"...)},
		command{name: "execute union", bytes: execute(2, false, true, 2)},
		command{name: "alter", bytes: query("ALTER TABLE made ADD COLUMN z INT DEFAULT 6")},
		command{name: "execute union behind a change", bytes: execute(2, false, true, 2)},
		command{name: "and again", bytes: execute(2, false, false, 1)},
		command{name: "prepare update", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"UPDATE t SET s = ? WHERE id = ?"...)},
		command{name: "execute update", bytes: executeString(3, &text, 1)},
		command{name: "execute update that changes nothing", bytes: executeString(3, &text, 1)},
		command{name: "long data", bytes: statementCommand(gomysql.COM_STMT_SEND_LONG_DATA, 3,
			append([]byte{0, 0}, "long"...)...), silent: true},
		command{name: "execute with long data", bytes: executeString(3, nil, 1)},
		command{name: "prepare delete", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"DELETE FROM t WHERE id > ?"...)},
		command{name: "execute delete", bytes: execute(4, false, true, 89)},
		command{name: "prepare insert", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"INSERT INTO t VALUES (?, ?, 'p'), (70, 7, 'q')"...)},
		command{name: "execute insert", bytes: execute(5, false, true, 69, 6)},
		command{name: "execute insert twice", bytes: execute(5, false, false, 69, 6)},
		command{name: "prepare add", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"UPDATE u SET v = ?, w = w + 1 WHERE id = ?"...)},
		command{name: "execute add", bytes: execute(6, false, true, 5, 2)},
		command{name: "execute add again", bytes: execute(6, false, true, 5, 2)},
		command{name: "prepare aggregate", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT COUNT(*), SUM(v) FROM t WHERE id > ?"...)},
		command{name: "execute aggregate", bytes: execute(7, false, true, 0)},
		command{name: "execute aggregate of no rows", bytes: execute(7, false, true, 1000)},
		command{name: "its warnings", bytes: query("SHOW WARNINGS")},
		command{name: "read it all", bytes: query("SELECT * FROM t ORDER BY id")},
		command{name: "and the other", bytes: query("SELECT * FROM u ORDER BY id")},
		command{name: "reset connection", bytes: []byte{0x1f}},
		command{name: "after the reset", bytes: query("UPDATE t SET v = 3 WHERE id = 2")},
	)
}

// TestTiDBsRepliesAreEqualByteForByte has one conversation directly and one through isotap.
func TestTiDBsRepliesAreEqualByteForByte(t *testing.T) {
	for i, caps := range []uint32{0, gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_FOUND_ROWS} {
		t.Run(fmt.Sprintf("capabilities %#x", caps), func(t *testing.T) {
			b := newTiDBBench(t, []func(*proxyserver.Options){nil, inModePredicates}[i], tidbSetup...)
			direct := "direct" + strings.Repeat("x", len(b.database)-len("direct"))
			b.exec(b.direct, "DROP DATABASE IF EXISTS "+direct, "CREATE DATABASE "+direct)
			b.exec(testdb.TiDB(t).Open(t, direct), tidbSetup...)
			caps |= gomysql.CLIENT_MULTI_STATEMENTS | gomysql.CLIENT_MULTI_RESULTS | gomysql.CLIENT_PS_MULTI_RESULTS | gomysql.CLIENT_LOCAL_FILES
			names := [2]string{direct, b.database}
			sides := [2]*rawClient{dialRaw(t, testdb.TiDB(t).Addr(), direct, caps),
				dialRaw(t, b.srv.Addr().String(), b.database, caps)}
			for _, c := range tidbConversation() {
				want, got := sides[0].converse(c, names[0]), sides[1].converse(c, names[1])
				if strings.HasPrefix(c.name, "SHOW") || strings.HasPrefix(c.name, "DESC") {
					forgetWidths(want)
					forgetWidths(got)
				}
				if diff := firstDifference(got, want, names); diff != "" {
					t.Errorf("%d: %s: %s", i, c.name, diff)
				}
			}
		})
	}
}

// forgetWidths clears the display width in what looks like a column's definition.
func forgetWidths(packets [][]byte) {
	for _, p := range packets {
		if fixed := len(p) - 13; fixed > 4 && p[fixed] == 0x0c {
			clear(p[fixed+3 : fixed+7])
		}
	}
}

// TestTiDBsRecordedWritesAreThoseInTheTable is [TestRecordedWritesAreThoseInTheTable] on TiDB, whose
// transactions lock as they go, or find their conflicts at COMMIT.
func TestTiDBsRecordedWritesAreThoseInTheTable(t *testing.T) {
	for _, mode := range []string{"pessimistic", "optimistic"} {
		t.Run(mode, func(t *testing.T) {
			b := newTiDBBench(t, nil, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(20), u INT UNIQUE)",
				"INSERT INTO t (v, s) VALUES (0,'a'),(0,'b'),(0,'c'),(0,'d'),(0,'e'),(0,'f'),(0,'g'),(0,'h')")
			var clients sync.WaitGroup
			for i := range 6 {
				parameters := "tidb_txn_mode=%27" + mode + "%27" +
					[]string{"", "&interpolateParams=true", "&clientFoundRows=true"}[i%3]
				clients.Go(func() { b.contend(b.open(parameters), rand.New(rand.NewPCG(7, uint64(i)))) })
			}
			clients.Wait()
			rows := b.lists("t")
			if len(rows) < 8 {
				t.Fatalf("%d rows are left", len(rows))
			}
			holdAgainst(t, b.txns(), rows)
		})
	}
}

// contend runs transactions on a connection of db. Other than [bench.misbehave] it does not kill sessions or
// leave in the middle of a statement: TiDB's in-memory server can crash over that.
func (b *bench) contend(db *sql.DB, r *rand.Rand) {
	c := b.conn(db)
	ctx := b.t.Context()
	c.ExecContext(ctx, "SET innodb_lock_wait_timeout = 1")
	for range 80 {
		explicit := r.IntN(3) > 0
		if explicit {
			c.ExecContext(ctx, "BEGIN")
		}
		for range 1 + r.IntN(5) {
			write(ctx, c, r)
		}
		if explicit {
			c.ExecContext(ctx, []string{"COMMIT", "COMMIT", "ROLLBACK"}[r.IntN(3)])
		}
	}
}

// TestTiDBsRecordingTellsWhatHappened runs one statement of each kind that isotap observes on TiDB.
func TestTiDBsRecordingTellsWhatHappened(t *testing.T) {
	b := newTiDBBench(t, nil, tidbSetup...)
	c := b.conn(b.through)
	b.exec(c, "BEGIN", "SELECT * FROM t WHERE id = 1 FOR UPDATE", "UPDATE t SET v = v + 1, s = 'x' WHERE id < 3",
		"UPDATE t SET v = 11 WHERE id = 1",
		"INSERT INTO t VALUES (7, 1, 'new')", "DELETE FROM t WHERE id = 3", "COMMIT",
		"BEGIN OPTIMISTIC", "UPDATE t SET v = 0 WHERE id = 2", "ROLLBACK", "SELECT * FROM t NATURAL JOIN u")
	if _, err := c.ExecContext(t.Context(), "UPDATE t SET s = ? WHERE id = ?", "x", 1); err != nil {
		t.Fatal(err)
	}
	const want = `T1 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 SELECT exact SELECT * FROM t WHERE id = ? FOR UPDATE read(r1,0)
  3 UPDATE exact UPDATE t SET v = v + ?, s = ? WHERE id < ? update(r1,0) update(r2,0)
  4 UPDATE exact UPDATE t SET v = ? WHERE id = ? read(r1,T1.3)
  5 INSERT exact INSERT INTO t VALUES (?, ?, ?) insert(r3,0)
  6 DELETE exact DELETE FROM t WHERE id = ? delete(r4,0)
  7 COMMIT nothing COMMIT
T2 aborted REPEATABLE READ
  1 BEGIN nothing BEGIN OPTIMISTIC
  2 UPDATE exact UPDATE t SET v = ? WHERE id = ? update(r2,T1.3)
  3 ROLLBACK nothing ROLLBACK
T3 committed REPEATABLE READ implicit
  1 SELECT exact SELECT * FROM t NATURAL JOIN u read(r2,T1.3) read(r5,0)
T4 committed REPEATABLE READ implicit
  1 UPDATE exact UPDATE t SET s = ? WHERE id = ? read(r1,T1.3)
`
	if got := story(b.txns()); got != want {
		t.Errorf("recorded\n%s\nnot\n%s", got, want)
	}
	for _, run := range b.runs() {
		if run.Server.Engine != "tidb" {
			t.Errorf("the recording is of %q", run.Server.Engine)
		}
	}
}

// TestConflictsOfOptimisticTransactionsAbortThemOnTiDB has two transactions write one row, and one insert a
// duplicate, which TiDB finds at COMMIT.
func TestConflictsOfOptimisticTransactionsAbortThemOnTiDB(t *testing.T) {
	b := newTiDBBench(t, nil, tidbSetup...)
	first, second := b.conn(b.through), b.conn(b.through)
	b.exec(first, "SET tidb_txn_mode = 'optimistic'", "BEGIN", "UPDATE t SET v = v + 1 WHERE id = 1")
	b.exec(second, "BEGIN OPTIMISTIC", "UPDATE t SET v = v + 1 WHERE id = 1", "COMMIT")
	if _, err := first.ExecContext(t.Context(), "COMMIT"); err == nil || !strings.Contains(err.Error(), "9007") {
		t.Fatalf("the second to commit gets %v", err)
	}
	b.exec(first, "BEGIN", "INSERT INTO t VALUES (1, 1, 'dup')")
	if _, err := first.ExecContext(t.Context(), "COMMIT"); err == nil || !strings.Contains(err.Error(), "1062") {
		t.Fatalf("a duplicate gets %v at COMMIT", err)
	}
	b.exec(first, "UPDATE t SET v = 0 WHERE id = 2")
	var statuses []string
	for _, txn := range b.txns() {
		statuses = append(statuses, txn.Status.String())
	}
	slices.Sort(statuses) // the recording gives the sessions one after the other, in no certain order
	if got := strings.Join(statuses, " "); got != "aborted aborted committed committed" {
		t.Errorf("the transactions are %s", got)
	}
}

// TestUnreadableTableIsKnownByDefinitionOnTiDB takes isotap's own user away, so that it reads no schema
// any more: what the client says of a table that it makes must mean what it means without isotap's columns all the
// same.
func TestUnreadableTableIsKnownByDefinitionOnTiDB(t *testing.T) {
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	admin := server.Open(t, "")
	const user = "reader@'127.0.0.1'"
	for _, s := range []string{"DROP USER IF EXISTS " + user, "CREATE USER " + user, "GRANT ALL ON *.* TO " + user} {
		if _, err := admin.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	b := newTiDBBench(t, func(o *proxyserver.Options) { o.Upstream.User = "reader" })
	through := mysql.NewConfig()
	through.User, through.Net, through.Addr, through.DBName = "root", "tcp", b.srv.Addr().String(), b.database
	db, err := sql.Open("mysql", through.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := b.conn(db)
	b.exec(admin, "DROP USER "+user)
	var id int
	if err := admin.QueryRow("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'reader'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	b.exec(admin, fmt.Sprintf("KILL TIDB %d", id))
	b.exec(c, "CREATE TABLE made (id INT PRIMARY KEY /*T![clustered_index] CLUSTERED */, n INT, twice INT AS (n * 2))",
		"INSERT INTO made (id, n) VALUES (1, 2)", "CREATE TABLE plain (`the id` INT, n INT)",
		"INSERT INTO plain VALUES (1, 2)",
		"INSERT INTO plain SELECT id, n FROM made", "CREATE TABLE IF NOT EXISTS plain (a INT, b INT, c INT)",
		"INSERT INTO plain VALUES (3, 4)")
	var rows int
	if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM plain NATURAL JOIN made").Scan(&rows); err != nil ||
		rows != 2 {
		t.Errorf("%d rows with the same n, not 2; %v", rows, err)
	}
}

// TestCasesGiveTheSameResultsOnTiDB runs the corpus at the levels that TiDB has, as
// [TestCasesGiveTheSameResultsThroughIsotap] does on the others.
func TestCasesGiveTheSameResultsOnTiDB(t *testing.T) {
	b := newTiDBBench(t, nil)
	direct := replay.Server{Addr: testdb.TiDB(t).Addr(), User: "root"}
	through := replay.Server{Addr: b.srv.Addr().String(), User: "root"}
	corpus, runner := openCorpus(t, direct)
	plan := slices.DeleteFunc(cases.Plan(corpus), func(p cases.Planned) bool {
		return p.Level != history.RepeatableRead && p.Level != history.ReadCommitted
	})
	for _, o := range []replay.Options{{}, {Prepared: true}} {
		want, err := runner.RunAll(t.Context(), direct, cases.Jobs(plan), 2, o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := runner.RunAll(t.Context(), through, cases.Jobs(plan), 2, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			forgetOriginalNames(want[i])
			forgetOriginalNames(got[i])
			for _, d := range replay.Compare(want[i], got[i]) {
				t.Errorf("prepared %t: %v", o.Prepared, d)
			}
		}
	}
	observed, reasons := make(map[history.Observation]int), make(map[string]int)
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			observed[s.Observation]++
			reasons[s.Reason.String()]++
		}
	}
	t.Logf("%d runs; statements observed: %v; reasons: %v", 2*len(plan), observed, reasons)
}

// forgetOriginalNames clears the names that TiDB leaves out where a star reads a row by its key.
func forgetOriginalNames(trace replay.Trace) {
	for _, r := range trace.Results {
		for i := range r.Columns {
			r.Columns[i].OrgName = ""
		}
	}
}

// TestTiDBsSerializableIsNone: TiDB refuses the level. Told to take the word it lets a write skew through, which is no
// violation: it promises nothing of the level.
func TestTiDBsSerializableIsNone(t *testing.T) {
	const serializable = "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"
	b := newTiDBBench(t, nil, tidbSetup...)
	c := []*sql.Conn{b.conn(b.through), b.conn(b.through)}
	_, err := c[0].ExecContext(t.Context(), serializable)
	if e := new(mysql.MySQLError); !errors.As(err, &e) || e.Number != 8048 {
		t.Errorf("SERIALIZABLE: %v, want error 8048", err)
	}
	for i := range c {
		b.exec(c[i], "SET tidb_skip_isolation_level_check = 1", serializable, "BEGIN", "SELECT v FROM t WHERE id < 3")
	}
	for i, write := range []string{"UPDATE t SET v = 0 WHERE id = 1", "UPDATE t SET v = 0 WHERE id = 2"} {
		b.exec(c[i], write, "COMMIT")
	}
	r := b.analyze()
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.WriteSkew || r.Findings[0].Class != analyzer.Hazard {
		t.Errorf("%d findings: %+v", len(r.Findings), r.Findings)
	}
}

// TestUnseenVersionsUnderOldTagsAreCountedOnTiDB has a client read what an UPDATE left whose text does not tell what it
// stores. The version before is all that rows tell, and coverage says so of both.
func TestUnseenVersionsUnderOldTagsAreCountedOnTiDB(t *testing.T) {
	b := newTiDBBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 1)")
	x, y := b.conn(b.through), b.conn(b.through)
	b.exec(x, "UPDATE t SET v = 5 WHERE id = 1")
	b.exec(y, "UPDATE t SET v = CASE WHEN v > 1 THEN 77 ELSE 78 END WHERE id = 1")
	b.exec(x, "SELECT v FROM t WHERE id = 1")
	txns := b.txns()
	var told, wrote history.Tag
	for _, txn := range txns {
		for _, s := range txn.Stmts {
			switch {
			case s.Kind == history.Select:
				told = s.Accesses[0].Version
			case s.Observation == history.Exact:
				wrote = history.Tag{Txn: txn.ID, Stmt: s.Num}
			}
		}
	}
	if told != wrote || wrote.Initial() {
		t.Errorf("the SELECT is told to have met %v, where %v is the version before", told, wrote)
	}
	if c := b.analyze().Coverage; c.OldTags != 1 || c.Opaque != 1 || c.Inexact != 1 || c.Reasons[history.ReasonOldTag] != 1 {
		t.Errorf("%d statements are counted, %d opaque, %d inexact: %v", c.OldTags, c.Opaque, c.Inexact, c.Reasons)
	}
}
