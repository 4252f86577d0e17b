package e2e

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// What a step of a farewell is that is no statement.
const (
	resetStep      = "-- reset connection"
	changeUserStep = "-- change user"
)

// farewells are what clients say before they hang up without a word. Each changes t, and what it left
// undecided is rolled back.
var farewells = [][]string{
	{"BEGIN", "@write"},
	{"BEGIN", "@write", "COMMIT", "@write", "BEGIN", "@write"},
	{"BEGIN", "@write", "BEGIN", "@write"},
	{"BEGIN", "@write", "COMMIT AND CHAIN", "@write"},
	{"BEGIN", "@write", "ROLLBACK AND CHAIN", "@write", "COMMIT"},
	{"BEGIN", "@write", "COMMIT RELEASE", "@write"},
	{"BEGIN", "@write", "ROLLBACK RELEASE", "@write"},
	{"SET completion_type = 1", "BEGIN", "@write", "COMMIT", "@write", "ROLLBACK", "@write"},
	{"SET completion_type = 2", "BEGIN", "@write", "COMMIT", "@write"},
	{"SET completion_type = 2", "BEGIN", "@write", "ROLLBACK", "@write"},
	{"SET completion_type = 1", "BEGIN", "@write", "COMMIT AND NO CHAIN", "@write", "BEGIN", "@write", "ROLLBACK",
		"@write"},
	{"SET autocommit = 0", "@write", "SET autocommit = 1", "@write"},
	{"SET autocommit = 0", "@write", "SET autocommit = 0", "@write"},
	{"SET autocommit = 0", "@write", "SET @x = 1, autocommit = 1", "@write", "SET autocommit = 0", "@write"},
	{"SET autocommit = 0", "@write", "CREATE TABLE t (x INT)", "@write"},
	{"SET autocommit = 0", "@write", "ANALYZE TABLE t", "@write"},
	{"SET autocommit = 0", "@write", "OPTIMIZE TABLE t", "@write"},
	{"SET autocommit = 0", "@write", "CHECK TABLE t", "@write"},
	{"SET autocommit = 0", "@write", "FLUSH TABLES", "@write"},
	{"SET autocommit = 0", "@write", "CREATE TEMPORARY TABLE tmp (x INT)", "@write", "DROP TEMPORARY TABLE tmp",
		"@write"},
	{"SET autocommit = 0", "@write", "LOCK TABLES t WRITE", "@write", "UNLOCK TABLES", "@write"},
	{"SET autocommit = 0", "@write", "CREATE TABLE made AS SELECT 1 AS x", "@write", "DROP TABLE made", "@write"},
	{"SET autocommit = 0", "SELECT 1", "@write", "TRUNCATE nothing", "@write"},
	{"BEGIN", "@write", "LOCK TABLES nothing WRITE", "@write", "UNLOCK TABLES"},
	{"BEGIN", "@write", "UNLOCK TABLES", "@write"},
	{"BEGIN", "@write", "FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES", "@write"},
	{"BEGIN", "@write", "ALTER TABLE nothing ADD x INT", "@write", "BEGIN", "@write"},
	{"BEGIN", "@write", "DROP TABLE nothing", "@write"},
	{"BEGIN", "@write", "GRANT SELECT ON t TO nobody", "@write"},
	{"BEGIN", "@write", "SET PASSWORD FOR nobody = ''", "@write"},
	{"BEGIN", "@write", "CREATE USER root@localhost", "@write"},
	{"BEGIN", "@write", "RENAME TABLE nothing TO other", "@write"},
	{"BEGIN", "@write", "DO RELEASE_ALL_LOCKS()", "@write"},
	{"BEGIN", "@write", "/*!50000 COMMIT */", "@write"},
	{"BEGIN", "@write", "PREPARE c FROM 'COMMIT'", "EXECUTE c", "@write", "BEGIN", "@write", "EXECUTE c", "@write"},
	{"BEGIN", "@write", "PREPARE c FROM 'ROLLBACK'", "EXECUTE c", "@write"},
	{"BEGIN", "@write", "CALL commits()", "@write"},
	{"BEGIN", "@write", "CALL restarts()", "@write"},
	{"BEGIN", "@write", "CALL fails()", "@write"},
	{"SAVEPOINT a", "@write", "ROLLBACK TO a", "@write"},
	{"BEGIN", "@write", "SAVEPOINT a", "@write", "ROLLBACK TO A", "@write", "COMMIT"},
	{"BEGIN", "SAVEPOINT a", "@write", "SAVEPOINT b", "@write", "SAVEPOINT `A`", "@write", "ROLLBACK TO SAVEPOINT a",
		"COMMIT"},
	{"BEGIN", "SAVEPOINT a", "@write", "RELEASE SAVEPOINT a", "@write", "ROLLBACK TO a", "COMMIT"},
	{"BEGIN", "SAVEPOINT a", "@write", "ROLLBACK WORK TO nowhere", "COMMIT"},
	{"SET autocommit = 0", "SAVEPOINT a", "@write", "ROLLBACK TO a", "@write", "COMMIT"},
	{"BEGIN", "@write", "SAVEPOINT a", "BEGIN", "@write", "ROLLBACK TO a", "COMMIT"},
	{"BEGIN", "@write", "INSERT INTO t (id, v) VALUES (1, 1)", "@write", "COMMIT"},
	{"START TRANSACTION READ ONLY", "@write", "COMMIT", "@write"},
	{"SET TRANSACTION READ ONLY", "@write", "@write"},
	{"BEGIN", "@write", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@write", "COMMIT"},
	{"XA START '@x'", "@write", "XA END '@x'"},
	{"XA START '@x'", "@write", "XA END '@x'", "XA PREPARE '@x'"},
	{"XA START '@x'", "@write", "XA END '@x'", "XA PREPARE '@x'", "XA COMMIT '@x'", "@write"},
	{"XA START '@x'", "@write", "XA END '@x'", "XA PREPARE '@x'", "XA ROLLBACK '@x'", "@write"},
	{"XA START '@x'", "@write", "XA END '@x'", "XA COMMIT '@x' ONE PHASE", "@write"},
	{"XA START '@x'", "@write", "XA END '@x'", "XA COMMIT '@x'", "XA ROLLBACK '@x'", "@write"},
	{"XA START '@x'", "@write", "XA COMMIT '@x' ONE PHASE", "COMMIT", "BEGIN", "XA END '@x'", "XA PREPARE '@x'",
		"SELECT v FROM t", resetStep},
	{"XA START '@x'", "@write", "XA END '@x'", "XA PREPARE '@x'", changeUserStep, "@write"},
	{"BEGIN", "@write", resetStep, "@write"},
	{"BEGIN", "@write", changeUserStep, "@write"},
	{"@write", resetStep, "@write", changeUserStep, "BEGIN", "@write"},
	{"SET autocommit = 0", "@write", resetStep, "@write"},
	{"BEGIN; @write; COMMIT; @write; BEGIN; @write"},
	{"BEGIN; @write; SELECT nothing; COMMIT", "@write"},
	{"BEGIN", "@write; COMMIT AND CHAIN; @write", "@write"},
	{"SET autocommit = 0; @write; SET autocommit = 1; @write", "@write; ROLLBACK"},
	{"BEGIN; @write; COMMIT; BEGIN; @write; CREATE TABLE t (x INT)", "@write"},
	{"BEGIN; @write; SAVEPOINT a; @write; ROLLBACK TO a; INSERT INTO t (id) VALUES (1); COMMIT", "COMMIT"},
	{"BEGIN; @write; COMMIT; SYNTAX ERROR; BEGIN", "@write"},
	{"BEGIN NOT ATOMIC UPDATE t SET v = v + 1; COMMIT; UPDATE t SET v = v + 1; END", "@write"},
}

func TestOutcomesAreWhatTheTablesSay(t *testing.T) {
	for _, durability := range []recorder.Durability{recorder.Relaxed, recorder.Commit} {
		t.Run(durability.String(), func(t *testing.T) {
			b := newBench(t, func(o *proxyserver.Options) { o.Durability = durability },
				"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO t (v) VALUES (1), (2), (3)",
				"CREATE PROCEDURE commits() BEGIN UPDATE t SET v = v + 1; COMMIT; END",
				"CREATE PROCEDURE restarts() BEGIN UPDATE t SET v = v + 1; COMMIT; START TRANSACTION; UPDATE t SET v = v + 1; END",
				"CREATE PROCEDURE fails() BEGIN COMMIT; UPDATE t SET v = v + 1; INSERT INTO t (id) VALUES (1); END")
			b.setGlobal("innodb_lock_wait_timeout", 1)
			for _, steps := range farewells {
				b.sayFarewell(steps)
			}
			holdAgainst(t, b.txns(), b.lists("t"))
		})
	}
}

// sayFarewell takes a client's steps and hangs up. Branches that are prepared then are committed.
func (b *bench) sayFarewell(steps []string) {
	b.t.Helper()
	c := dialRaw(b.t, b.srv.Addr().String(), b.database, gomysql.CLIENT_MULTI_STATEMENTS|gomysql.CLIENT_MULTI_RESULTS)
	for _, step := range steps {
		command := []byte{0x1f}
		switch step {
		case resetStep:
		case changeUserStep:
			command = append([]byte{gomysql.COM_CHANGE_USER},
				"root\x00\x00"+b.database+"\x00\x21\x00"+authPlugin()+"\x00"...)
		default:
			step = strings.NewReplacer("@write", "UPDATE t SET v = v + 1 WHERE id < 3", "@x", b.database).Replace(step)
			command = append([]byte{gomysql.COM_QUERY}, step...)
		}
		if !c.try(command) {
			break // RELEASE
		}
	}
	c.conn.Close()
	for end := time.Now().Add(10 * time.Second); b.srv.Stats().Open > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("after %q the client's connection is still open", steps)
		}
	}
	b.commitPrepared()
}

