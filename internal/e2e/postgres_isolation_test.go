package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// lockedForms are statements whose locks are compared.
var lockedForms = []string{
	"SELECT * FROM t1", "SELECT id FROM t1 WHERE id = 1", "SELECT count(*) FROM t1", "SELECT max(id) FROM t1",
	"SELECT b, count(*) FROM t1 GROUP BY b", "SELECT DISTINCT b FROM t1",
	"SELECT id FROM t1 WHERE id IN (SELECT k1 FROM t2)", "SELECT * FROM t1 JOIN t2 ON k1 = id",
	"SELECT * FROM pt WHERE id = 4", "SELECT * FROM base", "SELECT id FROM v1", "SELECT * FROM v3",
	"SELECT count(*) FROM v4", "SELECT a FROM v1 WHERE id = 2 FOR UPDATE", "INSERT INTO t3 (x) SELECT id FROM v1",
	"SELECT id FROM t1 UNION SELECT k1 FROM t2",
	"SELECT id FROM t1 ORDER BY id LIMIT 1", "SELECT a FROM t1 WHERE id = 2 FOR UPDATE",
	"SELECT a FROM t1 WHERE id < 3 FOR KEY SHARE", "SELECT t1.id FROM t1 JOIN t2 ON k1 = id FOR SHARE OF t2",
	"SELECT id FROM t1 ORDER BY id LIMIT 1 FOR NO KEY UPDATE",
	"WITH q AS (SELECT id FROM t1) SELECT * FROM q WHERE id = 1",
	"INSERT INTO t1 (id, a) VALUES (60, 60)",
	"INSERT INTO t1 (id, a) VALUES (1, 60) ON CONFLICT (id) DO UPDATE SET b = 'x'",
	"INSERT INTO t1 (id, a) VALUES (1, 60) ON CONFLICT DO NOTHING", "INSERT INTO t3 (x) SELECT id FROM t1",
	"INSERT INTO kid VALUES (50, 1)", "INSERT INTO pt VALUES (5, 'x')", "UPDATE t1 SET b = 'x' WHERE id = 1",
	"UPDATE t1 SET id = 61 WHERE id = 1", "UPDATE t1 SET b = 'x'", "UPDATE t2 SET v = 9 WHERE v = 1",
	"UPDATE t3 SET y = 9 WHERE x = 1",
	"UPDATE t1 SET c = v FROM t2 WHERE k1 = id", "UPDATE pt SET n = 'x' WHERE id = 4", "UPDATE base SET n = 'x'",
	"UPDATE par SET s = 'x' WHERE id = 1", "UPDATE tr SET v = 9 WHERE id = 1", "UPDATE v1 SET b = 'x' WHERE id = 1",
	"DELETE FROM t1 WHERE id = 1", "DELETE FROM par WHERE id = 1", "DELETE FROM t1 USING t2 WHERE k1 = id",
	"DELETE FROM t3", "WITH d AS (DELETE FROM t1 WHERE id = 1 RETURNING id) SELECT * FROM d",
	"UPDATE t1 SET b = 'x' WHERE id IN (SELECT k1 FROM t2) RETURNING id",
	"SELECT b, sum(c) FROM t1 WHERE id = 2 GROUP BY b", "SELECT max(c) FROM t1 WHERE id < 3",
	"SELECT s.n, t1.a FROM t1, (SELECT count(*) AS n FROM t2) s WHERE t1.id = 2",
	"SELECT DISTINCT b FROM t1 WHERE id = 1",
	"SELECT a, x.c FROM t1 JOIN (SELECT k1, sum(v) AS c FROM t2 GROUP BY k1) x ON k1 = id",
	"INSERT INTO t3 (x) SELECT v FROM t2 WHERE k1 = 1", "INSERT INTO t3 (x, y) SELECT a, v FROM t1 JOIN t2 ON k1 = id",
}

// locksOf are the locks of the session with that process, but for those of its own transaction. Where in a
// table a row stands is the server's affair.
const locksOf = `SELECT locktype, relation::regclass, mode, count(*) FROM pg_locks
	WHERE pid = %s AND locktype NOT IN ('virtualxid', 'transactionid') AND relation::regclass::text NOT LIKE 'pg\_%%'
	GROUP BY 1, 2, 3 ORDER BY 2, 3, 1`

// freeRows are the rows that another session can lock, and in which way.
var freeRows = []string{"SELECT id FROM t1 ORDER BY id FOR %s SKIP LOCKED",
	"SELECT k1, k2 FROM t2 ORDER BY k1, k2 FOR %s SKIP LOCKED", "SELECT id FROM pt ORDER BY id FOR %s SKIP LOCKED",
	"SELECT id FROM par ORDER BY id FOR %s SKIP LOCKED"}

