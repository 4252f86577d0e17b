package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/cases"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/replay"
)

// A postgresCorpus is PostgreSQL's cases, and the two ways to the tests' server.
type postgresCorpus struct {
	direct, through replay.Server
	runner          *replay.Runner
	plan            []cases.Planned
	srv             *proxyserver.Server // nil when stopped
	recording       string
}

func openPostgresCorpus(t *testing.T, columns bool) *postgresCorpus {
	t.Helper()
	database := testdb.NewPostgreSQLDatabase(t)
	server := testdb.PostgreSQL(t)
	target, err := dsn.Parse(server.URL() + database)
	if err != nil {
		t.Fatal(err)
	}
	// Each session of a case begins a process of the server's otherwise, and these take most of the time.
	sessions := backends.Start(t, server.Addr())
	target.Address = sessions.Addr
	c := &postgresCorpus{recording: filepath.Join(t.TempDir(), "rec")}
	if c.srv, err = proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: c.recording, Columns: columns, Args: true, Drain: time.Second,
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop(t) })
	c.direct = replay.Server{Family: dbms.PostgreSQLFamily, Addr: sessions.Addr, User: "postgres", Database: database}
	c.through = c.direct
	c.through.Addr = c.srv.Addr().String()
	if c.runner, err = replay.NewRunner(t.Context(), c.direct); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.runner.Close() })
	corpus, err := cases.Corpus(dbms.PostgreSQLFamily)
	if err != nil {
		t.Fatal(err)
	}
	c.plan = cases.Plan(corpus)
	return c
}

func (c *postgresCorpus) stop(t *testing.T) {
	t.Helper()
	if c.srv == nil {
		return
	}
	if err := c.srv.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	c.srv = nil
}

// recorded stops isotap and reads what it recorded, with the names of row versions.
func (c *postgresCorpus) recorded(t *testing.T) (runs []history.Info, txns []*history.Txn) {
	t.Helper()
	c.stop(t)
	return resolved(t, c.recording)
}

// resolved reads a recording as the analysis does: with the names of row versions, and what predicates did not find.
func resolved(t *testing.T, recording string) (runs []history.Info, txns []*history.Txn) {
	t.Helper()
	runs, txns, err := analysis.Resolved(t.Context(), recording)
	if err != nil {
		t.Fatal(err)
	}
	return runs, txns
}

// TestPostgreSQLCasesGiveTheSameResultsThroughIsotap runs every interleaved case of PostgreSQL's corpus, at
// each of its levels, directly and through isotap. Results, column descriptions, command tags, errors,
// notices, waits and their order must be the same: the SERIALIZABLE case that an extra read ends in 40001
// (exp-pg-ssi-plain) and the DELETE that a lock beforehand changes (exp-pg-delete-plain) among them. Where rows are
// known by isotap's columns, the cases' own CREATE TABLE brings them along.
func TestPostgreSQLCasesGiveTheSameResultsThroughIsotap(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	eachIdentity(t, func(t *testing.T, columns bool) {
		c := openPostgresCorpus(t, columns)
		sameResults(t, c.runner, c.direct, c.through, c.plan, func(replay.Difference) bool { return false })
		_, txns := c.recorded(t)
		seesExactly(t, txns, 500)
	})
}

// eachIdentity runs a test with rows known by PostgreSQL's columns, and by isotap's.
func eachIdentity(t *testing.T, test func(t *testing.T, columns bool)) {
	t.Run("system", func(t *testing.T) { test(t, false) })
	t.Run("columns", func(t *testing.T) { test(t, true) })
}

// TestPublishedAnomaliesOnPostgreSQLAreNamed runs PostgreSQL's corpus through isotap, as text and prepared,
// and compares what is found in each case, at each level, with a golden file. Nothing there is a violation:
// PostgreSQL documents all of it. From version 18 on an UPDATE tells which version it replaced, and so the rows
// of tables without a key are known too; isotap's columns tell that on every version.
func TestPublishedAnomaliesOnPostgreSQLAreNamed(t *testing.T) {
	t.Parallel() // much of its time is waiting
	eachIdentity(t, func(t *testing.T, columns bool) {
		golden := "anomalies-postgresql.golden"
		if columns || testdb.PostgreSQL(t).Major() >= 18 {
			golden = "anomalies-postgresql-18.golden"
		}
		for _, prepared := range []bool{false, true} {
			if testing.Short() && (prepared || !columns) {
				continue
			}
			t.Run(fmt.Sprintf("prepared %t", prepared), func(t *testing.T) {
				checkGolden(t, golden, namedOnPostgreSQL(t, prepared, columns), *update && !prepared && !columns)
			})
		}
	})
}

// namedOnPostgreSQL returns a line for each case and level in which anything is found.
func namedOnPostgreSQL(t *testing.T, prepared, columns bool) string {
	t.Helper()
	c := openPostgresCorpus(t, columns)
	schemas := make(map[string]string)
	for _, p := range c.plan {
		o := replay.Options{Prepared: prepared, Ready: func(_ context.Context, schema string) error {
			schemas[schema] = fmt.Sprintf("%s at %s", p.Case.ID, p.Level)
			return nil
		}}
		if _, err := c.runner.Run(t.Context(), c.through, p.Case.Scenario(), p.Level, o); err != nil {
			t.Fatal(err)
		}
	}
	runs, txns := c.recorded(t)
	return namedByCase(t, runs, txns, schemas)
}
