package proxyserver

import (
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// openPostgreSQL opens a backend over the tests' PostgreSQL.
func openPostgreSQL(t *testing.T) *postgresBackend {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	b := newBackend(&Options{Upstream: target}).(*postgresBackend)
	if err := b.open(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// observes returns how a plan of the database sees that the session reads a table's rows.
func observes(t *testing.T, b *postgresBackend, database, text string) history.Observation {
	t.Helper()
	planner := b.plannerOf(database)
	if planner == nil {
		t.Fatalf("%s has no planner", database)
	}
	script := planner.Plan([]byte(text), sqlpostgres.Session{Version: b.facts.Major, Role: "postgres",
		Path: rewrite.ListOf("pg_catalog", "public")})
	return script.Statements[0].Observation
}

// TestPostgreSQLPlannersFollowTheirDatabasesSchemas: each PostgreSQL database has a planner that follows its schema.
func TestPostgreSQLPlannersFollowTheirDatabasesSchemas(t *testing.T) {
	b := openPostgreSQL(t)
	one, two := testdb.NewPostgreSQLDatabase(t), testdb.NewPostgreSQLDatabase(t)
	inOne := testdb.OpenPostgreSQL(t, one)
	testdb.Exec(t, inOne, "CREATE TABLE shared (id int PRIMARY KEY)")
	for _, database := range []string{one, two} {
		if b.plannerOf(database) != nil {
			t.Errorf("%s has a planner before its catalog was read", database)
		}
		if err := b.reload(t.Context(), session.Schema{Database: database, Begins: true}); err != nil {
			t.Fatal(err)
		}
	}
	const text = "SELECT id FROM shared"
	if o := observes(t, b, one, text); o != history.Exact {
		t.Errorf("in the database with the table: %v", o)
	}
	if o := observes(t, b, two, text); o != history.Opaque {
		t.Errorf("in the database without it: %v", o)
	}

	testdb.Exec(t, inOne, "ALTER TABLE shared RENAME TO other")
	if err := b.reload(t.Context(), session.Schema{Database: one,
		Tables: []rewrite.TableName{{Schema: "public", Table: "shared"},
			{Schema: "public", Table: "other"}}}); err != nil {
		t.Fatal(err)
	}
	if o := observes(t, b, one, text); o != history.Opaque {
		t.Errorf("after a renaming: %v", o)
	}
	testdb.Exec(t, inOne, "CREATE TABLE shared (id int PRIMARY KEY)")
	if err := b.reload(t.Context(), session.Schema{Database: one}); err != nil {
		t.Fatal(err)
	}
	if o := observes(t, b, one, text); o != history.Exact {
		t.Errorf("after another was made: %v", o)
	}
	testdb.Exec(t, inOne, "ALTER TABLE shared ENABLE ROW LEVEL SECURITY", "ALTER TABLE shared RENAME TO gone")
	if err := b.reloadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := observes(t, b, one, text); o != history.Opaque {
		t.Errorf("after somebody else changed it: %v", o)
	}
	if got := b.plans(); got.Lookups != 5 || got.Hits != 0 {
		t.Errorf("%+v", got)
	}
}

func TestADroppedPostgreSQLDatabaseHasNoPlanner(t *testing.T) {
	b := openPostgreSQL(t)
	database := testdb.NewPostgreSQLDatabase(t)
	if err := b.reload(t.Context(), session.Schema{Database: database, Begins: true}); err != nil {
		t.Fatal(err)
	}
	observes(t, b, database, "SELECT 1")
	if err := b.reload(t.Context(), session.Schema{Database: database, Ends: true}); err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, testdb.OpenPostgreSQL(t, ""), "DROP DATABASE "+database)
	if err := b.reloadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.plannerOf(database) != nil {
		t.Error("it has one")
	}
	if got := b.plans(); got.Lookups != 1 {
		t.Errorf("%+v", got)
	}
	if err := b.reload(t.Context(), session.Schema{Database: database, Begins: true}); err == nil {
		t.Error("a database that is gone is read")
	}
}

func TestABackendSaysWhatThePostgreSQLServerIs(t *testing.T) {
	b := openPostgreSQL(t)
	var info history.Info
	b.describe(&info)
	if info.Server.Engine != "postgresql" || info.Server.Version != testdb.PostgreSQL(t).Version() ||
		info.Horizon == 0 || info.Server.System == 0 {
		t.Errorf("%+v", info)
	}
	if err := b.ping(t.Context()); err != nil {
		t.Error(err)
	}
}
