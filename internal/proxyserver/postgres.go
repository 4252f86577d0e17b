package proxyserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer/predicate"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/proxy"
	postgresproxy "github.com/isotap/isotap/proxy/postgres"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite/plancache"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
	"github.com/isotap/isotap/serverlog"
	logpostgres "github.com/isotap/isotap/serverlog/postgres"
)

// A postgresBackend is a PostgreSQL server. What is open is a planner for each database that clients log in
// to, over what isotap reads of that database's catalog.
type postgresBackend struct {
	target    dsn.Target
	conn      *catalogpostgres.Conn // to the login's own database
	facts     catalogpostgres.Server
	databases *catalogpostgres.Databases // nil: not open
	prepared  txnstate.Prepared
	missing   string // the target's database where it is not there

	mu           sync.Mutex
	planners     map[string]*planned // by database
	options      sqlpostgres.Options
	plansBefore  plancache.Stats // of planners that are gone
	misledBefore uint64          // by their catalogs
	moved        map[string]bool // history.Info's Rewritten
}

// A planned database is one whose catalog was read.
type planned struct {
	catalog *catalogpostgres.Cache
	planner *sqlpostgres.Cache
}

// maintenance is the database that every server has, for a login whose own is not there, or not there yet.
const maintenance = "postgres"

func (b *postgresBackend) open(ctx context.Context, strictPlans bool) error {
	err := b.ask(ctx, b.target.Database)
	if catalogpostgres.IsGone(err) {
		b.missing = cmp.Or(b.target.Database, b.target.User)
		err = b.ask(ctx, maintenance)
	}
	if err != nil {
		return err
	}
	b.options.StrictPlans = strictPlans
	b.planners, b.moved = map[string]*planned{}, map[string]bool{}
	b.databases = catalogpostgres.NewDatabases(b.target)
	return nil
}

func (b *postgresBackend) unwatched(ctx context.Context) ([]string, error) {
	if b.missing != "" {
		return sayUnwatched(b.missing, nil), nil
	}
	tables, err := catalogpostgres.Unwatched(ctx, b.conn)
	return sayUnwatched("", tables), err
}

func (b *postgresBackend) rights(ctx context.Context) ([]Examined, error) {
	user, closed, err := catalogpostgres.NotAdmitted(ctx, b.conn)
	if err != nil {
		return nil, err
	}
	var all []Examined
	for _, name := range closed {
		all = append(all, Examined{What: "database " + name, Says: "isotap's user may not connect to it",
			Do: fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s", logpostgres.Quoted(name), logpostgres.Quoted(user))})
	}
	if len(closed) == 0 {
		all = append(all, Examined{What: "databases", There: true, Says: "isotap's user may connect to all"})
	}
	return all, nil
}

// ask learns the server's facts in a database.
func (b *postgresBackend) ask(ctx context.Context, database string) (err error) {
	if b.conn, err = catalogpostgres.NewConn(b.target, database); err != nil {
		return err
	}
	if b.facts, err = catalogpostgres.ServerFacts(ctx, b.conn); err != nil {
		return errors.Join(err, b.conn.Close())
	}
	return nil
}

func (b *postgresBackend) protocol(legs proxy.TLS, durable, logged bool) proxy.Protocol {
	cfg := postgresproxy.Config{Durable: durable, ClientTLS: legs.ClientUse, ServerTLS: legs.ServerUse,
		DirectTLS: b.target.TLS.Direct, Logged: logged, Own: postgresproxy.NewOwn()}
	if legs.Client != nil {
		cfg.Certificate = legs.Client.Certificates[0].Certificate[0]
	}
	if b.databases != nil {
		cfg.Planners = b.plannerOf
		cfg.Prepared = &b.prepared
	}
	return proxy.Protocol{
		NewSession: func(l session.Options) session.Session {
			cfg := cfg
			cfg.Options = l
			return postgresproxy.NewSession(cfg)
		},
		Refuse: func(client net.Conn, r proxy.Refusal, why string) []byte {
			if r == proxy.TooMany {
				return postgresproxy.RefuseTooMany(client)
			}
			return postgresproxy.Refuse(client, why)
		},
		LoginTimeout: postgresproxy.LoginTimeout,
		FirstMessage: postgresproxy.FirstMessage,
	}
}

// plannerOf returns the planner of a database for a session that begins; nil when its catalog was not read.
func (b *postgresBackend) plannerOf(database string) postgresproxy.Planner {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.planners[database]; p != nil {
		return &arriving{p.planner, p.catalog.Arrive(), sqlpostgres.New(unread{p.catalog}, b.options)}
	}
	return nil
}

// An arriving is the planner of one session. It waits until the catalog is fresh, but only with the first text that
// rests on tables: a restore or a migration begins with others.
type arriving struct {
	*sqlpostgres.Cache
	wait  func() error          // nil: it is fresh
	blind *sqlpostgres.Rewriter // knows of no table
}

// Plan returns the script of a text. One that rests on tables waits for the catalog, and so do all behind it.
func (a *arriving) Plan(text []byte, s sqlpostgres.Session) *sqlpostgres.Script {
	if a.wait != nil {
		// Not by the cache, which is the others', too: the tables may be others.
		if script := a.Rewriter().Plan(string(text), s); !script.RestsOnTables() {
			return script
		}
		if a.wait() != nil {
			return a.blind.Plan(string(text), s)
		}
		a.wait = nil
	}
	return a.Cache.Plan(text, s)
}

// An unread catalog is one of which nothing is known, though there may be anything in it.
type unread struct{ *catalogpostgres.Cache }

// Table returns a table of which nothing is known, whatever its name is.
func (unread) Table(string, string) *sqlpostgres.Table { return &sqlpostgres.Table{Unread: true} }

// Functions returns that functions may be of any kind.
func (unread) Functions(string) sqlpostgres.FunctionKind { return sqlpostgres.MixedFunction }

// ReadsCursors reports whether functions may read cursors: they may.
func (unread) ReadsCursors() bool { return true }

func (b *postgresBackend) describe(info *history.Info) {
	info.Server, info.Horizon, info.Recent = b.facts.Server, b.facts.Horizon, b.facts.Recent
	info.Columns = b.options.Columns
}

// reload sees that a session that begins finds the catalog. Of what another one has changed it takes note only: it is
// read when a statement asks for it.
func (b *postgresBackend) reload(ctx context.Context, changed session.Schema) error {
	switch {
	case changed.Expected:
		b.databases.Expect(changed.Database)
		return nil
	case changed.Begins:
		b.databases.Enter(changed.Database)
	case changed.Ends:
		b.databases.Leave(changed.Database)
		return nil
	}
	if cache := b.catalogOf(changed.Database); cache != nil && !changed.Begins {
		cache.Touch(changed.Changes)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reloadLimit)
	defer cancel()
	cache, err := b.databases.Open(ctx, changed.Database)
	if cache != nil {
		b.follow(changed.Database, cache)
	}
	return err
}

// answerLimit bounds how long a client waits for what is asked about its transaction.
const answerLimit = 2 * time.Second

func (b *postgresBackend) answer(ctx context.Context, q session.Question) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	lsn, rows, err := b.databases.Ask(ctx, q.Database, q.Query, q.Args, q.Columns)
	if err != nil {
		return err
	}
	q.Take(lsn, rows)
	return nil
}

// catalogOf returns the catalog that a database's statements are planned by; nil when it was not read.
func (b *postgresBackend) catalogOf(database string) *catalogpostgres.Cache {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.planners[database]; p != nil {
		return p.catalog
	}
	return nil
}

// follow sees that a database's planner knows its catalog.
func (b *postgresBackend) follow(database string, cache *catalogpostgres.Cache) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(database, cache)
	p := b.planners[database]
	if p != nil && p.catalog == cache {
		return
	}
	if p != nil { // perhaps the database was made anew
		b.drop(database, p)
	}
	planner := sqlpostgres.NewCache(sqlpostgres.New(cache, b.options), planEntries, planBytes)
	cache.Changed(planner.Invalidate)
	b.planners[database] = &planned{cache, planner}
}

