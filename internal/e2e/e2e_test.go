package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

func TestMain(m *testing.M) {
	testdb.Main(m, append([]testdb.Engine{testdb.MySQL, testdb.MariaDB118}, testdb.PostgreSQLs...)...)
}

// A bench is isotap in front of the test server, with a database of its own on it.
type bench struct {
	t         *testing.T
	database  string
	recording string
	srv       *proxyserver.Server
	direct    *sql.DB
	through   *sql.DB
	stopped   bool
}

// newBench starts isotap over a database in which setup has run.
func newBench(t *testing.T, change func(*proxyserver.Options), setup ...string) *bench {
	t.Helper()
	return newBenchIn(t, testdb.NewDatabase(t), change, setup...)
}

func newBenchIn(t *testing.T, database string, change func(*proxyserver.Options), setup ...string) *bench {
	t.Helper()
	b := &bench{t: t, database: database, recording: filepath.Join(t.TempDir(), "rec")}
	b.direct = testdb.Open(t, b.database)
	b.exec(b.direct, setup...)
	target := instrument(t, database)
	o := proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: b.recording, Args: true,
		Drain: time.Second, Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}
	if change != nil {
		change(&o)
	}
	var err error
	if b.srv, err = proxyserver.Start(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	b.through = b.open("")
	t.Cleanup(func() { b.stop() })
	return b
}

// instrument gives the tables of a database on the test server isotap's columns.
func instrument(t *testing.T, database string) dsn.Target {
	t.Helper()
	target, err := dsn.Parse(testdb.Current(t).URL() + database)
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
	return target
}

// driverConfig is how go-sql-driver connects to isotap.
func driverConfig(t *testing.T, srv *proxyserver.Server, database string) *mysql.Config {
	t.Helper()
	c, err := mysql.ParseDSN(srv.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	c.TLS = nil // what ParseDSN made of TLSConfig, which callers may change
	return c
}

// open connects through isotap, with the driver's parameters given.
func (b *bench) open(parameters string) *sql.DB {
	b.t.Helper()
	c := driverConfig(b.t, b.srv, b.database)
	separator := "?"
	if c.TLSConfig != "" {
		separator = "&"
	}
	db, err := sql.Open("mysql", c.FormatDSN()+separator+parameters)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { db.Close() })
	return db
}

func (b *bench) stop() {
	b.t.Helper()
	if b.stopped {
		return
	}
	b.stopped = true
	b.through.Close()
	if err := b.srv.Stop(); err != nil {
		b.t.Errorf("stop: %v", err)
	}
}

// analyze stops isotap and analyzes what it recorded.
func (b *bench) analyze() *analyzer.Result {
	b.t.Helper()
	b.stop()
	r, err := analysis.Analyze(b.t.Context(), []string{b.recording}, analyzer.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// updatesCurrentRows lets a session at REPEATABLE READ change rows that others changed since its snapshot, as
// it may everywhere but on MariaDB from 11.8 on, where that ends in error 1020.
func (b *bench) updatesCurrentRows(c *sql.Conn) {
	b.t.Helper()
	if testdb.EngineName() == testdb.MariaDB118.Name {
		b.exec(c, "SET innodb_snapshot_isolation = OFF")
	}
}

// setGlobal changes a setting of the server that all tests share until the test has ended.
func (b *bench) setGlobal(name string, value int) {
	b.t.Helper()
	db := testdb.Open(b.t, "")
	var before int
	if err := db.QueryRow("SELECT @@global." + name).Scan(&before); err != nil {
		b.t.Fatal(err)
	}
	b.exec(db, fmt.Sprintf("SET GLOBAL %s = %d", name, value))
	b.t.Cleanup(func() {
		if _, err := db.Exec(fmt.Sprintf("SET GLOBAL %s = %d", name, before)); err != nil {
			b.t.Errorf("set %s back: %v", name, err)
		}
	})
}

// executor is a pool, a connection or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (b *bench) exec(db executor, statements ...string) {
	b.t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(b.t.Context(), s); err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
}

// conn takes one connection for itself.
func (b *bench) conn(db *sql.DB) *sql.Conn {
	b.t.Helper()
	c, err := db.Conn(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// answer is everything that database/sql shows of a statement's reply.
func answer(ctx context.Context, db executor, query string, args ...any) string {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return "error: " + err.Error()
	}
	defer rows.Close()
	var out strings.Builder
	for {
		writeResult(&out, rows)
		if !rows.NextResultSet() {
			break
		}
		out.WriteString("and then\n")
	}
	if err := rows.Err(); err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	return out.String()
}

func writeResult(out *strings.Builder, rows *sql.Rows) {
	types, err := rows.ColumnTypes()
	if err != nil {
		fmt.Fprintf(out, "columns: %v\n", err)
	}
	for _, c := range types {
		length, hasLength := c.Length()
		nullable, _ := c.Nullable()
		fmt.Fprintf(out, "column %s %s %d %t %t\n", c.Name(), c.DatabaseTypeName(), length, hasLength, nullable)
	}
	for rows.Next() {
		values := make([]any, len(types))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		if err := rows.Scan(values...); err != nil {
			fmt.Fprintf(out, "scan: %v\n", err)
			return
		}
		for _, v := range values {
			raw := *v.(*sql.RawBytes)
			fmt.Fprintf(out, "%q %t | ", string(raw), raw == nil)
		}
		out.WriteString("\n")
	}
}

// txns stops isotap and reads what it recorded.
func (b *bench) txns() []*history.Txn {
	b.t.Helper()
	b.stop()
	return recorded(b.t, b.recording)
}

// recorded returns the transactions of a recording.
func recorded(t *testing.T, recording string) (txns []*history.Txn) {
	t.Helper()
	r, err := recorder.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for x, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, x)
	}
	return txns
}

