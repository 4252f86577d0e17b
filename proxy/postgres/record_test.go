package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/txnstate"
)

// told returns transactions in a short form, one to a line.
func told(txns []*history.Txn) string {
	var lines []string
	for _, t := range txns {
		line := fmt.Sprintf("%s %s", t.Status, t.Level)
		if t.Implicit {
			line += " implicit"
		}
		for i := range t.Stmts {
			line += "; " + toldStmt(&t.Stmts[i])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func toldStmt(st *history.Stmt) string {
	s := st.Kind.String()
	if st.Observation != history.Nothing {
		s += " " + st.Observation.String()
	}
	if !st.Reason.IsZero() {
		s += " (" + st.Reason.String() + ")"
	}
	if st.Error.SQLState != "" {
		s += " error " + st.Error.SQLState
	}
	if st.Void {
		s += " void"
	}
	for i, a := range st.Accesses {
		s += fmt.Sprintf(" %s %s/%s", a.Op, strings.TrimPrefix(a.Row.Table, "public."), a.Row.ID)
		if st.TupleIDs[i] == (history.TupleID{}) {
			s += " nowhere"
		}
	}
	return s
}

// lifts makes a function that changes the session's level.
var lifts = queries("CREATE FUNCTION f(l TEXT) RETURNS TEXT LANGUAGE sql " +
	"AS $$SELECT set_config('default_transaction_isolation', l, false)$$")

// TestTransactionsAreRecordedAsTheServerRanThem has a client say scripts, and compares what is recorded.
func TestTransactionsAreRecordedAsTheServerRanThem(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	r := newRig(t, nil)
	db := testdb.OpenPostgreSQL(t, r.database)
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"autocommit", queries("SELECT id FROM t WHERE id = 1", "UPDATE t SET n = 1 WHERE id = 2",
			"INSERT INTO t (id) VALUES (50)", "DELETE FROM t WHERE id = 50"),
			"committed READ COMMITTED implicit; SELECT exact read t/1\ncommitted READ COMMITTED implicit; UPDATE exact update t/2\n" +
				"committed READ COMMITTED implicit; INSERT exact insert t/50\ncommitted READ COMMITTED implicit; DELETE exact delete t/50"},
		{"keys of several columns and types", queries("SELECT * FROM other ORDER BY a"),
			`committed READ COMMITTED implicit; SELECT exact read other/x\,y,00000000-0000-0000-0000-000000000001 read other/z,00000000-0000-0000-0000-00000000000a`},
		{"a large aggregate, prepared", []step{send(1,
			parse("a", "SELECT count(*) FROM generate_series(1, 10004) g JOIN t ON id = 1"), bind("", "a", nil),
			execute("", 0), syncs),
			send(1, bind("", "a", nil), execute("", 0), syncs)},
			"committed READ COMMITTED implicit; SELECT exact read t/1\ncommitted READ COMMITTED implicit; " +
				"SELECT opaque (large aggregate)"},
		{"a large aggregate", queries("SELECT count(*) FROM generate_series(1, 10002) g JOIN t ON id = 1",
			"SELECT count(*) FROM generate_series(1, 10003) g JOIN t ON id = 1"),
			"committed READ COMMITTED implicit; SELECT exact read t/1\ncommitted READ COMMITTED implicit; " +
				"SELECT opaque (large aggregate)"},
		{"groups", queries("SELECT n, count(*) FROM t WHERE id < 3 GROUP BY CUBE (n)"),
			"committed READ COMMITTED implicit; SELECT exact read t/1 read t/2"},
		{"parts that write", queries("WITH d AS (DELETE FROM t WHERE id = 1 RETURNING *), u AS (UPDATE t SET n = 1 " +
			"WHERE id IN (2, 3)) INSERT INTO t (id) SELECT id + 60 FROM d"),
			"committed READ COMMITTED implicit; INSERT exact insert t/61 update t/2 update t/3 delete t/1"},
		{"parts of a read without rows",
			[]step{send(1, parse("", "WITH u AS (UPDATE t SET n = 1 WHERE id = 2 RETURNING id) SELECT t.id "+
				"FROM t, u WHERE false"), bind("", "", []int16{1}), execute("", 1), execute("", 1), syncs)},
			"committed READ COMMITTED; UPDATE exact update t/2; UPDATE exact"},
		{"parts of a read, row by row", []step{send(1,
			parse("", "WITH u AS (UPDATE t SET n = 1 WHERE id < 3 RETURNING id) SELECT t.id FROM t JOIN u "+
				"USING (id) ORDER BY 1"), bind("", "", []int16{1}), execute("", 1), execute("", 0), syncs)},
			"committed READ COMMITTED implicit; UPDATE exact read t/1 update t/1 update t/2 read t/2"},
		{"parts that fail", queries("WITH u AS (UPDATE t SET n = 1 / (id - 2) WHERE id < 3 RETURNING id) SELECT * FROM u"),
			"aborted READ COMMITTED implicit; UPDATE inexact (with) error 22012 void"},
		{"parts in a transaction that only reads",
			queries("BEGIN READ ONLY", "WITH d AS (DELETE FROM t RETURNING *) INSERT INTO t SELECT * FROM d",
				"ROLLBACK"),
			"aborted READ COMMITTED; BEGIN; INSERT inexact (with) error 25006 void; ROLLBACK"},
		{"keys in binary", []step{send(1, parse("", "SELECT * FROM other ORDER BY a"), bind("", "", []int16{1}),
			execute("", 0), syncs)},
			`committed READ COMMITTED implicit; SELECT exact read other/x\,y,00000000-0000-0000-0000-000000000001 read other/z,00000000-0000-0000-0000-00000000000a`},
		{"a block", queries("BEGIN", "SELECT id FROM t WHERE id = 1", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT"},
		{"a block rolled back", queries("START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
			"UPDATE t SET n = 1 WHERE id = 2", "ABORT"),
			"aborted SERIALIZABLE; BEGIN; UPDATE exact update t/2; ROLLBACK"},
		{"the commit of a failed block", queries("BEGIN", "UPDATE t SET n = 1 WHERE id = 2",
			"SELECT 1/0 FROM t WHERE id = 1", "SELECT id FROM t", "COMMIT"),
			"aborted READ COMMITTED; BEGIN; UPDATE exact update t/2; SELECT exact error 22012 void; " +
				"SELECT exact error 25P02 void; COMMIT"},
		{"a commit that fails", queries("BEGIN", "INSERT INTO child VALUES (77)", "COMMIT"),
			"aborted READ COMMITTED; BEGIN; INSERT exact insert child/; COMMIT error 23503 void"},
		{"an autocommit that fails", queries("INSERT INTO child VALUES (77)"),
			"aborted READ COMMITTED implicit; INSERT exact error 23503 void"},
		{"the same by Sync", []step{send(1, parse("", "INSERT INTO child VALUES (77)"), bind("", "", nil),
			execute("", 0), syncs)},
			"aborted READ COMMITTED implicit; INSERT exact insert child/"},
		{"savepoints", queries("BEGIN", "UPDATE t SET n = 1 WHERE id = 1", "SAVEPOINT a",
			"UPDATE t SET n = 1 WHERE id = 2", "SAVEPOINT a", "UPDATE t SET n = 1 WHERE id = 3",
			"ROLLBACK TO a", "UPDATE t SET n = 1 WHERE id = 4", "RELEASE a", "ROLLBACK TO a", "COMMIT"),
			"committed READ COMMITTED; BEGIN; UPDATE exact update t/1; SAVEPOINT; UPDATE exact void update t/2; " +
				"SAVEPOINT; UPDATE exact void update t/3; ROLLBACK; " +
				"UPDATE exact void update t/4; RELEASE; ROLLBACK; COMMIT"},
		{"an error behind a savepoint", queries("BEGIN", "UPDATE t SET n = 1 WHERE id = 1", "SAVEPOINT a",
			"SELECT 1/0 FROM t WHERE id = 1", "ROLLBACK TO a", "COMMIT"),
			"committed READ COMMITTED; BEGIN; UPDATE exact update t/1; SAVEPOINT; SELECT exact error 22012 void; ROLLBACK; COMMIT"},
		{"several statements in one text", queries("UPDATE t SET n = 1 WHERE id = 1; UPDATE t SET n = 1 WHERE id = 2"),
			"committed READ COMMITTED; UPDATE exact update t/1; UPDATE exact update t/2"},
		{"several statements, the last fails",
			queries("UPDATE t SET n = 1 WHERE id = 1; SELECT 1/0 FROM t WHERE id = 1"),
			"aborted READ COMMITTED; UPDATE exact update t/1; SELECT exact error 22012 void"},
		{"a block that begins amid a text",
			queries("UPDATE t SET n = 1 WHERE id = 1; BEGIN; UPDATE t SET n = 1 WHERE id = 2; COMMIT; UPDATE t SET n = 1 WHERE id = 3"),
			"committed READ COMMITTED; UPDATE exact update t/1; BEGIN; UPDATE exact update t/2; COMMIT\n" +
				"committed READ COMMITTED implicit; UPDATE exact update t/3"},
		{"a pipeline is a transaction", []step{send(1, parse("", "UPDATE t SET n = 1 WHERE id = 1"), bind("", "", nil),
			execute("", 0), parse("", "SELECT id FROM t WHERE id = 2"), bind("", "", nil), execute("", 0), syncs)},
			"committed READ COMMITTED; UPDATE exact update t/1; SELECT exact read t/2"},
		{"a pipeline that fails", []step{send(1, parse("", "UPDATE t SET n = 1 WHERE id = 1"), bind("", "", nil),
			execute("", 0), parse("", "SELECT nothing FROM t"), syncs)},
			"aborted READ COMMITTED implicit; UPDATE exact update t/1"},
		{"chains", queries("BEGIN ISOLATION LEVEL REPEATABLE READ", "UPDATE t SET n = 1 WHERE id = 1",
			"COMMIT AND CHAIN", "UPDATE t SET n = 1 WHERE id = 2", "ROLLBACK AND CHAIN",
			"UPDATE t SET n = 1 WHERE id = 3", "COMMIT"),
			"committed REPEATABLE READ; BEGIN; UPDATE exact update t/1; COMMIT\naborted REPEATABLE READ; " +
				"UPDATE exact update t/2; ROLLBACK\n" +
				"committed REPEATABLE READ; UPDATE exact update t/3; COMMIT"},
		{"levels", queries("BEGIN", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SELECT id FROM t WHERE id = 1",
			"COMMIT", "SET default_transaction_isolation = 'repeatable read'",
			"SELECT id FROM t WHERE id = 1", "BEGIN", "SELECT id FROM t WHERE id = 1", "COMMIT",
			"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
			"BEGIN", "UPDATE t SET n = 1 WHERE id = 1", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT\ncommitted REPEATABLE READ implicit; SELECT exact read t/1\n" +
				"committed REPEATABLE READ; BEGIN; SELECT exact read t/1; COMMIT\ncommitted SERIALIZABLE; BEGIN; " +
				"UPDATE exact update t/1; COMMIT"},
		{"a setting that a rollback takes back", queries("BEGIN", "SET default_transaction_isolation = 'serializable'",
			"ROLLBACK", "UPDATE t SET n = 1 WHERE id = 1"),
			"committed READ COMMITTED implicit; UPDATE exact update t/1"},
		{"a setting within a block", queries("BEGIN", "SET LOCAL search_path = public, pg_catalog",
			"SELECT id FROM t WHERE id = 1", "COMMIT", "SELECT id FROM t WHERE id = 2"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT\ncommitted READ COMMITTED implicit; SELECT exact read t/2"},
		{"a setting within a block that has no snapshot yet", queries("BEGIN ISOLATION LEVEL REPEATABLE READ",
			"SET LOCAL search_path = public", "SELECT id FROM t WHERE id = 1", "SELECT id FROM t WHERE id = 2",
			"COMMIT"),
			"committed REPEATABLE READ; BEGIN; SELECT opaque (settings not known); SELECT exact read t/2; COMMIT"},
		{"definitions in a block", queries("BEGIN", "ALTER TABLE seen ADD w INT", "INSERT INTO seen VALUES (1, 1)",
			"SELECT id FROM t WHERE id = 1", "COMMIT", "INSERT INTO seen VALUES (2, 2)"),
			"committed READ COMMITTED; BEGIN; DDL; INSERT opaque (temporary or uncommitted); SELECT exact read t/1; " +
				"COMMIT\ncommitted READ COMMITTED implicit; INSERT exact insert seen/2"},
		{"conflicts", queries("INSERT INTO seen VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET v = 2",
			"INSERT INTO seen VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET v = 2"),
			"committed READ COMMITTED implicit; INSERT exact insert seen/3\ncommitted READ COMMITTED implicit; " +
				"INSERT exact update seen/3"},
		{"a portal that waits", []step{query("BEGIN"), send(1, parse("a", "SELECT id FROM t WHERE id = 1"),
			parse("b", "SELECT id FROM t WHERE id = 2"), bind("p", "a", nil), bind("q", "b", nil), execute("q", 0),
			execute("p", 0), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/2; SELECT inexact (bound early) read t/1; COMMIT"},
		{"a portal in pieces, read to its end",
			[]step{query("BEGIN"), send(1, parse("", "SELECT id FROM t WHERE id < 4 ORDER BY id"), bind("p", "", nil),
				execute("p", 2), syncs),
				query("UPDATE t SET n = 1 WHERE id = 3"), send(1, execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2 read t/3; UPDATE exact update t/3; COMMIT"},
		{"a portal in pieces, left", []step{query("BEGIN"), send(1, parse("", "SELECT id FROM t ORDER BY id"),
			bind("p", "", nil), execute("p", 2), execute("p", 1), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2 read t/3; COMMIT"},
		{"a write in pieces, read to its end",
			[]step{query("BEGIN"), send(1, parse("", "UPDATE t SET n = 1 WHERE id < 4 RETURNING id"),
				bind("p", "", nil), execute("p", 2), syncs), send(1, execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; UPDATE exact update t/1 update t/2 update t/3; COMMIT"},
		{"a write in pieces, left", []step{query("BEGIN"), send(1, parse("", "DELETE FROM t WHERE id < 4 RETURNING id"),
			bind("p", "", nil), execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; DELETE inexact (row limit) delete t/1 delete t/2; COMMIT"},
		{"groups in pieces, read to their end",
			[]step{query("BEGIN"), send(1, parse("", "SELECT id, count(*) FROM t WHERE id < 4 GROUP BY id ORDER BY id"),
				bind("p", "", nil), execute("p", 2), execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2 read t/3; COMMIT"},
		{"groups in pieces, left", []step{query("BEGIN"),
			send(1, parse("", "SELECT id, count(*) FROM t WHERE id < 4 GROUP BY id ORDER BY id"), bind("p", "", nil),
				execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT inexact (row limit) read t/1 read t/2; COMMIT"},
		{"groups in pieces of which SQL fetches one",
			[]step{query("BEGIN"), send(1, parse("", "SELECT id, count(*) FROM t WHERE id < 4 GROUP BY id ORDER BY id"),
				bind("p", "", nil), execute("p", 1), syncs),
				query("FETCH 1 FROM p"), send(1, execute("p", 0), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT inexact (row limit) read t/1 read t/3; SELECT opaque (cursor); COMMIT"},
		{"locked rows in pieces", []step{query("BEGIN"),
			send(1, parse("", "SELECT id FROM t WHERE id < 4 ORDER BY id FOR UPDATE"), bind("p", "", nil),
				execute("p", 2), execute("p", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2; SELECT inexact (row limit) read t/3; COMMIT"},
		{"groups at SERIALIZABLE", []step{query("BEGIN ISOLATION LEVEL SERIALIZABLE"),
			send(1, parse("", "SELECT id, count(n) FROM t GROUP BY id ORDER BY id"), bind("", "", nil), execute("", 0),
				syncs), query("COMMIT")},
			"committed SERIALIZABLE; BEGIN; SELECT exact read t/1 read t/2 read t/3 read t/4 read t/5 read t/6 read " +
				"t/7 read t/8 read t/9 read t/10 read t/11; COMMIT"},
		{"groups in pieces at SERIALIZABLE", []step{query("BEGIN ISOLATION LEVEL SERIALIZABLE"),
			send(1, parse("", "SELECT id, count(n) FROM t GROUP BY id ORDER BY id"), bind("p", "", nil),
				execute("p", 1), syncs), send(1, execute("p", 2), syncs), query("COMMIT")},
			"committed SERIALIZABLE; BEGIN; SELECT opaque (row limit); COMMIT"},
		{"a cursor's rows are read by its DECLARE",
			queries("BEGIN", "DECLARE c NO SCROLL CURSOR FOR SELECT n FROM t WHERE id < 4 ORDER BY id",
				"UPDATE t SET n = 1 WHERE id = 1", "FETCH 2 FROM C",
				"FETCH 2 FROM c", "CLOSE c", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2 read t/3; UPDATE exact update t/1; COMMIT"},
		{"a cursor that is moved", queries("BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT n FROM t ORDER BY id",
			"MOVE 3 c", "FETCH PRIOR c", "FETCH ABSOLUTE 5 c", "FETCH ALL c", "FETCH LAST c", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/2 read t/5 read t/6 read t/7 read t/8 read t/9 " +
				"read t/10 read t/11 read t/11; COMMIT"},
		{"a cursor that locks reads as it is fetched",
			queries("BEGIN", "DECLARE c CURSOR FOR SELECT n FROM t ORDER BY id FOR UPDATE", "FETCH c",
				"UPDATE t SET n = 2 WHERE CURRENT OF c", "MOVE c", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; UPDATE exact update t/1; OTHER opaque (cursor); COMMIT"},
		{"a cursor that is not planned", queries("BEGIN", "DECLARE c CURSOR FOR SELECT id FROM t", "FETCH c", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT opaque (plan); SELECT opaque (plan); COMMIT"},
		{"a cursor over no table", queries("BEGIN", "DECLARE c CURSOR FOR SELECT 1", "FETCH c",
			"SELECT id FROM t WHERE id = 1", "COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT"},
		{"a cursor that outlives its transaction",
			queries("BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT n FROM t ORDER BY id", "FETCH c", "COMMIT",
				"FETCH c", "CLOSE c"),
			"committed READ COMMITTED; BEGIN; SELECT inexact (held cursor) read t/1; COMMIT\n" +
				"committed READ COMMITTED implicit; SELECT opaque (held cursor)"},
		{"a held cursor without a block", queries("DECLARE c CURSOR WITH HOLD FOR SELECT n FROM t ORDER BY id",
			"FETCH c", "CLOSE c"),
			"committed READ COMMITTED implicit; SELECT inexact (held cursor)\ncommitted READ COMMITTED implicit; " +
				"SELECT opaque (held cursor)"},
		{"a held cursor over no table", queries("BEGIN", "UPDATE t SET n = 1 WHERE id = 1",
			"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "COMMIT", "FETCH c", "CLOSE c"),
			"committed READ COMMITTED; BEGIN; UPDATE exact update t/1; COMMIT"},
		{"a held cursor that is closed before",
			queries("BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT n FROM t ORDER BY id", "FETCH c", "CLOSE c",
				"COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT"},
		{"cursors and savepoints", queries("BEGIN", "DECLARE a CURSOR FOR SELECT n FROM t ORDER BY id", "SAVEPOINT s",
			"DECLARE c CURSOR FOR SELECT n FROM t ORDER BY id DESC", "FETCH a", "FETCH c", "ROLLBACK TO s",
			"FETCH a", "FETCH c", "ROLLBACK"),
			"aborted READ COMMITTED; BEGIN; SELECT exact read t/1 read t/2; SAVEPOINT; SELECT exact read t/11; " +
				"ROLLBACK; SELECT opaque (cursor) error 34000 void; ROLLBACK"},
		{"a cursor in one text", queries("BEGIN; DECLARE c CURSOR FOR SELECT n FROM t ORDER BY id; FETCH c; COMMIT"),
			"committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT"},
		{"a cursor by the extended protocol",
			[]step{query("BEGIN"), send(1,
				parse("", "DECLARE c CURSOR FOR SELECT n, s FROM t WHERE id > $1 ORDER BY id", 23),
				bind("", "", nil, "2"), execute("", 0), syncs),
				send(1, parse("f", "FETCH 2 FROM c"), bind("", "f", []int16{1, 0}), execute("", 0),
					bind("", "f", []int16{1}), execute("", 0), execute("c", 2), syncs), query("COMMIT")},
			"committed READ COMMITTED; BEGIN; SELECT exact read t/3 read t/4 read t/5 read t/6 read t/7 read t/8; COMMIT"},
		{"a cursor in binary", queries("BEGIN", "DECLARE c BINARY CURSOR FOR SELECT n FROM t ORDER BY id", "FETCH 1 c",
			"COMMIT"), "committed READ COMMITTED; BEGIN; SELECT exact read t/1; COMMIT"},
		{"a prepared statement at another level", []step{send(1, parse("a", "UPDATE t SET n = 1 WHERE id = 1"), syncs),
			query("BEGIN ISOLATION LEVEL SERIALIZABLE"),
			send(1, bind("", "a", nil), execute("", 0), syncs), query("COMMIT")},
			"committed SERIALIZABLE; BEGIN; UPDATE exact update t/1; COMMIT"},
		{"a setting that a function changes",
			append(lifts, queries("SELECT f('repeatable read')", "UPDATE t SET n = 1 WHERE id = 1", "BEGIN",
				"SELECT f('serializable')", "COMMIT",
				"UPDATE t SET n = 1 WHERE id = 1", "SELECT f('read committed')", "UPDATE t SET n = 1 WHERE id = 1")...),
			"committed READ COMMITTED implicit; SELECT opaque (function)\ncommitted REPEATABLE READ implicit; " +
				"UPDATE exact update t/1\ncommitted REPEATABLE READ; BEGIN; SELECT opaque (function); COMMIT\n" +
				"committed SERIALIZABLE implicit; UPDATE exact update t/1\ncommitted SERIALIZABLE implicit; " +
				"SELECT opaque (function)\ncommitted READ COMMITTED implicit; UPDATE exact update t/1"},
		{"a setting that a function changes within a pipeline",
			append(lifts, send(2, parse("", "SELECT f('serializable')"), bind("", "", nil), execute("", 0), syncs,
				parse("", "UPDATE t SET n = 1 WHERE id = 1"), bind("", "", nil), execute("", 0), syncs)),
			"committed READ COMMITTED implicit; SELECT opaque (function)\ncommitted UNKNOWN implicit; UPDATE exact update t/1"},
		{"statements prepared by SQL", queries("PREPARE s (int) AS SELECT n FROM t WHERE id = $1", "EXECUTE s (1)",
			"PREPARE u AS UPDATE t SET n = 1 WHERE id = $1", "BEGIN", "EXECUTE u (2)", "EXECUTE s(1 + 1)", "COMMIT",
			"DEALLOCATE s", "PREPARE s AS SELECT n FROM t WHERE id < $1",
			"EXECUTE s (2)"),
			"committed READ COMMITTED implicit; SELECT exact read t/1\ncommitted READ COMMITTED; BEGIN; " +
				"UPDATE exact update t/2; SELECT exact read t/2; COMMIT\ncommitted READ COMMITTED implicit; SELECT exact read t/1"},
		{"a statement prepared by SQL within a block", queries("BEGIN", "PREPARE s AS SELECT n FROM t WHERE id = $1",
			"EXECUTE s (1)", "COMMIT", "EXECUTE s (1)"),
			"committed READ COMMITTED; BEGIN; OTHER opaque (EXECUTE); COMMIT\ncommitted READ COMMITTED implicit; SELECT exact read t/1"},
		{"parts that write, prepared by SQL",
			queries("PREPARE s (int) AS WITH u AS (UPDATE t SET n = 1 WHERE id = $1 RETURNING id) SELECT t.id "+
				"FROM t, u WHERE t.id = $1", "EXECUTE s (1)",
				"PREPARE i AS WITH u AS (UPDATE t SET n = 2 WHERE id = $1) INSERT INTO t (id) SELECT 80 WHERE $1 = 1",
				"EXECUTE i (2)", "EXECUTE i (1)"),
			"committed READ COMMITTED implicit; UPDATE exact read t/1 update t/1\n" +
				"committed READ COMMITTED implicit; INSERT exact update t/2\ncommitted READ COMMITTED implicit; " +
				"INSERT exact insert t/80 update t/1"},
		{"a setting that a function changes by EXECUTE",
			append(lifts, queries("PREPARE q AS SELECT f('serializable')", "EXECUTE q",
				"UPDATE t SET n = 1 WHERE id = 1")...),
			"committed READ COMMITTED implicit; OTHER opaque (EXECUTE)\ncommitted SERIALIZABLE implicit; UPDATE exact update t/1"},
		{"a setting that a trigger changes",
			append(lifts, queries("CREATE FUNCTION p() RETURNS trigger LANGUAGE plpgsql "+
				"AS $$BEGIN PERFORM f('serializable'); RETURN NEW; END$$",
				"CREATE TRIGGER p BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION p()", "SELECT 1",
				"UPDATE t SET n = 1 WHERE id = 1", "SELECT id FROM t WHERE id = 1")...),
			"committed READ COMMITTED implicit; UPDATE inexact (trigger) update t/1\n" +
				"committed SERIALIZABLE implicit; SELECT opaque (plan)"},
		{"an error of the client's own", queries("SELECT nothing FROM t", "SELECT nothing FROM t"),
			"aborted READ COMMITTED implicit; SELECT exact error 42703 void\naborted READ COMMITTED implicit; " +
				"SELECT exact error 42703 void"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := db.Exec(reset); err != nil {
				t.Fatal(err)
			}
			if err := r.catalog.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.planner.Invalidate()
			r.recorded()
			converse(t, r.proxied, r.database, c.steps)
			if got := told(r.recorded()); got != c.want {
				t.Errorf("recorded\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// exchanged is what a client or the server says to a session without a network, and what came of it.
type exchanged struct {
	*Session
	t    *testing.T
	txns []*history.Txn
}

func newSaid(t *testing.T, s *Session) *exchanged { return &exchanged{Session: s, t: t} }

func (s *exchanged) query(sql string) {
	s.t.Helper()
	if n, err := s.FromClient(0, appendMessage(nil, msgQuery, []byte(sql+"\x00")...)); err != nil || n == 0 {
		s.t.Fatalf("the session took %d bytes: %v", n, err)
	}
	s.heed()
}

func (s *exchanged) server(kind byte, body string) {
	s.t.Helper()
	if err := s.FromServer(0, appendMessage(nil, kind, []byte(body)...)); err != nil {
		s.t.Fatal(err)
	}
	s.heed()
}

func (s *exchanged) heed() {
	for _, e := range s.Events() {
		if e.Txn != nil {
			s.txns = append(s.txns, e.Txn)
		}
	}
}

const insertedRow = "\x00\x03\x00\x00\x00\x05(0,1)\x00\x00\x00\x030/1\x00\x00\x00\x01t"

// insert has the session insert a row, in a transaction block or not.
func (s *exchanged) insert(status string) {
	s.t.Helper()
	s.query("i")
	s.server(msgDataRow, insertedRow)
	s.server(msgCommandComplete, "INSERT 0 1\x00")
	s.server(msgReadyForQuery, status)
}

func (s *exchanged) begin() {
	s.t.Helper()
	s.query("b")
	s.server(msgCommandComplete, "BEGIN\x00")
	s.server(msgReadyForQuery, "T")
}

// TestLostServerLeavesUnansweredOpen ends the server's connection at different moments.
func TestLostServerLeavesUnansweredOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		say  func(s *exchanged)
		want string
	}{
		{"amid a block", func(s *exchanged) { s.begin(); s.insert("T") }, "aborted"},
		{"amid a block's statement", func(s *exchanged) { s.begin(); s.insert("T"); s.query("i") }, "aborted"},
		{"amid COMMIT", func(s *exchanged) { s.begin(); s.insert("T"); s.query("c") }, "indeterminate"},
		{"amid a text with COMMIT", func(s *exchanged) { s.begin(); s.insert("T"); s.query("s;c") }, "indeterminate"},
		{"amid an autocommitted statement", func(s *exchanged) { s.query("i"); s.server(msgDataRow, insertedRow) },
			"indeterminate"},
		{"before ReadyForQuery", func(s *exchanged) {
			s.query("i")
			s.server(msgDataRow, insertedRow)
			s.server(msgCommandComplete, "INSERT 0 1\x00")
		}, "indeterminate"},
		{"with the server's last words", func(s *exchanged) {
			s.begin()
			s.insert("T")
			s.server(msgErrorResponse, "SFATAL\x00VFATAL\x00C57P01\x00Mbye\x00\x00")
		}, "aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSaid(t, loggedIn(t))
			c.say(s)
			s.ServerClosed(1)
			s.heed()
			if len(s.txns) != 1 || s.txns[0].Status.String() != c.want {
				t.Errorf("recorded %q, want one transaction that is %s", told(s.txns), c.want)
			}
		})
	}
}

// TestPreparedTransactionsAreEndedByOtherSessions hands transactions from session to session.
func TestPreparedTransactionsAreEndedByOtherSessions(t *testing.T) {
	table := &txnstate.Prepared{}
	session := func() *exchanged {
		s := newSaid(t, loggedIn(t))
		s.cfg.Prepared = table
		return s
	}
	first := session()
	first.begin()
	first.insert("T")
	first.query("p")
	first.server(msgCommandComplete, "PREPARE TRANSACTION\x00")
	first.server(msgReadyForQuery, "I")
	first.ServerClosed(1)
	if first.heed(); len(first.txns) != 0 {
		t.Fatalf("recorded %q before anybody ended it", told(first.txns))
	}
	second := session()
	second.query("p")
	second.server(msgCommandComplete, "COMMIT PREPARED\x00")
	second.server(msgReadyForQuery, "I")
	if len(second.txns) != 1 || second.txns[0].Status != history.Committed || len(second.txns[0].Stmts) != 2 {
		t.Fatalf("recorded %q", told(second.txns))
	}
	second.begin()
	second.insert("T")
	second.query("p")
	second.server(msgCommandComplete, "PREPARE TRANSACTION\x00")
	second.server(msgReadyForQuery, "I")
	if rest := table.Rest(); len(rest) != 1 || rest[0].Status != history.Indeterminate {
		t.Fatalf("left over: %q", told(rest))
	}
}

// TestDurableEndsWaitForTheRecording holds the end of an autocommitted statement back until its transaction
// is handed over.
func TestDurableEndsWaitForTheRecording(t *testing.T) {
	s := newSaid(t, loggedIn(t))
	s.cfg.Durable = true
	s.Output()
	s.query("i")
	s.server(msgDataRow, insertedRow)
	s.server(msgCommandComplete, "INSERT 0 1\x00")
	if toClient, _ := s.Output(); len(toClient) > 0 || len(s.txns) > 0 {
		t.Fatalf("the client hears %q, recorded %q", toClient, told(s.txns))
	}
	s.server(msgReadyForQuery, "I")
	if toClient, _ := s.Output(); len(toClient) == 0 || len(s.txns) != 1 {
		t.Fatalf("the client hears %q, recorded %q", toClient, told(s.txns))
	}
}
