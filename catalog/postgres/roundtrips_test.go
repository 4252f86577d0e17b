package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// What a reading costs a client depends on the machine; how often isotap asks does not.
func TestTablesThatChangedCostOneRoundTrip(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY);\nCREATE TABLE parent (id int PRIMARY KEY)")
	to := target(t)
	turns := testdb.CountRoundTrips(t, to.Address)
	to.Address = turns.Addr
	c, err := Load(t.Context(), to, database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	define := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			run(t, db, s)
			touching(c, planner, s, "public")
		}
	}
	stay := func() {
		c.conn.mu.Lock()
		c.conn.leave.Stop() // it would connect anew where the machine is slow
		c.conn.mu.Unlock()
	}
	c.waits = true
	define("ALTER TABLE a ADD n int")
	table(t, c, "a")
	stay()
	for _, of := range []struct {
		name       string
		statements []string
		used       []string
		turns      int
	}{
		{"definitions alone", []string{"ALTER TABLE a RENAME TO b", "ALTER TABLE b RENAME TO a",
			"DROP INDEX IF EXISTS i", "CREATE VIEW v AS SELECT id FROM a"}, nil, 0},
		{"a table that is new", []string{"CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)"},
			[]string{"child", "parent"}, 1},
		{"a table that was altered", []string{"ALTER TABLE child ADD v text", "CREATE INDEX i ON child (v)"},
			[]string{"child", "child"}, 1},
		{"tables of a dump", []string{"CREATE TABLE c (id int)", "CREATE TABLE d (id int)",
			"ALTER TABLE d OWNER TO postgres"}, []string{"c", "d", "a"}, 1},
		{"other tables", []string{"ALTER TABLE c ADD n int"}, []string{"a", "d", "parent"}, 0},
	} {
		turns.Since()
		define(of.statements...)
		for _, name := range of.used {
			table(t, c, name)
		}
		stay()
		if n, said := turns.Since(); n != of.turns {
			t.Errorf("%s: %d round trips instead of %d: %q", of.name, n, of.turns, said)
		}
	}
}

// How many questions a reading asks does not depend on the machine either.
func TestSimpleTablesCostOneQuestion(t *testing.T) {
	const (
		around  = 3 // the transaction's beginning and end, and its settings
		simple  = around + 1
		further = around + 12
	)
	database, db := newDatabase(t, "CREATE SCHEMA s;\nCREATE TABLE a (id int PRIMARY KEY, v text DEFAULT 'x');\n"+
		"CREATE TABLE parent (id int PRIMARY KEY);\nCREATE TABLE heir () INHERITS (parent);\n"+
		"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\nCREATE TYPE mood AS ENUM ('sad')")
	to := target(t)
	turns := testdb.CountRoundTrips(t, to.Address)
	to.Address = turns.Addr
	conn, err := NewConn(to, database)
	if err != nil {
		t.Fatal(err)
	}
	conn.stays = func() bool { return true }
	c, err := loadOver(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.waits = true
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	for _, of := range []struct {
		statement, used string
		questions       int
	}{
		{"ALTER TABLE a ADD n int NOT NULL DEFAULT 0", "a", simple + 1}, // and what the server's own types are
		{"ALTER TABLE a ADD m varchar(7)", "a", simple},
		{"CREATE INDEX i ON a (n)", "a", simple}, {"DROP INDEX i", "a", simple},
		{"ALTER TABLE a ALTER n TYPE bigint", "a", simple}, {"ALTER TABLE a RENAME TO b", "b", simple},
		{"CREATE TABLE c (id serial PRIMARY KEY, at timestamptz DEFAULT now(), UNIQUE (at, id))", "c", simple},
		{"CREATE TABLE d (LIKE b INCLUDING ALL)", "d", simple}, {"CREATE TABLE e AS SELECT * FROM d", "e", simple},
		{"GRANT SELECT ON e TO PUBLIC", "e", simple}, {"DROP TABLE e", "e", simple},
		{"DROP SCHEMA s CASCADE", "s.none", simple + 1}, // and functions
		// What a statement, or what is known of the tables, says to be more is asked for at once.
		{"CREATE TABLE child (id int REFERENCES c)", "child", further}, {"ALTER TABLE child ADD n int", "child", further},
		{"CREATE VIEW v AS SELECT * FROM b", "v", further}, {"ALTER TABLE heir ADD n int", "heir", further},
		{"CREATE TABLE felt (m mood)", "felt", further}, // as the last table was
		{"ALTER TABLE felt ADD n int", "felt", further}, {"ALTER TABLE d ADD z int", "d", further},
		// As soon as what was read was simple, one question will do, unless its answer is that it does not.
		{"ALTER TABLE d ADD y int", "d", simple}, {"CREATE TABLE angry (m mood)", "angry", simple + further},
		{"ALTER TABLE d ADD x int", "d", further}, {"CREATE TABLE f (id int)", "f", simple + further},
	} {
		turns.Since()
		run(t, db, of.statement)
		touching(c, planner, of.statement, "public")
		c.Table("public", of.used)
		schema, table, ok := strings.Cut(of.used, ".")
		if ok {
			c.Table(schema, table)
		}
		_, said := turns.Since()
		if n := bound(said); n != of.questions {
			t.Errorf("%s: %d questions instead of %d", of.statement, n, of.questions)
		}
	}
}

// bound counts the messages Bind of a prepared statement: the name of the portal is empty, and that of the statement
// follows.
func bound(said string) int { return strings.Count(said, "\x00isotap_catalog_") }

func TestClientThatThinksWaitsForNoReading(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY)")
	c := load(t, database)
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	for _, of := range []struct {
		statement string
		columns   int
	}{{"CREATE TABLE b (id int)", 1}, {"ALTER TABLE b ADD n int", 2}, {"DROP TABLE a", 2},
		{"ALTER TABLE b ADD m int, ADD o int", 4}} {
		run(t, db, of.statement)
		touching(c, planner, of.statement, "public")
		for began := time.Now(); c.pending.Load() != nil; time.Sleep(time.Millisecond) {
			if time.Since(began) > settleLimit {
				t.Fatalf("%s: nobody reads what it touched", of.statement)
			}
		}
		c.mu.Lock() // as somebody does who reads
		if n := len(table(t, c, "b").Columns); n != of.columns {
			t.Errorf("%s: %d columns", of.statement, n)
		}
		c.mu.Unlock()
	}
}

