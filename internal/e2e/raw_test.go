package e2e

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/testdb"
	mysqlproxy "github.com/isotap/isotap/proxy/mysql"
)

// A rawClient speaks the protocol packet by packet, so that a test sees every byte of a reply.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	// statements are the ids of the statements prepared so far: the server counts for all sessions.
	statements []uint32
}

// dialRaw logs in as root with the capabilities given, as far as the server offers them.
func dialRaw(t *testing.T, address, database string, caps uint32) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rawClient{t: t, conn: conn, in: bufio.NewReader(conn)}
	c.read()
	login := binary.LittleEndian.AppendUint32(nil, caps|gomysql.CLIENT_PROTOCOL_41|gomysql.CLIENT_SECURE_CONNECTION|
		gomysql.CLIENT_PLUGIN_AUTH|gomysql.CLIENT_CONNECT_WITH_DB|gomysql.CLIENT_TRANSACTIONS|gomysql.CLIENT_LONG_PASSWORD)
	login = append(login, 0, 0, 0, 1, 33)
	login = append(login, make([]byte, 23)...)
	login = append(login, "root\x00\x00"+database+"\x00"+authPlugin()+"\x00"...)
	if caps&gomysql.CLIENT_CONNECT_ATTRS != 0 {
		login = append(login, 0) // none
	}
	zstd := caps&gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM != 0
	if zstd {
		login = append(login, 3) // its level
	}
	c.write(1, login)
	if ok := c.read(); ok[4] != 0 {
		t.Fatalf("login: %q", ok)
	}
	if zstd || caps&gomysql.CLIENT_COMPRESS != 0 {
		c.conn = mysqlproxy.NewCompressed(conn, zstd, true)
		c.in.Reset(c.conn)
	}
	return c
}

// authPlugin is how root logs in, which has no password.
func authPlugin() string {
	if testdb.EngineName() == testdb.MySQL.Name {
		return "caching_sha2_password"
	}
	return "mysql_native_password"
}

func (c *rawClient) write(seq byte, payload []byte) {
	c.t.Helper()
	for {
		n := min(len(payload), gomysql.MaxPayloadLen)
		packet := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}, payload[:n]...)
		if _, err := c.conn.Write(packet); err != nil {
			c.t.Fatal(err)
		}
		payload = payload[n:]
		seq++
		if n < gomysql.MaxPayloadLen {
			return
		}
	}
}

// read returns one packet with its header.
func (c *rawClient) read() []byte {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(testdb.Patience))
	header := make([]byte, 4)
	if _, err := io.ReadFull(c.in, header); err != nil {
		c.t.Fatalf("read a packet: %v", err)
	}
	packet := append(header, make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)...)
	if _, err := io.ReadFull(c.in, packet[4:]); err != nil {
		c.t.Fatalf("read a packet: %v", err)
	}
	return packet
}

// ask sends a command and, behind it, a ping that shows where its reply ends. It gives the reply's
// packets. A file that the server asks for is the one given.
func (c *rawClient) ask(command []byte, file string) [][]byte {
	c.t.Helper()
	c.write(0, command)
	var packets [][]byte
	switch {
	case command[0] == gomysql.COM_CHANGE_USER:
		packets = append(packets, c.read())
		if packets[0][4] == 0xfe {
			c.write(packets[0][3]+1, nil)
			packets = append(packets, c.read())
			// The scramble is a new one each time.
			packets[0] = packets[0][:5]
		}
		return packets
	case file == "":
		c.write(0, []byte{gomysql.COM_PING})
	}
	for {
		p := c.read()
		if len(packets) > 0 && p[3] == 1 && packets[len(packets)-1][3] != 0 && p[4] == 0 {
			return packets
		}
		packets = append(packets, p)
		if p[3] == 1 && p[4] == 0xfb && file != "" {
			c.write(2, []byte(file))
			c.write(3, nil)
			c.write(0, []byte{gomysql.COM_PING})
		}
	}
}

