package pgversions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// A load is clients of a PostgreSQL server that note what it shows of the row versions, as the proxy would.
// Every version holds the names of all who wrote it, so that what the resolver says can be compared.
type load struct {
	t     *testing.T
	db    *sql.DB
	level history.Level
	tells bool // RETURNING knows old and new
	start time.Time

	mu    sync.Mutex
	txns  []*history.Txn
	truth map[accessKey][]string // the writers of the version read, replaced or left
}

type accessKey struct {
	txn  history.TxnID
	stmt uint32
	n    int
}

const (
	loadRows = 3
	loadTxns = 60 // of a client
)

// tables: stock has a key, log has none, and parted holds its rows in partitions.
var tables = []string{"stock", "log", "parted"}

func (l *load) prepare() {
	l.exec(`CREATE TABLE stock (id int PRIMARY KEY, hist text NOT NULL)`)
	l.exec(`CREATE TABLE log (id int, hist text NOT NULL)`)
	l.exec(`CREATE TABLE parted (id int PRIMARY KEY, hist text NOT NULL) PARTITION BY LIST (id)`)
	for id := range loadRows {
		l.exec(fmt.Sprintf(`CREATE TABLE parted%d PARTITION OF parted FOR VALUES IN (%d)`, id, id))
	}
	for _, table := range tables {
		l.exec(fmt.Sprintf(`INSERT INTO %s SELECT i, '0' FROM generate_series(0, %d) i`, table, loadRows-1))
		l.exec(fmt.Sprintf(`CREATE FUNCTION touch_%[1]s(which int, who text) RETURNS void LANGUAGE sql
			AS 'UPDATE %[1]s SET hist = hist || who WHERE id = which'`, table))
	}
}

func (l *load) exec(text string) {
	l.t.Helper()
	if _, err := l.db.ExecContext(l.t.Context(), text); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
}

// A session runs transactions on a connection of its own.
type session struct {
	*load
	id       history.SessionID
	conn     *sql.Conn
	rng      *rand.Rand
	recorded bool
	txn      *history.Txn
	table    string // of the transaction
	nested   bool   // it has a savepoint
	refused  bool
}

func (s *session) run(ctx context.Context) error {
	for n := range loadTxns {
		seq := uint32(s.id)*1000 + uint32(n)
		s.txn = &history.Txn{ID: history.MakeTxnID(testRun, seq), Session: s.id, Level: s.level, Start: s.now()}
		if err := s.transaction(ctx); err != nil {
			return err
		}
		s.txn.End = s.now()
		if s.recorded {
			s.mu.Lock()
			s.txns = append(s.txns, s.txn)
			s.mu.Unlock()
		}
	}
	return nil
}

func (s *session) now() int64 { return time.Since(s.start).Nanoseconds() }

func (s *session) transaction(ctx context.Context) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN ISOLATION LEVEL "+s.level.String()); err != nil {
		return err
	}
	s.txn.Status = history.Aborted
	s.table = tables[s.rng.IntN(len(tables))]
	s.nested = false
	savepoint := -1 // statements before it
	for range 2 + s.rng.IntN(4) {
		if s.rng.IntN(8) == 0 {
			if err := s.plain(ctx, history.Savepoint, "SAVEPOINT s"); err != nil {
				return err
			}
			savepoint, s.nested = len(s.txn.Stmts), true
		}
		if err := s.statement(ctx); err != nil {
			return s.rollback(ctx, err)
		}
		if savepoint >= 0 && s.rng.IntN(3) == 0 {
			if err := s.plain(ctx, history.Savepoint, "ROLLBACK TO SAVEPOINT s"); err != nil {
				return err
			}
			for i := savepoint; i < len(s.txn.Stmts); i++ {
				s.txn.Stmts[i].Void = true
			}
		}
	}
	if s.rng.IntN(8) == 0 {
		return s.rollback(ctx, nil)
	}
	if _, err := s.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return s.rollback(ctx, err)
	}
	s.txn.Status = history.Committed
	return nil
}

