package replay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
)

func TestMain(m *testing.M) {
	testdb.Main(m, append([]testdb.Engine{testdb.MySQL}, testdb.PostgreSQLs...)...)
}

func newRunner(t *testing.T, f dbms.Family) (*Runner, Server) {
	t.Helper()
	server := Server{Family: f, User: "root"}
	if f == dbms.PostgreSQLFamily {
		server.Addr, server.User = testdb.PostgreSQL(t).Addr(), "postgres"
	} else {
		server.Addr = testdb.MariaDB(t).Addr()
	}
	running := goleak.IgnoreCurrent()
	r, err := NewRunner(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, running)
	})
	return r, server
}

// script makes a scenario out of lines "SESSION: statement". The session T9 connects late.
func script(lines ...string) *scenario.Scenario {
	s := &scenario.Scenario{Name: "script", Sessions: []scenario.Session{{Name: "T9", Late: true}}, Setup: []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT)",
		"INSERT INTO t VALUES (1, 10), (2, 20)",
	}}
	for _, line := range lines {
		session, sql, _ := strings.Cut(line, ": ")
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
	}
	return s
}

// outline returns what the scheduling of a trace was, one word or two a step.
func outline(t Trace) string {
	words := make([]string, len(t.Results))
	for i, r := range t.Results {
		words[i] = string(r.Status)
		if r.Blocked {
			words[i] += "+blocked"
			if len(r.WaitedFor) > 0 {
				words[i] += "(" + strings.Join(r.WaitedFor, ",") + ")"
			}
		}
		if r.Queued {
			words[i] += "+queued"
		}
		if r.DoneAfter != 0 {
			words[i] += fmt.Sprintf("@%d", r.DoneAfter)
		}
	}
	return strings.Join(words, " ")
}

func TestStepsWaitQueueAndResume(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	testOutlines(t, r, server, []outlineTest{
		{
			"nobody waits",
			script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 21 WHERE id = 2",
				"A: COMMIT"),
			"ok ok ok ok",
		},
		{
			"a slow statement does not wait",
			script("A: SELECT SLEEP(0.3)", "B: SELECT 1"),
			"ok ok",
		},
		rowLock, queueFreesAThird,
		{
			"a deadlock ends the waiting victim",
			script("A: BEGIN", "B: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1",
				"A: INSERT INTO t VALUES (3, 0), (4, 0), (5, 0)",
				"B: UPDATE t SET v = 21 WHERE id = 2", "B: UPDATE t SET v = 12 WHERE id = 1",
				"A: UPDATE t SET v = 22 WHERE id = 2"),
			"ok ok ok ok ok error+blocked(A)@7 ok",
		},
		{tableLock.name, tableLock.s, "ok ok ok+blocked@4 ok ok"}, // whom it waits for InnoDB does not know
		onlyTheEndReleases,
		{
			"a lock that nothing releases",
			script("A: DO GET_LOCK(CONCAT('isotap ', DATABASE()), 0)",
				"B: DO GET_LOCK(CONCAT('isotap ', DATABASE()), 60)", "B: SELECT 1"),
			"ok blocked+blocked not_run+queued",
		},
	})
}

func TestPostgreSQLsStepsWaitQueueAndResume(t *testing.T) {
	r, server := newRunner(t, dbms.PostgreSQLFamily)
	testOutlines(t, r, server, []outlineTest{
		{
			"a slow statement does not wait",
			script("A: SELECT pg_sleep(0.3)", "B: SELECT 1"),
			"ok ok",
		},
		rowLock, queueFreesAThird,
		{
			// The second to wait looks for a deadlock first, and so is its victim.
			"a deadlock ends at its own step",
			script("A: SET deadlock_timeout = '10min'", "B: SET deadlock_timeout = '10ms'", "A: BEGIN", "B: BEGIN",
				"A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 21 WHERE id = 2",
				"A: UPDATE t SET v = 22 WHERE id = 2",
				"B: UPDATE t SET v = 12 WHERE id = 1"),
			"ok ok ok ok ok ok ok+blocked(B)@8 error",
		},
		tableLock, onlyTheEndReleases,
		{
			"a deferrable transaction waits for a safe snapshot",
			script("A: BEGIN ISOLATION LEVEL SERIALIZABLE", "A: UPDATE t SET v = 11 WHERE id = 1",
				"B: BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
				"B: SELECT v FROM t", "A: COMMIT"),
			"ok ok ok ok+blocked(A)@5 ok",
		},
		{
			"a parallel worker waits",
			script("A: CREATE FUNCTION share() RETURNS void PARALLEL SAFE LANGUAGE sql "+
				"AS 'SELECT pg_advisory_xact_lock_shared(hashtext(current_schema))'",
				"B: SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
				"A: SELECT pg_advisory_lock(hashtext(current_schema))", "B: SELECT share()",
				"A: SELECT pg_advisory_unlock_all()"),
			"ok ok ok ok+blocked(A)@5 ok",
		},
		{
			"a lock that nothing releases",
			script("A: SELECT pg_advisory_lock(hashtext(current_schema))",
				"B: SELECT pg_advisory_lock(hashtext(current_schema))", "B: SELECT 1"),
			"ok blocked+blocked(A) not_run+queued",
		},
	})
}