// say sends a command that has no reply.
func (c *rawClient) say(command []byte) { c.write(0, command) }

// converse sends a command of a conversation, whose statement ids count the statements prepared so
// far, and returns the reply with ids counted likewise.
func (c *rawClient) converse(command command, database string) [][]byte {
	b := bytes.Replace(command.bytes, []byte("@db"), []byte(database), 1)
	switch b[0] {
	case gomysql.COM_STMT_EXECUTE, gomysql.COM_STMT_FETCH, gomysql.COM_STMT_RESET, gomysql.COM_STMT_CLOSE,
		gomysql.COM_STMT_SEND_LONG_DATA:
		if n := int(binary.LittleEndian.Uint32(b[1:])); n <= len(c.statements) {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[1:], c.statements[n-1])
		}
	}
	if command.silent {
		c.say(b)
		return nil
	}
	reply := c.ask(b, command.file)
	if b[0] == gomysql.COM_STMT_PREPARE && reply[0][4] == 0 {
		c.statements = append(c.statements, binary.LittleEndian.Uint32(reply[0][5:]))
		binary.LittleEndian.PutUint32(reply[0][5:], uint32(len(c.statements)))
	}
	return reply
}

func query(sql string) []byte { return append([]byte{gomysql.COM_QUERY}, sql...) }

// statementCommand is a command with a statement id behind it.
func statementCommand(command byte, id uint32, rest ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{command}, id), rest...)
}

