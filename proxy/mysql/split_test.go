package mysql

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A turn is what one side sent.
type turn struct {
	server bool
	bytes  []byte
}

// A conversation drives a session against a real server, and keeps what either side sent. Having no
// socket, the session needs no more than this to run.
type conversation struct {
	t       *testing.T
	session *Session
	server  net.Conn
	turns   []turn
	sent    []byte // to the server, with hears
}

func newTestSession(planner Planner) *Session {
	var n uint32
	return NewSession(Config{Planner: planner, Options: session.Options{ID: 1, Args: true,
		NextTxn: func() history.TxnID {
			n++
			return history.MakeTxnID(7, n)
		}}})
}

// client sends packets of the client and lets the server answer until nothing is in flight.
func (c *conversation) client(seq byte, payload []byte) {
	c.t.Helper()
	packet, _ := appendPacket(nil, seq, payload)
	c.turns = append(c.turns, turn{bytes: packet})
	if n, err := c.session.FromClient(0, packet); err != nil || n != len(packet) {
		c.t.Fatalf("the session took %d of %d bytes: %v", n, len(packet), err)
	}
	c.settle()
}

func (c *conversation) settle() {
	c.t.Helper()
	buf := make([]byte, 4096)
	for {
		_, toServer := c.session.Output()
		if len(toServer) > 0 {
			if _, err := c.server.Write(toServer); err != nil {
				c.t.Fatal(err)
			}
		}
		s := c.session
		if s.phase == phaseLogin || s.phase == phaseInfile || s.phase == phaseCommand && s.wantsClient() {
			return
		}
		c.server.SetReadDeadline(time.Now().Add(testdb.Patience))
		n, err := c.server.Read(buf)
		if err != nil {
			c.t.Fatalf("the server in phase %d: %v", s.phase, err)
		}
		c.turns = append(c.turns, turn{server: true, bytes: bytes.Clone(buf[:n])})
		if err := s.FromServer(0, buf[:n]); err != nil {
			c.t.Fatal(err)
		}
	}
}

// replay returns all that a new session answers to the same turns, in pieces of the given size.
func replay(t *testing.T, planner Planner, turns []turn, size int) (toClient, toServer []byte, events string) {
	t.Helper()
	s := newTestSession(planner)
	var all []session.Event
	for _, turn := range turns {
		for rest := turn.bytes; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(size, len(rest))])
			rest = rest[len(piece):]
			if turn.server {
				if err := s.FromServer(0, piece); err != nil {
					t.Fatalf("pieces of %d: %v", size, err)
				}
			} else if n, err := s.FromClient(0, piece); err != nil || n != len(piece) {
				t.Fatalf("pieces of %d: the session took %d of %d bytes: %v", size, n, len(piece), err)
			}
			// What was given may be reused by the caller.
			clear(piece)
			c, u := s.Output()
			toClient, toServer = append(toClient, c...), append(toServer, u...)
			all = append(all, s.Events()...)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return toClient, toServer, string(text)
}

