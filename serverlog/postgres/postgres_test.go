package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	catalog "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/serverlog/postgres"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// source is the log of a server, of which one database is known.
func source(t *testing.T, address string) *postgres.Source {
	t.Helper()
	target, err := dsn.Parse(address)
	require.NoError(t, err)
	conn, err := catalog.NewConn(target, "")
	require.NoError(t, err)
	databases := catalog.NewDatabases(target)
	databases.Enter(target.Database)
	_, err = databases.Open(t.Context(), target.Database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(databases.Close(), conn.Close()) })
	began := time.Now()
	return &postgres.Source{Target: target, Conn: conn, Databases: databases, Maintenance: "postgres",
		Clock: func() int64 { return int64(time.Since(began)) }}
}

// rest reads a log to the end that it has now.
func rest(t *testing.T, s serverlog.Stream) (all []*history.LoggedTxn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, s.Finish(ctx))
	for {
		l, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, l)
	}
}

// A reader that waits for a server which has nothing to say any more is told that it may end.
func TestFinishDoesNotWaitForTheServersNextWord(t *testing.T) {
	was := postgres.SetTick(time.Hour)
	defer postgres.SetTick(was)
	s, err := source(t, testdb.PostgreSQL(t).URL()).Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	ended := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = s.Next(t.Context())
		}
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond) // it waits by now
	require.NoError(t, s.Finish(t.Context()))
	select {
	case err := <-ended:
		require.ErrorIs(t, err, io.EOF)
	case <-time.After(5 * time.Second): // an idle server has something to say each 15 s
		t.Error("it waits for what the server says next")
	}
}

// A written version is what RETURNING says of one: the table that holds it, its place and its transaction.
type written struct {
	leaf uint32
	ctid string
	xid  uint32
}

func place(ctid uint64) string { return fmt.Sprintf("(%d,%d)", ctid>>16, ctid&0xffff) }

