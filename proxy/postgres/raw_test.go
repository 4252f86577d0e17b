package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/internal/testdb"
)

// A step of a script is what a client sends at once, and the last message of the server's answer: its type,
// and which of them.
type step struct {
	send  []pgproto3.FrontendMessage
	until byte
	times int
}

// send is a step that ends with that many ReadyForQuery.
func send(ready int, messages ...pgproto3.FrontendMessage) step {
	return step{messages, msgReadyForQuery, ready}
}

func query(sql string) step { return send(1, &pgproto3.Query{String: sql}) }

// queries are texts sent one after the other.
func queries(texts ...string) []step {
	var steps []step
	for _, sql := range texts {
		steps = append(steps, query(sql))
	}
	return steps
}

var syncs = &pgproto3.Sync{}

func parse(name, sql string, types ...uint32) *pgproto3.Parse {
	return &pgproto3.Parse{Name: name, Query: sql, ParameterOIDs: types}
}

func execute(portal string, rows uint32) *pgproto3.Execute {
	return &pgproto3.Execute{Portal: portal, MaxRows: rows}
}

func describe(what objectKind, name string) *pgproto3.Describe {
	return &pgproto3.Describe{ObjectType: byte(what), Name: name}
}

func closes(what objectKind, name string) *pgproto3.Close {
	return &pgproto3.Close{ObjectType: byte(what), Name: name}
}

// bind binds parameters in text, with the result's format codes.
func bind(portal, statement string, codes []int16, values ...string) *pgproto3.Bind {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement, ResultFormatCodes: codes}
	for _, v := range values {
		b.Parameters = append(b.Parameters, []byte(v))
	}
	return b
}

// A rawClient speaks the protocol and keeps what it hears.
type rawClient struct {
	t     *testing.T
	conn  net.Conn
	heard bytes.Buffer
}

// connectRaw logs in.
func connectRaw(t *testing.T, address, database string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rawClient{t: t, conn: conn}
	c.run(step{[]pgproto3.FrontendMessage{&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "postgres", "database": database, "application_name": "raw"}}},
		msgReadyForQuery, 1})
	return c
}

// run sends a step and hears its answer; text tells what it heard.
func (c *rawClient) run(s step) {
	c.t.Helper()
	c.write(s.send)
	for left := s.times; left > 0; {
		m, err := c.hear()
		if err != nil {
			c.t.Fatalf("after %d bytes, waiting for %q: %v\n%s", c.heard.Len(), s.until, err, readable(c.heard.Bytes()))
		}
		if m[0] == s.until {
			left--
		}
	}
}

