package postgres

import (
	"testing"

	"github.com/isotap/isotap/internal/testdb"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// What a reading costs a client depends on the machine; how often isotap asks does not.
func TestTablesThatChangedCostOneRoundTrip(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY);\nCREATE TABLE parent (id int PRIMARY KEY)")
	to := target(t)
	turns := testdb.CountTurns(t, to.Address)
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
	define("ALTER TABLE a ADD n int")
	table(t, c, "a")
	stay()
	for _, of := range []struct {
		name       string
		statements []string
		used       []string
		turns      int
	}{
		{"definitions alone", []string{"ALTER TABLE a RENAME TO b", "ALTER TABLE b RENAME TO a", "DROP INDEX IF EXISTS i", "CREATE VIEW v AS SELECT id FROM a"}, nil, 0},
		{"a table that is new", []string{"CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)"}, []string{"child", "parent"}, 1},
		{"a table that was altered", []string{"ALTER TABLE child ADD v text", "CREATE INDEX i ON child (v)"}, []string{"child", "child"}, 1},
		{"tables of a dump", []string{"CREATE TABLE c (id int)", "CREATE TABLE d (id int)", "ALTER TABLE d OWNER TO postgres"}, []string{"c", "d", "a"}, 1},
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
