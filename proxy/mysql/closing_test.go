package mysql

import (
	"bytes"
	"net"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// begin logs a client in to a database with one row in one table.
func begin(t *testing.T) *conversation {
	t.Helper()
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	for _, sql := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT, " + sqlmysql.RowIDDefinition + ", " +
			sqlmysql.WListDefinition(255) + ")",
		"INSERT INTO t VALUES (1, 1)",
	} {
		if _, err := db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", testdb.MariaDB(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &conversation{t: t, server: conn, session: newTestSession(serverPlanner(t))}
	c.settle()
	caps := uint32(gomysql.CLIENT_PROTOCOL_41 | gomysql.CLIENT_SECURE_CONNECTION | gomysql.CLIENT_PLUGIN_AUTH |
		gomysql.CLIENT_CONNECT_WITH_DB | gomysql.CLIENT_LONG_PASSWORD | gomysql.CLIENT_LOCAL_FILES)
	login := append([]byte{byte(caps), byte(caps >> 8), byte(caps >> 16), byte(caps >> 24), 0, 0, 0,
		1, 33}, make([]byte, 23)...)
	c.client(1, append(login, "root\x00\x00"+database+"\x00mysql_native_password\x00"...))
	return c
}

func (c *conversation) query(sql string) { c.client(0, append([]byte{gomysql.COM_QUERY}, sql...)) }

// answer has the server take what it is sent, and gives the session what it says.
func (c *conversation) answer(toServer []byte) {
	c.t.Helper()
	if _, err := c.server.Write(toServer); err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := c.server.Read(buf)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.session.FromServer(0, buf[:n]); err != nil {
		c.t.Fatal(err)
	}
}

// serveUntil has the server answer what it is sent, up to what holds those bytes: that it is not sent.
func (c *conversation) serveUntil(held []byte) {
	c.t.Helper()
	for {
		_, toServer := c.session.Output()
		if bytes.Contains(toServer, held) {
			return
		}
		c.answer(toServer)
	}
}

// send sends a query and does not wait for the answer.
func (c *conversation) send(sql string) {
	c.t.Helper()
	packet, _ := appendPacket(nil, 0, append([]byte{gomysql.COM_QUERY}, sql...))
	if n, err := c.session.FromClient(0, packet); err != nil || n != len(packet) {
		c.t.Fatalf("the session took %d of %d bytes: %v", n, len(packet), err)
	}
}

// hear gives the session what the server says, until the session is done.
func (c *conversation) hear() {
	c.t.Helper()
	for !c.session.Done() {
		_, toServer := c.session.Output()
		c.answer(toServer)
	}
}

// txns returns the transactions among the session's events.
func (c *conversation) txns() []*history.Txn {
	var txns []*history.Txn
	for _, e := range c.session.Events() {
		if e.Txn != nil {
			txns = append(txns, e.Txn)
		}
	}
	return txns
}

// TestUpdateOfALostClientIsRecorded: update of a client that hung up is recorded.
func TestUpdateOfALostClientIsRecorded(t *testing.T) {
	c := begin(t)
	c.query("DO 1")
	c.send("UPDATE t SET v = 2")
	c.session.ClientClosed(0)
	c.session.ClientClosed(0) // the driver notices on both of the client's directions
	c.hear()
	txns := c.txns()
	if len(txns) != 1 || txns[0].Status != history.Committed || len(txns[0].Stmts[0].Accesses) != 1 {
		t.Fatalf("recorded: %+v", txns)
	}
}

func TestCaptureThatIsNotAnsweredIsInexact(t *testing.T) {
	c := begin(t)
	c.query("UPDATE t SET v = 2")
	c.session.Idle(0)
	c.session.ServerClosed(0)
	txns := c.txns()
	if len(txns) != 1 || txns[0].Status != history.Committed || txns[0].Stmts[0].Observation != history.Inexact {
		t.Fatalf("recorded: %+v", txns)
	}
}

// TestClientLostInAFileLosesItsTransaction: client that hangs up in a file loses its transaction.
func TestClientLostInAFileLosesItsTransaction(t *testing.T) {
	c := begin(t)
	c.query("BEGIN")
	c.query("UPDATE t SET v = 2")
	c.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t")
	c.session.ClientClosed(0)
	txns := c.txns()
	if len(txns) != 1 || txns[0].Status != history.Aborted {
		t.Fatalf("recorded: %+v", txns)
	}
}

// TestServerLostAfterPossibleCommitIsIndeterminate: server lost after an error that may have committed is
// indeterminate.
func TestServerLostAfterPossibleCommitIsIndeterminate(t *testing.T) {
	c := begin(t)
	c.query("BEGIN")
	c.query("UPDATE t SET v = 2")
	c.send("LOCK TABLES nothing WRITE") // it commits, and then fails
	// Isotap asks the server what the error did to the transaction.
	c.serveUntil([]byte{1, 0, 0, 0, gomysql.COM_PING})
	c.session.ServerClosed(0)
	txns := c.txns()
	if len(txns) != 1 || txns[0].Status != history.Indeterminate {
		t.Fatalf("recorded: %+v", txns)
	}
}

// TestServerLostBehindWhatCommitsIsIndeterminate loses the server while a statement is under way that commits first,
// and leaves no trace in a history.
func TestServerLostBehindWhatCommitsIsIndeterminate(t *testing.T) {
	for sql, want := range map[string]history.Status{"LOCK TABLES t WRITE": history.Indeterminate,
		"SET autocommit = 1": history.Indeterminate, "SET NAMES utf8mb4": history.Aborted} {
		t.Run(sql, func(t *testing.T) {
			c := begin(t)
			c.query("BEGIN")
			c.query("UPDATE t SET v = 2")
			c.send(sql)
			c.serveUntil([]byte(sql))
			c.session.ServerClosed(0)
			if txns := c.txns(); len(txns) != 1 || txns[0].Status != want {
				t.Errorf("recorded: %+v", txns)
			}
		})
	}
}

// TestServersLastWordsReachTheClient has a server end the connection by an error that answers what the client does not
// know of: isotap's own reading of what an UPDATE collected.
func TestServersLastWordsReachTheClient(t *testing.T) {
	killed := serverError{1927, "70100", "Connection was killed"}
	for _, tt := range []struct {
		name string
		last string // what the client sends before the server's words
		seq  byte   // under which they reach it
	}{
		{"while it is idle", "", 0},
		{"while it waits", "COMMIT", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begin(t)
			c.query("UPDATE t SET v = 2")
			c.session.Idle(0)
			if tt.last != "" {
				c.session.pending.first().visible = false
				c.session.wait(append([]byte{gomysql.COM_QUERY}, tt.last...))
			}
			c.session.Output()
			words, _ := appendPacket(nil, 1, appendErr(nil, killed))
			if err := c.session.FromServer(0, words); err != nil {
				t.Fatal(err)
			}
			c.session.ServerClosed(0)
			want, _ := appendPacket(nil, tt.seq, appendErr(nil, killed))
			if got, _ := c.session.Output(); !bytes.Equal(got, want) {
				t.Errorf("the client got %q, not %q", got, want)
			}
		})
	}
}

