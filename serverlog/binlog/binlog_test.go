package binlog_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/serverlog/binlog"
)

// logged is MariaDB with its binary log, for all tests of the package; ISOTAP_BINLOG_URL names another server, which
// has it already.
var logged struct {
	url    string
	db     *sql.DB
	engine dbms.Engine
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	logged.url, logged.engine = os.Getenv("ISOTAP_BINLOG_URL"), dbms.MariaDB
	if logged.url == "" {
		server, err := testdb.Start(context.Background(), testdb.Options{Args: testdb.BinaryLog})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		logged.url = server.URL()
	}
	target, err := dsn.Parse(logged.url)
	if err == nil {
		logged.db, err = sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/?multiStatements=true", target.User,
			target.Password, target.Address))
	}
	var version string
	if err == nil {
		err = logged.db.QueryRow("SELECT VERSION()").Scan(&version)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !strings.Contains(version, "MariaDB") {
		logged.engine = dbms.MySQL
	}
	defer logged.db.Close()
	return m.Run()
}

var started = time.Now()

func clock() int64 { return int64(time.Since(started)) }

func source(t *testing.T, url string) *binlog.Source {
	target, err := dsn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return &binlog.Source{Target: target, Engine: logged.engine, Clock: clock}
}

// database makes a database with tables as isotap has them, named like the test.
func database(t *testing.T) string {
	name := "d" + strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))
	name = name[:min(len(name), 60)]
	exec(t, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name, "USE "+name,
		`CREATE TABLE acc (id INT PRIMARY KEY, v INT, isotap_rowid VARBINARY(64) INVISIBLE DEFAULT (lower(hex(uuid_short()))),
			isotap_wlist VARBINARY(255) INVISIBLE DEFAULT _binary'0') ENGINE=InnoDB`,
		`CREATE TABLE plain (id INT PRIMARY KEY, v INT) ENGINE=InnoDB`)
	t.Cleanup(func() { exec(t, "DROP DATABASE "+name) })
	return name
}

// exec runs statements in one session.
func exec(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := logged.db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // its settings are nobody else's
}

// read returns what the log has of what do does.
func read(t *testing.T, do func()) []*history.LoggedTxn {
	t.Helper()
	stream, err := source(t, logged.url).Open(t.Context())
	if err != nil {
		t.Fatalf("%#v", err)
	}
	defer func() {
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}()
	do()
	if err := stream.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	var txns []*history.LoggedTxn
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		txn, err := stream.Next(ctx)
		cancel()
		if err == io.EOF {
			return txns
		}
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
	}
}

// say writes transactions as the tests compare them: "+row [tag]" for an insertion, "~row tag>tag", "-row tag"; of
// another status than committed its name, and * for one that wrote more.
func say(txns []*history.LoggedTxn) string {
	var lines []string
	for _, txn := range txns {
		var words []string
		if txn.Status != history.Committed {
			words = append(words, txn.Status.String())
		}
		for _, w := range txn.Writes {
			_, table, _ := strings.Cut(w.Row.Table, ".")
			row := table + "/" + w.Row.ID
			switch w.Op {
			case history.InsertRow:
				words = append(words, "+"+row+" "+w.New.String())
			case history.UpdateRow:
				words = append(words, "~"+row+" "+w.Old.String()+">"+w.New.String())
			case history.DeleteRow:
				words = append(words, "-"+row+" "+w.Old.String())
			}
		}
		for _, table := range txn.Unlogged {
			_, table, _ = strings.Cut(table, ".")
			words = append(words, "?"+table)
		}
		if txn.Cut {
			words = append(words, "*")
		}
		lines = append(lines, strings.Join(words, ", "))
	}
	return strings.Join(lines, "\n")
}

const insertOne = "INSERT INTO acc (id, v, isotap_rowid, isotap_wlist) VALUES (1, 100, 'r1', '0')"