// execute is COM_STMT_EXECUTE with 64-bit integers. Without bind the types are left out.
func execute(id uint32, cursor, bind bool, values ...int64) []byte {
	b := statementCommand(gomysql.COM_STMT_EXECUTE, id, 0, 1, 0, 0, 0)
	if cursor {
		b[5] = 1
	}
	if len(values) == 0 {
		return b
	}
	b = append(b, make([]byte, (len(values)+7)/8)...)
	if !bind {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = append(b, bytes.Repeat([]byte{gomysql.MYSQL_TYPE_LONGLONG, 0}, len(values))...)
	}
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// executeString is COM_STMT_EXECUTE with one string and one integer; a nil string came by SEND_LONG_DATA.
func executeString(id uint32, s *string, v int64) []byte {
	b := statementCommand(gomysql.COM_STMT_EXECUTE, id, 0, 1, 0, 0, 0, 0, 1, gomysql.MYSQL_TYPE_VAR_STRING, 0,
		gomysql.MYSQL_TYPE_LONGLONG, 0)
	if s != nil {
		b = append(append(b, byte(len(*s))), *s...)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(v))
}

// A command is one step of a conversation. A silent one gets no reply.
type command struct {
	name   string
	bytes  []byte
	silent bool
	file   string
	// covered says that an index holds all that it reads, until isotap's columns come too: MySQL then tells
	// that it used no index.
	covered bool
}

func conversation() []command {
	text := "text"
	c := []command{
		{name: "select", bytes: query("SELECT * FROM t ORDER BY id")},
		{name: "select nothing", bytes: query("SELECT id, v FROM t WHERE id > 1000")},
		{name: "wide row", bytes: query("SELECT REPEAT('x', 100000), s FROM t WHERE id = 1")},
		{name: "join", bytes: query("SELECT a.s, b.v FROM t a LEFT JOIN t b ON b.id = a.id + 1 ORDER BY a.id")},
		{name: "no-op update", bytes: query("UPDATE t SET v = v WHERE id < 3")},
		{name: "update", bytes: query("UPDATE t SET v = v + 1 WHERE id < 3")},
		{name: "delete", bytes: query("DELETE FROM t WHERE id = 3")},
		{name: "delete nothing", bytes: query("DELETE FROM t WHERE id = 3")},
		{name: "insert", bytes: query("INSERT INTO t (v, s) VALUES (1, 'a'), (2, 'b')")},
		{name: "insert with a warning", bytes: query("INSERT IGNORE INTO t VALUES (1, 1, 'dup'), (50, 2, 'new')")},
		{name: "duplicate", bytes: query("INSERT INTO t VALUES (1, 1, 'dup')")},
		{name: "warnings", bytes: query("SHOW WARNINGS")},
		{name: "syntax error", bytes: query("SELECT * FORM t")},
		{name: "unknown column", bytes: query("SELECT missing FROM t WHERE x = 1")},
		{name: "wrong count", bytes: query("INSERT INTO t VALUES (1)")},
		{name: "several statements", bytes: query("SELECT 1; SELECT * FROM t WHERE id = 1; UPDATE t SET v = 9 WHERE id = 1")},
		{name: "statements of all kinds",
			bytes: query(" SELECT v FROM t WHERE id = 1 ;\n/* a */ UPDATE t SET v = v + 1 WHERE id = 1;DELETE " +
				"FROM t WHERE id = 50 ; INSERT INTO t (v, s) VALUES (7, 'multi'); " +
				"SELECT ROW_COUNT(), LAST_INSERT_ID() - (SELECT MAX(id) FROM t); SHOW COLUMNS FROM t;\n ")},
		{name: "transactions in a text",
			bytes: query("BEGIN; UPDATE t SET v = 5 WHERE id = 2; ROLLBACK; BEGIN; UPDATE t SET v = 6 WHERE id = 2; " +
				"COMMIT; SELECT v FROM t")},
		{name: "a text that fails", bytes: query("UPDATE t SET v = 8 WHERE id = 2; INSERT INTO t VALUES (1, 1, 'dup'); DELETE FROM t")},
		{name: "warnings of a text that fails", bytes: query("SHOW WARNINGS")},
		{name: "a text with a column that is not there", bytes: query("SELECT 1; SELECT nothing FROM t; SELECT 2")},
		{name: "a text with a syntax error", bytes: query("SELECT id FROM t;\nSELECT 5 FORM t; SELECT\n2"),
			covered: true},
		{name: "a text that ends with a syntax error", bytes: query("SELECT 1; SELEC 2 ;")},
		{name: "an empty statement", bytes: query("SELECT 1;; SELECT 2")},
		{name: "a comment at the end", bytes: query("SELECT 1; SELECT 2; -- bye")},
		{name: "a comment behind the last", bytes: query("SELECT 1; SELECT 2 -- bye")},
		{name: "a compound statement", bytes: query("BEGIN NOT ATOMIC SELECT 1; SELECT v FROM t WHERE id = 1; END; SELECT 3")},
		{name: "a procedure's definition",
			bytes: query("SELECT 1; CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2; END; SELECT 3")},
		{name: "a procedure in a text", bytes: query("SELECT 0; CALL two(); SELECT 3")},
		{name: "another reading", bytes: query("SET sql_mode = 'ANSI_QUOTES'; SELECT \"v\" FROM t WHERE id = 1; " +
			"SET sql_mode = DEFAULT; SELECT \"v;\"")},
		{name: "warnings in a text", bytes: query("SELECT CAST('a' AS SIGNED); SHOW WARNINGS; " +
			"SELECT @@warning_count; DROP TABLE IF EXISTS nothing; SHOW WARNINGS")},
		{name: "counts in a text", bytes: query("DELETE FROM t WHERE id = 2; SELECT ROW_COUNT(); " +
			"SELECT DISTINCT v FROM t; SELECT FOUND_ROWS(); SELECT ROW_COUNT()")},
		{name: "a union in a text", bytes: query("BEGIN; SELECT v FROM t UNION ALL SELECT id FROM t; " +
			"SELECT DISTINCT s FROM t ORDER BY s LIMIT 1, 1; SELECT FOUND_ROWS(); COMMIT")},
		{name: "put it back", bytes: query("INSERT INTO t VALUES (2, 20, NULL); DROP PROCEDURE two; SELECT * FROM t ORDER BY id")},
		{name: "procedure", bytes: query("CALL p()")},
		{name: "procedure with a cursor", bytes: query("CALL c()")},
		{name: "describe", bytes: query("DESCRIBE t")},
		{name: "show full columns", bytes: query("SHOW FULL FIELDS FROM t")},
		{name: "show columns like", bytes: query("SHOW COLUMNS FROM t LIKE 's'")},
		{name: "describe what is not there", bytes: query("DESC nothing")},
		{name: "explain", bytes: query("EXPLAIN UPDATE t SET v = 1")},
		{name: "show create table", bytes: query("SHOW CREATE TABLE t")},
		{name: "show create table without keys", bytes: query("SHOW CREATE TABLE f")},
		{name: "begin", bytes: query("BEGIN")},
		{name: "in a transaction", bytes: query("UPDATE t SET s = 'tx' WHERE id = 2")},
		{name: "locking read", bytes: query("SELECT s FROM t WHERE id = 2 FOR UPDATE")},
		{name: "distinct", bytes: query("SELECT DISTINCT v FROM t WHERE id < 3 ORDER BY v")},
		{name: "warnings of distinct", bytes: query("SHOW WARNINGS")},
		{name: "union", bytes: query("SELECT s FROM t UNION SELECT v FROM t ORDER BY 1 LIMIT 2")},
		{name: "found rows of a union", bytes: query("SELECT FOUND_ROWS()")},
		{name: "union all", bytes: query("SELECT v, s FROM t WHERE id < 3 UNION ALL SELECT x, NULL FROM f ORDER BY 1")},
		{name: "union without an order", bytes: query("SELECT s FROM t UNION SELECT v FROM t")},
		{name: "warnings of a union", bytes: query("SHOW WARNINGS")},
		{name: "union of nothing", bytes: query("SELECT s, 1 FROM t WHERE id > 900 UNION SELECT v, 2 FROM t WHERE id > 900")},
		{name: "union with warnings", bytes: query("SELECT CAST(s AS SIGNED) FROM t UNION SELECT v FROM t; SHOW WARNINGS")},
		{name: "number of warnings of a union", bytes: query("SELECT s FROM t UNION SELECT v FROM t; SHOW COUNT(*) WARNINGS")},
		{name: "union that fails", bytes: query("SELECT s FROM t UNION SELECT v, s FROM t")},
		{name: "commit and chain", bytes: query("COMMIT AND CHAIN")},
		{name: "rollback", bytes: query("ROLLBACK")},
		{name: "file", bytes: query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ','"),
			file: "90,1,f\n91,2,g\n"},
		{name: "field list", bytes: append([]byte{gomysql.COM_FIELD_LIST}, "f\x00"...)},
		{name: "unknown database", bytes: append([]byte{gomysql.COM_INIT_DB}, "no_such_database"...)},
		{name: "multi statements off", bytes: []byte{gomysql.COM_SET_OPTION, 1, 0}},
		{name: "one statement too many", bytes: query("SELECT 1; SELECT 2")},
		{name: "multi statements on", bytes: []byte{gomysql.COM_SET_OPTION, 0, 0}},
		{name: "prepare select", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT * FROM t WHERE id <= ? ORDER BY id"...)},
		{name: "execute", bytes: execute(1, false, true, 2)},
		{name: "execute again without types", bytes: execute(1, false, false, 1)},
		{name: "open a cursor", bytes: execute(1, true, true, 60)},
		{name: "fetch", bytes: statementCommand(gomysql.COM_STMT_FETCH, 1, 2, 0, 0, 0)},
		{name: "fetch the rest", bytes: statementCommand(gomysql.COM_STMT_FETCH, 1, 100, 0, 0, 0)},
		{name: "prepare distinct", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT DISTINCT s FROM t WHERE id <= ? ORDER BY s"...)},
		{name: "begin again", bytes: query("BEGIN")},
		{name: "execute distinct", bytes: execute(2, false, true, 2)},
		{name: "execute distinct without types", bytes: execute(2, false, false, 3)},
		{name: "execute what was prepared last", bytes: execute(1<<32-1, false, true, 3)},
		{name: "execute what was prepared last without types", bytes: execute(1<<32-1, false, false, 3)},
		{name: "distinct with a cursor", bytes: execute(2, true, false, 3)},
		{name: "fetch distinct", bytes: statementCommand(gomysql.COM_STMT_FETCH, 2, 100, 0, 0, 0)},
		{name: "prepare union all", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT id, s FROM t WHERE id <= ? UNION ALL SELECT v, NULL FROM t WHERE id = ?"...)},
		{name: "execute union all", bytes: execute(3, false, true, 2, 1)},
		{name: "commit again", bytes: query("COMMIT")},
		{name: "close distinct", bytes: statementCommand(gomysql.COM_STMT_CLOSE, 2), silent: true},
		{name: "close union all", bytes: statementCommand(gomysql.COM_STMT_CLOSE, 3), silent: true},
		{name: "reset", bytes: statementCommand(gomysql.COM_STMT_RESET, 1)},
		{name: "close", bytes: statementCommand(gomysql.COM_STMT_CLOSE, 1), silent: true},
		{name: "prepare update", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "UPDATE t SET s = ? WHERE id = ?"...)},
		{name: "execute update", bytes: executeString(4, &text, 1)},
		{name: "long data", bytes: statementCommand(gomysql.COM_STMT_SEND_LONG_DATA, 4,
			append([]byte{0, 0}, "long"...)...), silent: true},
		{name: "more long data", bytes: statementCommand(gomysql.COM_STMT_SEND_LONG_DATA, 4,
			append([]byte{0, 0}, "er"...)...), silent: true},
		{name: "execute with long data", bytes: executeString(4, nil, 1)},
		{name: "prepare delete", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "DELETE FROM t WHERE id > ?"...)},
		{name: "execute delete", bytes: execute(5, false, true, 49)},
		{name: "prepare insert", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"INSERT INTO t VALUES (?, ?, 'p'), (70, 7, 'q')"...)},
		{name: "execute insert", bytes: execute(6, false, true, 69, 6)},
		{name: "execute insert twice", bytes: execute(6, false, false, 69, 6)},
		{name: "execute insert with parameters cut off", bytes: execute(6, false, true, 80, 6)[:22]},
		{name: "execute insert with too many parameters", bytes: execute(6, false, true, 81, 6, 7)},
		{name: "execute insert after that", bytes: execute(6, false, true, 82, 6)},
		{name: "read what was inserted", bytes: query("SELECT * FROM t WHERE id >= 69 ORDER BY id")},
		{name: "prepare describe", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "SHOW COLUMNS FROM t"...)},
		{name: "execute describe", bytes: execute(7, false, false)},
		{name: "prepare show create", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "SHOW CREATE TABLE f"...)},
		{name: "execute show create", bytes: execute(8, false, false)},
		{name: "prepare without parameters", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"INSERT INTO t (v) VALUES (5)"...)},
		{name: "execute without parameters", bytes: execute(9, false, false)},
		{name: "prepare nonsense", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "PREPARE ?"...)},
		{name: "prepare a procedure with a cursor", bytes: append([]byte{gomysql.COM_STMT_PREPARE}, "CALL c()"...)},
		{name: "execute a procedure with a cursor", bytes: execute(10, false, false)},
		{name: "execute a procedure with a cursor for a cursor", bytes: execute(10, true, false)},
		{name: "prepare a union", bytes: append([]byte{gomysql.COM_STMT_PREPARE},
			"SELECT s FROM t WHERE id <= ? UNION SELECT v FROM t WHERE id = ?"...)},
		{name: "execute a union", bytes: execute(11, false, true, 2, 1)},
		{name: "execute a union without types", bytes: execute(11, false, false, 2, 1)},
		{name: "union with a cursor", bytes: execute(11, true, false, 2, 1)},
		{name: "fetch a union", bytes: statementCommand(gomysql.COM_STMT_FETCH, 11, 100, 0, 0, 0)},
		{name: "unknown statement", bytes: execute(1<<30, false, false)},
		{name: "read it all", bytes: query("SELECT * FROM t ORDER BY id")},
		{name: "reset connection", bytes: []byte{0x1f}},
		{name: "after the reset", bytes: query("UPDATE t SET v = 3 WHERE id = 2")},
		{name: "change user", bytes: append([]byte{gomysql.COM_CHANGE_USER},
			"root\x00\x00@db\x00\x21\x00mysql_native_password\x00"...)},
		{name: "after the change", bytes: query("SELECT DATABASE(), v FROM t WHERE id = 2")},
	}
	return c
}

