package mysql

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A wrongPlanner makes plans that ask for more columns than they know of.
type wrongPlanner struct {
	*sqlmysql.Cache
	spoil func(p *sqlmysql.Plan) *sqlmysql.Plan
	plans map[*sqlmysql.Plan]*sqlmysql.Plan
}

func (w *wrongPlanner) Plan(text []byte, s sqlmysql.Session) *sqlmysql.Plan {
	p := w.Cache.Plan(text, s)
	if p.Result.Reply != rewrite.Trimmed {
		return p
	}
	if w.plans[p] == nil {
		w.plans[p] = w.spoil(p)
	}
	return w.plans[p]
}

// spoiled returns a plan whose text has something else in it.
func spoiled(old, with string) func(*sqlmysql.Plan) *sqlmysql.Plan {
	return func(p *sqlmysql.Plan) *sqlmysql.Plan {
		wrong := *p
		wrong.Upstream.Pieces = slices.Clone(p.Upstream.Pieces)
		for i := range wrong.Upstream.Pieces {
			wrong.Upstream.Pieces[i].Text = strings.Replace(wrong.Upstream.Pieces[i].Text, old, with, 1)
		}
		return &wrong
	}
}

// hears sends a command, and returns what the client gets.
func (c *conversation) hears(payload []byte) []byte {
	c.t.Helper()
	packet, _ := appendPacket(nil, 0, payload)
	if n, err := c.session.FromClient(0, packet); err != nil || n != len(packet) {
		c.t.Fatalf("the session took %d of %d bytes: %v", n, len(packet), err)
	}
	var heard []byte
	buf := make([]byte, 16)
	for {
		toClient, toServer := c.session.Output()
		heard = append(heard, toClient...)
		c.sent = append(c.sent, toServer...)
		if _, err := c.server.Write(toServer); err != nil {
			c.t.Fatal(err)
		}
		if c.session.wantsClient() && c.session.pending.none() && len(c.session.command) == 0 {
			return heard
		}
		n, err := c.server.Read(buf)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := c.session.FromServer(0, buf[:n]); err != nil {
			c.t.Fatal(err)
		}
	}
}

