package splicing

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// The settings under which texts of PostgreSQL are read.
var (
	postgresEncodings = []string{"UTF8", "UTF8", "LATIN1", "SJIS", "GBK", "BIG5", "SQL_ASCII", "UHC", "GB18030",
		"SHIFT_JIS_2004", "JOHAB", "EUC_JP", "WIN1251"}
	// postgresWays are ways to make the settings, each some texts.
	postgresWays = [][]string{
		{"SET standard_conforming_strings=%s", "SET backslash_quote=%b", "SET client_encoding='%c'"},
		{"SELECT set_config('standard_conforming_strings','%s',false)", "SET client_encoding='%c'",
			"SET backslash_quote=%b"},
		{"DO $$ BEGIN PERFORM set_config('standard_conforming_strings','%s',false); " +
			"PERFORM set_config('client_encoding','%c',false); PERFORM set_config('backslash_quote','%b',false); END $$"},
		{"SET NAMES '%c'; SET standard_conforming_strings=%s; SET backslash_quote=%b"},
		{"SET escape_string_warning=off", "SET standard_conforming_strings=%s",
			"SELECT setcfg('client_encoding','%c'), setcfg('backslash_quote','%b')"},
		{"SET client_encoding='%c'", "UPDATE pg_settings SET setting='%s' WHERE name='standard_conforming_strings'",
			"SET backslash_quote=%b"},
		{"BEGIN", "SET LOCAL standard_conforming_strings=%s", "SET LOCAL client_encoding='%c'",
			"SET LOCAL backslash_quote=%b"},
	}
)

// TestPostgreSQLTexts sends hostile texts to PostgreSQL, directly and through isotap.
func TestPostgreSQLTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server := testdb.PostgreSQL(t)
	f := &family{grammar: postgresGrammar, relay: newRelay(t, server.Addr())}
	f.names[0] = testdb.NewPostgreSQLDatabase(t)
	f.names[1] = f.names[0][:len(f.names[0])-1] + "_"
	first, err := server.DB(f.names[0])
	if err != nil {
		t.Fatal(err)
	}
	execAll(t, first, "CREATE TABLE a (id INT PRIMARY KEY, v TEXT, w INT)",
		"CREATE TABLE b (id INT PRIMARY KEY, x INT)", "CREATE TABLE canary (id INT PRIMARY KEY, n INT)",
		"CREATE FUNCTION setcfg(n text, v text) RETURNS text LANGUAGE sql AS 'SELECT set_config(n, v, false)'",
		"CREATE FUNCTION splicing() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	first.Close() // a template must have no connections
	// A copy has the oids of its template, which row descriptions show.
	admin := testdb.OpenPostgreSQL(t, "")
	execAll(t, admin, "CREATE DATABASE "+f.names[1]+" TEMPLATE "+f.names[0])
	t.Cleanup(func() { execAll(t, admin, "DROP DATABASE "+f.names[1]+" WITH (FORCE)") })
	target, err := dsn.Parse("postgres://postgres@" + f.relay.listener.Addr().String() + "/" + f.names[1])
	if err != nil {
		t.Fatal(err)
	}
	proxied := startProxy(t, target)
	var dbs [2]*sql.DB
	for i, address := range []string{server.Addr(), proxied} {
		dbs[i] = testdb.OpenPostgreSQL(t, f.names[i])
		f.dial[i] = func() (conn, error) { return dialPostgreSQL(address, f.names[i]) }
	}
	f.reset = func(i int) error {
		_, err := dbs[i].Exec(`DELETE FROM a; DELETE FROM b; DELETE FROM canary;
			INSERT INTO a VALUES (1,'a',1),(2,'b',2),(3,'a''b',3),(4,E'a\\',4),(5,'x',5);
			INSERT INTO b VALUES (1,1),(2,2); INSERT INTO canary VALUES (1,0)`)
		return err
	}
	f.dump = func(i int) (string, error) {
		return dump(dbs[i], "SELECT id, v, w FROM a ORDER BY id", "SELECT id, x FROM b ORDER BY id",
			"SELECT id, n FROM canary ORDER BY id")
	}
	f.setUp = func(r *rand.Rand) (string, []string) {
		conforming := []string{"on", "off"}[r.IntN(2)]
		quote := []string{"on", "off", "safe_encoding"}[r.IntN(3)]
		encoding := postgresEncodings[r.IntN(len(postgresEncodings))]
		var session []string
		for _, s := range postgresWays[r.IntN(len(postgresWays))] {
			session = append(session, strings.NewReplacer("%s", conforming, "%b", quote, "%c", encoding).Replace(s))
		}
		return fmt.Sprintf("standard_conforming_strings %s, backslash_quote %s, %s, %q", conforming,
			quote, encoding, session), session
	}
	f.normal = func(reply []byte) []byte { return reply }
	// Some statements go out in another form (DISTINCT as GROUP BY, say), which is isotap's as a whole.
	f.keeps = func(sent, text []byte) bool { return bytes.Contains(sent, []byte("isotap_")) || holds(sent, text) }
	f.messages = messagesOf
	f.row = func(m string) bool { return m[0] == 'D' }
	f.hunt(t, func(reply []byte) bool {
		return slices.ContainsFunc(messagesOf(reply), func(m string) bool { return m[0] == 'E' })
	})
}

// messagesOf returns the messages of a reply.
func messagesOf(reply []byte) (messages []string) {
	for len(reply) >= 5 {
		end := min(len(reply), 1+int(binary.BigEndian.Uint32(reply[1:])))
		messages, reply = append(messages, string(reply[:end])), reply[end:]
	}
	return messages
}

// A postgresConn is a connection of PostgreSQL's protocol.
type postgresConn struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialPostgreSQL logs in as postgres, without a password.
func dialPostgreSQL(address, database string) (conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &postgresConn{c, bufio.NewReader(c)}
	params := "user\x00postgres\x00database\x00" + database + "\x00\x00"
	c.SetDeadline(time.Now().Add(testdb.Patience))
	startup := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(8+len(params))), 3<<16)
	if _, err := c.Write(append(startup, params...)); err != nil {
		return nil, err
	}
	if reply, err := p.reply(); err != nil {
		return nil, fmt.Errorf("log in: %q, %w", reply, err)
	}
	return p, nil
}

// reply reads messages up to ReadyForQuery.
func (p *postgresConn) reply() (reply []byte, err error) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(p.in, head); err != nil {
			return reply, err
		}
		body := make([]byte, int(binary.BigEndian.Uint32(head[1:]))-4)
		if _, err := io.ReadFull(p.in, body); err != nil {
			return reply, err
		}
		if reply = append(append(reply, head...), body...); head[0] == 'Z' {
			return reply, nil
		}
	}
}

// ask sends a Query message.
func (p *postgresConn) ask(text string) ([]byte, error) {
	p.conn.SetDeadline(time.Now().Add(testdb.Patience))
	b := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(5+len(text)))
	if _, err := p.conn.Write(append(append(b, text...), 0)); err != nil {
		return nil, err
	}
	return p.reply()
}

func (p *postgresConn) close() {
	p.conn.Write([]byte{'X', 0, 0, 0, 4})
	io.Copy(io.Discard, p.in) // until the server has rolled back
	p.conn.Close()
}
