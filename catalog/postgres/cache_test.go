package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// shapes are statements that change what the cache is to know, each with the tables that it names.
var shapes = []struct {
	statement string
	tables    []string
}{
	{"CREATE TABLE fresh (a int)", []string{"fresh"}},
	{"ALTER TABLE fresh ADD COLUMN b text", []string{"fresh"}},
	{"ALTER TABLE fresh ALTER COLUMN a SET NOT NULL", []string{"fresh"}},
	{"ALTER TABLE fresh RENAME COLUMN b TO c", []string{"fresh"}},
	{"ALTER TABLE fresh ALTER COLUMN c TYPE varchar(3)", []string{"fresh"}},
	{"ALTER TABLE fresh ADD PRIMARY KEY (a)", []string{"fresh"}},
	{"CREATE VIEW v AS SELECT a FROM fresh", []string{"v"}},
	{"CREATE OR REPLACE VIEW v AS SELECT a + 0 AS a FROM fresh", []string{"v"}},
	{"DROP VIEW v", []string{"v"}},
	{"CREATE INDEX i ON fresh (c)", []string{"fresh"}},
	{"DROP INDEX i", []string{"fresh"}},
	{"ALTER TABLE fresh DROP COLUMN c", []string{"fresh"}},
	{"CREATE TRIGGER t BEFORE INSERT ON fresh FOR EACH ROW EXECUTE FUNCTION f()", []string{"fresh"}},
	{"ALTER TABLE fresh DISABLE TRIGGER t", []string{"fresh"}},
	{"ALTER TABLE fresh ENABLE ROW LEVEL SECURITY", []string{"fresh"}},
	{"CREATE RULE r AS ON DELETE TO fresh DO ALSO NOTHING", []string{"fresh"}},
	{"DROP RULE r ON fresh", []string{"fresh"}},
	{"CREATE TABLE child (a int REFERENCES fresh ON DELETE CASCADE)", []string{"child"}},
	{"ALTER TABLE fresh RENAME TO renamed", []string{"fresh"}},
	{"ALTER TABLE renamed SET SCHEMA aside", []string{"renamed"}},
	{"ALTER TABLE aside.renamed SET SCHEMA public", []string{"renamed"}},
	{"DROP TABLE child", []string{"child"}},
	{"ALTER TABLE parted ADD COLUMN b int", []string{"parted"}},
	{"CREATE TABLE part2 PARTITION OF parted FOR VALUES IN (2)", []string{"part2"}},
	{"ALTER TABLE parted DETACH PARTITION part1", []string{"parted", "part1"}},
	{"DROP TABLE part2", []string{"part2"}},
	{"DROP TABLE renamed", []string{"renamed"}},
}

const beforeShapes = `
CREATE SCHEMA aside;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TABLE parted (a int) PARTITION BY LIST (a);
CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1)
`

// TestReloadAndRefreshSeeSchemaChanges: reload and refresh see each change of the schema.
func TestReloadAndRefreshSeeSchemaChanges(t *testing.T) {
	database, db := newDatabase(t, beforeShapes)
	reloaded, refreshed := load(t, database), load(t, database)
	for i, s := range shapes {
		epochs := [2]uint64{reloaded.Epoch(), refreshed.Epoch()}
		run(t, db, s.statement)
		reload(t, reloaded)
		var names []rewrite.TableName
		for _, n := range s.tables {
			names = append(names, rewrite.TableName{Schema: []string{"public", ""}[i%2], Table: n})
		}
		if err := refreshed.Refresh(names); err != nil {
			t.Fatal(err)
		}
		anew := load(t, database)
		for what, c := range map[string]*Cache{"Reload": reloaded, "Refresh": refreshed} {
			if got, want := maps.Collect(c.current.Load().tables.all()), maps.Collect(anew.current.Load().tables.all()); !reflect.DeepEqual(got, want) {
				t.Errorf("%s after %s\nknows %s\nnot   %s", what, s.statement, shown(got), shown(want))
			}
		}
		if reloaded.Epoch() == epochs[0] || refreshed.Epoch() == epochs[1] {
			t.Errorf("%s begins no epoch: %d, %d after %v", s.statement, reloaded.Epoch(), refreshed.Epoch(), epochs)
		}
	}
}

