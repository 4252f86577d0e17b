package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/serverlog"
)

// A postgresBench is isotap in front of the tests' PostgreSQL, with a database of its own on it.
type postgresBench struct {
	t         *testing.T
	database  string
	recording string
	srv       *proxyserver.Server
	watch     liveWatch
	watched   *analyzer.Result // of the last one that was stopped
}

// newPostgresBench starts isotap over a database in which setup has run.
func newPostgresBench(t *testing.T, setup ...string) *postgresBench {
	t.Helper()
	return startPostgresBench(t, tapMode{}, setup...)
}

// startPostgresBench is newPostgresBench, in any mode.
func startPostgresBench(t *testing.T, mode tapMode, setup ...string) *postgresBench {
	t.Helper()
	b := &postgresBench{t: t, database: testdb.NewPostgreSQLDatabase(t), recording: filepath.Join(t.TempDir(), "rec")}
	testdb.Exec(t, testdb.OpenPostgreSQL(t, b.database), setup...)
	if mode.columns {
		instrumentPostgreSQL(t, b.database)
	}
	b.start(mode.set)
	return b
}

// start starts isotap with changed options.
func (b *postgresBench) start(change func(*proxyserver.Options)) {
	b.t.Helper()
	target, err := dsn.Parse(testdb.PostgreSQL(b.t).DSN(b.database))
	if err != nil {
		b.t.Fatal(err)
	}
	o := proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: b.recording, Args: true, ServerLog: serverlog.Auto,
		Logger: zaptest.NewLogger(b.t, zaptest.Level(zap.WarnLevel))}
	b.watch.set(&o)
	change(&o)
	if b.srv, err = proxyserver.Start(context.Background(), o); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(b.stop)
}

func (b *postgresBench) stop() {
	if b.srv == nil {
		return
	}
	if err := b.srv.Stop(); err != nil {
		b.t.Errorf("stop: %v", err)
	}
	b.watched, b.srv = b.srv.Watched(), nil
}

// direct and through are the two ways to the server, for connect.
func (b *postgresBench) direct() string  { return testdb.PostgreSQL(b.t).Addr() }
func (b *postgresBench) through() string { return b.srv.Addr().String() }

// connect opens a connection whose settings are those given, in pairs of name and value.
func (b *postgresBench) connect(address string, mode pgx.QueryExecMode, settings ...string) *pgx.Conn {
	b.t.Helper()
	c, err := pgx.ConnectConfig(b.t.Context(), b.config(address, mode, settings...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// config is what connect connects with.
func (b *postgresBench) config(address string, mode pgx.QueryExecMode, settings ...string) *pgx.ConnConfig {
	b.t.Helper()
	cfg, err := pgx.ParseConfig("postgres://postgres@" + address + "/" + b.database + "?sslmode=disable")
	if err != nil {
		b.t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = mode
	for i := 0; i < len(settings); i += 2 {
		cfg.RuntimeParams[settings[i]] = settings[i+1]
	}
	return cfg
}

// exec runs statements that must succeed.
func (b *postgresBench) exec(c *pgx.Conn, statements ...string) {
	b.t.Helper()
	for _, s := range statements {
		if _, err := c.Exec(b.t.Context(), s); err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
}

// analyze stops isotap and analyzes what it recorded.
func (b *postgresBench) analyze() *analyzer.Result {
	b.t.Helper()
	b.stop()
	r, err := analysis.Analyze(b.t.Context(), []string{b.recording}, analyzer.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	// The server's log is a second witness of what statements wrote.
	if l := r.Coverage.Log; l.Disputed > 0 {
		b.t.Errorf("the server's log lacks %d versions: %s", l.Disputed, l.Example)
	}
	return r
}

// awaitLock waits until a session of the database waits for a lock.
func (b *postgresBench) awaitLock() {
	b.t.Helper()
	c := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		if err := c.QueryRow(b.t.Context(), query).Scan(&waiting); err != nil {
			b.t.Fatal(err)
		}
	}
}

// postgresModes are the ways in which pgx sends a statement: each client has one.
var postgresModes = []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeSimpleProtocol,
	pgx.QueryExecModeCacheStatement}

// TestHealthyPostgreSQLIsNotAccused runs clients over hot rows at each level, and at all levels at once, in the modes
// that say most beside those who write unseen: they leave the lists of rows that are known by isotap's columns as they
// are. What clients do to each other are hazards, as far as the level permits them: nothing is the server's fault.
func TestHealthyPostgreSQLIsNotAccused(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	type load struct {
		level  string
		unseen bool
		mode   tapMode
	}
	var loads []load
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", ""} {
		loads = append(loads, load{level, false, tapModes[0]}, load{level, true, tapModes[0]},
			load{level, true, tapModes[2]})
	}
	for _, level := range []string{"SERIALIZABLE", ""} {
		loads = append(loads, load{level, true, tapModes[1]}, load{level, true, tapModes[3]})
	}
	little := tapMode{name: "items in little memory", change: inLittleMemory}
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE", ""} {
		loads = append(loads, load{level, true, little})
	}
	for i, c := range loads {
		name := cmp.Or(c.level, "mixed") + ", " + c.mode.name
		if c.unseen {
			name += ", beside unseen writers"
		}
		t.Run(name, func(t *testing.T) {
			setup := postgresLoadSetup
			if c.unseen {
				setup = slices.Concat(setup, postgresUnseenSetup)
			}
			l := postgresLoader{startPostgresBench(t, c.mode, setup...), c.level, c.unseen, make(chan string, 64)}
			l.run(uint64(i))
			serializable := c.level == history.Serializable.String()
			holdHealthy(t, l.analyze(), serializable)
			l.watch.holdWatched(t, l.watched, serializable)
		})
	}
}

// holdHealthy sees that no finding blames the server, and at SERIALIZABLE that there is none.
func holdHealthy(t *testing.T, r *analyzer.Result, serializable bool) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Class == analyzer.Violation || serializable {
			t.Errorf("%s %s x%d: %v\n%s%s", f.Class, f.Anomaly, f.Count, f.Explanation, f.Rule, transactionsOf(f))
		}
	}
	c := &r.Coverage
	t.Logf("%d transactions, %d committed, %d indeterminate; %d statements, %d exact, %d findings; not exact: %v",
		c.Txns, c.Committed, c.Indeterminate, c.Statements, c.Exact, len(r.Findings), c.Reasons)
	for _, f := range r.Findings[:min(len(r.Findings), 12)] {
		t.Logf("  %s %s x%d", f.Class, f.Anomaly, f.Count)
	}
}

