package e2e

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/pgbench"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

// pgbench as the application: many clients at once, in every protocol, directly and through isotap.

var pgbenchTransactions = flag.Int("pgbench.transactions", 10,
	"how many transactions each of pgbench's 16 clients makes; -v prints what came of them")

const pgbenchClients = 16

// The scripts of our own.
const (
	reports         = "reports"
	readModifyWrite = "read-modify-write"
)

// rowStatements are the statements of a script's transaction that read or write rows.
var rowStatements = map[string]int{pgbench.SelectOnly: 1, pgbench.SimpleUpdate: 3, pgbench.TPCBLike: 5,
	reports: 10, readModifyWrite: 3}

// leastExact is the share of a script's statements, in percent, that are exact at least. A run of few transactions
// shows pgbench's own two statements.
var leastExact = map[string]int{pgbench.SelectOnly: 98, pgbench.SimpleUpdate: 99, pgbench.TPCBLike: 99,
	reports: 99, readModifyWrite: 99}

// ownStatements is how many statements pgbench sends by itself before a built-in script: it counts the branches,
// and asks the catalog for partitions.
const ownStatements = 2

// A pgbenchRun is a script that ran once directly and once through isotap.
type pgbenchRun struct {
	script, protocol string
	level            history.Level
	direct, items    pgbench.Result
	analysis         *analyzer.Result // of the run through isotap
}

// pgbenchRuns runs a script in every protocol.
func pgbenchRuns(t *testing.T, level history.Level, scale int, scripts ...string) []pgbenchRun {
	t.Helper()
	program, err := pgbench.Find()
	if err != nil {
		t.Fatal(err)
	}
	sessions := backends.Start(t, testdb.PostgreSQL(t).Addr()) // else a run is the start of 16 processes, mostly
	o := pgbench.Options{Address: sessions.Addr, User: "postgres",
		Database: testdb.NewPostgreSQLDatabase(t),
		Clients:  pgbenchClients, Transactions: *pgbenchTransactions}
	if err := pgbench.Init(t.Context(), program, o, scale); err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(level.String())
	o.Settings = "-c default_transaction_isolation=" + strings.ReplaceAll(name, " ", `\ `)
	var runs []pgbenchRun
	for _, script := range scripts {
		for _, o.Protocol = range pgbench.Protocols {
			r := pgbenchRun{script: script, protocol: o.Protocol, level: level}
			o.Script, o.File = script, ""
			if pgbench.Statements(script) == 0 {
				o.File = filepath.Join("testdata", "pgbench", script+".sql")
			}
			r.direct = runPgbench(t, program, o)
			r.items, r.analysis = runPgbenchThroughIsotap(t, program, o)
			runs = append(runs, r)
		}
	}
	t.Logf("%s", tableOf(runs))
	return runs
}

// runPgbench runs a script, and sees that what it committed is there.
func runPgbench(t *testing.T, program string, o pgbench.Options) pgbench.Result {
	t.Helper()
	db := testdb.OpenPostgreSQL(t, o.Database)
	defer db.Close()
	if err := pgbench.Tidy(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	r, err := pgbench.Run(t.Context(), program, o)
	if err != nil {
		t.Errorf("%s%s, %s: %v", o.Script, o.File, o.Protocol, err)
		return r
	}
	written, err := pgbench.Written(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Transactions; o.Script != pgbench.SelectOnly && written != want {
		t.Errorf("%s%s, %s: %d of %d committed transactions are there", o.Script, o.File, o.Protocol, written, want)
	}
	return r
}

// runPgbenchThroughIsotap runs a script through an isotap of its own, and analyzes what it recorded.
func runPgbenchThroughIsotap(t *testing.T, program string, o pgbench.Options) (pgbench.Result, *analyzer.Result) {
	t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(o.Database))
	if err != nil {
		t.Fatal(err)
	}
	target.Address = o.Address
	recording := filepath.Join(t.TempDir(), "recording")
	srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: recording,
		Logger:    zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))})
	if err != nil {
		t.Fatal(err)
	}
	o.Address = srv.Addr().String()
	r := runPgbench(t, program, o)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	a, err := analysis.Analyze(t.Context(), []string{recording}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r, a
}

