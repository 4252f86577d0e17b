package pgversions_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// A traffic is what clients do through isotap of their own, from their statements to the findings.
type traffic struct {
	t         *testing.T
	database  string
	url       string
	srv       *proxyserver.Server
	recording string
}

// newTraffic starts isotap in front of a new database in which the statements have run.
func newTraffic(t *testing.T, statements ...string) *traffic {
	t.Helper()
	x := &traffic{t: t, database: testdb.NewPostgreSQLDatabase(t), recording: filepath.Join(t.TempDir(), "recording")}
	x.direct(x.database, statements...)
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(x.database))
	if err != nil {
		t.Fatal(err)
	}
	x.srv, err = proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: x.recording,
		Logger:    zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))})
	if err != nil {
		t.Fatal(err)
	}
	place, err := x.srv.Environment()
	if err != nil {
		t.Fatal(err)
	}
	x.url = place["url"]
	return x
}

// direct runs statements past isotap.
func (x *traffic) direct(database string, statements ...string) {
	x.t.Helper()
	db := testdb.OpenPostgreSQL(x.t, database)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			x.t.Fatalf("%s: %v", s, err)
		}
	}
}

// A proxied is a connection through isotap.
type proxied struct {
	*pgx.Conn
	t *testing.T
}

func (x *traffic) client(database string) *proxied {
	x.t.Helper()
	config, err := pgx.ParseConfig(x.url)
	if err != nil {
		x.t.Fatal(err)
	}
	config.Database = database
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = c.Close(context.Background()) }) // perhaps the test has
	return &proxied{c, x.t}
}

func (c *proxied) run(statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s); err != nil {
			c.t.Fatalf("%s: %v", s, err)
		}
	}
}