func TestWritesAreReadFromTheLog(t *testing.T) {
	for _, c := range []struct {
		name    string
		setUp   []string
		run     []string
		want    string
		mariadb bool
	}{
		{name: "tagged and foreign", run: []string{insertOne,
			"UPDATE acc SET v = 150, isotap_wlist = CONCAT(isotap_wlist, ',0000011.1') WHERE id = 1",
			"UPDATE acc SET v = 500 WHERE id = 1", "DELETE FROM acc"},
			want: "+acc/r1 0\n~acc/r1 0>0000011.1\n~acc/r1 0000011.1>0000011.1\n-acc/r1 0000011.1"},
		{name: "one transaction", setUp: []string{insertOne},
			run:  []string{"BEGIN", "UPDATE acc SET v = 1", "UPDATE acc SET v = 2", "INSERT INTO plain VALUES (1, 1)", "COMMIT"},
			want: "~acc/r1 0>0, ~acc/r1 0>0"},
		{name: "undone", setUp: []string{insertOne},
			run: []string{"BEGIN", "UPDATE acc SET v = 1", "SAVEPOINT s", "UPDATE acc SET v = 2", "ROLLBACK TO s", "COMMIT",
				"BEGIN", "UPDATE acc SET v = 3", "ROLLBACK"},
			want: "~acc/r1 0>0"},
		{name: "unwatched", run: []string{"INSERT INTO plain VALUES (1, 1)", "UPDATE plain SET v = 2"}},
		{name: "defined anew", setUp: []string{insertOne},
			run: []string{"ALTER TABLE acc ADD COLUMN w INT FIRST", "UPDATE acc SET v = 2",
				"TRUNCATE TABLE acc", insertOne,
				"CREATE TABLE new LIKE acc", "INSERT INTO new (id, isotap_rowid) VALUES (1, 'n')"},
			want: "~acc/r1 0>0\n+acc/r1 0\n+new/n 0"},
		{name: "without identity",
			setUp: []string{"INSERT INTO acc (id, v, isotap_rowid, isotap_wlist) VALUES (5, 1, NULL, NULL)"},
			run:   []string{"UPDATE acc SET v = 2"}, want: `~acc/key "5" 0>0`},
		{name: "another key without identity",
			setUp: []string{"INSERT INTO acc (id, v, isotap_rowid, isotap_wlist) VALUES (5, 1, NULL, NULL)"},
			run:   []string{"UPDATE acc SET id = 6"}, want: `-acc/key "5" 0, +acc/key "6" 0`},
		{name: "replaced", setUp: []string{insertOne},
			run:  []string{"REPLACE INTO acc (id, v, isotap_rowid) VALUES (1, 7, 'r2')"},
			want: "-acc/r1 0, +acc/r2 0"},
		{name: "prepared", setUp: []string{insertOne},
			run: []string{"XA START 'a','b',7", "UPDATE acc SET v = 1", "XA END 'a','b',7", "XA PREPARE 'a','b',7",
				"XA COMMIT 'a','b',7",
				"XA START 'c'", "UPDATE acc SET v = 2", "XA END 'c'", "XA PREPARE 'c'", "XA ROLLBACK 'c'",
				"XA START 'd'", "UPDATE acc SET v = 3", "XA END 'd'", "XA COMMIT 'd' ONE PHASE"},
			want: "~acc/r1 0>0\naborted, ~acc/r1 0>0\n~acc/r1 0>0"},
		{name: "as statements", setUp: []string{insertOne},
			run:  []string{"SET SESSION binlog_format = 'STATEMENT'", "UPDATE acc SET v = 7 WHERE id = 1"},
			want: "*"},
		{name: "part of the columns", setUp: []string{insertOne},
			run:  []string{"SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE acc SET v = 7 WHERE id = 1"},
			want: "*"},
		{name: "a cascade", mariadb: true, setUp: []string{insertOne,
			`CREATE TABLE child (id INT PRIMARY KEY, a INT, isotap_rowid VARBINARY(64) INVISIBLE,
				isotap_wlist VARBINARY(255) INVISIBLE, FOREIGN KEY (a) REFERENCES acc (id) ON DELETE CASCADE)`,
			"INSERT INTO child (id, a, isotap_rowid, isotap_wlist) VALUES (1, 1, 'c1', '0')"},
			run: []string{"DELETE FROM acc"}, want: "-acc/r1 0, ?child"},
		{name: "a trigger", setUp: []string{insertOne,
			"CREATE TABLE other LIKE acc", "INSERT INTO other (id, v, isotap_rowid) VALUES (1, 1, 'o1')",
			"CREATE TRIGGER tr AFTER UPDATE ON acc FOR EACH ROW UPDATE other SET v = v + 1"},
			run:  []string{"UPDATE acc SET v = 9, isotap_wlist = '0,0000011.1'"},
			want: "~acc/r1 0>0000011.1, ~other/o1 0>0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.mariadb && logged.engine != dbms.MariaDB {
				t.Skip("MySQL logs it")
			}
			use := "USE " + database(t)
			exec(t, append([]string{use}, c.setUp...)...)
			if got := say(read(t, func() { exec(t, append([]string{use}, c.run...)...) })); got != c.want {
				t.Errorf("the log says\n%s\nand not\n%s", got, c.want)
			}
		})
	}
}

// What is shorter in the log than the description of its format, with which the server begins, is not taken for read.
func TestShortTransactionsAreReadToTheEnd(t *testing.T) {
	use := "USE " + database(t)
	exec(t, use, insertOne)
	for i := range 20 {
		got := say(read(t, func() {
			exec(t, use, "SET SESSION binlog_format = 'STATEMENT'", fmt.Sprint("UPDATE acc SET v = ", i))
		}))
		if got != "*" {
			t.Fatalf("the log says %q", got)
		}
	}
}