// rollback ends the transaction; what the server refused is no failure.
func (s *session) rollback(ctx context.Context, because error) error {
	if because != nil && !refusal(because) {
		return because
	}
	_, err := s.conn.ExecContext(ctx, "ROLLBACK")
	return err
}

func (s *session) plain(ctx context.Context, kind history.Kind, text string) error {
	s.begin(kind, text)
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

func (s *session) begin(kind history.Kind, shape string) *history.Stmt {
	s.txn.Stmts = append(s.txn.Stmts,
		history.Stmt{Num: uint32(len(s.txn.Stmts) + 1), Kind: kind, Shape: shape, Start: s.now()})
	return &s.txn.Stmts[len(s.txn.Stmts)-1]
}

// statement runs one statement on a random row.
func (s *session) statement(ctx context.Context) error {
	table, id := s.table, s.rng.IntN(loadRows)
	where := fmt.Sprintf("WHERE id = %d", id)
	switch n := s.rng.IntN(16); {
	case n < 4:
		return s.read(ctx, where)
	case n < 6:
		return s.read(ctx, "")
	case n < 8:
		return s.read(ctx, where+" FOR UPDATE")
	case n < 12:
		return s.update(ctx, where)
	case n < 13:
		return s.observed(ctx, history.Delete, history.DeleteRow, table,
			fmt.Sprintf("DELETE FROM %s %s", table, where)+s.returning(table, false, false))
	case n < 15:
		text := fmt.Sprintf("INSERT INTO %s VALUES (%d, '%s') ON CONFLICT DO NOTHING", table, id, s.name())
		return s.observed(ctx, history.Insert, history.InsertRow, table, text+s.returning(table, false, true))
	default:
		stmt := s.begin(history.Select, "SELECT touch(?)")
		stmt.Observation, stmt.Reason = history.Opaque, history.ReasonFunction
		_, err := s.conn.ExecContext(ctx, fmt.Sprintf("SELECT touch_%s(%d, ',f%s')", table, id, s.name()))
		return err
	}
}

func (s *session) read(ctx context.Context, where string) error {
	return s.observed(ctx, history.Select, history.Read, s.table,
		fmt.Sprintf("SELECT hist, tableoid::int8, ctid::text, xmin::text, NULL::text, NULL::text, NULL::text, id "+
			"FROM %s %s", s.table, where))
}

func (s *session) update(ctx context.Context, where string) error {
	return s.observed(ctx, history.Update, history.UpdateRow, s.table,
		fmt.Sprintf("UPDATE %s SET hist = hist || ',%s' %s", s.table, s.name(),
			where)+s.returning(s.table, s.tells, true))
}

// check takes in how a statement ended.
func (s *session) check(err error) {
	s.t.Helper()
	if refusal(err) {
		s.refused = true
	} else if err != nil && !s.refused {
		s.t.Error(err)
	}
}

// refusal reports whether the server gave the transaction up for the sake of others.
func refusal(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// name is what the next statement leaves in a version.
func (s *session) name() string {
	tag := history.Tag{Txn: s.txn.ID, Stmt: uint32(len(s.txn.Stmts) + 1)}
	if !s.recorded {
		return "x" + tag.String()
	}
	return tag.String()
}

// returning adds what the design adds.
func (s *session) returning(table string, both, left bool) string {
	shown := func(of, xid string) string {
		if table != "parted" {
			xid = of + "xmin::text"
		}
		return of + "ctid::text, " + xid
	}
	// A partitioned table has no xmin. The transaction's own id is that of what it leaves, but after a savepoint.
	unknown, own := "NULL::text", "(txid_current() % 4294967296)::text"
	if s.nested {
		own = unknown
	}
	old, fresh := "NULL::text, NULL::text", "NULL::text, NULL::text"
	switch {
	case both:
		old, fresh = shown("old.", unknown), shown("new.", own)
	case left:
		fresh = shown("", own)
	default:
		old = shown("", unknown)
	}
	return fmt.Sprintf(" RETURNING hist, tableoid::int8, %s, %s, pg_current_wal_insert_lsn()::text, id", old, fresh)
}

// observed runs a statement and notes the versions that it shows.
func (s *session) observed(ctx context.Context, kind history.Kind, op history.Op, table, text string) error {
	stmt := s.begin(kind, text)
	stmt.Observation = history.Exact
	if strings.HasSuffix(text, "FOR UPDATE") {
		stmt.Locking = history.LockUpdate
	}
	rows, err := s.conn.QueryContext(ctx, text)
	if err != nil {
		stmt.Void = true
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var hist, id string
		var oid uint32
		var ctid, xmin, newCTID, newXmin, lsn sql.NullString
		if err := rows.Scan(&hist, &oid, &ctid, &xmin, &newCTID, &newXmin, &lsn, &id); err != nil {
			return err
		}
		p := history.TupleID{XID: xidOf(xmin.String), CTID: ctidOf(ctid.String), NewXID: xidOf(newXmin.String),
			NewID: ctidOf(newCTID.String), LSN: lsnOf(lsn.String)}
		if table == "parted" {
			p.Leaf = oid
		}
		if table == "log" {
			id = ""
		}
		s.note(stmt, history.Access{Op: op, Row: history.Row{Table: "public." + table, ID: id}},
			p, strings.Split(hist, ","))
	}
	return rows.Err()
}

func (s *session) note(stmt *history.Stmt, a history.Access, p history.TupleID, hist []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truth[accessKey{s.txn.ID, stmt.Num, len(stmt.Accesses)}] = hist
	stmt.Accesses, stmt.TupleIDs = append(stmt.Accesses, a), append(stmt.TupleIDs, p)
}

func xidOf(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32) // NULL is 0
	return uint32(n)
}

func ctidOf(text string) uint64 {
	var block, offset uint64
	_, _ = fmt.Sscanf(text, "(%d,%d)", &block, &offset)
	return block<<16 | offset
}

func lsnOf(text string) uint64 {
	var high, low uint64
	_, _ = fmt.Sscanf(text, "%X/%X", &high, &low)
	return high<<32 | low
}

// seeds is how many loads there are.
func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return 3
}

