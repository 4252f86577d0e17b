package e2e

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

func TestIsotapServesPostgreSQL(t *testing.T) {
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL() + testdb.NewPostgreSQLDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: t.TempDir() + "/rec", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	place, err := srv.Environment()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", place["url"])
	if err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, db, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
	var n int
	if err := db.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
}

// TestADatabaseMayBeMadeThroughIsotap has a test suite make the database that --upstream names.
func TestADatabaseMayBeMadeThroughIsotap(t *testing.T) {
	database := testdb.NewPostgreSQLDatabase(t)
	direct := testdb.OpenPostgreSQL(t, "")
	testdb.Exec(t, direct, "DROP DATABASE "+database)
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	recording := t.TempDir() + "/rec"
	srv, err := proxyserver.Start(t.Context(),
		proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct{ in, statement string }{
		{"postgres", "CREATE DATABASE " + database}, {database, "CREATE TABLE t (id int PRIMARY KEY)"},
		{database, "INSERT INTO t VALUES (1)"},
	} {
		db, err := sql.Open("pgx", srv.DSN(run.in))
		if err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, db, run.statement)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	result, err := analysis.AnalyzeRun(t.Context(), recording, srv.Run(), analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := result.Coverage; c.Writes != 1 {
		t.Errorf("%d rows were seen to be written, reasons %v", c.Writes, c.Reasons)
	}
}