func TestTimesHoldWhatEndedBetweenThem(t *testing.T) {
	use := "USE " + database(t)
	exec(t, use, insertOne)
	var before, after [3]int64
	txns := read(t, func() {
		for i := range before {
			before[i] = clock()
			exec(t, use, "UPDATE acc SET v = v + 1")
			after[i] = clock()
			time.Sleep(60 * time.Millisecond)
		}
	})
	if len(txns) != len(before) {
		t.Fatalf("the log has %d transactions", len(txns))
	}
	for i, txn := range txns {
		if txn.From <= 0 || txn.From > after[i] || txn.To < before[i] {
			t.Errorf("transaction %d ended between %d and %d, and between %d and %d by the log", i, before[i], after[i],
				txn.From, txn.To)
		}
		if i > 0 && txn.From < after[i-1] {
			t.Errorf("transaction %d is not known to have ended after the one before it", i)
		}
		if logged.engine == dbms.MariaDB && (txn.Seen < before[i] || i+1 < len(txns) && txn.Seen > before[i+1]) {
			t.Errorf("transaction %d is seen since %d, and ran from %d to %d", i, txn.Seen, before[i], after[i])
		}
		if logged.engine == dbms.MySQL && txn.Thread == 0 {
			t.Errorf("transaction %d has no connection", i)
		}
	}
}

func TestWhatTheServerLacksIsTold(t *testing.T) {
	t.Run("rights", func(t *testing.T) {
		exec(t, "CREATE USER isotap_nobody@'%' IDENTIFIED BY ''")
		t.Cleanup(func() { exec(t, "DROP USER isotap_nobody@'%'") })
		at := source(t, logged.url)
		at.Target.User, at.Target.Password = "isotap_nobody", ""
		status := map[dbms.Engine]string{dbms.MariaDB: "BINLOG MONITOR", dbms.MySQL: "REPLICATION CLIENT"}[logged.engine]
		refused(t, at, status)
		exec(t, "GRANT REPLICATION CLIENT ON *.* TO isotap_nobody@'%'")
		refused(t, at, "REPLICATION SLAVE")
		exec(t, "GRANT REPLICATION SLAVE ON *.* TO isotap_nobody@'%'")
		stream, err := at.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	})
	for setting, value := range map[string]string{"binlog_format": "MIXED", "binlog_row_image": "MINIMAL"} {
		t.Run(setting, func(t *testing.T) {
			var was string
			if err := logged.db.QueryRow("SELECT @@GLOBAL." + setting).Scan(&was); err != nil {
				t.Fatal(err)
			}
			exec(t, "SET GLOBAL "+setting+" = "+value)
			t.Cleanup(func() { exec(t, "SET GLOBAL "+setting+" = "+was) })
			refused(t, source(t, logged.url), setting+" is "+value)
		})
	}
}

// refused has a log opened that cannot be, and finds a text in the reason.
func refused(t *testing.T, at *binlog.Source, want string) {
	t.Helper()
	_, err := at.Open(t.Context())
	var unreadable *serverlog.Unreadable
	if !errors.As(err, &unreadable) || !strings.Contains(unreadable.Error(), want) {
		t.Errorf("the log is refused with %v, which is to name %s", err, want)
	}
}

// recorded keeps what a log says.
type recorded struct {
	txns      chan *history.LoggedTxn
	stretches chan history.LogStretch
}

func (r *recorded) Logged(_ context.Context, t *history.LoggedTxn) error {
	r.txns <- t
	return nil
}

func (r *recorded) LogStretch(_ context.Context, _ int, s history.LogStretch) error {
	r.stretches <- s
	return nil
}

func TestALostConnectionIsAGap(t *testing.T) {
	use := "USE " + database(t)
	exec(t, use, insertOne)
	reader, err := serverlog.Open(t.Context(), source(t, logged.url), clock, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{make(chan *history.LoggedTxn, 100), make(chan history.LogStretch, 100)}
	reader.Start(r)
	begun := <-r.stretches
	exec(t, use, "UPDATE acc SET v = 1")
	<-r.txns
	var thread int64
	if err := logged.db.QueryRow("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'").
		Scan(&thread); err != nil {
		t.Fatal(err)
	}
	exec(t, use, fmt.Sprintf("KILL %d", thread), "UPDATE acc SET v = 2")
	ended, again := <-r.stretches, <-r.stretches
	exec(t, use, "UPDATE acc SET v = 3")
	<-r.txns
	stop, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reader.Stop(stop)
	whole := <-r.stretches
	if ended.From != begun.From || ended.To < ended.From || ended.Reason == "" || again.From <= ended.To ||
		whole.From != again.From || whole.To <= whole.From || whole.Reason != "" || len(r.txns) > 0 {
		t.Errorf("the stretches are %+v, %+v, %+v, %+v", begun, ended, again, whole)
	}
}