// note takes note of what was written anew as a whole. It needs b.mu.
func (b *postgresBackend) note(database string, cache *catalogpostgres.Cache) {
	for _, table := range cache.Rewritten() {
		b.moved[table+"@"+database] = true
	}
}

// drop keeps what is known of a planned database that goes. It needs b.mu.
func (b *postgresBackend) drop(database string, p *planned) {
	b.note(database, p.catalog)
	b.count(p)
}

// count keeps what a planner counted that goes. It needs b.mu.
func (b *postgresBackend) count(p *planned) {
	b.plansBefore, b.misledBefore = b.plansBefore.Add(p.planner.Stats()), b.misledBefore+p.catalog.Misled()
}

func (b *postgresBackend) misled() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.misledBefore
	for _, p := range b.planners {
		n += p.catalog.Misled()
	}
	return n
}

func (b *postgresBackend) epoch() (sum uint64) {
	for _, cache := range b.databases.Caches() {
		sum += cache.Epoch()
	}
	return sum
}

// reloadAll reads the catalogs again of the databases that were opened.
func (b *postgresBackend) reloadAll(ctx context.Context) error {
	err := b.databases.Reload(ctx)
	open := b.databases.Caches()
	for name, cache := range open {
		b.follow(name, cache)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, p := range b.planners {
		if open[name] == nil {
			b.drop(name, p)
			delete(b.planners, name)
		}
	}
	return err
}

func (b *postgresBackend) ping(ctx context.Context) error { return b.conn.Ping(ctx) }

func (b *postgresBackend) plans() plancache.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.plansBefore
	for _, p := range b.planners {
		sum = sum.Add(p.planner.Stats())
	}
	return sum
}

// rewritten reads the catalogs a last time. A server that is gone rewrites nothing.
func (b *postgresBackend) rewritten(ctx context.Context) []string {
	_ = b.reloadAll(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.moved))
}

func (b *postgresBackend) serverLog(clock func() int64) (serverlog.Source, error) {
	if b.options.Columns {
		return nil, &serverlog.Unreadable{Reason: "rows are known by isotap's columns, and the log by places",
			Remedy: "leave row_identity at system"}
	}
	return &logpostgres.Source{Target: b.target, Conn: b.conn, Databases: b.databases, Maintenance: maintenance,
		Clock: clock}, nil
}

func (b *postgresBackend) inserted(context.Context) (n uint64, known bool) { return 0, false }

func (b *postgresBackend) outlived() []*history.Txn { return b.prepared.Rest() }

func (b *postgresBackend) setStrictPlans(strict bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.options.StrictPlans = strict
	for _, p := range b.planners {
		p.planner.SetStrictPlans(strict)
	}
}

func (b *postgresBackend) tester() predicate.Tester { return b.databases }

func (b *postgresBackend) close() error { return errors.Join(b.databases.Close(), b.conn.Close()) }