// TestRepliesAreEqualByteForByte has one conversation directly and one through isotap, with each
// combination of the capabilities that shape replies.
func TestRepliesAreEqualByteForByte(t *testing.T) {
	server := testdb.Current(t)
	admin := testdb.Open(t, "")
	for i, caps := range []uint32{
		0,
		gomysql.CLIENT_DEPRECATE_EOF,
		gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_SESSION_TRACK,
		gomysql.CLIENT_FOUND_ROWS | gomysql.CLIENT_SESSION_TRACK,
		gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_COMPRESS,
		gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM,
	} {
		compresses := caps&(gomysql.CLIENT_COMPRESS|gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM) != 0
		if caps&gomysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM != 0 && testdb.EngineName() != testdb.MySQL.Name {
			continue // MariaDB has none
		}
		caps |= gomysql.CLIENT_MULTI_STATEMENTS | gomysql.CLIENT_MULTI_RESULTS | gomysql.CLIENT_PS_MULTI_RESULTS | gomysql.CLIENT_LOCAL_FILES
		t.Run(fmt.Sprintf("capabilities %#x", caps), func(t *testing.T) {
			names := [2]string{fmt.Sprintf("raw_direct_%d", i), fmt.Sprintf("raw_tapped_%d", i)}
			setup := []string{
				"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(20))",
				"CREATE TABLE f (x INT)",
				"INSERT INTO t VALUES (1, 10, 'one'), (2, 20, NULL), (3, 30, 'three')",
				"CREATE PROCEDURE p() BEGIN SELECT * FROM t WHERE id = 1; SELECT 2; END",
				// A result that is sent while the procedure's own cursor is open has the status of a client's cursor.
				"CREATE PROCEDURE c() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT id FROM t; SELECT 1; OPEN c; " +
					"FETCH c INTO x; SELECT x; SELECT v FROM t; CLOSE c; SELECT 2; END",
			}
			b := &bench{t: t}
			for _, name := range names {
				b.exec(admin, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
				b.exec(testdb.Open(t, name), setup...)
			}
			b = newBenchIn(t, names[1], nil)
			direct := dialRaw(t, server.Addr(), names[0], caps)
			through := dialRaw(t, b.srv.Addr().String(), names[1], caps)
			for _, c := range conversation() {
				want, got := direct.converse(c, names[0]), through.converse(c, names[1])
				if c.covered && testdb.EngineName() == testdb.MySQL.Name {
					plain := &mirror{caps: caps}
					plain.forgetPlan(want)
					plain.forgetPlan(got)
				}
				if compresses {
					forgetNumbers(want)
					forgetNumbers(got)
				}
				if diff := firstDifference(got, want, names); diff != "" {
					t.Errorf("%s: %s", c.name, diff)
				}
			}
		})
	}
}

// forgetNumbers clears the numbers of packets that came compressed: servers begin anew whenever they flush, and clients
// look at none.
func forgetNumbers(packets [][]byte) {
	for _, p := range packets {
		p[3] = 0
	}
}

// firstDifference compares replies, with the databases' names, which are equally long, taken for one.
func firstDifference(got, want [][]byte, names [2]string) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Sprintf("%d packets through isotap, %d directly", len(got), len(want))
		}
		g := strings.ReplaceAll(string(got[i]), names[1], names[0])
		if g != string(want[i]) {
			return fmt.Sprintf("packet %d\nthrough isotap: %.300q\ndirectly:       %.300q", i+1, g, want[i])
		}
	}
	return ""
}