// TestPostgreSQLStatementsTakeTheLocksOfTheOriginals looks from another session at what each form of statement
// has locked: tables, rows, and what SERIALIZABLE watches.
func TestPostgreSQLStatementsTakeTheLocksOfTheOriginals(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	m := newPostgreSQLMirror(t, tapMode{})
	r, err := m.reflect()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var others [2]frontend
	for i := range others {
		if others[i], err = newFrontend(m.addrs[0], m.names[i]); err != nil {
			t.Fatal(err)
		}
		defer others[i].Close()
	}
	for _, level := range []string{"READ COMMITTED", "SERIALIZABLE"} {
		for _, text := range lockedForms {
			var taken [2][]string
			for i, side := range r.sides {
				taken[i] = locksTaken(t, side, others[i], level, text)
			}
			if !slices.Equal(taken[0], taken[1]) {
				t.Errorf("%s at %s:\ndirectly       %q\nthrough isotap %q", text, level, taken[0], taken[1])
			}
		}
	}
}

// locksTaken runs a statement in a transaction on one side of a mirror and returns what another session finds
// locked then.
func locksTaken(t *testing.T, side, other frontend, level, text string) []string {
	t.Helper()
	process, err := side.ask(texts("SELECT pg_backend_pid()")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"BEGIN ISOLATION LEVEL " + level, text} {
		replies, err := side.ask(texts(sql)...)
		if err != nil || replies[0][0] == 'E' {
			t.Fatalf("%s: %v %q", sql, err, replies)
		}
	}
	var all []string
	ask := func(sql string) {
		replies, err := other.ask(texts(sql)...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, replies...)
	}
	ask(fmt.Sprintf(locksOf, process[1][7:]))
	for _, free := range freeRows {
		for _, mode := range []string{"KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"} {
			ask(fmt.Sprintf(free, mode))
		}
	}
	if _, err := side.ask(texts("ROLLBACK")...); err != nil {
		t.Fatal(err)
	}
	return all
}

// beforeSnapshot are statements of a transaction that take no snapshot.
var beforeSnapshot = []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE",
	"BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT a",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL search_path = public",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET ROLE mirror_clerk; RESET ROLE",
	"SET default_transaction_isolation = 'serializable'; BEGIN",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET work_mem = '5MB'",
	"COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; COMMIT AND CHAIN",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE t2", "BEGIN ISOLATION LEVEL REPEATABLE READ; DISCARD PLANS",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET CONSTRAINTS ALL DEFERRED",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; DEALLOCATE ALL",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET client_encoding = 'LATIN1'",
	"BEGIN ISOLATION LEVEL SERIALIZABLE; SHOW search_path"}

// TestPostgreSQLSnapshotsAreNoEarlierThanTheOriginals has another session commit between the beginning of a
// transaction and its first read, after what isotap may want to ask the server about.
func TestPostgreSQLSnapshotsAreNoEarlierThanTheOriginals(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	m := newPostgreSQLMirror(t, tapMode{})
	for _, begin := range beforeSnapshot {
		for _, apart := range []bool{false, true} {
			r, err := m.reflect()
			if err != nil {
				t.Fatal(err)
			}
			steps := []string{begin}
			if apart {
				steps = strings.Split(begin, "; ")
			}
			for _, sql := range steps {
				if diff := r.run(postgresStep{name: sql, messages: texts(sql)}); diff != "" {
					t.Error(diff)
				}
			}
			for _, name := range m.names {
				testdb.Exec(t, testdb.OpenPostgreSQL(t, name), "INSERT INTO t1 (id, a) VALUES (55, 55)")
			}
			for _, sql := range []string{"SELECT id FROM t1 WHERE id = 55", "UPDATE t1 SET b = 'seen' WHERE id = 55",
				"COMMIT"} {
				if diff := r.run(postgresStep{name: sql, messages: texts(sql)}); diff != "" {
					t.Errorf("after %s: %s", begin, diff)
				}
			}
			r.close()
		}
	}
}

