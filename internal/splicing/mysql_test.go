package splicing

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// The settings under which texts of the MySQL family are read.
var (
	sqlModes = []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
		"PIPES_AS_CONCAT,STRICT_TRANS_TABLES",
		"ORACLE", "IGNORE_SPACE,STRICT_ALL_TABLES", "ANSI,NO_BACKSLASH_ESCAPES", "EMPTY_STRING_IS_NULL"}
	mysqlCharsets = []string{"utf8mb4", "utf8mb4", "latin1", "gbk", "sjis", "cp932", "big5", "binary", "euckr",
		"gb2312", "eucjpms", "ujis", "cp1251", "tis620"}
	// mysqlWays are ways to make the settings, each some texts.
	mysqlWays = [][]string{
		{"SET sql_mode='%m'", "SET NAMES %c"},
		{"SET NAMES %c", "SET @@session.sql_mode=\"%m\""},
		{"EXECUTE IMMEDIATE 'SET NAMES %c'", "EXECUTE IMMEDIATE \"SET sql_mode='%m'\""},
		{"PREPARE s1 FROM 'SET NAMES %c'", "EXECUTE s1", "PREPARE s2 FROM \"SET sql_mode='%m'\"", "EXECUTE s2",
			"DEALLOCATE PREPARE s1"},
		{"BEGIN NOT ATOMIC SET NAMES %c; SET sql_mode='%m'; END"},
		{"/*!SET NAMES %c*/", "/*!50000 SET sql_mode='%m' */"},
		{"SET CHARACTER SET %c", "SET @x=1, sql_mode='%m', @y=2"},
		{"SET character_set_client=%c", "SET session sql_mode='%m'"},
		{"SELECT 1; SET NAMES %c; SET sql_mode='%m'"},
		{"SET @m='%m'", "SET NAMES %c", "SET sql_mode=@m"},
		{"CALL setm('%m')", "SET STATEMENT max_statement_time=5 FOR SET NAMES %c", "SET sql_mode='%m'"},
		{"SET @old=@@sql_mode, @@sql_mode='%m'", "SET NAMES '%c' COLLATE DEFAULT"},
	}
)

// TestMariaDBTexts sends hostile texts to MariaDB, directly and through isotap.
func TestMariaDBTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server := testdb.MariaDB(t)
	f := &family{grammar: mysqlGrammar, relay: newRelay(t, server.Addr())}
	var dbs [2]*sql.DB
	for i := range f.names {
		f.names[i] = testdb.NewDatabase(t)
		dbs[i] = testdb.Open(t, f.names[i])
		execAll(t, dbs[i], "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(100), w INT) ENGINE=InnoDB CHARACTER SET utf8mb4",
			"CREATE TABLE b (id INT PRIMARY KEY, x INT) ENGINE=InnoDB",
			"CREATE TABLE canary (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
			"CREATE PROCEDURE setm(m TEXT) SET sql_mode = m",
			"CREATE FUNCTION setf(m TEXT) RETURNS INT BEGIN SET sql_mode = m; RETURN 1; END",
			"CREATE FUNCTION setc() RETURNS INT BEGIN SET character_set_client = gbk; RETURN 1; END",
			"CREATE TABLE setting (id INT)",
			"CREATE TRIGGER sets BEFORE INSERT ON setting FOR EACH ROW SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
	}
	if len(f.names[0]) != len(f.names[1]) {
		t.Fatalf("names of other lengths: %q", f.names)
	}
	target, err := dsn.Parse("mysql://root@" + f.relay.listener.Addr().String() + "/" + f.names[1])
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogmysql.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalogmysql.Instrument(t.Context(), c, catalog.Options{Schemas: []string{f.names[1]}}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	proxied := startProxy(t, target)
	for i, address := range []string{server.Addr(), proxied} {
		f.dial[i] = func() (conn, error) { return dialMySQL(address, f.names[i]) }
	}
	f.reset = func(i int) error {
		for _, s := range []string{"DELETE FROM a", "DELETE FROM b", "DELETE FROM canary",
			`INSERT INTO a (id, v, w) VALUES (1,'a',1),(2,'b',2),(3,'a''b',3),(4,'a\\',4),(5,'x',5)`,
			"INSERT INTO b (id, x) VALUES (1,1),(2,2)", "INSERT INTO canary (id, n) VALUES (1,0)"} {
			if _, err := dbs[i].Exec(s); err != nil {
				return err
			}
		}
		return nil
	}
	f.dump = func(i int) (string, error) {
		return dump(dbs[i], "SELECT id, HEX(v), w FROM a ORDER BY id", "SELECT id, x FROM b ORDER BY id",
			"SELECT id, n FROM canary ORDER BY id")
	}
	f.setUp = func(r *rand.Rand) (string, []string) {
		mode, charset := sqlModes[r.IntN(len(sqlModes))], mysqlCharsets[r.IntN(len(mysqlCharsets))]
		var session []string
		for _, s := range mysqlWays[r.IntN(len(mysqlWays))] {
			session = append(session, strings.NewReplacer("%m", mode, "%c", charset).Replace(s))
		}
		return fmt.Sprintf("sql_mode %q, character set %s, %q", mode, charset, session), session
	}
	f.keeps = holds
	// The flag says that the column is grouped by, and is another one where what is grouped is another.
	f.normal = func(reply []byte) []byte {
		return bytes.ReplaceAll(reply, []byte("\xfd\x00\x80"), []byte("\xfd\x00\x00"))
	}
	f.messages = packetsOf
	f.row = func(p string) bool {
		return p != "" && p[0] != 0xff && p[0] != 0xfe && !strings.HasPrefix(p, "\x03def")
	}
	f.hunt(t, func(reply []byte) bool {
		return slices.ContainsFunc(packetsOf(reply), func(p string) bool { return p[0] == 0xff })
	})
}

// packetsOf returns the payloads of the packets of a reply.
func packetsOf(reply []byte) (payloads []string) {
	for len(reply) > 4 {
		end := min(len(reply), 4+(int(reply[0])|int(reply[1])<<8|int(reply[2])<<16))
		payloads, reply = append(payloads, string(reply[4:end])), reply[end:]
	}
	return payloads
}

// startProxy starts isotap before a server and returns its address.
func startProxy(t *testing.T, target dsn.Target) string {
	t.Helper()
	isotap, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: filepath.Join(t.TempDir(), "rec"),
		Args:      true, Drain: time.Second, Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := isotap.Stop(); err != nil {
			t.Error(err)
		}
	})
	return isotap.Addr().String()
}

