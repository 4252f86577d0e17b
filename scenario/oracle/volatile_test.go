package oracle

import (
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

func TestStatementsThatAnswerOtherwiseEachTimeAreKnown(t *testing.T) {
	my, pg := dbms.MySQLFamily, dbms.PostgreSQLFamily
	setup := map[dbms.Family][]string{
		my: {"CREATE TABLE t (a INT, now INT)", "CREATE TABLE d (a INT, at DATETIME DEFAULT NOW())", "CREATE VIEW v AS SELECT NOW()",
			"CREATE FUNCTION f() RETURNS DOUBLE RETURN RAND()", "CREATE TRIGGER g BEFORE INSERT ON `T2` FOR EACH ROW SET NEW.a = RAND()"},
		pg: {"CREATE TABLE IF NOT EXISTS public.d (a INT, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
			"CREATE TABLE s (a INT DEFAULT nextval('q'))"},
	}
	for _, c := range []struct {
		family  dbms.Family
		sql     string
		alone   bool // it is one where statements keep their order
		ordered bool
	}{
		{my, "SELECT NOW(), a FROM t", true, true},
		{my, "SELECT now FROM t WHERE t.now = 1", false, false},
		{my, "SELECT 'NOW()', `rand` FROM t -- UUID()", false, false},
		{my, "SELECT CURRENT_TIMESTAMP", true, true},
		{my, "UPDATE t SET a = rand ()", true, true},
		{my, "INSERT INTO d (a) VALUES (1)", true, true},
		{my, "SELECT * FROM d", false, false},
		{my, "DELETE FROM d", false, false},
		{my, "INSERT INTO t2 VALUES (1)", true, true},
		{my, "SELECT * FROM v", true, true},
		{my, "SELECT f()", true, true},
		{my, "ALTER TABLE t ADD b INT", true, true},
		{my, "explain SELECT 1", true, true},
		{my, "SELECT table_rows FROM information_schema.partitions", true, true},
		{pg, "SELECT pid FROM pg_locks", true, true},
		{my, "PREPARE p FROM 'SELECT UUID()'", true, true},
		{my, "EXECUTE p", true, true},
		{my, "SELECT @x", false, true},
		{my, "SELECT LAST_INSERT_ID()", false, true},
		{my, "SELECT @@in_transaction", false, false},
		{my, "COMMIT", false, false},
		{pg, "SELECT now()", true, true},
		{pg, "SELECT pg_catalog.now()", true, true},
		{pg, "INSERT INTO t VALUES ('now')", true, true},
		{pg, "SELECT t.xmin FROM t", true, true},
		{pg, `SELECT "now", rand() FROM t`, false, false},
		{pg, "INSERT INTO d VALUES (1)", true, true},
		{pg, "INSERT INTO s VALUES (1)", false, true},
		{pg, "TRUNCATE t", true, true},
		{pg, "SELECT nextval('s')", false, true},
	} {
		s := &scenario.Scenario{Setup: setup[c.family], Steps: []scenario.Step{{SQL: "PREPARE p FROM 'SELECT UUID()'"}}}
		for ordered, want := range map[bool]bool{false: c.alone, true: c.ordered} {
			if got := volatilesOf(c.family, s, ordered).is(c.sql); got != want {
				t.Errorf("%s: %s, in other orders %v: %v", c.family, c.sql, ordered, got)
			}
		}
	}
	for text, want := range map[string]bool{"INSERT INTO d (a) VALUES (1)": true, "INSERT INTO t VALUES (1, 2)": false,
		"INSERT INTO t VALUES (RAND(), 2)": true, "ANALYZE TABLE t": false} {
		s := &scenario.Scenario{Setup: append(setup[my][:2:2], text)}
		if got := volatilesOf(my, s, false).setup; got != want {
			t.Errorf("set-up with %s: %v", text, got)
		}
	}
}

func TestEachVolatilityHasItsSource(t *testing.T) {
	for _, x := range volatilities {
		if x.source == "" || x.calls+x.bare+x.first == "" {
			t.Errorf("%+v", x)
		}
	}
}

// MariaDB and MySQL tell a deadlock over the lock of AUTO_INCREMENT as another error; TiDB's is the statement's own.
func TestDisguisedDeadlocksAreOfOthers(t *testing.T) {
	for engine, want := range map[dbms.Engine]bool{dbms.MariaDB: true, dbms.MySQL: true, dbms.TiDB: false, dbms.PostgreSQL: false} {
		if got := isEndedByOthers(engine, "1467/HY000"); got != want {
			t.Errorf("%s: %v", engine, got)
		}
	}
}

// Rows that are others have another order, too: that is one difference.
func TestOtherRowsAreToldOnce(t *testing.T) {
	of := func(texts ...string) answer {
		r := &replay.Result{SQL: "SELECT a FROM t ORDER BY a", Status: replay.OK, Columns: []replay.Column{{Name: "a"}}}
		for _, text := range texts {
			r.Rows = append(r.Rows, []replay.Value{{Text: text}})
		}
		return answer{Result: r}
	}
	if all := differences(1, of("1", "2"), of("1", "3"), false); len(all) != 1 || all[0].Aspect != Rows {
		t.Errorf("%v", all)
	}
}
