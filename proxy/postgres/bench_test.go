package postgres

import (
	"bytes"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// BenchmarkSession measures what a session itself takes for a statement, without sockets: a select and an
// update of one row, in the simple protocol and prepared. The replies are those that a server once gave.
func BenchmarkSession(b *testing.B) {
	database := testdb.NewPostgreSQLDatabase(b)
	for _, sql := range []string{"CREATE TABLE account (id int PRIMARY KEY, balance int)",
		"INSERT INTO account SELECT n, 0 FROM generate_series(1, 1000) n"} {
		if _, err := testdb.OpenPostgreSQL(b, database).Exec(sql); err != nil {
			b.Fatal(err)
		}
	}
	planner := plannerFor(b, database)
	const read, write = "SELECT balance FROM account WHERE id = ",
		"UPDATE account SET balance = balance + 1 WHERE id = "
	for _, bench := range []struct {
		name         string
		prepare, say []pgproto3.FrontendMessage
	}{
		{"select/simple", nil, []pgproto3.FrontendMessage{&pgproto3.Query{String: read + "17"}}},
		{"select/prepared", preparing(read + "$1"), executing("17")},
		{"update/simple", nil, []pgproto3.FrontendMessage{&pgproto3.Query{String: write + "17"}}},
		{"update/prepared", preparing(write + "$1"), executing("17")},
	} {
		for _, mode := range []struct {
			name     string
			planners func(string) Planner
		}{{"off", nil}, {"items", func(string) Planner { return planner }}} {
			b.Run(bench.name+"/"+mode.name, func(b *testing.B) {
				d := logIn(b, database, mode.planners)
				if bench.prepare != nil {
					d.exchange(encode(b, bench.prepare))
				}
				client := encode(b, bench.say)
				repeat(b, d.session, client, d.exchange(client))
			})
		}
	}
}

// repeat has the session go through one exchange again and again.
func repeat(b *testing.B, s *Session, client, server []byte) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.FromClient(1, client); err != nil {
			b.Fatal(err)
		}
		s.Output()
		if err := s.FromServer(2, server); err != nil {
			b.Fatal(err)
		}
		if recorded := len(s.Events()) > 0; recorded != s.watches() {
			b.Fatalf("recorded: %v", recorded)
		}
		if toClient, _ := s.Output(); len(toClient) == 0 {
			b.Fatal("no reply")
		}
	}
}

func plannerFor(b *testing.B, database string) Planner {
	b.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(b).URL())
	if err != nil {
		b.Fatal(err)
	}
	schema, err := catalogpostgres.Load(b.Context(), target, database)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { schema.Close() })
	return sqlpostgres.NewCache(sqlpostgres.New(schema, sqlpostgres.Options{}), 1000, 1<<20)
}

func preparing(text string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Parse{Name: "p", Query: text}, &pgproto3.Sync{}}
}

func executing(argument string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "p", Parameters: [][]byte{[]byte(argument)}},
		&pgproto3.Describe{ObjectType: byte(ofPortal)}, &pgproto3.Execute{}, &pgproto3.Sync{}}
}

func encode(b testing.TB, messages []pgproto3.FrontendMessage) (all []byte) {
	b.Helper()
	var err error
	for _, m := range messages {
		if all, err = m.Encode(all); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// A dialogue is a session with a real server behind it and no client.
type dialogue struct {
	b       *testing.B
	session *Session
	server  net.Conn
}

func logIn(b *testing.B, database string, planners func(string) Planner) *dialogue {
	b.Helper()
	server, err := net.Dial("tcp", testdb.PostgreSQL(b).Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Close() })
	var txns history.TxnID
	link := session.Options{NextTxn: func() history.TxnID { txns++; return txns }}
	d := &dialogue{b, NewSession(Config{Options: link, Prepared: &txnstate.Prepared{}, Planners: planners}), server}
	d.exchange(encode(b, []pgproto3.FrontendMessage{&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "postgres", "database": database}}}))
	return d
}

// exchange passes on what the client says, and returns what the server sent until it was ready again.
func (d *dialogue) exchange(client []byte) (reply []byte) {
	d.b.Helper()
	if _, err := d.session.FromClient(1, client); err != nil {
		d.b.Fatal(err)
	}
	if d.session.Upgrade() == session.ServerDial {
		d.session.Upgraded(1, nil, nil)
	}
	buf := make([]byte, 64<<10)
	var heard []byte // by the client
	for {
		toClient, toServer := d.session.Output()
		heard = append(heard, toClient...)
		if bytes.HasSuffix(heard, []byte{msgReadyForQuery, 0, 0, 0, 5, byte(txnIdle)}) {
			d.session.Events()
			return reply
		}
		if _, err := d.server.Write(toServer); err != nil {
			d.b.Fatal(err)
		}
		n, err := d.server.Read(buf)
		if err != nil {
			d.b.Fatal(err)
		}
		reply = append(reply, buf[:n]...)
		if err := d.session.FromServer(2, buf[:n]); err != nil {
			d.b.Fatal(err)
		}
	}
}