// TestLogHasWhatReturningSays holds the log of random transactions against what their statements return: with
// checkpoints, and so with images of pages, compressed where the server can.
func TestLogHasWhatReturningSays(t *testing.T) {
	address := testdb.PostgreSQL(t).URL()
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.Path = "/" + testdb.NewPostgreSQLDatabase(t)
	c, err := pgx.Connect(t.Context(), u.String())
	require.NoError(t, err)
	defer c.Close(t.Context())
	exec := func(sql string) {
		t.Helper()
		_, err := c.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	exec(`CREATE TABLE wa (id int PRIMARY KEY, v int, pad text) WITH (fillfactor = 60)`)
	exec(`CREATE TABLE wn (id int, v int)`)
	exec(`CREATE TABLE wp (id int, v int) PARTITION BY RANGE (id)`)
	exec(`CREATE TABLE wp1 PARTITION OF wp FOR VALUES FROM (0) TO (200)`)
	exec(`CREATE TABLE wp2 PARTITION OF wp FOR VALUES FROM (200) TO (100000)`)
	exec(`INSERT INTO wa SELECT g, 0, repeat('x', g % 300) FROM generate_series(1, 300) g`)
	src := source(t, u.String())
	s, err := src.Open(t.Context())
	require.NoError(t, err)
	saw := play(t, u.String())
	exec(`COPY wn FROM PROGRAM 'seq 1 500 | sed s/$/\\t7/'`)
	exec(`DO $$ BEGIN UPDATE wa SET v = v + 1 WHERE id < 5; END $$`)
	log := rest(t, s)
	require.NoError(t, s.Close())
	s, err = src.Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	exec(`TRUNCATE wn; INSERT INTO wn VALUES (1, 1)`)
	exec(`VACUUM FULL wa`)
	exec(`UPDATE wa SET v = 0 WHERE id = 7`)
	exec(`BEGIN; INSERT INTO wn VALUES (99, 99)`)
	exec(`PREPARE TRANSACTION 'logged'`)
	exec(`COMMIT PREPARED 'logged'`)

	versions, deleted := map[written]bool{}, map[written]bool{}
	committed, tables := map[uint32]bool{}, map[string]int{}
	for _, l := range append(log, rest(t, s)...) {
		require.LessOrEqual(t, l.From, l.To)
		for _, xid := range l.XIDs {
			committed[xid] = l.Status == history.Committed
		}
		for i := range l.Writes {
			w := &l.Writes[i]
			tables[w.Row.Table]++
			p := &w.TupleID
			if w.Op == history.DeleteRow {
				deleted[written{leaf: p.Leaf, ctid: place(p.CTID)}] = true
				continue
			}
			versions[written{p.Leaf, place(p.NewID), p.NewXID}] = true
		}
		if l.Database != strings.TrimPrefix(u.Path, "/") {
			t.Errorf("a transaction of %s", l.Database)
		}
	}
	missing := 0
	require.Zero(t, tables[""], "writes of tables that are not known")
	for _, v := range saw.versions {
		if !versions[v.written] {
			missing++
			t.Logf("missing: %+v", v)
		}
		if v.committed && !committed[v.xid] || !v.committed && committed[v.xid] {
			t.Errorf("transaction %d: committed %v, the log says %v", v.xid, v.committed, committed[v.xid])
		}
	}
	for _, v := range saw.deleted {
		if !deleted[v] {
			missing++
			t.Logf("missing: deletion of %+v", v)
		}
	}
	if missing > 0 || len(saw.versions) < 500 || len(saw.deleted) < 20 {
		t.Errorf("of %d versions and %d deletions %d are missing", len(saw.versions), len(saw.deleted), missing)
	}
	if tables["public.wn"] < 500 || tables["public.wp1"] == 0 || tables["public.wp"] > 0 || tables["public.wa"] == 0 {
		t.Errorf("the log has writes of %v", tables)
	}
	t.Logf("%d versions, %d deletions, tables %v", len(saw.versions), len(saw.deleted), tables)
}

type seenVersion struct {
	written
	committed bool
}

type seen struct {
	mu       sync.Mutex
	versions []seenVersion
	deleted  []written
}

// play runs random transactions of several clients, and returns what their statements said.
func play(t *testing.T, address string) *seen {
	var all seen
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(client)))
			c, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close(context.Background())
			_, _ = c.Exec(t.Context(), "SET wal_compression = on")
			for i := range 60 {
				if i%20 == 10 {
					_, _ = c.Exec(t.Context(), "CHECKPOINT")
				}
				all.transaction(t, c, rng)
			}
		})
	}
	clients.Wait()
	return &all
}

// transaction plays one.
func (all *seen) transaction(t *testing.T, c *pgx.Conn, rng *rand.Rand) {
	ctx := t.Context()
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	var versions []seenVersion
	var deleted []written
	failed := false
	for range 1 + rng.IntN(4) {
		inner := rng.IntN(3) == 0
		if inner {
			_, _ = tx.Exec(ctx, "SAVEPOINT s")
		}
		sql, deletes := statement(rng)
		rows, err := tx.Query(ctx, sql+" RETURNING tableoid::int8, ctid::text, xmin::text::int8")
		from := len(versions)
		if err == nil {
			for rows.Next() {
				var leaf, xid int64
				var ctid string
				_ = rows.Scan(&leaf, &ctid, &xid)
				if v := (written{uint32(leaf), ctid, uint32(xid)}); deletes {
					v.xid = 0
					deleted = append(deleted, v)
				} else {
					versions = append(versions, seenVersion{v, true})
				}
			}
			err = rows.Err()
		}
		if err != nil {
			failed = true
			break
		}
		if inner && rng.IntN(2) == 0 {
			_, _ = tx.Exec(ctx, "ROLLBACK TO SAVEPOINT s")
			for i := range versions[from:] {
				versions[from+i].committed = false
			}
		}
	}
	if failed || rng.IntN(6) == 0 {
		_ = tx.Rollback(ctx)
		for i := range versions {
			versions[i].committed = false
		}
	} else if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.versions, all.deleted = append(all.versions, versions...), append(all.deleted, deleted...)
}

