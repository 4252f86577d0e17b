package mysql

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

func TestVersionsAreRead(t *testing.T) {
	tests := []struct {
		version   string
		engine    dbms.Engine
		numbers   [3]int
		invisible bool
	}{
		{"10.11.19-MariaDB-0+deb12u1", "mariadb", [3]int{10, 11, 19}, true},
		{"5.5.5-10.2.44-MariaDB", "mariadb", [3]int{10, 2, 44}, false},
		{"11.8.3-MariaDB", "mariadb", [3]int{11, 8, 3}, true},
		{"8.0.36-0ubuntu0.22.04.1", "mysql", [3]int{8, 0, 36}, true},
		{"8.0.22", "mysql", [3]int{8, 0, 22}, false},
		{"9.7.4", "mysql", [3]int{9, 7, 4}, true},
		{"5.7.44-log", "mysql", [3]int{5, 7, 44}, false},
		{"8.0.11-TiDB-v8.5.1", "tidb", [3]int{8, 5, 1}, false},
		{"nonsense", "mysql", [3]int{}, false},
		{"", "mysql", [3]int{}, false},
	}
	for _, tt := range tests {
		s := identify(tt.version)
		if s.Engine != tt.engine || s.Version != tt.version || s.Numbers != tt.numbers ||
			s.InvisibleColumns() != tt.invisible {
			t.Errorf("identify(%q) = %+v, invisible columns %v", tt.version, s, s.InvisibleColumns())
		}
	}
}

func TestServerFactsAreTheGlobalSettings(t *testing.T) {
	testdb.Only(t, "its own server is a MariaDB, where it ran", "mariadb")
	server, err := testdb.Start(t.Context(), testdb.Options{Args: []string{"--innodb-snapshot-isolation=ON",
		"--transaction-isolation=SERIALIZABLE", "--sql-mode=ANSI_QUOTES", "--max-allowed-packet=2M",
		"--lower-case-table-names=1", "--log-bin", "--server-id=1", "--binlog-format=STATEMENT"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c := connectTo(t, server)
	got, err := ServerFacts(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := identify(server.Version())
	want.SnapshotIsolation, want.AsksConflicts, want.Level, want.SQLMode = true, true,
		history.Serializable, "ANSI_QUOTES"
	want.MaxAllowedPacket, want.LowerCaseTableNames = 2<<20, 1
	want.BinaryLog, want.BinaryLogFormat = true, "STATEMENT"
	if got != want || got.Engine != "mariadb" {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	t.Run("names are folded", func(t *testing.T) { checkFoldedNames(t, server, c) })
	t.Run("row ids are logged as rows", func(t *testing.T) { checkBinaryLog(t, server, c) })
}

func checkFoldedNames(t *testing.T, server *testdb.Server, c *Conn) {
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run(t, db, "CREATE DATABASE Fold;\nCREATE TABLE Fold.MiXed (id INT);\n")
	cache, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if cache.Table("FOLD", "mixed") == nil || cache.Table("fold", "MIXED") == nil {
		t.Error("the table is found under one spelling only")
	}
	run(t, db, "DROP TABLE Fold.MiXed;\n")
	cache.Changed(Change{Tables: []rewrite.TableName{{Schema: "FOLD", Table: "MIXED"}}})
	if cache.Table("fold", "mixed") != nil {
		t.Error("the table is found after it was dropped")
	}
}

func checkBinaryLog(t *testing.T, server *testdb.Server, c *Conn) {
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run(t, db, `
CREATE DATABASE logged;
CREATE TABLE logged.plain (id INT);
INSERT INTO logged.plain VALUES (1), (2), (3);
CREATE TABLE logged.triggered (id INT);
CREATE TRIGGER logged.au AFTER UPDATE ON logged.triggered FOR EACH ROW SET @x = 1;
`)
	o := catalog.Options{Schemas: []string{"logged"}, WListBytes: 255}
	if _, err := Instrument(t.Context(), c, o); err == nil || !strings.Contains(err.Error(), "binlog_format") {
		t.Errorf("under binlog_format=STATEMENT: %v", err)
	}
	run(t, db, "SET GLOBAL binlog_format = 'MIXED';\n")
	fresh := connectTo(t, server) // the sessions there are keep their format
	result, err := Instrument(t.Context(), fresh, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Changed) != 1 || len(result.LeftOut) != 1 || !strings.Contains(result.LeftOut[0].Reason, "trigger") {
		t.Errorf("result: %+v", result)
	}
	if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM logged.plain"); n != 3 {
		t.Errorf("%d ids", n)
	}
}

func TestConnConnectsAnewForAQuery(t *testing.T) {
	c := connect(t)
	for range 2 {
		rows, err := c.Query(t.Context(), Query{Text: "SELECT CONNECTION_ID()", Columns: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testdb.Open(t, "").Exec("KILL " + rows[0][0]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Query(t.Context(), Query{Text: "SELECT ?, ?", Args: []any{1, "x"}, Columns: 2}); err != nil {
		t.Errorf("after a KILL: %v", err)
	}
}

// TestClosingABrokenConnIsNoError has a connection reset by the network before it is closed.
func TestClosingABrokenConnIsNoError(t *testing.T) {
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close()
	clients := make(chan *net.TCPConn, 1)
	go relayOne(between, target.Address, clients)
	target.Address = between.Addr().String()
	c, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	client := <-clients
	client.SetLinger(0) // the end is a reset
	client.Close()
	if err := c.Close(); err != nil {
		t.Errorf("closing a connection that was reset: %v", err)
	}
}

// relayOne passes the bytes of one connection on to an address, until either side ends it.
func relayOne(l net.Listener, to string, clients chan<- *net.TCPConn) {
	client, err := l.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	clients <- client.(*net.TCPConn)
	go io.Copy(client, server)
	io.Copy(server, client)
}

func TestConnGivesTheServersErrorAndGoesOn(t *testing.T) {
	c := connect(t)
	_, err := c.Exec(t.Context(), "SELECT\n  * FROM nowhere.nothing")
	var e *mysql.MyError
	if !errors.As(err, &e) || e.Code != 1146 && e.Code != 1049 {
		t.Fatalf("error %v", err)
	}
	if !strings.HasPrefix(err.Error(), "SELECT * FROM nowhere.nothing: ") {
		t.Errorf("error %v does not say what was done", err)
	}
	if _, err := c.Exec(t.Context(), "DO 1"); err != nil {
		t.Error(err)
	}
}

func TestConnKillsAStatementThatNobodyWaitsFor(t *testing.T) {
	c := connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, "SELECT SLEEP(60)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	db := testdb.Open(t, "")
	deadline := time.Now().Add(10 * time.Second)
	for number(t, db, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(60)%'") > 0 {
		if time.Now().After(deadline) {
			t.Fatal("the statement goes on")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := c.Exec(t.Context(), "DO 1"); err != nil {
		t.Errorf("after an interruption: %v", err)
	}
}

// TestConnectErrorsKeepThePassword: connect says where it failed but not the password.
func TestConnectErrorsKeepThePassword(t *testing.T) {
	target, err := dsn.Parse("mysql://somebody:s3cret@" + testdb.Current(t).Addr() + "/")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Connect(t.Context(), target)
	if err == nil || !strings.Contains(err.Error(), target.Address) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}