// runs stops isotap and returns the recording's runs.
func (b *bench) runs() []history.Info {
	b.t.Helper()
	b.stop()
	r, err := recorder.Open(b.recording)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	return r.Runs()
}

// story returns a recording as text: transactions in order of their start, each row under the number of
// its first appearance.
func story(txns []*history.Txn) string {
	rows := make(map[history.Row]int)
	tags := make(map[history.TxnID]int)
	for i, t := range txns {
		tags[t.ID] = i + 1
	}
	var out strings.Builder
	for i, t := range txns {
		fmt.Fprintf(&out, "T%d %v %v", i+1, t.Status, t.Level)
		if t.Implicit {
			out.WriteString(" implicit")
		}
		out.WriteString("\n")
		for _, s := range t.Stmts {
			fmt.Fprintf(&out, "  %d %v %v %s", s.Num, s.Kind, s.Observation, s.Shape)
			if !s.Reason.IsZero() {
				fmt.Fprintf(&out, " (%s)", s.Reason)
			}
			if s.Void {
				out.WriteString(" void")
			}
			for _, a := range s.Accesses {
				if rows[a.Row] == 0 {
					rows[a.Row] = len(rows) + 1
				}
				version := "0"
				if !a.Version.Initial() {
					version = fmt.Sprintf("T%d.%d", tags[a.Version.Txn], a.Version.Stmt)
				}
				fmt.Fprintf(&out, " %v(r%d,%s)", a.Op, rows[a.Row], version)
				if a.Inexact {
					out.WriteString("?")
				}
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

const account = "CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20), balance INT)"

func TestClientCannotTell(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20),(3,NULL,NULL)",
		"CREATE TABLE pair (a INT PRIMARY KEY, b BLOB, c DATETIME(6), d DOUBLE, e DECIMAL(9,3), f BIT(9), g TIME)",
		"INSERT INTO pair VALUES (1, REPEAT('x', 300), '2026-01-02 03:04:05.000006', 1.5, 2.25, 5, '-11:12:13'), "+
			"(2, NULL, NULL, NULL, NULL, NULL, NULL)")
	statements := []struct {
		sql  string
		args []any
	}{
		{"SELECT * FROM account ORDER BY id", nil},
		{"SELECT * FROM account WHERE id = ?", []any{2}},
		{"SELECT a.*, p.* FROM account a LEFT JOIN pair p ON p.a = a.id ORDER BY a.id", nil},
		{"SELECT * FROM pair WHERE a >= ? ORDER BY a", []any{0}},
		{"SELECT owner AS who FROM account WHERE balance > 5 ORDER BY id LIMIT 1 FOR UPDATE", nil},
		{"SELECT * FROM account WHERE id = 99", nil},
		{"SELECT id, nothing FROM account", nil},
		{"SELEC 1", nil},
		{"SELECT COUNT(*), owner FROM account GROUP BY owner ORDER BY owner", nil},
		{"UPDATE account SET balance = balance + 1 WHERE id <= 2", nil},
		{"UPDATE account SET balance = ? WHERE id = ?", []any{12, 1}},
		{"UPDATE account SET balance = ? WHERE id = ?", []any{12, 1}},
		{"INSERT INTO account VALUES (4, 'dan', 40)", nil},
		{"INSERT INTO account (id, owner) VALUES (?, ?), (?, ?)", []any{5, "eve", 6, "f'"}},
		{"INSERT INTO account VALUES (4, 'twice', 1)", nil},
		{"INSERT INTO account VALUES (7, 'too', 1, 2)", nil},
		{"INSERT INTO account VALUES (8, 'a name far longer than its column', 1)", nil},
		{"DELETE FROM account WHERE id = ?", []any{5}},
		{"DELETE FROM account WHERE id IN (6, 66)", nil},
		{"SELECT * FROM account ORDER BY id", nil},
		{"SHOW WARNINGS", nil},
		{"CREATE TABLE later (x INT) COMMENT 'l'", nil},
		{"INSERT INTO later VALUES (1), (2)", nil},
		{"SELECT * FROM later ORDER BY x", nil},
		{"DROP TABLE later", nil},
	}
	for _, parameters := range []string{"", "interpolateParams=true", "clientFoundRows=true"} {
		twin := testdb.NewDatabase(t)
		plain := testdb.Open(t, "")
		copyTables := []string{"account", "pair"}
		for _, table := range copyTables {
			b.exec(plain, fmt.Sprintf("CREATE TABLE %s.%s LIKE %s.%s", twin, table, b.database, table),
				fmt.Sprintf("ALTER TABLE %s.%s DROP COLUMN isotap_rowid, DROP COLUMN isotap_wlist", twin, table),
				fmt.Sprintf("INSERT INTO %s.%s SELECT * FROM %s.%s", twin, table, b.database, table))
		}
		config, err := mysql.ParseDSN(testdb.Current(t).DSN(twin) + "?" + parameters)
		if err != nil {
			// The DSN has parameters already.
			config, err = mysql.ParseDSN(testdb.Current(t).DSN(twin) + "&" + parameters)
			if err != nil {
				t.Fatal(err)
			}
		}
		directPool, err := sql.Open("mysql", config.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer directPool.Close()
		direct, through := b.conn(directPool), b.conn(b.open(parameters))
		for _, s := range statements {
			want, got := answer(t.Context(), direct, s.sql, s.args...), answer(t.Context(), through, s.sql, s.args...)
			got = strings.ReplaceAll(got, b.database, twin)
			if got != want {
				t.Errorf("[%s] %s\nthrough isotap:\n%s\ndirectly:\n%s", parameters, s.sql, got, want)
			}
		}
		b.exec(b.direct, "DELETE FROM account WHERE id > 3", "UPDATE account SET balance = id * 10 WHERE id < 3")
	}
}

// TestAffectedRowsAreTheServers: affected rows and insert i ds are the servers own.
func TestAffectedRowsAreTheServers(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
	c := b.conn(b.through)
	for _, step := range []struct {
		sql          string
		affected, id int64
	}{
		{"INSERT INTO t (v) VALUES (1), (2), (3)", 3, 1},
		{"UPDATE t SET v = 2", 2, 0},
		{"UPDATE t SET v = 2", 0, 0},
		{"DELETE FROM t WHERE id > 1", 2, 0},
		{"DELETE FROM t WHERE id > 1", 0, 0},
	} {
		r, err := c.ExecContext(t.Context(), step.sql)
		if err != nil {
			t.Fatalf("%s: %v", step.sql, err)
		}
		affected, _ := r.RowsAffected()
		id, _ := r.LastInsertId()
		if affected != step.affected || id != step.id {
			t.Errorf("%s: %d rows, insert id %d; want %d, %d", step.sql, affected, id, step.affected, step.id)
		}
		var count int64
		if err := c.QueryRowContext(t.Context(), "SELECT ROW_COUNT()").Scan(&count); err != nil ||
			count != step.affected {
			t.Errorf("ROW_COUNT() after %s: %d, %v; want %d", step.sql, count, err, step.affected)
		}
	}
}

func TestRecordingTellsWhatHappened(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
	c := b.conn(b.through)
	b.exec(c, "BEGIN", "SELECT * FROM account WHERE id = 1", "UPDATE account SET balance = 11 WHERE id = 1",
		"UPDATE account SET balance = 11 WHERE id = 1", "INSERT INTO account VALUES (3,'cat',30)", "COMMIT",
		"SELECT * FROM account WHERE id = 1",
		"START TRANSACTION", "UPDATE account SET balance = balance + 1 WHERE id = 2", "SAVEPOINT s",
		"DELETE FROM account WHERE id = 2",
		"ROLLBACK TO s", "SELECT balance FROM account WHERE id = 2 FOR UPDATE", "ROLLBACK",
		"SET autocommit = 0", "DELETE FROM account WHERE id = 3", "COMMIT", "SET autocommit = 1",
		"SELECT COUNT(*) FROM account")
	if _, err := c.ExecContext(t.Context(), "INSERT INTO account VALUES (1,'again',0)"); err == nil {
		t.Fatal("a duplicate key went in")
	}
	c.Close()
	want := `T1 committed REPEATABLE READ
  1 BEGIN nothing BEGIN
  2 SELECT exact SELECT * FROM account WHERE id = ? read(r1,0)
  3 UPDATE exact UPDATE account SET balance = ? WHERE id = ? update(r1,0)
  4 UPDATE exact UPDATE account SET balance = ? WHERE id = ? read(r1,T1.3)
  5 INSERT exact INSERT INTO account VALUES (?, ?, ?) insert(r2,0)
  6 COMMIT nothing COMMIT
T2 committed REPEATABLE READ implicit
  1 SELECT exact SELECT * FROM account WHERE id = ? read(r1,T1.3)
T3 aborted REPEATABLE READ
  1 BEGIN nothing START TRANSACTION
  2 UPDATE exact UPDATE account SET balance = balance + ? WHERE id = ? update(r3,0)
  3 SAVEPOINT nothing SAVEPOINT s
  4 DELETE exact DELETE FROM account WHERE id = ? void delete(r3,T3.2)
  5 ROLLBACK nothing ROLLBACK TO s
  6 SELECT exact SELECT balance FROM account WHERE id = ? FOR UPDATE read(r3,T3.2)
  7 ROLLBACK nothing ROLLBACK
T4 committed REPEATABLE READ
  1 DELETE exact DELETE FROM account WHERE id = ? delete(r2,T1.5)
  2 COMMIT nothing COMMIT
T5 committed REPEATABLE READ implicit
  1 SELECT exact SELECT COUNT(*) FROM account read(r1,T1.3) read(r3,0)
T6 aborted REPEATABLE READ implicit
  1 INSERT exact INSERT INTO account VALUES (?, ?, ?) void
`
	if got := story(b.txns()); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}

func TestPreparedStatementsAreObserved(t *testing.T) {
	b := newBench(t, nil, account, "INSERT INTO account VALUES (1,'ann',10),(2,'bob',20)")
	c := b.conn(b.through)
	read, err := c.PrepareContext(t.Context(), "SELECT balance FROM account WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	write, err := c.PrepareContext(t.Context(), "UPDATE account SET balance = ?, owner = ? WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	add, err := c.PrepareContext(t.Context(), "INSERT INTO account VALUES (?, ?, ?), (?, NULL, ?)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		var balance int
		if err := read.QueryRowContext(t.Context(), 1).Scan(&balance); err != nil || balance != 10+i {
			t.Fatalf("round %d: balance %d, %v", i, balance, err)
		}
		if _, err := write.ExecContext(t.Context(), balance+1, nil, 1); err != nil {
			t.Fatal(err)
		}
		r, err := add.ExecContext(t.Context(), 10+2*i, "x", nil, 11+2*i, 5)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.RowsAffected(); n != 2 {
			t.Fatalf("%d rows inserted", n)
		}
	}
	c.Close()
	want := ""
	version := "0"
	for i := range 3 {
		want += fmt.Sprintf("T%d committed REPEATABLE READ implicit\n"+
			"  1 SELECT exact SELECT balance FROM account WHERE id = ? read(r1,%s)\n", 3*i+1, version)
		want += fmt.Sprintf("T%d committed REPEATABLE READ implicit\n"+
			"  1 UPDATE exact UPDATE account SET balance = ?, owner = ? WHERE id = ? update(r1,%s)\n", 3*i+2, version)
		want += fmt.Sprintf("T%d committed REPEATABLE READ implicit\n"+
			"  1 INSERT exact INSERT INTO account VALUES (?, ?, ?) insert(r%d,0) insert(r%d,0)\n", 3*i+3, 2*i+2, 2*i+3)
		version = fmt.Sprintf("T%d.1", 3*i+2)
	}
	txns := b.txns()
	if got := story(txns); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
	if got, want := txns[1].Stmts[0].Args, []string{"11", "NULL", "1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("parameters recorded as %q, want %q", got, want)
	}
}
