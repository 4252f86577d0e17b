package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// said returns what a result of instrumenting or stripping says to its user, with the error.
func said(r catalog.Result, err error) string {
	text := fmt.Sprintf("changed %d. %v", len(r.Changed), r.Notes)
	for _, left := range r.LeftOut {
		text += fmt.Sprintf(" left out %s: %s", left.Table, left.Reason)
	}
	if err != nil {
		text += " " + err.Error()
	}
	return text
}

// observed runs statements of root's through an isotap that logs in as target says, and returns how many of them were
// observed exactly, and what isotap logged or failed with.
func observed(t *testing.T, o proxyserver.Options, driver string,
	dsn func(*proxyserver.Server) string) (exact int, text string) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	o.Listen, o.Args, o.Definitions, o.Drain = "127.0.0.1:0", true, true, 5*time.Second
	o.Recording, o.Logger = filepath.Join(t.TempDir(), "rec"), zap.New(core)
	srv, err := proxyserver.Start(context.Background(), o)
	if err != nil {
		return 0, err.Error()
	}
	db, err := sql.Open(driver, dsn(srv))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"UPDATE t SET n = n + 1 WHERE id = 1", "SELECT * FROM t WHERE n > 6"} {
		if _, err := db.Exec(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	time.Sleep(300 * time.Millisecond) // what the UPDATE wrote is read
	db.Close()
	if err := srv.Stop(); err != nil {
		text = err.Error()
	}
	r, err := analysis.Analyze(t.Context(), []string{o.Recording}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range logs.All() {
		if strings.HasPrefix(e.Message, "drain") {
			continue
		}
		text += fmt.Sprint(" ", e.Message, e.ContextMap())
	}
	return r.Coverage.Exact, text
}

// TestMariaDBsLeastPrivilegesAreEnough works with the grants that docs/operating.md lists, and then without each of
// them.
func TestMariaDBsLeastPrivilegesAreEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	server, target := ownServer(t, nil)
	db, err := server.DB("d")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	least := target
	least.User, least.Password = "least", ""
	grants := []string{"SELECT ON d.*", "ALTER ON d.*", "CREATE TEMPORARY TABLES ON d.*", "SELECT ON mysql.*"}
	for _, tt := range []struct{ without, says string }{
		{"", ""},
		{"ALTER ON d.*", "ALTER command denied"},
		{"SELECT ON mysql.*", "SELECT ON mysql.*"},
		{"CREATE TEMPORARY TABLES ON d.*", "CREATE TEMPORARY TABLES"},
	} {
		t.Run("without "+tt.without, func(t *testing.T) {
			setup := []string{"DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
				"INSERT INTO t VALUES (1, 1), (2, 2)", "DROP USER IF EXISTS least", "CREATE USER least"}
			for _, g := range grants {
				if g != tt.without {
					setup = append(setup, "GRANT "+g+" TO least")
				}
			}
			for _, s := range setup {
				if _, err := db.Exec(s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			conn, err := catalogmysql.Connect(t.Context(), least)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			options := catalog.Options{Schemas: []string{"d"}}
			r, err := catalogmysql.Instrument(t.Context(), conn, options)
			all := said(r, err)
			exact, text := observed(t, proxyserver.Options{Upstream: least, Predicates: true}, "mysql",
				func(srv *proxyserver.Server) string { return "root@tcp(" + srv.Addr().String() + ")/d" })
			all += text
			r, err = catalogmysql.Strip(t.Context(), conn, options)
			all += said(r, err)
			switch {
			case tt.says != "" && !strings.Contains(all, tt.says):
				t.Errorf("nothing says %q:\n%s", tt.says, all)
			case tt.says == "" && (exact != 2 || all != "changed 1. []changed 1. []"):
				t.Errorf("%d statements are exact, and isotap says: %s", exact, all)
			}
		})
	}
}

// TestModeAutoDoesWithoutConditionsItCannotTest has isotap's login lack the privilege to make temporary tables.
func TestModeAutoDoesWithoutConditionsItCannotTest(t *testing.T) {
	database := testdb.NewDatabase(t)
	meek := instrument(t, database)
	meek.User, meek.Password = "meek", ""
	db := testdb.Open(t, database)
	for _, s := range []string{"DROP USER IF EXISTS meek", "CREATE USER meek", "GRANT SELECT ON " + database + ".* TO meek"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	t.Cleanup(func() { db.Exec("DROP USER meek") })
	srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: meek, Listen: "127.0.0.1:0",
		Recording: filepath.Join(t.TempDir(), "rec"), Auto: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	said, err := srv.Unwatched(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if srv.Predicates() || !strings.Contains(strings.Join(said, "\n"), "lacks the privilege CREATE TEMPORARY TABLES") {
		t.Errorf("conditions are watched: %v; it says %q", srv.Predicates(), said)
	}
}

// TestPostgreSQLsLeastPrivilegesAreEnough works with the grants that docs/operating.md lists, and then without each of
// them.
func TestPostgreSQLsLeastPrivilegesAreEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	database := testdb.NewPostgreSQLDatabase(t)
	db := testdb.OpenPostgreSQL(t, database)
	role := "least_" + database
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	root := target.User
	least := target
	least.User, least.Password = role, ""
	for _, s := range []string{"CREATE ROLE " + role + " LOGIN", "REVOKE CONNECT ON DATABASE " + database +
		" FROM PUBLIC"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { db.Exec("DROP OWNED BY " + role); db.Exec("DROP ROLE " + role) })
	connect, owner := "GRANT CONNECT ON DATABASE "+database+" TO "+role, "ALTER TABLE t OWNER TO "+role
	for _, tt := range []struct {
		name, says string
		grants     []string
		columns    bool
	}{
		{"system columns", "", []string{connect}, false},
		{"system columns without CONNECT", "permission denied for database", nil, false},
		{"isotap's columns", "", []string{connect, owner}, true},
		{"isotap's columns without ownership", "own", []string{connect}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setup := append([]string{"DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
				"INSERT INTO t VALUES (1, 1), (2, 2)",
				"REVOKE CONNECT ON DATABASE " + database + " FROM " + role}, tt.grants...)
			for _, s := range setup {
				if _, err := db.Exec(s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			conn, err := catalogpostgres.NewConn(least, "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			all, want := "", ""
			if tt.columns {
				all, want = said(catalogpostgres.Instrument(t.Context(), conn, catalog.Options{})),
					"changed 1. []changed 1. []"
			}
			exact, text := observed(t, proxyserver.Options{Upstream: least, Predicates: !tt.columns,
				Columns: tt.columns}, "pgx", func(srv *proxyserver.Server) string {
				return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", root, srv.Addr(), database)
			})
			all += text
			if tt.columns {
				all += said(catalogpostgres.Strip(t.Context(), conn, catalog.Options{}))
			}
			switch {
			case tt.says != "" && !strings.Contains(all, tt.says):
				t.Errorf("nothing says %q:\n%s", tt.says, all)
			case tt.says == "" && (exact != 2 || all != want):
				t.Errorf("%d statements are exact, and isotap says: %s", exact, all)
			}
		})
	}
}