// logIn begins a session with a planner, or without one, in a database.
func logIn(t *testing.T, planner Planner, database string, caps uint32) *conversation {
	t.Helper()
	conn, err := net.Dial("tcp", testdb.MariaDB(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &conversation{t: t, server: conn, session: newTestSession(planner)}
	c.settle()
	caps |= gomysql.CLIENT_PROTOCOL_41 | gomysql.CLIENT_SECURE_CONNECTION | gomysql.CLIENT_PLUGIN_AUTH | gomysql.CLIENT_CONNECT_WITH_DB | gomysql.CLIENT_LONG_PASSWORD
	login := append([]byte{byte(caps), byte(caps >> 8), byte(caps >> 16), byte(caps >> 24), 0, 0, 0,
		1, 33}, make([]byte, 23)...)
	c.client(1, append(login, "root\x00\x00"+database+"\x00mysql_native_password\x00"...))
	return c
}

// executes is COM_STMT_EXECUTE of a statement without parameters.
func executes(reply []byte, cursor bool) []byte {
	b := append([]byte{gomysql.COM_STMT_EXECUTE}, reply[headerBytes+1:headerBytes+5]...)
	return append(b, map[bool]byte{true: 1}[cursor], 1, 0, 0, 0)
}

// TestWrongPlansColumnsDoNotReachClients has plans that ask for columns which they do not know of. The client gets
// what it gets directly; the statement is recorded as unobserved, and goes unchanged from then on, in all sessions.
func TestWrongPlansColumnsDoNotReachClients(t *testing.T) {
	const rowID = "`t`.isotap_rowid"
	for name, spoil := range map[string]func(*sqlmysql.Plan) *sqlmysql.Plan{
		"carried, before its own": spoiled(", "+rowID, ", "+rowID+" AS isotap_carried_1, "+rowID),
		"before the client's":     spoiled("SELECT id", "SELECT isotap_rowid, id"),
		"under an expression":     spoiled("SELECT id", "SELECT UPPER(isotap_wlist), id"),
		// A cursor's temporary table has forgotten where its columns are from.
		"under a name that is not isotap's": spoiled("SELECT id", "SELECT isotap_wlist AS x, id"),
		"and the client's last": spoiled("SELECT id",
			"SELECT isotap_rowid, isotap_wlist, isotap_rowid, isotap_wlist, id"),
	} {
		for _, caps := range []uint32{0, gomysql.CLIENT_DEPRECATE_EOF} {
			t.Run(name, func(t *testing.T) {
				database := tableOfThree(t)
				w := &wrongPlanner{Cache: serverPlanner(t).(*sqlmysql.Cache), spoil: spoil,
					plans: map[*sqlmysql.Plan]*sqlmysql.Plan{}}
				const text = "SELECT id, v, id * 2 FROM t ORDER BY id"
				query := append([]byte{gomysql.COM_QUERY}, text...)
				prepare := append([]byte{gomysql.COM_STMT_PREPARE}, text...)
				direct := logIn(t, nil, database, caps)
				through := logIn(t, w, database, caps)
				if want, got := direct.hears(query), through.hears(query); !bytes.Equal(got, want) {
					t.Errorf("as text it gets\n%q\ndirectly\n%q", got, want)
				}
				holdMisplanned(t, through, true)
				other := logIn(t, w, database, caps)
				if want, got := direct.hears(query), other.hears(query); !bytes.Equal(got, want) {
					t.Errorf("another session gets\n%q\ndirectly\n%q", got, want)
				}
				if !bytes.HasSuffix(other.sent, query) || bytes.Contains(other.sent, []byte(rowID)) {
					t.Errorf("of another session the server gets %q", other.sent)
				}
				// A planner that forgets prepares it as it was.
				w.Cache = serverPlanner(t).(*sqlmysql.Cache)
				through = logIn(t, forgetful{w}, database, caps)
				through.session.cfg.Args = false
				want, got := direct.hears(prepare), through.hears(prepare)
				binary.LittleEndian.PutUint32(want[headerBytes+1:],
					binary.LittleEndian.Uint32(got[headerBytes+1:])) // its number
				if !bytes.Equal(got, want) {
					t.Errorf("prepared it gets\n%q\ndirectly\n%q", got, want)
				}
				again := direct.hears(prepare)
				for _, cursor := range []bool{false, true} {
					if want, got := direct.hears(executes(again, cursor)), through.hears(executes(got,
						cursor)); !bytes.Equal(got, want) {
						t.Errorf("executed (cursor: %v) it gets\n%q\ndirectly\n%q", cursor, got, want)
					}
				}
				fetch := func(reply []byte) []byte {
					return append(append([]byte{gomysql.COM_STMT_FETCH},
						reply[headerBytes+1:headerBytes+5]...), 10, 0, 0, 0)
				}
				if want, got := direct.hears(fetch(again)), through.hears(fetch(got)); !bytes.Equal(got, want) {
					t.Errorf("it fetches\n%q\ndirectly\n%q", got, want)
				}
				holdMisplanned(t, through, true)
			})
		}
	}
}

// forgetful is a planner that does not remember what was planned wrong.
type forgetful struct{ *wrongPlanner }

func (forgetful) IsMisplanned(shape string) bool { return false }

// holdMisplanned holds a session's events to a wrong plan, told of once and without values, and unobserved statements.
func holdMisplanned(t *testing.T, c *conversation, want bool) {
	t.Helper()
	told, counted := 0, 0
	for _, e := range c.session.Events() {
		if e.Misplanned {
			counted++
		}
		if strings.Contains(e.Note, "planned wrong") {
			told++
			if !strings.Contains(e.Note, "SELECT id, v, id * ? FROM t ORDER BY id") {
				t.Errorf("it is told without its shape: %s", e.Note)
			}
		}
		if want && e.Txn != nil && e.Txn.Stmts[0].Kind == history.Select {
			if st := e.Txn.Stmts[0]; st.Observation != history.Opaque || st.Reason != history.ReasonMisplanned ||
				len(st.Accesses) > 0 {
				t.Errorf("recorded as %v, %q with %d accesses", st.Observation, st.Reason, len(st.Accesses))
			}
		}
	}
	if counted == 0 == want || told > 1 || want && told == 0 {
		t.Errorf("counted %d times, told %d times", counted, told)
	}
}

// tableOfThree makes a database with a table t of three rows, and isotap's columns.
func tableOfThree(t *testing.T) string {
	t.Helper()
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	for _, sql := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), " + sqlmysql.RowIDDefinition + ", " +
			sqlmysql.WListDefinition(255) + ")",
		"INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, '')",
	} {
		if _, err := db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	return database
}

// TestClientsMayAskForIsotapsColumns reads them by name, as dumps do.
func TestClientsMayAskForIsotapsColumns(t *testing.T) {
	database := tableOfThree(t)
	direct, through := logIn(t, nil, database, 0), logIn(t, serverPlanner(t), database, 0)
	for _, sql := range []string{
		"SELECT id, isotap_rowid, isotap_wlist FROM t ORDER BY id",
		"SELECT `isotap_rowid` AS r FROM t ORDER BY id",
		"SELECT LENGTH(ISOTAP_WLIST), id FROM t ORDER BY id",
		"SELECT d.* FROM (SELECT id, isotap_rowid FROM t) d ORDER BY id",
		"SELECT COUNT(isotap_rowid) FROM t",
	} {
		query := append([]byte{gomysql.COM_QUERY}, sql...)
		if want, got := direct.hears(query), through.hears(query); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%q\ndirectly\n%q", sql, got, want)
		}
	}
	holdMisplanned(t, through, false)
}