// commitPrepared commits the branch that a client left, as soon as the server lets go of its session.
func (b *bench) commitPrepared() {
	b.t.Helper()
	for range 1000 {
		rows, err := b.direct.Query("XA RECOVER")
		if err != nil {
			b.t.Fatal(err)
		}
		left := false
		for rows.Next() {
			var format, global, branch int
			var name string
			if err := rows.Scan(&format, &global, &branch, &name); err != nil {
				b.t.Fatal(err)
			}
			left = left || name == b.database
		}
		rows.Close()
		if !left {
			return
		}
		b.direct.Exec("XA COMMIT '" + b.database + "'")
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatal("a prepared branch cannot be committed")
}

// try sends a command, and a ping behind it that shows where the reply ends. It reports whether the server
// goes on.
func (c *rawClient) try(command []byte) bool {
	c.t.Helper()
	c.conn.SetDeadline(time.Now().Add(testdb.Patience))
	send := func(seq byte, payload []byte) {
		c.conn.Write(append([]byte{byte(len(payload)), 0, 0, seq}, payload...)) // reading tells whether it went
	}
	send(0, command)
	asks := command[0] == gomysql.COM_CHANGE_USER
	if !asks {
		send(0, []byte{gomysql.COM_PING})
	}
	for replied := false; ; replied = true {
		header := make([]byte, 4)
		if _, err := io.ReadFull(c.in, header); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				c.t.Fatal(err)
			}
			return false
		}
		payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
		if _, err := io.ReadFull(c.in, payload); err != nil {
			c.t.Fatal(err)
		}
		switch {
		case asks && payload[0] == 0xfe:
			send(header[3]+1, nil)
		case asks, replied && header[3] == 1 && payload[0] == 0:
			return true
		}
	}
}