// An outlineTest is a script and the outline of its trace.
type outlineTest struct {
	name string
	s    *scenario.Scenario
	want string
}

// What is alike on both families.
var (
	rowLock = outlineTest{
		"a row lock, with queued steps",
		script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: BEGIN", "B: UPDATE t SET v = v + 1 WHERE id = 1",
			"B: SELECT v FROM t WHERE id = 1", "A: SELECT 1", "A: COMMIT", "B: COMMIT"),
		"ok ok ok ok+blocked(A)@7 ok+queued@7 ok ok ok",
	}
	queueFreesAThird = outlineTest{
		"a queue that blocks again and frees a third session",
		script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: BEGIN", "B: UPDATE t SET v = 21 WHERE id = 2",
			"B: UPDATE t SET v = 12 WHERE id = 1", "B: COMMIT", "C: UPDATE t SET v = 22 WHERE id = 2", "A: COMMIT"),
		"ok ok ok ok ok+blocked(A)@8 ok+queued@8 ok+blocked(B)@8 ok",
	}
	tableLock = outlineTest{
		"a table's lock",
		script("A: BEGIN", "A: SELECT * FROM t", "B: ALTER TABLE t ADD COLUMN w INT", "A: COMMIT",
			"T9: SELECT * FROM t"),
		"ok ok ok+blocked(A)@4 ok ok",
	}
	onlyTheEndReleases = outlineTest{
		"a lock that only the end releases",
		script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 12 WHERE id = 1", "B: SELECT 1"),
		"ok ok ok+blocked(A)@-1 ok+queued@-1",
	}
)