// write sends messages at once.
func (c *rawClient) write(messages []pgproto3.FrontendMessage) {
	c.t.Helper()
	if _, err := c.conn.Write(encode(c.t, messages)); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads one message, and keeps it, save for the process's own key.
func (c *rawClient) hear() ([]byte, error) {
	c.conn.SetReadDeadline(time.Now().Add(testdb.Patience))
	m := make([]byte, 5)
	if _, err := io.ReadFull(c.conn, m); err != nil {
		return nil, err
	}
	m = append(m, make([]byte, binary.BigEndian.Uint32(m[1:])-4)...)
	if _, err := io.ReadFull(c.conn, m[5:]); err != nil {
		return nil, err
	}
	if m[0] != msgBackendKeyData {
		c.heard.Write(m)
	}
	return m, nil
}

// readable returns messages one to a line.
func readable(b []byte) string {
	var s strings.Builder
	for len(b) >= 5 {
		n := min(int(binary.BigEndian.Uint32(b[1:]))+1, len(b))
		body := b[5:n]
		fmt.Fprintf(&s, "%c %.300q\n", b[0], body)
		b = b[n:]
	}
	return s.String()
}

// converse has a client say a script and returns all that it heard.
func converse(t *testing.T, address, database string, steps []step) []byte {
	t.Helper()
	c := connectRaw(t, address, database)
	for _, s := range steps {
		c.run(s)
	}
	return c.heard.Bytes()
}

// reset makes the tables of the scripts anew.
const reset = `DROP TABLE IF EXISTS t, other, child, seen CASCADE; DROP FUNCTION IF EXISTS f, p;
	CREATE TABLE t (id INT PRIMARY KEY, s TEXT, n INT DEFAULT 0);
	INSERT INTO t SELECT g, 'row ' || g, g * 10 FROM generate_series(1, 9) g;
	INSERT INTO t VALUES (10, repeat('long', 1000)), (11, NULL);
	CREATE TABLE other (a TEXT, b UUID, PRIMARY KEY (a, b));
	INSERT INTO other VALUES ('x,y', '00000000-0000-0000-0000-000000000001'), ('z', '00000000-0000-0000-0000-00000000000a');
	CREATE TABLE child (t INT REFERENCES t DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE seen (id INT PRIMARY KEY, v INT CHECK (v < 100))`

// long is a parameter that makes a message pass in pieces.
var long = strings.Repeat("x", wholeMessage)

// likeIsotaps has isotap prepare statements of its own beside the client's.
var likeIsotaps = []step{query("PREPARE q AS SELECT s FROM t WHERE id = 5"), query("EXECUTE q"), query("EXECUTE q"),
	send(1, parse("w", "UPDATE t SET n = 1 WHERE id = 9"), bind("", "w", nil), execute("", 0), execute("", 0), syncs),
	send(1, parse("r", "SELECT * FROM t WHERE id = 9"), bind("p", "r", nil), execute("p", 1), execute("p", 0), syncs),
	query("EXECUTE r"), query("EXECUTE w")}

// scripts are what clients say, by what they are about.
var scripts = map[string][]step{
	"simple": queries("SELECT * FROM t ORDER BY id", "SELECT s, id FROM t WHERE id = 3", "SELECT 1", "", ";",
		" -- nothing",
		"UPDATE t SET n = n + 1 WHERE id < 4", "UPDATE t SET n = 5 WHERE id = 99",
		"INSERT INTO t VALUES (20, 'new'), (21, NULL)",
		"INSERT INTO t VALUES (22) RETURNING *, id + 1 AS more", "DELETE FROM t WHERE id IN (20, 21, 22) RETURNING s",
		"DELETE FROM t WHERE id = 10",
		"SELECT * FROM other o JOIN t ON t.id = 1 ORDER BY o.a", "SELECT count(*) FROM t", "TABLE other", "VALUES (1)",
		"SHOW search_path",
		"INSERT INTO seen VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2",
		"INSERT INTO seen VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2"),
	// Nobody knows yet that the block has failed when the statements are sent. They run in another form at the level
	// that was asked for.
	"another level in a block that has failed": {
		send(1, parse("group", grouping),
			parse("sub", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM seen WHERE seen.id = t.n) AND id > $1", 23), syncs),
		query("BEGIN"), query("SELECT 1 FROM t"),
		send(6, parse("", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), bind("", "", nil), execute("", 0), syncs,
			bind("", "group", nil), describe(ofPortal, ""), execute("", 0), syncs,
			bind("p", "sub", nil, "5"), execute("p", 0), syncs, bind("p", "sub", nil, "x"), execute("p", 0), syncs,
			describe(ofStatement, "group"), syncs, describe(ofStatement, "sub"), syncs),
		query("ROLLBACK"), query("BEGIN ISOLATION LEVEL SERIALIZABLE"),
		send(2, bind("p", "sub", nil, "x"), execute("p", 0), syncs, bind("p", "sub", nil, "5"), execute("p", 0), syncs),
		query("ROLLBACK"),
		send(4, parse("", "BEGIN ISOLATION LEVEL SERIALIZABLE"), bind("", "", nil), execute("", 0), syncs,
			bind("p", "sub", nil, "5"), execute("p", 0), describe(ofStatement, "group"), syncs,
			bind("p", "sub", nil, "5"), execute("p", 0), bind("", "group", nil), execute("", 0), syncs,
			bind("p", "sub", nil, "x"), syncs),
		query("ROLLBACK"), query("SET default_transaction_isolation = 'serializable'"),
		send(1, parse("late", grouping), syncs),
		query("SET default_transaction_isolation = 'read committed'"),
		send(3, bind("", "nowhere", nil), bind("", "late", nil), execute("", 0), syncs,
			bind("", "late", nil), execute("", 0), syncs, describe(ofStatement, "late"), syncs),
		send(2, parse("", "SELECT nothing"), parse("never", grouping), syncs, bind("", "never", nil), syncs),
	},
	"errors": queries("SELECT nothing FROM t", "SELECT * FROM nowhere", "SELEC 1",
		"SELECT id FROM t WHERE s = 5 + 'ü' + id", "SELECT 1/0 FROM t",
		"INSERT INTO t VALUES (1, 'twice')", "INSERT INTO seen VALUES (5, 500)", "UPDATE t SET id = 2 WHERE id = 1",
		"SELECT 'ü', nothing FROM t",
		"BEGIN", "SELECT id, nothing FROM t", "SELECT id FROM t", "COMMIT", "BEGIN", "SELECT id FROM t WHERE id = 1",
		"UPDATE t SET nothing = 1", "ROLLBACK",
		"INSERT INTO child VALUES (77)", "BEGIN", "INSERT INTO child VALUES (77)", "COMMIT",
		"SELECT id FROM t WHERE id = 'x'"),
	"transactions": queries("BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT id FROM t WHERE id = 1 FOR UPDATE",
		"SAVEPOINT a", "UPDATE t SET n = 1 WHERE id = 1",
		"ROLLBACK TO a", "RELEASE a", "COMMIT AND CHAIN", "SELECT n FROM t WHERE id = 1", "ROLLBACK", "COMMIT", "BEGIN",
		"BEGIN", "COMMIT",
		"SET default_transaction_isolation = 'repeatable read'", "BEGIN", "SHOW transaction_isolation",
		"SELECT n FROM t WHERE id = 1", "END",
		"BEGIN", "SET LOCAL search_path = pg_catalog", "SELECT id FROM public.t WHERE id = 2", "COMMIT",
		"SELECT id FROM t WHERE id = 2"),
	"several statements": queries("SELECT id FROM t WHERE id = 1; UPDATE t SET n = 7 WHERE id = 2; SELECT n FROM t WHERE id = 2",
		"INSERT INTO seen VALUES (31, 1); INSERT INTO seen VALUES (31, 2); SELECT 1", "SELECT * FROM seen",
		"INSERT INTO seen VALUES (32, 1); BEGIN; INSERT INTO seen VALUES (33, 1); COMMIT; "+
			"INSERT INTO seen VALUES (33, 2)", "SELECT * FROM seen",
		"SELECT 1; SELECT nothing FROM t; SELECT 2",
		"BEGIN; SELECT id FROM t WHERE id = 1; ROLLBACK; SELECT id FROM t WHERE id = 2;"),
	"definitions": queries("CREATE TABLE fresh (id INT PRIMARY KEY)", "INSERT INTO fresh VALUES (1) RETURNING id",
		"BEGIN", "ALTER TABLE fresh ADD v INT",
		"INSERT INTO fresh VALUES (2, 2)", "SELECT * FROM fresh", "ROLLBACK", "SELECT * FROM fresh",
		"ALTER TABLE fresh DROP CONSTRAINT fresh_pkey",
		"SELECT * FROM fresh", "UPDATE fresh SET id = 3", "CREATE TEMP TABLE t (id INT, temporary TEXT)",
		"SELECT * FROM t", "INSERT INTO t VALUES (1, 'x')",
		"DROP TABLE pg_temp.t", "SELECT id FROM t WHERE id = 1", "DROP TABLE fresh", "SELECT * FROM fresh",
		"DISCARD ALL"),
	"notices": queries("DO $$BEGIN RAISE NOTICE 'here'; RAISE WARNING 'there'; END$$",
		"CREATE FUNCTION f(i INT) RETURNS INT LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'f %', i; RETURN i; END$$",
		"SELECT f(id) FROM t WHERE id < 3 ORDER BY id", "UPDATE t SET n = f(n) WHERE id = 1",
		"SET client_encoding = 'LATIN1'", "SELECT 'x' FROM t WHERE id = 1",
		"RESET client_encoding", "SET standard_conforming_strings = off", `SELECT '\'x' FROM t WHERE id = 1`,
		"SET client_min_messages = error"),
	"notifications": queries("LISTEN here", "NOTIFY here, 'you'", "BEGIN", "NOTIFY here, 'later'",
		"UPDATE t SET n = 0 WHERE id = 1", "COMMIT"),
	"copy": {query("COPY (SELECT id, s FROM t WHERE id < 5 ORDER BY id) TO STDOUT"),
		query("COPY t (id, s) TO STDOUT (FORMAT binary)"),
		{[]pgproto3.FrontendMessage{&pgproto3.Query{String: "COPY seen FROM STDIN"}}, msgCopyInResponse, 1},
		send(1, &pgproto3.CopyData{Data: []byte("1\t1\n2\t")}, &pgproto3.CopyData{Data: []byte("2\n")},
			&pgproto3.CopyDone{}),
		{[]pgproto3.FrontendMessage{&pgproto3.Query{String: "COPY seen FROM STDIN"}}, msgCopyInResponse, 1},
		send(1, &pgproto3.CopyData{Data: []byte("3\t1\n")}, &pgproto3.CopyFail{Message: "no more"}),
		send(1, &pgproto3.Query{String: "COPY seen FROM STDIN"}, &pgproto3.CopyData{Data: []byte("9\t999\n")},
			&pgproto3.CopyDone{}),
		send(1, parse("", "COPY seen FROM STDIN"), bind("", "", nil), execute("", 0), syncs,
			&pgproto3.CopyData{Data: []byte("4\t1\n")}, &pgproto3.CopyDone{}, syncs),
		send(1, &pgproto3.Query{String: "COPY seen FROM STDIN; SELECT * FROM seen"},
			&pgproto3.CopyData{Data: []byte("5\t5\n")}, &pgproto3.CopyDone{}),
		query("COPY seen FROM '/nowhere'"), query("SELECT * FROM seen")},
	"extended": {
		send(1, parse("", "SELECT * FROM t WHERE id = $1"), bind("", "", nil, "3"), describe(ofPortal, ""),
			execute("", 0), syncs),
		send(1, parse("a", "SELECT id, s FROM t WHERE id <= $1 ORDER BY id", 23), describe(ofStatement, "a"), syncs),
		send(1, bind("", "a", []int16{1}, "2"), execute("", 0), syncs),
		send(1, bind("", "a", []int16{1, 0}, "2"), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, bind("", "a", []int16{0, 1}, "10"), execute("", 0), syncs),
		send(1, bind("", "a", []int16{0, 1, 1}, "10"), execute("", 0), syncs),
		send(1, parse("u", "UPDATE t SET n = $2 WHERE id = $1"), describe(ofStatement, "u"), syncs),
		send(1, bind("", "u", nil, "1", "5"), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, bind("", "u", []int16{1}, "2", "5"), execute("", 1), syncs),
		send(1, bind("", "u", []int16{1, 0, 1}, "3", "5"), execute("", 0), syncs),
		send(1, bind("", "u", []int16{7}, "3", "5"), execute("", 0), syncs),
		send(1, bind("", "u", nil, "x", "5"), execute("", 0), syncs),
		send(1, bind("", "u", nil, "1"), execute("", 0), syncs),
		send(1, parse("i", "INSERT INTO t (id, s) VALUES ($1, $2) RETURNING id, s"), describe(ofStatement, "i"),
			bind("p", "i", []int16{1, 0}, "50", "x"), describe(ofPortal, "p"), execute("p", 0), syncs),
		send(1, bind("", "i", []int16{0}, "50", "x"), execute("", 0), syncs),
		send(1, closes(ofStatement, "a"), closes(ofPortal, "nothing"), syncs),
		send(1, bind("", "a", nil, "1"), execute("", 0), syncs),
		send(1, parse("u", "SELECT 1"), syncs), send(1, describe(ofStatement, "nothing"), syncs),
		send(1, execute("nothing", 0), syncs),
		send(1, parse("", ""), bind("", "", nil), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, parse("", "SELECT 1; SELECT 2"), syncs), send(1, parse("", "SELECT nothing, $1 FROM t"),
			describe(ofStatement, ""), syncs),
		query("DEALLOCATE u"), send(1, bind("", "u", nil, "1", "5"), syncs),
		query("PREPARE q AS SELECT id FROM t WHERE id = $1"),
		send(1, bind("", "q", nil, "2"), execute("", 0), syncs), query("EXECUTE q(3)"),
		send(1, parse("cached", "SELECT * FROM seen"), syncs), query("ALTER TABLE seen ADD w INT"),
		send(1, bind("", "cached", nil), execute("", 0), syncs), syncAlone,
	},
	"another role": {query("DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'raw_clerk') THEN CREATE " +
		"ROLE raw_clerk; END IF; END$$"),
		query("GRANT SELECT (id), UPDATE (n), INSERT ON t TO raw_clerk"), query("GRANT INSERT ON seen TO raw_clerk"),
		send(1, parse("s", "SELECT id FROM t WHERE id = 1"), parse("i", "INSERT INTO seen VALUES (71, 1)"),
			parse("u", "UPDATE t SET n = 1"), syncs),
		query("SET ROLE raw_clerk"), send(1, parse("", "SELECT nothing"), bind("", "s", nil), execute("", 0), syncs),
		send(1, bind("", "s", nil), execute("", 0), syncs), send(1, bind("", "s", nil), describe(ofPortal, ""),
			execute("", 0), syncs),
		send(1, bind("", "i", []int16{1}), execute("", 0), bind("", "u", nil), describe(ofPortal, ""), execute("", 0),
			syncs),
		query("RESET ROLE"), send(1, parse("", "SET ROLE raw_clerk"), bind("", "", nil), execute("", 0),
			bind("", "s", []int16{0}), describe(ofPortal, ""), execute("", 0),
			bind("", "i", nil), execute("", 0), syncs), query("DELETE FROM seen"), query("RESET ROLE"),
		query("DELETE FROM seen"), query("SET ROLE raw_clerk"),
		query("DEALLOCATE u"), send(1, bind("", "u", nil), execute("", 0), syncs), query("DEALLOCATE ALL"),
		send(1, bind("", "s", nil), execute("", 0), syncs),
		query("RESET ROLE"), query("SELECT * FROM seen"), query("DROP OWNED BY raw_clerk")},
	"names as isotap's, made before": slices.Concat([]step{send(1, parse("isotap_1", "SELECT s FROM t WHERE id = 1"),
		parse("isotap_2", "SELECT s FROM t WHERE id = 2"), syncs)}, likeIsotaps, []step{
		send(1, bind("isotap_3", "isotap_1", nil), execute("isotap_3", 0), bind("", "isotap_2", nil), execute("", 0), syncs),
		query("EXECUTE isotap_1")}),
	"names as isotap's, made behind": slices.Concat(likeIsotaps, []step{
		send(1, parse("isotap_1", "SELECT s FROM t WHERE id = 1"), parse("isotap_2", "SELECT s FROM t WHERE id = 2"), syncs),
		query("PREPARE isotap_3 AS SELECT s FROM t WHERE id = 3"), query("EXECUTE isotap_3"),
		send(1, bind("isotap_stars", "isotap_1", nil), execute("isotap_stars", 1), execute("isotap_stars", 0), syncs),
		query("EXECUTE q"), query("EXECUTE isotap_1"), query("DEALLOCATE isotap_1"), query("EXECUTE q")}),
	"behind a refusal": {send(2, parse("", "DELETE FROM t RETURNING nothing"), bind("", "", nil), execute("", 0), syncs,
		syncs),
		send(3, &pgproto3.Query{String: "UPDATE t SET nothing = 1"}, syncs, syncs)},
	"prepared by SQL": queries("PREPARE s (int) AS SELECT id, s FROM t WHERE id < $1 ORDER BY id", "EXECUTE s (3)",
		"EXECUTE s(1 + 1)", "EXECUTE s('2')", "EXECUTE s", "EXECUTE s (1, 2)", "EXECUTE s ('x')", "EXECUTE s (1 / 0)",
		`PREPARE "S" AS UPDATE t SET n = $2 WHERE id = $1`, `EXECUTE "S" (1, 5)`, `EXECUTE "S" (99, 5)`,
		"EXECUTE S (2)", "PREPARE i AS INSERT INTO t (id, s) VALUES ($1, $2) RETURNING id", "EXECUTE i (60, 'x')",
		"EXECUTE i (60, 'x')",
		"BEGIN", "EXECUTE s (3)", `EXECUTE "S" (2, 6)`, "EXECUTE s (1, 2, 3)", "EXECUTE s (3)", "ROLLBACK",
		"EXECUTE s (3); SELECT 1", "BEGIN ISOLATION LEVEL SERIALIZABLE", "EXECUTE s (3)", "COMMIT",
		"BEGIN ISOLATION LEVEL SERIALIZABLE", "EXECUTE s (3)", "COMMIT",
		"PREPARE s AS SELECT 1", "PREPARE c AS SELECT * FROM seen ORDER BY id", "EXECUTE c",
		"ALTER TABLE seen ADD w2 INT", "EXECUTE c", "BEGIN", "EXECUTE c", "ROLLBACK", "DEALLOCATE s", "EXECUTE s (1)",
		"PREPARE s AS SELECT n FROM t WHERE id = $1", "EXECUTE s (1)",
		"DEALLOCATE s; PREPARE s AS SELECT s FROM t WHERE id = $1; EXECUTE s (1)", "EXECUTE s (2)",
		"DO $$BEGIN EXECUTE 'DEALLOCATE s'; EXECUTE 'PREPARE s AS SELECT 7 AS seven'; END$$", "EXECUTE s",
		"SELECT count(*) FROM pg_prepared_statements WHERE name NOT LIKE 'isotap%'", "DISCARD ALL", "EXECUTE s",
		"SELECT count(*) FROM pg_prepared_statements"),
	"parts that write, prepared by SQL": append(queries("PREPARE s (int) AS WITH u AS (UPDATE t SET n = $1 "+
		"WHERE id < 3 RETURNING id, n) SELECT u.*, t.n FROM u JOIN t USING (id) WHERE id < $1 ORDER BY 1",
		"EXECUTE s (9)", "EXECUTE s (2)", "EXECUTE s (0)", "EXECUTE s",
		"PREPARE i (int) AS WITH d AS (DELETE FROM t WHERE id = $1 RETURNING *) INSERT INTO t (id, s) "+
			"SELECT id + 70, s FROM d RETURNING id, s", "EXECUTE i (3)", "EXECUTE i (3)",
		"PREPARE d AS WITH u AS (UPDATE t SET n = n / (id - $1)) DELETE FROM t WHERE id = $1", "EXECUTE d (99)", "EXECUTE d (4)",
		"BEGIN READ ONLY", "EXECUTE i (5)", "ROLLBACK", "SELECT id, n, s FROM t ORDER BY id"),
		send(1, parse("", "EXECUTE s (8)"), describe(ofStatement, ""), bind("", "", []int16{1}), describe(ofPortal, ""),
			execute("", 1), execute("", 0), syncs), send(1, parse("", "EXECUTE i (2)"), bind("", "", nil),
			execute("", 0), syncs)),
	"executed by SQL": {send(1, parse("named", "SELECT id, s FROM t WHERE id < $1 ORDER BY id", 23), syncs),
		query("EXECUTE named(3)"),
		send(1, parse("write", "UPDATE t SET n = 1 WHERE id = 1"), syncs), query("EXECUTE write"),
		send(1, parse("", "EXECUTE named(3)"), describe(ofStatement, ""), bind("", "", []int16{1}),
			describe(ofPortal, ""), execute("", 0), bind("", "", []int16{1, 0}), execute("", 1), execute("", 0), syncs),
		send(1, parse("", "EXECUTE write"), bind("", "", nil), describe(ofPortal, ""), execute("", 0), syncs)},
	"portals": {query("BEGIN"),
		send(1, parse("a", "SELECT id, s FROM t ORDER BY id"), bind("p", "a", []int16{1, 0}), execute("p", 2), syncs),
		send(1, describe(ofPortal, "p"), execute("p", 3), syncs), send(1, execute("p", 0), syncs),
		send(1, execute("p", 0), syncs),
		query("FETCH 2 FROM p"),
		send(1, closes(ofPortal, "p"), execute("p", 0), syncs), query("ROLLBACK"),
		send(1, bind("p", "a", nil), execute("p", 2), execute("p", 2), syncs), send(1, execute("p", 2), syncs),
		query("BEGIN"), query("DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id"), query("FETCH 2 FROM c"),
		send(1, execute("c", 1), syncs), query("COMMIT"),
		send(1, parse("", "INSERT INTO t (id) SELECT g FROM generate_series(100, 104) g RETURNING id"),
			bind("", "", nil), execute("", 2), execute("", 2), execute("", 0), syncs),
		send(1, parse("", "INSERT INTO t (id) VALUES (200)"), bind("", "", nil), execute("", 0), execute("", 0), syncs),
		send(1, parse("w", "UPDATE t SET n = 1 WHERE id = $1", 23), syncs), query("BEGIN"),
		send(1, bind("p", "w", nil, "1"), execute("p", 1), syncs),
		send(1, execute("p", 0), bind("", "w", nil, "2"), syncs), send(1, execute("p", 0), syncs), query("ROLLBACK"),
		send(2, bind("", "w", nil, "2"), execute("", 0), syncs, execute("", 0), syncs),
		query("BEGIN"), send(1, bind("p", "w", nil, "1"), syncs), query("SAVEPOINT a"),
		send(1, bind("", "w", nil, "x"), execute("p", 0), syncs),
		query("ROLLBACK TO a"), send(1, execute("p", 0), syncs), query("ROLLBACK"),
	},
	"cursors": append(queries("BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT id, s FROM t ORDER BY id", "FETCH c",
		"FETCH NEXT IN c", "FETCH PRIOR FROM c", "FETCH FIRST c", "FETCH LAST c",
		"FETCH ABSOLUTE 3 C", "FETCH ABSOLUTE -2 c", "FETCH RELATIVE 0 c", "FETCH RELATIVE -1 c", "FETCH FORWARD 2 c",
		"FETCH FORWARD ALL c", "FETCH BACKWARD c", "FETCH BACKWARD 3 c",
		"FETCH BACKWARD ALL c", "FETCH 0 c", "FETCH ALL c", "FETCH -1 c", "MOVE FIRST c", "MOVE 2 c",
		"FETCH c; FETCH c; MOVE c; CLOSE c", "FETCH c", "ROLLBACK",
		"BEGIN", `DECLARE "C" NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY id`, `FETCH 2 FROM "C"`, "SAVEPOINT x",
		"FETCH c", "ROLLBACK TO x", `FETCH BACKWARD FROM "C"`, "ROLLBACK TO x", `FETCH "C"`, "COMMIT",
		"BEGIN", "DECLARE c CURSOR FOR SELECT * FROM t ORDER BY id FOR UPDATE", "FETCH 2 c",
		"UPDATE t SET n = n + 1 WHERE CURRENT OF c", "FETCH c", "DELETE FROM t WHERE CURRENT OF c RETURNING id",
		"COMMIT",
		"BEGIN", "DECLARE c CURSOR FOR SELECT s FROM t", "FETCH 2 c",
		"UPDATE t SET n = n + 1 WHERE CURRENT OF c RETURNING *", "FETCH BACKWARD 2 c", "CLOSE ALL", "FETCH c", "COMMIT",
		"BEGIN", "SAVEPOINT x", "DECLARE c CURSOR FOR SELECT s FROM t ORDER BY id", "ROLLBACK TO x",
		"DECLARE c CURSOR FOR SELECT n, s FROM t ORDER BY id", "FETCH c", "DECLARE c CURSOR FOR SELECT s FROM t",
		"COMMIT",
		"DECLARE c CURSOR FOR SELECT s FROM t", "DECLARE h CURSOR WITH HOLD FOR SELECT id, s FROM t ORDER BY id",
		"FETCH 2 h", "BEGIN", "FETCH h", "DECLARE i CURSOR WITH HOLD FOR SELECT s FROM t", "ROLLBACK", "FETCH h",
		"FETCH i",
		"DISCARD ALL", "FETCH h", "BEGIN; DECLARE c BINARY CURSOR FOR SELECT id, s FROM t ORDER BY id; FETCH 2 c; COMMIT; FETCH c",
		"BEGIN", "DECLARE c CURSOR FOR SELECT nope, s FROM t", "ROLLBACK", "BEGIN",
		"DECLARE c CURSOR FOR SELECT FROM t", "FETCH 2 c",
		"DECLARE d CURSOR FOR SELECT s, 1 / (id - 3) FROM t ORDER BY id", "FETCH 9 d", "COMMIT"),
		query("BEGIN"),
		send(1, parse("", "DECLARE c BINARY CURSOR FOR SELECT id, s FROM t WHERE id > $1 ORDER BY id", 23),
			describe(ofStatement, ""), bind("", "", nil, "2"), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, describe(ofPortal, "c"), parse("f", "FETCH 2 FROM c"), describe(ofStatement, "f"),
			bind("", "f", []int16{1, 0}), describe(ofPortal, ""), execute("", 0), bind("", "f", nil), execute("", 1),
			execute("", 0), execute("c", 1), syncs),
		send(1, parse("m", "MOVE c"), bind("", "m", nil), execute("", 0), closes(ofPortal, "c"), syncs),
		send(1, parse("", "DECLARE c CURSOR FOR SELECT id, s FROM t ORDER BY id"), bind("", "", nil), execute("", 0),
			parse("f2", "FETCH 2 FROM c"), bind("", "f2", []int16{0, 1}), execute("", 0),
			bind("", "f2", []int16{0, 1, 1}), execute("", 0), syncs),
		query("ROLLBACK")),
	"described in a failed transaction": {
		send(1, parse("w", "UPDATE t SET n = 1 WHERE id = $1", 23), describe(ofStatement, "w"), syncs), query("BEGIN"),
		send(1, bind("p", "w", nil, "1"), describe(ofPortal, "p"), syncs), query("SELECT 1/0"),
		send(1, describe(ofStatement, "w"), syncs), send(1, describe(ofPortal, "p"), syncs),
		send(1, describe(ofStatement, "w"), bind("", "w", nil, "1"), describe(ofStatement, "w"), syncs),
		query("ROLLBACK"), send(1, describe(ofStatement, "w"), syncs)},
	"flushed": {
		{[]pgproto3.FrontendMessage{parse("", "SELECT id FROM t WHERE id = $1"), describe(ofStatement, ""),
			&pgproto3.Flush{}}, msgRowDescription, 1},
		{[]pgproto3.FrontendMessage{bind("", "", nil, "1"), execute("", 0), &pgproto3.Flush{}}, msgCommandComplete, 1},
		send(1, syncs),
		{[]pgproto3.FrontendMessage{parse("", "SELECT nothing FROM t"), &pgproto3.Flush{}}, msgErrorResponse, 1},
		send(1, parse("skipped", "SELECT 1"), &pgproto3.Query{String: "SELECT 2"}, syncs),
		send(1, describe(ofStatement, "skipped"), syncs)},
	"pipelined": {
		send(3, parse("", "SELECT id FROM t WHERE id = 1"), bind("", "", nil), execute("", 0), syncs,
			parse("", "UPDATE t SET n = 3 WHERE id = 1"), bind("", "", nil), execute("", 0), syncs,
			parse("", "SELECT n FROM t WHERE id = 1"), bind("", "", nil), execute("", 0), syncs),
		send(3, parse("one", "SELECT nothing"), bind("", "one", nil), execute("", 0), syncs, bind("", "one", nil),
			execute("", 0), syncs,
			parse("one", "SELECT id, n FROM t WHERE id = 2"), bind("", "one", []int16{1, 0}), execute("", 0), syncs),
		send(1, parse("", "INSERT INTO seen VALUES (61, 1)"), bind("", "", nil), execute("", 0),
			parse("", "INSERT INTO seen VALUES (62, 500)"),
			bind("", "", nil), execute("", 0), parse("never", "SELECT 1"), syncs),
		send(1, parse("", "BEGIN"), bind("", "", nil), execute("", 0), parse("", "UPDATE t SET n = 4 WHERE id = 1"),
			bind("", "", nil), execute("", 0),
			parse("", "COMMIT"), bind("", "", nil), execute("", 0), parse("", "UPDATE t SET n = 5 WHERE id = 1"),
			bind("", "", nil), execute("", 0), syncs),
		send(2, &pgproto3.Query{String: "SELECT id FROM t WHERE id = 1"},
			&pgproto3.Query{String: "SELECT id FROM t WHERE id = 2"}),
		send(2, parse("", "INSERT INTO child VALUES (99)"), bind("", "", nil), execute("", 0), syncs, syncs),
		send(1, parse("good", "SELECT id FROM t WHERE id = 1"), parse("", "SELECT nothing FROM t"), syncs),
		send(1, bind("", "good", nil), execute("", 0), syncs),
		query("SELECT * FROM seen"), query("SELECT n FROM t WHERE id = 1")},
	"levels": {send(1, parse("a", "SELECT id FROM t WHERE id = 1"), parse("u", "UPDATE t SET n = 1 WHERE id = 1"),
		syncs),
		query("BEGIN ISOLATION LEVEL SERIALIZABLE"), send(1, bind("", "a", []int16{1}), describe(ofPortal, ""),
			execute("", 0), syncs),
		send(1, bind("", "u", nil), execute("", 0), syncs), query("COMMIT"),
		query("SET search_path = pg_catalog"), send(1, bind("", "a", nil), execute("", 0), syncs),
		query("RESET search_path"), send(1, bind("", "a", nil), execute("", 0), syncs)},
	"function call": {send(1, &pgproto3.FunctionCall{Function: oidAbs, Arguments: [][]byte{[]byte("-5")}}),
		send(1, &pgproto3.FunctionCall{Function: 1}), query("SELECT id FROM t WHERE id = 1")},
	"two phases": queries("BEGIN", "UPDATE t SET n = 9 WHERE id = 1", "PREPARE TRANSACTION 'x'",
		"ROLLBACK PREPARED 'x'", "COMMIT PREPARED 'y'"),
	"long parameters of a write": {send(1, parse("w", "INSERT INTO t (id, s) VALUES ($1, $2)"),
		parse("r", "UPDATE t SET s = $2 WHERE id = $1 RETURNING id, n"), syncs),
		send(1, bind("", "w", []int16{0, 1}, "50", long), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, bind("", "w", []int16{1, 1, 0, 1}, "51", long), execute("", 1), execute("", 0), syncs),
		send(1, bind("", "w", []int16{7}, "52", long), execute("", 0), syncs),
		send(1, bind("", "r", []int16{1, 0}, "51", long), describe(ofPortal, ""), execute("", 0), syncs),
		send(1, bind("", "w", nil, "53", long), execute("", 0), syncs),
		query("SELECT id, length(s) FROM t WHERE id > 49 ORDER BY id")},
	"long messages": {query("SELECT length('" + strings.Repeat("x", 1<<20) + "')"),
		query("SELECT id, repeat('y', 1500000) FROM t WHERE id < 3 ORDER BY id"),
		query("SELECT repeat('z', 3000000)"), send(1, parse("a", "SELECT id, $1 || s FROM t WHERE id = 1", 25),
			bind("", "a", []int16{0, 1}, strings.Repeat("p", 1<<21)), execute("", 0), syncs),
		send(1, parse("", "UPDATE t SET s = $1 WHERE id = 1"), bind("", "", nil, strings.Repeat("p", 1<<21)),
			execute("", 0), syncs),
		send(1, parse("", "SELECT '"+strings.Repeat("q", 1<<20)+"' FROM t WHERE id = 1"), bind("", "", nil),
			execute("", 0), syncs)},
}

// grouping is rewritten in another way at SERIALIZABLE.
const grouping = "SELECT d.n, t.s FROM (SELECT n, max(id) AS m FROM t GROUP BY n) d JOIN t ON t.id = d.m"

// oidAbs is the function abs(integer).
const oidAbs = 1397

var syncAlone = send(1, syncs)

// TestRepliesAreEqualByteForByte has a client say scripts to the server and to isotap in front of it.
func TestRepliesAreEqualByteForByte(t *testing.T) {
	for name, steps := range scripts {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			db := testdb.OpenPostgreSQL(t, r.database)
			var heard [2][]byte
			for i, address := range []string{r.direct, r.proxied} {
				if _, err := db.Exec(reset); err != nil {
					t.Fatal(err)
				}
				if err := r.catalog.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.planner.Invalidate()
				heard[i] = converse(t, address, r.database, steps)
			}
			want, got := steady(heard[0]), steady(heard[1])
			if want != got {
				t.Errorf("isotap's answer differs:\n%s", difference(want, got))
			}
		})
	}
}

// steady returns messages in a readable form, without what is never the same: object ids of tables.
func steady(b []byte) string {
	var s strings.Builder
	for len(b) >= 5 {
		n := min(int(binary.BigEndian.Uint32(b[1:]))+1, len(b))
		body := bytes.Clone(b[5:n])
		switch b[0] {
		case msgRowDescription:
			r := reader{b: body}
			for range r.uint16() {
				r.cString()
				clear(r.bytes(4))
				r.bytes(fieldBytes - 4)
			}
		case msgNotificationResponse:
			clear(body[:4])
		}
		fmt.Fprintf(&s, "%c %d %.400q\n", b[0], n, body)
		b = b[n:]
	}
	return s.String()
}

// difference shows where two answers begin to differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			from := max(i-4, 0)
			return "want " + strings.Join(w[from:min(i+3, len(w))], "\n     ") + "\ngot  " +
				strings.Join(g[min(from, len(g)):min(i+3, len(g))], "\n     ")
		}
	}
	return "more: " + strings.Join(g[len(w)-1:], "\n")
}
