package oracle_test

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
)

// A statement that is not judged has taken its transaction's snapshot all the same, as one has that fails.
func TestStatementsNotJudgedTakeSnapshots(t *testing.T) {
	r := open(t, testdb.PostgreSQL(t).URL())
	for name, first := range map[string][]string{
		"SKIP LOCKED":  {"b: SELECT * FROM t FOR UPDATE SKIP LOCKED"},
		"locks within": {"b: SELECT * FROM (SELECT * FROM t FOR UPDATE SKIP LOCKED) x"},
		"refused":      {"b: SAVEPOINT s", "b: SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", "b: ROLLBACK TO s"},
		"volatile":     {"b: SELECT clock_timestamp() FROM t"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scenario.Scenario{Name: name, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}},
				Setup: []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)"}}
			steps := append([]string{"a: BEGIN", "b: BEGIN", "a: UPDATE t SET v = 5 WHERE id = 1"}, first...)
			for _, x := range append(steps, "a: COMMIT", "b: SELECT * FROM t", "b: COMMIT") {
				session, sql, _ := strings.Cut(x, ": ")
				s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
			}
			v, err := oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, oracle.Script{Scenario: s}, history.RepeatableRead)
			if err != nil {
				t.Fatal(err)
			}
			if v.Wrong() || v.Statements < 2 {
				t.Errorf("%d statements judged: %s", v.Statements, v)
			}
		})
	}
}

// A deadlock's victim goes on in autocommit: what it writes then may wait for the other one, and which of the two comes
// first when that ends nobody can tell.
func TestADeadlocksVictimGoesOnInAutocommit(t *testing.T) {
	testdb.Only(t, "MariaDB's locks at SERIALIZABLE", "mariadb")
	r := open(t, testdb.Current(t).URL())
	s := &scenario.Scenario{Name: "victim", Closed: true, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Setup: []string{"CREATE TABLE t (id INT NOT NULL, c VARCHAR(20))"}}
	for _, x := range []string{"c: BEGIN", "b: BEGIN", "b: SELECT COUNT(*) FROM t WHERE id IN (SELECT id FROM t u WHERE id = 3)",
		"c: INSERT INTO t VALUES (3, 'ab'), (8, 'it')", "a: BEGIN", "c: SELECT * FROM t WHERE id NOT IN (0) LOCK IN SHARE MODE",
		"a: INSERT INTO t VALUES (16, 'x y'), (16, 'A')", "c: SELECT * FROM t", "a: UPDATE t SET c = c WHERE id >= CHAR_LENGTH(c)",
		"a: INSERT INTO t VALUES (13, NULL)", "a: COMMIT", "c: BEGIN", "c: SELECT id FROM t WHERE c IS NULL", "c: INSERT INTO t VALUES (8, 'e')"} {
		session, sql, _ := strings.Cut(x, ": ")
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
	}
	for range 5 {
		v, err := oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, oracle.Script{Scenario: s}, history.Serializable)
		if err != nil {
			t.Fatal(err)
		}
		if v.Wrong() {
			t.Error(v)
		}
	}
}

// A deadlock has two sides: one of them may be a statement in autocommit, which waits.
func TestStatementsInAutocommitDeadlock(t *testing.T) {
	testdb.Only(t, "MariaDB's locks at SERIALIZABLE", "mariadb")
	r := open(t, testdb.Current(t).URL())
	s := &scenario.Scenario{Name: "deadlock", Closed: true, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}},
		Setup: []string{"CREATE TABLE t (id INT)", "CREATE TABLE u (k INT)", "INSERT INTO u VALUES (4)"}}
	for _, x := range []string{"a: BEGIN", "a: SELECT * FROM (SELECT * FROM t) d", "b: INSERT INTO t SELECT 384161 FROM u",
		"a: DELETE FROM u"} {
		session, sql, _ := strings.Cut(x, ": ")
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
	}
	v, err := oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, oracle.Script{Scenario: s}, history.Serializable)
	if err != nil {
		t.Fatal(err)
	}
	if v.Wrong() {
		t.Error(v)
	}
}

// Who reads no more than an index has, in share mode, does not wait for who holds the row and has left its entry there
// as it was. Where the entry was written it waits.
func TestASharedLockOfAnIndexDoesNotWaitForTheRow(t *testing.T) {
	testdb.Only(t, "InnoDB's locks", "mariadb", "mysql")
	r := open(t, testdb.Current(t).URL())
	for _, c := range []struct{ update, read string }{
		{"UPDATE t SET c = t.c", "SELECT * FROM t LOCK IN SHARE MODE"},
		{"UPDATE t SET c = t.c", "SELECT * FROM t"},
		{"UPDATE u SET d = 9", "SELECT id, c FROM u FORCE INDEX (u_c) LOCK IN SHARE MODE"},
		{"UPDATE u SET d = 9", "SELECT COUNT(*) FROM u FORCE INDEX (u_c) LOCK IN SHARE MODE"},
		{"UPDATE t SET c = 'x'", "SELECT * FROM t LOCK IN SHARE MODE"},
		{"DELETE FROM u", "SELECT id, c FROM u FORCE INDEX (u_c) LOCK IN SHARE MODE"},
	} {
		s := &scenario.Scenario{Name: "index", Closed: true, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}},
			Setup: []string{"CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(1))", "CREATE INDEX t_c ON t (c)", "INSERT INTO t (id) VALUES (2)",
				"CREATE TABLE u (id INT PRIMARY KEY, c VARCHAR(1), d INT)", "CREATE INDEX u_c ON u (c)", "INSERT INTO u (id) VALUES (2)"},
			Steps: []scenario.Step{{Session: "a", SQL: "BEGIN"}, {Session: "a", SQL: c.update}, {Session: "b", SQL: c.read}}}
		v, err := oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, oracle.Script{Scenario: s}, history.Serializable)
		if err != nil {
			t.Fatal(err)
		}
		if v.Wrong() || v.Statements < 2 {
			t.Errorf("%s, %s: %d statements judged: %s", c.update, c.read, v.Statements, v)
		}
	}
}