// contended are statements of sessions that run into each other at SERIALIZABLE.
var contended = []string{"SELECT a FROM t1 WHERE id = 1", "SELECT a FROM t1 WHERE id = 2",
	"SELECT id FROM t1 WHERE id = 3", "SELECT count(*) FROM t1", "SELECT max(id) FROM t1",
	"SELECT sum(v) FROM t2 WHERE k1 = 1", "SELECT v FROM t2 WHERE k1 = 2 AND k2 = 'a'",
	"SELECT DISTINCT k1 FROM t2 ORDER BY 1", "SELECT count(*) FROM fresh", "UPDATE t1 SET c = 1 WHERE id = 1",
	"UPDATE t1 SET c = 2 WHERE id = 2", "UPDATE t2 SET v = v + 1 WHERE k1 = 1 AND k2 = 'a'",
	"INSERT INTO fresh SELECT count(*) + 100, 1 FROM fresh",
	"INSERT INTO fresh VALUES (7, 7) ON CONFLICT DO NOTHING", "DELETE FROM t2 WHERE k1 = 2",
	"UPDATE t1 SET b = 'x' WHERE id = 3 RETURNING a", "BEGIN", "BEGIN", "BEGIN", "COMMIT", "COMMIT",
	"SELECT id FROM t1 WHERE id = 1 FOR UPDATE"}

// contendedRows lays the contended tables out anew and keeps autovacuum's statistics off them: which rows share
// a page, and whether a plan looks at an index or at the whole table, decides what SERIALIZABLE takes for a
// conflict, and a mirror's two databases are not visited by autovacuum at the same time.
const contendedRows = `ALTER TABLE t1 SET (autovacuum_enabled = off); ALTER TABLE t2 SET (autovacuum_enabled = off);
	TRUNCATE t1, t2;
	INSERT INTO t1 VALUES (1, 10, 'one', 1.5), (2, 20, 'two', 2), (3, NULL, NULL, NULL), (4, 40, 'one', 4.25);
	INSERT INTO t2 VALUES (1, 'a', 1, 1.25), (1, 'b', 2, NULL), (2, 'a', 3, 0.1)`

// A contendedStep is a statement of one of three sessions.
type contendedStep struct {
	session int
	sql     string
}

// contend runs a schedule of three sessions at SERIALIZABLE, one statement after the other, and returns where the
// replies differ, and how many serialization failures there were.
func (m *postgresMirror) contend(schedule []contendedStep) (diff string, failures int, err error) {
	var sessions [3]*postgresReflection
	for i := range sessions {
		if sessions[i], err = m.reflect(); err != nil {
			return "", 0, err
		}
		defer sessions[i].close()
	}
	for _, side := range sessions[0].sides { // one page for the rows of each table
		if replies, err := side.ask(texts(contendedRows)...); err != nil || replies[0][0] == 'E' {
			return "", 0, fmt.Errorf("lay out the contended tables: %v %q", err, replies)
		}
	}
	for _, s := range sessions {
		for _, sql := range []string{"SET lock_timeout = 20", "SET default_transaction_isolation = 'serializable'",
			"BEGIN"} {
			if diff := s.run(postgresStep{name: sql, messages: texts(sql)}); diff != "" {
				return diff, 0, nil
			}
		}
	}
	for i, step := range schedule {
		s := sessions[step.session]
		if diff := s.run(postgresStep{name: step.sql, messages: texts(step.sql)}); diff != "" {
			return fmt.Sprintf("%s\nin step %d of %v", diff, i+1, schedule), failures, nil
		}
		if s.failed {
			failures++
		}
	}
	return "", failures, nil
}

// TestRandomPostgreSQLSchedulesFailAlike runs three sessions at SERIALIZABLE in a random order: isotap is the
// cause of no serialization failure, and prevents none. A page that only one of the databases has pruned can
// make them differ once: what isotap does to a schedule it does each time.
func TestRandomPostgreSQLSchedulesFailAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	sessions := backends.Start(t, testdb.PostgreSQL(t).Addr())
	m := newPostgreSQLMirror(t, tapMode{change: func(o *proxyserver.Options) { o.Upstream.Address = sessions.Addr }})
	m.addrs[0] = sessions.Addr
	failures := 0
	rapid.Check(t, func(rt *rapid.T) {
		schedule := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) contendedStep {
			return contendedStep{rapid.IntRange(0, 2).Draw(rt, "session"),
				rapid.SampledFrom(contended).Draw(rt, "statement")}
		}), 10, 30).Draw(rt, "schedule")
		const tries = 4
		for try := 1; ; try++ {
			diff, failed, err := m.contend(schedule)
			failures += failed
			switch {
			case err != nil:
				rt.Fatal(err)
			case diff == "":
				return
			case try == tries:
				rt.Fatal(diff)
			}
			t.Logf("once: %s", diff)
		}
	})
	t.Logf("%d serialization failures", failures)
	if failures == 0 {
		t.Error("no schedule failed")
	}
}
