package e2e

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// A postgresLife is what a client does from its login to its end. In its steps, @w is a statement that
// writes; a step that begins with "x:" is a pipeline, of statements between bars, and /S stands for a Sync;
// -- hang up, -- terminate (by another session) and -- elsewhere (what another session runs through isotap)
// are no statements.
type postgresLife struct {
	login []string // more parameters
	steps []string
	// unsure says that the transaction may be recorded as indeterminate.
	unsure bool
}

func lived(steps ...string) postgresLife { return postgresLife{steps: steps} }

// postgresLives are the ways in which transactions begin and end.
var postgresLives = []postgresLife{
	lived("@w", "@w"),
	lived("BEGIN", "@w", "COMMIT", "@w"),
	lived("BEGIN", "@w"),
	lived("BEGIN", "@w", "ROLLBACK", "@w"),
	lived("START TRANSACTION", "@w", "END", "BEGIN WORK", "@w", "ABORT TRANSACTION", "@w"),
	lived("BEGIN", "@w", "BEGIN", "@w", "COMMIT", "COMMIT", "@w"),
	lived("COMMIT", "@w", "ROLLBACK", "@w"),
	lived("BEGIN", "@w", "COMMIT AND CHAIN", "@w", "ROLLBACK AND CHAIN", "@w", "COMMIT", "@w"),
	lived("BEGIN ISOLATION LEVEL SERIALIZABLE", "@w", "COMMIT AND CHAIN", "@w", "COMMIT AND NO CHAIN", "@w"),
	lived("BEGIN", "@w", "SELECT 1/0", "@w", "COMMIT", "@w"),
	lived("BEGIN", "@w", "SELECT 1/0", "COMMIT AND CHAIN", "@w", "COMMIT", "@w"),
	lived("BEGIN", "@w", "SELECT 1/0"),
	lived("BEGIN", "@w", "SELECT 1/0", "ROLLBACK AND CHAIN", "@w", "COMMIT"),
	lived("BEGIN", "SELECT 1/0", "SELECT 1", "END", "@w"),
	lived("BEGIN", "SAVEPOINT a", "@w", "SELECT 1/0", "ROLLBACK TO a", "@w", "COMMIT"),
	lived("BEGIN", "SAVEPOINT a", "@w", "SAVEPOINT b", "@w", "SAVEPOINT a", "@w", "ROLLBACK TO SAVEPOINT a", "COMMIT"),
	lived("BEGIN", "SAVEPOINT a", "@w", "RELEASE a", "@w", "ROLLBACK TO a", "COMMIT"),
	lived("BEGIN", `SAVEPOINT "A"`, "@w", "SAVEPOINT a", "@w", `ROLLBACK TO "A"`, "@w", "COMMIT"),
	lived("BEGIN", "@w", "SAVEPOINT a", "@w", "ROLLBACK TO A", "ROLLBACK TO a", "@w", "RELEASE A", "COMMIT"),
	lived("BEGIN", "SAVEPOINT a", "SAVEPOINT b", "@w", "RELEASE b", "@w", "ROLLBACK WORK TO a", "@w", "COMMIT"),
	lived("BEGIN", "@w", "SAVEPOINT a", "@w", "SAVEPOINT a", "@w", "RELEASE a", "ROLLBACK TO a", "COMMIT"),
	lived("SAVEPOINT a", "@w"),
	lived("@w; @w", "@w; SELECT 1/0; @w", "@w"),
	lived("@w; BEGIN; @w; COMMIT; @w; SELECT 1/0", "@w"),
	lived("@w; BEGIN; @w; ROLLBACK; @w", "@w"),
	lived("@w; BEGIN; @w", "@w", "COMMIT; @w"),
	lived("@w; BEGIN ISOLATION LEVEL SERIALIZABLE; @w", "ROLLBACK"),
	lived("BEGIN; @w; SELECT 1/0; COMMIT", "@w", "ROLLBACK", "@w"),
	lived("BEGIN; @w; COMMIT; BEGIN; @w; ROLLBACK; @w"),
	lived("@w; COMMIT; @w; ROLLBACK; @w", "@w"),
	lived("@w; ROLLBACK; @w"),
	lived("@w; ROLLBACK; SELECT 1/0", "@w; COMMIT; @w; SELECT 1/0"),
	lived("@w; SAVEPOINT a; @w"),
	lived("BEGIN; @w; COMMIT AND CHAIN; @w; ROLLBACK AND CHAIN; @w", "COMMIT"),
	lived("@w; COMMIT AND CHAIN; @w"),
	lived("@w; nonsense", "@w; SELECT 'unterminated"),
	lived("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; @w", "@w"),
	lived("x:@w|@w", "x:@w|/S|@w|SELECT 1/0|@w|/S|@w"),
	lived("x:BEGIN|@w|/S|@w|COMMIT|/S|@w"),
	lived("x:BEGIN|@w|COMMIT|@w|SELECT 1/0|@w", "@w"),
	lived("x:@w|BEGIN|@w|COMMIT|@w"),
	lived("x:@w|COMMIT|@w|SELECT 1/0", "x:@w|ROLLBACK|@w"),
	lived("x:@w|BEGIN ISOLATION LEVEL REPEATABLE READ|@w|/S", "x:@w|COMMIT"),
	lived("x:BEGIN|@w|SELECT 1/0|COMMIT|/S|@w|/S|COMMIT|/S|@w"),
	lived("x:BEGIN|SAVEPOINT a|@w|ROLLBACK TO a|@w|COMMIT"),
	lived("x:BEGIN|@w", "-- hang up"),
	lived("BEGIN", "x:@w|/S|@w|COMMIT AND CHAIN|@w|/S"),
	lived("BEGIN", "@w", "PREPARE TRANSACTION '@x'", "@w", "COMMIT PREPARED '@x'"),
	lived("BEGIN", "@w", "PREPARE TRANSACTION '@x'", "@w", "-- elsewhere ROLLBACK PREPARED '@x'"),
	lived("BEGIN", "@w", "PREPARE TRANSACTION '@x'", "BEGIN", "@w", "-- elsewhere COMMIT PREPARED '@x'", "ROLLBACK"),
	lived("BEGIN", "@w", "SELECT 1/0", "PREPARE TRANSACTION '@x'", "@w"),
	lived("BEGIN", "@w", "DECLARE c CURSOR WITH HOLD FOR SELECT 1/0 FROM mark", "COMMIT", "@w"),
	lived("BEGIN", "@w", "INSERT INTO late VALUES (1)", "COMMIT", "@w"),
	lived("@w; INSERT INTO late VALUES (1); @w", "@w"),
	lived("x:@w|INSERT INTO late VALUES (1)|/S|@w"),
	lived("x:BEGIN|@w|INSERT INTO late VALUES (1)|COMMIT|@w|/S", "@w"),
	lived("BEGIN", "@w", "SET CONSTRAINTS ALL IMMEDIATE", "INSERT INTO late VALUES (1)", "COMMIT"),
	lived("BEGIN", "@w", "DO $$BEGIN COMMIT; END$$", "COMMIT"),
	lived("@w", "DO $$BEGIN INSERT INTO silent VALUES (1); COMMIT; PERFORM 1/0; END$$", "@w"),
	lived("CALL commits()", "@w", "BEGIN", "CALL commits()", "@w", "COMMIT"),
	lived("BEGIN", "CALL harmless()", "@w", "COMMIT", "@w"),
	lived("@w; CALL commits(); @w"),
	lived("x:CALL commits()|@w", "x:@w|CALL commits()"),
	lived("SET statement_timeout = 30", "BEGIN", "@w", "SELECT pg_sleep(2)", "@w", "COMMIT",
		"SET statement_timeout = 0", "@w"),
	lived("SET idle_in_transaction_session_timeout = 40", "BEGIN", "@w", "-- wait", "@w"),
	lived("BEGIN", "@w", "-- terminate", "@w"),
	lived("BEGIN", "@w", "SELECT pg_terminate_backend(pg_backend_pid())", "@w"),
	lived("@w; SELECT pg_terminate_backend(pg_backend_pid()); @w"),
	lived("BEGIN; @w; COMMIT; BEGIN; @w; SELECT pg_terminate_backend(pg_backend_pid()); COMMIT"),
	lived("x:@w|SELECT pg_terminate_backend(pg_backend_pid())|@w"),
	lived("BEGIN TRANSACTION READ ONLY", "@w", "COMMIT", "@w"),
	lived("PREPARE c AS SELECT 1", "BEGIN", "@w", "EXECUTE c", "COMMIT"),
	lived("BEGIN", "@w", "DISCARD ALL", "@w", "COMMIT"),
	lived("BEGIN", "@w", "VACUUM", "COMMIT"),
	lived("/* a */ BEGIN -- b", "@w", "/* c */ COMMIT;", "@w", "begin;;", "@w", ";;rollback"),
	lived("BEGIN", "@w", "CREATE TABLE made_@x (id int)", "@w", "ROLLBACK", "@w"),
	lived("BEGIN", "@w", "COPY late FROM STDIN", "COMMIT"),

	lived("BEGIN ISOLATION LEVEL REPEATABLE READ", "@w", "COMMIT", "@w"),
	lived("BEGIN TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "@w", "COMMIT"),
	lived("BEGIN", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@w", "COMMIT", "@w"),
	lived("BEGIN", "@w", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@w", "ROLLBACK", "@w"),
	lived("BEGIN", "SET LOCAL transaction_isolation = 'repeatable read'", "@w", "COMMIT", "@w"),
	lived("BEGIN", "SET transaction_isolation TO serializable", "@w", "COMMIT", "@w"),
	lived("BEGIN", "SELECT set_config('transaction_isolation', 'serializable', true)", "@w", "COMMIT", "@w"),
	lived("SELECT set_config('default_transaction_isolation', 'serializable', false)", "@w", "BEGIN", "@w", "COMMIT"),
	lived("SET default_transaction_isolation = 'repeatable read'", "@w", "BEGIN", "@w", "COMMIT",
		"RESET default_transaction_isolation", "@w"),
	lived("SET default_transaction_isolation = 'repeatable read'; @w", "@w"),
	lived("BEGIN", "SET default_transaction_isolation = 'serializable'", "@w", "ROLLBACK", "@w"),
	lived("BEGIN", "SET default_transaction_isolation = 'serializable'", "@w", "COMMIT", "@w"),
	lived("BEGIN", "SET LOCAL default_transaction_isolation = 'serializable'", "@w", "COMMIT", "@w"),
	lived("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@w", "BEGIN", "@w",
		"COMMIT AND CHAIN", "@w", "COMMIT"),
	lived("BEGIN", "SAVEPOINT a", "SET default_transaction_isolation = 'serializable'", "ROLLBACK TO a", "COMMIT",
		"@w"),
	lived("UPDATE pg_settings SET setting = 'serializable' WHERE name = 'default_transaction_isolation'", "@w", "BEGIN",
		"@w", "COMMIT"),
	lived("DO $$BEGIN SET default_transaction_isolation = 'serializable'; END$$", "@w", "BEGIN", "@w", "COMMIT"),
	lived("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; @w; COMMIT; @w"),
	lived("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN; @w", "@w", "COMMIT; @w", "@w"),
	lived("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@w"),
	lived("x:SET default_transaction_isolation = 'serializable'|@w|/S|@w"),
	lived("x:BEGIN|SET TRANSACTION ISOLATION LEVEL REPEATABLE READ|@w|COMMIT|@w"),
	{login: []string{"options", "-c default_transaction_isolation=serializable"},
		steps: []string{"@w", "BEGIN", "@w", "COMMIT"}},
	{login: []string{"default_transaction_isolation", "repeatable read"}, steps: []string{"@w", "BEGIN", "@w", "COMMIT",
		"RESET ALL", "@w"}},
	{login: []string{"user", "level_role"}, steps: []string{"@w", "BEGIN", "@w", "COMMIT",
		"SET default_transaction_isolation = 'read committed'", "@w", "RESET ALL", "@w", "DISCARD ALL", "@w"}},
	lived("SET SESSION AUTHORIZATION level_role", "@w", "BEGIN", "@w", "ROLLBACK"),
}

// A postgresWitness is what the server said of a write: its level, and its transaction.
type postgresWitness struct {
	life       string
	level, xid string
	unsure     bool
}

// An outcomeTest has lives lived through isotap.
type outcomeTest struct {
	t         *testing.T
	database  string
	addr      string
	next      int
	logged    bool // no outcome is unknown
	witnesses map[int]postgresWitness
}

const outcomeTables = `CREATE TABLE mark (n int PRIMARY KEY,
		level text DEFAULT current_setting('transaction_isolation'), xid text DEFAULT txid_current());
	CREATE TABLE once (id int PRIMARY KEY);
	CREATE TABLE silent (id int);
	CREATE TABLE late (id int REFERENCES once DEFERRABLE INITIALLY DEFERRED);
	CREATE PROCEDURE commits() LANGUAGE plpgsql
		AS $$BEGIN INSERT INTO silent VALUES (1); COMMIT; INSERT INTO silent VALUES (2); END$$;
	CREATE PROCEDURE harmless() LANGUAGE plpgsql AS $$BEGIN INSERT INTO silent VALUES (1); END$$;
	DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'level_role')
		THEN CREATE ROLE level_role SUPERUSER LOGIN; END IF; END$$;
	ALTER ROLE level_role SET default_transaction_isolation = 'serializable'`

// TestPostgreSQLOutcomesAreWhatTheTablesSay has clients begin and end transactions in every way, and holds the
// recording against what the server said and kept: a write is there if and only if its transaction is
// committed and its statement not void, at the level that the server named, in the company of its
// transaction's other writes.
func TestPostgreSQLOutcomesAreWhatTheTablesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, c := range []struct {
		durability recorder.Durability
		log        serverlog.Use
	}{{recorder.Relaxed, serverlog.Off}, {recorder.Commit, serverlog.Off}, {recorder.Relaxed, serverlog.Require},
		{recorder.Commit, serverlog.Require}} {
		t.Run(fmt.Sprintf("%s, with a log %t", c.durability, c.log != serverlog.Off), func(t *testing.T) {
			o := &outcomeTest{t: t, database: testdb.NewPostgreSQLDatabase(t), witnesses: make(map[int]postgresWitness)}
			db := testdb.OpenPostgreSQL(t, o.database)
			testdb.Exec(t, db, outcomeTables)
			dir := filepath.Join(t.TempDir(), "rec")
			srv := startPostgreSQLProxy(t, func(opts *proxyserver.Options) {
				opts.Durability, opts.Recording, opts.Args, opts.ServerLog = c.durability, dir, true, c.log
			})
			o.addr = srv.Addr().String()
			for i, life := range postgresLives {
				o.live(i, life)
			}
			if err := srv.Stop(); err != nil {
				t.Fatal(err)
			}
			kept := make(map[int]bool)
			rows, err := db.Query("SELECT n FROM mark")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var n int
				if err := rows.Scan(&n); err != nil {
					t.Fatal(err)
				}
				kept[n] = true
			}
			txns := txnsRecorded(t, dir)
			if c.log == serverlog.Require {
				o.logged = true
				if _, txns, err = analysis.Resolved(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
			}
			o.compare(txns, kept)
		})
	}
}

func txnsRecorded(t *testing.T, dir string) []*history.Txn {
	t.Helper()
	r, err := recorder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var txns []*history.Txn
	for x, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, x)
	}
	return txns
}

