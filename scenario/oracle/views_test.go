package oracle

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/workload"
)

func TestStatementsAreRead(t *testing.T) {
	const mysql, postgresql = dbms.MySQLFamily, dbms.PostgreSQLFamily
	for _, c := range []struct {
		family dbms.Family
		sql    string
		verb   verb
		named  [parts][]string
		chosen string
	}{
		{mysql, "SELECT * FROM t", selects, [parts][]string{inMain: {"t"}}, ""},
		{mysql, "SELECT * FROM t WHERE a IN (SELECT t.a FROM u)", selects, [parts][]string{inMain: {"t", "u"}}, ""},
		{mysql, "SELECT * FROM t WHERE a = 1 FOR UPDATE", locks, [parts][]string{inMain: {"t"}}, " FROM t WHERE a = 1 "},
		{mysql, "SELECT a FROM t LOCK IN SHARE MODE", locks, [parts][]string{inMain: {"t"}}, " FROM t "},
		{mysql, "SELECT a FROM t WHERE a = (SELECT 1 FROM u) FOR UPDATE", locks, [parts][]string{inMain: {"t"}, inNested: {"u"}},
			" FROM t WHERE a = (SELECT 1 FROM u) "},
		{mysql, "UPDATE t SET a = (SELECT MAX(b) FROM u) WHERE a = 2", updates, [parts][]string{inTarget: {"t"}, inNested: {"u"}},
			" FROM t WHERE a = 2"},
		{mysql, "UPDATE t SET a = 1 ORDER BY b LIMIT 2", updates, [parts][]string{inTarget: {"t"}}, " FROM t ORDER BY b LIMIT 2"},
		{mysql, "DELETE FROM t WHERE a = 'SELECT u'", deletes, [parts][]string{inTarget: {"t"}}, " FROM t WHERE a = 'SELECT u'"},
		{mysql, "INSERT INTO t (a) SELECT b FROM u", inserts, [parts][]string{inTarget: {"t"}, inSource: {"u"}}, ""},
		{mysql, "REPLACE INTO `t` VALUES (1)", inserts, [parts][]string{inTarget: {"t"}}, ""},
		{postgresql, `UPDATE "t" SET a = u.a FROM u WHERE t.a = u.b`, updates, [parts][]string{inTarget: {"t"}, inSource: {"u"}}, ""},
		{postgresql, "DELETE FROM t USING u WHERE t.a = u.a", deletes, [parts][]string{inTarget: {"t"}, inSource: {"u"}}, ""},
		{postgresql, "WITH w AS (DELETE FROM t RETURNING a) SELECT * FROM w", other, [parts][]string{inNested: {"t"}}, ""},
		{mysql, "BEGIN; COMMIT", other, [parts][]string{}, ""},
		{mysql, "START TRANSACTION", begins, [parts][]string{}, ""},
		{mysql, "ROLLBACK TO SAVEPOINT s", undoesTo, [parts][]string{}, ""},
		{mysql, "SET autocommit = 0", other, [parts][]string{}, ""},
		{mysql, "SET @a = 1", sets, [parts][]string{}, ""},
		{mysql, "CREATE TABLE v (a INT)", other, [parts][]string{}, ""},
	} {
		s := read(c.family, c.sql, []string{"t", "u"})
		if s.verb != c.verb {
			t.Errorf("%s: verb %d, want %d", c.sql, s.verb, c.verb)
		}
		for p, want := range c.named {
			if !slices.Equal(s.named[p], want) {
				t.Errorf("%s: part %d names %q, want %q", c.sql, p, s.named[p], want)
			}
		}
		if c.chosen != "" && s.chosen() != c.chosen {
			t.Errorf("%s: chooses%q, want%q", c.sql, s.chosen(), c.chosen)
		}
	}
}

// Each engine has a rule for each of its levels and modes, with its source.
func TestLevelsHaveRules(t *testing.T) {
	for _, engine := range []dbms.Engine{dbms.MariaDB, dbms.MySQL, dbms.PostgreSQL, dbms.TiDB} {
		for _, level := range workload.Isolations(engine) {
			if r := ruleFor(engine, level.Level, level.Optimistic); r == nil || r.why == "" {
				t.Errorf("%s at %s: %+v", engine, level, r)
			}
		}
	}
}