// tableOf prints runs for people.
func tableOf(runs []pgbenchRun) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nscript\tprotocol\tlevel\tdirect: committed\t40001\t40P01\titems: committed\t40001\t40P01\tstatements\texact\tnot exact for\tfindings")
	for _, r := range runs {
		c := &r.analysis.Coverage
		var reasons, findings []string
		for reason, n := range c.Reasons {
			reasons = append(reasons, fmt.Sprintf("%s (%d)", reason, n))
		}
		for _, f := range r.analysis.Findings {
			findings = append(findings, fmt.Sprintf("%s %s", f.Class, f.Anomaly))
		}
		slices.Sort(reasons)
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f%%\t%s\t%s\n", r.script, r.protocol, r.level,
			r.direct.Transactions, r.direct.Serialization, r.direct.Deadlocks, r.items.Transactions,
			r.items.Serialization, r.items.Deadlocks,
			c.Statements, 100*float64(c.Exact)/float64(max(c.Statements, 1)), strings.Join(reasons, ", "),
			strings.Join(findings, ", "))
	}
	w.Flush()
	return b.String()
}

// holdCoverage sees that a run's transactions were all recorded, and enough of their statements exactly.
func holdCoverage(t *testing.T, r pgbenchRun) {
	t.Helper()
	c := &r.analysis.Coverage
	want := r.items.Transactions * rowStatements[r.script]
	if c.Statements < want || r.items.Failed() == 0 && c.Statements > want+ownStatements {
		t.Errorf("%s, %s: %d statements were recorded of %d", r.script, r.protocol, c.Statements, want)
	}
	if 100*c.Exact < leastExact[r.script]*c.Statements {
		t.Errorf("%s, %s: %d of %d statements are exact; the others: %v", r.script, r.protocol,
			c.Exact, c.Statements, c.Reasons)
	}
	if c.Indeterminate > 0 {
		t.Errorf("%s, %s: %d transactions have no known end", r.script, r.protocol, c.Indeterminate)
	}
}

func TestPgbenchDoesThroughIsotapWhatItDoesDirectly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, r := range pgbenchRuns(t, history.ReadCommitted, 1, pgbench.SelectOnly, pgbench.SimpleUpdate,
		pgbench.TPCBLike, reports) {
		for _, result := range []pgbench.Result{r.direct, r.items} {
			if result.Transactions != pgbenchClients**pgbenchTransactions {
				t.Errorf("%s, %s: %+v", r.script, r.protocol, result)
			}
		}
		holdCoverage(t, r)
		for _, f := range r.analysis.Findings {
			if f.Class == analyzer.Violation {
				t.Errorf("%s, %s: the server is said to break its word: %s", r.script, r.protocol, f.Anomaly)
			}
		}
	}
}

// TestPgbenchAtSerializableIsWithoutFindings also prints how often the server ended a transaction with 40001:
// what isotap adds to a read must not be what conflicts.
func TestPgbenchAtSerializableIsWithoutFindings(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, r := range pgbenchRuns(t, history.Serializable, 4, pgbench.SelectOnly, pgbench.SimpleUpdate,
		pgbench.TPCBLike, reports) {
		holdCoverage(t, r)
		if n := len(r.analysis.Findings); n > 0 {
			t.Errorf("%s, %s: %d findings, such as %s", r.script, r.protocol, n, r.analysis.Findings[0].Anomaly)
		}
		if r.items.Failed() > mayFail(r) {
			t.Errorf("%s, %s: directly %+v, through isotap %+v", r.script, r.protocol, r.direct, r.items)
		}
	}
}

// mayFail is how many transactions of a run through isotap may fail. Those that only read cannot; accounts are so
// many that two clients hardly ever meet; the other scripts fail for the most part anyway.
func mayFail(r pgbenchRun) int {
	switch r.script {
	case pgbench.SelectOnly:
		return 0
	case pgbench.SimpleUpdate:
		return r.direct.Failed() + r.items.Transactions/10
	}
	return pgbenchClients * *pgbenchTransactions
}

func TestPgbenchLosesUpdatesAndIsotapNamesThem(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, r := range pgbenchRuns(t, history.ReadCommitted, 1, readModifyWrite) {
		holdCoverage(t, r)
		if !slices.ContainsFunc(r.analysis.Findings, func(f *analyzer.Finding) bool {
			return f.Anomaly == analyzer.LostUpdate && f.Class == analyzer.Hazard
		}) {
			t.Errorf("%s: no lost update in %d findings", r.protocol, len(r.analysis.Findings))
		}
	}
}
