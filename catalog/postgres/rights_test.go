package postgres

import (
	"maps"
	"reflect"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
)

func TestReadsSaysWhatARoleMayRead(t *testing.T) {
	database, db := newDatabase(t, `
CREATE TABLE open (a int, b int);
CREATE TABLE columns (a int, b int);
CREATE TABLE closed (a int);
CREATE TABLE written (a int);
CREATE TABLE own (a int);
CREATE TABLE secured (a int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE TABLE own_secured (a int);
ALTER TABLE own_secured ENABLE ROW LEVEL SECURITY;
CREATE TABLE own_forced (a int);
ALTER TABLE own_forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY
`)
	some := role(t, database, "")
	group := some + "_group"
	run(t, db, `CREATE ROLE `+group+`;
GRANT SELECT ON open, secured TO `+some+`;
GRANT SELECT (a, b) ON columns TO `+some+`;
GRANT INSERT, UPDATE, DELETE ON written TO `+some+`;
ALTER TABLE own OWNER TO `+some+`;
ALTER TABLE own_secured OWNER TO `+some+`;
ALTER TABLE own_forced OWNER TO `+some+`;
GRANT SELECT ON closed TO `+group)
	t.Cleanup(func() { run(t, db, "DROP OWNED BY "+group+";\nDROP ROLE "+group) })
	c := load(t, database)
	check := func(when, role string, want map[string]bool) {
		t.Helper()
		for name, reads := range want {
			if got := c.Reads(role, table(t, c, name)); got != reads {
				t.Errorf("%s: %s reads %s: %v", when, role, name, got)
			}
		}
	}
	check("at first", some, map[string]bool{"open": true, "columns": false, "closed": false, "written": false,
		"own": true, "secured": false, "own_secured": true, "own_forced": false})
	check("at first", "postgres", map[string]bool{"closed": true, "secured": true, "own_forced": true})
	check("at first", "nobody there", map[string]bool{"open": false})

	for _, change := range []struct {
		statement string
		want      map[string]bool
	}{
		{"REVOKE SELECT ON open FROM " + some, map[string]bool{"open": false}},
		{"GRANT SELECT ON open TO PUBLIC", map[string]bool{"open": true}},
		{"GRANT " + group + " TO " + some, map[string]bool{"closed": true}},
		{"REVOKE " + group + " FROM " + some, map[string]bool{"closed": false}},
		{"ALTER ROLE " + some + " BYPASSRLS", map[string]bool{"secured": true, "own_forced": true}},
		{"ALTER ROLE " + some + " NOBYPASSRLS", map[string]bool{"secured": false, "own_forced": false}},
		{"ALTER ROLE " + some + " SUPERUSER", map[string]bool{"closed": true, "secured": true, "columns": true}},
		{"ALTER ROLE " + some + " NOSUPERUSER", map[string]bool{"closed": false, "secured": false, "columns": false}},
		{"ALTER TABLE own OWNER TO " + group, map[string]bool{"own": false}},
		{"ALTER TABLE open ENABLE ROW LEVEL SECURITY", map[string]bool{"open": false}},
	} {
		epoch := c.Epoch()
		run(t, db, change.statement)
		reload(t, c)
		check("after "+change.statement, some, change.want)
		if c.Epoch() == epoch {
			t.Errorf("%s begins no epoch", change.statement)
		}
	}
}

// TestRecreatedTableIsReadWithItsNewRights: a table made anew is read by whom the server lets.
func TestRecreatedTableIsReadWithItsNewRights(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	some := role(t, database, "")
	c := load(t, database)
	if c.Reads(some, table(t, c, "plain")) {
		t.Error("nobody granted it")
	}
	run(t, db, "DROP TABLE plain;\nCREATE TABLE plain (a int);\nGRANT SELECT ON plain TO "+some)
	reload(t, c)
	if !c.Reads(some, table(t, c, "plain")) {
		t.Error("it was granted")
	}
}

// TestReadsIsFalseWithoutAServer: reads without a server is no until there is one.
func TestReadsIsFalseWithoutAServer(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE plain (a int)")
	to := target(t)
	to.TLS.Mode = dsn.TLSDisable
	c, err := Load(t.Context(), to, database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	plain := table(t, c, "plain")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	good := c.conn.config.Port
	c.conn.config.Port = 1
	if c.Reads("postgres", plain) {
		t.Error("without a server everything may be read")
	}
	epoch := c.Epoch()
	c.conn.config.Port = good
	reload(t, c)
	if !c.Reads("postgres", plain) || c.Epoch() == epoch {
		t.Errorf("once there is a server: epoch %d after %d", c.Epoch(), epoch)
	}
}

func TestAnyLoginReadsTheWholeCatalog(t *testing.T) {
	database, db := newDatabase(t, `
CREATE TABLE closed (a int PRIMARY KEY, b text COLLATE "C");
CREATE SCHEMA closed_too;
CREATE TABLE closed_too.child (a int REFERENCES closed ON DELETE CASCADE);
CREATE VIEW v AS SELECT a FROM closed;
ALTER TABLE closed ENABLE ROW LEVEL SECURITY
`)
	to := target(t)
	to.User = role(t, database, "LOGIN")
	run(t, db, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC")
	plain, err := Load(t.Context(), to, database)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	super := load(t, database)
	if got, want := maps.Collect(plain.current.Load().tables.all()), maps.Collect(super.current.Load().tables.all()); !reflect.DeepEqual(got, want) {
		t.Errorf("a plain login knows %s\nnot %s", shown(got), shown(want))
	}
	if closed := table(t, plain, "closed"); !plain.Reads("postgres", closed) || plain.Reads(to.User, closed) {
		t.Error("a plain login does not know what others may read")
	}
}