// live has a client live its life and remembers what the server said of its writes. A connection that the
// server ends is the end of it.
func (o *outcomeTest) live(number int, l postgresLife) {
	o.t.Helper()
	f, err := newFrontend(o.addr, o.database, l.login...)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	name := strings.Join(l.steps, " / ")
	for _, step := range l.steps {
		step = strings.ReplaceAll(step, "@x", fmt.Sprintf("x%d_%d", number, o.next))
		if strings.Contains(step, "PREPARED '") {
			step = o.prepared(step)
		}
		first := o.next
		for strings.Contains(step, "@w") {
			o.next++
			step = strings.Replace(step, "@w", fmt.Sprintf("INSERT INTO mark (n) VALUES (%d) RETURNING *", o.next), 1)
		}
		for n := first + 1; n <= o.next; n++ {
			o.witnesses[n] = postgresWitness{life: name, unsure: l.unsure}
		}
		replies, err := o.do(f, step)
		for _, r := range replies {
			o.hear(r)
		}
		if err != nil {
			break
		}
	}
}

// prepared names the transaction that a life prepared in an earlier step.
func (o *outcomeTest) prepared(step string) string {
	db := testdb.OpenPostgreSQL(o.t, o.database)
	gid := "none" // where the server has it switched off
	if err := db.QueryRow("SELECT gid FROM pg_prepared_xacts WHERE database = $1", o.database).Scan(&gid); err != nil &&
		!errors.Is(err, sql.ErrNoRows) {
		o.t.Fatal(err)
	}
	return step[:strings.Index(step, "'")+1] + gid + "'"
}