// TestClientsNamesAreNotTakenForIsotaps has tables, views and expressions with columns that are named as isotap's are.
func TestClientsNamesAreNotTakenForIsotaps(t *testing.T) {
	database := tableOfThree(t)
	db := testdb.Open(t, database)
	for _, sql := range []string{
		"CREATE TABLE own (id INT PRIMARY KEY, isotap_carried_1 INT, isotap_2 VARCHAR(9), " +
			sqlmysql.RowIDDefinition + ", " + sqlmysql.WListDefinition(255) + ")",
		"INSERT INTO own (id, isotap_carried_1, isotap_2) VALUES (1, 2, 'three')",
		"CREATE VIEW seen_by AS SELECT id AS isotap_carried_1, v FROM t",
	} {
		if _, err := db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	planner := serverPlanner(t)
	direct, through := logIn(t, nil, database, 0), logIn(t, planner, database, 0)
	for _, sql := range []string{
		"SELECT * FROM own", "SELECT own.*, t.id FROM own JOIN t ON t.id = own.id",
		"SELECT d.* FROM (SELECT * FROM own) d JOIN t ON t.id = d.id",
		"WITH w AS (SELECT * FROM own) SELECT w.*, t.v FROM w JOIN t ON t.id = w.id",
		"SELECT * FROM seen_by ORDER BY 1", "SELECT s.*, t.v FROM seen_by s JOIN t ON t.id = 1 ORDER BY 1",
		"SELECT id, 5 AS isotap_carried_1 FROM t ORDER BY id", "SELECT id, 'isotap_carried_1' FROM t ORDER BY id",
		"SELECT id AS isotap_1, v AS isotap_2 FROM t ORDER BY id", "SELECT id, v AS 'isotap_c\\arried_1' FROM t ORDER BY id",
		"SELECT d.*, 'isotap_carried_1' FROM (SELECT id, v FROM t) d ORDER BY id",
		"REPLACE INTO own (id, isotap_2) VALUES (2, 'four') RETURNING *",
	} {
		query := append([]byte{gomysql.COM_QUERY}, sql...)
		if want, got := direct.hears(query), through.hears(query); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%q\ndirectly\n%q", sql, got, want)
		}
	}
	holdMisplanned(t, through, false)
}

// TestHeadsOfLostResultsAreNotSent has the server go away amid the definitions of a wrong plan's result.
func TestHeadsOfLostResultsAreNotSent(t *testing.T) {
	database := tableOfThree(t)
	w := &wrongPlanner{Cache: serverPlanner(t).(*sqlmysql.Cache),
		spoil: spoiled("SELECT id", "SELECT isotap_rowid, id"), plans: map[*sqlmysql.Plan]*sqlmysql.Plan{}}
	c := logIn(t, w, database, 0)
	c.send("DO 1")
	c.settle()
	c.send("SELECT id FROM t")
	buf := make([]byte, 1)
	for !c.session.holdingHead {
		_, toServer := c.session.Output()
		if _, err := c.server.Write(toServer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.server.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := c.session.FromServer(0, buf); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // into the definitions
		if _, err := c.server.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := c.session.FromServer(0, buf); err != nil {
			t.Fatal(err)
		}
	}
	c.session.ServerClosed(0)
	if got, _ := c.session.Output(); len(got) > 0 {
		t.Errorf("the client got %q", got)
	}
}