func execAll(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// dump returns all rows of some queries.
func dump(db *sql.DB, queries ...string) (string, error) {
	var b strings.Builder
	for _, q := range queries {
		rows, err := db.Query(q)
		if err != nil {
			return "", fmt.Errorf("%s: %w", q, err)
		}
		columns, _ := rows.Columns()
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return "", fmt.Errorf("%s: %w", q, err)
			}
			for _, v := range values {
				fmt.Fprintf(&b, "%q,", v.String)
			}
			b.WriteByte(';')
		}
		if err := rows.Err(); err != nil {
			return "", fmt.Errorf("%s: %w", q, err)
		}
		b.WriteByte('/')
	}
	return b.String(), nil
}

// A mysqlConn is a connection of the MySQL protocol.
type mysqlConn struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialMySQL logs in as root, without a password.
func dialMySQL(address, database string) (conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	m := &mysqlConn{c, bufio.NewReader(c)}
	c.SetDeadline(time.Now().Add(testdb.Patience))
	if _, err := m.read(); err != nil {
		return nil, err
	}
	login := binary.LittleEndian.AppendUint32(nil,
		gomysql.CLIENT_PROTOCOL_41|gomysql.CLIENT_SECURE_CONNECTION|gomysql.CLIENT_PLUGIN_AUTH|
			gomysql.CLIENT_CONNECT_WITH_DB|gomysql.CLIENT_TRANSACTIONS|gomysql.CLIENT_LONG_PASSWORD|gomysql.CLIENT_MULTI_STATEMENTS|gomysql.CLIENT_MULTI_RESULTS)
	login = append(append(login, 0, 0, 0, 1, 33), make([]byte, 23)...)
	if err := m.write(1, append(login, "root\x00\x00"+database+"\x00mysql_native_password\x00"...)); err != nil {
		return nil, err
	}
	reply, err := m.read()
	if err != nil || reply[4] != 0 {
		return nil, fmt.Errorf("log in: %q, %w", reply, err)
	}
	return m, nil
}

func (m *mysqlConn) write(seq byte, payload []byte) error {
	n := len(payload)
	_, err := m.conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}, payload...))
	return err
}

// read returns a packet with its header.
func (m *mysqlConn) read() ([]byte, error) {
	packet := make([]byte, 4)
	if _, err := io.ReadFull(m.in, packet); err != nil {
		return nil, err
	}
	packet = append(packet, make([]byte, int(packet[0])|int(packet[1])<<8|int(packet[2])<<16)...)
	_, err := io.ReadFull(m.in, packet[4:])
	return packet, err
}

// ask sends a query and behind it a ping, whose OK tells that the reply was over before.
func (m *mysqlConn) ask(text string) (reply []byte, err error) {
	m.conn.SetDeadline(time.Now().Add(testdb.Patience))
	if err := m.write(0, append([]byte{gomysql.COM_QUERY}, text...)); err != nil {
		return nil, err
	}
	if err := m.write(0, []byte{gomysql.COM_PING}); err != nil {
		return nil, err
	}
	for packets := 0; ; packets++ {
		p, err := m.read()
		if err != nil {
			return reply, err
		}
		reply = append(reply, p...)
		if packets > 0 && p[3] == 1 && len(p) > 4 && p[4] == 0 {
			return reply, nil
		}
	}
}

func (m *mysqlConn) close() {
	m.write(0, []byte{gomysql.COM_QUIT})
	io.Copy(io.Discard, m.in) // until the server has rolled back
	m.conn.Close()
}