// What a transaction sees of a row that others have written, by each sight.
func TestVersionsAreSeen(t *testing.T) {
	value := func(text string) []replay.Value { return []replay.Value{{Text: text}} }
	table := &benchTable{name: "t", rows: map[int][]replay.Value{1: value("0")}}
	s := newStore(&bench{tables: []*benchTable{table}, next: 1})
	early, late, mine := &actor{committed: true, over: true, ended: 10}, &actor{committed: true, over: true, ended: 20}, &actor{}
	open := &actor{}
	c := s.chain(1)
	for _, c := range []struct {
		writes     *actor
		own        *actor
		from       sight
		upTo       int
		want       string
		wantHolder bool
	}{
		{early, mine, snapshot, 5, "0", false},
		{nil, mine, snapshot, 15, "1", false},
		{late, mine, snapshot, 15, "1", false},
		{nil, mine, current, 25, "2", false},
		{open, mine, current, 25, "2", true},
		{nil, mine, dirty, 25, "3", true},
		{nil, open, current, 25, "3", false},
	} {
		if c.writes != nil {
			s.write(s.chain(1), version{by: c.writes, values: value(map[*actor]string{early: "1", late: "2", open: "3"}[c.writes])})
		}
		if got := s.look(table, c.own, c.from, c.upTo, false)[1].values[0].Text; got != c.want {
			t.Errorf("sight %d up to %d: %s, want %s", c.from, c.upTo, got, c.want)
		}
		if got := s.holder(1, c.own) != nil; got != c.wantHolder {
			t.Errorf("held by another: %t, want %t", got, c.wantHolder)
		}
	}
	s.undo(open, 0)
	if c.newest().by != late {
		t.Error("what was undone is still there")
	}
}

// On PostgreSQL an error gives up what a transaction has written, since its last savepoint, before its ROLLBACK
// comes.
func TestErrorsGiveUpWhatWasWritten(t *testing.T) {
	for _, c := range []struct {
		savepoint bool
		want      string
	}{{false, "0"}, {true, "1"}} {
		table := &benchTable{name: "t", rows: map[int][]replay.Value{1: {{Text: "0"}}}}
		s := newStore(&bench{engine: dbms.PostgreSQL, tables: []*benchTable{table}, next: 1})
		of := &actor{}
		s.write(s.chain(1), version{by: of, values: []replay.Value{{Text: "1"}}})
		if c.savepoint {
			of.savepoints = []savepoint{{"s", s.seq}}
		}
		s.write(s.chain(1), version{by: of, values: []replay.Value{{Text: "2"}}})
		j := &judging{viewing: &viewing{family: dbms.PostgreSQLFamily, store: s}, of: of,
			got: &replay.Result{Status: replay.Failed, State: "40001"}}
		j.fail()
		if got := s.chain(1).newest().values[0].Text; got != c.want || !of.failed {
			t.Errorf("savepoint %t: the newest version is %s, want %s; failed %t", c.savepoint, got, c.want, of.failed)
		}
	}
}

// TiDB's rows without a primary key are known by a column of the server's, which numbers new rows, too.
func TestNumbersOfTheServersAreNewRows(t *testing.T) {
	row := map[int][]replay.Value{1: {{Text: "a"}}}
	for _, c := range []struct {
		number string
		filled bool
		text   string
		want   int
	}{{tidbRowID, true, "1", 1}, {tidbRowID, true, "7", 0}, {tidbRowID, false, "7", 7}, {numberColumn, true, "7", 7}} {
		table := &benchTable{name: "t", number: c.number, filled: c.filled, rows: row}
		if got := table.numberOf([]replay.Value{{Text: c.text}}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TiDB's mode is that of BEGIN, and else of the session.
func TestModeOfTransactions(t *testing.T) {
	s := &scenario.Scenario{Sessions: []scenario.Session{{Name: "a"}, {Name: "o", Settings: scenario.Settings{"tidb_txn_mode": "optimistic"}}}}
	for _, c := range []struct {
		engine       dbms.Engine
		session, sql string
		want         bool
	}{{dbms.TiDB, "a", "BEGIN", false}, {dbms.TiDB, "a", "BEGIN OPTIMISTIC", true}, {dbms.TiDB, "o", "START TRANSACTION", true},
		{dbms.TiDB, "o", "BEGIN PESSIMISTIC", false}, {dbms.MariaDB, "o", "BEGIN", false}} {
		v := &viewing{engine: c.engine, scenario: s}
		if got := v.isOptimistic(c.session, read(dbms.MySQLFamily, c.sql, nil)); got != c.want {
			t.Errorf("%s, session %s: %s: %v", c.engine, c.session, c.sql, got)
		}
	}
}
