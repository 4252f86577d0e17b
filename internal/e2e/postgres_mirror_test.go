package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/catalog"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/serverlog"
)

// A tapMode is how isotap knows the rows of tables, and what it records of them.
type tapMode struct {
	name                string
	columns, predicates bool
	change              func(*proxyserver.Options) // nil: nothing else
}

var tapModes = []tapMode{{name: "items"}, {name: "columns", columns: true}, {name: "predicates", predicates: true},
	{name: "both", columns: true, predicates: true},
	{name: "logged", change: func(o *proxyserver.Options) { o.ServerLog = serverlog.Require }}}

func (m tapMode) set(o *proxyserver.Options) {
	o.Columns, o.Predicates, o.Args = m.columns, m.predicates, o.Args || m.predicates
	if m.change != nil {
		m.change(o)
	}
}

var onlyMirror = flag.String("mirror", "",
	"random statements run in this mode only: items, columns, predicates, both or logged")

// A postgresMirror is two equal databases on one server: one for a direct connection, one behind isotap.
type postgresMirror struct {
	names [2]string // equally long
	addrs [2]string
	mode  tapMode
	// evolves says that tables may get columns behind isotap's, which have higher numbers then.
	evolves bool
}

// newPostgreSQLMirror makes a mirror. Where rows are known by isotap's columns, the tables behind isotap carry them.
func newPostgreSQLMirror(t *testing.T, mode tapMode) *postgresMirror {
	t.Helper()
	server := testdb.PostgreSQL(t)
	m := &postgresMirror{mode: mode}
	m.names[0], m.names[1] = testdb.NewPostgreSQLDatabase(t), testdb.NewPostgreSQLDatabase(t)
	first, err := server.DB(m.names[0])
	if err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, first, postgresMirrorTables()...)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// A copy has the same object ids.
	testdb.Exec(t, testdb.OpenPostgreSQL(t, ""), "DROP DATABASE "+m.names[1],
		"CREATE DATABASE "+m.names[1]+" TEMPLATE "+m.names[0])
	if mode.columns {
		instrumentPostgreSQL(t, m.names[1])
	}
	srv := startPostgreSQLProxy(t, mode.set)
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	})
	m.addrs = [2]string{server.Addr(), srv.Addr().String()}
	return m
}

// instrumentPostgreSQL gives the tables of a database isotap's columns.
func instrumentPostgreSQL(t *testing.T, database string) {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL() + database)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogpostgres.NewConn(target, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := catalogpostgres.Instrument(t.Context(), c, catalog.Options{WListBytes: 100})
	if err != nil || len(r.Changed) == 0 {
		t.Fatalf("instrumented %v, %v", r.Changed, err)
	}
	t.Logf("left out: %v", r.LeftOut)
}

// startPostgreSQLProxy starts isotap in front of the tests' PostgreSQL. Stopping it is up to the caller.
func startPostgreSQLProxy(t *testing.T, change func(*proxyserver.Options)) *proxyserver.Server {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	o := proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: filepath.Join(t.TempDir(), "rec"),
		Drain:  time.Second,
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}
	if change != nil {
		change(&o)
	}
	srv, err := proxyserver.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// A frontend is a client that speaks the protocol itself.
type frontend struct {
	net.Conn
	// unnumbered has the numbers left out that columns have in their tables.
	unnumbered bool
}

// newFrontend logs in as postgres, with more parameters in pairs.
func newFrontend(addr, database string, more ...string) (frontend, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return frontend{}, err
	}
	f := frontend{Conn: conn}
	startup := &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "postgres", "database": database}}
	for i := 0; i < len(more); i += 2 {
		startup.Parameters[more[i]] = more[i+1]
	}
	_, err = f.ask(startup)
	return f, err
}

// ask sends messages at once and returns the replies, up to the last ReadyForQuery that they ask for. What is
// never the same (object ids of tables, processes, keys, transactions) is left out.
func (f frontend) ask(messages ...pgproto3.FrontendMessage) ([]string, error) {
	var b []byte
	ready := 0
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			return nil, err
		}
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync, *pgproto3.FunctionCall, *pgproto3.StartupMessage:
			ready++
		}
	}
	if _, err := f.Write(b); err != nil {
		return nil, err
	}
	return f.hear(ready)
}