// transactionsOf prints the transactions of a finding for people.
func transactionsOf(f *analyzer.Finding) string {
	var b strings.Builder
	for _, t := range f.Txns() {
		fmt.Fprintf(&b, "\n%s %s at %s", t.ID, t.Status, t.Level)
		for _, s := range t.Stmts {
			fmt.Fprintf(&b, "\n  %d %s %s %s %q void %t %v", s.Num, s.Shape, s.Observation,
				s.Reason, s.Args, s.Void, s.Accesses)
		}
	}
	return b.String()
}

// A postgresLoader runs clients over hot rows.
type postgresLoader struct {
	*postgresBench
	level    string // empty: mixed
	unseen   bool   // some write past isotap, and by what it does not see into
	prepared chan string
}

// run runs eight clients through isotap, and one that moves the tables about, until the time is over. Beside
// unseen writers there is one of each past isotap, too.
func (l *postgresLoader) run(seed uint64) {
	ctx, stop := context.WithTimeout(l.t.Context(), *loadTime)
	defer stop()
	load := postgresLoad
	if l.unseen {
		load = slices.Concat(load, postgresUnseenLoad)
	}
	var clients sync.WaitGroup
	start := func(address string, n int, load []string, run func(*postgresHammer)) {
		mode := postgresModes[n%len(postgresModes)]
		h := &postgresHammer{ctx: ctx, c: l.connect(address, mode, l.settings()...),
			r: rand.New(rand.NewPCG(seed, uint64(n))), level: l.level, load: load,
			prepared: l.prepared, name: fmt.Sprint("client", n), binds: mode != pgx.QueryExecModeSimpleProtocol}
		clients.Go(func() { run(h) })
	}
	for n := range 8 {
		start(l.through(), n, load, (*postgresHammer).run)
	}
	start(l.through(), 8, postgresMaintenance, (*postgresHammer).maintain)
	if l.unseen {
		start(l.direct(), 9, load, (*postgresHammer).run)
		start(l.direct(), 10, postgresMaintenance, (*postgresHammer).maintain)
	}
	clients.Wait()
	l.endPrepared()
}

// settings are those of the clients' sessions: nobody waits for long.
func (l *postgresLoader) settings() []string {
	settings := []string{"lock_timeout", "500ms", "statement_timeout", "2s", "deadlock_timeout", "50ms"}
	if l.level != "" {
		settings = append(settings, "default_transaction_isolation", l.level)
	}
	return settings
}

// endPrepared ends the prepared transactions that the clients left.
func (b *postgresBench) endPrepared() {
	b.t.Helper()
	c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	rows, err := c.Query(b.t.Context(), "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
	if err != nil {
		b.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		b.exec(c, "COMMIT PREPARED '"+name+"'")
	}
	c.Close(context.Background())
}