// begin makes the tables, at whose state the run begins.
func begin(t *testing.T, level history.Level) (*load, history.Info) {
	t.Helper()
	server := testdb.PostgreSQL(t)
	l := &load{t: t, level: level, start: time.Now(), tells: server.Major() >= 18, truth: make(map[accessKey][]string)}
	l.db = testdb.OpenPostgreSQL(t, testdb.NewPostgreSQLDatabase(t))
	l.prepare()
	info := history.Info{Run: testRun, Started: l.start, Ended: l.start.Add(time.Hour),
		Server: history.Server{Engine: "postgresql", Version: server.Version(), System: 1}}
	if err := l.db.QueryRow("SELECT txid_snapshot_xmin(txid_current_snapshot())").Scan(&info.Horizon); err != nil {
		t.Fatal(err)
	}
	return l, info
}

func (l *load) session(id history.SessionID) *session {
	l.t.Helper()
	conn, err := l.db.Conn(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.ExecContext(l.t.Context(), "SET deadlock_timeout = '20ms'"); err != nil {
		l.t.Fatal(err)
	}
	return &session{load: l, id: id, conn: conn, recorded: true}
}

// play runs recorded clients, and one beside the proxy, at a level.
func play(t *testing.T, level history.Level, seed uint64) (*load, history.Info) {
	t.Helper()
	l, info := begin(t, level)
	var all sync.WaitGroup
	for i := range uint64(5) {
		s := l.session(history.SessionID(i + 1))
		s.rng, s.recorded = rand.New(rand.NewPCG(seed, i)), i < 4
		all.Go(func() {
			if err := s.run(t.Context()); err != nil {
				t.Errorf("session %d: %v", s.id, err)
			}
		})
	}
	all.Wait()
	slices.SortFunc(l.txns, func(a, b *history.Txn) int { return int(a.ID) - int(b.ID) })
	return l, info
}