// hear returns the replies up to that many ReadyForQuery.
func (f frontend) hear(ready int) ([]string, error) {
	var heard []string
	for ready > 0 {
		reply, err := f.next()
		if err != nil {
			return heard, fmt.Errorf("%d ReadyForQuery are missing: %w", ready, err)
		}
		if reply[0] == 'Z' {
			ready--
		}
		heard = append(heard, reply)
	}
	return heard, nil
}

// next returns the next reply.
func (f frontend) next() (string, error) {
	if err := f.SetReadDeadline(time.Now().Add(testdb.Patience)); err != nil {
		return "", err
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(f, head); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(f, body); err != nil {
		return "", err
	}
	switch head[0] {
	case 'T':
		forgetTables(body, f.unnumbered)
	case 'A':
		clear(body[:4])
	case 'K':
		body = nil
	}
	return string(head[:1]) + numbers.ReplaceAllString(string(body), "$1$2"), nil
}

// askInTwo sends messages that fail with a Flush behind them, and a Sync once it has heard of that.
func (f frontend) askInTwo(messages ...pgproto3.FrontendMessage) ([]string, error) {
	if _, err := f.ask(append(messages, &pgproto3.Flush{})...); err != nil {
		return nil, err
	}
	var heard []string
	for len(heard) == 0 || heard[len(heard)-1][0] != 'E' {
		reply, err := f.next()
		if err != nil {
			return heard, err
		}
		heard = append(heard, reply)
	}
	end, err := f.ask(&pgproto3.Sync{})
	return append(heard, end...), err
}

// numbers are what differs on the two sides of a mirror: the transaction that a serialization failure names, the
// place that an error names of a row. With defaults of its own for every row (isotap's columns) COPY adds rows one
// by one, and can quote the line of each.
var numbers = regexp.MustCompile(`(pivot|tuple) (?:\d+|\(\d+,\d+\))|(COPY \w+, line \d+): "[^"]*"`)

// forgetTables clears the tables' object ids in a RowDescription, and the columns' numbers if they are to go, too.
func forgetTables(body []byte, numbers bool) {
	size := 4
	if numbers {
		size = 6
	}
	for at := 2; at < len(body); {
		at += bytes.IndexByte(body[at:], 0) + 1
		clear(body[at : at+size])
		at += 18
	}
}

// aKey and aRow are of the row that an error is about: of several that fail the server meets one first.
var (
	aKey   = regexp.MustCompile(`(DKey \(\w+\)=)\(\d+\)`)
	aRow   = regexp.MustCompile(`DFailing row contains \([^\x00]*\)`)
	aValue = regexp.MustCompile(`[^(), ]+(, |\))`)
)

// unordered sorts each run of rows, of lines of a COPY, and of the notices between them, in replies.
func unordered(replies []string) []string {
	sorted, from := slices.Clone(replies), 0
	for i, reply := range sorted {
		if reply[0] == 'E' {
			reply = aKey.ReplaceAllString(reply, "$1")
			sorted[i] = aRow.ReplaceAllStringFunc(reply,
				func(row string) string { return aValue.ReplaceAllString(row, "$1") })
		}
	}
	for i := range append(replies, "end") {
		if i < len(replies) && strings.IndexByte("DdN", replies[i][0]) >= 0 {
			continue
		}
		slices.Sort(sorted[from:i])
		from = i + 1
	}
	return sorted
}

// A postgresReflection is one session on each side of a mirror.
type postgresReflection struct {
	m       *postgresMirror
	sides   [2]frontend
	history []string
	// failed says that the last step ended in a serialization failure.
	failed bool
}

// open opens a session on each side.
func (m *postgresMirror) open() (*postgresReflection, error) {
	r := &postgresReflection{m: m}
	for i := range r.sides {
		var err error
		if r.sides[i], err = newFrontend(m.addrs[i], m.names[i]); err != nil {
			return nil, err
		}
		r.sides[i].unnumbered = m.evolves
	}
	return r, nil
}

// reflect fills the tables anew and opens a session on each side.
func (m *postgresMirror) reflect() (*postgresReflection, error) {
	r, err := m.open()
	if err != nil {
		return nil, err
	}
	for i, side := range r.sides { // which may differ in what they find
		replies, err := side.ask(texts(postgresMirrorRows)...)
		if err != nil {
			return nil, err
		}
		for _, reply := range replies {
			if reply[0] == 'E' {
				return nil, fmt.Errorf("fill the tables of %s: %.300q", m.names[i], reply)
			}
		}
	}
	return r, nil
}

func texts(sql string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Query{String: sql}}
}

