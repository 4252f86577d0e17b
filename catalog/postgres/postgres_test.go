package postgres

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// target is the tests' server, with a superuser's login.
func target(t testing.TB) dsn.Target {
	t.Helper()
	to, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// newDatabase makes a database with a script run in it.
func newDatabase(t testing.TB, script string) (name string, db *sql.DB) {
	t.Helper()
	name = testdb.NewPostgreSQLDatabase(t)
	db = testdb.OpenPostgreSQL(t, name)
	run(t, db, script)
	return name, db
}

func run(t testing.TB, db *sql.DB, script string) {
	t.Helper()
	for statement := range strings.SplitSeq(script, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// role returns the name of a role that no other test has, and drops it with all it has.
func role(t testing.TB, database, attributes string) string {
	t.Helper()
	name := "r_" + database
	db := testdb.OpenPostgreSQL(t, database)
	run(t, db, "CREATE ROLE "+name+" "+attributes)
	t.Cleanup(func() { run(t, testdb.OpenPostgreSQL(t, database), "DROP OWNED BY "+name+";\nDROP ROLE "+name) })
	return name
}

func load(t testing.TB, database string) *Cache {
	t.Helper()
	c, err := Load(t.Context(), target(t), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func reload(t testing.TB, c *Cache) {
	t.Helper()
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// table returns a table of schema public, which must be there.
func table(t testing.TB, c *Cache, name string) *sqlpostgres.Table {
	t.Helper()
	found := c.Table("public", name)
	if found == nil {
		t.Fatalf("there is no public.%s", name)
	}
	return found
}