func testOutlines(t *testing.T, r *Runner, server Server, tests []outlineTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			level := history.RepeatableRead
			if server.Family == dbms.PostgreSQLFamily {
				level = history.ReadCommitted // where a second writer does not fail
			}
			trace, err := r.Run(context.Background(), server, tt.s, level, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(trace); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFinalSessionSeesWhatOthersCommitted(t *testing.T) {
	for _, f := range []dbms.Family{dbms.MySQLFamily, dbms.PostgreSQLFamily} {
		t.Run(string(f), func(t *testing.T) {
			r, server := newRunner(t, f)
			c := script("A: UPDATE t SET v = 11 WHERE id = 1", "T9: SELECT v FROM t ORDER BY id")
			for _, prepared := range []bool{false, true} {
				trace, err := r.Run(t.Context(), server, c, history.RepeatableRead, Options{Prepared: prepared})
				if err != nil {
					t.Fatal(err)
				}
				last := trace.Results[1]
				if got := last.comparableRows(); got != `[("11") ("20")]` {
					t.Errorf("rows %s", got)
				}
				want := Column{Name: "v", TableOID: 16385, Attribute: 2}
				if f == dbms.MySQLFamily {
					want = Column{Name: "v", Schema: "@db"}
				}
				if len(last.Columns) != 1 {
					t.Fatalf("columns %+v", last.Columns)
				}
				got := last.Columns[0]
				if (Column{Name: got.Name, Schema: got.Schema, TableOID: got.TableOID,
					Attribute: got.Attribute}) != want {
					t.Errorf("column %+v", got)
				}
			}
		})
	}
}

func TestPostgreSQLsReplyIsInTheResult(t *testing.T) {
	r, server := newRunner(t, dbms.PostgreSQLFamily)
	c := script("A: BEGIN; UPDATE t SET v = 0", "A: BEGIN", "A: SELECT 'x' AS s, NULL, 1.50 WHERE true",
		"A: INSERT INTO t VALUES (1, 1)", "A: SELECT 1", "A: ROLLBACK")
	trace, err := r.Run(t.Context(), server, c, history.ReadCommitted, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(trace.Results))
	for i, r := range trace.Results {
		got[i] = fmt.Sprintf("%s %q %d %v %v %t %t %s", r.Status, r.Tag, r.Affected, r.Rows, r.Notices, r.InTxn,
			r.TxnFailed, r.ErrorCode())
	}
	want := []string{
		`ok "BEGIN;UPDATE 2" 2 [] [] true false `,
		`ok "BEGIN" 0 [] [WARNING 25001: there is already a transaction in progress] true false `,
		`ok "SELECT 1" 0 [[x NULL 1.50]] [] true false `,
		`error "" 0 [] [] true true 23505`,
		`error "" 0 [] [] true true 25P02`,
		`ok "ROLLBACK" 0 [] [] false false `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := trace.Results[3].Detail, "ERROR||Key (id)=(#) already exists.|||@db|t|||t_pkey"; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
}

func TestValuesComeAsTheServerWritesThem(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	c := script("A: SELECT NULL, '', 'a,b', CAST(1.50 AS DECIMAL(5,2)), 18446744073709551615, -1, DATE'2020-02-03', LPAD(7, 3, '0')")
	const want = `[(NULL,"","a,b","1.50","18446744073709551615","-1","2020-02-03","007")]`
	for _, prepared := range []bool{false, true} {
		trace, err := r.Run(t.Context(), server, c, history.RepeatableRead, Options{Prepared: prepared})
		if err != nil {
			t.Fatal(err)
		}
		if got := trace.Results[0].comparableRows(); got != want {
			t.Errorf("prepared %t: %s", prepared, got)
		}
	}
}

func TestReadyComesBetweenSetUpAndSessions(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	db := testdb.Open(t, "")
	c := script("A: SELECT v FROM t WHERE id = 1")
	trace, err := r.Run(t.Context(), server, c, history.RepeatableRead,
		Options{SetUpDirect: true, Ready: func(ctx context.Context, database string) error {
			_, err := db.ExecContext(ctx, "UPDATE "+database+".t SET v = 99")
			return err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if got := trace.Results[0].Rows[0][0].Text; got != "99" {
		t.Errorf("v = %s", got)
	}
}

func TestFailuresEndTheRunAndLeaveNothing(t *testing.T) {
	for f, sleep := range map[dbms.Family]string{dbms.MySQLFamily: "SELECT SLEEP(100)",
		dbms.PostgreSQLFamily: "SELECT pg_sleep(100)"} {
		t.Run(string(f), func(t *testing.T) {
			r, server := newRunner(t, f)
			testFailures(t, r, server, sleep)
		})
	}
}

// testFailures looks that runs fail with an error that says why; the statement sleep takes long.
func testFailures(t *testing.T, r *Runner, server Server, sleep string) {
	broken := script("A: SELECT 1")
	broken.Setup = []string{"CREATE TABLE"}
	refused := errors.New("not ready")
	tests := []struct {
		name, want string
		s          *scenario.Scenario
		level      history.Level
		target     Server
		options    Options
	}{
		{"a set-up statement fails", "set-up", broken, history.RepeatableRead, server, Options{}},
		{"the set-up is refused", "not ready", script("A: SELECT 1"), history.RepeatableRead, server,
			Options{Ready: func(context.Context, string) error { return refused }}},
		{"a session statement fails", "SET nonsense", script("A: SELECT 1"), history.RepeatableRead, server,
			Options{Session: []string{"SET nonsense"}}},
		{"no such level", "no such level", script("A: SELECT 1"), history.LevelUnknown, server, Options{}},
		{"nobody listens", "connecting to 127.0.0.1:1", script("A: SELECT 1"), history.RepeatableRead,
			Server{Family: server.Family, Addr: "127.0.0.1:1", User: "root"}, Options{}},
		{"the context ends", "deadline", script("A: BEGIN", "A: UPDATE t SET v = 1", "A: "+sleep),
			history.RepeatableRead, server, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := r.Run(ctx, tt.target, tt.s, tt.level, tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
	jobs := []Job{{script("A: SELECT 1"), history.RepeatableRead}, {broken, history.RepeatableRead},
		{script("A: SELECT 1"), history.RepeatableRead}}
	if _, err := r.RunAll(t.Context(), server, jobs, 1, Options{}); err == nil ||
		!strings.Contains(err.Error(), "set-up") {
		t.Errorf("RunAll: %v", err)
	}
	if left := leftBehind(t, server); left != 0 {
		t.Errorf("%d databases are left", left)
	}
}

// leftBehind counts the databases, schemas and sessions that runs have left on the server.
func leftBehind(t *testing.T, server Server) (n int) {
	t.Helper()
	var db *sql.DB
	query := "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'isotap\\_replay%'"
	if server.Family == dbms.PostgreSQLFamily {
		db = testdb.OpenPostgreSQL(t, "")
		query = `SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'isotap\_replay%') +
			(SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg\_sleep(100)')`
	} else {
		db = testdb.Open(t, "")
	}
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The list of who waits is an old one for 0.1 s. InnoDB's report is not, so it is what is read.
func TestWaitsAreSeenWithoutTheListOfWaits(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	c := script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 12 WHERE id = 1", "A: SELECT SLEEP(0.1)",
		"A: COMMIT")
	trace, err := r.Run(t.Context(), server, c, history.ReadCommitted, Options{Whoever: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := outline(trace), "ok ok ok+blocked@5 ok ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := r.watcher.(*monitor).polls; n > 0 {
		t.Errorf("the list was read %d times", n)
	}
}

func TestLockWaitersAreThoseOfTheReport(t *testing.T) {
	const head = "=====\nTRANSACTIONS\n------------\nTrx id counter 24737\nLIST OF TRANSACTIONS FOR EACH SESSION:\n"
	const waits = "---TRANSACTION 9, ACTIVE 0 sec starting index read\nmysql tables in use 1, locked 1\n" +
		"LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)\n" +
		"MariaDB thread id 1996, OS thread handle 140, query id 8 127.0.0.1 root Updating\nDELETE FROM t\n" +
		"------- TRX HAS BEEN WAITING 0 SEC FOR THIS LOCK TO BE GRANTED:\nRECORD LOCKS space id 1\n"
	const works = "---TRANSACTION 8, ACTIVE 0 sec\n3 lock struct(s), heap size 1128, 1 row lock(s)\n" +
		"MySQL thread id 7, OS thread handle 131, query id 9 127.0.0.1 root\nSELECT '\nLOCK WAIT 1\nMySQL thread id 5, '\n"
	const idle = "---TRANSACTION (0x7f7893404e80), not started\n0 lock struct(s), heap size 1128, 0 row lock(s)\n"
	for what, c := range map[string]struct {
		report string
		want   []uint32
		whole  bool
	}{
		"some wait":             {head + idle + works + waits + works, []uint32{1996}, true},
		"nobody waits":          {head + idle + works, nil, true},
		"there is no list":      {"=====\nTRANSACTIONS\n" + waits, nil, false},
		"the report was cut":    {head + works + "... truncated...\n" + waits, nil, false},
		"there is another form": {head + strings.Replace(waits, "1996", "x", 1), nil, false},
	} {
		got, listed, whole := lockWaiters(c.report)
		if !slices.Equal(got, c.want) || whole != c.whole {
			t.Errorf("%s: %v, %v", what, got, whole)
		}
		if whole && !slices.Contains(listed, 7) {
			t.Errorf("%s: 7 is not among %v", what, listed)
		}
	}
}

// TestTransactionsThatOnlyReadAreSeenToWait has one that MySQL's report lacks.
func TestTransactionsThatOnlyReadAreSeenToWait(t *testing.T) {
	server := Server{Family: dbms.MySQLFamily, User: "root", Addr: testdb.Current(t).Addr()}
	r, err := NewRunner(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	trace, err := r.Run(t.Context(), server, script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: START TRANSACTION READ ONLY",
		"B: SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE", "A: COMMIT", "B: COMMIT"), history.Serializable, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := outline(trace), "ok ok ok ok+blocked(A)@5 ok ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A statement in autocommit takes no locks on TiDB, and waits for those of others where it commits: its state is not
// that of one that waits.
func TestCommitsAreSeenToWait(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, as TiDB's start is: make check runs it")
	}
	tidb := testdb.TiDB(t)
	if tidb == nil {
		t.Skip(testdb.NoTiDB)
	}
	server := Server{Family: dbms.MySQLFamily, User: "root", Addr: tidb.Addr()}
	r, err := NewRunner(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, c := range map[string]struct {
		steps []string
		want  string
	}{
		"an open transaction has the row": {[]string{"A: BEGIN PESSIMISTIC", "A: UPDATE t SET v = 11 WHERE id = 1",
			"B: UPDATE t SET v = 12 WHERE id = 1", "A: SELECT v FROM t WHERE id = 2", "A: COMMIT"}, "ok ok ok+blocked(A)@5 ok ok"},
		"it has another row": {[]string{"A: BEGIN PESSIMISTIC", "A: UPDATE t SET v = 11 WHERE id = 1",
			"B: UPDATE t SET v = 12 WHERE id = 2", "A: COMMIT"}, "ok ok ok ok"},
	} {
		trace, err := r.Run(t.Context(), server, script(c.steps...), history.RepeatableRead, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := outline(trace); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// The report has waits for InnoDB's own locks, and no others.
func TestWaitsForOtherThanRowsAreSeen(t *testing.T) {
	r, server := newRunner(t, dbms.MySQLFamily)
	for what, c := range map[string]*scenario.Scenario{
		"metadata": script("A: BEGIN", "A: SELECT v FROM t WHERE id = 1", "B: ALTER TABLE t ADD COLUMN w INT", "A: COMMIT"),
		"a name":   script("A: DO 1", "A: SELECT GET_LOCK('isotap_test', 1)", "B: SELECT GET_LOCK('isotap_test', 9)", "A: DO RELEASE_LOCK('isotap_test')"),
	} {
		trace, err := r.Run(t.Context(), server, c, history.ReadCommitted, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := outline(trace), "ok ok ok+blocked@4 ok"; got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
}

// Several processes may play scenarios on a server. InnoDB fills the list of waits anew only when nobody has read it
// for a while, so readers that do not take turns learn nothing.
func TestRunnersAtOnceLearnOfWaits(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const runners, plays = 8, 4
	first, server := newRunner(t, dbms.MySQLFamily)
	all := []*Runner{first}
	for range runners - 1 {
		r, _ := newRunner(t, dbms.MySQLFamily)
		all = append(all, r)
	}
	waits := script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1",
		"B: UPDATE t SET v = 12 WHERE id = 1", "A: COMMIT")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var done sync.WaitGroup
	for _, r := range all {
		done.Go(func() {
			for range plays {
				trace, err := r.Run(ctx, server, waits, history.ReadCommitted, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if got, want := outline(trace), "ok ok ok+blocked(A)@4 ok"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	done.Wait()
}

// What a session leaves on a connection, an open transaction and its locks too, the next one on it does not meet.
func TestSessionsBeginAnewOnConnectionsThatWereLeft(t *testing.T) {
	r, server := newRunner(t, dbms.PostgreSQLFamily)
	leaves := script("T1: SET application_name = 'x'", "T1: CREATE TEMP TABLE z (n INT)",
		"T1: SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "T1: BEGIN", "T1: UPDATE t SET v = 1")
	looks := script("T1: SELECT current_setting('application_name'), to_regclass('pg_temp.z')", "T1: BEGIN",
		"T1: SHOW transaction_isolation", "T2: SELECT v FROM t WHERE id = 1", "T1: COMMIT")
	for range 3 {
		if _, err := r.Run(t.Context(), server, leaves, history.ReadCommitted, Options{Again: true}); err != nil {
			t.Fatal(err)
		}
		got, err := r.Run(t.Context(), server, looks, history.ReadCommitted, Options{Again: true})
		if err != nil {
			t.Fatal(err)
		}
		for step, want := range map[int]string{1: "[[ NULL]]", 3: "[[read committed]]", 4: "[[10]]"} {
			if rows := fmt.Sprint(got.Results[step-1].Rows); rows != want {
				t.Errorf("step %d: %s, want %s", step, rows, want)
			}
		}
	}
	if n := len(r.idle.conns); n != 2 {
		t.Errorf("%d connections were left, want the two that are needed at once", n)
	}
}