// TestNothingIsAskedBehindAFarewell has a server end the connection by the reply to a client's statement. A question
// behind that would find the connection closed, and make the server reset it.
func TestNothingIsAskedBehindAFarewell(t *testing.T) {
	killed := serverError{1927, "70100", "Connection was killed"}
	for name, before := range map[string][]string{
		"behind a write": {"UPDATE t SET v = 2"}, "in a transaction": {"BEGIN", "UPDATE t SET v = 2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t)
			for _, sql := range before {
				c.query(sql)
			}
			c.send("KILL CONNECTION_ID()")
			c.session.Output()
			words, _ := appendPacket(nil, 1, appendErr(nil, killed))
			if err := c.session.FromServer(0, words); err != nil {
				t.Fatal(err)
			}
			if c.session.Unread() {
				t.Error("there is something to read for an idle client")
			}
			c.session.Idle(0)
			toClient, toServer := c.session.Output()
			if !bytes.Equal(toClient, words) || len(toServer) > 0 {
				t.Errorf("the client gets %q, the server %q", toClient, toServer)
			}
			c.session.ServerClosed(0)
			if txns := c.txns(); len(txns) != 1 || (txns[0].Status == history.Aborted) != (len(before) > 1) {
				t.Errorf("recorded: %+v", txns)
			}
		})
	}
}

// TestLostClientsTransactionIsAskedFor: a statement that commits before it fails has done so, though its client is gone
// before isotap asks.
func TestLostClientsTransactionIsAskedFor(t *testing.T) {
	c := begin(t)
	c.query("BEGIN")
	c.query("UPDATE t SET v = 2")
	c.send("CREATE TABLE t (id INT)")
	c.session.Output()
	words, _ := appendPacket(nil, 1, appendErr(nil, serverError{1317, "70100", "Query execution was interrupted"}))
	if _, err := c.server.Write(append([]byte{7, 0, 0, 0, gomysql.COM_QUERY}, "COMMIT"...)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.server.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if err := c.session.FromServer(0, words); err != nil {
		t.Fatal(err)
	}
	c.session.ClientClosed(0)
	c.hear()
	if txns := c.txns(); len(txns) != 1 || txns[0].Status != history.Committed {
		t.Fatalf("recorded: %+v", txns)
	}
}

// TestConnectionThatLivesOnIsAsked has the server go on behind an error that may end a connection.
func TestConnectionThatLivesOnIsAsked(t *testing.T) {
	c := begin(t)
	c.query("BEGIN")
	c.query("UPDATE t SET v = 2")
	c.send("DO 1")
	c.session.Output()
	words, _ := appendPacket(nil, 1, appendErr(nil, serverError{1317, "70100", "Query execution was interrupted"}))
	if err := c.session.FromServer(0, words); err != nil {
		t.Fatal(err)
	}
	c.session.Output()
	c.query("COMMIT")
	c.session.Idle(0)
	c.settle()
	txns := c.txns()
	if len(txns) != 1 || txns[0].Status != history.Committed || len(txns[0].Stmts[1].Accesses) != 1 {
		t.Fatalf("recorded: %+v", txns)
	}
}

func TestWordsOfAnotherDayAreNoFarewell(t *testing.T) {
	c := begin(t)
	c.query("UPDATE t SET v = 2")
	c.session.Idle(0)
	c.session.Output()
	words, _ := appendPacket(nil, 1, appendErr(nil, serverError{1317, "70100", "Query execution was interrupted"}))
	if err := c.session.FromServer(0, words); err != nil {
		t.Fatal(err)
	}
	c.query("DO 1")
	c.session.ServerClosed(0)
	if got, _ := c.session.Output(); len(got) > 0 {
		t.Errorf("the client got %q", got)
	}
}