func (r *postgresReflection) close() {
	for _, side := range r.sides {
		side.Close()
	}
}

// run has both sides do a step and returns where the replies differ.
func (r *postgresReflection) run(s postgresStep) string {
	r.history = append(r.history, s.name)
	var replies [2][]string
	for i, side := range r.sides {
		var err error
		ask := side.ask
		if s.inTwo {
			ask = side.askInTwo
		}
		if replies[i], err = ask(s.messages...); err != nil {
			return fmt.Sprintf("%s: %s, after %q", s.name, []string{"directly", "through isotap"}[i]+
				": "+err.Error(), replies[i])
		}
		if !s.ordered {
			replies[i] = unordered(replies[i])
		}
	}
	r.failed = slices.ContainsFunc(replies[0], func(reply string) bool { return strings.Contains(reply, "C40001\x00") })
	if describedAfterFailure(replies[1]) {
		return ""
	}
	for i := range max(len(replies[0]), len(replies[1])) {
		if i >= len(replies[0]) || i >= len(replies[1]) {
			return fmt.Sprintf("%s: directly %d messages, through isotap %d\ndirectly:       %.400q\nthrough isotap: %.400q",
				s.name, len(replies[0]), len(replies[1]), replies[0], replies[1])
		}
		if got := strings.ReplaceAll(replies[1][i], r.m.names[1], r.m.names[0]); got != replies[0][i] {
			return fmt.Sprintf("%s: message %d\ndirectly:       %.400q\nthrough isotap: %.400q",
				s.name, i+1, replies[0][i], got)
		}
	}
	return ""
}

// describedAfterFailure reports whether the server refused to describe a statement in a transaction that has
// failed. It does so for those that give rows, and a write has hidden ones: what it would refuse with the next
// message it refuses here.
func describedAfterFailure(replies []string) bool {
	return slices.ContainsFunc(replies, func(reply string) bool {
		return strings.Contains(reply, "C25P02\x00") && strings.Contains(reply, "Rexec_describe_")
	})
}

// TestRandomPostgreSQLStatementsAreAnsweredAlike runs random sessions directly and through isotap on
// equal tables, in every mode: every message is equal byte for byte (rows as a multiset where the statement leaves
// their order open), and so are the tables in the end.
func TestRandomPostgreSQLStatementsAreAnsweredAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	var mirrors []*postgresMirror
	for _, mode := range tapModes {
		if *onlyMirror == "" || *onlyMirror == mode.name {
			m := newPostgreSQLMirror(t, mode)
			m.evolves = mode.columns
			mirrors = append(mirrors, m)
		}
	}
	major := testdb.PostgreSQL(t).Major()
	rapid.Check(t, func(rt *rapid.T) {
		m := mirrors[rapid.IntRange(0, len(mirrors)-1).Draw(rt, "mirror")]
		r, err := m.reflect()
		if err != nil {
			rt.Fatal(err)
		}
		defer r.close()
		w := &postgresWriter{chooser: chooser{rt}, major: major, columns: m.mode.columns}
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			if diff := r.run(w.step()); diff != "" {
				rt.Fatalf("in mode %s: %s\nafter:\n%s", m.mode.name, diff, strings.Join(r.history, "\n"))
			}
		}
		end := []string{"COMMIT", "RESET ALL", "RESET SESSION AUTHORIZATION"}
		for _, table := range postgresMirrorNames {
			end = append(end, "SELECT * FROM public."+table)
		}
		for _, s := range end {
			if diff := r.run(postgresStep{name: s, messages: texts(s)}); diff != "" {
				rt.Fatalf("in mode %s, in the end: %s\nafter:\n%s", m.mode.name, diff, strings.Join(r.history, "\n"))
			}
		}
	})
}