// serverPlanner plans for the tables that the test server has now.
func serverPlanner(t *testing.T) Planner {
	t.Helper()
	target, err := dsn.Parse(testdb.MariaDB(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	own, err := catalogmysql.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	schema, err := catalogmysql.Load(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	return sqlmysql.NewCache(sqlmysql.New(schema, sqlmysql.Options{}), 100, 1<<20)
}

// TestAnswersDoNotDependOnHowBytesArrive replays a real conversation in pieces of many sizes.
func TestAnswersDoNotDependOnHowBytesArrive(t *testing.T) {
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	for _, sql := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(300), " + sqlmysql.RowIDDefinition + ", " +
			sqlmysql.WListDefinition(255) + ")",
		"INSERT INTO t VALUES (1, REPEAT('a', 300)), (2, NULL), (3, '')",
	} {
		if _, err := db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	server, planner := testdb.MariaDB(t), serverPlanner(t)
	for _, caps := range []uint32{0, gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_SESSION_TRACK} {
		conn, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &conversation{t: t, session: newTestSession(planner), server: conn}
		c.settle()
		talk(c, database, caps)
		wantClient, wantServer, wantEvents := replay(t, planner, c.turns, 1<<20)
		if len(wantClient) < 2000 || len(wantServer) < 1000 {
			t.Fatalf("the conversation is only %d and %d bytes long", len(wantClient), len(wantServer))
		}
		for _, size := range []int{1, 2, 3, 4, 5, 7, 11, 64, 301} {
			toClient, toServer, events := replay(t, planner, c.turns, size)
			if !bytes.Equal(toClient, wantClient) || !bytes.Equal(toServer, wantServer) || events != wantEvents {
				t.Errorf("capabilities %#x, pieces of %d: another answer\nevents %s\nwant   %s",
					caps, size, events, wantEvents)
			}
		}
	}
}

// talk is the client's part of the conversation.
func talk(c *conversation, database string, caps uint32) {
	caps |= gomysql.CLIENT_PROTOCOL_41 | gomysql.CLIENT_SECURE_CONNECTION | gomysql.CLIENT_PLUGIN_AUTH |
		gomysql.CLIENT_CONNECT_WITH_DB | gomysql.CLIENT_LONG_PASSWORD | gomysql.CLIENT_MULTI_STATEMENTS | gomysql.CLIENT_MULTI_RESULTS
	login := append([]byte{byte(caps), byte(caps >> 8), byte(caps >> 16), byte(caps >> 24), 0, 0, 0,
		1, 33}, make([]byte, 23)...)
	c.client(1, append(login, "root\x00\x00"+database+"\x00mysql_native_password\x00"...))
	query := func(sql string) { c.client(0, append([]byte{gomysql.COM_QUERY}, sql...)) }
	prepare := func(sql string) { c.client(0, append([]byte{gomysql.COM_STMT_PREPARE}, sql...)) }
	execute := func(payload ...byte) {
		id := c.session.prepared.last
		c.client(0, append([]byte{gomysql.COM_STMT_EXECUTE, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24),
			0, 1, 0, 0, 0}, payload...))
	}
	query("SELECT * FROM t ORDER BY id")
	query("BEGIN")
	query("UPDATE t SET s = CONCAT(IFNULL(s, ''), 'b') WHERE id > 1")
	query("INSERT INTO t VALUES (10, 'x'), (11, NULL)")
	query("DELETE FROM t WHERE id > 9")
	query("SELECT DISTINCT s FROM t WHERE id > 0 ORDER BY s LIMIT 2")
	query("SELECT id FROM t UNION ALL SELECT s FROM t")
	query("SELECT nothing FROM t")
	query("COMMIT")
	query("UPDATE t SET s = 'c' WHERE id = 2")
	query("SELECT ROW_COUNT()")
	query("SELECT 1; SELECT * FROM t WHERE id = 1")
	query("BEGIN; UPDATE t SET s = 'm' WHERE id = 2; SELECT DISTINCT s FROM t; DELETE FROM t WHERE id = 99; COMMIT; " +
		"SELECT nothing FROM t; DO 1")
	query("SELECT s FROM t WHERE id = 3; BEGIN NOT ATOMIC SELECT 1; END")
	prepare("SELECT * FROM t WHERE id >= ? ORDER BY id")
	execute(0, 1, gomysql.MYSQL_TYPE_TINY, 0, 1)
	execute(0, 0, 3)
	prepare("UPDATE t SET s = ? WHERE id = ?")
	execute(0, 1, gomysql.MYSQL_TYPE_VAR_STRING, 0, gomysql.MYSQL_TYPE_TINY, 0, 2, 'h', 'i', 3)
	execute(1, 1, gomysql.MYSQL_TYPE_VAR_STRING, 0, gomysql.MYSQL_TYPE_TINY, 0, 3)
	prepare("DELETE FROM t WHERE id = ?")
	execute(0, 1, gomysql.MYSQL_TYPE_TINY, 0, 9)
	query("BEGIN")
	prepare("SELECT DISTINCT s FROM t WHERE id < ?")
	execute(0, 1, gomysql.MYSQL_TYPE_TINY, 0, 9)
	execute(0, 0, 3)
	query("COMMIT")
	query("DO 1")
}