// How many rows the server goes through for a reading by names does not depend on how many tables there are, nor on
// what the server believes of its own catalog: it may never have been analyzed, or before the tables were made.
func TestReadingByNamesLooksAtFewRows(t *testing.T) {
	const others, most = 300, 150
	database, db := newDatabase(t, "")
	for i := range others {
		run(t, db, fmt.Sprintf("CREATE TABLE other%d (id int PRIMARY KEY, v int NOT NULL DEFAULT 1, r int "+
			"REFERENCES other%d)", i, i/10))
	}
	run(t, db, "CREATE SCHEMA beside;\nCREATE TABLE beside.b (id int)")
	for _, state := range []struct{ name, script string }{
		{"never analyzed", "SET allow_system_table_mods = on;\nDELETE FROM pg_statistic;\nRESET allow_system_table_mods"},
		{"analyzed", "ANALYZE"},
	} {
		run(t, db, state.script)
		for _, of := range []struct {
			name  string
			names touchedNames
		}{
			{"one table", touchedNames{schemas: []string{"public"}, tables: []string{"other299"}}},
			{"one known", touchedNames{known: []uint32{load(t, database).Table("public", "other299").OID}}},
			{"in any schema", touchedNames{anywhere: []string{"other299"}}},
			{"a schema", touchedNames{whole: []string{"beside"}}},
		} {
			t.Run(state.name+", "+of.name, func(t *testing.T) {
				for _, plan := range explained(t, database, of.names) {
					if n := plan.mostRows(); n > most {
						t.Errorf("%s: %d rows: %+v", plan.purpose, n, plan.plan)
					}
				}
			})
		}
	}
}

// An explainedPlan is how the server answered a query.
type explainedPlan struct {
	purpose string
	plan    planNode
}

type planNode struct {
	Kind     string     `json:"Node Type"`
	Table    string     `json:"Relation Name"`
	Rows     float64    `json:"Actual Rows"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Again    float64    `json:"Rows Removed by Index Recheck"`
	Plans    []planNode `json:"Plans"`
}

func (p explainedPlan) mostRows() int { return int(p.plan.most()) }

func (n planNode) most() float64 {
	most := n.Rows + n.Filtered + n.Again
	for _, sub := range n.Plans {
		most = max(most, sub.most())
	}
	return most
}

// explained reads by names, and returns how the server did it.
func explained(t *testing.T, database string, names touchedNames) (plans []explainedPlan) {
	t.Helper()
	c := load(t, database)
	s := scope{roles: []string{"postgres"}, functions: []string{"other299"}}
	queries := slices.Concat([]query{byIndexes, names.query()}, s.queries(), []query{names.simple(&s)})
	err := c.conn.transact(t.Context(), func(tr *transaction) error {
		for i, q := range queries {
			if i > 0 {
				explain := query{purpose: q.purpose, columns: 1, row: true,
					text: "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained" + literals(q.args)}
				prepare := query{purpose: q.purpose, text: "PREPARE explained AS " + q.text}
				results, err := tr.ask(prepare, explain, query{purpose: q.purpose, text: "DEALLOCATE explained"})
				if err != nil {
					return err
				}
				var of []struct{ Plan planNode }
				if err := json.Unmarshal([]byte(results[1][0][0]), &of); err != nil {
					return err
				}
				plans = append(plans, explainedPlan{q.purpose, of[0].Plan})
			}
			if i <= 1 { // the rest goes by what these leave behind
				if _, err := tr.ask(q); err != nil {
					return err
				}
			}
		}
		_, err := tr.last()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plans
}

// literals returns arguments as those of EXECUTE.
func literals(args []string) string {
	if len(args) == 0 {
		return ""
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", "''") + "'"
	}
	return " (" + strings.Join(quoted, ", ") + ")"
}