// stop ends the recording and analyzes it.
func (x *traffic) stop() *analyzer.Result {
	x.t.Helper()
	if err := x.srv.Stop(); err != nil {
		x.t.Fatal(err)
	}
	r, err := analysis.Analyze(x.t.Context(), []string{x.recording}, analyzer.Options{})
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

// read returns the recording's runs and, with their versions, its transactions.
func (x *traffic) read() ([]history.Info, []*history.Txn) {
	x.t.Helper()
	r, err := recorder.Open(x.recording)
	if err != nil {
		x.t.Fatal(err)
	}
	defer r.Close()
	var sessions []history.Session
	for s, err := range r.Sessions(x.t.Context()) {
		if err != nil {
			x.t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	var txns []*history.Txn
	for txn, err := range r.Txns(x.t.Context()) {
		if err != nil {
			x.t.Fatal(err)
		}
		txns = append(txns, txn)
	}
	infos := r.Runs()
	if txns, err = pgversions.Translate(infos, sessions, txns); err != nil {
		x.t.Fatal(err)
	}
	return infos, txns
}

// anomalies names what was found, each once.
func anomalies(r *analyzer.Result) string {
	var found []string
	for _, f := range r.Findings {
		found = append(found, fmt.Sprintf("%s %s", f.Class, f.Anomaly))
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}

// TestDatabasesOfAServerHaveOwnTables: databases of a real server have their own tables.
func TestDatabasesOfAServerHaveOwnTables(t *testing.T) {
	const table, row = "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)"
	play := func(t *testing.T, x *traffic, other string) string {
		a, b := x.client(x.database), x.client(other)
		a.run("BEGIN", "SELECT v FROM t WHERE id = 1")
		b.run("UPDATE t SET v = 2 WHERE id = 1")
		a.run("UPDATE t SET v = 1 WHERE id = 1", "COMMIT")
		return anomalies(x.stop())
	}
	x := newTraffic(t, table, row)
	if got := play(t, x, x.database); got != "hazard lost update" {
		t.Errorf("in one database: %s", got)
	}
	infos, _ := x.read()
	if len(infos) != 1 || infos[0].Horizon == 0 || infos[0].Server.System == 0 {
		t.Errorf("the run is %+v", infos)
	}
	x = newTraffic(t, table, row)
	other := testdb.NewPostgreSQLDatabase(t)
	x.direct(other, table, row)
	if got := play(t, x, other); got != "" {
		t.Errorf("in two databases: %s", got)
	}
}

// A transaction writes a row twice, and the table is then written anew so that the second version stands where the
// first one stood.
func TestMovedVersionIsNotIntermediate(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, rewrite := range map[string]string{"nothing": "SELECT 1", "VACUUM": "VACUUM t",
		"VACUUM FULL": "VACUUM FULL t", "CLUSTER": "CLUSTER t USING t_pkey",
		"ALTER": "ALTER TABLE t ALTER v TYPE bigint", "past isotap": ""} {
		x := newTraffic(t, "CREATE TABLE t (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off)")
		a, b := x.client(x.database), x.client(x.database)
		a.run("BEGIN", "INSERT INTO t VALUES (1, 0)", "UPDATE t SET v = 2 WHERE id = 1", "COMMIT")
		if rewrite == "" {
			x.direct(x.database, "VACUUM FULL t")
		} else {
			a.run(rewrite)
		}
		b.run("BEGIN", "SELECT * FROM t WHERE id = 1", "COMMIT")
		if got := anomalies(x.stop()); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestEqualKeysOfEverySpellingAreOneRow(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	keys := map[string][2]string{"numeric": {"1.0", "1.00"}, "numeric(8,2)": {"1.0", "1.00"}, "float8": {"'-0'", "'0'"},
		"float4": {"'-0'", "0"},
		"bpchar": {"'a'", "'a  '"}, "char(5)": {"'a'", "'a  '"}, "timetz": {"'12:00+00'", "'12:00:00+00'"},
		"numrange": {"'[1.0,2]'", "'[1.00,2]'"},
		"interval": {"'1 day'", "'24 hours'"}, "jsonb": {"'1.0'", "'1.00'"}, "inet": {"'10.0.0.1'", "'10.0.0.1/32'"}}
	for typ, spelled := range keys {
		x := newTraffic(t, "CREATE TABLE t (id "+typ+" PRIMARY KEY, v int)", "INSERT INTO t VALUES ("+spelled[0]+", 0)")
		a, b := x.client(x.database), x.client(x.database)
		a.run("BEGIN", "SELECT v FROM t WHERE id = "+spelled[0])
		b.run("BEGIN", "DELETE FROM t WHERE id = "+spelled[0], "INSERT INTO t VALUES ("+spelled[1]+", 7)", "COMMIT")
		a.run("UPDATE t SET v = 1 WHERE id = "+spelled[0], "COMMIT")
		result := x.stop()
		_, txns := x.read()
		rows := map[history.Row]bool{}
		for _, txn := range txns {
			for _, s := range txn.Stmts {
				for _, access := range s.Accesses {
					rows[access.Row] = true
				}
			}
		}
		keyless := typ == "numrange" || typ == "interval" || typ == "jsonb"
		if got := anomalies(result); !keyless && (len(rows) != 1 || got != "hazard lost update") {
			t.Errorf("%s: %v, %s", typ, rows, got)
		}
	}
}

// vague returns the statements of a history whose accesses are not exact, or none.
func vague(txns []*history.Txn) (shapes []string) {
	for _, txn := range txns {
		for i := range txn.Stmts {
			s := &txn.Stmts[i]
			inexact := slices.ContainsFunc(s.Accesses, func(a history.Access) bool { return a.Inexact })
			if s.Observation == history.Inexact || s.Observation == history.Opaque || inexact {
				shapes = append(shapes, s.Shape)
			}
		}
	}
	return shapes
}

// TestWritesOfPartitionedTablesAreExactOutsideSavepoints: writes of partitioned tables are exact outside of savepoints.
func TestWritesOfPartitionedTablesAreExactOutsideSavepoints(t *testing.T) {
	tables := []string{"CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
		"CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)", "INSERT INTO t VALUES (1, 0), (11, 0)"}
	x := newTraffic(t, tables...)
	a, b := x.client(x.database), x.client(x.database)
	a.run("BEGIN", "SELECT v FROM t WHERE id = 1", "SAVEPOINT s", "RELEASE s")
	b.run("UPDATE t SET v = 2 WHERE id = 1", "INSERT INTO t VALUES (2, 0)", "UPDATE t SET v = 3 WHERE id = 11")
	a.run("SELECT v FROM low", "UPDATE t SET v = 1 WHERE id = 1", "SELECT v FROM t WHERE id > 0",
		"DELETE FROM t WHERE id = 2", "COMMIT")
	b.run("SELECT v FROM t ORDER BY id")
	if got := anomalies(x.stop()); got != "hazard lost update" {
		t.Errorf("%s", got)
	}
	_, txns := x.read()
	if got := vague(txns); len(got) != 0 {
		t.Errorf("%q", got)
	}

	x = newTraffic(t, tables...)
	a, b = x.client(x.database), x.client(x.database)
	a.run("BEGIN", "SAVEPOINT s", "UPDATE t SET v = 1 WHERE id = 1", "RELEASE s", "COMMIT")
	a.run("BEGIN; SAVEPOINT s; UPDATE t SET v = 1 WHERE id = 11; COMMIT")
	b.run("SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 11")
	if got := anomalies(x.stop()); got != "" {
		t.Errorf("in savepoints: %s", got)
	}
	_, txns = x.read()
	if got := vague(txns); len(got) != 2 {
		t.Errorf("in savepoints: %q", got)
	}
}