// do does one step and returns what the client heard.
func (o *outcomeTest) do(f frontend, step string) ([]string, error) {
	if elsewhere, ok := strings.CutPrefix(step, "-- elsewhere "); ok {
		other, err := newFrontend(o.addr, o.database)
		if err != nil {
			return nil, err
		}
		defer other.Close()
		return other.ask(texts(elsewhere)...)
	}
	switch {
	case step == "-- hang up":
		return nil, f.Close()
	case step == "-- wait":
		_, err := f.hear(1) // until the server ends the connection
		return nil, err
	case step == "-- terminate":
		testdb.Exec(o.t, testdb.OpenPostgreSQL(o.t, o.database),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "+
				"AND state LIKE 'idle in transaction%'")
		return nil, nil
	case strings.HasPrefix(step, "COPY"):
		return f.ask(append(texts(step), &pgproto3.CopyFail{Message: "enough"})...)
	case strings.HasPrefix(step, "x:"):
		return f.ask(pipelined(step[2:])...)
	}
	return f.ask(texts(step)...)
}

// pipelined returns the messages of a pipeline, up to a Sync.
func pipelined(statements string) []pgproto3.FrontendMessage {
	var messages []pgproto3.FrontendMessage
	for sql := range strings.SplitSeq(statements, "|") {
		if sql == "/S" {
			messages = append(messages, &pgproto3.Sync{})
			continue
		}
		messages = append(messages, &pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{})
	}
	return append(messages, &pgproto3.Sync{})
}