// statement returns one that writes, and whether it deletes.
func statement(rng *rand.Rand) (sql string, deletes bool) {
	id := 1 + rng.IntN(300)
	switch rng.IntN(9) {
	case 0, 1, 2:
		return fmt.Sprintf("UPDATE wa SET v = v + 1 WHERE id BETWEEN %d AND %d", id, id+rng.IntN(3)), false
	case 3:
		return fmt.Sprintf("UPDATE wa SET v = v + 1, pad = repeat('y', %d) WHERE id = %d", rng.IntN(3000), id), false
	case 4:
		return fmt.Sprintf("INSERT INTO wn SELECT g, 1 FROM generate_series(%d, %d) g", id, id+rng.IntN(40)), false
	case 5:
		return fmt.Sprintf("DELETE FROM wn WHERE id = %d", id), true
	case 6:
		return fmt.Sprintf("INSERT INTO wp VALUES (%d, 1)", id), false
	case 7:
		return fmt.Sprintf("UPDATE wp SET v = v + 1 WHERE id = %d", id), false
	default:
		return fmt.Sprintf("INSERT INTO wa VALUES (%d, 0) ON CONFLICT (id) DO UPDATE SET v = wa.v + 1", id+rng.IntN(200)), false
	}
}

// TestLogNeedsTheAttribute holds what is said of a user that may not read it, and what is asked for.
func TestLogNeedsTheAttribute(t *testing.T) {
	server := testdb.PostgreSQL(t)
	c, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer c.Close(t.Context())
	role := testdb.NewPostgreSQLDatabase(t)
	_, err = c.Exec(t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN", role))
	require.NoError(t, err)
	defer c.Exec(t.Context(), "DROP ROLE "+role)
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	u.User, u.Path = url.User(role), "/"+role
	src := source(t, u.String())
	_, err = src.Open(t.Context())
	var unreadable *serverlog.Unreadable
	require.ErrorAs(t, err, &unreadable)
	require.Equal(t, `ALTER ROLE "`+role+`" REPLICATION`, unreadable.Remedy)
	_, err = c.Exec(t.Context(), unreadable.Remedy)
	require.NoError(t, err)
	s, err := src.Open(t.Context())
	require.NoError(t, err)
	require.Empty(t, rest(t, s))
	require.NoError(t, s.Close())
}

// TestServerWaitsForNoReader holds that isotap is no standby that commits wait for, and that a server that is stopped
// in the orderly way is not kept from it.
func TestServerWaitsForNoReader(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server, err := testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{Args: []string{
		"-c", "synchronous_standby_names=*", "-c", "synchronous_commit=local"}})
	if errors.Is(err, testdb.ErrPostgreSQLNotInstalled) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer server.Stop()
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	u.Path = "/postgres"
	s, err := source(t, u.String()).Open(t.Context())
	require.NoError(t, err)
	defer s.Close()
	c, err := pgx.Connect(t.Context(), u.String())
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "CREATE TABLE t (id int)")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Next(ctx); err != nil {
				ended <- err
				return
			}
		}
	}()
	var states []string
	for range 3 {
		_, err = c.Exec(t.Context(), "INSERT INTO t VALUES (1)")
		require.NoError(t, err)
		time.Sleep(tellEvery)
		var state string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT sync_state FROM pg_stat_replication").Scan(&state))
		states = append(states, state)
	}
	require.Equal(t, []string{"async"}, slices.Compact(states))
	require.NoError(t, c.Close(t.Context()))
	began := time.Now()
	server.Signal(syscall.SIGINT)
	select {
	case <-server.Done():
	case <-time.After(20 * time.Second):
		t.Error("the server does not stop")
	}
	t.Logf("stopped after %v", time.Since(began))
	require.Error(t, <-ended)
	stop()
}

const tellEvery = 1100 * time.Millisecond