func shown(tables map[name]*sqlpostgres.Table) string {
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "%+v ", *t)
	}
	return b.String()
}

// TestNoSchemaChangeCostsOneQuery: what is no change of the schema costs one query and no epoch.
func TestNoSchemaChangeCostsOneQuery(t *testing.T) {
	database, db := newDatabase(t, `
CREATE TABLE plain (a int PRIMARY KEY, b int);
INSERT INTO plain SELECT n, n FROM generate_series(1, 1000) AS n
`)
	c := load(t, database)
	before := c.current.Load()
	for _, statement := range []string{"ANALYZE plain", "VACUUM FREEZE plain", "UPDATE plain SET b = 1", "VACUUM plain",
		"CREATE TEMPORARY TABLE passing (a int)", "SELECT * FROM plain"} {
		run(t, db, statement)
		reload(t, c)
		if c.current.Load() != before {
			t.Errorf("after %s the catalog is read whole", statement)
			before = c.current.Load()
		}
	}
}

// TestGrownTableIsSeenOnceAnalyzed: a table that has grown large is seen once it is analyzed.
func TestGrownTableIsSeenOnceAnalyzed(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int) WITH (autovacuum_enabled = off)")
	c := load(t, database)
	run(t, db, "INSERT INTO plain SELECT n FROM generate_series(1, 20000) AS n")
	run(t, db, "ANALYZE plain")
	reload(t, c)
	if n := table(t, c, "plain").Rows; n != 20000 {
		t.Errorf("%d rows", n)
	}
}

// TestChangesOfOpenTransactionsAreNotSeen: changes of a transaction that is open are not seen.
func TestChangesOfOpenTransactionsAreNotSeen(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	c := load(t, database)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("ALTER TABLE plain ADD COLUMN b int"); err != nil {
		t.Fatal(err)
	}
	// The table is locked against everybody: reading the catalog waits for nobody all the same.
	reload(t, c)
	if err := c.Refresh([]rewrite.TableName{{Schema: "public", Table: "plain"}}); err != nil {
		t.Fatal(err)
	}
	if n := len(table(t, c, "plain").Columns); n != 1 {
		t.Errorf("%d columns", n)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	reload(t, c)
	if n := len(table(t, c, "plain").Columns); n != 2 {
		t.Errorf("%d columns after the commit", n)
	}
}

func TestACacheIsReadWhileItIsReplaced(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	c := load(t, database)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				found := c.Table("public", "plain")
				if found == nil || !c.Reads("postgres", found) {
					t.Errorf("the table is %v", found)
					return
				}
				c.Epoch()
			}
		})
	}
	for i := range 10 {
		run(t, db, fmt.Sprintf("ALTER TABLE plain ADD COLUMN c%d int", i))
		reload(t, c)
	}
	stop()
	readers.Wait()
}

func TestReadingLeavesNoConnectionInTheDatabase(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	c := load(t, database)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reload(t, c)
	// The server waits some seconds for others to leave, and refuses then.
	admin := testdb.OpenPostgreSQL(t, "")
	run(t, admin, "CREATE DATABASE "+database+"_copy TEMPLATE "+database)
	reload(t, c)
	run(t, admin, "DROP DATABASE "+database+";\nDROP DATABASE "+database+"_copy")
	if err := c.Reload(t.Context()); !IsGone(err) {
		t.Errorf("reading a database that is gone: %v", err)
	}
}

// TestEndedConnectionIsMadeAnew: a connection that the server ended is made anew.
func TestEndedConnectionIsMadeAnew(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	c := load(t, database)
	for range 3 {
		reload(t, c)
		var ended sql.NullBool
		err := db.QueryRow("SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity " +
			"WHERE application_name = 'isotap' AND datname = current_database()").Scan(&ended)
		if err != nil {
			t.Fatal(err)
		}
		reload(t, c)
	}
}