// hear remembers what a row says of a write.
func (o *outcomeTest) hear(reply string) {
	if reply[0] != 'D' || binary.BigEndian.Uint16([]byte(reply[1:])) != 3 {
		return
	}
	var values []string
	for at := 3; at < len(reply); {
		n := int(binary.BigEndian.Uint32([]byte(reply[at:])))
		values = append(values, reply[at+4:at+4+n])
		at += 4 + n
	}
	n, err := strconv.Atoi(values[0])
	if err != nil {
		return
	}
	w := o.witnesses[n]
	w.level, w.xid = strings.ToUpper(values[1]), values[2]
	if w.level == history.ReadUncommitted.String() { // is the same
		w.level = history.ReadCommitted.String()
	}
	o.witnesses[n] = w
}

// compare holds the recording against the truth.
func (o *outcomeTest) compare(txns []*history.Txn, kept map[int]bool) {
	recorded := make(map[int]bool)
	xids := make(map[string]history.TxnID)
	unknown := make(map[string]bool)
	for _, x := range txns {
		var xid string
		for i := range x.Stmts {
			st := &x.Stmts[i]
			n, ok := marked(st)
			if !ok {
				continue
			}
			w := o.witnesses[n]
			recorded[n] = true
			there := x.Status == history.Committed && !st.Void
			switch {
			case x.Status == history.Indeterminate && !st.Void && o.logged:
				o.t.Errorf("%s: the log does not tell how write %d ended", w.life, n)
			case x.Status == history.Indeterminate && !st.Void:
				unknown["outcome: "+w.life] = true
			case there != kept[n]:
				o.t.Errorf("%s: write %d is recorded as %v, void: %t; it is in the table: %t\n%s", w.life, n, x.Status,
					st.Void, kept[n], story([]*history.Txn{x}))
			}
			if w.xid == "" { // it failed, or nobody heard of it
				continue
			}
			switch x.Level.String() {
			case w.level:
			case history.LevelUnknown.String():
				unknown["level: "+w.life] = true
			default:
				o.t.Errorf("%s: write %d is recorded at %v, and ran at %s", w.life, n, x.Level, w.level)
			}
			if xid != "" && xid != w.xid {
				o.t.Errorf("%s: writes of two transactions are recorded as one's\n%s", w.life, story([]*history.Txn{x}))
			}
			if other, known := xids[w.xid]; known && other != x.ID {
				o.t.Errorf("%s: the writes of one transaction are recorded as two's: %v and %v\n%s", w.life, other,
					x.ID, story([]*history.Txn{x}))
			}
			xid, xids[w.xid] = w.xid, x.ID
		}
	}
	for n := range kept {
		if !recorded[n] {
			o.t.Errorf("%s: write %d is in the table, and not in the recording", o.witnesses[n].life, n)
		}
	}
	var told []string
	for u := range unknown {
		told = append(told, u)
	}
	slices.Sort(told)
	o.t.Logf("%d transactions, %d writes; not known:\n%s", len(txns), len(kept), strings.Join(told, "\n"))
}

// marked returns the number of the write that a statement is.
func marked(st *history.Stmt) (int, bool) {
	if !strings.HasPrefix(st.Shape, "INSERT INTO mark") || len(st.Args) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(st.Args[0])
	return n, err == nil
}
